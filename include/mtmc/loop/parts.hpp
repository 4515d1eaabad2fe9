#pragma once
/// The parts of a loop without their types, so that the search is compiled once for all of them.

#include <mtmc/core/concepts.hpp>

#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace mtmc::detail {

/// The four parts without their types. What it points to outlives it.
struct LoopParts {
  void* policy = nullptr;
  void* coder = nullptr;
  const void* finder = nullptr;
  void* evaluator = nullptr;
  ActionDistribution (*distribution)(void*, const Observation&, std::span<const Action>,
                                     std::stop_token) = nullptr;
  /// Null if the policy has no actions of its own.
  std::vector<Action> (*propose)(void*, const Observation&, std::span<const Action>,
                                 std::stop_token) = nullptr;
  Draft (*implement)(void*, const CodingRequest&, std::stop_token) = nullptr;
  Structure (*find)(const void*, const Task&, const Kernel&) = nullptr;
  Device (*device)(void*) = nullptr;
  Evaluation (*evaluate)(void*, const EvaluationRequest&, std::stop_token) = nullptr;
  /// Null if the evaluator needs no preparation.
  void (*prepare)(void*, const Task&, std::stop_token) = nullptr;
  std::string policy_identity{};
  std::string coder_identity{};
  std::string finder_identity{};
  std::string evaluator_identity{};
  int coder_limit = unlimited_concurrency;
  int evaluator_limit = unlimited_concurrency;
  /// Seconds that one call of the start kernel may take; 0 = the evaluator does not say.
  double start_seconds = 0;
};

} // namespace mtmc::detail
