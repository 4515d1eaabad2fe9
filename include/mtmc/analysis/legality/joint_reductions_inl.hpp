#pragma once
/// Definitions of analysis/legality/joint_reductions.hpp.

#include <mtmc/analysis/dependence/dependence.hpp>
#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/flow/updates.hpp>
#include <mtmc/analysis/legality/joint_reductions.hpp>
#include <mtmc/analysis/legality/scalar_values.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Takes apart the scalars that a loop carries.
class CarriedScalarsFinder {
public:
  explicit CarriedScalarsFinder(const LoopInfo& loop) : loop_(loop) {}

  [[nodiscard]] CarriedScalars find() {
    if (Legality known = analysable(loop_); !known) return refused(known.reason);
    for (const Dependence& dependence : dependences_in(loop_))
      if (carries(loop_, dependence)) return refused(depends(loop_, dependence));
    for (const ScalarFacts& scalar : classify_scalars(loop_)) {
      if (scalar.role == ScalarRole::invariant || scalar.declared_inside) continue;
      const bool lost = scalar.role == ScalarRole::privatizable && !scalar.live_out;
      if (lost) continue;
      states_.push_back({scalar.variable, scalar.role == ScalarRole::reduction, scalar.operation});
    }
    if (any_open() && !reads_what_it_writes()) {
      find_constants();
      find_places(*loop_.node);
      find_values();
    }
    for (const State& state : states_)
      if (!state.single && !state.claimed) return refused(depends(loop_, *state.variable));
    for (const State& state : states_) {
      if (state.claimed) continue;
      Reduction reduction;
      reduction.operation = state.operation;
      reduction.scalar = state.variable;
      reduction.type = state.variable->type;
      result_.single.push_back(std::move(reduction));
    }
    result_.legality = allowed();
    return std::move(result_);
  }

private:
  /// A scalar that survives an iteration.
  struct State {
    const Variable* variable = nullptr;
    bool single = false; ///< it is a reduction of its own, as far as its own uses tell
    ReductionOperation operation = ReductionOperation::none;
    bool claimed = false;
  };

  [[nodiscard]] CarriedScalars refused(std::string reason) const {
    CarriedScalars result;
    result.legality = declined(std::move(reason));
    return result;
  }
  [[nodiscard]] bool any_open() const {
    return std::any_of(states_.begin(), states_.end(),
                       [](const State& state) { return !state.single && !state.claimed; });
  }
  [[nodiscard]] State* state_of(std::string_view name) {
    for (State& state : states_)
      if (state.variable->name == name) return &state;
    return nullptr;
  }
  /// A scalar of numbers that only its own name reaches.
  [[nodiscard]] bool is_plain(const Variable& variable) const {
    const TypeFacts type = type_facts(variable.type);
    return (type.floating || type.integer) && !variable.pointer && !variable.array &&
           !variable.address_taken && !variable.persistent &&
           std::count_if(loop_.function->variables.begin(), loop_.function->variables.end(),
                         [&](const Variable& other) { return other.name == variable.name; }) == 1;
  }
  [[nodiscard]] bool mentions_state(const SyntaxNode& node) const {
    return std::any_of(states_.begin(), states_.end(),
                       [&](const State& state) { return uses_name(node, state.variable->name); });
  }
  [[nodiscard]] std::span<const ScalarUse> uses() const {
    return std::span(loop_.function->scalar_uses)
        .subspan(loop_.scalar_uses.first, loop_.scalar_uses.last - loop_.scalar_uses.first);
  }
  /// Two readings of one element might differ.
  [[nodiscard]] bool reads_what_it_writes() const {
    const auto& accesses = loop_.function->accesses;
    for (std::size_t i = loop_.accesses.first; i < loop_.accesses.last; ++i)
      for (std::size_t k = loop_.accesses.first; accesses[i].write && k < loop_.accesses.last; ++k)
        if (!accesses[k].write && (accesses[k].array == accesses[i].array || accesses[k].array->unknown ||
                                   accesses[i].array->unknown))
          return true;
    return false;
  }

