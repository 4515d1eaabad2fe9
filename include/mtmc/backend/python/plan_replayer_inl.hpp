#pragma once
/// Definitions of backend/python/plan_replayer.hpp.

#include <mtmc/backend/python/plan_replayer.hpp>
#include <mtmc/backend/python/python_process.hpp>
#include <mtmc/backend/python/recorded_plan_json.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/support/base64.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI {

namespace detail {

inline void visit_fields(JsonFields& visit, ReplayedTensor& noun) {
  visit.required("type", noun.type);
  visit.required("sizes", noun.sizes);
  visit.required("content", noun.bytes);
}

} // namespace detail

MTMC_INLINE PlanReplayer::PlanReplayer(const PythonOptions& options)
    : options_(options), python_(std::make_unique<detail::PythonProcess>(options, "replaying")) {}
MTMC_INLINE PlanReplayer::PlanReplayer(PlanReplayer&&) noexcept = default;
MTMC_INLINE PlanReplayer& PlanReplayer::operator=(PlanReplayer&&) noexcept = default;
MTMC_INLINE PlanReplayer::~PlanReplayer() = default;

MTMC_INLINE Replayed PlanReplayer::replay(const RecordedPlan& plan, const ReplayOptions& how,
                                          std::stop_token stop) const {
  const auto begin = std::chrono::steady_clock::now();
  Replayed replayed;
  detail::Json question{{"key", how.key}, {"double", how.double_precision}};
  detail::write_value(question["plan"], plan);
  const auto answer = python_->ask(question.dump(-1, ' ', false, detail::Json::error_handler_t::replace),
                                   options_.record_timeout, stop);
  replayed.timed_out = answer.timed_out;
  if (answer.failure) replayed.diagnostics = {*answer.failure};
  if (!answer.result.empty()) {
    try {
      const auto said = detail::parse_text(answer.result, true);
      detail::read_value(said.at("result").at("outputs"), replayed.outputs, "a replay's outputs");
      for (auto& output : replayed.outputs) {
        const auto bytes = from_base64(output.bytes).value();
        output.bytes.assign(bytes.begin(), bytes.end());
      }
    } catch (const std::exception& error) {
      replayed.outputs.clear();
      replayed.diagnostics = {{Severity::error,
                               0,
                               0,
                               "the replay's answer cannot be read: " + std::string(error.what()),
                               "Report this",
                               {}}};
    }
  }
  replayed.seconds = seconds_since(begin);
  return replayed;
}

} // namespace mtmc
