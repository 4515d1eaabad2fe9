#pragma once
/// The loop: a policy decides the next optimisation, a coder writes it, an evaluator judges it, and the
/// search goes on from the better kernel (design, section 6).

#include <mtmc/core/concepts.hpp>
#include <mtmc/loop/options.hpp>
#include <mtmc/loop/parts.hpp>
#include <mtmc/loop/result.hpp>

#include <functional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The search itself. Throws `Error` for what goes wrong before the first step.
[[nodiscard]] Result run_search(LoopParts& parts, const LoopOptions& options, const Task& task,
                                std::stop_token stop);
/// A run whose errors are in its result from the beginning on.
[[nodiscard]] Result run_or_report(LoopParts& parts, const LoopOptions& options, const Task& task,
                                   const std::stop_token& stop);
/// Throws `Error` (`mtmc.loop.001`) if two tasks would write to the same folder.
void check_folders(const LoopOptions& options, std::span<const Task> tasks);

} // namespace detail

/// A search over kernels made of a policy, a coder, a region finder and an evaluator. Parts given as lvalues
/// are used where they are and must outlive the loop; rvalues are taken over.
///
///     mtmc::Loop loop{mtmc::RulesPolicy{}, mtmc::TransformCoder{}, mtmc::AstRegionFinder{}, evaluator,
///                     {.max_steps = 8}};
///     mtmc::Result result = loop.optimize(task);
///
/// At each step: structure, legal actions (and stop), the policy's distribution, a choice, `samples` drafts,
/// their evaluation paired with the best kernel so far, up to `repairs` further drafts for those that failed,
/// the journal, and the search continues from the best correct ones. A kernel becomes the best when it was
/// faster than the best so far, and again at a second look. At the end the best is compared with the start
/// kernel once more: that is the reported speed-up.
///
/// With the same seed and the same answers of its parts a run is the same, whatever the number of threads.
template <class P, class C, class F, class E> class Loop {
  static_assert(check_policy<std::remove_reference_t<P>>());
  static_assert(check_coder<std::remove_reference_t<C>>());
  static_assert(check_region_finder<std::remove_reference_t<F>>());
  static_assert(check_evaluator<std::remove_reference_t<E>>());

public:
  /// Throws `Error` (`mtmc.loop.001`) where options contradict themselves.
  Loop(P&& policy, C&& coder, F&& finder, E&& evaluator, LoopOptions options = {})
      : policy_(std::forward<P>(policy)), coder_(std::forward<C>(coder)), finder_(std::forward<F>(finder)),
        evaluator_(std::forward<E>(evaluator)), options_(std::move(options)) {
    detail::check_options(options_);
  }

  /// The settings it was made with.
  [[nodiscard]] const LoopOptions& options() const noexcept { return options_; }

  /// Makes a task's kernel faster. Throws `Error` for what goes wrong before the first step (the task cannot
  /// be judged, the start kernel fails, the folder cannot be written); later errors are in the result, next
  /// to the best kernel so far. `stop` ends the run soon, with what it has.
  [[nodiscard]] Result optimize(const Task& task, std::stop_token stop = {}) {
    auto parts = erased_parts();
    return detail::run_search(parts, options_, task, std::move(stop));
  }

  /// One task after the other. Throws `Error` (`mtmc.loop.001`) if two would write to the same folder; what
  /// goes wrong with one task, from its beginning on, is in its result only.
  [[nodiscard]] std::vector<Result> optimize(std::span<const Task> tasks, std::stop_token stop = {}) {
    detail::check_folders(options_, tasks);
    auto parts = erased_parts();
    std::vector<Result> results;
    results.reserve(tasks.size());
    for (const auto& task : tasks) results.push_back(detail::run_or_report(parts, options_, task, stop));
    return results;
  }

private:
  [[nodiscard]] detail::LoopParts erased_parts() {
    return {AnyPolicy(std::ref(policy_)), AnyCoder(std::ref(coder_)), AnyRegionFinder(std::cref(finder_)),
            AnyEvaluator(std::ref(evaluator_))};
  }

  P policy_;
  C coder_;
  F finder_;
  E evaluator_;
  LoopOptions options_;
};

/// Parts given by name are held by reference, temporaries are moved in.
template <class P, class C, class F, class E> Loop(P&&, C&&, F&&, E&&, LoopOptions) -> Loop<P, C, F, E>;
/// The same with default options.
template <class P, class C, class F, class E> Loop(P&&, C&&, F&&, E&&) -> Loop<P, C, F, E>;

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/loop/loop_inl.hpp>
#endif
