#pragma once
/// What a transformation of the offline coder is: a function from a kernel's syntax tree to a better one.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/core/action.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/task.hpp>

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Thrown by a transformation that cannot be applied; the message is one sentence without full stop that says
/// what prevents it: "iterations of i depend on each other through A".
class TransformDeclined : public std::runtime_error {
public:
  /// `reason` is the sentence that `what()` answers.
  explicit TransformDeclined(const std::string& reason) : std::runtime_error{reason} {}
};

/// What a transformation works from. Everything outlives the call.
struct TransformRequest {
  /// The task.
  const Task& task;
  /// The kernel to be changed.
  const Kernel& kernel;
  /// The device it is for.
  const Device& device;
  /// What is to be done.
  const Action& action;
  /// The parsed kernel and its data flow, which points into `tree`.
  const SyntaxNode& tree;
  /// Its data flow.
  const KernelAnalysis& analysis;
  /// 0-based: which of the transformation's variants (tile sizes, loop orders, ...) is wanted, the one
  /// expected to be best first. Ask `choose_variant`.
  int variant = 0;
};

/// Returns the whole tree as it is after the optimisation of `request.action` on its region. Must be right
/// for all sizes. Throws `TransformDeclined` where it cannot be done or the variants are used up.
/// Deterministic.
using Transformation = std::function<SyntaxNode(const TransformRequest& request)>;

/// One row of the offline coder's table.
struct TransformationEntry {
  /// Id of the optimisation type it implements: "tiling".
  std::string optimization;
  Transformation apply; ///< carries the optimisation out, or throws `TransformDeclined`
  /// Name of the one language it is for ("cuda"); empty: for every C-like language.
  std::string language{};
};

/// The element of `variants` that a request asks for. Throws `TransformDeclined` when they are used up.
template <class Variant>
[[nodiscard]] const Variant& choose_variant(const std::vector<Variant>& variants, int index) {
  if (index < 0 || static_cast<std::size_t>(index) >= variants.size())
    throw TransformDeclined("no further variant: there are " + std::to_string(variants.size()));
  return variants[static_cast<std::size_t>(index)];
}

} // namespace mtmc
