#pragma once

#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/region_facts.hpp>
#include <mtmc/analysis/region_path.hpp>
#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Regions that only a launch on a grid has: the nest of its threads, and the results that a thread stores
/// outside its loops.

namespace mtmc::inline MTMC_ABI::detail {

/// The body of a function as all threads of its launch execute it. `facts`: those of the function. Its
/// threads may be renumbered or given several elements each if they neither wait for each other nor exchange
/// values.
[[nodiscard]] inline Region thread_nest_region(const FunctionAnalysis& function, RegionFacts facts) {
  Region region;
  region.kind = RegionKind::thread_nest;
  const auto body = statements(function_body(*function.node));
  region.first_line = body.empty() ? function.node->range.first_line : body.front().range.first_line;
  region.last_line = body.empty() ? function.node->range.last_line : body.back().range.last_line;
  region.path = function.path + '/' + std::string(threads_prefix);
  std::string names;
  for (auto axis = facts.threads.rbegin(); axis != facts.threads.rend(); ++axis)
    names += (names.empty() ? "" : ", ") + axis->variable;
  for (const ThreadAxis& axis : facts.threads) region.path += axis.axis;
  region.label = "the " + (names.empty() ? "" : names + ' ') +
                 (facts.threads.size() > 1 ? "thread nest of " : "threads of ") + function.name;
  const bool independent = !facts.opaque && facts.block_barriers == 0 && facts.warp_exchanges == 0;
  facts.interchangeable = independent && facts.threads.size() > 1;
  facts.tileable = independent;
  region.facts = std::move(facts);
  return region;
}

/// The statements outside the loops of a thread that write to memory all threads see, in the order of the
/// text; the first ones only, where there are many.
[[nodiscard]] inline std::vector<Region> store_regions(const FunctionAnalysis& function,
                                                       const FunctionAtSize& at_size) {
  constexpr std::size_t max_stores = 16; // beyond this nobody reads on
  const ThreadGrid& grid = *at_size.grid();
  std::vector<Region> result;
  std::map<std::string, int, std::less<>> numbers;
  std::size_t first = 0; // of the statement's accesses, which stand together
  for (std::size_t i = 0; i < function.accesses.size() && result.size() < max_stores; ++i) {
    const Access& write = function.accesses[i];
    if (function.accesses[first].statement != write.statement) first = i;
    const bool last =
        i + 1 == function.accesses.size() || function.accesses[i + 1].statement != write.statement;
    if (!last || !write.write || write.loop != nullptr || write.array->place != ArrayPlace::common ||
        write.statement == nullptr)
      continue;
    const std::string array(stored_array(*write.statement));
    if (array.empty()) continue;
    Region region;
    region.kind = RegionKind::store;
    const int number = ++numbers[array];
    region.path = function.path + '/' + std::string(store_prefix) + array +
                  (number > 1 ? '#' + std::to_string(number) : "");
    region.label = "the store of " + array + " in " + function.name;
    region.first_line = write.statement->range.first_line;
    region.last_line = write.statement->range.last_line;
    RegionFacts& facts = region.facts;
    facts.threads = grid.axes();
    facts.opaque = !function.opaque.empty();
    for (std::size_t at = first; at <= i; ++at) {
      const Access& access = function.accesses[at];
      if (access.array->place != ArrayPlace::common) continue;
      auto& names = access.write ? facts.writes : facts.reads;
      if (std::find(names.begin(), names.end(), access.array->name) == names.end())
        names.push_back(access.array->name);
      facts.bytes += grid.working_threads() * access.array->element_size;
      facts.indirect = facts.indirect || access.indirect;
      const auto& movement = at_size.movement(at);
      facts.accesses.push_back({access.array->name, movement.subscript, access.write, {}, movement.lanes});
    }
    result.push_back(std::move(region));
  }
  return result;
}

} // namespace mtmc::detail
