#pragma once
/// What is known of a task once it is prepared, and of the kernels that are judged.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/content/captured_inputs.hpp>
#include <mtmc/evaluator/content/case_inputs.hpp>
#include <mtmc/evaluator/content/double_truth.hpp>
#include <mtmc/evaluator/content/slot.hpp>
#include <mtmc/evaluator/content/tolerance.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/amounts.hpp>
#include <mtmc/evaluator/protocol/case_book.hpp>
#include <mtmc/evaluator/protocol/check_plan.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A compiled kernel with its plans and its own buffers, which no other kernel is ever given.
struct Contestant {
  /// Its text.
  Kernel kernel;
  /// The kernel's id.
  std::string id;
  /// One for each size of the task.
  std::vector<LaunchPlan> plans;
  /// By size, place in a timed group, and what lies next to the buffers. Outlive the program, which may have
  /// them mapped.
  std::map<std::tuple<std::size_t, std::size_t, BufferGuard>, Slot> slots;
  std::shared_ptr<AnyBackend::Program> program; ///< the compiled kernel; null where it was not compiled

  /// Frees all buffers of timed groups but the first call's, and those too if one call needs more scratch
  /// memory than `max_scratch` bytes: whoever is kept for later keeps little.
  void forget_groups(double max_scratch) {
    const bool greedy = std::any_of(plans.begin(), plans.end(), [&](const LaunchPlan& plan) {
      return scratch_bytes(plan) > max_scratch;
    });
    std::erase_if(slots, [&](const auto& entry) { return greedy || std::get<1>(entry.first) > 0; });
  }
};

/// How many bytes something may take: what was asked for, or, if nothing was, so many on the host and a
/// `share` of the device's memory where the judge works there.
[[nodiscard]] inline std::int64_t bytes_allowed(std::int64_t asked, std::int64_t on_host, AnyBackend& backend,
                                                std::int64_t share) {
  if (asked > 0) return asked;
  return runs_judge_kernels(backend) ? std::max(on_host, backend.device().memory_bytes / share) : on_host;
}

/// Everything that is known of a task once it is prepared, shared by all candidates.
struct PreparedTask {
  /// A task that is not ready yet. `key`: of all its inputs.
  PreparedTask(const Task& of, std::uint64_t key, const KernelEvaluatorOptions& options, AnyBackend& backend)
      : task(of), book(key, bytes_allowed(options.reference_bytes, std::int64_t{256} << 20, backend, 16),
                       options.defences.fresh_inputs, isolates_programs(backend)),
        precise(options.defences.precision) {}

  /// The task.
  Task task;
  /// Contents that are not generated, read once.
  std::vector<CapturedInput> captured;
  /// One for each size, as are all the following.
  std::vector<ProblemLayout> layouts;
  /// Seconds of one call of the start kernel or the reference, whichever is slower.
  std::vector<double> seconds;
  /// How many numbers are combined into one element of each buffer (1 for inputs).
  std::vector<std::vector<double>> terms;
  /// For each buffer, how much each distribution amplifies a rounding error.
  std::vector<std::array<double, all_distributions.size()>> amplification;
  /// For each buffer, its usual `output_scale` on each distribution.
  std::vector<std::array<double, all_distributions.size()>> usual_scales;
  /// Inputs and what the reference made of them.
  CaseBook book;
  /// Whether errors are judged by what honest rounding makes them; else all of 1 % are allowed.
  const bool precise;
  /// The kernel that defines what is right.
  std::shared_ptr<Contestant> reference;
  /// The reference in double precision, if its results are the truth about this task; else null.
  std::unique_ptr<DoubleTwin> twin;
  /// By size and buffer: by how many tolerances the reference is off by its twin, where results of that size
  /// are compared with those of the reference alone; 0 where that is not known, or where the truth is.
  std::vector<std::vector<double>> reference_errors;
  /// What the twin is or why there is none, as `environment["truth"]` has it.
  std::string truth = "own precision";
  /// Compiled incumbents, the one used last at the end.
  std::vector<std::shared_ptr<Contestant>> incumbents;
  /// Held while the task is being prepared, and while `incumbents` is changed.
  std::mutex lock;
  bool ready = false; ///< it has been prepared

  /// What the checks of a size cost. Timed runs do not show captured content as it is, so they replace no
  /// check.
  [[nodiscard]] SizeCost cost(std::size_t size) const {
    return {seconds[size], layouts[size].bytes(),
            task.sizes[size].weight > 0 && !has_captured(captured, layouts[size])};
  }

