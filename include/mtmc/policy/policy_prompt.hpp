#pragma once
/// An observation and its legal actions as a prompt and its continuations, by a policy card.

#include <mtmc/observation/describe.hpp>
#include <mtmc/policy/policy_card.hpp>
#include <mtmc/policy/policy_template.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What is left out of a prompt that is too long for the model, in this order; each step includes the ones
/// before it. The task, the device, the kernel and the actions always stay.
enum class PromptCut { nothing, history, regions };

namespace detail {
inline constexpr EnumName<PromptCut> prompt_cut_names[] = {
    {PromptCut::nothing, "nothing"},
    {PromptCut::history, "history"},
    {PromptCut::regions, "regions"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<PromptCut>> enum_names(PromptCut) noexcept {
  return detail::prompt_cut_names;
}

/// What a policy's model is asked: how likely it finds each continuation of the context.
struct PolicyPrompt {
  /// Ends with no blank.
  std::string context;
  /// One for each legal action, in their order; equal ones are possible.
  std::vector<std::string> continuations;

  friend bool operator==(const PolicyPrompt&, const PolicyPrompt&) = default; ///< member by member
};

namespace detail {

/// Regions of the actions, in the order in which they first come.
[[nodiscard]] inline std::vector<const Action*> legend_of(std::span<const Action> legal) {
  std::vector<const Action*> regions;
  for (const auto& action : legal) {
    if (action.kind != Action::Kind::optimize) continue;
    if (std::none_of(regions.begin(), regions.end(),
                     [&](const Action* one) { return one->region == action.region; }))
      regions.push_back(&action);
  }
  return regions;
}

/// "R1" of the action's region.
[[nodiscard]] inline std::string number_of_region(const Action& action,
                                                  std::span<const Action* const> legend) {
  const auto found = std::find_if(legend.begin(), legend.end(),
                                  [&](const Action* one) { return one->region == action.region; });
  return 'R' + std::to_string(found - legend.begin() + 1);
}

/// A line for each region. Those in `known` are described.
[[nodiscard]] inline std::string legend_text(std::span<const Action* const> legend,
                                             std::span<const Region> known) {
  std::string text;
  for (const Action* action : legend) {
    text += number_of_region(*action, legend) + ": ";
    const auto region = std::find_if(known.begin(), known.end(),
                                     [&](const Region& one) { return one.path == action->region; });
    if (region != known.end()) {
      text += describe(*region);
    } else {
      text += action->label + " in line " + std::to_string(action->first_line);
      if (action->last_line != action->first_line) text += " to " + std::to_string(action->last_line);
    }
    text += '\n';
  }
  return text;
}

/// The lines of history that the card allows.
[[nodiscard]] inline std::string steps_text(const Observation& seen, std::size_t most) {
  return "step " + std::to_string(seen.step + 1) + " of at most " + std::to_string(seen.step_limit) + '\n' +
         describe_history(seen, most);
}

} // namespace detail

/// The prompt of a checked card. Deterministic.
[[nodiscard]] inline PolicyPrompt policy_prompt(const PolicyCard& card, const Observation& seen,
                                                std::span<const Action> legal,
                                                PromptCut cut = PromptCut::nothing) {
  PolicyPrompt prompt;
  const auto legend = detail::legend_of(legal);
  const auto name_of = [&](const Action& action) {
    if (card.region_names == RegionNames::text || action.kind != Action::Kind::optimize) return action.text();
    return action.verb + ' ' + detail::number_of_region(action, legend);
  };
  std::string actions;
  for (const auto& action : legal) {
    const auto text = name_of(action);
    actions += "- " + text + '\n';
    prompt.continuations.push_back(card.separator + text);
  }
  const std::size_t history = cut >= PromptCut::history ? 0 : static_cast<std::size_t>(card.history);
  const bool regions = cut < PromptCut::regions;
  std::string key;
  if (card.region_names != RegionNames::text) {
    const bool described = regions && card.region_names == RegionNames::described_legend;
    key = detail::legend_text(legend,
                              described ? std::span(seen.structure.regions) : std::span<const Region>());
  }

  const auto value_of = [&](std::string_view name) -> std::string {
    if (name == "observation")
      return describe(seen, {.line_numbers = card.line_numbers, .history = history, .regions = regions});
    if (name == "task") return describe(seen.task);
    if (name == "device") return describe(seen.device);
    if (name == "kernel")
      return card.line_numbers ? with_line_numbers(seen.kernel.source) : seen.kernel.source;
    if (name == "history") return detail::steps_text(seen, history);
    if (name == "actions") return key + actions;
    if (name == "legend") return key;
    std::string text;
    if (name == "regions" && regions)
      for (const auto& region : seen.structure.regions) text += "- " + describe(region) + '\n';
    return text;
  };
  detail::visit_template(
      card.prompt_template, [&](std::string_view text) { prompt.context += text; },
      [&](std::string_view name) {
        auto value = value_of(name);
        // The template has the line ends.
        if (value.ends_with('\n')) value.pop_back();
        prompt.context += value;
      });
  while (!prompt.context.empty() && trim(prompt.context.substr(prompt.context.size() - 1)).empty())
    prompt.context.pop_back();
  return prompt;
}

} // namespace mtmc
