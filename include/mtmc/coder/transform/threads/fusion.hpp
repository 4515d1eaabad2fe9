#pragma once
/// Fusing launches on grids: what the later one does to an element is done where the earlier one makes it.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/grid_fusion.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/function_merger.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/selected_stores.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A buffer that one launch makes and the next one reads.
struct HandedOn {
  std::string buffer{};
  bool changed = false; ///< by the second, in place
};

/// The buffer that the first of two launches makes and the second reads. Throws `TransformDeclined` unless
/// there is just one, and the second changes no other one that the first makes.
[[nodiscard]] inline HandedOn handed_on(const KernelAnalysis& analysis, const LaunchNode& first,
                                        const LaunchNode& second) {
  const auto buffers = [&](const LaunchNode& launch, bool written) {
    std::set<std::string> names;
    const FunctionAnalysis* const function = analysis.find_function(launch.line.entry);
    if (function == nullptr)
      throw TransformDeclined("the function " + launch.line.entry + " is not in the kernel");
    const auto formal = parameters(*function->node);
    for (const Access& access : function->accesses)
      for (std::size_t i = 0; i < formal.size() && i < launch.line.arguments.size(); ++i)
        if (access.write == written && access.array->variable->name == formal[i].text)
          names.insert(launch.line.arguments[i]);
    return names;
  };
  const auto made = buffers(first, true), read = buffers(second, false), changed = buffers(second, true);
  HandedOn found;
  for (const std::string& name : made) {
    if (!read.contains(name) && changed.contains(name))
      throw TransformDeclined(second.line.entry + " changes " + name);
    if (!read.contains(name)) continue;
    if (!found.buffer.empty())
      throw TransformDeclined(first.line.entry + " makes " + found.buffer + " and " + name + " for " +
                              second.line.entry);
    found = {name, changed.contains(name)};
  }
  if (found.buffer.empty())
    throw TransformDeclined(second.line.entry + " reads nothing that " + first.line.entry + " makes");
  return found;
}

/// The uses of an array in a statement: how often it is subscripted, and how often it occurs at all.
struct ArrayUses {
  std::size_t subscripts = 0;
  std::size_t all = 0;
};
[[nodiscard]] inline ArrayUses uses_of(const SyntaxNode& statement, const std::string& array) {
  ArrayUses uses;
  walk(statement, [&](const SyntaxNode& node) {
    if (is_name(node, array)) ++uses.all;
    if (node.kind == NodeKind::subscript && is_name(subscript_base(node), array)) ++uses.subscripts;
    if (node.kind == NodeKind::opaque && uses_name(node, array)) uses.all += 2;
  });
  return uses;
}

/// The one statement `array[...] = value;` below `node`, by child indices; empty if there is none.
[[nodiscard]] inline std::vector<std::size_t> store_into(const SyntaxNode& node, const std::string& array) {
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const SyntaxNode& child = node.children[i];
    if (child.kind == NodeKind::expression_statement && operand(child).kind == NodeKind::assignment &&
        operand(child).text == "=" && left_operand(operand(child)).kind == NodeKind::subscript &&
        is_name(subscript_base(left_operand(operand(child))), array))
      return {i};
    auto below = store_into(child, array);
    if (below.empty()) continue;
    below.insert(below.begin(), i);
    return below;
  }
  return {};
}

