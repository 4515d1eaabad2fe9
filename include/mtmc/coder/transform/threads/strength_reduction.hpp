#pragma once
/// Strength reduction: cheaper instructions in a region and in the functions that it calls.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/cheap_instructions.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The functions of the kernel that a piece of it calls, directly or not.
[[nodiscard]] inline std::vector<const FunctionAnalysis*> called_functions(const KernelAnalysis& analysis,
                                                                           const SyntaxNode& piece) {
  std::vector<const FunctionAnalysis*> found;
  const std::function<void(const SyntaxNode&)> add = [&](const SyntaxNode& node) {
    walk(node, [&](const SyntaxNode& call) {
      if (call.kind != NodeKind::call || callee(call).kind != NodeKind::name) return;
      const FunctionAnalysis* const function = analysis.find_function(callee(call).text);
      if (function == nullptr || std::find(found.begin(), found.end(), function) != found.end()) return;
      found.push_back(function);
      add(function_body(*function->node));
    });
  };
  add(piece);
  return found;
}

/// The tree with cheaper instructions in the action's region and in the functions that it calls.
[[nodiscard]] inline SyntaxNode with_cheap_instructions(const TransformRequest& request,
                                                        const CheapRules& rules) {
  SyntaxNode tree = request.tree;
  std::vector<std::size_t> place;
  const FunctionAnalysis* function = nullptr;
  if (request.action.region.find("/threads:") != std::string::npos) {
    const ThreadLaunch launch = thread_launch(request);
    function = launch.function;
    place = launch.function_at;
  } else {
    const LoopTarget target = find_loop(request);
    function = target.loop->function;
    place = target.indices;
  }
  ThreadLaunch around;
  around.function_at = locate(request.tree, function->path).front().indices;
  std::vector<std::string> functions;
  const auto rewriter_of = [&](const FunctionAnalysis& one) {
    SyntaxNode names = visible_names(request.tree, locate(request.tree, one.path).front().indices);
    names.children.back().leading_trivia.clear();
    return CheapInstructions(one, names, rules);
  };
  const auto note = [&](const CheapInstructions& rewriter) {
    functions.insert(functions.end(), rewriter.functions().begin(), rewriter.functions().end());
  };
  for (const FunctionAnalysis* called : called_functions(request.analysis, *node_at(tree, place))) {
    if (called == function) continue;
    CheapInstructions rewriter = rewriter_of(*called);
    rewriter.rewrite(function_body(*node_at(tree, locate(tree, called->path).front().indices)));
    note(rewriter);
  }
  CheapInstructions rewriter = rewriter_of(*function);
  std::vector<SyntaxNode> statements;
  if (rules.reciprocal && is_loop(node_at(tree, place)->kind))
    rewriter.take_reciprocals(*node_at(tree, place), statements);
  rewriter.rewrite(*node_at(tree, place));
  note(rewriter);
  if (!statements.empty()) {
    SyntaxNode loop = *node_at(tree, place);
    SyntaxNode& parent = parent_at(tree, place);
    std::size_t index = place.back();
    for (SyntaxNode& pragma : take_pragmas_before(parent, index)) statements.push_back(std::move(pragma));
    loop.leading_trivia.clear();
    statements.push_back(std::move(loop));
    replace_statement(parent, index, std::move(statements));
  }
  for (const std::string& text : functions) {
    const std::string head = text.substr(0, text.find('('));
    const std::string name = head.substr(head.rfind(' ') + 1);
    if (find_function(tree, name) == nullptr) around.add_function(tree, text);
  }
  return tree;
}

/// Cheaper instructions in a region: all that keep the result to a few units in the last place; then also
/// reciprocals of what a loop does not change; then also quick quotients; then what keeps double precision.
[[nodiscard]] inline SyntaxNode reduce_strength(const TransformRequest& request) {
  const CheapRules ways[] = {{}, {true, true, false}, {true, true, true}, {false, false, false}};
  std::vector<SyntaxNode> variants;
  std::vector<std::string> texts{print(request.tree)};
  for (const CheapRules& rules : ways) {
    SyntaxNode tree = with_cheap_instructions(request, rules);
    std::string text = print(tree);
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
    texts.push_back(std::move(text));
    variants.push_back(std::move(tree));
  }
  if (variants.empty()) throw TransformDeclined("no cheaper instructions for what it computes are known");
  return choose_variant(variants, request.variant);
}

} // namespace mtmc::detail
