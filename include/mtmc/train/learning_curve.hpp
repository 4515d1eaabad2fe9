#pragma once
/// The course of trainings as a picture: SVG that stands alone and follows the reader's light or dark theme.

#include <mtmc/support/svg_drawing.hpp>
#include <mtmc/train/ppo.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How a learning curve is drawn.
struct LearningCurveOptions {
  std::string title = "Training"; ///< above the picture
  std::optional<double> best{};   ///< a line at that return, finite, such as the mean of V* over the trees
  std::string best_name = "best"; ///< what stands at that line
  /// Updates that a point of a smoothed curve is the mean of, half of them before it and half behind; 0: a
  /// twentieth of all, at least 3.
  std::size_t smoothing = 0;
};

namespace detail {

/// A count of steps: "20k", "1.5M".
[[nodiscard]] inline std::string short_count(double value) {
  if (value >= 1e6) return short_number(value / 1e6, 2) + "M";
  if (value >= 1e3) return short_number(value / 1e3, 1) + "k";
  return short_number(value, 0);
}

/// Places of an axis: its ends, and the distance of its marks.
struct CurveAxis {
  double low = 0, high = 1, step = 0.5;

  /// Round marks, about `marks` of them, that enclose all values.
  [[nodiscard]] static CurveAxis around(double low, double high, int marks) {
    if (!std::isfinite(low) || !std::isfinite(high)) low = high = 0;
    if (!(high - low > 1e-9)) {
      low -= 0.5;
      high += 0.5;
    }
    const double rough = (high - low) / marks;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0})
      if (factor * power >= rough) step = factor * power;
    return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step, step};
  }
  [[nodiscard]] int digits() const {
    return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  }
};

/// Means of the numbers around each; what is no number is left out.
[[nodiscard]] inline std::vector<double> smoothed(std::span<const double> values, std::size_t window) {
  std::vector<double> means(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t first = i - std::min(i, window / 2), end = std::min(i + window / 2 + 1, values.size());
    double sum = 0, count = 0;
    for (std::size_t k = first; k < end; ++k)
      if (std::isfinite(values[k])) {
        sum += values[k];
        ++count;
      }
    means[i] = count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
  }
  return means;
}

/// One number an update, of each run.
struct CurveSeries {
  std::vector<std::vector<double>> raw{}, smooth{}; ///< a list a run
  std::vector<double> mean{}, low{}, high{};        ///< of the smoothed ones over the runs
};

[[nodiscard]] inline CurveSeries curve_series(std::vector<std::vector<double>> raw, std::size_t window) {
  CurveSeries series{std::move(raw)};
  for (const auto& run : series.raw) series.smooth.push_back(smoothed(run, window));
  for (std::size_t i = 0; i < series.raw.front().size(); ++i) {
    double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
    for (const auto& run : series.smooth) {
      sum += run[i];
      low = std::min(low, run[i]);
      high = std::max(high, run[i]);
    }
    series.mean.push_back(sum / static_cast<double>(series.smooth.size()));
    series.low.push_back(low);
    series.high.push_back(high);
  }
  return series;
}

/// The SVG as it grows.
class CurveDrawing {
public:
  static constexpr double width = 760, left = 64, right = 24, panel = 110, main_panel = 230, gap = 56,
                          top = 96;

  CurveDrawing(std::vector<double> steps, const LearningCurveOptions& options, std::string_view subtitle)
      : steps_(std::move(steps)), across_(CurveAxis::around(0, steps_.back(), 8)) {
    across_.high = steps_.back();
    const double height = top + main_panel + 2 * (gap + panel) + 52;
    drawing_ = SvgDrawing(width, height, options.title);
    drawing_.write(left, 28, "title", "start", options.title);
    drawing_.write(left, 48, "", "start", subtitle);
  }

  /// Draws a panel below the last one. `lowest` and `highest` are on the axis in any case.
  void add_panel(std::string_view name, const CurveSeries& series, double lowest, double highest,
                 const LearningCurveOptions* options = nullptr) {
    const double height = options != nullptr ? main_panel : panel;
    const double y = below_;
    below_ += height + gap;
    for (const auto& run : series.raw.size() == 1 ? series.raw : series.smooth)
      for (const double one : run)
        if (std::isfinite(one)) {
          lowest = std::min(lowest, one);
          highest = std::max(highest, one);
        }
    up_ = CurveAxis::around(lowest, highest, options != nullptr ? 5 : 2);
    bottom_ = y + height;
    height_ = height;
    drawing_.write(left, y - 9, "name", "start", name);
    for (int i = 0; up_.low + i * up_.step < up_.high + up_.step / 2; ++i) {
      const double value = up_.low + i * up_.step;
      drawing_.line(i == 0 ? "axis" : "grid", left, at_y(value), width - right, at_y(value));
      drawing_.write(left - 8, at_y(value) + 4, "", "end", short_number(value, up_.digits()));
    }
    for (int i = 0; i * across_.step <= across_.high * (1 + 1e-9); ++i) {
      const double x = at_x(i * across_.step);
      drawing_.line("axis", x, bottom_, x, bottom_ + 4);
      drawing_.write(x, bottom_ + 18, "", "middle", short_count(i * across_.step));
    }
    if (options != nullptr && options->best) {
      drawing_.line("best", left, at_y(*options->best), width - right, at_y(*options->best));
      // At the left, where training begins below it.
      drawing_.write(left + 6, at_y(*options->best) - 6, "", "start",
                     options->best_name + ' ' + short_number(*options->best, 3));
    }
    if (series.raw.size() == 1)
      path("raw", series.raw.front());
    else
      band(series);
    path("curve", series.mean);
  }

