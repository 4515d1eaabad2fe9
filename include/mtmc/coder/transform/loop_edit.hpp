#pragma once
/// The pieces that transformations of loops are made of: finding the loop of an action, taking loops apart
/// and building them again, splitting a range into full tiles and a remainder.

#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A loop of the kernel: its analysis, and the child indices that lead to it in the tree and in copies of it.
struct LoopTarget {
  const LoopInfo* loop = nullptr;
  std::vector<std::size_t> indices{};
};

/// "the k loop".
[[nodiscard]] inline std::string loop_name(const LoopInfo& loop) { return "the " + loop.variable + " loop"; }

/// Throws `TransformDeclined` where the loop at `indices` is all that a directive of OpenMP holds which is
/// not about loops (`omp critical`, `omp single`), or is divided into tasks: of several statements in its
/// place only the first would be held.
inline void require_no_block_directive(const SyntaxNode& tree, std::vector<std::size_t> indices,
                                       const LoopInfo& loop) {
  const std::size_t place = indices.back();
  indices.pop_back();
  const auto& siblings = node_at(tree, indices)->children;
  for (std::size_t i = place; i > 0 && siblings[i - 1].kind == NodeKind::pragma; --i) {
    const std::string& text = siblings[i - 1].text;
    const bool loops = has_word(text, "for") || has_word(text, "simd");
    if (text.starts_with("omp") && (!loops || has_word(text, "taskloop")))
      throw TransformDeclined(loop_name(loop) + " is what `#pragma " + text + "` holds");
  }
}

/// The loops a path names. Throws `TransformDeclined` if it names none.
[[nodiscard]] inline std::vector<LoopTarget> find_loops(const TransformRequest& request) {
  const auto located = locate(request.tree, request.action.region);
  std::vector<LoopTarget> targets;
  for (const auto& one : located) {
    const LoopInfo* const loop = request.analysis.find_loop(*one.node);
    if (loop == nullptr) throw TransformDeclined("\"" + request.action.region + "\" names no loop");
    require_no_block_directive(request.tree, one.indices, *loop);
    targets.push_back({loop, one.indices});
  }
  if (targets.empty()) throw TransformDeclined("the kernel has no region \"" + request.action.region + '"');
  return targets;
}

/// The one loop of the action. Throws `TransformDeclined` if the region is something else, or not understood.
[[nodiscard]] inline LoopTarget find_loop(const TransformRequest& request) {
  auto targets = find_loops(request);
  if (targets.size() != 1)
    throw TransformDeclined("\"" + request.action.region + "\" is a sequence, not one loop");
  if (!targets.front().loop->canonical)
    throw TransformDeclined("the loop is not a counting loop: " + targets.front().loop->why_not_canonical);
  if (!targets.front().loop->understood)
    throw TransformDeclined("the loop contains something that was not understood");
  return std::move(targets.front());
}

/// Throws `TransformDeclined` with the reason unless it is legal.
inline void require_legal(const Legality& legality) {
  if (!legality.legal) throw TransformDeclined(legality.reason);
}

// --- Expressions
// ----------------------------------------------------------------------------------------------------

/// The value of an integer literal, or nothing.
[[nodiscard]] inline std::optional<std::int64_t> literal_value(const SyntaxNode& node) {
  if (node.kind != NodeKind::literal || node.text.empty() || node.text.size() > 9) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : node.text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return value;
}

/// `expression + offset`, folded where that is easy: `ii + 64`, `R - 1 + 1` as `R`, `3 + 1` as `4`.
[[nodiscard]] inline SyntaxNode offset_by(const SyntaxNode& expression, std::int64_t offset) {
  if (offset == 0) return expression;
  if (const auto value = literal_value(expression)) return make_integer(*value + offset);
  if (expression.kind == NodeKind::binary && (expression.text == "+" || expression.text == "-"))
    if (const auto value = literal_value(right_operand(expression)))
      return offset_by(left_operand(expression), (expression.text == "+" ? *value : -*value) + offset);
  return make_binary(offset > 0 ? "+" : "-", expression, make_integer(offset > 0 ? offset : -offset));
}

/// `a - b`, where `b` is 0 just `a`.
[[nodiscard]] inline SyntaxNode difference(const SyntaxNode& a, const SyntaxNode& b) {
  if (const auto value = literal_value(b)) return offset_by(a, -*value);
  return make_binary("-", a, b);
}

// --- Loops
// ----------------------------------------------------------------------------------------------------------

/// `threadIdx`, `blockIdx`, `blockDim`, `gridDim`.
[[nodiscard]] inline bool is_launch_name(const SyntaxNode& node) noexcept {
  return is_name(node, "threadIdx") || is_name(node, "blockIdx") || is_name(node, "blockDim") ||
         is_name(node, "gridDim");
}

/// Whether values of a type, as written, have no sign.
[[nodiscard]] inline bool is_unsigned_type(std::string_view type) {
  return type.find("unsigned") != std::string_view::npos || type.find("size_t") != std::string_view::npos ||
         type.find("uint") != std::string_view::npos;
}

