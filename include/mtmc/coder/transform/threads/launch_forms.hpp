#pragma once
/// Launches in the forms that fusion reads: a function of their own, one parameter for each buffer, plain
/// stores, one element for each thread.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/element_match.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>
#include <mtmc/coder/transform/loop_sinking.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Gives a launch a copy of its function where others launch or call the function, too; `position` counts
/// launches.
inline void own_function(SyntaxNode& tree, std::size_t position) {
  LaunchNode launch = launches_of(tree)[position];
  const std::string entry = launch.line.entry;
  if (count_launches(tree, entry) < 2 && !is_called(tree, entry)) return;
  const auto found = locate(tree, entry);
  if (found.empty() || found.front().indices.size() > 1) return;
  SyntaxNode copy = *found.front().node;
  copy.text = launch.line.entry = fresh_name(tree, entry);
  tree.children[launch.index].text = launch_line_text(launch.line);
  const auto at = static_cast<std::ptrdiff_t>(found.front().indices.front());
  tree.children.insert(tree.children.begin() + at + 1, std::move(copy));
}

/// Parameters that a function's one launch gives the same buffer become one (`relu(y, y, n)`).
inline void unite_parameters(SyntaxNode& tree, std::size_t position) {
  const auto arguments = launches_of(tree)[position].line.arguments;
  SyntaxNode* const function = find_function(tree, launches_of(tree)[position].line.entry);
  if (function == nullptr || parameters(*function).size() != arguments.size()) return;
  for (std::size_t later = arguments.size(); later-- > 1;)
    for (std::size_t first = 0; first < later; ++first) {
      SyntaxNode &kept = parameters(*function)[first], &other = parameters(*function)[later];
      const bool pointers =
          kept.type.find('*') != std::string::npos && other.type.find('*') != std::string::npos;
      if (arguments[first] != arguments[later] || !pointers ||
          pointed_type(kept.type) != pointed_type(other.type))
        continue;
      const NameSet changed = assigned_scalars(function_body(*function));
      if (has_name(changed, kept.text) || has_name(changed, other.text)) continue;
      const auto reads_only = [](const std::string& type) {
        return type.substr(0, type.find('*')).find("const") != std::string::npos;
      };
      if (reads_only(kept.type)) kept.type = other.type;
      const std::string name = kept.text, gone = other.text;
      rename(function_body(*function), gone, name);
      remove_parameter(tree, *function, gone);
      break;
    }
}

/// Writes `a[i] += v;` as `a[i] = a[i] + v;`.
inline void spell_out_updates(SyntaxNode& node) {
  for (SyntaxNode& child : node.children) spell_out_updates(child);
  if (node.kind != NodeKind::expression_statement || operand(node).kind != NodeKind::assignment) return;
  SyntaxNode& update = operand(node);
  const std::string symbol = update.text.substr(0, update.text.size() - 1);
  if ((symbol != "+" && symbol != "-" && symbol != "*" && symbol != "/") ||
      left_operand(update).kind != NodeKind::subscript)
    return;
  bool plain = true;
  walk(left_operand(update), [&](const SyntaxNode& part) {
    plain = plain && part.kind != NodeKind::assignment && part.kind != NodeKind::call &&
            part.kind != NodeKind::opaque && part.text != "++" && part.text != "--";
  });
  if (!plain) return;
  right_operand(update) = make_binary(symbol, left_operand(update), right_operand(update));
  update.text = "=";
}

/// Writes a function whose threads go through elements in steps of the grid,
/// `for (int n = first; n < count; n += blockDim.x * gridDim.x) work`, as `int n = first; if (n < count)
/// work` for one thread each, where the iterations have nothing to do with each other.
inline void one_element_each(SyntaxNode& tree, const Task& task, std::size_t position) {
  LaunchNode launch = launches_of(tree)[position];
  const KernelAnalysis analysis{tree, &task};
  const FunctionAnalysis* const known = analysis.find_function(launch.line.entry);
  SyntaxNode* const function = find_function(tree, launch.line.entry);
  if (known == nullptr || launch.line.grid.size() != 1 || launch.line.block.size() != 1) return;
  const LoopInfo* const info = loop_of_grid(*known);
  if (info == nullptr || !writes_each_once(*known, analysis.lines().launches[position], *info, task)) return;
  SyntaxNode& body = function_body(*function);
  SyntaxNode& loop = body.children.back();
  if (loop_init(loop).kind != NodeKind::declaration) return;
  const SyntaxNode& declarator = declarators(loop_init(loop)).front();
  const SyntaxNode* const first = initial_value(declarator);
  if (first == nullptr || !is_number_of_thread(*first, launch.line.block.front(), 0)) return;
  bool leaves = false;
  NameSet declared;
  walk(loop_body(loop), [&](const SyntaxNode& node) {
    leaves = leaves || node.kind == NodeKind::break_statement || node.kind == NodeKind::continue_statement ||
             node.kind == NodeKind::return_statement;
    if (node.kind == NodeKind::declarator) add_name(declared, node.text);
  });
  const NameSet assigned = assigned_scalars(loop_body(loop));
  const bool carried = std::any_of(assigned.begin(), assigned.end(),
                                   [&](const std::string& name) { return !has_name(declared, name); });
  bool known_before = true; // the count, when the line is launched
  walk(right_operand(loop_condition(loop)), [&](const SyntaxNode& node) {
    const auto formal = parameters(*function);
    known_before = known_before &&
                   (node.kind != NodeKind::name ||
                    std::any_of(formal.begin(), formal.end(),
                                [&](const SyntaxNode& parameter) { return parameter.text == node.text; }));
  });
  if (leaves || carried || !known_before) return;
  ThreadLaunch words;
  words.function = known;
  words.line = launch.line;
  const std::string count = print(words.in_launch_words(right_operand(loop_condition(loop))));
  launch.line.grid = {"ceil_div(" + count + ", " + launch.line.block.front() + ')'};
  SyntaxNode number = loop_init(loop);
  number.kind = NodeKind::declaration;
  SyntaxNode branch = make_if(loop_condition(loop), as_block(loop_body(loop)));
  branch.leading_trivia.clear();
  number.leading_trivia = loop.leading_trivia;
  replace_statement(body, body.children.size() - 1, {std::move(number), std::move(branch)});
  tree.children[launch.index].text = launch_line_text(launch.line);
}

} // namespace mtmc::detail
