#pragma once
/// Observations as a policy sees them, put together by hand.

#include <mtmc/core/step.hpp>

#include <string>
#include <utility>
#include <vector>

namespace observed {

/// A correct kernel that takes so long at the main size.
inline mtmc::Evaluation evaluation(double seconds) {
  mtmc::Evaluation evaluation;
  evaluation.verdict = mtmc::Verdict::correct;
  evaluation.seconds = seconds;
  return evaluation;
}

/// A copy of N = 1e6 floats on a device of 10 GB/s and 100 GFlop/s.
inline mtmc::Observation with_seconds(double seconds) {
  mtmc::Observation seen;
  seen.task.name = "copy";
  mtmc::Argument argument;
  argument.name = "x";
  argument.shape = {"N"};
  seen.task.arguments.push_back(argument);
  argument.name = "y";
  argument.role = mtmc::ArgumentRole::output;
  seen.task.arguments.push_back(argument);
  seen.task.sizes = {{{{"N", 1'000'000}}, 1}};
  seen.device.measured.read_bandwidth = 10e9;
  seen.device.measured.f32_rate = 100e9;
  seen.device.caches = {{1, 1 << 15, 64, 1}, {2, 1 << 20, 64, 1}, {3, 1 << 25, 64, 8}};
  seen.evaluation = evaluation(seconds);
  return seen;
}

/// A loop region that does all the work of its kernel.
inline mtmc::Region loop(const std::string& path) {
  mtmc::Region region;
  region.path = path;
  region.label = path;
  region.facts.loops.push_back(
      {.variable = "i", .lower = "0", .upper = "N", .parallel = true, .innermost = true});
  region.facts.flops = 1e9;
  return region;
}

/// The action of this type on this region.
inline mtmc::Action action(const std::string& optimization, const std::string& region) {
  mtmc::Action action;
  action.kind = mtmc::Action::Kind::optimize;
  action.optimization = optimization;
  action.region = region;
  return action;
}

} // namespace observed
