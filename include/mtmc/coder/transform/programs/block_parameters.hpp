#pragma once
/// Parameters of a kernel of programs that are sizes of blocks, and which other sizes would be right, too.

#include <mtmc/analysis/python/triton_kernels.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/coder/transform/programs/block_values.hpp>
#include <mtmc/coder/transform/programs/launch_sites.hpp>
#include <mtmc/coder/transform/programs/program_transformation.hpp>
#include <mtmc/coder/transform/programs/values_behind_end.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A `tl.constexpr` that is the length of an `arange`.
struct BlockParameter {
  std::string name{};     ///< of the parameter
  std::set<int> axes{};   ///< of the numbers of programs that say which block; empty: a loop goes over them
  bool larger = true;     ///< larger sizes are right, too; smaller ones that divide it always are
  std::set<char> roles{}; ///< 'm', 'n', 'k' where it is an extent of a product of tiles
  bool in_loop = false;   ///< some loop of the kernel goes from block to block
  std::vector<const SyntaxNode*> ends{}; ///< with what its places are compared: the ends of the axis
  std::string refused{};                 ///< why no other size can be given; empty: it can
  bool whole = false;                    ///< that is because a block covers an axis whole
};

/// Finds out what is known of one parameter by all of its uses: those of blocks of an axis are recognised,
/// and any other one is a reason not to change it.
class BlockParameterReader {
public:
  BlockParameterReader(const TritonKernel& kernel, const BlockValues& values, std::string name)
      : kernel_(kernel), values_(values), behind_(values, name) {
    result_.name = std::move(name);
  }

  [[nodiscard]] BlockParameter read() {
    try {
      check_uses(values_.body());
      check_accesses(values_.body(), false);
      check_folds();
    } catch (const TransformDeclined& reason) {
      result_.refused = reason.what();
    }
    return std::move(result_);
  }

private:
  [[nodiscard]] bool is_block(const SyntaxNode& node) const { return is_name(node, result_.name); }
  [[noreturn]] void refuse(const SyntaxNode& node, const std::string& why) const {
    throw TransformDeclined(result_.name + ' ' + why + " in " + line_of(node));
  }

  // --- where the parameter's name stands

