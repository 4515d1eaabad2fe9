#pragma once
/// Definitions of bench/benchmark_metrics.hpp.

#include <mtmc/bench/benchmark_metrics.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/support/bootstrap.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A problem as metrics see it.
struct CountedProblem {
  bool called = false;
  bool correct = false;
  /// 0: it has none.
  double speed_up = 0;
  double library_share = 0;
};

[[nodiscard]] inline double speed_up_of(const BenchmarkOutcome& outcome, const std::string& baseline) {
  const auto found = outcome.baselines.find(baseline);
  if (!outcome.correct || found == outcome.baselines.end()) return 0;
  const double ratio = found->second / outcome.seconds;
  return outcome.seconds > 0 && found->second > 0 && std::isfinite(ratio) ? ratio : 0;
}

/// All figures of the drawn problems, in the order of `BenchmarkMetrics`: both accuracies, fast_p of each
/// threshold, mean, geometric mean, median.
[[nodiscard]] inline std::vector<double> figures_of(std::span<const CountedProblem> problems,
                                                    std::span<const std::size_t> drawn,
                                                    std::span<const double> thresholds) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN(); // of speed-ups that there are not
  const auto count = static_cast<double>(drawn.size());
  const auto part = [&](const auto& holds) {
    return static_cast<double>(std::count_if(drawn.begin(), drawn.end(),
                                             [&](std::size_t one) { return holds(problems[one]); })) /
           count;
  };
  std::vector<double> figures{part([](const CountedProblem& one) { return one.called; }),
                              part([](const CountedProblem& one) { return one.correct; })};
  for (const double threshold : thresholds)
    figures.push_back(part([&](const CountedProblem& one) { return one.speed_up > threshold; }));
  std::vector<double> speed_ups;
  double sum = 0;
  double logarithms = 0;
  for (const auto one : drawn)
    if (const double value = problems[one].speed_up; value > 0) {
      speed_ups.push_back(value);
      sum += value;
      logarithms += std::log(value);
    }
  std::sort(speed_ups.begin(), speed_ups.end());
  const auto timed = speed_ups.size();
  figures.push_back(sum / count);
  figures.push_back(timed == 0 ? none : std::exp(logarithms / static_cast<double>(timed)));
  figures.push_back(timed == 0 ? none : (speed_ups[(timed - 1) / 2] + speed_ups[timed / 2]) / 2);
  return figures;
}

/// "0.93 [0.88, 0.97]"
[[nodiscard]] inline std::string text_of_figure(const BenchmarkFigure& figure, bool interval) {
  char text[96];
  if (interval)
    (void)std::snprintf(text, sizeof text, "%.2f [%.2f, %.2f]", figure.value, figure.low, figure.high);
  else
    (void)std::snprintf(text, sizeof text, "%.2f", figure.value);
  return text;
}