  // --- constants

  void find_constants() {
    for (State& state : states_) {
      if (state.single || !is_plain(*state.variable)) continue;
      const SyntaxNode* value = nullptr;
      bool same = true;
      for (const ScalarUse& use : uses()) {
        if (use.variable != state.variable) continue;
        const SyntaxNode* const assigned = use.write ? assigned_literal(use) : nullptr;
        same = same && assigned != nullptr && (value == nullptr || same_expression(*value, *assigned));
        value = assigned;
      }
      if (!same || value == nullptr) continue;
      JointReduction joint;
      joint.kind = JointKind::constant;
      joint.leader = state.variable;
      joint.value = value;
      state.claimed = true;
      result_.joint.push_back(std::move(joint));
    }
  }
  /// One constant in all iterations that assign it.
  [[nodiscard]] bool is_constant(const Variable& variable) const {
    return std::any_of(result_.joint.begin(), result_.joint.end(), [&](const JointReduction& joint) {
      return joint.kind == JointKind::constant && joint.leader == &variable;
    });
  }
  [[nodiscard]] static const SyntaxNode* assigned_literal(const ScalarUse& use) {
    if (use.statement == nullptr || use.statement->kind != NodeKind::expression_statement) return nullptr;
    const SyntaxNode& expression = operand(*use.statement);
    if (expression.kind != NodeKind::assignment || expression.text != "=" ||
        !is_name(left_operand(expression), use.variable->name))
      return nullptr;
    const SyntaxNode& value = right_operand(expression);
    const SyntaxNode& number = value.kind == NodeKind::unary && value.text == "-" ? operand(value) : value;
    return number.kind == NodeKind::literal ? &value : nullptr;
  }

  // --- places

  /// One scalar is assigned where an element wins against the leader.
  struct Assignment {
    std::string_view target;
    const SyntaxNode* value = nullptr;
  };
  /// A comparison `value symbol leader`.
  struct Contest {
    const SyntaxNode* value = nullptr;
    std::string leader{};
    std::string symbol{};
    const SyntaxNode* condition = nullptr; ///< all that has to hold, the comparison and what stands beside it
  };

