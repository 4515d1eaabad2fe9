#pragma once
/// What the values of a kernel of programs are made of: which blocks they have lanes of, which numbers of
/// programs and which places along an axis they depend on.

#include <mtmc/analysis/python/dotted_name.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/coder/transform/programs/bindings.hpp>
#include <mtmc/coder/transform/programs/launch_sites.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What an expression of a kernel is made of.
struct BlockValue {
  std::set<int> axes{};             ///< axes of the programs' numbers that it depends on
  std::set<std::string> lanes{};    ///< block sizes P of `arange(0, P)` in it
  std::set<std::string> places{};   ///< block sizes P of which it holds where a block begins, `number * P`
  std::set<std::string> of_grid{};  ///< those of them whose number is that of a program
  std::set<std::string> counters{}; ///< block sizes whose blocks a loop counts
  bool programs = false;            ///< how many programs there are
  /// Its extents, "1" for one that was put in; empty list: a number; nothing: not known.
  std::optional<std::vector<std::string>> shape = std::vector<std::string>{};

  friend bool operator==(const BlockValue&, const BlockValue&) = default; ///< member by member
};

/// The function of a call: "load" of `tl.load`.
[[nodiscard]] inline std::string function_of_call(const SyntaxNode& call) {
  const SyntaxNode& called = callee(call);
  if (called.kind == NodeKind::member) return called.text.substr(1);
  return called.kind == NodeKind::name ? called.text : std::string();
}

/// The argument at a place or with a name, or null.
[[nodiscard]] inline const SyntaxNode* argument_of(const SyntaxNode& call, std::size_t place,
                                                   std::string_view name) {
  if (const SyntaxNode* const named = named_argument(call, name)) return named;
  const auto given = arguments(call);
  return place < given.size() && given[place].kind != NodeKind::keyword_argument ? &given[place] : nullptr;
}

/// The extents of two values that are computed with each other.
[[nodiscard]] inline std::optional<std::vector<std::string>>
joint_shape(const std::optional<std::vector<std::string>>& a,
            const std::optional<std::vector<std::string>>& b) {
  if (!a || !b) return std::nullopt;
  const auto& longer = a->size() >= b->size() ? *a : *b;
  const auto& shorter = a->size() >= b->size() ? *b : *a;
  auto shape = longer;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::string& here = shape[longer.size() - shorter.size() + i];
    if (here == "1")
      here = shorter[i];
    else if (shorter[i] != "1" && shorter[i] != here)
      return std::nullopt;
  }
  return shape;
}

/// Reads the values of one kernel.
class BlockValues {
public:
  /// `definition` must outlive it; `blocks` are the parameters that may be sizes of blocks, `helpers` the
  /// functions of the text that work on each element on its own.
  BlockValues(const SyntaxNode& definition, std::set<std::string> blocks, std::set<std::string> helpers)
      : definition_(definition), blocks_(std::move(blocks)), helpers_(std::move(helpers)),
        names_(definition) {
    // Values of names depend on each other in loops: again, until nothing is new.
    for (int round = 0; round < 12; ++round) {
      const auto before = values_;
      visit(function_body(definition_));
      if (values_ == before) break;
    }
  }

  [[nodiscard]] const Bindings& names() const noexcept { return names_; }
  [[nodiscard]] const SyntaxNode& body() const { return function_body(definition_); }

  [[nodiscard]] BlockValue of(const SyntaxNode& node) const {
    switch (node.kind) {
    case NodeKind::name: {
      const auto found = values_.find(node.text);
      return found == values_.end() ? BlockValue{} : found->second;
    }
    case NodeKind::call:
      return of_call(node);
    case NodeKind::subscript: {
      BlockValue value = of(subscript_base(node));
      const SyntaxNode& index = subscript_index(node);
      value.shape = indexed(value.shape, index);
      return value;
    }
    case NodeKind::binary: {
      BlockValue value = joint(node);
      if (node.text == "*") add_places(node, value);
      return value;
    }
    case NodeKind::member: {
      BlockValue value = of(operand(node));
      if (node.text == ".T") value.shape = std::nullopt;
      return value;
    }
    default:
      return joint(node);
    }
  }

