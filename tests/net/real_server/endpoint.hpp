#pragma once
/// Real servers as endpoints, over a real network, and a real observation to ask them about.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/core/action.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/net/curl.hpp>
#include <mtmc/net/endpoint.hpp>

#include <string>

#include "real_server.hpp"

namespace real_server {

/// The server's place; `profile`: empty = whatever its address tells, which is nothing.
inline mtmc::Endpoint endpoint(const Server& server, const std::string& profile = {}) {
  mtmc::EndpointOptions options;
  options.base_url = server.url() + "/v1";
  options.model = "tiny-random";
  if (!profile.empty()) options.profile = mtmc::endpoint_profile(profile);
  // What fails here fails for good.
  options.retries.max_retries = 0;
  mtmc::CurlOptions direct;
  direct.no_proxy = "*";
  return {mtmc::CurlTransport(direct), options};
}

/// The first step of one of the example tasks.
inline mtmc::Observation observation(const std::string& task) {
  mtmc::Observation seen;
  seen.task = mtmc::load_task(MTMC_REPOSITORY "/examples/tasks/cpu/" + task + ".json");
  seen.kernel = seen.task.kernel;
  seen.structure = mtmc::AstRegionFinder{}.find(seen.task, seen.kernel);
  seen.device.name = "Two cores";
  seen.device.kind = "cpu";
  seen.device.compute_units = 2;
  seen.step_limit = 8;
  return seen;
}
inline std::vector<mtmc::Action> legal_actions(const mtmc::Observation& seen) {
  return mtmc::ActionSpace::extended().legal_actions(seen.structure, seen.device);
}

} // namespace real_server
