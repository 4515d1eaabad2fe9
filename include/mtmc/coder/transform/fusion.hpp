#pragma once
/// Fusion: neighbouring loops become one, neighbouring launches one launch, so that intermediate results need
/// not go through memory.

#include <mtmc/coder/transform/directives.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/store_forwarding.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Fuses loops of one tree, which it edits, and the loops inside them.
class LoopFuser {
public:
  LoopFuser(SyntaxNode& tree, const Task& task) : tree_(tree), task_(task) {}

  /// Fuses the loops at two positions of a block (given by child indices from the root), between which only
  /// declarations, comments and pragmas stand. Throws `TransformDeclined` if that is not legal.
  void fuse(const std::vector<std::size_t>& block, std::size_t first, std::size_t second) {
    require_legal(legality(block, first, second));
    SyntaxNode& parent = *node_at(tree_, block);
    std::size_t loop_at = join(parent, first, second);
    SyntaxNode& loop = parent.children[loop_at];
    std::vector<std::size_t> body = block;
    body.insert(body.end(), {loop_at, loop.children.size() - 1});
    fuse_inside(body);
    SyntaxNode& function = enclosing_function(block);
    if (!has_aliased_arguments(tree_, function)) {
      auto& list = node_at(tree_, body)->children;
      forward_stores(list, function, tree_);
    }
  }

private:
  [[nodiscard]] Legality legality(const std::vector<std::size_t>& block, std::size_t first,
                                  std::size_t second) const {
    const KernelAnalysis analysis{tree_, &task_};
    const SyntaxNode& parent = *node_at(std::as_const(tree_), block);
    const LoopInfo* const a = analysis.find_loop(parent.children[first]);
    const LoopInfo* const b = analysis.find_loop(parent.children[second]);
    if (a == nullptr || b == nullptr) return {false, "the region is no pair of loops"};
    if (!a->understood || !b->understood) return {false, "a loop contains something that was not understood"};
    return fusion_legal(*a, *b);
  }

  [[nodiscard]] SyntaxNode& enclosing_function(const std::vector<std::size_t>& indices) {
    SyntaxNode* node = &tree_;
    for (const std::size_t index : indices) {
      node = &node->children[index];
      if (node->kind == NodeKind::function) break;
    }
    return *node;
  }

