#pragma once
/// Definitions of backend/python/plan_judge.hpp.

#include <mtmc/backend/python/plan_judge.hpp>
#include <mtmc/backend/python/python_process.hpp>
#include <mtmc/backend/python/recorded_plan_json.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/json_message.hpp>
#include <mtmc/support/base64.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// What judging.py says in the end.
struct JudgingAnswer {
  Verdict verdict = Verdict::not_given;
  std::string rule;
  std::string message;
  std::string remedy;
  std::int64_t checked = 0;
  double largest_error = 0;
  double library_share = 0;
  double problem_error = 0;
  std::int64_t problem_far = 0;
  std::int64_t memory_bytes = 0;
  std::string flaw;
  int chosen = 0;
  std::map<std::string, std::vector<double>> times;
  std::map<std::string, double> spent;
};

inline void visit_fields(JsonFields& visit, JudgingAnswer& noun) {
  visit.required("verdict", noun.verdict);
  visit.required("rule", noun.rule);
  visit.required("message", noun.message);
  visit.required("remedy", noun.remedy);
  visit.required("checked", noun.checked);
  visit.required("largest_error", noun.largest_error);
  visit.optional("library_share", noun.library_share);
  visit.optional("problem_error", noun.problem_error);
  visit.optional("problem_far", noun.problem_far);
  visit.optional("memory_bytes", noun.memory_bytes);
  visit.optional("flaw", noun.flaw);
  visit.optional("chosen", noun.chosen);
  visit.optional("times", noun.times);
  visit.optional("spent", noun.spent);
}

[[nodiscard]] inline Json contestant_json(const PlanContestant& contestant) {
  Json json{{"kernels", Json::array()}, {"compiled", contestant.compiled}};
  write_value(json["plan"], *contestant.plan);
  if (!contestant.module.empty()) json["text"] = contestant.module;
  for (const auto& kernel : contestant.kernels) {
    const std::vector<unsigned char> cubin(kernel->cubin.begin(), kernel->cubin.end());
    json["kernels"].push_back(Json{{"entry", kernel->entry},
                                   {"cubin", to_base64(cubin)},
                                   {"threads", kernel->threads},
                                   {"cluster", kernel->cluster},
                                   {"shared_bytes", kernel->shared_bytes}});
  }
  return json;
}

} // namespace detail

MTMC_INLINE PlanJudge::PlanJudge(const PythonOptions& options, std::string device, std::string visible,
                                 int contestants)
    : options_(options), device_(std::move(device)), visible_(std::move(visible)),
      most_contestants_(std::max(contestants, 2)),
      python_(std::make_unique<detail::PythonProcess>(
          options, "judging",
          detail::PythonReadiness{.device = device_ == "cpu" ? std::string() : visible_,
                                  .processes = most_contestants_})) {}
MTMC_INLINE PlanJudge::PlanJudge(PlanJudge&&) noexcept = default;
MTMC_INLINE PlanJudge& PlanJudge::operator=(PlanJudge&&) noexcept = default;
MTMC_INLINE PlanJudge::~PlanJudge() = default;

MTMC_INLINE const std::map<std::string, std::string>& PlanJudge::versions() const noexcept {
  return python_->versions();
}

MTMC_INLINE JudgedPlan PlanJudge::judge(const PlanJudging& what, std::chrono::milliseconds time,
                                        std::stop_token stop) const {
  constexpr int start_seconds = 60; // for a context, and for the constructors of large networks
  detail::Json question{{"device", device_},
                        {"visible", visible_},
                        {"key", what.key},
                        {"cases", what.cases},
                        {"call_seconds", what.call_seconds},
                        {"start_seconds", start_seconds},
                        {"seconds", what.seconds},
                        {"least_pairs", what.least_pairs},
                        {"most_pairs", what.most_pairs},
                        {"promote", what.promote},
                        {"atomics", what.atomics},
                        {"rules", to_string(what.rules)},
                        {"tolerance", what.tolerance},
                        {"limits",
                         {{"memory_bytes", options_.memory_limit},
                          {"seconds", 2 * std::chrono::ceil<std::chrono::seconds>(time).count() + 10}}}};
  detail::write_value(question["problem"], *what.problem);
  question["contestants"]["candidate"] = detail::contestant_json(what.candidate);
  const auto variants = std::min(what.variants.size(), static_cast<std::size_t>(most_contestants_ - 2));
  for (std::size_t i = 0; i < variants; ++i)
    question["contestants"]["candidate " + std::to_string(i + 1)] = detail::contestant_json(what.variants[i]);
  question["problems"] = detail::Json::array(); // who of them the problem itself is
  if (what.candidate.plan == what.problem) question["problems"].push_back("candidate");
  if (what.incumbent != nullptr) {
    question["contestants"]["incumbent"] = detail::contestant_json(*what.incumbent);
    if (what.incumbent->plan == what.problem) question["problems"].push_back("incumbent");
  }
  const auto said =
      python_->ask(question.dump(-1, ' ', false, detail::Json::error_handler_t::replace), time, stop);
  JudgedPlan judged;
  judged.timed_out = said.timed_out;
  if (said.failure) judged.diagnostics = {*said.failure};
  if (said.result.empty()) return judged;
  try {
    detail::JudgingAnswer answer;
    detail::read_value(detail::parse_text(said.result, true).at("result"), answer, "a judgement");
    judged.verdict = answer.verdict;
    judged.rule = std::move(answer.rule);
    judged.message = std::move(answer.message);
    judged.remedy = std::move(answer.remedy);
    judged.checked_elements = answer.checked;
    judged.largest_error = answer.largest_error;
    judged.library_share = answer.library_share;
    judged.problem_error = answer.problem_error;
    judged.problem_far = answer.problem_far;
    judged.memory_bytes = answer.memory_bytes;
    judged.flaw = std::move(answer.flaw);
    judged.chosen = answer.chosen;
    judged.candidate_seconds = std::move(answer.times["candidate"]);
    judged.incumbent_seconds = std::move(answer.times["incumbent"]);
    judged.spent = std::move(answer.spent);
  } catch (const std::exception& error) {
    judged.diagnostics = {{Severity::error,
                           0,
                           0,
                           "the judge's answer cannot be read: " + std::string(error.what()),
                           "Report this",
                           {}}};
  }
  return judged;
}

} // namespace mtmc
