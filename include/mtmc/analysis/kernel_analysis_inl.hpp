#pragma once
/// Definitions of analysis/kernel_analysis.hpp.

#include <mtmc/analysis/dependence/dependence.hpp>
#include <mtmc/analysis/flow/flow_builder.hpp>
#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/flow/guard_bounds.hpp>
#include <mtmc/analysis/flow/loop_head.hpp>
#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/launch_text.hpp>
#include <mtmc/analysis/syntax/macro_definition.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE KernelAnalysis::KernelAnalysis(const SyntaxNode& tree, const Task* task, WorkBudget budget)
    : lines_(launch_texts(tree)), effects_(std::make_unique<CallEffects>(tree)),
      budget_(std::make_shared<WorkBudget>(budget)) {
  for (const LaunchText& launch : lines_.launches) launches_of_[launch.entry].push_back(launch);
  collect_constants(tree);
  collect(tree);
  for (const auto& function : functions_) analyse(*function, launches_of(function->name), task);
}

MTMC_INLINE std::span<const std::unique_ptr<FunctionAnalysis>> KernelAnalysis::functions() const noexcept {
  return functions_;
}

MTMC_INLINE const FunctionAnalysis* KernelAnalysis::find_function(std::string_view name) const noexcept {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

MTMC_INLINE const LoopInfo* KernelAnalysis::find_loop(std::string_view path) const noexcept {
  for (const auto& function : functions_) {
    if (!path.starts_with(function->path)) continue;
    for (const LoopInfo& loop : function->loops)
      if (loop.path == path) return &loop;
  }
  return nullptr;
}

MTMC_INLINE const LoopInfo* KernelAnalysis::find_loop(const SyntaxNode& loop_node) const noexcept {
  for (const auto& function : functions_)
    if (const LoopInfo* loop = function->find_loop(loop_node); loop != nullptr) return loop;
  return nullptr;
}

MTMC_INLINE std::span<const LaunchText> KernelAnalysis::launches_of(const std::string& entry) const noexcept {
  const auto found = launches_of_.find(entry);
  return found == launches_of_.end() ? std::span<const LaunchText>{} : std::span(found->second);
}

MTMC_INLINE std::unique_ptr<FunctionAnalysis> KernelAnalysis::analyse_as_if(const SyntaxNode& function_node,
                                                                            const LaunchText& launch,
                                                                            const Task* task) const {
  auto function = std::make_unique<FunctionAnalysis>();
  function->node = &function_node;
  function->name = function->path = function_node.text;
  function->budget = budget_;
  analyse(*function, std::span(&launch, 1), task);
  return function;
}

MTMC_INLINE void KernelAnalysis::collect(const SyntaxNode& node) {
  for (const SyntaxNode& child : node.children) {
    if (child.kind == NodeKind::scope) collect(child);
    if (child.kind != NodeKind::function) continue;
    auto function = std::make_unique<FunctionAnalysis>();
    function->node = &child;
    function->name = child.text;
    function->path = child.text;
    if (const int number = ++names_[child.text]; number > 1) function->path += '#' + std::to_string(number);
    function->budget = budget_;
    functions_.push_back(std::move(function));
    by_name_.emplace(functions_.back()->name, functions_.back().get());
  }
}

MTMC_INLINE void KernelAnalysis::collect_constants(const SyntaxNode& node) {
  for (const SyntaxNode& child : node.children) {
    if (child.kind == NodeKind::scope) collect_constants(child);
    if (child.kind == NodeKind::declaration && type_facts(child.type).constant)
      for (const SyntaxNode& declarator : child.children)
        if (const SyntaxNode* value = initial_value(declarator);
            value != nullptr && value->kind == NodeKind::literal && extents(declarator).empty())
          if (const auto number = detail::integer_literal(value->text)) constants_[declarator.text] = *number;
    if (child.kind != NodeKind::preprocessor) continue;
    if (const auto macro = detail::macro_definition(child.text))
      if (const auto number = detail::integer_literal(trim(macro->meaning)))
        constants_[macro->name] = *number;
  }
}

MTMC_INLINE void KernelAnalysis::analyse(FunctionAnalysis& function, std::span<const LaunchText> launches,
                                         const Task* task) const {
  detail::ParameterFacts facts;
  const std::size_t count = parameters(*function.node).size();
  for (std::size_t i = 0; i < count; ++i) facts.same_buffer.push_back(i);
  bool launched = false;
  for (const LaunchText& launch : launches) {
    if (launch.entry != function.name) continue;
    launched = true;
    for (std::size_t j = 0; j < count && j < launch.arguments.size(); ++j)
      for (std::size_t i = 0; i < j; ++i)
        if (launch.arguments[i] == launch.arguments[j]) {
          facts.same_buffer[j] = facts.same_buffer[i];
          break;
        }
  }
  facts.may_overlap = !launched && effects_->called(function.name);
  const detail::AssignmentIndex assignments(*function.node, *effects_);
  const detail::FileConstants constants = with_launch_constants(function.name, launches);
  detail::FlowBuilder builder(function, *effects_, assignments, constants);
  builder.build(facts);
  if (launched) assume(function, builder, launches, task);
  detail::DependenceFinder(function).run();
}

MTMC_INLINE detail::FileConstants
KernelAnalysis::with_launch_constants(const std::string& name, std::span<const LaunchText> launches) const {
  detail::FileConstants constants = constants_;
  for (int axis = 0; axis < 3; ++axis) {
    const auto add = [&](std::string_view symbol, const std::vector<std::string> LaunchText::* extents) {
      std::optional<std::int64_t> value;
      for (const LaunchText& launch : launches) {
        if (launch.entry != name || (launch.*extents).empty()) continue;
        const auto at = static_cast<std::size_t>(axis);
        const auto own = at < (launch.*extents).size() ? detail::integer_literal((launch.*extents)[at]) : 1;
        if (!own || (value && *value != *own)) return;
        value = own;
      }
      if (value) constants[symbol] = *value;
    };
    add(detail::block_extent_names[static_cast<std::size_t>(axis)], &LaunchText::block);
    add(detail::grid_extent_names[static_cast<std::size_t>(axis)], &LaunchText::grid);
  }
  return constants;
}

MTMC_INLINE void KernelAnalysis::assume(FunctionAnalysis& function, const detail::FlowBuilder& builder,
                                        std::span<const LaunchText> launches, const Task* task) const {
  // The task's symbol that each integer parameter is given, if it is one and the same in all launches.
  std::unordered_map<std::string, const Symbol*> symbols;
  const auto given = parameters(*function.node);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Symbol* symbol = builder.parameter_symbol(given[i].text);
    if (symbol == nullptr) continue;
    std::string name;
    bool same = true;
    for (const LaunchText& launch : launches) {
      if (launch.entry != function.name || i >= launch.arguments.size()) continue;
      std::string value = launch.arguments[i];
      if (const Argument* argument = task == nullptr ? nullptr : task->find_argument(value);
          argument != nullptr && !argument->value.empty())
        value = argument->value;
      same = same && (name.empty() || name == value);
      name = std::move(value);
    }
    if (same && is_identifier(name)) symbols.emplace(std::move(name), symbol);
  }
  const auto value_of = [&symbols](const std::string& name) {
    const auto found = symbols.find(name);
    return found == symbols.end() ? Polynomial::undefined() : Polynomial(found->second);
  };
  const auto add = [&](const std::vector<std::string>& shape) {
    for (const std::string& extent : shape) {
      Polynomial least = detail::SizeReader(extent, value_of).read() - Polynomial(1);
      if (least.defined() && !least.constant()) function.assumptions.push_back(std::move(least));
    }
  };
  if (task != nullptr)
    for (const Argument& argument : task->arguments) add(argument.shape);
  for (const ScratchText& scratch : lines_.scratch) add(scratch.extents);
}

} // namespace mtmc