  /// Joins two loops of a block; returns where the joined one stands. Notes where the second body begins.
  [[nodiscard]] std::size_t join(SyntaxNode& parent, std::size_t first, std::size_t second) {
    auto second_pragmas = take_pragmas_before(parent, second);
    SyntaxNode consumer = std::move(parent.children[second]);
    std::vector<SyntaxNode> between;
    for (std::size_t i = first + 1; i < second; ++i) between.push_back(std::move(parent.children[i]));
    parent.children.erase(parent.children.begin() + static_cast<std::ptrdiff_t>(first + 1),
                          parent.children.begin() + static_cast<std::ptrdiff_t>(second + 1));
    auto pragmas = take_pragmas_before(parent, first);
    SyntaxNode& producer = parent.children[first];
    merge_pragmas(pragmas, std::move(second_pragmas));

    std::vector<SyntaxNode> body = body_of(producer);
    std::vector<SyntaxNode> more = body_of(consumer);
    const std::string variable = loop_component(producer);
    const std::string other = loop_component(consumer);
    for (SyntaxNode& statement : more) {
      if (other == variable) continue;
      if (uses_name(statement, variable))
        throw TransformDeclined("the second loop uses another `" + variable + '`');
      substitute(statement, other, make_name(variable));
    }
    rename_clashes(body, more);
    boundary_ = body.size();
    if (!more.empty() && !consumer.leading_trivia.empty())
      more.front().leading_trivia =
          without_blank_lines(consumer.leading_trivia) + more.front().leading_trivia;
    body.insert(body.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    loop_body(producer) = make_block(std::move(body));
    if (!pragmas.empty() && !between.empty())
      std::swap(between.front().leading_trivia, producer.leading_trivia);
    const std::size_t added = between.size() + pragmas.size();
    between.insert(between.end(), std::make_move_iterator(pragmas.begin()),
                   std::make_move_iterator(pragmas.end()));
    parent.children.insert(parent.children.begin() + static_cast<std::ptrdiff_t>(first),
                           std::make_move_iterator(between.begin()), std::make_move_iterator(between.end()));
    return first + added;
  }

  [[nodiscard]] static std::string without_blank_lines(std::string trivia) {
    while (trivia.starts_with('\n')) trivia.erase(0, 1);
    return trivia;
  }

  /// Both loops must be spread over threads alike; hints for vectors stay only if they are the same.
  static void merge_pragmas(std::vector<SyntaxNode>& first, std::vector<SyntaxNode> second) {
    const auto same = [](const SyntaxNode& a, const SyntaxNode& b) { return a.text == b.text; };
    if (std::equal(first.begin(), first.end(), second.begin(), second.end(), same)) return;
    first = without_vector_hints(std::move(first));
    second = without_vector_hints(std::move(second));
    if (!std::equal(first.begin(), first.end(), second.begin(), second.end(), same))
      throw TransformDeclined("the loops carry different directives");
  }

  [[nodiscard]] static NameSet declared_in(const std::vector<SyntaxNode>& body) {
    NameSet declared;
    for (const SyntaxNode& statement : body)
      if (statement.kind == NodeKind::declaration)
        for (const SyntaxNode& declarator : statement.children) add_name(declared, declarator.text);
    return declared;
  }
  /// Gives variables that one of the bodies declares other names where the other one uses theirs, of its own
  /// or from outside.
  void rename_clashes(std::vector<SyntaxNode>& body, std::vector<SyntaxNode>& more) {
    const NameSet of_first = declared_in(body), of_second = declared_in(more);
    const auto keep_apart = [&](std::vector<SyntaxNode>& own, const std::string& name,
                                const std::vector<SyntaxNode>& other, const NameSet& of_other) {
      if (!has_name(of_other, name) &&
          std::none_of(other.begin(), other.end(),
                       [&](const SyntaxNode& statement) { return uses_name(statement, name); }))
        return;
      SyntaxNode all = tree_;
      for (const SyntaxNode& statement : more) all.children.push_back(statement);
      for (const SyntaxNode& statement : body) all.children.push_back(statement);
      const std::string free = fresh_name(all, name);
      for (SyntaxNode& statement : own) rename(statement, name, free);
    };
    for (const std::string& name : of_second) keep_apart(more, name, body, of_first);
    for (const std::string& name : of_first)
      if (!has_name(of_second, name)) keep_apart(body, name, more, of_second);
  }

  /// Fuses the last loop of the first body with the first loop of the second one, where that is legal.
  void fuse_inside(const std::vector<std::size_t>& body) {
    const auto& list = node_at(tree_, body)->children;
    std::size_t first = boundary_;
    std::size_t second = boundary_;
    while (first > 0 && list[first - 1].kind != NodeKind::for_loop) --first;
    while (second < list.size() && list[second].kind != NodeKind::for_loop) ++second;
    if (first == 0 || second == list.size()) return;
    --first;
    for (std::size_t i = first + 1; i < second; ++i)
      if (list[i].kind != NodeKind::declaration && list[i].kind != NodeKind::pragma &&
          list[i].kind != NodeKind::comment)
        return;
    if (!legality(body, first, second)) return;
    const SyntaxNode before = tree_;
    try {
      LoopFuser inner{tree_, task_};
      inner.fuse(body, first, second);
    } catch (const TransformDeclined&) {
      tree_ = before; // the outer loops are fused all the same
    }
  }

  SyntaxNode& tree_;
  const Task& task_;
  /// Position in the joined body where the statements of the second loop begin.
  std::size_t boundary_ = 0;
};

/// Fuses neighbouring loops of one function.
[[nodiscard]] inline SyntaxNode fuse_loops(const TransformRequest& request) {
  SyntaxNode tree = request.tree;
  auto members = locate(tree, request.action.region);
  if (members.size() < 2) throw TransformDeclined("fusion needs two loops");
  std::vector<std::size_t> block = members.front().indices;
  const std::size_t first = block.back();
  block.pop_back();
  // from the second on: what follows moves up by what was there
  for (std::size_t m = 1; m < members.size(); ++m) {
    auto& indices = members[m].indices;
    const SyntaxNode& parent = *node_at(tree, block);
    std::size_t at = first;
    std::size_t next = parent.children.size();
    while (at < parent.children.size() && parent.children[at].kind != NodeKind::for_loop) ++at;
    for (std::size_t i = at + 1; i < parent.children.size() && next == parent.children.size(); ++i)
      if (parent.children[i].kind == NodeKind::for_loop) next = i;
    if (indices.size() != block.size() + 1 || next == parent.children.size())
      throw TransformDeclined("the loops do not stand in one block");
    LoopFuser fuser{tree, request.task};
    fuser.fuse(block, at, next);
  }
  remove_dead_scratch(tree);
  return tree;
}

} // namespace detail

} // namespace mtmc
