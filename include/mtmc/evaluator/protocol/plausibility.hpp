#pragma once
/// No kernel reads its inputs faster than the device's memory delivers them.

#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/protocol/influence.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/support/readable_bytes.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Share of the least possible time that a call may take at the very least: the allowance for the inaccuracy
/// of the ceiling and of the clock. A ceiling that can be measured again at the moment of suspicion leaves
/// little doubt; one that was measured once, perhaps on a busy machine, was seen too low by a factor of three
/// (10 to 34 GB/s on one virtual machine within a minute).
inline constexpr double plausible_share_of_fresh_ceiling = 0.9;
inline constexpr double plausible_share_of_old_ceiling = 0.25; ///< Of a ceiling that was measured once
/// Measurements of a ceiling at the moment of suspicion, of which the best counts: beside other work one
/// alone said 2.8 GB/s of a machine that reads 20.
inline constexpr int suspicious_measurements = 10;

/// Share of the input bytes that a call provably has to read at a size: cache lines of the inputs are changed
/// at random places, one a time, and the reference tells whether its results move. A lower bound with 95 %
/// confidence if all of them count, 0 as soon as one does not (a table of which only some rows are gathered,
/// say), so that an honest kernel is never accused.
[[nodiscard]] inline double provable_read_share(Judge& judge, PreparedTask& prepared, std::size_t size) {
  constexpr int probes = 12;
  constexpr std::size_t line = 64;
  const auto& layout = prepared.layouts[size];
  const CaseId id{size, Distribution::normal, false, 0};
  auto inputs = prepared.inputs(id);
  const auto plain = judge.certain_reference(prepared, id, inputs);
  PhiloxEngine random(prepared.book.key_of(id), 0x51);
  for (int probe = 0; probe < probes; ++probe) {
    auto at = random.below(static_cast<std::uint64_t>(layout.input_bytes()));
    std::size_t i = 0;
    for (; i < layout.buffers.size(); ++i) {
      if (!layout.buffers[i].is_read()) continue;
      if (at < layout.buffers[i].bytes) break;
      at -= layout.buffers[i].bytes;
    }
    const auto& buffer = layout.buffers[i];
    if (!may_replace_elements(prepared.task, prepared.captured, buffer)) return 0;
    const auto range = value_range(prepared.task.arguments[buffer.argument], layout.size);
    auto& content = inputs.change(i);
    const auto before = content;
    const std::size_t width = size_of(buffer.type);
    const std::size_t first = static_cast<std::size_t>(at) / line * line / width;
    const std::size_t end = std::min(first + line / width, static_cast<std::size_t>(buffer.elements));
    bool moved = false;
    // Up, and if that is without effect, down: a maximum ignores one, a minimum the other.
    for (const bool up : {true, false}) {
      for (std::size_t place = first; place < end; ++place)
        replace_element(content, buffer.type, place, range, up);
      const auto outcome =
          judge.call(prepared, *prepared.reference, size, inputs, Poison{}, judge.options().start_seconds);
      if (outcome.refusal) Judge::throw_reference_error(prepared.task, *outcome.refusal);
      for (std::size_t o = 0; o < layout.buffers.size(); ++o)
        moved = moved || judge.difference(outcome.results, plain->contents, o).count > 0;
      content = before;
      if (moved) break;
    }
    if (!moved) return 0;
  }
  return share_of_hits(probes);
}

/// Refuses a candidate whose time at a size is too short to have read its inputs from memory.
[[nodiscard]] inline std::optional<Refusal> check_plausibility(Judge& judge, PreparedTask& prepared,
                                                               std::size_t size, double seconds) {
  double bandwidth = judge.backend().device().measured.read_bandwidth;
  const double bytes = prepared.layouts[size].input_bytes();
  if (!judge.defences().plausibility || !judge.options().cold || !(seconds > 0) || !(bandwidth > 0))
    return std::nullopt;
  const bool fresh = has_ability(judge.backend(), BackendAbility::measure_read_bandwidth);
  const double share = fresh ? plausible_share_of_fresh_ceiling : plausible_share_of_old_ceiling;
  if (seconds >= share * bytes / bandwidth) return std::nullopt;
  for (int i = 0; fresh && i < suspicious_measurements; ++i) {
    bandwidth = std::max(bandwidth, read_bandwidth_again(judge.backend()).value_or(bandwidth));
    if (seconds >= share * bytes / bandwidth) return std::nullopt;
  }
  const double must = bytes * provable_read_share(judge, prepared, size);
  if (seconds >= share * must / bandwidth) return std::nullopt;
  return refusal(
      Verdict::implausible, refusal_rule::speed_of_light,
      "the kernel took " + readable_seconds(seconds) + " at " + to_string(prepared.layouts[size].size) +
          ", but reading its " + readable_bytes(bytes) + " of inputs takes at least " +
          readable_seconds(must / bandwidth) + " at the " + detail::number(std::round(bandwidth / 1e8) / 10) +
          " GB/s measured on this device",
      "Compute the result from the inputs of this very call; results must not be kept from earlier "
      "calls");
}

} // namespace mtmc