  [[nodiscard]] std::string finished() {
    drawing_.write((left + width - right) / 2, bottom_ + 40, "", "middle", "steps");
    return drawing_.finished();
  }

private:
  [[nodiscard]] double at_x(double steps) const {
    return left + (width - left - right) * steps / across_.high;
  }
  [[nodiscard]] double at_y(double value) const {
    return bottom_ - height_ * (value - up_.low) / (up_.high - up_.low);
  }
  [[nodiscard]] std::string point(std::size_t i, double value) const {
    return short_number(at_x(steps_[i]), 1) + ',' + short_number(at_y(value), 1);
  }
  void path(std::string_view kind, std::span<const double> values) {
    std::string places;
    bool drawing = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) (places += drawing ? 'L' : 'M') += point(i, values[i]);
      drawing = std::isfinite(values[i]);
    }
    drawing_.path(kind, places);
  }
  void band(const CurveSeries& series) {
    std::string there, back;
    for (std::size_t i = 0; i < series.low.size(); ++i) {
      if (!std::isfinite(series.mean[i])) continue;
      there += ' ' + point(i, series.high[i]);
      back = ' ' + point(i, series.low[i]) + back;
    }
    drawing_.polygon("band", there + back);
  }

  std::vector<double> steps_;
  CurveAxis across_{}, up_{};
  double below_ = top, bottom_ = 0, height_ = 0;
  SvgDrawing drawing_{};
};

} // namespace detail

/// The course of trainings of one kind, which differ in their seeds, as SVG: mean return, entropy, and how
/// much of the returns the values explain, over steps. Of one run the numbers of the updates are drawn and
/// their smoothed curve; of several the mean of the smoothed curves and the band that they all lie in, up to
/// the end of the shortest. Values that explain less than nothing are drawn as ones that explain nothing.
/// Empty where there is no run, or one without updates.
[[nodiscard]] inline std::string learning_curve(std::span<const std::vector<PpoProgress>> runs,
                                                const LearningCurveOptions& options = {}) {
  std::size_t updates = runs.empty() ? 0 : runs.front().size();
  for (const auto& run : runs) updates = std::min(updates, run.size());
  if (updates == 0) return {};
  const std::size_t window =
      options.smoothing > 0 ? options.smoothing : std::max<std::size_t>(updates / 20, 3);
  const auto series = [&](const auto& number_of) {
    std::vector<std::vector<double>> raw;
    for (const auto& run : runs) {
      raw.emplace_back();
      for (std::size_t i = 0; i < updates; ++i) raw.back().push_back(number_of(run[i]));
    }
    return detail::curve_series(std::move(raw), window);
  };
  std::vector<double> steps;
  for (std::size_t i = 0; i < updates; ++i) steps.push_back(static_cast<double>(runs.front()[i].steps));

  const std::string means = "means over " + std::to_string(window) + " updates";
  detail::CurveDrawing drawing(std::move(steps), options,
                               runs.size() == 1
                                   ? "Thin: each update; thick: " + means
                                   : "Mean and range of " + std::to_string(runs.size()) + " seeds; " + means);
  const auto returns = series([](const PpoProgress& one) {
    return one.episodes > 0 ? one.mean_return : std::numeric_limits<double>::quiet_NaN();
  });
  constexpr double none = std::numeric_limits<double>::infinity();
  drawing.add_panel("Mean return of an episode", returns, options.best.value_or(none),
                    options.best.value_or(-none), &options);
  drawing.add_panel("Entropy, as part of that of chance",
                    series([](const PpoProgress& one) { return one.entropy; }), 0, 1);
  drawing.add_panel("Part of the variance of returns that the values explain",
                    series([](const PpoProgress& one) { return std::max(one.explained_variance, 0.0); }), 0,
                    1);
  return drawing.finished();
}

} // namespace mtmc
