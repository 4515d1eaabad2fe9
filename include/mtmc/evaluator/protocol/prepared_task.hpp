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
#include <mtmc/evaluator/content/input_structure.hpp>
#include <mtmc/evaluator/content/input_twist.hpp>
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
#include <span>
#include <string>
#include <tuple>
#include <utility>
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
  /// Of the program, as `Evaluation::binary_hash`.
  std::string binary_hash;

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

/// Binary exponents of the farthest inputs that preparing a task tries, and from which on audits go further.
inline constexpr int farthest_huge = 88;
inline constexpr int farthest_magnitudes = 40; ///< the same for inputs of all magnitudes

/// Everything that is known of a task once it is prepared, shared by all candidates.
struct PreparedTask {
  /// A task that is not ready yet. `key`: of all its inputs.
  PreparedTask(const Task& of, std::uint64_t key, const KernelEvaluatorOptions& options, AnyBackend& backend)
      : given(of), task(of), listed(of.sizes.size()),
        book(key, bytes_allowed(options.reference_bytes, std::int64_t{256} << 20, backend, 16),
             options.defences.fresh_inputs, isolates_programs(backend)),
        precise(options.defences.precision) {}

  /// The task as its owner knows it.
  const Task given;
  /// The same with secret sizes behind the listed ones.
  Task task;
  /// How many sizes are listed.
  const std::size_t listed;
  /// Secret sizes from this place on are about as large as the one that is timed.
  std::size_t large = 0;
  /// Sizes from this place on are met in rows of calls only.
  std::size_t in_rows = 0;
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
  /// What `tiny`, `huge`, `magnitudes` and slices are made with, at which the results of the reference are
  /// normal numbers and not all error; by distribution. For `structured` a bit for each structure that the
  /// task bears.
  std::array<int, all_distributions.size()> exponents{};
  /// Whether inputs lie as far out as their formats go, and what they amplify is measured case by case: the
  /// task of an audit.
  bool far = false;
  /// Whether buffers begin anywhere in their pages that their alignment allows; else where pages do.
  bool anywhere_in_pages = false;
  /// Whether all numbers of a far input may be denormal. Not on GPUs, whose atomic additions take denormals
  /// for zero (PTX, `atom.add.f32`), as fast intrinsics do: an honest column sum was off by 1e-3 there.
  bool denormals = true;
  /// Numbers that the kernel under audit names, for its far inputs.
  std::vector<double> numbers;
  /// How many audits there have been.
  std::uint64_t audits = 0;
  /// Inputs and what the reference made of them.
  CaseBook book;
  /// Whether errors are judged by what honest rounding makes them; else all of 1 % are allowed.
  const bool precise;
  /// The kernel that defines what is right.
  std::shared_ptr<Contestant> reference;
  /// The reference in double precision, if its results are the truth about this task; else null.
  std::unique_ptr<DoubleTwin> twin;
  /// By size and distribution, for each buffer: by how many tolerances the reference is off by its twin,
  /// where results of that size are compared with those of the reference alone; 0 where that is not known.
  /// Measured where it is first needed.
  std::map<std::pair<std::size_t, Distribution>, std::vector<double>> reference_errors;
  /// By buffer: whether the reference's results are exactly the truth on inputs of full precision (copies,
  /// selections, maxima), so that a candidate's must be, too. Empty where no truth is known.
  std::vector<bool> exact;
  /// By buffer: epsilons by which the reference is off by the truth on normal inputs, in units of their
  /// amplification. Empty where no truth is known.
  std::vector<double> reference_epsilons;
  /// What the twin is or why there is none, as `environment["truth"]` has it.
  std::string truth = "own precision";
  /// Which coarser arithmetic would be refused, as `environment["precision"]` has it; empty where that is not
  /// asked.
  std::string told_precision;
  /// Compiled incumbents, the one used last at the end.
  std::vector<std::shared_ptr<Contestant>> incumbents;
  /// Held while the task is being prepared, and while `incumbents` is changed.
  std::mutex lock;
  bool ready = false; ///< it has been prepared

  /// Whether a size was drawn, and told to nobody.
  [[nodiscard]] bool is_secret(std::size_t size) const noexcept { return size >= listed; }