  /// What is allowed of one buffer's errors in one case, given what is known of its results.
  [[nodiscard]] Tolerance tolerance(const CaseId& id, std::size_t buffer,
                                    const ReferenceResult& known) const {
    const auto type = layouts[id.size].buffers[buffer].type;
    const Conditioning conditioning{terms[id.size][buffer],
                                    amplification[buffer][static_cast<std::size_t>(id.distribution)]};
    const bool given = task.tolerance.has_value() && is_floating(type);
    constexpr double coarse = 1e-2;
    const double relative = given                           ? *task.tolerance
                            : precise || !is_floating(type) ? relative_tolerance(type, conditioning)
                                                            : coarse;
    const double widened = relative * widening(id.size, buffer, known);
    return {widened, scale(id, buffer, known), lower_precision_factor(type, widened, conditioning)};
  }

  /// By how much a tolerance is widened for errors of the reference's own.
  [[nodiscard]] double widening(std::size_t size, std::size_t buffer, const ReferenceResult& known) const {
    if (known.has_truth(buffer)) return known.widening(buffer);
    return reference_errors.empty() ? 1 : widening_for(reference_errors[size][buffer]);
  }

  /// Magnitude by which small elements of a result are judged. A few elements may all have cancelled to
  /// almost nothing (GELU of -4 is -7e-5, with a rounding error of 1e-7): theirs is the usual one, if that is
  /// larger.
  [[nodiscard]] double scale(const CaseId& id, std::size_t buffer, const ReferenceResult& known) const {
    constexpr std::int64_t too_few = 16;
    const double own = known.scales[buffer];
    if (layouts[id.size].buffers[buffer].elements >= too_few) return own;
    return std::max(own, usual_scales[buffer][static_cast<std::size_t>(id.distribution)]);
  }

  /// Distribution of one argument in a case: its own, but of the inputs of a case that is mostly zero every
  /// other one is normal, in turn over the sizes and evaluations, or most products would be zero.
  [[nodiscard]] static Distribution distribution_of(const CaseId& id, std::size_t argument) noexcept {
    const bool dense =
        id.distribution == Distribution::mostly_zero && (id.size + id.serial + argument) % 2 == 1;
    return dense ? Distribution::normal : id.distribution;
  }

  /// Contents of a case, made anew from its key. Captured content is shown as it is in checks on normal
  /// inputs, and varied in all other cases.
  [[nodiscard]] CaseInputs inputs(const CaseId& id) const {
    CaseInputs contents;
    make_inputs(id, contents);
    return contents;
  }
  /// The same for several owners. Where memory of contents is left that nobody owns any more, it is used
  /// again, because touching new memory takes longer than filling it.
  [[nodiscard]] std::shared_ptr<const CaseInputs> shared_inputs(const CaseId& id) {
    auto& known = spare_inputs_[id.size];
    auto free =
        std::find_if(known.begin(), known.end(), [](const auto& item) { return item.use_count() == 1; });
    std::shared_ptr<CaseInputs> contents;
    if (free != known.end()) {
      contents = *free;
    } else {
      contents = std::make_shared<CaseInputs>();
      const auto bytes = layouts[id.size].input_bytes();
      if (spare_bytes_ + bytes <= max_spare_bytes) {
        spare_bytes_ += bytes;
        known.push_back(contents);
      }
    }
    make_inputs(id, *contents);
    return contents;
  }

  /// Frees all buffers and kept results; what is needed is made again. Nobody may be using any of it.
  void release_buffers() {
    if (reference) reference->slots.clear();
    for (const auto& incumbent : incumbents) incumbent->slots.clear();
    if (twin) twin->slots.clear();
    book.forget_all();
    spare_inputs_.clear();
    spare_bytes_ = 0;
  }

private:
  /// A task's inputs at its largest size, usually.
  static constexpr double max_spare_bytes = 0x1p26;

  void make_inputs(const CaseId& id, CaseInputs& contents) const {
    const auto& layout = layouts[id.size];
    contents.clear(layout.buffers.size());
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      if (!buffer.is_read()) continue;
      const auto& argument = task.arguments[buffer.argument];
      if (const auto* known = find_captured(captured, buffer)) {
        auto& content = contents.write(i, buffer.type, buffer.bytes);
        content = known->content;
        if (id.timed || id.distribution != Distribution::normal)
          vary_captured(content, buffer.type, book.key_of(id), buffer.argument,
                        value_range(argument, layout.size));
      } else if (task.generate) {
        generate_by_hook(task, argument, layout.size, book.key_of(id), buffer.argument,
                         contents.write(i, buffer.type, buffer.bytes));
      } else {
        contents.leave_to(i, {buffer.type, buffer.elements, distribution_of(id, buffer.argument),
                              book.key_of(id), buffer.argument, value_range(argument, layout.size)});
      }
    }
  }

  std::map<std::size_t, std::vector<std::shared_ptr<CaseInputs>>> spare_inputs_;
  double spare_bytes_ = 0;
};

} // namespace mtmc
