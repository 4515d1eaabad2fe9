#pragma once
/// The offline coder: applies an action to the kernel's syntax tree, only where the dependences allow it, and
/// prints the new source; of texts with Triton kernels it changes what is mechanical. No model, no network.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/step.hpp>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

struct TransformationEntry;
struct ProgramTransformationEntry;

/// A coder that knows a fixed set of transformations, of C-family text and of Python texts with Triton
/// kernels, of which all that it does not change stays as it was. The same request gives the same draft;
/// the sample index selects among variants (tile sizes, unroll factors, loop orders), the one expected to be
/// best first. What it cannot do it declines (`DraftFailure::declined`) with the reason as message: no
/// transformation for the optimisation, a region that is gone, a dependence in the way, variants used up, a
/// text that was not understood. Stateless; calls may run at once.
///
/// Two parameters of a function are taken to be different memory unless some launch gives them the same
/// buffer.
class TransformCoder {
public:
  /// With the built-in table.
  TransformCoder();
  /// With the host's own table (coder/transform/table.hpp); the first entry of an optimisation counts.
  explicit TransformCoder(std::vector<TransformationEntry> transformations);
  /// With the host's own tables; the second one is for texts with Triton kernels
  /// (coder/transform/programs/table.hpp).
  TransformCoder(std::vector<TransformationEntry> transformations,
                 std::vector<ProgramTransformationEntry> programs);

  /// The kernel after the request's action on its region, or why there is none.
  [[nodiscard]] Draft implement(const CodingRequest& request, std::stop_token stop) const;

  /// Whether one of its tables has an entry for the type and the language.
  [[nodiscard]] bool writes(std::string_view optimization, const Language& language) const;

  /// The actions whose first variant it does not decline on the kernel of `about.seen`, and `stop`.
  [[nodiscard]] std::vector<Action> feasible_actions(const CodingRequest& about,
                                                     std::vector<Action> actions) const;

  /// Names the coder and its table, for cache keys and reports.
  [[nodiscard]] std::string identity() const;

private:
  std::shared_ptr<const std::vector<TransformationEntry>> transformations_;
  std::shared_ptr<const std::vector<ProgramTransformationEntry>> programs_;
};

static_assert(check_coder<TransformCoder>() && KnowsWhatItWrites<TransformCoder> &&
              KnowsFeasibleActions<TransformCoder>);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/coder/transform_inl.hpp>
#endif
