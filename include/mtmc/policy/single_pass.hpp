#pragma once
/// The ablation "single pass" (paper, table 6): all actions and their prompts at once, and one answer.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/core/action.hpp>
#include <mtmc/core/concepts.hpp>

#include <algorithm>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Proposes one step in which all legal actions are to be taken together, and then stops. Whether the answer
/// was any good, it is the only one.
class SinglePassPolicy {
public:
  /// `space`: where intents and principles are found; the loop's own.
  explicit SinglePassPolicy(ActionSpace space = ActionSpace::extended()) : space_(std::move(space)) {}

  /// The one action that asks for everything at once.
  [[nodiscard]] std::vector<Action> propose(const Observation& seen, std::span<const Action> legal,
                                            std::stop_token) const {
    if (seen.step > 0) return {};
    std::string text = "Apply those of these optimizations that make the kernel faster, all in one answer:\n";
    std::vector<std::string_view> explained;
    for (const auto& action : legal) {
      if (action.kind != Action::Kind::optimize) continue;
      text += "- " + action.text() + '\n';
      const auto* const type = space_.find(action.optimization);
      const bool known =
          std::find(explained.begin(), explained.end(), action.optimization) != explained.end();
      if (type == nullptr || known) continue;
      text += "  " + type->intent + ' ' +
              type->principle_on(seen.structure.find_region(action.region), seen.structure) + '\n';
      explained.push_back(action.optimization);
    }
    if (explained.empty()) return {};
    Action action;
    action.kind = Action::Kind::free_text;
    action.free_text = std::move(text);
    return {std::move(action)};
  }

  /// Takes that action first, then stops.
  [[nodiscard]] ActionDistribution distribution(const Observation&, std::span<const Action> legal,
                                                std::stop_token) const {
    ActionDistribution result;
    result.probabilities.assign(legal.size(), 0);
    result.probabilities.front() = 1;
    result.rationale = "all actions in a single pass";
    return result;
  }

  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const { return "single pass"; }

private:
  ActionSpace space_;
};

static_assert(check_policy<SinglePassPolicy>() && ProposesActions<SinglePassPolicy>);

} // namespace mtmc