/// The head of a loop that counts up: `for (type variable = first; variable < bound; variable += step)`.
struct CountingLoop {
  std::string type{};
  std::string variable{};
  SyntaxNode first{};
  SyntaxNode bound{};
  std::int64_t step = 1;
  /// The loop goes on while `variable <= bound` instead of `<`.
  bool inclusive = false;
  /// Number of iterations if it is the same in every run.
  std::optional<std::int64_t> trips{};
  /// First value or bound are unsigned whatever the variable is: differences of them do not go below zero.
  bool unsigned_range = false;

  [[nodiscard]] bool is_unsigned() const { return unsigned_range || is_unsigned_type(type); }
  /// The loop with that body (made a block).
  [[nodiscard]] SyntaxNode with_body(std::vector<SyntaxNode> body) const {
    SyntaxNode loop =
        make_counting_loop(type, variable, first, bound, make_integer(step), make_block(std::move(body)));
    if (inclusive) loop_condition(loop).text = "<=";
    return loop;
  }
};

/// The head of an analysed loop. Throws `TransformDeclined` if it does not count up or its variable is
/// declared outside.
[[nodiscard]] inline CountingLoop head_of(const LoopInfo& loop) {
  if (!loop.canonical) throw TransformDeclined(loop_name(loop) + " is not a counting loop");
  if (loop.variable_type.empty())
    throw TransformDeclined("the variable of " + loop_name(loop) +
                            " is declared outside: its value may be used after the loop");
  CountingLoop head{loop.variable_type, loop.variable, *loop.start_expression, *loop.bound_expression,
                    loop.step};
  if (loop.step < 0) throw TransformDeclined(loop_name(loop) + " counts down");
  if (loop.comparison == "<=")
    head.bound = offset_by(head.bound, 1);
  else if (loop.comparison != "<" && !(loop.comparison == "!=" && loop.step == 1))
    throw TransformDeclined(loop_name(loop) + " does not count up to a bound");
  for (const SyntaxNode* end : {&head.first, &head.bound})
    walk(*end, [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::name) return;
      const auto& variables = loop.function->variables;
      head.unsigned_range =
          head.unsigned_range || is_launch_name(node) ||
          std::any_of(variables.begin(), variables.end(), [&](const Variable& variable) {
            return variable.name == node.text && !variable.pointer && is_unsigned_type(variable.type);
          });
    });
  if (loop.limits.size() == 1)
    if (const auto range = (loop.limits.front() - loop.start).constant())
      head.trips = *range <= 0 ? 0 : (*range - 1) / loop.step + 1;
  return head;
}

/// The statements of a loop's body.
[[nodiscard]] inline std::vector<SyntaxNode> body_of(const SyntaxNode& loop) {
  const auto body = statements(loop_body(loop));
  return {body.begin(), body.end()};
}

/// The iterations of `head` in blocks of `width` iterations: a loop over the full blocks, and one over the
/// rest.
struct BlockedRange {
  /// Steps from block to block; nothing if there can be none.
  std::optional<CountingLoop> blocks{};
  /// The iterations after the last full block, one by one; nothing if there are none.
  std::optional<CountingLoop> rest{};
};

/// Splits the range of a loop. Both parts keep the loop's variable; the first steps by `width` iterations.
[[nodiscard]] inline BlockedRange split_range(const CountingLoop& head, std::int64_t width) {
  BlockedRange result;
  const std::int64_t stride = head.step * width;
  CountingLoop blocks = head;
  CountingLoop rest = head;
  blocks.step = stride;
  if (head.trips) {
    const std::int64_t count = *head.trips / width;
    blocks.bound = offset_by(head.first, count * stride);
    blocks.trips = count;
    if (count * width == *head.trips) blocks.bound = head.bound;
    rest.first = blocks.bound;
    rest.trips = *head.trips - count * width;
    if (count > 0) result.blocks = blocks;
    if (*rest.trips > 0) result.rest = rest;
    return result;
  }
  // every iteration takes a whole step, also the last one, whose end may lie beyond the bound
  const SyntaxNode end = offset_by(head.bound, head.step - 1);
  // an unsigned range must not be taken below zero
  const bool from_zero = literal_value(head.first) == 0;
  SyntaxNode bound = end;
  if (head.is_unsigned() && !from_zero)
    bound = make_conditional(make_binary(">", end, head.first), end, head.first);
  SyntaxNode full =
      make_binary("*", make_binary("/", difference(SyntaxNode(bound), head.first), make_integer(stride)),
                  make_integer(stride));
  if (head.is_unsigned()) {
    blocks.bound = from_zero ? full : make_binary("+", head.first, full);
  } else { // a dependence test sees at once that no full block passes the bound
    blocks.bound = offset_by(end, -stride);
    blocks.inclusive = true;
  }
  rest.first = from_zero ? std::move(full) : make_binary("+", head.first, std::move(full));
  result.blocks = std::move(blocks);
  result.rest = std::move(rest);
  return result;
}

/// A name for the tile loop of `variable`: "jj", or another that is free.
[[nodiscard]] inline std::string tile_name(const SyntaxNode& tree, const std::string& variable) {
  return fresh_name(tree, variable.size() == 1 ? variable + variable : variable + "_tile");
}

