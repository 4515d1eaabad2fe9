#pragma once
/// Definitions of analysis/legality/launch_merge.hpp.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/fusion_legality.hpp>
#include <mtmc/analysis/legality/launch_merge.hpp>
#include <mtmc/analysis/syntax/launch_text.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::optional<MergedLaunches> LaunchMerger::run() {
  std::vector<SyntaxNode> blocks;
  for (const LaunchText& launch : launches_) {
    const FunctionAnalysis* function = analysis_.find_function(launch.entry);
    if (function == nullptr || launch.node->text.find("<<<") != std::string::npos) return std::nullopt;
    const auto declared = parameters(*function->node);
    if (declared.size() != launch.arguments.size() || returns_early(function_body(*function->node)))
      return std::nullopt;
    SyntaxNode block = make_block();
    for (std::size_t i = 0; i < declared.size(); ++i) {
      if (extents(declared[i]).size() > 1 || declared[i].type.find('&') != std::string::npos)
        return std::nullopt;
      const bool pointer = !extents(declared[i]).empty();
      std::string type = declared[i].type + (pointer ? "*" : "");
      block.children.push_back(
          make_declaration(type, declared[i].text, make_name(name_of(launch.arguments[i], type))));
    }
    for (const SyntaxNode& statement : function_body(*function->node).children)
      block.children.push_back(statement);
    blocks.push_back(std::move(block));
  }
  MergedLaunches result;
  result.function = make_function("void", "merged", std::move(parameters_), make_block(std::move(blocks)));
  result.launch.entry = "merged";
  result.launch.arguments = std::move(arguments_);
  return result;
}

MTMC_INLINE bool LaunchMerger::returns_early(const SyntaxNode& node) {
  if (node.kind == NodeKind::return_statement) return true;
  return std::any_of(node.children.begin(), node.children.end(), returns_early);
}

MTMC_INLINE std::string LaunchMerger::name_of(const std::string& argument, const std::string& type) {
  const auto found = std::find(arguments_.begin(), arguments_.end(), argument);
  if (found != arguments_.end())
    return parameters_[static_cast<std::size_t>(found - arguments_.begin())].text;
  std::string name = is_identifier(argument) ? argument : "argument_" + std::to_string(arguments_.size());
  arguments_.push_back(argument);
  // Who may write the buffer is told by the uses, not by the first entry's const.
  std::string own = type;
  if (own.find('*') != std::string::npos && own.starts_with("const ")) own.erase(0, 6);
  parameters_.push_back(make_parameter(std::move(own), name));
  return name;
}

/// The outermost loops of a function that stand in one of its body's blocks.
[[nodiscard]] inline std::vector<const LoopInfo*> loops_of_block(const FunctionAnalysis& function,
                                                                 const SyntaxNode& block) {
  std::vector<const LoopInfo*> result;
  for (const LoopInfo& loop : function.loops)
    if (loop.parent == nullptr && statement_position(block.children, loop.node) < block.children.size())
      result.push_back(&loop);
  return result;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::optional<MergedLaunches> merged_launches(const KernelAnalysis& analysis,
                                                          std::span<const LaunchText> launches) {
  return detail::LaunchMerger(analysis, launches).run();
}

MTMC_INLINE Legality launch_fusion_legal(const KernelAnalysis& analysis, std::span<const LaunchText> launches,
                                         const Task* task) {
  if (launches.size() < 2) return detail::declined("there is only one launch");
  const auto merged = merged_launches(analysis, launches);
  if (!merged) return detail::declined("the launched functions cannot be merged into one");
  const auto function = analysis.analyse_as_if(merged->function, merged->launch, task);
  const auto& blocks = function_body(merged->function).children;
  std::vector<const LoopInfo*> chain;
  for (std::size_t b = 0; b + 1 < blocks.size(); ++b) {
    const auto loops = detail::loops_of_block(*function, blocks[b]);
    const auto next = detail::loops_of_block(*function, blocks[b + 1]);
    if (loops.empty() || next.empty()) return detail::declined("a launch has no loop to be fused");
    if (b > 0 && loops.size() != 1) return detail::declined("a launch in the middle has several loops");
    const LoopInfo& first = *loops.back();
    const LoopInfo& second = *next.front();
    const std::span<const SyntaxNode> front(blocks[b].children);
    const std::span<const SyntaxNode> back(blocks[b + 1].children);
    const auto tail = front.subspan(detail::statement_position(front, first.node) + 1);
    const auto head = back.first(detail::statement_position(back, second.node));
    if (Legality movable = detail::movable_before(first, second, tail); !movable) return movable;
    if (Legality legal = detail::fusion_legal_between(first, second, head); !legal) return legal;
    chain.push_back(&first);
    if (b + 2 == blocks.size()) chain.push_back(&second);
  }
  // Fused with its neighbours, a loop must also go together with those further away.
  for (std::size_t a = 0; a < chain.size(); ++a)
    for (std::size_t b = a + 2; b < chain.size(); ++b)
      if (Legality legal = detail::accesses_allow_fusion(*chain[a], *chain[b]); !legal) return legal;
  return detail::allowed();
}

} // namespace mtmc
