// A recorded plan, as a process that ran a candidate's text may hand it over: read, checked, made into
// launches.
#include <mtmc/backend/python/check_recorded_plan.hpp>
#include <mtmc/backend/python/paired_draws.hpp>
#include <mtmc/backend/python/problem_task.hpp>
#include <mtmc/backend/python/recorded_launches.hpp>
#include <mtmc/backend/python/recorded_plan_json.hpp>

#include <memory>
#include <string>
#include <vector>

#include "target.hpp"

namespace mtmc_fuzz {

void recorded_plan(std::string_view input) {
  mtmc::RecordedPlan plan;
  if (!accepts([&] { plan = mtmc::parse_json(input, "a plan").get<mtmc::RecordedPlan>(); })) return;
  const nlohmann::json document = plan;
  require(nlohmann::json(document.get<mtmc::RecordedPlan>()) == document,
          "a plan's JSON is read as the same plan");
  if (mtmc::check_recorded_plan(plan)) return;
  const std::vector<std::shared_ptr<const mtmc::LoweredKernel>> lowered(
      plan.kernels.size(), std::make_shared<mtmc::LoweredKernel>());
  const std::vector<mtmc::RecordedBuffer> names(plan.inputs.size(), {"x", true});
  const auto launches = mtmc::recorded_launches(plan, lowered, names);
  require(launches.kernels.size() == launches.plan.launches.size(), "each launch is of a kernel");
  for (const auto& launch : launches.plan.launches)
    for (const auto& argument : launch.arguments)
      require(argument.byte_offset >= 0, "a pointer does not lie before its buffer");
  require(!mtmc::check_paired_draws(plan, plan), "a plan pairs with itself");
  (void)mtmc::problem_task("p", "", plan);
}

} // namespace mtmc_fuzz
