#pragma once
/// Fusing launches on grids: what the later one does to an element is done where the earlier one makes it.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/element_match.hpp>
#include <mtmc/analysis/legality/grid_fusion.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/function_merger.hpp>
#include <mtmc/coder/transform/threads/covering_guard.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>
#include <mtmc/coder/transform/threads/epilogue_text.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/launch_forms.hpp>
#include <mtmc/coder/transform/threads/selected_stores.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
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

/// How the elements of a buffer that two launches on grids have in common go together. Throws
/// `TransformDeclined` where an element needs more than the thread that makes it.
[[nodiscard]] inline ElementMatch match_of(const TransformRequest& request, const KernelAnalysis& analysis,
                                           std::size_t position, const std::string& buffer) {
  const auto geometry = [&](const LaunchText& launch) {
    return geometry_of(launch, [&](const std::string& text) { return value_at_main_size(request, text); });
  };
  const auto texts = std::span<const LaunchText>(analysis.lines().launches).subspan(position, 2);
  if (grid_fusion_scope(analysis, texts, &request.task, geometry) != FusionScope::thread)
    throw TransformDeclined("it is not proved that only the thread that makes an element in " +
                            texts[0].entry + " is needed for it in " + texts[1].entry);
  const auto grid = [&](const LaunchText& launch) {
    return GridLaunch(launch, *analysis.find_function(launch.entry), *geometry(launch));
  };
  const GridLaunch first = grid(texts[0]), second = grid(texts[1]);
  return match_elements({first.function, first.launch, first.accesses_to(buffer)},
                        {second.function, second.launch, second.accesses_to(buffer)}, request.task);
}

/// Writes two launches that follow each other in the forms that are merged. The type of the first function,
/// as it was, with what it says of its blocks (`__launch_bounds__`): they stay.
[[nodiscard]] inline std::string prepare(const TransformRequest& request, SyntaxNode& tree,
                                         std::size_t position) {
  std::string first_type;
  for (const std::size_t launch : {position, position + 1}) {
    own_function(tree, launch);
    unite_parameters(tree, launch);
    SyntaxNode* const function = find_function(tree, launches_of(tree)[launch].line.entry);
    if (function == nullptr) continue;
    if (launch == position) first_type = function->type;
    function->type = without_launch_bounds(function->type);
    (void)nest_early_returns(*function);
    select_stores_of(*function);
    if (launch == position)
      spell_out_updates(function_body(*function));
    else
      one_element_each(tree, request.task, launch);
  }
  return first_type;
}

/// Merges two launches on grids that follow each other; `position` counts launches. The work of the second
/// stands behind the store of the first one's element, with that element's number; where it changes that
/// element, in front of the one store that is left.
inline void merge_where_made(const TransformRequest& request, SyntaxNode& tree, std::size_t position) {
  const std::string first_type = prepare(request, tree, position);
  const auto launches = launches_of(tree);
  const LaunchNode& first = launches[position];
  const LaunchNode& second = launches[position + 1];
  const KernelAnalysis analysis{tree, &request.task};
  const HandedOn handed = handed_on(analysis, first, second);
  const std::string& buffer = handed.buffer;
  const ElementMatch match = match_of(request, analysis, position, buffer);

  Action about = request.action;
  about.region = second.line.entry;
  const TransformRequest asked{request.task, request.kernel, request.device, about, tree, analysis};
  const LaterWork work = later_work(asked, buffer);
  if (match == ElementMatch::none) require_covering(asked, work.launch); // at the main size alone it was seen

  // Where subscripts alone were compared it is not known what returns leave out.
  FunctionMerger merger{tree, first.line, second.line, match != ElementMatch::none};
  const std::string name = fresh_name(tree, first.line.entry + '_' + second.line.entry);
  SyntaxNode merged = merger.take(name);
  merged.type = first_type;
  std::string array, type;
  for (std::size_t i = 0; i < merger.arguments().size(); ++i)
    if (merger.arguments()[i] == buffer) {
      array = parameters(merged)[i].text;
      type = pointed_type(parameters(merged)[i].type);
    }

  const std::string value = fresh_name(merged, buffer + "_value");
  auto& body = function_body(merged).children;
  const auto boundary = body.begin() + static_cast<std::ptrdiff_t>(merger.boundary());
  std::vector<SyntaxNode> later(std::make_move_iterator(boundary), std::make_move_iterator(body.end()));
  body.erase(boundary, body.end());
  const OnlyStore made = only_store_of(function_body(merged), array,
                                       first.line.entry + " does not store " + buffer + " in one place");
  if (match == ElementMatch::none) // the subscripts alone were compared
    require_reached(function_body(merged), made.place, first.line.entry + " stores " + buffer);

  SyntaxNode& store = *node_at(function_body(merged), made.place);
  std::vector<SyntaxNode> before;
  before.push_back(
      make_declaration(handed.changed ? type : "const " + type, value, right_operand(operand(store))));
  SyntaxNode kept = store;
  kept.leading_trivia.clear();
  right_operand(operand(kept)) = make_name(value);
  if (!handed.changed) before.push_back(kept);
  EpilogueText text(merged, merger.arguments(), work, made, array, value);
  std::vector<SyntaxNode> behind = text.statements_of(std::move(later), match != ElementMatch::among);
  if (handed.changed) behind.push_back(std::move(kept));
  if (declare_again(behind, function_body(merged))) // names that both have stay apart
    before.push_back(make_block(std::move(behind)));
  else
    for (SyntaxNode& statement : behind) before.push_back(std::move(statement));
  auto around = made.place;
  const std::size_t at = around.back();
  around.pop_back();
  replace_statement(*node_at(function_body(merged), around), at, std::move(before));
  place_merged(tree, first, second, std::move(merged), merger.arguments());
}

} // namespace mtmc::detail