  void check_all(const SyntaxNode& node) {
    for (const SyntaxNode& child : node.children) check_uses(child);
  }
  void check_uses(const SyntaxNode& node) {
    if (is_block(node)) refuse(node, "is used for more than blocks");
    if (const auto division = rounded_up(node); division.divisor != nullptr && is_block(*division.divisor)) {
      check_uses(*division.dividend);
      return;
    }
    if (node.kind == NodeKind::binary && node.text == "*" && check_product(node)) return;
    const bool goes_on = node.kind == NodeKind::assignment && node.text == "+=" &&
                         values_.is_step(right_operand(node), result_.name) && in_loop_over_blocks(node);
    if (goes_on && is_address(left_operand(node))) return; // by a block
    const bool compared = node.kind == NodeKind::binary && (node.text == "==" || node.text == "!=") &&
                          integer_of(right_operand(node)) == 0;
    if (compared)
      check_rest(left_operand(node));
    else if (node.kind == NodeKind::call)
      check_call(node);
    else
      check_all(node);
  }
  /// Pointers or offsets: what has lanes, or is a parameter. A number may count what is behind the end, too.
  [[nodiscard]] bool is_address(const SyntaxNode& node) const {
    return !values_.of(node).lanes.empty() ||
           std::any_of(kernel_.parameters.begin(), kernel_.parameters.end(),
                       [&](const TritonParameter& one) { return is_name(node, one.name); });
  }
  /// `M % P + N % Q` compared with 0: whether blocks fill the axis.
  void check_rest(const SyntaxNode& node) {
    const bool rest = node.kind == NodeKind::binary && node.text == "%" && is_block(right_operand(node));
    const bool sum = node.kind == NodeKind::binary && node.text == "+";
    if (sum)
      for (const SyntaxNode& child : node.children) check_rest(child);
    else
      check_uses(rest ? left_operand(node) : node);
  }
  void check_call(const SyntaxNode& call) {
    const std::string function = function_of_call(call);
    const auto given = arguments(call);
    const auto at = [&](std::size_t place) { return place < given.size() ? &given[place] : nullptr; };
    if (function == "arange" && given.size() == 2 && is_block(given[1])) {
      if (integer_of(given[0]) != 0) refuse(call, "is the end of a range that does not begin at 0");
      return;
    }
    if (function == "multiple_of" || function == "max_contiguous" || function == "max_constancy") {
      if (given.size() == 2 && is_block(given[1])) return check_uses(given[0]);
    }
    if (function == "zeros" || function == "full" || function == "broadcast_to") {
      const std::size_t place = function == "broadcast_to" ? 1 : 0;
      const SyntaxNode* const shape = argument_of(call, place, "shape");
      if (shape != nullptr && shape->kind == NodeKind::initializer_list) {
        for (const SyntaxNode& extent : shape->children)
          if (!is_block(extent)) check_uses(extent);
        for (const SyntaxNode& argument : given)
          if (&argument != shape &&
              !(argument.kind == NodeKind::keyword_argument && argument.text == "shape"))
            check_uses(argument);
        return;
      }
    }
    if (function == "range" || function == "static_range") {
      const SyntaxNode* const last = at(given.size() < 3 ? given.size() - 1 : 1);
      if (const SyntaxNode* const step = at(2); step != nullptr && step->kind != NodeKind::keyword_argument &&
                                                values_.is_step(*step, result_.name)) {
        result_.in_loop = true;
        const bool strides = !is_block(*step);
        if (strides && !values_.of(*step).programs) refuse(call, "is part of the step of a loop");
        // All programs together take all blocks, however many programs there are.
        if (!strides || !values_.is_step(given[0], result_.name)) check_uses(given[0]);
        return check_uses(given[1]);
      }
      if (last != nullptr && values_.counts_blocks(*last, result_.name)) result_.in_loop = true;
      for (const SyntaxNode& bound : given)
        if (bound.kind == NodeKind::binary && bound.text == "//" && is_block(right_operand(bound))) {
          result_.larger = false; // what is left over is left out
          check_uses(left_operand(bound));
        } else {
          check_uses(bound);
        }
      return;
    }
    check_all(call);
  }
  /// `number * P`, where a block begins. False: the parameter is no operand.
  [[nodiscard]] bool check_product(const SyntaxNode& product) {
    for (const auto& [size, other] : {std::pair(&left_operand(product), &right_operand(product)),
                                      std::pair(&right_operand(product), &left_operand(product))}) {
      if (!is_block(*size)) continue;
      const BlockValue number = values_.of(*other);
      if (number.axes.contains(-1)) refuse(product, "counts along an axis that was not recognised");
      if (number.axes.empty() && !number.counters.contains(result_.name))
        refuse(product, "is multiplied with what counts no blocks");
      if (number.shape != std::vector<std::string>{}) refuse(product, "is multiplied with a block");
      // Where the next block begins may be behind the end.
      walk(*other, [this](const SyntaxNode& node) {
        if (node.kind == NodeKind::binary && node.text == "+" && integer_of(right_operand(node)))
          result_.larger = false;
      });
      result_.axes.insert(number.axes.begin(), number.axes.end());
      check_uses(*other);
      return true;
    }
    return false;
  }
  /// Whether a statement stands in a loop that goes from block to block.
  [[nodiscard]] bool in_loop_over_blocks(const SyntaxNode& statement) const {
    bool inside = false;
    walk(values_.body(), [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::for_each_loop || node.range.begin > statement.range.begin ||
          node.range.end < statement.range.end || node.children[1].kind != NodeKind::call)
        return;
      const auto bounds = arguments(node.children[1]);
      std::size_t count = 0;
      while (count < bounds.size() && bounds[count].kind != NodeKind::keyword_argument) ++count;
      if (count == 3)
        inside = inside || is_block(bounds[2]);
      else if (count > 0)
        inside = inside || values_.counts_blocks(bounds[count - 1], result_.name);
    });
    return inside;
  }

  // --- loads and stores

  /// `filled`: blocks fill the axis, a condition says.
  void check_accesses(const SyntaxNode& node, bool filled) {
    if (node.kind == NodeKind::if_statement || node.kind == NodeKind::conditional) {
      const bool asks = values_.asks_for_rest(node.children[0], result_.name);
      const std::size_t then = 1;
      for (std::size_t i = 0; i < node.children.size(); ++i)
        check_accesses(node.children[i], filled || (asks && i == then));
      return;
    }
    if (node.kind == NodeKind::call)
      for (const TritonOperation& operation : kernel_.operations)
        if (operation.range == node.range) check_operation(operation, node, filled);
    for (const SyntaxNode& child : node.children) check_accesses(child, filled);
  }
  void check_operation(const TritonOperation& operation, const SyntaxNode& call, bool filled) {
    using enum TritonOperationKind;
    if (operation.kind == atomic) refuse(call, "cannot be told apart from what is added up");
    if (operation.kind == scan && values_.of(call).lanes.contains(result_.name))
      refuse(call, "is the length of a scan");
    if (operation.kind != load && operation.kind != store) return;
    const SyntaxNode* const pointer = argument_of(call, 0, "pointer");
    const SyntaxNode* const mask = argument_of(call, operation.kind == load ? 1 : 2, "mask");
    if (pointer == nullptr) refuse(call, "is used in an access that was not recognised");
    BlockValue value = values_.of(*pointer);
    if (operation.kind == store && !result_.axes.empty() && !value.lanes.contains(result_.name))
      refuse(call, "says for how many elements a value is stored");
    const BlockValue masked = mask == nullptr ? BlockValue{} : values_.of(*mask);
    if (!value.lanes.contains(result_.name) && !masked.lanes.contains(result_.name)) return;
    std::vector<const SyntaxNode*> comparisons;
    if (mask != nullptr) values_.comparisons(*mask, comparisons);
    bool ends = false;
    for (const SyntaxNode* const one : comparisons) {
      BlockValue compared;
      for (const SyntaxNode& side : one->children) {
        const BlockValue part = values_.of(side);
        compared.lanes.insert(part.lanes.begin(), part.lanes.end());
        compared.places.insert(part.places.begin(), part.places.end());
      }
      if (!compared.lanes.contains(result_.name)) continue;
      if (!compared.places.contains(result_.name)) cover_whole(call);
      ends = true;
      for (const SyntaxNode& side : one->children)
        if (!values_.of(side).lanes.contains(result_.name)) result_.ends.push_back(&side);
    }
    if (ends || filled) return;
    if (!value.places.contains(result_.name)) cover_whole(call);
    result_.larger = false; // right where blocks fill the axis, as smaller ones then do
  }
  [[noreturn]] void cover_whole(const SyntaxNode& call) {
    result_.whole = true;
    refuse(call, "covers an axis whole");
  }

  // --- what folds or reshapes blocks

  void check_folds() {
    walk(values_.body(), [this](const SyntaxNode& node) {
      if (node.kind == NodeKind::member && node.text == ".T" && has_lanes(operand(node)))
        refuse(node, "is an extent of what is transposed");
      if (node.kind != NodeKind::call) return;
      const std::string function = function_of_call(node);
      const auto given = arguments(node);
      if (function == "dot") return check_dot(node);
      if (callee(node).kind == NodeKind::member &&
          (function == "sum" || function == "max" || function == "min"))
        return check_fold(node, function);
      if (values_.is_elementwise(function) || function == "zeros" || function == "full" ||
          function == "broadcast_to" || function == "arange")
        return;
      if (callee(node).kind == NodeKind::member && has_lanes(operand(callee(node))))
        refuse(node, "is an extent of what " + function + " works on");
      for (const SyntaxNode& argument : given)
        if (has_lanes(argument)) refuse(node, "is an extent of what " + function + " works on");
    });
  }
  [[nodiscard]] bool has_lanes(const SyntaxNode& node) const {
    return values_.of(node).lanes.contains(result_.name);
  }
  void check_dot(const SyntaxNode& call) {
    const auto given = arguments(call);
    if (given.size() < 2) return;
    if (!has_lanes(given[0]) && !has_lanes(given[1])) return;
    const auto left = values_.of(given[0]).shape, right = values_.of(given[1]).shape;
    if (!left || !right || left->size() != 2 || right->size() != 2)
      refuse(call, "may be any extent of the product");
    if ((*left)[0] == result_.name) result_.roles.insert('m');
    if ((*right)[1] == result_.name) result_.roles.insert('n');
    if ((*left)[1] != result_.name && (*right)[0] != result_.name) return;
    result_.roles.insert('k');
    if (!result_.axes.empty()) refuse(call, "says how much a program adds up");
    const auto a = behind_.of(given[0]), b = behind_.of(given[1]);
    using Kind = ValuesBehindEnd::Behind::Kind;
    const bool neutral = (a.is(0) && b.kind != Kind::unknown) || (b.is(0) && a.kind != Kind::unknown);
    if (!neutral) result_.larger = false;
  }
  void check_fold(const SyntaxNode& call, const std::string& function) {
    const SyntaxNode* const folded = argument_of(call, 0, "input");
    if (folded == nullptr || !has_lanes(*folded)) return;
    const auto shape = values_.of(call).shape;
    if (shape && std::find(shape->begin(), shape->end(), result_.name) != shape->end()) return;
    if (!result_.axes.empty()) refuse(call, "says how much a program folds");
    // In the loop over the blocks, whatever is stored there may be of one block only.
    walk(values_.body(), [&](const SyntaxNode& node) {
      const bool stores = node.kind == NodeKind::call && function_of_call(node) == "store" &&
                          argument_of(node, 0, "pointer") != nullptr &&
                          has_lanes(*argument_of(node, 0, "pointer"));
      if (stores && in_same_loop(node, call)) refuse(call, "says what is folded for what the loop stores");
    });
    const double neutral = function == "sum"   ? 0.0
                           : function == "max" ? -std::numeric_limits<double>::infinity()
                                               : std::numeric_limits<double>::infinity();
    if (!behind_.of(*folded).is(neutral)) result_.larger = false;
  }
  [[nodiscard]] bool in_same_loop(const SyntaxNode& a, const SyntaxNode& b) const {
    bool both = false;
    walk(values_.body(), [&](const SyntaxNode& node) {
      const auto holds = [&](const SyntaxNode& one) {
        return node.range.begin <= one.range.begin && one.range.end <= node.range.end;
      };
      if (node.kind == NodeKind::for_each_loop || node.kind == NodeKind::while_loop)
        both = both || (holds(a) && holds(b));
    });
    return both;
  }

  const TritonKernel& kernel_;
  const BlockValues& values_;
  ValuesBehindEnd behind_;
  BlockParameter result_{};
};