// --- Places in the tree
// ---------------------------------------------------------------------------------------------

/// The pragmas right before a statement of a block, in order.
[[nodiscard]] inline std::vector<SyntaxNode> take_pragmas_before(SyntaxNode& parent, std::size_t& index) {
  std::vector<SyntaxNode> pragmas;
  if (parent.kind != NodeKind::block && parent.kind != NodeKind::translation_unit &&
      parent.kind != NodeKind::scope)
    return pragmas;
  std::size_t begin = index;
  while (begin > 0 && parent.children[begin - 1].kind == NodeKind::pragma) --begin;
  const auto first = parent.children.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = parent.children.begin() + static_cast<std::ptrdiff_t>(index);
  pragmas.assign(std::make_move_iterator(first), std::make_move_iterator(last));
  parent.children.erase(first, last);
  index = begin;
  return pragmas;
}

/// Puts statements into the place of one; a body that was a single statement becomes a block. The comments
/// before the old statement go before the new ones.
inline void replace_statement(SyntaxNode& parent, std::size_t index, std::vector<SyntaxNode> replacement) {
  if (!replacement.empty()) {
    SyntaxNode& old = parent.children[index];
    replacement.front().leading_trivia = old.leading_trivia + replacement.front().leading_trivia;
    if (replacement.back().trailing_trivia.empty())
      replacement.back().trailing_trivia = std::move(old.trailing_trivia);
  }
  if (parent.kind == NodeKind::block || parent.kind == NodeKind::translation_unit ||
      parent.kind == NodeKind::scope) {
    const auto at = parent.children.begin() + static_cast<std::ptrdiff_t>(index);
    const auto next = parent.children.erase(at);
    parent.children.insert(next, std::make_move_iterator(replacement.begin()),
                           std::make_move_iterator(replacement.end()));
    return;
  }
  if (replacement.size() == 1)
    parent.children[index] = std::move(replacement.front());
  else
    parent.children[index] = make_block(std::move(replacement));
}

/// The node that holds the node at `indices` as a child, in a copy of the tree.
[[nodiscard]] inline SyntaxNode& parent_at(SyntaxNode& tree, std::vector<std::size_t> indices) {
  indices.pop_back();
  return *node_at(tree, indices);
}

/// A tree that holds the names in use at a node: those of the node itself and of everything whose scope
/// reaches it, for `fresh_name`.
[[nodiscard]] inline SyntaxNode visible_names(const SyntaxNode& tree,
                                              const std::vector<std::size_t>& indices) {
  SyntaxNode names;
  names.kind = NodeKind::block;
  const SyntaxNode* node = &tree;
  for (const std::size_t index : indices) {
    for (const SyntaxNode& child : node->children) {
      if (child.kind == NodeKind::declaration || child.kind == NodeKind::parameter ||
          child.kind == NodeKind::preprocessor)
        names.children.push_back(child);
      if (child.kind == NodeKind::function) names.children.push_back(make_name(child.text));
    }
    node = &node->children[index];
  }
  names.children.push_back(*node);
  return names;
}

/// Makes sure that the file includes a header such as "<algorithm>".
inline void ensure_include(SyntaxNode& tree, std::string_view header) {
  std::size_t place = 0;
  bool any = false;
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    const SyntaxNode& child = tree.children[i];
    if (child.kind != NodeKind::preprocessor || child.text.find("include") == std::string::npos) continue;
    if (child.text.find(header) != std::string::npos) return;
    place = i + 1;
    any = true;
  }
  SyntaxNode line = make_preprocessor("#include " + std::string(header));
  if (!any && !tree.children.empty()) {
    // a comment on the whole file stays in front: what stands before the last blank line, or all of it
    std::string& trivia = tree.children.front().leading_trivia;
    const std::size_t blank = trivia.rfind("\n\n");
    if (blank != std::string::npos) {
      line.leading_trivia = trivia.substr(0, blank + 2);
      trivia.erase(0, blank + 2);
    }
    if (!trivia.starts_with('\n')) trivia.insert(0, "\n");
  }
  tree.children.insert(tree.children.begin() + static_cast<std::ptrdiff_t>(place), std::move(line));
}

/// The number of iterations of a loop at the task's main size, where it is known.
[[nodiscard]] inline std::optional<std::int64_t> main_trips(const TransformRequest& request,
                                                            const LoopInfo& loop) {
  const ProblemSize* const size = request.task.main_size();
  return size == nullptr ? std::nullopt : trip_count(loop, size->symbols);
}

/// Elements of f32 in a vector register, or what is usual.
[[nodiscard]] inline std::int64_t vector_elements(const Device& device) {
  return device.vector_bits >= 64 ? device.vector_bits / 32 : 8;
}

/// Bytes of the cache of a level, or what is usual.
[[nodiscard]] inline std::int64_t cache_bytes(const Device& device, int level) {
  for (const CacheLevel& cache : device.caches)
    if (cache.level == level && cache.bytes > 0) return cache.bytes;
  return level == 1 ? 32 * 1024 : level == 2 ? 512 * 1024 : 8 * 1024 * 1024;
}

} // namespace mtmc::detail
