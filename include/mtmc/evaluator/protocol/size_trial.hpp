#pragma once
/// Trying a size that nobody promised anything about: does the task make sense there, what does a call cost,
/// how many numbers meet in a result?

#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/protocol/check_plan.hpp>
#include <mtmc/evaluator/protocol/influence.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How many numbers go into one element of a result, of which so many inputs were `seen` to move it: never
/// less than the task states.
[[nodiscard]] inline double terms_of_result(const Task& task, const ProblemLayout& layout, double seen) {
  // Nothing moved: taken for a function with plateaus, in which many numbers may meet.
  constexpr double many = 1024;
  const double stated = stated_flops(task, layout.size) / static_cast<double>(layout.result_elements());
  return std::max({1.0, seen > 0 ? seen : many, stated});
}

/// Tries sizes of a task that is being prepared.
class SizeTrial {
public:
  /// Both must outlive it.
  SizeTrial(Judge& judge, PreparedTask& prepared) : judge_(judge), prepared_(prepared) {}

  /// Bytes of all buffers at a size; infinite where it makes no sense.
  [[nodiscard]] double bytes_at(const ProblemSize& size) const {
    try {
      return layout_of(prepared_.given, size).bytes();
    } catch (const Error&) {
      return std::numeric_limits<double>::infinity();
    }
  }

  /// Adds a size at which layout and launches of the task's own kernels make sense, and that may be
  /// affordable by its bytes.
  void add(const ProblemSize& size, bool (*is_affordable)(const SizeCost&) noexcept) {
    const auto& given = prepared_.given;
    try {
      auto layout = layout_of(given, size);
      SizeCost cost;
      cost.bytes = layout.bytes();
      if (!is_affordable(cost)) return;
      for (const auto* const kernel : {&given.kernel, given.reference ? &*given.reference : nullptr})
        if (kernel != nullptr)
          (void)plan_launches(parse_launch_lines(*kernel), given, size,
                              judge_.backend().device().compute_units);
      prepared_.layouts.push_back(std::move(layout));
      prepared_.task.sizes.push_back(size);
    } catch (const Error&) {
      // A shape, a domain or a grid that has no value there.
    }
  }

  /// Whether one of the task's own kernels bears a size: it ends well and in time, gives the same bits again,
  /// and also where no memory lies next to its buffers. Notes its seconds.
  [[nodiscard]] bool is_fit(Contestant& kernel, std::size_t size) {
    const bool large = size >= prepared_.large && size < prepared_.in_rows;
    const double patience = large ? 0.1 : 1;
    const auto inputs = prepared_.inputs({size, Distribution::normal, false, 0});
    auto once = judge_.call(prepared_, kernel, size, inputs, Poison{}, patience);
    if (once.refusal) return false;
    prepared_.seconds[size] = once.seconds;
    if (large && !is_large_secret(prepared_.cost(size))) return false;
    judge_.keep(once.results);
    const auto kept = once.results.kept();
    for (const auto guard : {BufferGuard::red_zones, BufferGuard::page_behind, BufferGuard::page_before}) {
      const auto twice = judge_.call(prepared_, kernel, size, inputs, judge_.noise(), patience, Refill::all,
                                     judge_.possible(guard));
      if (twice.refusal) return false;
      prepared_.seconds[size] = std::min(prepared_.seconds[size], twice.seconds);
      for (std::size_t i = 0; i < prepared_.layouts[size].buffers.size() && !prepared_.task.atomics; ++i)
        if (judge_.difference(twice.results, kept, i).count > 0) return false;
    }
    const auto cost = prepared_.cost(size);
    return large ? is_large_secret(cost) : is_cheap_secret(cost);
  }

  /// A call of the reference. Throws `Error` (`mtmc.task.005`) if it fails.
  [[nodiscard]] Judge::Call own_call(std::size_t size, const CaseInputs& inputs, const Poison& poison) {
    auto outcome =
        judge_.call(prepared_, *prepared_.reference, size, inputs, poison, judge_.options().start_seconds);
    if (outcome.refusal) Judge::throw_reference_error(prepared_.task, *outcome.refusal);
    return outcome;
  }

  /// By buffer, how many numbers go into one element of it at a size: one element of each input (of the
  /// largest alone, if need be) is changed, and the elements that move are counted. Throws `Error`
  /// (`mtmc.task.005`) if the reference fails.
  [[nodiscard]] std::vector<double> influence_of_inputs(std::size_t size, bool largest_only) {
    const auto& layout = prepared_.layouts[size];
    const CaseId id{size, Distribution::normal, false, 0};
    auto inputs = prepared_.inputs(id);
    const auto plain = judge_.reference(prepared_, id, inputs);
    const auto largest = largest_input(layout);
    std::vector<double> terms(layout.buffers.size(), 0);
    PhiloxEngine random(prepared_.book.key_of(id), 0x1f);
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      if (!buffer.is_read() || (largest_only && i != largest)) continue;
      if (!may_replace_elements(prepared_.task, prepared_.captured, buffer)) continue;
      const auto range = value_range(prepared_.task.arguments[buffer.argument], layout.size);
      constexpr int attempts = 3;
      for (int attempt = 0; attempt < attempts; ++attempt) {
        const auto place = random.below(static_cast<std::uint64_t>(buffer.elements));
        auto& content = inputs.change(i);
        const auto before = content;
        replace_element(content, buffer.type, static_cast<std::size_t>(place), range, attempt % 2 == 0);
        const auto moved = own_call(size, inputs, Poison{});
        content = before;
        const bool any = add_influence(layout, buffer, *plain, moved.results, terms);
        if (any) break;
      }
    }
    return terms;
  }

private:
  bool add_influence(const ProblemLayout& layout, const BufferLayout& input, const ReferenceResult& plain,
                     const CallResults& moved, std::vector<double>& terms) {
    bool any = false;
    for (std::size_t o = 0; o < layout.buffers.size(); ++o) {
      const auto& output = layout.buffers[o];
      if (!output.is_written()) continue;
      const auto changed = judge_.difference(moved, plain.contents, o).count;
      any = any || changed > 0;
      terms[o] += static_cast<double>(changed) * static_cast<double>(input.elements) /
                  static_cast<double>(output.elements);
    }
    return any;
  }

  [[nodiscard]] static std::size_t largest_input(const ProblemLayout& layout) {
    std::size_t best = 0;
    std::int64_t most = -1;
    for (std::size_t i = 0; i < layout.buffers.size(); ++i)
      if (layout.buffers[i].is_read() && layout.buffers[i].elements > most) {
        most = layout.buffers[i].elements;
        best = i;
      }
    return best;
  }

  Judge& judge_;
  PreparedTask& prepared_;
};

} // namespace mtmc
