#pragma once
/// One pass over a row where one pass found the largest value and another one summed exponentials of the
/// distances to it.

#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/legality/scalar_values.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/reductions.hpp>
#include <mtmc/coder/transform/threads/row_pairs.hpp>
#include <mtmc/coder/transform/transformation.hpp>

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

/// Merges the pass for the maximum into the pass for the sums.
class OnlinePasses {
public:
  explicit OnlinePasses(const TransformRequest& request) : request_(request), tree_(request.tree) {}

  /// The tree with one pass. Throws `TransformDeclined`.
  [[nodiscard]] SyntaxNode merge() {
    static const std::vector<int> only{0};
    (void)choose_variant(only, request_.variant);
    const auto targets = find_loops(request_);
    if (targets.size() != 2) throw TransformDeclined("only two passes become one");
    place_ = targets[0].indices;
    second_at_ = targets[1].indices.back();
    for (const LoopTarget& target : targets)
      if (!target.loop->canonical || !target.loop->innermost())
        throw TransformDeclined(loop_name(*target.loop) + " is no innermost counting loop");
    read_maximum(*targets[0].loop);
    read_sums(*targets[1].loop, *targets[0].loop);
    is_seen_ = first_value().kind != NodeKind::empty && is_used_behind(*targets[1].loop);
    write();
    return std::move(tree_);
  }

private:
  /// `sum = sum + weight * exp(x - m)`.
  struct Sum {
    const Variable* variable = nullptr;
    std::optional<SyntaxNode> weight{};
  };

