#pragma once
/// A run as a person watches it in a terminal: a line a step, a progress bar while work is under way, a
/// summary.

#include <mtmc/loop/observer.hpp>

#include <cstdio>
#include <memory>

namespace mtmc::inline MTMC_ABI {

/// How `TerminalReport` writes.
struct TerminalReportOptions {
  /// When something is done.
  enum class When { automatic, always, never };
  /// Colours; automatic: on a terminal. (The environment is not asked: a host that honours `NO_COLOR` says
  /// `never`.)
  When colour = When::automatic;
  /// The live line with the progress bar; automatic: on a terminal.
  When progress = When::automatic;
  /// Columns that no line exceeds; 0 = those of the terminal, and no limit where it is none.
  int width = 0;
  /// Characters beyond ASCII for the bar and for separators.
  bool unicode = true;
  /// Whether a line before each step says why the policy chose as it did, and lines before it where the time
  /// of the kernel goes that the step starts from.
  bool explain = false;
  /// Whether the summary has the error that ended a run; a host that prints it itself says no.
  bool errors = true;
};

/// Writes runs to a stream as they go on: for each task what is to be done, a line a step with its action,
/// verdict, time, speed-up over the step's parent with the interval, speed-up so far and tokens, and at the
/// end a summary. On a terminal a live line below says what is under way; without one, plain lines only.
///
///     mtmc::TerminalReport report{stdout};
///     mtmc::Loop loop{..., {.observer = report.observer()}};
///
/// The stream must stay open as long as the observer is used; the report itself may go.
class TerminalReport {
public:
  /// Writes to `stream`, which is not closed.
  explicit TerminalReport(std::FILE* stream, TerminalReportOptions options = {});

  /// The functions to hand to a loop. Several loops may share them, one after the other.
  [[nodiscard]] Observer observer() const;

private:
  class Screen;
  std::shared_ptr<Screen> screen_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/report/terminal_inl.hpp>
#endif
