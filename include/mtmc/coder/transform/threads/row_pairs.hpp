#pragma once
/// Scalars that the threads of a row reduce together: where the largest value is, sums relative to a running
/// maximum, mean and variance.

#include <mtmc/analysis/legality/joint_reductions.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/reductions.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The largest finite number of a type with its sign turned: an exponential of what lies below it is zero,
/// and its distance to itself is a number, which that of an infinity is not.
[[nodiscard]] inline std::string lowest_number(std::string_view type) {
  return type == "double" ? "-1.7976931348623157e308" : "-3.402823466e+38f";
}

/// Replaces an expression wherever it stands.
inline void replace_equal(SyntaxNode& node, const SyntaxNode& from, const SyntaxNode& to) {
  if (structurally_equal(node, from)) {
    node = to;
    return;
  }
  for (SyntaxNode& child : node.children) replace_equal(child, from, to);
}

/// What the threads of a row do around the loop that they share: each reduces into variables of its own,
/// which are made one behind the loop.
struct RowNames {
  /// A name that nothing has yet.
  std::function<std::string(const std::string& base)> fresh{};
  /// The function that combines the values of all threads.
  std::function<std::string(ReductionOperation operation, const std::string& type)> function{};
  /// Whether a scalar certainly has this value when the loop begins.
  std::function<bool(const Variable& variable, std::string_view value)> starts_with{};
};

/// Writes the parts of a joint reduction.
class JointSharing {
public:
  JointSharing(const LoopInfo& loop, const JointReduction& joint, const RowNames& names)
      : loop_(loop), joint_(joint), names_(names) {}

  /// Gives the loop's body variables of the thread's own; the statements in front of the loop and behind it.
  void share(SyntaxNode& body, std::vector<SyntaxNode>& before, std::vector<SyntaxNode>& after) {
    switch (joint_.kind) {
    case JointKind::place:
      share_place(body);
      break;
    case JointKind::constant:
      share_constant(body);
      break;
    case JointKind::rescaled:
      share_rescaled(body);
      break;
    case JointKind::moments:
      share_moments(body);
      break;
    }
    for (SyntaxNode& statement : parse_statements(before_)) before.push_back(std::move(statement));
    for (SyntaxNode& statement : parse_statements(after_)) after.push_back(std::move(statement));
  }

private:
  /// A variable of the thread in the place of one of the row.
  std::string part_of(SyntaxNode& body, const Variable& variable, const std::string& first) {
    const std::string part = names_.fresh(variable.name + "_part");
    before_ += variable.type + ' ' + part + " = " + first + ";\n";
    substitute(body, variable.name, make_name(part));
    return part;
  }
  [[nodiscard]] std::string all(ReductionOperation operation, const std::string& type,
                                const std::string& value) const {
    return names_.function(operation, type) + '(' + value + ')';
  }
  [[nodiscard]] std::string sum(const std::string& type, const std::string& value) const {
    return all(ReductionOperation::sum, type, value);
  }

  /// The first or last of the loop's values that no iteration has.
  [[nodiscard]] static std::string no_place(const std::string& type, bool least) {
    const TypeFacts facts = type_facts(type);
    if (!least && facts.is_unsigned)
      throw TransformDeclined("the last place of equal values has the type " + type +
                              ", which has no "
                              "number below all places");
    if (facts.size == 8)
      return facts.is_unsigned ? "18446744073709551615ull"
             : least           ? "9223372036854775807ll"
                               : "-9223372036854775807ll";
    return facts.is_unsigned ? "4294967295u" : least ? "2147483647" : "-2147483647";
  }

