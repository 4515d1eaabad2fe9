#pragma once
/// Definitions of report/terminal.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/describe.hpp>
#include <mtmc/loop/result.hpp>
#include <mtmc/report/terminal.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace mtmc {

/// What is on the screen.
class TerminalReport::Screen {
public:
  Screen(std::FILE* stream, const TerminalReportOptions& options) : stream_(stream), options_(options) {
    const bool terminal = ::isatty(::fileno(stream)) == 1;
    const auto wanted = [terminal](TerminalReportOptions::When when) {
      return when == TerminalReportOptions::When::always ||
             (when == TerminalReportOptions::When::automatic && terminal);
    };
    colour_ = wanted(options.colour);
    live_ = wanted(options.progress);
  }

  void run_started(const RunStarted& event) {
    clear();
    print("%s", bold(event.task.name).c_str());
    if (!event.task.summary.empty()) print(": %s", event.task.summary.c_str());
    print("\n%s, %d cores; the start kernel takes %s a call%s\n", event.device.name.c_str(),
          event.device.compute_units, seconds_text(event.start.seconds).c_str(),
          event.resumed ? "; an earlier run is taken up" : "");
    std::fflush(stream_);
  }

  void step_started(const StepStarted& event) {
    action_ = event.chosen.empty() ? std::string() : event.chosen.front().text();
  }

  void progress(const Progress& event) {
    if (!live_) return;
    constexpr int cells = 20;
    const int filled = event.max_steps > 0 ? std::min(cells, cells * event.step / event.max_steps) : 0;
    std::string bar;
    for (int i = 0; i < cells; ++i) bar += i < filled ? "█" : "░";
    std::string text = std::string(to_string(event.phase));
    if (event.total > 1) text += ' ' + std::to_string(event.done) + " of " + std::to_string(event.total);
    if (!action_.empty() && event.phase != Phase::closing && event.phase != Phase::deciding)
      text += ": " + action_;
    // Everything before the text takes 36 columns.
    text = shortened(text, static_cast<std::size_t>(std::max(10, width() - 36)));
    clear();
    print("  %s step %2d of %2d  %s", bar.c_str(), std::min(event.step + 1, std::max(1, event.max_steps)),
          event.max_steps, dim(text).c_str());
    shown_ = true;
    std::fflush(stream_);
  }

  void step_finished(const StepFinished& event) {
    clear();
    for (const auto& outcome : event.outcomes) print_outcome(event.step, outcome);
    std::fflush(stream_);
  }

