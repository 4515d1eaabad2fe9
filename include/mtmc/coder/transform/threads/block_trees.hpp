#pragma once
/// The usual tree in shared memory by which the threads of a block combine a value that each of them has, as
/// people write it.

#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Statements that combine the values of the threads of a block or a warp, and where the results are then.
struct KnownCombination {
  std::size_t statements = 0;        ///< how many, right behind the loop
  std::vector<std::string> totals{}; ///< of each value, as an expression of the first thread
  bool warp = false;
};

/// Finds `tree[t] = sum; __syncthreads(); for (int s = T / 2; s > 0; s /= 2) { if (t < s) tree[t] += tree[t +
/// s]; __syncthreads(); }`, of whose elements only the first is used then.
class BlockTree {
public:
  /// `is_thread` tells whether an expression is the number of the thread in its block of `threads`.
  BlockTree(const ReductionBody& body, std::int64_t threads, std::function<bool(const SyntaxNode&)> is_thread)
      : body_(body), threads_(threads), is_thread_(std::move(is_thread)) {}

  /// The tree behind the loop; nothing where something else is there.
  [[nodiscard]] std::optional<KnownCombination> find() const {
    const auto& behind = body_.epilogue;
    const std::size_t count = body_.values.size();
    if (threads_ < 2 || (threads_ & (threads_ - 1)) != 0 || behind.size() < count + 2) return std::nullopt;
    KnownCombination found;
    std::vector<std::string> arrays(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t value = stored_value(*behind[i]);
      if (value == count || !arrays[value].empty()) return std::nullopt;
      arrays[value] = subscript_base(left_operand(operand(*behind[i]))).text;
    }
    if (!is_block_barrier(*behind[count]) || !is_tree(*behind[count + 1], arrays)) return std::nullopt;
    found.statements = count + 2;
    for (const std::string& array : arrays) found.totals.push_back(array + "[0]");
    for (std::size_t i = found.statements; i < behind.size(); ++i)
      for (std::size_t value = 0; value < count; ++value)
        if (uses_name(*behind[i], body_.values[value].name) || !uses_first_only(*behind[i], arrays[value]))
          return std::nullopt;
    return found;
  }

private:
  /// Of `tree[t] = sum;` the value that is stored; else how many there are.
  [[nodiscard]] std::size_t stored_value(const SyntaxNode& statement) const {
    const std::size_t none = body_.values.size();
    if (!is_assignment(statement, "=")) return none;
    const SyntaxNode& target = left_operand(operand(statement));
    if (!is_own_element(target)) return none;
    for (std::size_t i = 0; i < none; ++i)
      if (is_name(right_operand(operand(statement)), body_.values[i].name)) return i;
    return none;
  }
  [[nodiscard]] static bool is_assignment(const SyntaxNode& statement, std::string_view symbol) {
    return statement.kind == NodeKind::expression_statement &&
           operand(statement).kind == NodeKind::assignment && operand(statement).text == symbol;
  }
  /// `tree[t]`, `tree` being an array of the block with an element for each of its threads.
  [[nodiscard]] bool is_own_element(const SyntaxNode& node) const {
    if (node.kind != NodeKind::subscript || subscript_base(node).kind != NodeKind::name ||
        !is_thread_(subscript_index(node)))
      return false;
    return std::any_of(body_.function->arrays.begin(), body_.function->arrays.end(), [&](const Array& array) {
      return array.place == ArrayPlace::block && array.variable != nullptr &&
             array.variable->name == subscript_base(node).text;
    });
  }

