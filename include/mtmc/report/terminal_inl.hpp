#pragma once
/// Definitions of report/terminal.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/loop/result.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/report/disturbances.hpp>
#include <mtmc/report/terminal.hpp>
#include <mtmc/report/terminal_text.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What is on the screen. Every piece of text goes out in one write, and the live line is only written when
/// it has changed, so that nothing flickers.
class TerminalReport::Screen {
public:
  Screen(std::FILE* stream, const TerminalReportOptions& options) : stream_(stream), options_(options) {
    terminal_ = ::isatty(::fileno(stream)) == 1;
    colour_ = wanted(options.colour);
    live_ = wanted(options.progress);
  }
  ~Screen() {
    clock_ = {}; // ends the thread
    hide();
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Where there is no live line, what may take long is said once.
  void preparing(const RunPreparing& event) {
    const std::lock_guard lock{mutex_};
    if (live_) return;
    say(detail::one_line(detail::preparing_text(event.task.name, event.start_seconds), room(0),
                         options_.unicode) +
        '\n');
  }

  void run_started(const RunStarted& event) {
    const std::lock_guard lock{mutex_};
    phase_ = Phase::deciding;
    gains_.clear();
    std::string title = event.task.name;
    if (!event.task.summary.empty()) title += dot() + event.task.summary;
    title = detail::one_line(title, room(0), options_.unicode);
    const auto name = std::min(event.task.name.size(), title.size());
    std::string text = bold(title.substr(0, name)) + title.substr(name);
    text += '\n';
    std::string facts = event.device.name + ", " + std::to_string(event.device.compute_units) +
                        (event.device.kind == "cpu" ? " cores" : " units") + dot() +
                        std::to_string(event.task.sizes.size()) +
                        (event.task.sizes.size() == 1 ? " size" : " sizes");
    if (event.start.seconds > 0) facts += dot() + "start kernel " + seconds_text(event.start.seconds);
    facts +=
        dot() + "at most " + std::to_string(event.max_steps) + (event.max_steps == 1 ? " step" : " steps");
    if (event.resumed) facts += dot() + "an earlier run is taken up";
    text += dim(detail::one_line(facts, room(0), options_.unicode)) + "\n\n";
    say(text);
  }

  void progress(const Progress& event) {
    const std::lock_guard lock{mutex_};
    if (event.phase != phase_ || event.step != progress_.step) began_ = Clock::now();
    phase_ = event.phase;
    progress_ = event;
    if (event.phase == Phase::preparing) action_.clear();
    watch();
    show();
  }

  void step_started(const StepStarted& event) {
    const std::lock_guard lock{mutex_};
    if (event.parent_index == 0) actions_ = 0;
    actions_ += event.chosen.size();
    if (!event.chosen.empty())
      action_ = actions_ == 1 ? event.chosen.front().text() : std::to_string(actions_) + " actions";
    if (options_.explain) say(explanation(event));
  }

  void step_finished(const StepFinished& event) {
    const std::lock_guard lock{mutex_};
    std::string text;
    for (const auto& outcome : event.outcomes) {
      if (outcome.new_best) gains_.push_back(event.step);
      text += step_line(event, outcome, &outcome == &event.outcomes.front());
    }
    say(text);
  }

  void finished(const Result& result) {
    const std::lock_guard lock{mutex_};
    std::string text = "\n";
    if (result.improved()) {
      text += label("best") + bold(green(detail::interval_text(result.speed_up)));
      if (result.start_seconds() > 0 && result.evaluation.seconds > 0)
        text += "  " + seconds_text(result.start_seconds()) + (options_.unicode ? " → " : " -> ") +
                seconds_text(result.evaluation.seconds);
      const std::string how =
          result.measured ? "  against the start kernel, at the end" : "  the product of the steps";
      if (room(0) == 0 || detail::columns_of(text) + how.size() <= room(0)) text += dim(how);
      text += '\n' + label("right at") + sizes_text(result) + '\n';
      if (const auto& hash = result.evaluation.binary_hash; !hash.empty())
        text += label("binary") +
                detail::one_line("SHA-256 " + hash, room(label_width + 2), options_.unicode) + '\n';
      const auto& record = result.evaluation.environment;
      if (const auto met = record.find(environment_key::branches); met != record.end())
        text +=
            label("branches") + detail::one_line(met->second, room(label_width + 2), options_.unicode) + '\n';
      if (const auto flaw = record.find(environment_key::flaw); flaw != record.end())
        text += label("but") + detail::one_line(flaw->second, room(label_width + 2), options_.unicode) + '\n';
    } else {
      text += label("best") + bold("1.00x") + dim("  the start kernel: nothing faster was proven") + '\n';
    }
    if (const auto dropped = unconfirmed_text(result); !dropped.empty())
      text += label("dropped") + detail::one_line(dropped, room(label_width + 2), options_.unicode) + '\n';
    if (const auto disturbed = detail::disturbances_text(result); !disturbed.empty())
      text +=
          label("disturbed") + detail::one_line(disturbed, room(label_width + 2), options_.unicode) + '\n';
    text += label("ended by") + ending_text(result) + '\n';
    if (result.usage.tokens() > 0 || result.usage.cost > 0)
      text += label("spent") + spent_text(result.usage) + '\n' + account_lines(result);
    if (!result.folder.empty()) text += label("kept in") + result.folder + '\n';
    if (result.error && options_.errors) text += label("error") + red(result.error->what()) + '\n';
    live_text_.clear();
    phase_ = Phase::preparing;
    say(text + '\n', true);
  }

  void failed() {
    const std::lock_guard lock{mutex_};
    hide();
  }

private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool wanted(TerminalReportOptions::When when) const {
    return when == TerminalReportOptions::When::always ||
           (when == TerminalReportOptions::When::automatic && terminal_);
  }

  // ---- lines

  /// Where the time goes, and why the policy chose what it chose.
  [[nodiscard]] std::string explanation(const StepStarted& event) const {
    const std::string indent = "     ";
    std::string text;
    std::istringstream launches(describe_launches(event.seen));
    const auto add = [&](const std::string& line) {
      text += dim(indent + detail::one_line(line, room(indent.size()), options_.unicode)) + '\n';
    };
    for (std::string line; std::getline(launches, line);) add(line.substr(2)); // all are indented
    if (!event.distribution.rationale.empty()) add("because " + event.distribution.rationale);
    return text;
  }

  /// One step: number, action, verdict, and figures or the reason. What has no room is left out, the last
  /// first.
  [[nodiscard]] std::string step_line(const StepFinished& event, const StepOutcome& outcome,
                                      bool first) const {
    const auto& entry = outcome.entry;
    const bool judged_right = entry.verdict == Verdict::correct;
    const bool wrong = entry.verdict && !judged_right;
    const bool counted = event.usage.tokens() > 0;
    // Number, verdict and figures take so many columns; the action gets the rest, or a line of its own.
    const std::size_t others = counted ? 76 : 64;
    const auto width = room(0);
    const auto action_width =
        width == 0 ? std::size_t{68} : std::min<std::size_t>(width > others ? width - others : 0, 72);
    auto verdict = detail::padded(detail::verdict_text(entry), 13);
    verdict = outcome.new_best ? green(verdict) : wrong ? red(verdict) : entry.kept ? verdict : dim(verdict);
    const auto number = (first ? detail::padded(std::to_string(event.step + 1), 3, true) : "   ") + "  ";
    const auto action = outcome.action.text();
    constexpr std::size_t least_action_width = 36;
    std::string above, line;
    if (width > 0 && action_width < least_action_width) {
      above = number + detail::one_line(action, room(6), options_.unicode) + '\n';
      line = "     " + verdict + "  ";
    } else {
      line = number +
             detail::padded(detail::one_line(action, width == 0 ? 0 : action_width, options_.unicode),
                            action_width) +
             "  " + verdict + "  ";
    }
    const auto add = [&line, width](const std::string& text) {
      const bool fits = width == 0 || detail::columns_of(line) + detail::columns_of(text) <= width;
      if (fits) line += text;
      return fits;
    };
    constexpr std::size_t time_width = 8, interval_width = 20, best_width = 7, gap = 2;
    constexpr std::size_t figures = time_width + gap + interval_width + gap + best_width;
    if (judged_right) {
      const double seconds = outcome.evaluation != nullptr ? outcome.evaluation->seconds : 0;
      add(detail::padded(seconds > 0 ? seconds_text(seconds) : "", time_width, true));
      const auto ratio = entry.speed_up ? detail::interval_text(*entry.speed_up) : std::string();
      if (!add("  " + detail::padded(ratio, interval_width))) add("  " + ratio.substr(0, ratio.find(' ')));
      const auto best = outcome.new_best ? detail::ratio_text(event.best.value) + "x" : std::string();
      add("  " + bold(detail::padded(best, best_width)));
    } else {
      const auto used = detail::columns_of(line) + (counted ? others - 64 : 0);
      const auto message = detail::one_line(entry.message,
                                            width == 0         ? 0
                                            : width > used + 8 ? width - used
                                                               : 8,
                                            options_.unicode);
      add(dim(detail::padded(message, figures)));
    }
    if (outcome.usage.tokens() > 0) add(dim("  " + detail::count_text(outcome.usage.tokens()) + " tokens"));
    // Blanks at the end may stand before an escape sequence.
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return above + line + '\n';
  }

  [[nodiscard]] std::string sizes_text(const Result& result) const {
    const auto sizes = result.verified_sizes();
    std::string text = std::to_string(sizes.size()) + (sizes.size() == 1 ? " size" : " sizes");
    std::string list;
    for (const auto& size : sizes) list += (list.empty() ? "" : "; ") + to_string(size);
    if (!list.empty()) text += ": " + list;
    return detail::one_line(text, room(label_width + 2), options_.unicode);
  }

  /// "step 1's gain was not confirmed ...": what was faster on the way, and was not when it was compared with
  /// the start kernel at the end. Empty if there is no such step.
  [[nodiscard]] std::string unconfirmed_text(const Result& result) const {
    std::vector<int> steps;
    for (const int step : gains_)
      if (!result.improved() || (result.measured && step > step_of_best(result))) steps.push_back(step + 1);
    if (steps.empty()) return {};
    const char* const rest = " not confirmed by the comparison with the start kernel at the end";
    if (steps.size() == 1) return "step " + std::to_string(steps.front()) + "'s gain was" + rest;
    std::string list;
    for (const int step : steps)
      list += (list.empty() ? "" : step == steps.back() ? " and " : ", ") + std::to_string(step);
    return "the gains of steps " + list + " were" + rest;
  }

  /// 0-based; the step after all others where it cannot be told.
  [[nodiscard]] int step_of_best(const Result& result) const {
    for (const auto& step : result.trajectory)
      if (step.draft.kernel && step.draft.kernel->source == result.best.source &&
          std::find(gains_.begin(), gains_.end(), step.step) != gains_.end())
        return step.step;
    return result.steps;
  }

  [[nodiscard]] static std::string ending_text(const Result& result) {
    std::string text = detail::spelled_out(to_string(result.stop_reason));
    switch (result.stop_reason) {
    case StopReason::stop_action:
      text = "the policy";
      break;
    case StopReason::step_limit:
      text = "the step limit";
      break;
    case StopReason::time:
    case StopReason::tokens:
    case StopReason::cost:
      text = "the budget: " + text;
      break;
    case StopReason::no_legal_action:
      text = "nothing left to try";
      break;
    case StopReason::cancelled:
      text = "the user";
      break;
    case StopReason::waiting_for_answers:
      text = "answers that are still to come: resume when they are there";
      break;
    case StopReason::failed:
      text = "an error";
      break;
    case StopReason::patience:
      text = "patience: no new best for a while";
      break;
    }
    return text + ", after " + std::to_string(result.steps) + (result.steps == 1 ? " step" : " steps") +
           " and " + detail::duration_for_people(result.seconds);
  }

  [[nodiscard]] static std::string spent_text(const Usage& usage) {
    std::string text = detail::count_text(usage.tokens()) + " tokens";
    if (usage.cached_tokens > 0) text += ", " + detail::count_text(usage.cached_tokens) + " of them cached";
    if (usage.cost > 0) {
      char cost[48];
      std::snprintf(cost, sizeof cost, ", cost %.3g", usage.cost);
      text += cost;
    }
    return text;
  }

  /// "gained    step 2, 1.84x for 21.3k tokens: rewriting of ...": a line for each action that led to a new
  /// best kernel and what the others cost together.
  [[nodiscard]] std::string account_lines(const Result& result) const {
    std::vector<const StepAccount*> gained;
    std::int64_t idle_tokens = 0;
    for (const auto& one : result.account) {
      if (one.gain > 1)
        gained.push_back(&one);
      else
        idle_tokens += one.usage.tokens();
    }
    std::string lines;
    const auto add = [&](const std::string& text) {
      lines += label(lines.empty() ? "gained" : "") +
               detail::one_line(text, room(label_width + 2), options_.unicode) + '\n';
    };
    for (const auto* one : gained)
      add("step " + std::to_string(one->step + 1) + ", " + detail::ratio_text(one->gain) + "x for " +
          detail::count_text(one->usage.tokens()) + " tokens: " + one->action_text);
    if (idle_tokens > 0)
      add("nothing for " + detail::count_text(idle_tokens) + " tokens of all other actions");
    return lines;
  }

  // ---- the live line

  /// Redraws the live line when the seconds it shows have changed. Called with the lock held.
  void watch() {
    if (!live_ || clock_.joinable()) return;
    clock_ = std::jthread([this](const std::stop_token& stop) {
      std::unique_lock lock{mutex_};
      while (!stop.stop_requested()) {
        tick_.wait(lock, stop, [this] { return !live_text_.empty(); });
        tick_.wait_for(lock, stop, std::chrono::milliseconds(250), [] { return false; });
        if (!live_text_.empty()) show();
      }
    });
  }

  [[nodiscard]] std::string live_text() const {
    using Seconds = std::chrono::duration<double>;
    constexpr int cells = 16;
    std::string what;
    switch (phase_) {
    case Phase::preparing:
      what = "preparing: the start kernel is compiled, checked and timed";
      break;
    case Phase::deciding:
      what = "choosing an action";
      break;
    case Phase::drafting:
      what = "writing " + action_;
      break;
    case Phase::evaluating:
      what = "judging " + action_;
      break;
    case Phase::promoting:
      what = "second look at " + action_;
      break;
    case Phase::closing:
      what = "comparing the best with the start kernel";
      break;
    }
    const bool counted = progress_.total > 1;
    std::string count;
    if (counted) count = "  " + std::to_string(progress_.done) + " of " + std::to_string(progress_.total);
    const auto here = Seconds(Clock::now() - began_).count();
    if (here >= 2) count += "  " + std::to_string(static_cast<long long>(here)) + " s";
    // Finished steps fill the bar, and the work within a step its part of it.
    double done = phase_ == Phase::preparing ? 0 : progress_.step;
    if (phase_ == Phase::evaluating || phase_ == Phase::promoting) done += 0.5;
    if (counted && (phase_ == Phase::drafting || phase_ == Phase::evaluating))
      done += 0.5 * progress_.done / progress_.total;
    if (phase_ == Phase::closing) done = progress_.max_steps;
    const int filled = progress_.max_steps > 0
                           ? std::clamp(static_cast<int>(cells * done / progress_.max_steps), 0, cells)
                           : cells;
    std::string bar;
    for (int i = 0; i < cells; ++i)
      bar += options_.unicode ? (i < filled ? "━" : "─") : (i < filled ? "=" : "-");
    const auto used = cells + 4 + detail::columns_of(count);
    const auto width = std::max<std::size_t>(room(1), used + 10);
    return "  " + green(bar) + "  " + detail::one_line(what, width - used, options_.unicode) + dim(count);
  }

  void show() {
    if (!live_) return;
    auto text = live_text();
    if (text == live_text_) return;
    live_text_ = std::move(text);
    tick_.notify_one();
    write("\r" + live_text_ + erase_rest);
  }
  void hide() {
    if (!live_text_.empty()) write(std::string("\r") + erase_rest);
    live_text_.clear();
  }

  /// Writes lines above the live line.
  void say(const std::string& text, bool last = false) {
    const bool under_way = !live_text_.empty();
    write((under_way || (live_ && last) ? std::string("\r") + erase_rest : std::string()) + text +
          (under_way ? live_text_ + erase_rest : std::string()));
  }

  void write(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stream_);
    std::fflush(stream_);
  }

