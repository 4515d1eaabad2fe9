#pragma once
/// JSON of recorded plans: `nlohmann::json j = plan;` and `j.get<RecordedPlan>()`, as core/json.hpp has it
/// for the nouns of core. What is malformed throws `Error` (`mtmc.json.001`) that names the field.

#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/json.hpp>

namespace mtmc::inline MTMC_ABI::detail {

void visit_fields(JsonFields& visit, RecordedStorage& noun);
void visit_fields(JsonFields& visit, RecordedView& noun);
void visit_fields(JsonFields& visit, RecordedValue& noun);
void visit_fields(JsonFields& visit, KernelParameter& noun);
void visit_fields(JsonFields& visit, RecordedKernel& noun);
void visit_fields(JsonFields& visit, RecordedArgument& noun);
void visit_fields(JsonFields& visit, RecordedLaunch& noun);
void visit_fields(JsonFields& visit, RecordedFill& noun);
void visit_fields(JsonFields& visit, RecordedOperation& noun);
void visit_fields(JsonFields& visit, RecordedStep& noun);
void visit_fields(JsonFields& visit, RecordedWeight& noun);
void visit_fields(JsonFields& visit, RecordedChoice& noun);
void visit_fields(JsonFields& visit, RecordedPhases& noun);
void visit_fields(JsonFields& visit, RecordedTarget& noun);
void visit_fields(JsonFields& visit, RecordedPlan& noun);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/recorded_plan_json_inl.hpp>
#endif
