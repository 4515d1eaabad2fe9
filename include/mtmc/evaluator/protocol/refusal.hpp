#pragma once
/// Why a candidate is refused: the verdict, the rule that it broke, and what its coder should do instead.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/evaluator/content/guarded_buffer.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/evaluator/protocol/refusal_rule.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A verdict other than `correct`, with its reasons.
struct Refusal {
  /// What became of the candidate.
  Verdict verdict = Verdict::wrong_result;
  /// Name of the rule, one of `refusal_rule`.
  std::string rule{};
  std::vector<Diagnostic> diagnostics{}; ///< reasons and remedies, fit for a coder
};

/// A refusal with one diagnostic.
[[nodiscard]] inline Refusal refusal(Verdict verdict, std::string_view rule, std::string message,
                                     std::string remedy, int line = 0) {
  Diagnostic diagnostic;
  diagnostic.line = line;
  diagnostic.message = std::move(message);
  diagnostic.remedy = std::move(remedy);
  return {verdict, std::string(rule), {std::move(diagnostic)}};
}

/// Launch lines that cannot be read or evaluated. The line is taken from the error's place.
[[nodiscard]] inline Refusal launch_lines_refusal(const Error& error) {
  int line = 0;
  const auto at = error.place().rfind("line ");
  if (at != std::string::npos)
    for (std::size_t i = at + 5; i < error.place().size() && line < 1'000'000; ++i) {
      const char c = error.place()[i];
      if (c < '0' || c > '9') break;
      line = 10 * line + (c - '0');
    }
  std::string message = error.message();
  if (!error.place().empty()) message += " (" + error.place() + ")";
  return refusal(Verdict::launch_error, refusal_rule::launch_lines, std::move(message), error.remedy(), line);
}

/// "0.25 s", "3 ms", "12 us".
[[nodiscard]] inline std::string readable_seconds(double seconds) {
  char text[40];
  if (seconds >= 0.1)
    std::snprintf(text, sizeof text, "%.3g s", seconds);
  else if (seconds >= 1e-4)
    std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.3g us", seconds * 1e6);
  return text;
}

/// A call that did not finish. Throws `Error` (`mtmc.backend.004`) if the device was lost, which is nobody's
/// verdict. `limit` is the call's deadline in seconds.
[[nodiscard]] inline Refusal run_refusal(const RunStatus& status, const ProblemSize& size, double limit) {
  const auto where = " at " + to_string(size);
  const auto detail_text = status.message.empty() ? std::string{} : ": " + status.message;
  switch (status.outcome) {
  case RunOutcome::timed_out:
    return refusal(
        Verdict::timeout, refusal_rule::launch_deadline,
        "the kernel did not finish within " + readable_seconds(limit) + where + detail_text,
        "Make sure that every loop ends and that no thread waits for another one that never comes");
  case RunOutcome::faulted:
    return refusal(
        Verdict::crashed, refusal_rule::crash, "the kernel crashed" + where + detail_text,
        "Check the bounds of every access, also for sizes that are no multiple of a tile, and use no "
        "memory beyond the arguments and the scratch buffers");
  case RunOutcome::device_lost:
    throw Error(error_id::backend_device, "the device was lost" + detail_text,
                "Check the device and its driver, then start again", "running a kernel" + where);
  default:
    return refusal(
        Verdict::launch_error, refusal_rule::launch, "the kernel could not be launched" + where + detail_text,
        "Check the launch line: entry, arguments, grid, block and shared memory must suit the kernel "
        "and the device");
  }
}

/// A write outside a buffer.
[[nodiscard]] inline Refusal red_zone_refusal(const std::string& buffer, const RedZoneDamage& damage,
                                              const ProblemSize& size) {
  const std::string side = damage.before ? "before the first" : "after the last";
  return refusal(Verdict::out_of_bounds, refusal_rule::red_zones,
                 "the kernel wrote outside " + buffer + ": " + std::to_string(damage.distance + 1) +
                     (damage.distance == 0 ? " byte " : " bytes ") + side + " element, at " + to_string(size),
                 damage.before
                     ? "Check for negative indices and offsets of halos and tiles at the first element"
                     : "Guard the last, partial tile: compute and write only elements inside the shape");
}

/// A crash of a kernel that runs while there is memory next to its buffers.
[[nodiscard]] inline Refusal guard_page_refusal(BufferGuard guard, const ProblemSize& size) {
  const bool before = guard == BufferGuard::page_before;
  return refusal(Verdict::out_of_bounds, refusal_rule::guard_pages,
                 std::string("the kernel crashed at ") + to_string(size) + " when there was no memory " +
                     (before ? "before" : "behind") + " its buffers: it reads or writes outside one of them",
                 before ? "Check for negative indices and for offsets of halos at the first element"
                        : "Guard the last, partial tile: load full vectors only where all their elements are "
                          "inside the shape, also if the excess is not used");
}

/// Memory of the kernel's own that a run has changed.
[[nodiscard]] inline Refusal state_refusal(const std::string& variable, const ProblemSize& size) {
  return refusal(Verdict::refused, refusal_rule::state,
                 "the kernel changed its own variable `" + variable + "` in a run at " + to_string(size) +
                     ", so it keeps state between calls",
                 "Keep nothing between calls: make it constant, local, or a scratch buffer (`//@ scratch "
                 "name: f32[N]`)");
}

/// A write to an input.
[[nodiscard]] inline Refusal modified_refusal(const std::string& buffer, const ProblemSize& size) {
  return refusal(Verdict::input_modified, refusal_rule::inputs_unchanged,
                 "the kernel changed its input " + buffer + " at " + to_string(size),
                 "Write only to outputs and scratch buffers; copy what must be changed to a scratch buffer");
}

/// Two results for the same inputs.
[[nodiscard]] inline Refusal nondeterministic_refusal(const std::string& element, std::int64_t different,
                                                      std::int64_t total, const ProblemSize& size) {
  return refusal(
      Verdict::nondeterministic, refusal_rule::same_bits,
      "two runs on the same inputs gave different results at " + to_string(size) + ": " +
          std::to_string(different) + " of " + std::to_string(total) + " elements differ, first " + element,
      "Outputs and scratch buffers held other values before the second run: write before you read. "
      "Keep no state between calls, let no two threads write the same element, and combine partial "
      "results of threads in a fixed order");
}

} // namespace mtmc