  // ---- columns and colours

  /// Columns of a line less some; 0 = any number.
  [[nodiscard]] std::size_t room(std::size_t less) const {
    int columns = options_.width;
    winsize size{};
    if (columns == 0 && terminal_ && ::ioctl(::fileno(stream_), TIOCGWINSZ, &size) == 0)
      columns = size.ws_col;
    if (columns == 0 && live_) columns = 80;
    const auto width = static_cast<std::size_t>(columns);
    return width == 0 ? 0 : width > less ? width - less : 1;
  }
  static constexpr std::size_t label_width = 10;
  [[nodiscard]] std::string label(const char* name) const {
    return "  " + dim(detail::padded(name, label_width));
  }
  [[nodiscard]] std::string dot() const { return options_.unicode ? " · " : " - "; }
  [[nodiscard]] std::string styled(const char* code, const std::string& text) const {
    return colour_ && !text.empty() ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }
  [[nodiscard]] std::string bold(const std::string& text) const { return styled("1", text); }
  [[nodiscard]] std::string dim(const std::string& text) const { return styled("2", text); }
  [[nodiscard]] std::string green(const std::string& text) const { return styled("32", text); }
  [[nodiscard]] std::string red(const std::string& text) const { return styled("31", text); }

  static constexpr const char* erase_rest = "\033[K";