/// The sizes of blocks of a kernel, in the order of its parameters.
[[nodiscard]] inline std::vector<BlockParameter> block_parameters(const ProgramRequest& request,
                                                                  const TritonKernel& kernel) {
  const SyntaxNode& definition = definition_of(request, kernel);
  std::set<std::string> blocks;
  walk(function_body(definition), [&](const SyntaxNode& node) {
    if (node.kind != NodeKind::call || function_of_call(node) != "arange") return;
    const SyntaxNode* const end = argument_of(node, 1, "end");
    for (const TritonParameter& parameter : kernel.parameters)
      if (end != nullptr && is_name(*end, parameter.name)) blocks.insert(parameter.name);
  });
  // Functions of the text that neither touch memory nor fold anything.
  std::set<std::string> helpers;
  for (const TritonKernel& one : request.triton.kernels)
    if (one.operations.empty() && one.loops.empty()) helpers.insert(one.name);
  for (const TritonKernel& one : request.triton.kernels)
    for (const std::string& called : one.calls)
      if (!helpers.contains(called)) helpers.erase(one.name);
  const BlockValues values(definition, blocks, helpers);
  std::vector<BlockParameter> all;
  for (const TritonParameter& parameter : kernel.parameters)
    if (blocks.contains(parameter.name))
      all.push_back(BlockParameterReader(kernel, values, parameter.name).read());
  return all;
}

} // namespace mtmc::detail