  /// Whether an expression, names looked up, asks by `x % P` if blocks of that size fill their axis.
  [[nodiscard]] bool asks_for_rest(const SyntaxNode& node, const std::string& block) const {
    std::set<std::string> seen;
    return asks_for_rest(node, block, seen);
  }

  /// The comparisons that a mask is made of, names looked up.
  void comparisons(const SyntaxNode& mask, std::vector<const SyntaxNode*>& to) const {
    std::set<std::string> seen;
    comparisons(mask, to, seen);
  }

  /// Whether a mask leaves out what is behind the end of the axis that blocks of that size divide.
  [[nodiscard]] bool masks(const SyntaxNode& mask, const std::string& block) const {
    std::vector<const SyntaxNode*> all;
    comparisons(mask, all);
    return std::any_of(all.begin(), all.end(), [&](const SyntaxNode* one) {
      const BlockValue value = joint(*one);
      return value.lanes.contains(block) && value.places.contains(block);
    });
  }

private:
  [[nodiscard]] bool asks_for_rest(const SyntaxNode& node, const std::string& block,
                                   std::set<std::string>& seen) const {
    if (node.kind == NodeKind::binary && node.text == "%" && is_name(right_operand(node), block)) return true;
    if (node.kind == NodeKind::name && seen.insert(node.text).second)
      if (const SyntaxNode* const value = names_.only_value(node.text))
        return asks_for_rest(*value, block, seen);
    return std::any_of(node.children.begin(), node.children.end(),
                       [&](const SyntaxNode& child) { return asks_for_rest(child, block, seen); });
  }
  void comparisons(const SyntaxNode& mask, std::vector<const SyntaxNode*>& to,
                   std::set<std::string>& seen) const {
    const bool compares = node_compares(mask);
    if (compares) to.push_back(&mask);
    if (mask.kind == NodeKind::name && seen.insert(mask.text).second)
      for (const SyntaxNode* const value : names_.values(mask.text))
        if (value != nullptr) comparisons(*value, to, seen);
    if (!compares)
      for (const SyntaxNode& child : mask.children) comparisons(child, to, seen);
  }
  [[nodiscard]] static bool node_compares(const SyntaxNode& node) {
    constexpr std::string_view signs[] = {"<", "<=", ">", ">=", "==", "!="};
    return node.kind == NodeKind::chain ||
           (node.kind == NodeKind::binary &&
            std::find(std::begin(signs), std::end(signs), node.text) != std::end(signs));
  }
  [[nodiscard]] bool is_block(const SyntaxNode& node) const {
    return node.kind == NodeKind::name && blocks_.contains(node.text);
  }
  static void take(BlockValue& into, const BlockValue& other) {
    into.axes.insert(other.axes.begin(), other.axes.end());
    into.lanes.insert(other.lanes.begin(), other.lanes.end());
    into.places.insert(other.places.begin(), other.places.end());
    into.of_grid.insert(other.of_grid.begin(), other.of_grid.end());
    into.counters.insert(other.counters.begin(), other.counters.end());
    into.programs = into.programs || other.programs;
    into.shape = joint_shape(into.shape, other.shape);
  }
  [[nodiscard]] BlockValue joint(const SyntaxNode& node) const {
    BlockValue value;
    for (const SyntaxNode& child : node.children) take(value, of(child));
    return value;
  }
  /// `number * P` is where a block begins.
  void add_places(const SyntaxNode& product, BlockValue& value) const {
    for (const auto& [size, other] : {std::pair(&left_operand(product), &right_operand(product)),
                                      std::pair(&right_operand(product), &left_operand(product))}) {
      if (!is_block(*size)) continue;
      const BlockValue number = of(*other);
      if (!number.axes.empty()) value.of_grid.insert(size->text);
      if (!number.axes.empty() || number.counters.contains(size->text)) value.places.insert(size->text);
    }
  }
  [[nodiscard]] static std::optional<std::vector<std::string>>
  indexed(const std::optional<std::vector<std::string>>& shape, const SyntaxNode& index) {
    if (!shape) return std::nullopt;
    std::vector<std::string> result;
    std::size_t place = 0;
    const auto add = [&](const SyntaxNode& one) {
      if (one.kind == NodeKind::literal && one.text == "None")
        result.emplace_back("1");
      else if (one.kind == NodeKind::slice && place < shape->size())
        result.push_back((*shape)[place++]);
      else
        return false;
      return true;
    };
    bool known = true;
    if (index.kind == NodeKind::initializer_list)
      for (const SyntaxNode& one : index.children) known = known && add(one);
    else
      known = add(index);
    if (!known || place != shape->size()) return std::nullopt;
    return result;
  }
  [[nodiscard]] BlockValue of_call(const SyntaxNode& call) const {
    const std::string function = function_of_call(call);
    BlockValue value;
    if (callee(call).kind == NodeKind::member) // x.to(...), but also tl.exp(...), whose tl is nothing
      value = of(operand(callee(call)));
    for (const SyntaxNode& argument : arguments(call)) take(value, of(argument));
    if (function == "program_id") {
      const SyntaxNode* const axis = argument_of(call, 0, "axis");
      const auto number = axis == nullptr ? std::nullopt : integer_of(*axis);
      value.axes.insert(number ? static_cast<int>(*number) : -1);
      return value;
    }
    if (function == "num_programs") {
      value.programs = true;
      return value;
    }
    if (function == "arange") {
      const SyntaxNode* const end = argument_of(call, 1, "end");
      value.shape = std::nullopt;
      if (end != nullptr && (end->kind == NodeKind::name || end->kind == NodeKind::literal))
        value.shape = std::vector<std::string>{end->text};
      if (end != nullptr && is_block(*end)) value.lanes.insert(end->text);
      return value;
    }
    if (function == "zeros" || function == "full" || function == "broadcast_to") {
      const SyntaxNode* const shape = argument_of(call, function == "broadcast_to" ? 1 : 0, "shape");
      value.shape = std::nullopt;
      if (shape != nullptr && shape->kind == NodeKind::initializer_list) {
        value.shape.emplace();
        for (const SyntaxNode& extent : shape->children) {
          value.shape->push_back(extent.text);
          if (is_block(extent)) value.lanes.insert(extent.text);
        }
      }
      return value;
    }
    if (function == "dot") {
      const auto given = arguments(call);
      if (given.size() < 2) return value;
      const auto left = of(given[0]).shape, right = of(given[1]).shape;
      value.shape = std::nullopt;
      if (left && right && left->size() == 2 && right->size() == 2)
        value.shape = std::vector<std::string>{(*left)[0], (*right)[1]};
      keep_lanes_of_shape(value);
      return value;
    }
    // Python's own min and max are of numbers.
    const bool of_language = callee(call).kind == NodeKind::member;
    if (function == "sum" || (of_language && (function == "max" || function == "min"))) {
      const SyntaxNode* const axis = argument_of(call, 1, "axis");
      const auto number = axis == nullptr ? std::nullopt : integer_of(*axis);
      if (axis == nullptr && arguments(call).size() == 1)
        value.shape = std::vector<std::string>{};
      else if (value.shape && number && *number >= 0 &&
               static_cast<std::size_t>(*number) < value.shape->size() && arguments(call).size() == 2)
        value.shape->erase(value.shape->begin() + static_cast<std::ptrdiff_t>(*number));
      else
        value.shape = std::nullopt;
      keep_lanes_of_shape(value);
      return value;
    }
    if (!is_elementwise(function)) value.shape = std::nullopt;
    return value;
  }
  /// What was folded away is no lane any more.
  static void keep_lanes_of_shape(BlockValue& value) {
    if (!value.shape) return;
    std::erase_if(value.lanes, [&](const std::string& lane) {
      return std::find(value.shape->begin(), value.shape->end(), lane) == value.shape->end();
    });
  }

public:
  /// Whether a function of the language, or a helper, works on each element on its own.
  [[nodiscard]] bool is_elementwise(const std::string& function) const {
    static const std::set<std::string> known{
        "load",          "store",        "where",  "maximum", "minimum", "exp",         "exp2",
        "log",           "log2",         "sqrt",   "rsqrt",   "sqrt_rn", "abs",         "sin",
        "cos",           "tan",          "tanh",   "erf",     "sigmoid", "floor",       "ceil",
        "fma",           "cdiv",         "div_rn", "fdiv",    "pow",     "clamp",       "to",
        "cast",          "umulhi",       "rint",   "round",   "trunc",   "float",       "int",
        "range",         "log1p",        "expm1",  "min",     "max",     "multiple_of", "max_contiguous",
        "max_constancy", "static_range", "rand",   "randn",   "isnan",   "isinf",       "finitef",
        "atan",          "sinh",         "cosh"};
    return known.contains(function) || helpers_.contains(function);
  }

private:
  void assign(const SyntaxNode& target, const BlockValue& value) {
    if (target.kind == NodeKind::name) {
      const auto [found, fresh] = values_.emplace(target.text, value);
      if (fresh) return;
      BlockValue& known = found->second;
      const auto shape = known.shape;
      take(known, value);
      // An accumulator that begins as a number, or a name that holds one thing after another.
      known.shape = shape && value.shape && shape->empty() ? value.shape
                    : shape == value.shape                 ? shape
                    : shape && value.shape && joint_shape(shape, value.shape) == shape
                        ? shape
                        : (shape && value.shape && value.shape->empty() ? shape : std::nullopt);
    } else if (target.kind == NodeKind::initializer_list) {
      for (const SyntaxNode& one : target.children) {
        BlockValue part = value;
        part.shape = std::nullopt;
        assign(one, part);
      }
    }
  }
  void visit(const SyntaxNode& node) {
    if (node.kind == NodeKind::for_each_loop) {
      assign(node.children[0], of_iterations(node.children[1]));
      for (std::size_t i = 2; i < node.children.size(); ++i) visit(node.children[i]);
      return;
    }
    if (node.kind == NodeKind::assignment && right_operand(node).kind != NodeKind::empty) {
      const SyntaxNode& target = left_operand(node);
      BlockValue value = of(right_operand(node));
      if (node.text != "=" && node.text != ":=") {
        // pointers += P * stride: by how much a block is further than the one before
        for (const std::string& block : blocks_)
          if (is_step(right_operand(node), block)) value.places.insert(block);
        take(value, of(target));
      }
      assign(target, value);
    }
    for (const SyntaxNode& child : node.children) visit(child);
  }
  [[nodiscard]] BlockValue of_iterations(const SyntaxNode& range) const {
    if (range.kind != NodeKind::call || arguments(range).empty()) return joint(range);
    BlockValue value;
    std::vector<const SyntaxNode*> bounds;
    for (const SyntaxNode& one : arguments(range))
      if (one.kind != NodeKind::keyword_argument) bounds.push_back(&one);
    for (const SyntaxNode* const one : bounds) take(value, of(*one));
    value.shape = std::vector<std::string>{};
    value.programs = false;
    if (bounds.size() == 3)
      for (const std::string& block : blocks_)
        if (is_step(*bounds[2], block)) {
          value.places.insert(block);
          // All programs together take all blocks, however many there are.
          if (of(*bounds[2]).programs) value.of_grid.erase(block);
        }
    if (bounds.size() < 3)
      for (const std::string& block : blocks_)
        if (counts_blocks(*bounds.back(), block)) value.counters.insert(block);
    return value;
  }

public:
  /// `P`, or a product with it.
  [[nodiscard]] bool is_step(const SyntaxNode& node, const std::string& block) const {
    if (is_name(node, block)) return true;
    return node.kind == NodeKind::binary && node.text == "*" &&
           (is_step(left_operand(node), block) || is_step(right_operand(node), block));
  }
  /// `cdiv(n, P)` or `n // P`, perhaps by a name.
  [[nodiscard]] bool counts_blocks(const SyntaxNode& node, const std::string& block, int depth = 8) const {
    if (const auto division = rounded_up(node); division.divisor != nullptr)
      return is_name(*division.divisor, block);
    if (node.kind == NodeKind::binary && node.text == "//") return is_name(right_operand(node), block);
    const SyntaxNode* const value = node.kind == NodeKind::name ? names_.only_value(node.text) : nullptr;
    return value != nullptr && depth > 0 && counts_blocks(*value, block, depth - 1);
  }

private:
  const SyntaxNode& definition_;
  std::set<std::string> blocks_;
  std::set<std::string> helpers_;
  Bindings names_;
  std::map<std::string, BlockValue> values_{};
};

} // namespace mtmc::detail
