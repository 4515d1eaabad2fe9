#pragma once
/// The compiler.

#include <mtmc/evaluator/conformance/trial.hpp>

#include <chrono>
#include <stop_token>
#include <string>

namespace mtmc::inline MTMC_ABI::test {

namespace detail {

/// Seconds that a compiler may take to notice that it should not even begin.
inline constexpr double prompt_seconds = 10;

[[nodiscard]] inline Finding check_correct_text(Trial& trial) {
  const auto result = trial.compile(trial.probe().vector_add);
  if (!result.program)
    return unexpected("a program", result.timed_out ? "timed_out" : in_words(result.diagnostics),
                      "Set CompileResult::program; correct the probe's text if it is at fault");
  if (result.timed_out) return unexpected("a program alone", "timed_out as well", "Set exactly one of them");
  if (has_error(result.diagnostics))
    return unexpected("no error beside a program", in_words(result.diagnostics),
                      "Give the compiler's remarks the severity they have");
  return {};
}

[[nodiscard]] inline Finding check_wrong_text(Trial& trial) {
  const auto& probe = trial.probe();
  const auto result = trial.compile(probe.does_not_compile);
  if (result.program)
    return unexpected("no program from a text with an error", "one",
                      "Leave CompileResult::program null when the compiler fails");
  if (result.timed_out)
    return unexpected("diagnostics", "timed_out", "A compiler that fails in time has not timed out");
  if (!has_error(result.diagnostics))
    return unexpected("a diagnostic of severity error", in_words(result.diagnostics),
                      "Read the compiler's log; where nothing in it can be read, give it whole as one error");
  for (const auto& diagnostic : result.diagnostics)
    if (diagnostic.severity == Severity::error && diagnostic.line == probe.wrong_line) return {};
  return unexpected("an error in line " + std::to_string(probe.wrong_line), in_words(result.diagnostics),
                    "Diagnostics give 1-based lines of the kernel's own text: subtract what the backend puts "
                    "before it");
}

[[nodiscard]] inline Finding check_missing_entry(Trial& trial) {
  const auto text = trial.probe().vector_add + "//@ launch mtmc_no_such_entry(C, n)\n";
  const auto result = trial.compile(text);
  if (!result.program && has_error(result.diagnostics)) return {};
  if (!result.program)
    return unexpected("an error for an entry that the text lacks", in_words(result.diagnostics),
                      "Look up every entry of CompileOptions::plan after compiling");
  BoundPlan bound(trial.backend(), trial.plan(text, 1000));
  const auto status = trial.backend().run(*result.program, bound.plan(), soon());
  if (status.outcome == RunOutcome::launch_failed) return {};
  return unexpected("an error of the compiler, or launch_failed, for an entry that the text lacks",
                    in_words(status), "Look up every entry of CompileOptions::plan after compiling");
}

/// With a deadline in the past, or `stopped`.
[[nodiscard]] inline Finding check_gives_up(Trial& trial, Deadline deadline, bool stopped) {
  std::stop_source source;
  if (stopped) source.request_stop();
  const auto start = std::chrono::steady_clock::now();
  const auto result = trial.compile(trial.unseen(trial.probe().vector_add), deadline, source.get_token());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  constexpr std::string_view remedy =
      "Ask for stop and deadline before and after the compiler runs, and set timed_out instead of a program";
  if (result.program || !result.timed_out)
    return unexpected("timed_out and no program",
                      result.program ? std::string("a program") : in_words(result.diagnostics), remedy);
  if (taken.count() > prompt_seconds)
    return unexpected("an answer at once", "one after " + std::to_string(taken.count()) + " s", remedy);
  return {};
}

} // namespace detail

/// What `compile` answers, before anything is run.
inline void check_compiler(Trial& trial) {
  trial.check("compile.correct", "a correct text gives a program and no error", {},
              [&] { return detail::check_correct_text(trial); });
  trial.check("compile.wrong", "a wrong text gives no program, and an error in the right line", {},
              [&] { return detail::check_wrong_text(trial); });
  trial.check("compile.missing_entry",
              "a launch of a function that the text lacks is an error, or launch_failed", {"compile.correct"},
              [&] { return detail::check_missing_entry(trial); });
  trial.check("compile.deadline", "a deadline in the past is timed_out, at once", {"compile.correct"}, [&] {
    return detail::check_gives_up(trial, std::chrono::steady_clock::now() - std::chrono::seconds{1}, false);
  });
  trial.check("compile.stop", "a requested stop is timed_out, at once", {"compile.correct"},
              [&] { return detail::check_gives_up(trial, Deadline::max(), true); });
}

} // namespace mtmc::test
