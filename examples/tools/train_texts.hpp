#pragma once
// Trees with their texts as files, for trainers that want files.

#include <mtmc/train.hpp>

#include <cstdio>
#include <string>
#include <utility>

#include "train_arguments.hpp"
#include "train_data.hpp"

namespace command_line {

/// A kernel of a tree as its first state: the prompt of an episode that begins there, and what is known of
/// each action. The kernel has a sight with all of its actions.
inline nlohmann::json node_with_texts(const mtmc::KernelTree& tree, const mtmc::TreeNode& node,
                                      const mtmc::KernelTexts& texts, const mtmc::PolicyCard& card,
                                      int step_limit) {
  nlohmann::json line{{"kernel", node.kernel},
                      {"log2_speed_up", node.log2_speed_up},
                      {"deviation", node.deviation},
                      {"edges", nlohmann::json::array()}};
  const auto* const sight = texts.sight(tree, node.kernel);
  if (sight == nullptr) return line; // a kernel on which nothing was tried
  auto seen = texts.observation(*sight);
  seen.step_limit = step_limit;
  auto prompt = mtmc::policy_prompt(card, seen, sight->legal);
  for (std::size_t i = 0; i < sight->legal.size(); ++i)
    if (const auto* const edge = node.edge(sight->legal[i].key()))
      line["edges"].push_back({{"text", prompt.continuations[i]}, {"outcomes", edge->outcomes}});
  line["prompt"] = std::move(prompt.context);
  return line;
}

/// Writes `texts.jsonl`, and `trees.jsonl`: a tree a line, its kernels with their prompts.
inline void export_texts(const TrainArguments& arguments, const mtmc::DataSet& set,
                         const mtmc::KernelTexts& texts) {
  mtmc::write_kernel_texts(texts, arguments.output + "/texts.jsonl");
  const auto card = card_of(arguments);
  const auto parts = mtmc::split_by_task(set, arguments.held_out, arguments.split_seed);
  std::string lines;
  std::size_t count = 0;
  const auto add = [&](const mtmc::KernelTree& tree, bool held_out) {
    if (!mtmc::has_texts(texts, tree)) return;
    nlohmann::json line{{"task", tree.task},
                        {"device", tree.device},
                        {"held_out", held_out},
                        {"best", mtmc::ExactValues(tree, arguments.rules()).value({})},
                        {"nodes", nlohmann::json::array()}};
    for (const auto& node : tree.nodes)
      line["nodes"].push_back(node_with_texts(tree, node, texts, card, arguments.step_limits.front()));
    lines += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
    ++count;
  };
  for (const auto& tree : parts.first.trees) add(tree, false);
  for (const auto& tree : parts.second.trees) add(tree, true);
  mtmc::write_training_file(arguments.output + "/trees.jsonl", lines);
  std::printf("texts of %zu kernels and %zu trees\n", texts.size(), count);
}

} // namespace command_line