/// Throws `TransformDeclined` unless every thread that has work gets to a statement: the branches around it
/// are limits of the threads' numbers, one for each, and no iteration is cut short.
inline void require_reached(const SyntaxNode& body, const std::vector<std::size_t>& place,
                            const std::string& what) {
  const auto is_number = [&](const SyntaxNode& name) {
    return std::any_of(body.children.begin(), body.children.end(), [&](const SyntaxNode& statement) {
      return statement.kind == NodeKind::declaration && names_thread(statement) &&
             std::any_of(statement.children.begin(), statement.children.end(),
                         [&](const SyntaxNode& declarator) { return declarator.text == name.text; });
    });
  };
  std::set<std::string> limited;
  const std::function<bool(const SyntaxNode&)> is_limit = [&](const SyntaxNode& condition) {
    if (condition.kind != NodeKind::binary) return false;
    if (condition.text == "&&")
      return is_limit(left_operand(condition)) && is_limit(right_operand(condition));
    const bool below = condition.text == "<" || condition.text == "<=";
    if (!below && condition.text != ">" && condition.text != ">=") return false;
    const SyntaxNode& number = below ? left_operand(condition) : right_operand(condition);
    return number.kind == NodeKind::name && is_number(number) && limited.insert(number.text).second;
  };
  const SyntaxNode* node = &body;
  for (const std::size_t index : place) {
    bool cut = false;
    if (is_loop(node->kind))
      walk(*node, [&](const SyntaxNode& inner) {
        cut = cut || inner.kind == NodeKind::break_statement || inner.kind == NodeKind::continue_statement;
      });
    const bool branch =
        node->kind == NodeKind::if_statement && (index != 1 || !is_limit(if_condition(*node)));
    if (cut || branch)
      throw TransformDeclined(what + (cut ? " in a loop that is cut short" : " under a condition"));
    node = &node->children[index];
  }
}

