#pragma once
// mtmc-optimize --list-actions, --show-prompt and --dry-run: what a run would begin with.

#include <mtmc/core/json.hpp>
#include <mtmc/mtmc.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "optimize_arguments.hpp"
#include "optimize_parts.hpp"
#include "optimize_results.hpp"
#include "python_tasks.hpp"

namespace command_line {

/// What a policy and a coder see before the first step.
inline mtmc::Observation observe_start(const mtmc::Task& task, const mtmc::Device& device, int steps) {
  mtmc::Observation seen{.task = task, .device = device, .kernel = task.kernel, .step_limit = steps};
  seen.structure = finder_for(task.kernel.language).find(task, task.kernel);
  return seen;
}

/// The first request to the coder.
inline mtmc::CodingRequest first_request(const mtmc::Task& task, Evaluators& evaluators,
                                         const Arguments& arguments, Parts& parts) {
  const auto device = evaluators.device_of(task);
  mtmc::CodingRequest request;
  request.seen = observe_start(task, device, arguments.loop.max_steps);
  // The prompt tells the start kernel's speed.
  if (arguments.show_prompt && !arguments.models.options.prompt.plain && arguments.device.empty())
    request.seen.evaluation = evaluators.of(task).evaluate({.task = task, .candidate = task.kernel}, {});
  auto actions =
      mtmc::offered_actions(parts.space, request.seen.structure, device, parts.coder, task.kernel.language);
  if (parts.policy.proposes_actions()) {
    actions = parts.policy.propose(request.seen, actions, {});
    actions.push_back(mtmc::Action::stop());
  }
  const auto distribution = parts.policy.distribution(request.seen, actions, {});
  const auto best = std::max_element(distribution.probabilities.begin(), distribution.probabilities.end());
  request.action = actions.at(static_cast<std::size_t>(best - distribution.probabilities.begin()));
  if (const auto* const type = parts.space.find(request.action.optimization)) {
    request.intent = type->intent;
    request.principle =
        type->principle_on(request.seen.structure.find_region(request.action.region), request.seen.structure);
  }
  return request;
}

/// The legal actions of a task's start kernel, each with the probability that the policy gives it, the
/// likeliest first.
inline void list_actions(const mtmc::Task& task, const mtmc::Device& device, mtmc::AnyPolicy& policy,
                         const mtmc::ActionSpace& space, bool json) {
  const auto seen = observe_start(task, device, 1);
  const auto legal = space.legal_actions(seen.structure, device);
  const auto distribution = policy.distribution(seen, legal, {});
  std::vector<std::size_t> order(legal.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return distribution.probabilities[a] > distribution.probabilities[b];
  });
  if (json) {
    auto actions = nlohmann::json::array();
    for (const std::size_t i : order)
      actions.push_back({{"key", legal[i].key()},
                         {"text", legal[i].text()},
                         {"probability", distribution.probabilities[i]}});
    std::printf("%s\n", nlohmann::json{{"task", task.name}, {"actions", actions}}.dump().c_str());
    return;
  }
  std::printf("%s: %zu legal actions\n", task.name.c_str(), legal.size());
  for (const std::size_t i : order)
    std::printf("  %5.1f %%  %-44s %s\n", 100 * distribution.probabilities[i], legal[i].key().c_str(),
                legal[i].text().c_str());
}

/// The most that a run could take.
struct Estimate {
  double drafts = 0;
  double tokens = 0;
  double cost = 0;
};

/// "6 drafts: 1.2e+05 tokens, cost 0.3"
inline void print_estimate(const Estimate& most) {
  std::printf("%.0f drafts: %.3g tokens", most.drafts, most.tokens);
  if (most.cost > 0) std::printf(", cost %.4g", most.cost);
}

/// The most drafts that an action may ask for.
inline int max_samples(const mtmc::LoopOptions& options, const mtmc::ActionSpace& space) {
  int most = mtmc::detail::samples_of(options, nullptr);
  for (const auto& type : space.types) most = std::max(most, mtmc::detail::samples_of(options, &type));
  return most;
}

/// What would be sent, and what it could cost.
inline Estimate show_first_request(const mtmc::CodingRequest& request, const mtmc::OpenAiCoder& coder,
                                   const Arguments& arguments, const Parts& parts) {
  const auto prompt = coder.prompt(request).text();
  const auto usual = coder.most_of(request);
  const auto most = coder.most_of_draft(request);
  const int steps = arguments.policy == "single-pass" ? 1 : arguments.loop.max_steps;
  const double drafts = static_cast<double>(steps) * max_samples(arguments.loop, parts.space) *
                        arguments.loop.beam * (1 + arguments.loop.repairs);
  const Estimate estimate{drafts, drafts * static_cast<double>(most.tokens()), drafts * most.cost};
  if (arguments.json) {
    const nlohmann::json summary{{"task", request.seen.task.name},
                                 {"action", request.action.text()},
                                 {"prompt", prompt},
                                 {"max_tokens_a_draft", most.tokens()},
                                 {"max_cost_a_draft", most.cost},
                                 {"max_drafts", estimate.drafts},
                                 {"max_tokens", estimate.tokens},
                                 {"max_cost", estimate.cost}};
    std::printf("%s\n", as_text(summary).c_str());
    return estimate;
  }
  std::printf("%s", prompt.c_str());
  if (arguments.show_prompt) return estimate;
  std::printf("----- %s: %s -----\na request takes at most %lld tokens, %lld of them for the prompt",
              request.seen.task.name.c_str(), request.action.text().c_str(),
              static_cast<long long>(usual.tokens()), static_cast<long long>(usual.prompt_tokens));
  if (usual.cost > 0) std::printf(", and costs at most %.4g", usual.cost);
  std::printf("\nif all answers are cut and asked for again with more room, the run asks for at most ");
  print_estimate(estimate);
  std::printf("\nlater prompts also tell what was tried, and are that much longer%s\n\n",
              arguments.asks_policy() ? "; what the policy asks comes on top" : "");
  return estimate;
}

/// What every task would send first, and the most that all of them could take.
inline void show_first_requests(const std::vector<mtmc::Task>& tasks, Evaluators& evaluators,
                                const Arguments& arguments, Parts& parts, const mtmc::OpenAiCoder& coder) {
  Estimate sum;
  for (const auto& task : tasks) {
    const auto one =
        show_first_request(first_request(task, evaluators, arguments, parts), coder, arguments, parts);
    sum = {sum.drafts + one.drafts, sum.tokens + one.tokens, sum.cost + one.cost};
  }
  if (tasks.size() < 2 || arguments.json || arguments.show_prompt) return;
  std::printf("all %zu tasks together: at most ", tasks.size());
  print_estimate(sum);
  std::printf("\n");
}

} // namespace command_line