  void share_place(SyntaxNode& body) {
    const Variable& leader = *joint_.leader;
    if (joint_.starts_with_number && !starts_with_a_number(leader))
      throw TransformDeclined("the first value of " + leader.name +
                              " might be no number, which only some of its comparisons notice");
    // The serial loop keeps the first of equal values, or the last, in its own order.
    const bool least = joint_.first == (loop_.step > 0);
    const ReductionOperation nearest = least ? ReductionOperation::minimum : ReductionOperation::maximum;
    const std::string best = part_of(body, leader, leader.name);
    const std::string type =
        without_qualifiers(joint_.place != nullptr ? joint_.place->type : loop_.variable_type);
    const std::string none = no_place(type, least);
    std::string place;
    if (joint_.place != nullptr) {
      place = part_of(body, *joint_.place, none);
    } else {
      place = names_.fresh(leader.name + "_at");
      before_ += type + ' ' + place + " = " + none + ";\n"; // no iteration has won
      note_place(body, best, place);
    }
    std::vector<std::pair<const Variable*, std::string>> others;
    for (const Variable* follower : joint_.followers)
      if (follower != joint_.place) others.emplace_back(follower, part_of(body, *follower, follower->name));
    const std::string whole = names_.fresh(leader.name + "_of_all");
    const std::string winner =
        names_.fresh((joint_.place != nullptr ? joint_.place->name : place) + "_of_all");
    after_ +=
        "const " + leader.type + ' ' + whole + " = " +
        all(joint_.largest ? ReductionOperation::maximum : ReductionOperation::minimum, leader.type, best) +
        ";\n";
    after_ += "const " + type + ' ' + winner + " = " +
              all(nearest, type, best + " == " + whole + " ? " + place + " : " + none) + ";\n";
    std::string taken;
    if (joint_.place != nullptr) taken += "  " + joint_.place->name + " = " + winner + ";\n";
    for (const auto& [follower, part] : others) {
      const std::string value = names_.fresh(follower->name + "_of_all");
      after_ += "const " + follower->type + ' ' + value + " = " +
                sum(follower->type, place + " == " + winner + " ? " + part + " : 0") + ";\n";
      taken += "  " + follower->name + " = " + value + ";\n";
    }
    if (!taken.empty()) after_ += "if (" + winner + " != " + none + ") {\n" + taken + "}\n";
    after_ += leader.name + " = " + whole + ";\n";
  }
  /// The text gives a number as the first value, not something read from memory.
  [[nodiscard]] static bool starts_with_a_number(const Variable& leader) {
    if (leader.declaration == nullptr || !type_facts(leader.type).floating)
      return leader.declaration != nullptr;
    const SyntaxNode* value = initial_value(*leader.declaration);
    if (value == nullptr) return false;
    if (value->kind == NodeKind::unary) value = &operand(*value);
    return value->kind == NodeKind::literal || is_name(*value, "INFINITY") || is_name(*value, "FLT_MAX") ||
           is_name(*value, "DBL_MAX");
  }
  /// Notes the loop's variable where the leader is assigned.
  void note_place(SyntaxNode& node, const std::string& leader, const std::string& place) {
    for (SyntaxNode& child : node.children) {
      if (child.kind == NodeKind::expression_statement && assigns(operand(child), leader)) {
        SyntaxNode note = make_assignment(make_name(place), "=", make_name(loop_.variable));
        if (operand(child).kind == NodeKind::assignment &&
            right_operand(operand(child)).kind == NodeKind::conditional)
          note = make_if(right_operand(operand(child)).children[0], std::move(note));
        else if (joint_.starts_with_number ||
                 (node.kind != NodeKind::block && node.kind != NodeKind::if_statement))
          throw TransformDeclined("it is not seen where " + joint_.leader->name + " is assigned");
        std::vector<SyntaxNode> both = node_list(std::move(note), child);
        if (node.kind == NodeKind::block) {
          const auto at = node.children.begin() + (&child - node.children.data());
          node.children.insert(at, std::move(both.front()));
        } else {
          child = make_block(std::move(both));
        }
        return;
      }
      note_place(child, leader, place);
    }
  }
  [[nodiscard]] static bool assigns(const SyntaxNode& expression, const std::string& name) {
    if (expression.kind == NodeKind::binary && expression.text == ",")
      return assigns(left_operand(expression), name) || assigns(right_operand(expression), name);
    return expression.kind == NodeKind::assignment && is_name(left_operand(expression), name);
  }