  void finished(const Result& result) {
    clear();
    action_.clear();
    if (result.error) print("%s %s\n", red("error:").c_str(), result.error->what());
    if (result.improved()) {
      print("%s: %s -> %s, %s", bold(speed_up_text(result.speed_up)).c_str(),
            seconds_text(result.start.seconds).c_str(), seconds_text(result.evaluation.seconds).c_str(),
            result.measured ? "measured against the start kernel"
                            : "product of the steps, not measured at the end");
      const auto sizes = result.verified_sizes();
      if (!sizes.empty()) print(", right at %zu sizes", sizes.size());
      print("\n");
    } else {
      print("%s: no faster kernel was proven\n", bold("1.0x").c_str());
    }
    std::string spent = std::to_string(result.steps) + (result.steps == 1 ? " step, " : " steps, ") +
                        seconds_text(result.seconds);
    if (result.usage.tokens() > 0) spent += ", " + std::to_string(result.usage.tokens()) + " tokens";
    if (result.usage.cost > 0) {
      char cost[32];
      std::snprintf(cost, sizeof cost, ", cost %.4g", result.usage.cost);
      spent += cost;
    }
    print("stopped by %s after %s\n", readable(to_string(result.stop_reason)).c_str(), spent.c_str());
    if (!result.folder.empty()) print("journal and kernels: %s\n", result.folder.c_str());
    print("\n");
    std::fflush(stream_);
  }

private:
  void print_outcome(int step, const StepOutcome& outcome) {
    const auto& entry = outcome.entry;
    std::string verdict, figures;
    if (entry.draft_failure != DraftFailure::none) {
      verdict = readable(to_string(entry.draft_failure));
    } else if (entry.verdict && *entry.verdict != Verdict::correct) {
      verdict = readable(to_string(*entry.verdict));
    } else if (entry.comparison == Comparison::undecided) {
      verdict = "no change";
    } else {
      verdict = readable(to_string(entry.comparison));
    }
    if (outcome.evaluation != nullptr && outcome.evaluation->seconds > 0)
      figures = seconds_text(outcome.evaluation->seconds);
    if (entry.speed_up) figures += "  " + speed_up_text(*entry.speed_up);
    if (outcome.usage.tokens() > 0) figures += "  " + std::to_string(outcome.usage.tokens()) + " tokens";
    if (outcome.new_best) figures += "  " + green("best");

    // Step, verdict and figures take about 50 columns; the action gets the rest.
    const auto room = static_cast<std::size_t>(std::clamp(width() - 50, 24, 72));
    auto action = shortened(outcome.action.text(), room);
    action.resize(std::max(action.size(), room), ' ');
    verdict.resize(std::max<std::size_t>(verdict.size(), 10), ' ');
    const bool good = entry.comparison == Comparison::faster && entry.draft_failure == DraftFailure::none;
    const bool bad = entry.verdict && *entry.verdict != Verdict::correct;
    print(" %2d  %s  %s %s\n", step + 1, action.c_str(),
          (good  ? green(verdict)
           : bad ? red(verdict)
                 : dim(verdict))
              .c_str(),
          figures.c_str());
    if (!entry.message.empty() && (bad || entry.draft_failure != DraftFailure::none))
      print("     %s\n",
            dim(shortened(entry.message, static_cast<std::size_t>(std::max(20, width() - 6)))).c_str());
  }

  /// Takes the live line away.
  void clear() {
    if (shown_) print("\r\033[K");
    shown_ = false;
  }

  [[nodiscard]] int width() const {
    if (options_.width > 0) return options_.width;
    winsize size{};
    if (::ioctl(::fileno(stream_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return 100;
  }

  [[nodiscard]] static std::string shortened(std::string_view text, std::size_t room) {
    std::string line(text.substr(0, text.find('\n')));
    if (line.size() > room) {
      line.resize(room - 3);
      line += "...";
    }
    return line;
  }
  [[nodiscard]] static std::string readable(std::string_view name) {
    std::string text(name);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
  }
  [[nodiscard]] std::string styled(const char* code, const std::string& text) const {
    return colour_ ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }
  [[nodiscard]] std::string bold(const std::string& text) const { return styled("1", text); }
  [[nodiscard]] std::string dim(const std::string& text) const { return styled("2", text); }
  [[nodiscard]] std::string green(const std::string& text) const { return styled("32", text); }
  [[nodiscard]] std::string red(const std::string& text) const { return styled("31", text); }

  template <class... Arguments> void print(const char* format, const Arguments&... arguments) {
    if constexpr (sizeof...(arguments) == 0)
      std::fputs(format, stream_);
    else
      std::fprintf(stream_, format, arguments...); // NOLINT(cppcoreguidelines-pro-type-vararg)
  }

  std::FILE* stream_;
  TerminalReportOptions options_;
  bool colour_ = false;
  bool live_ = false;
  bool shown_ = false;
  std::string action_;
};

MTMC_INLINE TerminalReport::TerminalReport(std::FILE* stream, TerminalReportOptions options)
    : screen_(std::make_shared<Screen>(stream, options)) {}

MTMC_INLINE Observer TerminalReport::observer() const {
  Observer observer;
  observer.run_started = [screen = screen_](const RunStarted& event) { screen->run_started(event); };
  observer.progress = [screen = screen_](const Progress& event) { screen->progress(event); };
  observer.step_started = [screen = screen_](const StepStarted& event) { screen->step_started(event); };
  observer.step_finished = [screen = screen_](const StepFinished& event) { screen->step_finished(event); };
  observer.finished = [screen = screen_](const Result& result) { screen->finished(result); };
  return observer;
}

} // namespace mtmc