  [[nodiscard]] bool is_tree(const SyntaxNode& loop, const std::vector<std::string>& arrays) const {
    if (loop.kind != NodeKind::for_loop || loop_init(loop).kind != NodeKind::declaration ||
        declarators(loop_init(loop)).size() != 1)
      return false;
    const std::string& distance = declarators(loop_init(loop)).front().text;
    const SyntaxNode* const first = initial_value(declarators(loop_init(loop)).front());
    if (first == nullptr || !is_half_of_block(*first)) return false;
    if (!is_positive(loop_condition(loop), distance) || !is_halved(loop_step(loop), distance)) return false;
    const auto body = statements(loop_body(loop));
    if (body.size() != 2) return false;
    const std::size_t branch = is_block_barrier(body[1]) ? 0 : 1;
    if (!is_block_barrier(body[1 - branch])) return false;
    return body[branch].kind == NodeKind::if_statement && else_branch(body[branch]) == nullptr &&
           is_below(if_condition(body[branch]), distance) &&
           combines(statements(then_branch(body[branch])), arrays, distance);
  }
  [[nodiscard]] bool is_half_of_block(const SyntaxNode& node) const {
    if (literal_value(node) == threads_ / 2) return true;
    if (node.kind != NodeKind::binary) return false;
    const SyntaxNode& extent = left_operand(node);
    const bool block =
        literal_value(extent) == threads_ ||
        (extent.kind == NodeKind::member && extent.text == ".x" && is_name(operand(extent), "blockDim"));
    return block && halves(node.text, right_operand(node));
  }
  [[nodiscard]] static bool halves(std::string_view symbol, const SyntaxNode& by) {
    return (symbol == "/" && literal_value(by) == 2) || (symbol == ">>" && literal_value(by) == 1);
  }
  [[nodiscard]] static bool is_positive(const SyntaxNode& node, const std::string& name) {
    if (is_name(node, name)) return true;
    if (node.kind != NodeKind::binary || !is_name(left_operand(node), name)) return false;
    const auto bound = literal_value(right_operand(node));
    return (bound == 0 && (node.text == ">" || node.text == "!=")) || (bound == 1 && node.text == ">=");
  }
  [[nodiscard]] static bool is_halved(const SyntaxNode& node, const std::string& name) {
    if (node.kind != NodeKind::assignment || !is_name(left_operand(node), name)) return false;
    if (node.text == "/=" || node.text == ">>=")
      return halves(node.text.substr(0, node.text.size() - 1), right_operand(node));
    const SyntaxNode& value = right_operand(node);
    return node.text == "=" && value.kind == NodeKind::binary && is_name(left_operand(value), name) &&
           halves(value.text, right_operand(value));
  }
  [[nodiscard]] bool is_below(const SyntaxNode& node, const std::string& distance) const {
    return node.kind == NodeKind::binary && node.text == "<" && is_thread_(left_operand(node)) &&
           is_name(right_operand(node), distance);
  }

  /// Each array's own element is combined with the one at a distance, once.
  [[nodiscard]] bool combines(std::span<const SyntaxNode> updates, const std::vector<std::string>& arrays,
                              const std::string& distance) const {
    if (updates.size() != arrays.size()) return false;
    std::vector<bool> done(arrays.size(), false);
    for (const SyntaxNode& update : updates) {
      std::size_t which = arrays.size();
      for (std::size_t i = 0; i < arrays.size(); ++i)
        if (is_update(update, body_.values[i], arrays[i], distance)) which = i;
      if (which == arrays.size() || done[which]) return false;
      done[which] = true;
    }
    return true;
  }
  [[nodiscard]] bool is_update(const SyntaxNode& statement, const ReducedValue& value,
                               const std::string& array, const std::string& distance) const {
    if (statement.kind != NodeKind::expression_statement || operand(statement).kind != NodeKind::assignment)
      return false;
    const SyntaxNode& update = operand(statement);
    const auto own = [&](const SyntaxNode& node) {
      return is_own_element(node) && is_name(subscript_base(node), array);
    };
    const auto other = [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::subscript || !is_name(subscript_base(node), array)) return false;
      const SyntaxNode& at = subscript_index(node);
      if (at.kind != NodeKind::binary || at.text != "+") return false;
      return (is_thread_(left_operand(at)) && is_name(right_operand(at), distance)) ||
             (is_name(left_operand(at), distance) && is_thread_(right_operand(at)));
    };
    const auto both = [&](const SyntaxNode& a, const SyntaxNode& b) {
      return (own(a) && other(b)) || (other(a) && own(b));
    };
    if (!own(left_operand(update))) return false;
    const ReductionOperation operation = value.reduction.operation;
    const SyntaxNode& by = right_operand(update);
    const std::string symbol = operation == ReductionOperation::sum       ? "+"
                               : operation == ReductionOperation::product ? "*"
                                                                          : "";
    if (!symbol.empty())
      return (update.text == symbol + '=' && other(by)) ||
             (update.text == "=" && by.kind == NodeKind::binary && by.text == symbol &&
              both(left_operand(by), right_operand(by)));
    if (update.text != "=" || by.kind != NodeKind::call || arguments(by).size() != 2) return false;
    const std::string least = operation == ReductionOperation::minimum ? "min" : "max";
    const bool named =
        is_call_of(by, least) || is_call_of(by, "f" + least + "f") || is_call_of(by, "f" + least);
    return named && both(arguments(by)[0], arguments(by)[1]);
  }

  /// The statement uses no other element of the array than the first.
  [[nodiscard]] static bool uses_first_only(const SyntaxNode& statement, const std::string& array) {
    int names = 0, first = 0;
    walk(statement, [&](const SyntaxNode& node) {
      names += is_name(node, array) ? 1 : 0;
      names += node.kind == NodeKind::opaque && uses_name(node, array) ? 1 : 0;
      first += node.kind == NodeKind::subscript && is_name(subscript_base(node), array) &&
                       literal_value(subscript_index(node)) == 0
                   ? 1
                   : 0;
    });
    return names == first;
  }

  const ReductionBody& body_;
  const std::int64_t threads_;
  const std::function<bool(const SyntaxNode&)> is_thread_;
};

} // namespace mtmc::detail