  /// What the checks of a size cost. Timed runs do not show captured content as it is, so they replace no
  /// check.
  [[nodiscard]] SizeCost cost(std::size_t size) const {
    return {seconds[size], layouts[size].bytes(),
            task.sizes[size].weight > 0 && !has_captured(captured, layouts[size]), true, is_secret(size)};
  }

  /// What is allowed where the reference is off by as much as its results (two scores of a softmax are nearly
  /// equal, and rounding decides which row is taken): anything that is finite, nearly.
  static constexpr double tells_nothing = 1e6;

  /// What is allowed of one buffer's errors in one case, given what is known of its results.
  [[nodiscard]] Tolerance tolerance(const CaseId& id, std::size_t buffer,
                                    const ReferenceResult& known) const {
    return tolerance(id, buffer, known, known.has_truth(buffer));
  }
  /// The same where it is said whether errors are those against the truth. What is known of the reference's
  /// errors widens only what they were measured by: the truth's own where there is one, else the reference's.
  [[nodiscard]] Tolerance tolerance(const CaseId& id, std::size_t buffer, const ReferenceResult& known,
                                    bool against_truth) const {
    const auto type = layouts[id.size].buffers[buffer].type;
    auto conditioning = conditioning_of(id, buffer, against_truth);
    if (!known.amplification.empty()) conditioning.amplification = known.amplification[buffer];
    const bool stated = task.tolerance.has_value() && is_floating(type);
    if (!stated && precise && !exact.empty() && exact[buffer]) {
      // Half of a denormal is rounded, where half of any other number is exact.
      const double size = scale(id, buffer, known);
      return {denormal_steps(type, 1, size), size, 1};
    }
    constexpr double coarse = 1e-2;
    const double relative = stated ? *task.tolerance
                            : precise || !is_floating(type)
                                ? relative_tolerance(type, conditioning, far || amplifies(id.distribution))
                                : coarse;
    const bool measured_so = against_truth == known.has_truth(buffer);
    double widened = relative * (measured_so ? widening(id, buffer, known) : 1);
    constexpr double more_steps = 16;
    if (far)
      widened =
          std::max(widened, denormal_steps(type, more_steps + conditioning.terms, scale(id, buffer, known)));
    if (widened >= 1 && widened > relative) widened = tells_nothing;
    return {widened, scale(id, buffer, known), lower_precision_factor(type, widened, conditioning)};
  }

  /// So many of the smallest steps of f32, which rounding errors of numbers too small for it are, relative to
  /// a scale; 0 for other types.
  [[nodiscard]] static double denormal_steps(DataType type, double steps, double scale) noexcept {
    constexpr double smallest = 0x1p-149;
    return type == DataType::f32 && scale > 0 ? steps * smallest / scale : 0;
  }

  /// What is known of one buffer's errors in one case.
  [[nodiscard]] Conditioning conditioning_of(const CaseId& id, std::size_t buffer, bool against_truth) const {
    Conditioning known{terms[id.size][buffer],
                       amplification[buffer][static_cast<std::size_t>(id.distribution)]};
    if (!against_truth) return known;
    if (id.distribution == Distribution::normal) known.walk = walk_on_even_inputs;
    if (!reference_epsilons.empty()) known.base = base_for(reference_epsilons[buffer]);
    return known;
  }

  /// By how much a tolerance is widened for errors of the reference's own.
  [[nodiscard]] double widening(const CaseId& id, std::size_t buffer, const ReferenceResult& known) const {
    if (known.has_truth(buffer)) return known.widening(buffer);
    const auto measured = reference_errors.find({id.size, id.distribution});
    return measured == reference_errors.end() ? 1 : widening_without_truth(measured->second[buffer]);
  }

