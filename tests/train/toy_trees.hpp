#pragma once
/// Small trees by hand and by chance.

#include <mtmc/support/philox.hpp>
#include <mtmc/train/kernel_tree.hpp>

#include <string>

namespace toy {

/// start --a--> twice as fast (2 of 3) or no compile (1 of 3); --b--> 1.2 times; behind b: --c--> 8 times.
inline mtmc::KernelTree three_ways() {
  using mtmc::StepStage;
  mtmc::KernelTree tree;
  tree.task = "three ways";
  tree.nodes = {{"start", 0, 0, {"a", "b", "d"}, {}},
                {"twice", 1, 0, {}, {}},
                {"little", 0.2630344, 0, {"c"}, {}},
                {"eight", 3, 0, {}, {}}};
  tree.nodes[0].edges = {{"a", {{StepStage::correct, 1, 2}, {StepStage::not_compiled, -1, 1}}},
                         {"b", {{StepStage::correct, 2, 1}}}};
  tree.nodes[2].edges = {{"c", {{StepStage::correct, 3, 1}, {StepStage::wrong, -1, 1}}}};
  return tree;
}

/// A tree of that many kernels, up to four actions each, with failures and paths that meet.
inline mtmc::KernelTree random_tree(std::uint64_t seed, int kernels) {
  using mtmc::StepStage;
  mtmc::PhiloxEngine random{seed};
  mtmc::KernelTree tree;
  tree.task = "tree " + std::to_string(seed);
  for (int i = 0; i < kernels; ++i)
    tree.nodes.push_back(
        {"kernel " + std::to_string(i), i == 0 ? 0 : 3 * random.uniform() - 0.8, 0.01, {}, {}});
  for (int i = 1; i < kernels; ++i) {
    auto& parent = tree.nodes[static_cast<std::size_t>(random.uniform() * i)];
    const std::string action =
        std::string(1, static_cast<char>('a' + static_cast<int>(4 * random.uniform())));
    auto edge = std::find_if(parent.edges.begin(), parent.edges.end(),
                             [&](const auto& one) { return one.action == action; });
    if (edge == parent.edges.end()) edge = parent.edges.insert(edge, mtmc::TreeEdge{action});
    edge->outcomes.push_back({StepStage::correct, i, 1 + static_cast<int>(3 * random.uniform())});
    if (random.uniform() < 0.4)
      edge->outcomes.push_back({random.uniform() < 0.5 ? StepStage::wrong : StepStage::not_compiled, -1, 1});
    if (random.uniform() < 0.2)
      edge->outcomes.push_back({StepStage::correct, static_cast<int>(random.uniform() * kernels), 1});
  }
  return tree;
}

} // namespace toy
