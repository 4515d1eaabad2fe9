#pragma once
/// The rows on rewriting, which are the same on every device.

#include <mtmc/policy/rule.hpp>
#include <mtmc/policy/situation.hpp>

#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A device's own rows behind those that say when the whole kernel is written anew: at first, where much is
/// left.
[[nodiscard]] inline std::vector<Rule> behind_rewriting(const std::vector<Rule>& own) {
  std::vector<Rule> rules{
      {"rewriting",
       [](const Region& r, const Situation& s) {
         return s.headroom == Headroom::high && r.kind == RegionKind::launch_sequence;
       },
       0.99, "several launches, and the call is far from what the task needs at least"},
      {"rewriting", [](const Region&, const Situation& s) { return s.headroom == Headroom::high; }, 0.98,
       "the call is far from what the task needs at least"},
      {"rewriting", [](const Region&, const Situation& s) { return s.headroom == Headroom::middle; }, 0.20,
       "some is left, and single steps may find it"},
      {"rewriting", [](const Region&, const Situation&) { return true; }, 0.01,
       "little is left of which a new text could take a part"},
  };
  rules.insert(rules.end(), own.begin(), own.end());
  return rules;
}

} // namespace mtmc::detail