  /// Magnitude by which small elements of a result are judged. On inputs with a structure all may have
  /// cancelled to nothing (a norm of equal numbers), and where a few inputs stand out from all others most
  /// results are far smaller than what a few are made of (a rotary embedding by sines that are right to 5e-8
  /// was refused where the cosine of 11 is 0.004): theirs is never less than that of normal inputs, or,
  /// where spikes are among small ones, of inputs as large as those. A few elements may all have cancelled to
  /// almost nothing (GELU of -4 is -7e-5, with a rounding error of 1e-7): theirs is the usual one, if that is
  /// larger.
  [[nodiscard]] double scale(const CaseId& id, std::size_t buffer, const ReferenceResult& known) const {
    constexpr std::int64_t too_few = 16;
    const double own = known.scales[buffer];
    constexpr double spikes = 32;
    if (id.distribution == Distribution::sparse_spikes)
      return std::max(own, spikes * usual_scales[buffer][static_cast<std::size_t>(Distribution::normal)]);
    if (id.distribution == Distribution::structured || id.distribution == Distribution::mostly_zero)
      return std::max(own, usual_scales[buffer][static_cast<std::size_t>(Distribution::normal)]);
    if (layouts[id.size].buffers[buffer].elements >= too_few) return own;
    return std::max(own, usual_scales[buffer][static_cast<std::size_t>(id.distribution)]);
  }

  /// Distribution of one input in a case: its own, but where there are several, every other one of a case
  /// that is mostly zero is normal, in turn over the sizes and evaluations, or most products would be zero.
  /// `place`: among the `count` inputs.
  [[nodiscard]] static Distribution distribution_of(const CaseId& id, std::size_t place,
                                                    std::size_t count) noexcept {
    const bool dense =
        id.distribution == Distribution::mostly_zero && count > 1 && (id.size + id.serial + place) % 2 == 1;
    return dense ? Distribution::normal : id.distribution;
  }

  /// Turns of structures: one for each call of a row (`cases_of_a_row`), and those of the next row go on.
  [[nodiscard]] static std::uint64_t turn_of(const CaseId& id) noexcept {
    constexpr std::uint64_t in_a_row = 24;
    return (id.serial >> 16) * in_a_row + (id.serial & 0xffff);
  }

  /// Elements of a slice of an input: those of its last axis or, for some `key`s, of its last axes; some
  /// dozens where there is but one axis.
  [[nodiscard]] static std::int64_t slice_of(const BufferLayout& buffer, std::uint64_t key) {
    std::vector<std::int64_t> lengths;
    std::int64_t product = 1;
    for (std::size_t i = buffer.extents.size(); i-- > 1;) {
      product *= buffer.extents[i];
      if (product > 1 && product < buffer.elements) lengths.push_back(product);
    }
    constexpr std::int64_t tile = 32;
    if (lengths.empty()) return std::max<std::int64_t>(1, std::min(tile << (key % 4), buffer.elements));
    return key % 4 != 0 ? lengths.front() : lengths[(key / 4) % lengths.size()];
  }

  /// What is done to the inputs of a case after they were made: nothing but in far cases, and nothing to huge
  /// ones, whose sums overflow in one order and not in another where terms have something in common.
  [[nodiscard]] InputTwist twist_of(const CaseId& id) const noexcept {
    if (!far || id.distribution == Distribution::structured || id.distribution == Distribution::huge)
      return InputTwist::none;
    return draw_twist(detail::slice_hash(0, book.key_of(before_follow_up(id)), 0), !numbers.empty());
  }