/// Merges two launches on grids that follow each other; `position` counts launches. The work of the second
/// stands behind the store of the first one's element, with that element's number; where it changes that
/// element, in front of the one store that is left.
inline void merge_where_made(const TransformRequest& request, SyntaxNode& tree, std::size_t position) {
  const auto launches = launches_of(tree);
  const LaunchNode& first = launches[position];
  const LaunchNode& second = launches[position + 1];
  for (const LaunchNode* launch : {&first, &second})
    if (SyntaxNode* const function = find_function(tree, launch->line.entry)) {
      (void)nest_early_returns(*function);
      select_stores_of(*function);
    }
  const KernelAnalysis analysis{tree, &request.task};
  const auto geometry = [&](const LaunchText& launch) {
    return geometry_of(launch, [&](const std::string& text) { return value_at_main_size(request, text); });
  };
  const std::span<const LaunchText> texts(analysis.lines().launches);
  if (grid_fusion_scope(analysis, texts.subspan(position, 2), &request.task, geometry) != FusionScope::thread)
    throw TransformDeclined("it is not proved that only the thread that makes an element in " +
                            first.line.entry + " is needed for it in " + second.line.entry);
  const HandedOn handed = handed_on(analysis, first, second);
  const std::string& buffer = handed.buffer;

  Action about = request.action;
  about.region = second.line.entry;
  const TransformRequest asked{request.task, request.kernel, request.device, about, tree, analysis};
  const ThreadLaunch consumer = thread_launch(asked);
  require_one_axis(consumer);
  const ThreadIndex index = thread_index(consumer);
  const GuardedBody work = guarded_body(consumer, index);
  if (index.statement > 0 || (work.guarded && !work.nested))
    throw TransformDeclined("what the threads of " + second.line.entry + " do is not one branch");

  FunctionMerger merger{tree, first.line, second.line};
  const std::string name = fresh_name(tree, first.line.entry + '_' + second.line.entry);
  SyntaxNode merged = merger.take(name);
  std::string array;
  for (std::size_t i = 0; i < merger.arguments().size(); ++i)
    if (merger.arguments()[i] == buffer) array = parameters(merged)[i].text;

  const std::string value = fresh_name(merged, buffer + "_value");
  auto& body = function_body(merged).children;
  const auto boundary = body.begin() + static_cast<std::ptrdiff_t>(merger.boundary());
  std::vector<SyntaxNode> later(std::make_move_iterator(boundary), std::make_move_iterator(body.end()));
  body.erase(boundary, body.end());
  const auto place = store_into(function_body(merged), array);
  ArrayUses made;
  for (const SyntaxNode& statement : body) {
    const ArrayUses one = uses_of(statement, array);
    made.subscripts += one.subscripts;
    made.all += one.all;
  }
  const std::string several = first.line.entry + " does not store " + buffer + " in one place";
  if (place.empty() || made.subscripts != made.all) throw TransformDeclined(several);
  require_reached(function_body(merged), place, first.line.entry + " stores " + buffer);
  SyntaxNode& store = *node_at(function_body(merged), place);
  const SyntaxNode element = left_operand(operand(store));
  std::size_t own_uses = 0; // what it was before it was made anew
  walk(right_operand(operand(store)),
       [&](const SyntaxNode& node) { own_uses += structurally_equal(node, element) ? 1U : 0U; });
  if (made.all != 1 + own_uses) throw TransformDeclined(several);

  if (const std::string& taken = declarators(later[index.statement]).front().text;
      uses_name(element, taken)) {
    const std::string other = fresh_name(merged, taken), before = taken;
    for (SyntaxNode& statement : later) rename(statement, before, other);
  }
  const SyntaxNode number = declarators(later[index.statement]).front();
  const SyntaxNode own = make_subscript(make_name(array), make_name(number.text));
  std::string type;
  for (const SyntaxNode& parameter : parameters(merged))
    if (parameter.text == array) type = pointed_type(parameter.type);
  std::vector<SyntaxNode> before, behind;
  before.push_back(
      make_declaration(handed.changed ? type : "const " + type, value, right_operand(operand(store))));
  SyntaxNode kept = store;
  kept.leading_trivia.clear();
  right_operand(operand(kept)) = make_name(value);
  if (!handed.changed) before.push_back(kept);
  SyntaxNode counted = later[index.statement];
  initializer(declarators(counted).front())->children.front() = subscript_index(element);
  behind.push_back(std::move(counted));
  const auto add = [&](SyntaxNode statement) {
    walk(statement, [&](SyntaxNode& node) {
      if (node.kind == NodeKind::unary && node.text == "&" && structurally_equal(operand(node), own))
        throw TransformDeclined(second.line.entry + " takes the address of an element of " + buffer);
      if (!structurally_equal(node, own)) return true;
      node = make_name(value);
      return false;
    });
    if (uses_of(statement, array).all > 0)
      throw TransformDeclined(second.line.entry + " reads other elements of " + buffer);
    behind.push_back(std::move(statement));
  };
  for (std::size_t i = index.statement + 1; i < work.first; ++i) add(std::move(later[i]));
  if (work.nested) {
    SyntaxNode& branch = later[work.first];
    const SyntaxNode& condition = if_condition(branch);
    // That the element is there is certain now.
    const bool only_inside = condition.kind == NodeKind::binary && condition.text == "<" &&
                             is_name(left_operand(condition), number.text);
    if (only_inside)
      for (SyntaxNode& statement : statements(then_branch(branch))) add(std::move(statement));
    else
      add(std::move(branch));
  } else {
    for (std::size_t i = work.first; i < later.size(); ++i) add(std::move(later[i]));
  }
  if (handed.changed) behind.push_back(std::move(kept));
  // Names that both have stay apart.
  const bool clash = std::any_of(behind.begin(), behind.end(), [&](const SyntaxNode& statement) {
    return statement.kind == NodeKind::declaration &&
           std::any_of(statement.children.begin(), statement.children.end(), [&](const SyntaxNode& one) {
             bool there = false;
             walk(function_body(merged), [&](const SyntaxNode& node) {
               there = there || (node.kind == NodeKind::declarator && node.text == one.text);
             });
             return there;
           });
  });
  if (clash)
    before.push_back(make_block(std::move(behind)));
  else
    for (SyntaxNode& statement : behind) before.push_back(std::move(statement));
  auto around = place;
  const std::size_t at = around.back();
  around.pop_back();
  replace_statement(*node_at(function_body(merged), around), at, std::move(before));
  place_merged(tree, first, second, std::move(merged), merger.arguments());
}

} // namespace mtmc::detail
