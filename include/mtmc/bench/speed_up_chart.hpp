#pragma once
/// Speed-ups over a benchmark as a picture.

#include <mtmc/bench/benchmark_result.hpp>
#include <mtmc/support/svg_drawing.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Of one level under one set of rules: speed-ups of what is right, falling, and how many problems there are.
struct SpeedUpCurve {
  std::vector<double> speed_ups{};
  std::size_t problems = 0;
};

/// By level and rules.
[[nodiscard]] inline std::map<std::pair<std::string, std::string>, SpeedUpCurve>
speed_up_curves(std::span<const BenchmarkResult> results, std::string_view baseline) {
  std::map<std::pair<std::string, std::string>, SpeedUpCurve> curves;
  for (const auto& result : results) {
    if (!result.skipped.empty()) continue;
    for (const auto& [rules, outcome] : result.rules) {
      auto& curve = curves[{result.level, rules}];
      ++curve.problems;
      const auto base = outcome.baselines.find(std::string(baseline));
      if (outcome.correct && outcome.seconds > 0 && base != outcome.baselines.end())
        curve.speed_ups.push_back(base->second / outcome.seconds);
    }
  }
  for (auto& [key, curve] : curves) std::sort(curve.speed_ups.rbegin(), curve.speed_ups.rend());
  return curves;
}

} // namespace detail

/// The part of the problems whose candidate is right and more than p times as fast as the baseline (fast_p),
/// over p from 1/8 to 16, further where a candidate is faster, as SVG: a colour for each level, dashed under
/// the benchmark's own rules.
[[nodiscard]] inline std::string speed_up_chart(std::span<const BenchmarkResult> results,
                                                std::string_view baseline = "eager") {
  constexpr double width = 760, height = 420, left = 64, right = 200, top = 72, bottom = 360;
  const auto curves = detail::speed_up_curves(results, baseline);
  constexpr int first = -3, least_last = 4, most_last = 12; // logarithms to base 2
  int last = least_last;
  for (const auto& [key, curve] : curves)
    while (!curve.speed_ups.empty() && std::exp2(last) < curve.speed_ups.front() && last < most_last) ++last;
  const double lowest = first, highest = last;
  constexpr std::array<std::string_view, 4> colours{"first", "second", "third", "fourth"};
  const auto at_x = [&](double logarithm) {
    return left +
           (width - left - right) * (std::clamp(logarithm, lowest, highest) - lowest) / (highest - lowest);
  };
  const auto at_y = [&](double part) { return bottom - (bottom - top) * part; };
  const auto point = [&](double logarithm, double part) {
    return detail::short_number(at_x(logarithm), 1) + ',' + detail::short_number(at_y(part), 1);
  };
  detail::SvgDrawing drawing(width, height, "speed-ups");
  drawing.write(left, 28, "title", "start",
                "Right, and more than p times as fast as " + std::string(baseline));
  drawing.write(left, 48, "", "start", "part of the problems");
  for (int i = 0; i <= 4; ++i) {
    drawing.line(i == 0 ? "axis" : "grid", left, at_y(i / 4.0), width - right, at_y(i / 4.0));
    drawing.write(left - 8, at_y(i / 4.0) + 4, "", "end", std::to_string(25 * i) + " %");
  }
  for (int i = first; i <= last; ++i) {
    drawing.line(i == 0 ? "best" : "grid", at_x(i), top, at_x(i), bottom);
    drawing.write(at_x(i), bottom + 18, "", "middle", detail::short_number(std::exp2(i), 3));
  }
  drawing.write((left + width - right) / 2, bottom + 40, "", "middle", "p");
  std::map<std::string, std::string_view> colour_of;
  double legend = top + 12;
  for (const auto& [key, curve] : curves) {
    const auto& [level, rules] = key;
    const auto colour = colour_of.emplace(level, colours[colour_of.size() % colours.size()]).first->second;
    const auto kind = std::string(colour) + (rules == "compatible" ? " dashed" : "");
    const auto all = static_cast<double>(curve.problems);
    // From the right: each speed-up is a step up.
    double height_so_far = 0;
    std::string places = "M" + point(highest, 0);
    for (const double speed_up : curve.speed_ups) {
      places += "L" + point(std::log2(speed_up), height_so_far / all);
      places += "L" + point(std::log2(speed_up), ++height_so_far / all);
    }
    places += "L" + point(lowest, height_so_far / all);
    drawing.path(kind, places);
    drawing.line(kind, width - right + 16, legend - 4, width - right + 40, legend - 4);
    drawing.write(width - right + 48, legend, "", "start",
                  (level.empty() ? rules : "level " + level + ", " + rules) + " (" +
                      std::to_string(curve.problems) + ')');
    legend += 20;
  }
  return drawing.finished();
}

} // namespace mtmc
