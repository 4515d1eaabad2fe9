#pragma once
/// Why a right candidate gained nothing, as far as what was measured of it tells.

#include <mtmc/core/evaluation.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/observation/occupancy.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// A resource, and what people call it.
struct NamedResource {
  const char* key;
  const char* name;
};

/// "registers 40 -> 168", where they differ by a quarter or more; empty else.
[[nodiscard]] inline std::string changed_resource(const NamedResource& resource, const Evaluation& before,
                                                  const Evaluation& after) {
  constexpr double telling = 0.25;
  const auto value = [&resource](const Evaluation& evaluation) {
    const auto found = evaluation.resources.find(resource.key);
    return found == evaluation.resources.end() ? -1 : found->second;
  };
  const double first = value(before);
  const double second = value(after);
  if (first < 0 || second < 0 || std::abs(second - first) < telling * std::max(first, 1e-9)) return {};
  char text[96];
  std::snprintf(text, sizeof text, "%s %.3g -> %.3g", resource.name, first, second);
  return text;
}

/// What changed from a kernel to the candidate made from it, where it took none of its time: resources that
/// are more or fewer by a quarter, and launches that take longer or shorter by a twentieth. Empty where
/// nothing is known to have changed.
[[nodiscard]] inline std::string what_changed(const Evaluation& before, const Evaluation& after) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  };
  constexpr std::array<NamedResource, 4> resources{{{"registers", "registers"},
                                                    {"spill_store_bytes", "bytes spilled"},
                                                    {"shared_bytes", "bytes of shared memory"},
                                                    {resource_key::occupancy, "occupancy"}}};
  for (const auto& resource : resources) add(changed_resource(resource, before, after));
  if (before.launches.size() != after.launches.size()) {
    if (!before.launches.empty() && !after.launches.empty())
      add("launches " + std::to_string(before.launches.size()) + " -> " +
          std::to_string(after.launches.size()));
    return text;
  }
  constexpr double noticeable = 0.05;
  for (std::size_t i = 0; i < before.launches.size(); ++i) {
    const auto& first = before.launches[i];
    const auto& second = after.launches[i];
    if (first.entry == second.entry && std::abs(second.seconds - first.seconds) > noticeable * first.seconds)
      add(first.entry + ' ' + seconds_text(first.seconds) + " -> " + seconds_text(second.seconds));
  }
  return text;
}

} // namespace mtmc::detail