  void share_constant(SyntaxNode& body) {
    const Variable& flag = *joint_.leader;
    const std::string part = names_.fresh(flag.name + "_assigned");
    before_ += "int " + part + " = 0;\n";
    substitute(body, flag.name, make_name(part));
    for_assignments(body, part, [](SyntaxNode& value) { value = make_integer(1); });
    after_ += "if (" + all(ReductionOperation::maximum, "int", part) + ") " + flag.name + " = " +
              print(*joint_.value) + ";\n";
  }
  template <class Edit> static void for_assignments(SyntaxNode& node, const std::string& name, Edit edit) {
    if (node.kind == NodeKind::assignment && is_name(left_operand(node), name)) edit(right_operand(node));
    for (SyntaxNode& child : node.children) for_assignments(child, name, edit);
  }

  void share_rescaled(SyntaxNode& body) {
    const Variable& leader = *joint_.leader;
    const std::string& type = leader.type;
    const std::string larger = type == "double" ? "fmax" : "fmaxf";
    const std::string part = part_of(body, leader, lowest_number(type));
    const std::string whole = names_.fresh(leader.name + "_of_all");
    after_ += "const " + type + ' ' + whole + " = " + larger + '(' + leader.name + ", " +
              all(ReductionOperation::maximum, type, part) + ");\n";
    for (const Variable* follower : joint_.followers) {
      const std::string zero = type == "double" ? "0.0" : "0.0f";
      const std::string own = part_of(body, *follower, zero);
      const std::string scaled =
          sum(type, own + " * " + joint_.exponential + '(' + part + " - " + whole + ')');
      const bool from_zero = names_.starts_with(*follower, zero);
      after_ += follower->name + " = " +
                (from_zero ? ""
                           : follower->name + " * " + joint_.exponential + '(' + leader.name + " - " + whole +
                                 ") + ") +
                scaled + ";\n";
    }
    after_ += leader.name + " = " + whole + ";\n";
  }

  void share_moments(SyntaxNode& body) {
    const Variable& mean = *joint_.leader;
    const std::string& type = mean.type;
    const std::string zero = type == "double" ? "0.0" : "0.0f";
    const auto require_zero = [&](const Variable& variable) {
      const TypeFacts facts = type_facts(variable.type);
      if (!names_.starts_with(variable, !facts.floating ? "0" : facts.size == 8 ? "0.0" : "0.0f"))
        throw TransformDeclined(variable.name + " is not zero in front of " + loop_name(loop_));
    };
    require_zero(mean);
    std::string count, counted;
    if (joint_.count != nullptr) {
      require_zero(*joint_.count);
      count = part_of(body, *joint_.count, "0");
      counted = joint_.count->name;
      after_ += counted + " = " + sum(joint_.count->type, count) + ";\n";
    } else {
      count = names_.fresh(mean.name + "_count");
      counted = names_.fresh(count + "_of_all");
      before_ += "int " + count + " = 0;\n";
      const SyntaxNode expression = *joint_.counted;
      replace_equal(body, expression, make_name(count));
      body = as_block(std::move(body));
      body.children.insert(body.children.begin(),
                           make_expression_statement(make_unary("++", make_name(count))));
      after_ += "const int " + counted + " = " + sum("int", count) + ";\n";
    }
    const std::string part = part_of(body, mean, zero);
    const std::string divisor =
        type == "double" ? "fmax((double)" + counted + ", 1.0)" : "fmaxf((float)" + counted + ", 1.0f)";
    after_ += mean.name + " = " + sum(type, count + " * " + part) + " / " + divisor + ";\n";
    for (const Variable* squares : joint_.followers) {
      require_zero(*squares);
      const std::string own = part_of(body, *squares, zero);
      const std::string distance = '(' + part + " - " + mean.name + ')';
      after_ += squares->name + " = " + sum(type, own + " + " + count + " * " + distance + " * " + distance) +
                ";\n";
    }
  }

  const LoopInfo& loop_;
  const JointReduction& joint_;
  const RowNames& names_;
  std::string before_{};
  std::string after_{};
};

} // namespace mtmc::detail