  std::FILE* stream_;
  TerminalReportOptions options_;
  bool terminal_ = false;
  bool colour_ = false;
  bool live_ = false;
  std::mutex mutex_;
  std::condition_variable_any tick_;
  Phase phase_ = Phase::preparing;
  Progress progress_{};
  Clock::time_point began_ = Clock::now();
  /// What the present step tries: one action's text, or how many there are.
  std::string action_;
  std::size_t actions_ = 0;
  /// Steps of this run, 0-based, that had a new best kernel.
  std::vector<int> gains_;
  /// What stands on the live line; empty if there is none.
  std::string live_text_;
  std::jthread clock_;
};

MTMC_INLINE TerminalReport::TerminalReport(std::FILE* stream, TerminalReportOptions options)
    : screen_(std::make_shared<Screen>(stream, options)) {}

MTMC_INLINE Observer TerminalReport::observer() const {
  Observer observer;
  observer.preparing = [screen = screen_](const RunPreparing& event) { screen->preparing(event); };
  observer.run_started = [screen = screen_](const RunStarted& event) { screen->run_started(event); };
  observer.progress = [screen = screen_](const Progress& event) { screen->progress(event); };
  observer.step_started = [screen = screen_](const StepStarted& event) { screen->step_started(event); };
  observer.step_finished = [screen = screen_](const StepFinished& event) { screen->step_finished(event); };
  observer.finished = [screen = screen_](const Result& result) { screen->finished(result); };
  observer.failed = [screen = screen_](const Error&) { screen->failed(); };
  return observer;
}

} // namespace mtmc