  void find_places(const SyntaxNode& node) {
    if (is_expression(node.kind)) return;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const SyntaxNode& child = node.children[i];
      if (child.kind == NodeKind::if_statement || child.kind == NodeKind::expression_statement)
        for (const Contest& contest : contests_of(child))
          if (claim_place(contest, std::span(node.children).subspan(i))) break;
      find_places(child);
    }
  }
  /// The comparisons with a scalar that survives which a statement begins with.
  [[nodiscard]] std::vector<Contest> contests_of(const SyntaxNode& statement) {
    const SyntaxNode* condition = nullptr;
    if (statement.kind == NodeKind::if_statement) {
      if (else_branch(statement) == nullptr) condition = &if_condition(statement);
    } else if (const SyntaxNode& expression = operand(statement);
               expression.kind == NodeKind::assignment &&
               right_operand(expression).kind == NodeKind::conditional) {
      condition = &right_operand(expression).children[0];
    }
    std::vector<Contest> contests;
    if (condition == nullptr) return contests;
    for (const SyntaxNode* part : chain_of(*condition, "&&"))
      if (auto contest = contest_of(*part)) {
        contest->condition = condition;
        if (is_won(*contest)) contests.push_back(*contest);
      }
    return contests;
  }
  [[nodiscard]] std::optional<Contest> contest_of(const SyntaxNode& comparison) {
    if (comparison.kind != NodeKind::binary) return std::nullopt;
    std::string symbol = comparison.text;
    if (symbol != "<" && symbol != "<=" && symbol != ">" && symbol != ">=") return std::nullopt;
    const SyntaxNode *value = &left_operand(comparison), *leader = &right_operand(comparison);
    if (leader->kind != NodeKind::name || state_of(leader->text) == nullptr) {
      std::swap(value, leader);
      symbol.front() = symbol.front() == '<' ? '>' : '<';
    }
    if (leader->kind != NodeKind::name || state_of(leader->text) == nullptr || mentions_state(*value))
      return std::nullopt;
    return Contest{value, leader->text, symbol};
  }
  /// The comparison stands alone, or with others that no scalar which survives decides.
  [[nodiscard]] bool is_won(const Contest& contest) {
    int contests = 0;
    for (const SyntaxNode* part : chain_of(*contest.condition, "&&")) {
      const auto own = contest_of(*part);
      if (own && own->leader == contest.leader && same_expression(*own->value, *contest.value))
        ++contests;
      else if (mentions_state(*part))
        return false;
    }
    return contests == 1;
  }
  /// Values of the expression are kept as they are by a variable of that type: what was compared is what the
  /// next comparison sees.
  [[nodiscard]] bool keeps_values(const SyntaxNode& value, const TypeFacts& type) const {
    if (value.kind == NodeKind::cast) {
      const TypeFacts own = type_facts(value.type);
      return own.floating == type.floating && own.size == type.size && own.is_unsigned == type.is_unsigned;
    }
    if (value.kind == NodeKind::literal) {
      const bool real = value.text.find('.') != std::string::npos;
      return type.floating ? !real || type.size == 8 || value.text.back() == 'f' : !real;
    }
    if (value.kind == NodeKind::subscript) return keeps_values(subscript_base(value), type);
    if (value.kind == NodeKind::name) {
      for (const Variable& variable : loop_.function->variables) {
        if (variable.name != value.text) continue;
        const TypeFacts own = type_facts(variable.type);
        if (!own.floating && !own.integer) return false;
        if (type.floating ? own.floating && own.size > type.size
                          : own.floating || own.size > type.size ||
                                (own.is_unsigned != type.is_unsigned && own.size == type.size))
          return false;
      }
      return true;
    }
    if (value.kind == NodeKind::opaque || value.kind == NodeKind::member) return false;
    if (value.kind == NodeKind::call && !type.floating) return false;
    return std::all_of(value.children.begin() + (value.kind == NodeKind::call ? 1 : 0), value.children.end(),
                       [&](const SyntaxNode& child) { return keeps_values(child, type); });
  }

  /// The statements from a contest on that assign by it.
  [[nodiscard]] bool claim_place(const Contest& contest, std::span<const SyntaxNode> rest) {
    State* const leader = state_of(contest.leader);
    if (leader->claimed || !is_plain(*leader->variable) ||
        !keeps_values(*contest.value, type_facts(leader->variable->type)))
      return false;
    JointReduction joint;
    joint.leader = leader->variable;
    joint.largest = contest.symbol.front() == '>';
    joint.first = contest.symbol.size() == 1;
    std::vector<const SyntaxNode*> statements;
    std::vector<Assignment> assignments;
    bool moved = false; // the leader has its new value
    for (const SyntaxNode& statement : rest) {
      if (statement.kind == NodeKind::comment || statement.kind == NodeKind::empty) continue;
      if (moved) break;
      std::vector<Assignment> own;
      if (!read_assignments(statement, contest, own)) {
        if (!updates_leader(statement, contest, joint)) break;
        joint.starts_with_number = true;
        moved = true;
        statements.push_back(&statement);
        continue;
      }
      for (Assignment& one : own) {
        moved = moved || one.target == contest.leader;
        assignments.push_back(one);
      }
      statements.push_back(&statement);
    }
    if (!moved) return false;
    for (const Assignment& one : assignments) {
      if (one.target == contest.leader) {
        if (!same_expression(without_casts(*one.value), without_casts(*contest.value))) return false;
        continue;
      }
      State* const follower = state_of(one.target);
      if (follower != nullptr && is_constant(*follower->variable)) continue; // whoever wins
      if (follower == nullptr || follower->claimed || !is_plain(*follower->variable) ||
          mentions_state(*one.value))
        return false;
      if (std::find(joint.followers.begin(), joint.followers.end(), follower->variable) !=
          joint.followers.end())
        return false;
      joint.followers.push_back(follower->variable);
      const TypeFacts type = type_facts(follower->variable->type);
      if (joint.place == nullptr && type.integer && type.size >= 4 && is_plain(*follower->variable) &&
          is_name(without_casts(*one.value), loop_.variable))
        joint.place = follower->variable;
    }
    if (!used_only_in(joint, statements)) return false;
    leader->claimed = true;
    for (const Variable* follower : joint.followers) state_of(follower->name)->claimed = true;
    result_.joint.push_back(std::move(joint));
    return true;
  }

  /// Whether the statement does nothing but assign where the element wins; what it assigns.
  [[nodiscard]] static bool read_assignments(const SyntaxNode& statement, const Contest& contest,
                                             std::vector<Assignment>& result) {
    if (statement.kind == NodeKind::if_statement) {
      if (else_branch(statement) != nullptr || !same_expression(if_condition(statement), *contest.condition))
        return false;
      for (const SyntaxNode& inner : mtmc::statements(then_branch(statement))) {
        if (inner.kind == NodeKind::comment || inner.kind == NodeKind::empty) continue;
        if (inner.kind != NodeKind::expression_statement) return false;
        for (const SyntaxNode* part : chain_of(operand(inner), ",")) {
          if (part->kind != NodeKind::assignment || part->text != "=" ||
              left_operand(*part).kind != NodeKind::name)
            return false;
          result.push_back({left_operand(*part).text, &right_operand(*part)});
        }
      }
      return !result.empty();
    }
    if (statement.kind != NodeKind::expression_statement) return false;
    const SyntaxNode& expression = operand(statement);
    if (expression.kind != NodeKind::assignment || expression.text != "=" ||
        left_operand(expression).kind != NodeKind::name ||
        right_operand(expression).kind != NodeKind::conditional)
      return false;
    const SyntaxNode& choice = right_operand(expression);
    if (!is_name(choice.children[2], left_operand(expression).text) ||
        !same_expression(choice.children[0], *contest.condition))
      return false;
    result.push_back({left_operand(expression).text, &choice.children[1]});
    return true;
  }
  /// `best = fmaxf(best, v);`, where no other condition stands beside the contest.
  [[nodiscard]] bool updates_leader(const SyntaxNode& statement, const Contest& contest,
                                    const JointReduction& joint) const {
    if (statement.kind != NodeKind::expression_statement) return false;
    const SyntaxNode& expression = operand(statement);
    if (expression.kind != NodeKind::assignment || expression.text != "=" ||
        !is_name(left_operand(expression), contest.leader) || contest.condition->text == "&&")
      return false;
    const SyntaxNode& call = right_operand(expression);
    if (call.kind != NodeKind::call || call.children.size() != 3 || callee(call).kind != NodeKind::name)
      return false;
    const ReductionOperation wanted =
        joint.largest ? ReductionOperation::maximum : ReductionOperation::minimum;
    if (library_effect(callee(call).text).selects != wanted) return false;
    const SyntaxNode &a = call.children[1], &b = call.children[2];
    return (is_name(a, contest.leader) && same_expression(b, *contest.value)) ||
           (is_name(b, contest.leader) && same_expression(a, *contest.value));
  }
  /// All uses of the scalars in the loop stand in these statements.
  [[nodiscard]] bool used_only_in(const JointReduction& joint,
                                  const std::vector<const SyntaxNode*>& statements) const {
    std::set<const SyntaxNode*> inside;
    for (const SyntaxNode* statement : statements)
      walk(*statement, [&](const SyntaxNode& node) { inside.insert(&node); });
    return std::all_of(uses().begin(), uses().end(), [&](const ScalarUse& use) {
      const bool member =
          use.variable == joint.leader ||
          std::find(joint.followers.begin(), joint.followers.end(), use.variable) != joint.followers.end();
      return !member || inside.contains(use.node);
    });
  }

  // --- sums relative to a running maximum, means

  void find_values() {
    if (!any_open()) return;
    std::vector<std::string> names;
    for (const State& state : states_)
      if (!state.claimed) {
        if (!is_plain(*state.variable)) return;
        names.push_back(state.variable->name);
      }
    const auto values = values_after_iteration(loop_, names);
    if (!values) return;
    for (State& state : states_)
      if (!state.single && !state.claimed && !claim_rescaled(state, *values)) claim_moments(state, *values);
  }

  /// No scalar but those of the group depends on it.
  [[nodiscard]] bool stands_alone(const JointReduction& joint, const ScalarValues& values) const {
    std::vector<const Variable*> members = joint.followers;
    members.push_back(joint.leader);
    if (joint.count != nullptr) members.push_back(joint.count);
    return std::all_of(states_.begin(), states_.end(), [&](const State& state) {
      if (std::find(members.begin(), members.end(), state.variable) != members.end()) return true;
      const SyntaxNode* const value = values.find(state.variable->name);
      return value == nullptr || std::none_of(members.begin(), members.end(), [&](const Variable* member) {
               return uses_name(*value, member->name);
             });
    });
  }
  void claim(JointReduction joint) {
    state_of(joint.leader->name)->claimed = true;
    if (joint.count != nullptr) state_of(joint.count->name)->claimed = true;
    for (const Variable* follower : joint.followers) state_of(follower->name)->claimed = true;
    result_.joint.push_back(std::move(joint));
  }

  /// What the larger of `name` and another value is made of: that value.
  [[nodiscard]] const SyntaxNode* larger_than(const SyntaxNode& value, std::string_view name) const {
    const SyntaxNode *a = nullptr, *b = nullptr;
    const bool named = value.kind == NodeKind::call && value.children.size() == 3 &&
                       callee(value).kind == NodeKind::name &&
                       library_effect(callee(value).text).selects == ReductionOperation::maximum;
    if (named ||
        (value.kind == NodeKind::conditional &&
         selection(value.children[0], value.children[1], value.children[2]) == ReductionOperation::maximum)) {
      a = &value.children[1];
      b = &value.children[2];
    }
    if (a == nullptr) return nullptr;
    if (!is_name(*a, name)) std::swap(a, b);
    return is_name(*a, name) && !mentions_state(*b) ? b : nullptr;
  }

  [[nodiscard]] bool claim_rescaled(const State& leader, const ScalarValues& values) {
    const std::string& name = leader.variable->name;
    const SyntaxNode* const largest = values.find(name);
    if (largest == nullptr || !type_facts(leader.variable->type).floating) return false;
    const SyntaxNode* const element = larger_than(*largest, name);
    if (element == nullptr) return false;
    JointReduction joint;
    joint.kind = JointKind::rescaled;
    joint.leader = leader.variable;
    for (const State& state : states_) {
      if (state.variable == leader.variable || state.claimed) continue;
      const SyntaxNode* const sum = values.find(state.variable->name);
      if (sum == nullptr || !uses_name(*sum, name)) continue;
      if (state.variable->type != leader.variable->type ||
          !is_rescaled(*sum, state.variable->name, name, *largest, *element, joint.exponential))
        return false;
      joint.followers.push_back(state.variable);
    }
    if (joint.followers.empty() || !stands_alone(joint, values)) return false;
    claim(std::move(joint));
    return true;
  }

  /// `sum * exp(m - larger) + weight * exp(x - larger)`, with all of it chosen by whether x is larger or not.
  [[nodiscard]] bool is_rescaled(const SyntaxNode& value, const std::string& sum, const std::string& name,
                                 const SyntaxNode& largest, const SyntaxNode& element,
                                 std::string& exponential) const {
    const SyntaxNode before = make_name(name);
    if (largest.kind != NodeKind::conditional)
      return weights_of(value, sum, before, largest, element, exponential).has_value();
    const bool when = same_expression(largest.children[1], element);
    const SyntaxNode& condition = largest.children[0];
    const auto newer =
        weights_of(specialised(value, condition, when), sum, before, element, element, exponential);
    const auto older =
        weights_of(specialised(value, condition, !when), sum, before, before, element, exponential);
    if (!newer || !older || newer->size() != older->size()) return false;
    return std::equal(newer->begin(), newer->end(), older->begin(),
                      [](const SyntaxNode& a, const SyntaxNode& b) { return same_expression(a, b); });
  }
  /// The value where a condition holds, or does not.
  [[nodiscard]] static SyntaxNode specialised(const SyntaxNode& value, const SyntaxNode& condition,
                                              bool holds) {
    if (value.kind == NodeKind::conditional && same_expression(value.children[0], condition))
      return specialised(value.children[holds ? 1 : 2], condition, holds);
    SyntaxNode result = value;
    for (SyntaxNode& child : result.children) child = specialised(child, condition, holds);
    return result;
  }
  /// What the exponentials of the terms besides the sum are multiplied by; nothing where the value has
  /// another shape.
  [[nodiscard]] std::optional<std::vector<SyntaxNode>>
  weights_of(const SyntaxNode& value, const std::string& sum, const SyntaxNode& before,
             const SyntaxNode& largest, const SyntaxNode& element, std::string& exponential) const {
    std::vector<SyntaxNode> weights;
    int sums = 0;
    for (const SyntaxNode* term : chain_of(value, "+")) {
      const bool own = uses_name(*term, sum);
      const SyntaxNode& from = own ? before : element;
      int exponentials = 0;
      std::vector<SyntaxNode> others;
      for (const SyntaxNode* factor : chain_of(*term, "*")) {
        if (is_exponential(*factor, from, largest, exponential))
          ++exponentials;
        else if (!is_number(*factor, '1'))
          others.push_back(*factor);
      }
      if (exponentials > 1 || (exponentials == 0 && !same_expression(from, largest))) return std::nullopt;
      if (own) {
        if (others.size() != 1 || !is_name(others.front(), sum)) return std::nullopt;
        ++sums;
        continue;
      }
      SyntaxNode weight = make_literal("1");
      for (SyntaxNode& other : others) {
        if (mentions_state(other)) return std::nullopt;
        weight = make_binary("*", std::move(weight), std::move(other));
      }
      weights.push_back(std::move(weight));
    }
    if (sums != 1) return std::nullopt;
    return weights;
  }
  [[nodiscard]] static bool is_exponential(const SyntaxNode& node, const SyntaxNode& value,
                                           const SyntaxNode& largest, std::string& function) {
    if (node.kind != NodeKind::call || node.children.size() != 2 || callee(node).kind != NodeKind::name)
      return false;
    const std::string_view name = plain_function_name(callee(node).text);
    if (name != "expf" && name != "exp" && name != "__expf" && name != "exp2f" && name != "exp2")
      return false;
    if (!function.empty() && function != callee(node).text) return false;
    const SyntaxNode& exponent = node.children[1];
    if (exponent.kind != NodeKind::binary || exponent.text != "-" ||
        !same_expression(left_operand(exponent), value) || !same_expression(right_operand(exponent), largest))
      return false;
    function = callee(node).text;
    return true;
  }

  void claim_moments(const State& leader, const ScalarValues& values) {
    const std::string& name = leader.variable->name;
    const SyntaxNode* const mean = values.find(name);
    if (mean == nullptr || !type_facts(leader.variable->type).floating || mean->kind != NodeKind::binary ||
        mean->text != "+" || !is_name(left_operand(*mean), name))
      return;
    const SyntaxNode* distance = &right_operand(*mean);
    const SyntaxNode* count = nullptr;
    if (distance->kind == NodeKind::binary && distance->text == "/") {
      count = &right_operand(*distance);
      distance = &left_operand(*distance);
    } else if (distance->kind == NodeKind::binary && distance->text == "*" &&
               right_operand(*distance).kind == NodeKind::binary && right_operand(*distance).text == "/" &&
               is_number(left_operand(right_operand(*distance)), '1')) {
      count = &right_operand(right_operand(*distance));
      distance = &left_operand(*distance);
    }
    if (count == nullptr || distance->kind != NodeKind::binary || distance->text != "-" ||
        !is_name(right_operand(*distance), name) || mentions_state(left_operand(*distance)))
      return;
    const SyntaxNode& element = left_operand(*distance);
    JointReduction joint;
    joint.kind = JointKind::moments;
    joint.leader = leader.variable;
    if (!read_count(without_casts(*count), values, joint)) return;
    const SyntaxNode rest = make_binary("-", element, *mean);
    for (const State& state : states_) {
      if (state.variable == leader.variable || state.variable == joint.count || state.claimed) continue;
      const SyntaxNode* const squares = values.find(state.variable->name);
      if (squares == nullptr || !uses_name(*squares, name)) continue;
      if (state.variable->type != leader.variable->type || !joint.followers.empty()) return;
      if (squares->kind != NodeKind::binary || squares->text != "+" ||
          !is_name(left_operand(*squares), state.variable->name))
        return;
      const SyntaxNode& product = right_operand(*squares);
      if (product.kind != NodeKind::binary || product.text != "*") return;
      const SyntaxNode &a = left_operand(product), &b = right_operand(product);
      if (!(same_expression(a, *distance) && same_expression(b, rest)) &&
          !(same_expression(b, *distance) && same_expression(a, rest)))
        return;
      joint.followers.push_back(state.variable);
    }
    if (stands_alone(joint, values)) claim(std::move(joint));
  }
  /// The number of values so far: a scalar that was moved by one, or the loop's variable from zero plus one.
  [[nodiscard]] bool read_count(const SyntaxNode& count, const ScalarValues& values, JointReduction& joint) {
    if (count.kind != NodeKind::binary || count.text != "+") return false;
    const SyntaxNode *counter = &left_operand(count), *one = &right_operand(count);
    if (!is_number(*one, '1')) std::swap(counter, one);
    counter = &without_casts(*counter);
    if (!is_number(*one, '1') || counter->kind != NodeKind::name) return false;
    if (const State* const state = state_of(counter->text); state != nullptr) {
      const SyntaxNode* const moved = values.find(counter->text);
      if (state->claimed || moved == nullptr || moved->kind != NodeKind::binary || moved->text != "+")
        return false;
      const SyntaxNode &a = left_operand(*moved), &b = right_operand(*moved);
      if (!(is_name(a, counter->text) && is_number(b, '1')) &&
          !(is_name(b, counter->text) && is_number(a, '1')))
        return false;
      joint.count = state->variable;
      return true;
    }
    if (!is_name(*counter, loop_.variable) || loop_.start.constant() != 0 || loop_.step != 1 ||
        values.nested() || values.conditional())
      return false;
    int places = 0;
    walk(loop_body(*loop_.node), [&](const SyntaxNode& node) {
      if (!same_expression(node, count)) return;
      joint.counted = &node;
      ++places;
    });
    return places == 1; // elsewhere it might be the number of an element
  }

  const LoopInfo& loop_;
  std::vector<State> states_{};
  CarriedScalars result_{};
};

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE CarriedScalars carried_scalars(const LoopInfo& loop) {
  return detail::CarriedScalarsFinder(loop).find();
}

} // namespace mtmc
