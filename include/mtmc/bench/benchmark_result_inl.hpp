#pragma once
/// Definitions of bench/benchmark_result.hpp.

#include <mtmc/bench/benchmark_result.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

inline void visit_fields(JsonFields& visit, BenchmarkOutcome& noun) {
  visit.optional("called", noun.called);
  visit.optional("correct", noun.correct);
  visit.optional("seconds", noun.seconds);
  visit.optional("baselines", noun.baselines);
  visit.optional("library_share", noun.library_share);
  visit.optional("memory_bytes", noun.memory_bytes);
  visit.optional("judging_seconds", noun.judging_seconds);
  visit.optional("reason", noun.reason);
}

inline void visit_fields(JsonFields& visit, BenchmarkResult& noun) {
  visit.required("suite", noun.suite);
  visit.optional("level", noun.level);
  visit.required("problem", noun.problem);
  visit.optional("skipped", noun.skipped);
  visit.optional("flaw", noun.flaw);
  visit.optional("problem_error", noun.problem_error);
  visit.optional("problem_far", noun.problem_far);
  visit.optional("rules", noun.rules);
  visit.optional("environment", noun.environment);
  visit.unknown(noun.unknown);
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string benchmark_line(const BenchmarkResult& result) {
  detail::Json line;
  detail::write_value(line, result);
  return line.dump(-1, ' ', false, detail::Json::error_handler_t::replace);
}

MTMC_INLINE std::vector<BenchmarkResult> read_benchmark_results(std::string_view text,
                                                                const std::string& place) {
  std::vector<BenchmarkResult> results;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    const bool cut_off = end == std::string_view::npos;
    text = cut_off ? std::string_view{} : text.substr(end + 1);
    if (line.find_first_not_of(" \r\t") == std::string_view::npos) continue;
    const auto document = detail::parse_text(line, false);
    if (document.is_discarded() && cut_off) break;
    const auto where = place + (place.empty() ? "line " : ", line ") + std::to_string(number);
    BenchmarkResult result;
    try {
      if (document.is_discarded()) throw Error(error_id::json_malformed, "it is no JSON", "");
      detail::read_value(document, result, std::string());
    } catch (const Error& error) {
      throw Error(error_id::bench_files, where + " is no result of a benchmark: " + error.message(),
                  "Name a file that a run of the benchmark has written");
    }
    const auto same = std::find_if(results.begin(), results.end(), [&](const BenchmarkResult& one) {
      return one.suite == result.suite && one.level == result.level && one.problem == result.problem;
    });
    if (same == results.end())
      results.push_back(std::move(result));
    else
      *same = std::move(result);
  }
  return results;
}

} // namespace mtmc
