#pragma once
/// What disturbed the timings of a run, in one line.

#include <mtmc/core/conditions.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/loop/result.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The run's timed evaluations, each once.
[[nodiscard]] inline std::vector<const Evaluation*> timings_of(const Result& result) {
  std::vector<const Evaluation*> timings;
  const auto add = [&timings](const Evaluation& evaluation) {
    if (!(evaluation.seconds > 0)) return;
    // Drafts with the same text share one evaluation.
    if (std::none_of(timings.begin(), timings.end(), [&](const auto* known) { return *known == evaluation; }))
      timings.push_back(&evaluation);
  };
  add(result.start);
  for (const auto& step : result.trajectory)
    if (step.evaluation) add(*step.evaluation);
  add(result.evaluation);
  return timings;
}

/// "12 of 40 timings by others (0.9 processors busy on average), 2 by drift; much of it cancels in ratios,
/// intervals and seconds are uncertain". Empty if nothing was disturbed.
[[nodiscard]] inline std::string disturbances_text(const Result& result) {
  const auto timings = timings_of(result);
  std::string text;
  const auto count = [&](const char* what, const std::string& words, bool with_average = false) {
    std::size_t found = 0;
    double sum = 0;
    for (const auto* timing : timings) {
      const auto& record = timing->environment;
      const auto names = record.find(environment_key::disturbed_by);
      if (names == record.end() || !has_word(names->second, what)) continue;
      ++found;
      if (const auto value = record.find(what); value != record.end())
        sum += std::strtod(value->second.c_str(), nullptr);
    }
    if (found == 0) return;
    text += text.empty() ? std::to_string(found) + " of " + std::to_string(timings.size()) +
                               (timings.size() == 1 ? " timing by " : " timings by ")
                         : ", " + std::to_string(found) + " by ";
    text += words;
    if (!with_average) return;
    char average[64];
    std::snprintf(average, sizeof average, " (%.1f processors busy on average)",
                  sum / static_cast<double>(found));
    text += average;
  };
  count(environment_key::others_busy, "others", true);
  count(environment_key::steal, "the hypervisor");
  count(environment_key::throttled, "a lowered clock");
  count(environment_key::drift, "drift");
  if (!text.empty()) text += "; much of it cancels in ratios, intervals and seconds are uncertain";
  return text;
}

} // namespace mtmc::detail
