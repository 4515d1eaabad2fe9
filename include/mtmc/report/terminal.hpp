#pragma once
/// A run as a person watches it in a terminal: a line a step, a progress bar while work is under way, a
/// summary.

#include <mtmc/loop/observer.hpp>

#include <cstdio>
#include <memory>

namespace mtmc {

/// How `TerminalReport` writes.
struct TerminalReportOptions {
  enum class When { automatic, always, never };
  /// Colours; automatic: on a terminal.
  When colour = When::automatic;
  /// The live progress bar; automatic: on a terminal.
  When progress = When::automatic;
  /// Columns; 0 = those of the terminal, or 100 where it is none.
  int width = 0;
};

/// Writes a run to a stream as it goes on. Without a terminal behind the stream, plain lines.
///
///     mtmc::TerminalReport report{stdout};
///     mtmc::Loop loop{..., {.observer = report.observer()}};
///
/// The stream must stay open as long as the observer is used; the report itself may go.
class TerminalReport {
public:
  explicit TerminalReport(std::FILE* stream, TerminalReportOptions options = {});

  /// The functions to hand to a loop. Several loops may share them, one after the other.
  [[nodiscard]] Observer observer() const;

private:
  class Screen;
  std::shared_ptr<Screen> screen_;
};

} // namespace mtmc

#ifndef MTMC_COMPILED
#include <mtmc/report/terminal_inl.hpp>
#endif