  /// "normal", "one_sided huge", "graded".
  [[nodiscard]] std::string name_of_inputs(const CaseId& id) const {
    const auto twist = twist_of(id);
    std::string name(to_string(twist));
    if (has_own_scale(twist)) return name;
    const std::string distribution(to_string(id.distribution));
    return twist == InputTwist::none ? distribution : name + ' ' + distribution;
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

  /// Another one for each case, from what is usual to where f32 ends; all structures. Where the task does not
  /// bear the farthest that its preparation tried, no more than it bears: beyond, sums overflow in one order
  /// and not in another, and what follows may hide it (the maximum of minus infinity and zero is a number).
  [[nodiscard]] int far_exponent(Distribution distribution, std::uint64_t key) const noexcept {
    const auto within = [&](int least, int most) {
      return least + static_cast<int>((key >> 17) % static_cast<std::uint64_t>(most - least + 1));
    };
    const auto borne = [&](int farthest_tried, int least, int most) {
      const int known = exponents[static_cast<std::size_t>(distribution)];
      return known >= farthest_tried ? most : std::clamp(known, least, most);
    };
    switch (distribution) {
    case Distribution::tiny:
      return !denormals ? -within(4, 89) : (key >> 16 & 1) != 0 ? -within(4, 123) : -within(127, 134);
    case Distribution::huge:
      return within(2, borne(farthest_huge, 2, 111));
    case Distribution::magnitudes:
      return within(4, borne(farthest_magnitudes, 4, 63));
    case Distribution::far_slices:
      return within(2, 10);
    case Distribution::structured:
      return static_cast<int>(detail::all_structures);
    default:
      return usual_exponent(distribution);
    }
  }

  /// Whether an input of a far case stays normal beside another one: of every other case only one input is
  /// special, since two may cancel what is special about them (products of two small numbers are zero).
  [[nodiscard]] bool is_normal_beside(std::uint64_t key, std::size_t place,
                                      std::size_t count) const noexcept {
    return far && count > 1 && (key >> 40 & 1) != 0 && (key >> 41) % count != place;
  }

  /// Whether elements of an input may be any numbers.
  [[nodiscard]] bool is_free(const BufferLayout& buffer, const ProblemSize& size) const {
    return buffer.is_read() && buffer.type == DataType::f32 && !task.generate &&
           find_captured(captured, buffer) == nullptr &&
           !value_range(task.arguments[buffer.argument], size).has_value();
  }

  /// Has `twist` change all inputs whose elements may be any numbers.
  template <class Twist> void twist_inputs(const CaseId& id, CaseInputs& contents, const Twist& twist) const {
    const auto& layout = layouts[id.size];
    std::vector<RelatedInput> inputs;
    std::size_t place = 0;
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      if (!buffer.is_read()) continue;
      const auto which = place++;
      if (!is_free(buffer, layout.size)) continue;
      auto& bytes = contents.change(i);
      std::vector<std::size_t> extents(buffer.extents.begin(), buffer.extents.end());
      inputs.push_back({{reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)},
                        std::move(extents),
                        which});
    }
    twist(std::span<const RelatedInput>(inputs));
  }

  void make_inputs(const CaseId& id, CaseInputs& contents) const {
    if (is_follow_up(id)) {
      make_inputs(before_follow_up(id), contents);
      twist_inputs(id, contents, [&](std::span<const RelatedInput> inputs) {
        const auto hash = detail::slice_hash(1, book.key_of(id), 0);
        if (!inputs.empty()) change_some(inputs[(hash >> 4) % inputs.size()], hash);
      });
      return;
    }
    const auto twist = twist_of(id);
    make_plain_inputs(id, has_own_scale(twist), contents);
    if (twist != InputTwist::none)
      twist_inputs(id, contents, [&](std::span<const RelatedInput> inputs) {
        apply_twist(twist, inputs, detail::slice_hash(2, book.key_of(id), 0), numbers);
      });
  }

  /// The inputs of a case before they are twisted. `normal`: whatever their distribution.
  void make_plain_inputs(const CaseId& id, bool normal, CaseInputs& contents) const {
    const auto& layout = layouts[id.size];
    contents.clear(layout.buffers.size());
    const auto inputs = static_cast<std::size_t>(std::count_if(
        layout.buffers.begin(), layout.buffers.end(), [](const auto& buffer) { return buffer.is_read(); }));
    std::size_t place = 0;
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      if (!buffer.is_read()) continue;
      const auto which = place++;
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
        const auto key = book.key_of(id);
        auto distribution = normal || is_normal_beside(key, which, inputs)
                                ? Distribution::normal
                                : distribution_of(id, which, inputs);
        auto exponent =
            far ? far_exponent(distribution, key) : exponents[static_cast<std::size_t>(distribution)];
        if (distribution == Distribution::structured) {
          const auto structure = detail::draw_structure(static_cast<std::uint32_t>(exponent), turn_of(id),
                                                        detail::slice_hash(0, key, detail::shared_stream),
                                                        detail::slice_hash(0, key, which), which == 0);
          if (!structure) distribution = Distribution::normal;
          exponent = structure ? static_cast<int>(*structure) : 0;
        }
        contents.leave_to(i, {buffer.type, buffer.elements, distribution, key, buffer.argument,
                              value_range(argument, layout.size), slice_of(buffer, key), exponent});
      }
    }
  }

  std::map<std::size_t, std::vector<std::shared_ptr<CaseInputs>>> spare_inputs_;
  double spare_bytes_ = 0;
};

} // namespace mtmc