  /// Whether more than distances to the maximum is used behind the passes.
  [[nodiscard]] bool is_used_behind(const LoopInfo& last) const {
    std::set<const SyntaxNode*> subtracted;
    walk(*last.function->node, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::binary && node.text == "-") subtracted.insert(&right_operand(node));
    });
    return std::any_of(largest_->uses.begin(), largest_->uses.end(), [&](std::size_t at) {
      const ScalarUse& use = last.function->scalar_uses[at];
      return use.order >= last.order.last && !use.write && !subtracted.contains(use.node);
    });
  }
  /// Where no value was larger than the finite number that the maximum starts with, it is an infinity again.
  [[nodiscard]] std::string last_value() const {
    const std::string& m = largest_->name;
    const std::string infinity = largest_->type == "double" ? "log(0.0)" : "logf(0.0f)";
    return "if (" + m + " == " + lowest_number(largest_->type) + ") " + m + " = " + infinity +
           "; // as it was without a value\n";
  }

  static void require_silent(const LoopInfo& loop) {
    for (std::size_t i = loop.accesses.first; i < loop.accesses.last; ++i)
      if (loop.function->accesses[i].write)
        throw TransformDeclined(loop_name(loop) + " stores elements, which one pass would not know yet");
  }

  void read_maximum(const LoopInfo& loop) {
    require_silent(loop);
    const CarriedScalars carried = carried_scalars(loop);
    if (!carried.legality) throw TransformDeclined(carried.legality.reason);
    if (carried.single.size() != 1 || !carried.joint.empty() ||
        carried.single.front().operation != ReductionOperation::maximum ||
        !type_facts(carried.single.front().type).floating)
      throw TransformDeclined("the first pass does not look for one largest value");
    largest_ = carried.single.front().scalar;
    const auto values = values_after_iteration(loop, {largest_->name});
    const SyntaxNode* const value = values ? values->find(largest_->name) : nullptr;
    const SyntaxNode* element = nullptr;
    if (value != nullptr && (value->kind == NodeKind::call || value->kind == NodeKind::conditional) &&
        value->children.size() == 3) {
      const bool first = is_name(value->children[1], largest_->name);
      element = &value->children[first ? 2 : 1];
      if (!first && !is_name(value->children[2], largest_->name)) element = nullptr;
    }
    if (element == nullptr || values->conditional() || uses_name(*element, largest_->name) ||
        uses_locals(*element, loop))
      throw TransformDeclined("the values that the first pass compares are not seen");
    element_ = *element;
  }

  void read_sums(const LoopInfo& loop, const LoopInfo& first) {
    require_silent(loop);
    const CarriedScalars carried = carried_scalars(loop);
    if (!carried.legality) throw TransformDeclined(carried.legality.reason);
    if (!carried.joint.empty() || carried.single.empty())
      throw TransformDeclined("the second pass does more than to sum");
    substitute(element_, first.variable, make_name(loop.variable));
    std::vector<std::string> names;
    for (const Reduction& one : carried.single) names.push_back(one.scalar->name);
    const auto values = values_after_iteration(loop, names);
    for (const Reduction& one : carried.single) {
      const SyntaxNode* const value = values ? values->find(one.scalar->name) : nullptr;
      if (one.operation != ReductionOperation::sum || value == nullptr || values->conditional() ||
          uses_locals(*value, loop) || one.type != largest_->type)
        throw TransformDeclined(one.scalar->name + " is no sum of what the second pass reads");
      sums_.push_back({one.scalar, weight_of(*value, one.scalar->name)});
      if (!starts_with_zero(*one.scalar, loop))
        throw TransformDeclined(one.scalar->name + " is not zero in front of the second pass");
    }
    require_same_range(first, loop);
  }
  /// What the exponential is multiplied by.
  [[nodiscard]] std::optional<SyntaxNode> weight_of(const SyntaxNode& value, const std::string& sum) {
    const auto declines = [&]() -> TransformDeclined {
      return TransformDeclined(sum + " is no sum of exponentials of distances to " + largest_->name);
    };
    if (value.kind != NodeKind::binary || value.text != "+") throw declines();
    const bool left = is_name(left_operand(value), sum);
    if (!left && !is_name(right_operand(value), sum)) throw declines();
    const SyntaxNode& term = left ? right_operand(value) : left_operand(value);
    std::optional<SyntaxNode> weight;
    int exponentials = 0;
    for (const SyntaxNode* factor : chain_of(term, "*")) {
      if (is_exponential(*factor)) {
        ++exponentials;
      } else {
        if (uses_name(*factor, largest_->name)) throw declines();
        weight = weight ? make_binary("*", std::move(*weight), *factor) : *factor;
      }
    }
    if (exponentials != 1) throw declines();
    return weight;
  }
  [[nodiscard]] bool is_exponential(const SyntaxNode& node) {
    if (node.kind != NodeKind::call || node.children.size() != 2 || callee(node).kind != NodeKind::name)
      return false;
    const std::string& name = callee(node).text;
    const SyntaxNode& exponent = node.children[1];
    if (name != "expf" && name != "exp" && name != "__expf" && name != "exp2f" && name != "exp2")
      return false;
    if ((!exponential_.empty() && exponential_ != name) || exponent.kind != NodeKind::binary ||
        exponent.text != "-" || !structurally_equal(left_operand(exponent), element_) ||
        !is_name(right_operand(exponent), largest_->name))
      return false;
    exponential_ = name;
    return true;
  }

  [[nodiscard]] static bool starts_with_zero(const Variable& variable, const LoopInfo& loop) {
    if (variable.declaration == nullptr || variable.loop != nullptr) return false;
    const SyntaxNode* const value = initial_value(*variable.declaration);
    if (value == nullptr || !is_number(*value, '0')) return false;
    return std::none_of(variable.uses.begin(), variable.uses.end(), [&](std::size_t at) {
      const ScalarUse& use = loop.function->scalar_uses[at];
      return use.order < loop.order.first && use.node != variable.declaration;
    });
  }

  /// The first pass compares what the second one sums, all of it: its first value may be the element that it
  /// leaves out.
  void require_same_range(const LoopInfo& first, const LoopInfo& second) const {
    if (!structurally_equal(*first.bound_expression, *second.bound_expression) ||
        first.comparison != second.comparison || first.comparison.empty() || first.step != second.step ||
        first.variable_type != second.variable_type || first.variable_type.empty())
      throw TransformDeclined("the two passes do not go over the same elements");
    const SyntaxNode &from = *first.start_expression, &to = *second.start_expression;
    if (structurally_equal(from, to)) return;
    const bool plain = literal_value(from) == 1 && literal_value(to) == 0 && first.step == 1;
    const bool shared = from.kind == NodeKind::binary && from.text == "+" &&
                        literal_value(left_operand(from)) == 1 &&
                        structurally_equal(right_operand(from), to) && is_number_in_row(to, first.step);
    SyntaxNode start = element_;
    substitute(start, second.variable, make_integer(0));
    const SyntaxNode* const value =
        largest_->declaration == nullptr ? nullptr : initial_value(*largest_->declaration);
    if ((!plain && !shared) || value == nullptr ||
        !structurally_equal(without_zeros(start), without_zeros(*value)))
      throw TransformDeclined("the two passes do not go over the same elements");
  }
  /// The name of a number that the threads of a row have, from zero to the step that they take together.
  [[nodiscard]] bool is_number_in_row(const SyntaxNode& node, std::int64_t step) const {
    const ThreadLaunch launch = thread_launch(request_);
    for (const Variable& variable : launch.function->variables) {
      if (!is_name(node, variable.name) || variable.declaration == nullptr) continue;
      const SyntaxNode* const value = initial_value(*variable.declaration);
      if (value == nullptr) return false;
      if (print(*value) == "threadIdx.x % 32") return step == 32;
      return print(*value) == "threadIdx.x" && launch.line.block.size() == 1 &&
             launch.line.block.front() == std::to_string(step);
    }
    return false;
  }
  /// `a + 0` as `a`.
  [[nodiscard]] static SyntaxNode without_zeros(SyntaxNode node) {
    for (SyntaxNode& child : node.children) child = without_zeros(std::move(child));
    if (node.kind != NodeKind::binary || node.text != "+") return node;
    if (literal_value(right_operand(node)) == 0) return SyntaxNode(left_operand(node));
    if (literal_value(left_operand(node)) == 0) return SyntaxNode(right_operand(node));
    return node;
  }

  /// The function of `name = function(name);`, if the statement is that.
  [[nodiscard]] std::optional<std::string> combined_by(const SyntaxNode& statement, const std::string& name,
                                                       ReductionOperation operation) const {
    if (statement.kind != NodeKind::expression_statement) return std::nullopt;
    const SyntaxNode& expression = operand(statement);
    if (expression.kind != NodeKind::assignment || expression.text != "=" ||
        !is_name(left_operand(expression), name))
      return std::nullopt;
    const SyntaxNode& call = right_operand(expression);
    if (call.kind != NodeKind::call || call.children.size() != 2 || !is_name(call.children[1], name) ||
        callee(call).kind != NodeKind::name)
      return std::nullopt;
    const SyntaxNode* const there = find_function(request_.tree, callee(call).text);
    for (const bool warp : {false, true}) {
      ThreadReduction wanted{operation, largest_->type, warp};
      wanted.name = callee(call).text;
      const SyntaxNode parsed = parse(wanted.text());
      const SyntaxNode* const function = find_function(parsed, wanted.name);
      if (there != nullptr && function != nullptr && structurally_equal(*there, *function))
        return wanted.name;
    }
    return std::nullopt;
  }

  void write() {
    SyntaxNode& parent = parent_at(tree_, place_);
    if (parent.kind != NodeKind::block) throw TransformDeclined("the passes stand in no block");
    auto& block = parent.children;
    const std::size_t first_at = place_.back();
    std::optional<std::string> largest_of_all;
    std::vector<SyntaxNode> between;
    for (std::size_t i = first_at + 1; i < second_at_; ++i) {
      const SyntaxNode& statement = block[i];
      if (const auto function = combined_by(statement, largest_->name, ReductionOperation::maximum);
          function && !largest_of_all) {
        largest_of_all = function;
        continue;
      }
      const bool declares = statement.kind == NodeKind::declaration || statement.kind == NodeKind::comment;
      if (!declares || uses_name(statement, largest_->name) || names_thread_exchange(statement))
        throw TransformDeclined("line " + std::to_string(statement.range.first_line) +
                                " stands between the passes");
      between.push_back(statement);
    }
    std::vector<std::string> sums_of_all;
    std::size_t behind = second_at_ + 1;
    for (const Sum& sum : sums_) {
      if (!largest_of_all) break;
      const auto function = behind < block.size()
                                ? combined_by(block[behind], sum.variable->name, ReductionOperation::sum)
                                : std::nullopt;
      if (!function) throw TransformDeclined("it is not seen how the threads combine " + sum.variable->name);
      sums_of_all.push_back(*function);
      ++behind;
    }
    SyntaxNode made = block[second_at_];
    loop_body(made) = make_block(parse_statements(body_text()));
    std::vector<SyntaxNode> result;
    if (SyntaxNode start = first_value(); start.kind != NodeKind::empty) result.push_back(std::move(start));
    for (SyntaxNode& statement : between) result.push_back(std::move(statement));
    made.leading_trivia = block[first_at].leading_trivia + made.leading_trivia;
    result.push_back(std::move(made));
    if (largest_of_all)
      for (SyntaxNode& statement : parse_statements(ends_text(*largest_of_all, sums_of_all)))
        result.push_back(std::move(statement));
    if (is_seen_)
      for (SyntaxNode& statement : parse_statements(last_value())) result.push_back(std::move(statement));
    const auto from = block.begin() + static_cast<std::ptrdiff_t>(first_at);
    const auto at = block.erase(from, block.begin() + static_cast<std::ptrdiff_t>(behind));
    block.insert(at, std::make_move_iterator(result.begin()), std::make_move_iterator(result.end()));
  }
  [[nodiscard]] static bool names_thread_exchange(const SyntaxNode& statement) {
    bool found = false;
    walk(statement, [&](const SyntaxNode& node) {
      found = found || (node.kind == NodeKind::call && callee(node).kind == NodeKind::name &&
                        !library_effect(callee(node).text).mathematical);
    });
    return found;
  }

  /// Distances to an infinity are no numbers: the running maximum starts with a finite one.
  [[nodiscard]] SyntaxNode first_value() const {
    const SyntaxNode* const value =
        largest_->declaration == nullptr ? nullptr : initial_value(*largest_->declaration);
    if (value != nullptr) {
      const SyntaxNode& number = value->kind == NodeKind::unary ? operand(*value) : *value;
      if (number.kind == NodeKind::literal || is_name(number, "FLT_MAX") || is_name(number, "DBL_MAX"))
        return make_empty();
    }
    const std::string larger = largest_->type == "double" ? "fmax" : "fmaxf";
    return parse_statements(largest_->name + " = " + larger + '(' + largest_->name + ", " +
                            lowest_number(largest_->type) + "); // finite, for the distances to it\n")
        .front();
  }

  [[nodiscard]] std::string body_text() {
    const std::string& type = largest_->type;
    const std::string& m = largest_->name;
    const SyntaxNode visible = visible_names(tree_, place_);
    const std::string value = fresh_name(visible, "value");
    const std::string larger = fresh_name(visible, "larger");
    std::string text = "const " + type + ' ' + value + " = " + print(element_) + ";\n";
    text += "const " + type + ' ' + larger + " = " + (type == "double" ? "fmax" : "fmaxf") + '(' + m + ", " +
            value + ");\n";
    for (const Sum& sum : sums_) {
      SyntaxNode term =
          make_call(exponential_, node_list(make_binary("-", make_name(value), make_name(larger))));
      if (sum.weight) {
        SyntaxNode weight = *sum.weight;
        replace_equal(weight, element_, make_name(value));
        term = make_binary("*", std::move(weight), std::move(term));
      }
      const std::string& name = sum.variable->name;
      text += name + " = " + name + " * " + exponential_ + '(' + m + " - " + larger + ") + " + print(term) +
              ";\n";
    }
    return text + m + " = " + larger + ";\n";
  }
  [[nodiscard]] std::string ends_text(const std::string& largest_of_all,
                                      const std::vector<std::string>& sums_of_all) const {
    const std::string& m = largest_->name;
    const std::string whole =
        fresh_name(visible_names(tree_, {place_.begin(), place_.end() - 1}), m + "_of_all");
    std::string text = "const " + largest_->type + ' ' + whole + " = " + largest_of_all + '(' + m + ");\n";
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const std::string& name = sums_[i].variable->name;
      text += name + " = " + sums_of_all[i] + '(' + name + " * " + exponential_ + '(' + m + " - " + whole +
              "));\n";
    }
    return text + m + " = " + whole + ";\n";
  }

  const TransformRequest& request_;
  SyntaxNode tree_;
  std::vector<std::size_t> place_{};
  std::size_t second_at_ = 0;
  const Variable* largest_ = nullptr;
  SyntaxNode element_{};
  std::string exponential_{};
  std::vector<Sum> sums_{};
  bool is_seen_ = false; ///< the maximum itself is used behind the passes
};

/// One pass in the place of two, the first of which finds the largest value that the second one needs.
[[nodiscard]] inline SyntaxNode make_online(const TransformRequest& request) {
  return OnlinePasses(request).merge();
}

} // namespace mtmc::detail