/// What a cell of a table may hold: no bars and no line ends.
[[nodiscard]] inline std::string cell_of(std::string text) {
  for (char& c : text)
    if (c == '|' || static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

[[nodiscard]] inline std::string table_row(const std::string& name, const BenchmarkMetrics& metrics,
                                           bool intervals) {
  std::string row = "| " + cell_of(name) + " | " + std::to_string(metrics.problems) + " | " +
                    text_of_figure(metrics.call_accuracy, false) + " | " +
                    text_of_figure(metrics.execute_accuracy, intervals);
  for (const auto& [threshold, figure] : metrics.fast) row += " | " + text_of_figure(figure, false);
  for (const auto* const figure : {&metrics.mean, &metrics.geometric_mean, &metrics.median})
    row += " | " + text_of_figure(*figure, intervals);
  return row + " | " + text_of_figure({metrics.library_share, 0, 0}, false) + " |\n";
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE BenchmarkMetrics benchmark_metrics(std::span<const BenchmarkResult> results,
                                               const BenchmarkMetricsOptions& options) {
  BenchmarkMetrics metrics;
  std::vector<detail::CountedProblem> problems;
  double library = 0;
  for (const auto& result : results) {
    if (!result.skipped.empty()) {
      ++metrics.skipped;
      continue;
    }
    const auto found = result.rules.find(options.rules);
    if (found == result.rules.end() || (!result.flaw.empty() && !options.with_flawed)) continue;
    const auto& outcome = found->second;
    const double speed_up = detail::speed_up_of(outcome, options.baseline);
    problems.push_back({outcome.called, outcome.correct, speed_up, outcome.library_share});
    metrics.flawed += result.flaw.empty() ? 0 : 1;
    metrics.timed += speed_up > 0 ? 1 : 0;
    library += speed_up > 0 ? outcome.library_share : 0;
  }
  metrics.problems = problems.size();
  if (problems.empty()) return metrics;
  if (metrics.timed > 0) metrics.library_share = library / static_cast<double>(metrics.timed);
  std::vector<std::size_t> all(problems.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto figures_of = [&](std::span<const std::size_t> drawn) {
    return detail::figures_of(problems, drawn, options.thresholds);
  };
  const auto values = figures_of(all);
  const auto ends = detail::bootstrap_intervals(problems.size(), options.draws, options.confidence,
                                                PhiloxEngine{options.seed, 5}, figures_of);
  const auto figure = [&](std::size_t number) {
    if (!std::isfinite(values[number])) return BenchmarkFigure{};
    return ends.empty() ? BenchmarkFigure{values[number], values[number], values[number]}
                        : BenchmarkFigure{values[number], ends[number].first, ends[number].second};
  };
  metrics.call_accuracy = figure(0);
  metrics.execute_accuracy = figure(1);
  std::size_t next = 2;
  for (const double threshold : options.thresholds) metrics.fast.emplace_back(threshold, figure(next++));
  metrics.mean = figure(next++);
  metrics.geometric_mean = figure(next++);
  metrics.median = figure(next);
  return metrics;
}

MTMC_INLINE std::string benchmark_table(std::span<const BenchmarkResult> results,
                                        const BenchmarkMetricsOptions& options) {
  std::set<std::string> rules;
  std::set<std::string> baselines;
  std::set<std::string> levels;
  bool any_flaw = false;
  for (const auto& result : results) {
    levels.insert(result.level);
    any_flaw = any_flaw || !result.flaw.empty();
    for (const auto& [name, outcome] : result.rules) {
      rules.insert(name);
      for (const auto& [baseline, seconds] : outcome.baselines) baselines.insert(baseline);
    }
  }
  if (baselines.empty()) baselines.insert(options.baseline);
  std::string text;
  for (const auto& rule : rules)
    for (const auto& baseline : baselines) {
      text += "**Rules: " + rule + ", over " + baseline + "**\n\n| problems of | n | called | right";
      std::string line = "|---|---|---|---";
      for (const double threshold : options.thresholds) {
        char head[48];
        (void)std::snprintf(head, sizeof head, " | over %gx", threshold);
        text += head;
        line += "|---";
      }
      text += " | mean, failures as 0 | geometric mean | median | library |\n" + line + "|---|---|---|---|\n";
      for (const bool with_flawed : {true, false}) {
        if (!with_flawed && !any_flaw) continue;
        auto how = options;
        how.rules = rule;
        how.baseline = baseline;
        how.with_flawed = with_flawed;
        const std::string suffix = with_flawed ? "" : " without flawed ones";
        for (const auto& level : levels) {
          if (levels.size() < 2) continue;
          std::vector<BenchmarkResult> part;
          for (const auto& result : results)
            if (result.level == level) part.push_back(result);
          text += detail::table_row((level.empty() ? "no level" : "level " + level) + suffix,
                                    benchmark_metrics(part, how), options.draws > 0);
        }
        text += detail::table_row("all" + suffix, benchmark_metrics(results, how), options.draws > 0);
      }
      text += '\n';
    }
  const auto list = [&](const char* title, const auto& reason_of) {
    std::string lines;
    for (const auto& result : results)
      if (const std::string& reason = reason_of(result); !reason.empty())
        lines += "- " + result.suite + (result.level.empty() ? " " : " level " + result.level + ' ') +
                 result.problem + ": " + detail::cell_of(reason) + '\n';
    if (!lines.empty()) text += std::string(title) + "\n\n" + lines + '\n';
  };
  list("Skipped:", [](const BenchmarkResult& result) -> const std::string& { return result.skipped; });
  list("Flawed:", [](const BenchmarkResult& result) -> const std::string& { return result.flaw; });
  const std::string none;
  for (const auto& rule : rules) {
    const auto title = "Not right by the " + rule + " rules:";
    list(title.c_str(), [&](const BenchmarkResult& result) -> const std::string& {
      const auto found = result.rules.find(rule);
      return found == result.rules.end() || found->second.correct ? none : found->second.reason;
    });
  }
  return text;
}

} // namespace mtmc
