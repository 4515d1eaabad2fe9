#pragma once

#include <mtmc/analysis/flow/call_flow.hpp>
#include <mtmc/analysis/flow/expression_flow.hpp>
#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/flow/place_flow.hpp>
#include <mtmc/analysis/region_path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

/// \file
/// Statements to data flow: walks a function once, in the order of its text, and fills a `FunctionAnalysis`.

namespace mtmc::inline MTMC_ABI::detail {

/// What is known of a function's parameters from outside.
struct ParameterFacts {
  /// Per parameter: the first parameter that some launch gives the same buffer; itself if none.
  std::vector<std::size_t> same_buffer{};
  /// Pointers may point anywhere, into each other's memory too (a helper function that the text calls).
  bool may_overlap = false;
};

/// Builds the analysis of one function. The heads of for loops are read in loop_head.hpp.
class FlowBuilder : public ExpressionFlow {
public:
  using ExpressionFlow::ExpressionFlow;

  void build(const ParameterFacts& facts) {
    function_.guards.push_back({});
    declare_parameters(facts);
    statement(function_body(*function_.node));
    for (LoopInfo& loop : function_.loops) loop.function = &function_;
  }

  /// The symbol of the parameter of that name at the function's entry; null if it is no integer. Must be
  /// asked right after `build`.
  [[nodiscard]] const Symbol* parameter_symbol(std::string_view name) const {
    const auto found = parameter_symbols_.find(name);
    return found == parameter_symbols_.end() ? nullptr : found->second;
  }

private:
  void declare_parameters(const ParameterFacts& facts) {
    std::vector<VariableState*> states;
    for (const SyntaxNode& parameter : parameters(*function_.node)) {
      const TypeFacts type = type_facts(parameter.type);
      Variable variable;
      variable.kind = Variable::Kind::parameter;
      variable.name = parameter.text;
      variable.type = parameter.type;
      variable.declaration = &parameter;
      const auto declared = extents(parameter);
      variable.pointer = type.pointer || declared.size() == 1;
      variable.array = declared.size() > 1;
      variable.floating = type.floating && !variable.pointer && !variable.array;
      variable.persistent = type.reference;
      VariableState& state = declare(parameter.text, std::move(variable));
      states.push_back(&state);
      state.integer = !state.variable->pointer && !state.variable->array && !type.floating;
      if (state.variable->pointer || state.variable->array) {
        const std::size_t index = states.size() - 1;
        const std::size_t same = index < facts.same_buffer.size() ? facts.same_buffer[index] : index;
        if (same < index && states[same]->array != nullptr) {
          state.array = states[same]->array;
          state.array->constant = state.array->constant && type.constant;
        } else {
          state.array = &new_array(state.variable);
          const bool restricted = parameter.type.find("restrict") != std::string::npos;
          state.array->unknown = facts.may_overlap && !restricted;
        }
        if (declared.size() > 1 && state.array->extents.empty()) declare_extents(*state.array, declared);
        state.offset = Polynomial{};
      } else if (state.integer) {
        const Polynomial number = number_of(state);
        parameter_symbols_.emplace(parameter.text, number.terms().front().factors[0]);
      }
    }
  }

  void declare_extents(Array& array, std::span<const SyntaxNode> declared) {
    for (const SyntaxNode& extent : declared)
      array.extents.push_back(extent.children.empty() || extent.children[0].kind == NodeKind::empty
                                  ? Polynomial::undefined()
                                  : followed(visit(extent.children[0], true).number, array.name));
  }

  // --- statements

  void statement(const SyntaxNode& node) {
    const SyntaxNode* outer = std::exchange(statement_, &node);
    std::vector<std::string> directives = std::exchange(pending_directives_, {});
    switch (node.kind) {
    case NodeKind::block: {
      const std::size_t mark = open_scope();
      const std::size_t block_mark = block_directives_.size();
      for (std::string& directive : directives) block_directives_.push_back(std::move(directive));
      for (const SyntaxNode& child : node.children) statement(child);
      block_directives_.resize(block_mark);
      close_scope(mark);
      break;
    }
    case NodeKind::declaration:
      declaration(node, nullptr);
      break;
    case NodeKind::expression_statement:
      visit_discarded(operand(node));
      break;
    case NodeKind::for_loop:
    case NodeKind::while_loop:
    case NodeKind::do_loop:
      loop_statement(node, std::move(directives));
      break;
    case NodeKind::if_statement:
      if_statement(node);
      break;
    case NodeKind::return_statement:
      for (const SyntaxNode& child : node.children) (void)visit(child, false);
      break;
    case NodeKind::pragma:
      pending_directives_ = std::move(directives);
      pending_directives_.push_back(node.text);
      break;
    case NodeKind::preprocessor:
    case NodeKind::opaque:
      note_opaque(node, "text that is not understood");
      break;
    case NodeKind::empty:
    case NodeKind::comment:
    case NodeKind::launch_comment:
    case NodeKind::break_statement:
    case NodeKind::continue_statement:
      break;
    default:
      (void)visit(node, false);
    }
    if (node.kind == NodeKind::opaque) forget_words(node.text);
    statement_ = outer;
  }

  /// Forgets every variable that a text which is not understood mentions.
  void forget_words(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
      std::size_t end = i;
      while (end < text.size() && is_name_character(text[end])) ++end;
      if (end > i)
        if (VariableState* state = find(text.substr(i, end - i)); state != nullptr)
          forget(*state, true, loop_);
      i = end + 1;
    }
  }

  /// `head`: the loop in whose head it stands, or null.
  void declaration(const SyntaxNode& node, const LoopInfo* head) {
    for (const SyntaxNode& declarator : declarators(node)) declarator_of(node, declarator, head);
  }

  void declarator_of(const SyntaxNode& node, const SyntaxNode& declarator, const LoopInfo* head) {
    const TypeFacts base = type_facts(node.type);
    const TypeFacts own = type_facts(declarator.type);
    Variable variable;
    variable.name = declarator.text;
    variable.type = declarator.type.empty() ? node.type : node.type + declarator.type;
    variable.loop = head != nullptr ? head : loop_;
    variable.declaration = &declarator;
    const auto declared = extents(declarator);
    variable.array = !declared.empty();
    variable.pointer = !variable.array && (base.pointer || own.pointer);
    variable.floating = base.floating && !variable.pointer && !variable.array;
    variable.persistent = base.persistent;

    const SyntaxNode* start = initializer(declarator);
    const SyntaxNode* value_node = initial_value(declarator);
    if (own.reference && value_node != nullptr) {
      Place target = place_of(*value_node);
      VariableState& state = declare(declarator.text, std::move(variable));
      if (target.kind == Place::Kind::none) {
        state.integer = !base.floating;
      } else {
        // Another name changes it from here on.
        if (target.kind == Place::Kind::scalar && !base.constant) target.state->unstable = true;
        state.target = std::move(target);
      }
      return;
    }
    const bool automatic = !base.floating && !base.integer;
    ExpressionValue value;
    if (value_node != nullptr)
      value = visit(*value_node, !base.floating || variable.pointer);
    else if (start != nullptr)
      for (const SyntaxNode& child : start->children) (void)visit(child, false);
    if (automatic && !variable.array) {
      variable.floating = value.floating;
      variable.pointer = variable.pointer || value.array != nullptr;
    }
    std::vector<Polynomial> sizes;
    for (const SyntaxNode& extent : declared)
      sizes.push_back(extent.children.empty() || extent.children[0].kind == NodeKind::empty
                          ? Polynomial::undefined()
                          : followed(visit(extent.children[0], true).number, declarator.text));
    VariableState& state = declare(declarator.text, std::move(variable));
    state.changed_in = loop_;
    state.changed = true;
    state.integer = !state.variable->floating && !state.variable->pointer && !state.variable->array;
    if (state.variable->array) {
      Array& array = new_array(state.variable);
      array.extents = std::move(sizes);
      array.local = !base.persistent;
      array.place = base.shared ? ArrayPlace::block : array.local ? ArrayPlace::own : ArrayPlace::common;
      state.array = &array;
      state.offset = Polynomial{};
      return;
    }
    if (state.variable->pointer) {
      state.array = value.array != nullptr ? value.array : &unknown_array();
      if (value.array != nullptr) state.offset = value.offset;
      state.indirect = value.indirect;
    } else if (state.integer && value_node != nullptr) {
      state.indirect = value.indirect;
      if (value.number.defined()) state.number = named(value.number, declarator.text);
    }
    if (start != nullptr) note_use(state, true, declarator);
  }

  // --- branches

  void if_statement(const SyntaxNode& node) {
    const std::size_t tags = tagged_.size();
    tag_selection(node);
    note_branch();
    (void)visit(if_condition(node), false);
    const std::size_t bounds = function_.guard_bounds.size();
    const bool leaves = loop_ == nullptr && else_branch(node) == nullptr && always_returns(then_branch(node));
    note_bounds(if_condition(node), leaves);
    note_comparisons(if_condition(node), leaves, {.branch = &node, .behind = leaves});
    const std::size_t own_bounds = function_.guard_bounds.size();
    const SyntaxNode& then_part = then_branch(node);
    const SyntaxNode* else_part = else_branch(node);
    std::vector<std::pair<VariableState*, VariableState>> before;
    std::unordered_set<const VariableState*> saved; // a branch may assign a variable in each of its lines
    if (else_part != nullptr)
      for (const auto& entry : assignments_.in(then_part))
        if (VariableState* state = find(entry.name);
            state != nullptr && !entry.memory && saved.insert(state).second)
          before.emplace_back(state, *state);
    branch(then_part);
    for (std::size_t i = bounds; i < function_.guard_bounds.size(); ++i) {
      GuardBound& bound = function_.guard_bounds[i];
      if (leaves && i < own_bounds)
        bound.first = order_;
      else if (bound.last == open_end)
        bound.last = order_;
    }
    for (auto& [state, value] : before) *state = std::move(value);
    if (else_part != nullptr) branch(*else_part);
    forget(assignments_.in(then_part), loop_);
    if (else_part != nullptr) forget(assignments_.in(*else_part), loop_);
    tagged_.resize(tags);
  }

  static constexpr std::size_t open_end = std::numeric_limits<std::size_t>::max();

  /// Notes the comparisons that hold where the condition does (`negated`: does not), from here on.
  void note_bounds(const SyntaxNode& condition, bool negated);

  /// Notes what a branch compares: of a condition, or (`negated`) of its opposite. `one` says of which
  /// branch. `named`: the condition is what a name stands for, and names in it are not looked up again.
  void note_comparisons(const SyntaxNode& condition, bool negated, const BranchComparison& one,
                        bool named = false);

  /// The condition that a name stands for (`const bool inside = i < M;`), where neither it nor anything in it
  /// is ever assigned; else null.
  [[nodiscard]] const SyntaxNode* named_condition(const SyntaxNode& name);

  /// The value of an expression without noting what it does; undefined where that would take more than
  /// arithmetic on what is known.
  [[nodiscard]] Polynomial quiet_number(const SyntaxNode& node);

  [[nodiscard]] static bool always_returns(const SyntaxNode& node) {
    const auto all = statements(node);
    return !all.empty() && all.back().kind == NodeKind::return_statement;
  }

  void branch(const SyntaxNode& node) {
    const std::size_t outer = guard_;
    function_.guards.push_back({outer, nullptr});
    guard_ = function_.guards.size() - 1;
    const std::size_t mark = open_scope();
    ++conditional_depth_;
    statement(node);
    --conditional_depth_;
    close_scope(mark);
    guard_ = outer;
  }

  /// `if (x > m) m = x;` updates m: the comparison and the assignment belong together.
  void tag_selection(const SyntaxNode& node) {
    if (else_branch(node) != nullptr) return;
    const auto body = statements(then_branch(node));
    if (body.size() != 1 || body[0].kind != NodeKind::expression_statement) return;
    const SyntaxNode& expression = operand(body[0]);
    if (expression.kind != NodeKind::assignment || expression.text != "=") return;
    const SyntaxNode& target = left_operand(expression);
    const SyntaxNode& condition = if_condition(node);
    const ReductionOperation operation = selection(condition, right_operand(expression), target);
    if (operation == ReductionOperation::none) return;
    tagged_.emplace_back(&target, operation);
    for (const SyntaxNode& side : condition.children)
      if (same_expression(side, target)) tagged_.emplace_back(&side, operation);
  }

  // --- loops

  /// What a for loop's head says, before it is known whether the loop is canonical.
  struct Head {
    const SyntaxNode* start = nullptr;
    std::string_view variable;
    std::string problem;
  };

  void loop_statement(const SyntaxNode& node, std::vector<std::string> directives) {
    function_.loops.push_back({});
    LoopInfo& loop = function_.loops.back();
    function_.loop_of.emplace(&node, &loop);
    loop.node = &node;
    loop.parent = loop_;
    loop.depth = loop_ == nullptr ? 0 : loop_->depth + 1;
    loop.index = function_.loops.size() - 1;
    loop.path = path_of(node);
    loop.first_line = node.range.first_line;
    loop.last_line = node.range.last_line;
    loop.conditional = conditional_depth_ > 0;
    loop.directives = block_directives_;
    for (std::string& directive : directives) loop.directives.push_back(std::move(directive));
    if (loop_ != nullptr) loop_->children.push_back(&loop);
    const AssignmentIndex::Part part = assignments_.part(node);
    loop.has_continue = part.continues;

    const std::size_t mark = open_scope();
    const std::size_t outer_conditional = std::exchange(conditional_depth_, 0);
    const std::vector<std::string> outer_directives = std::exchange(block_directives_, {});
    VariableState* variable = node.kind == NodeKind::for_loop ? enter_for(loop, part) : nullptr;
    if (node.kind != NodeKind::for_loop) loop.why_not_canonical = "it is no counting for loop";
    loop.canonical = variable != nullptr;

    loop.accesses.first = function_.accesses.size();
    loop.scalar_uses.first = function_.scalar_uses.size();
    loop.calls.first = function_.calls.size();
    loop.opaque.first = function_.opaque.size();
    loop.barriers.first = function_.barriers.size();
    loop.order.first = order_;
    LoopInfo* outer_loop = loop_;
    const std::size_t outer_guard = guard_;
    VariableState* const strided = loop.canonical ? nullptr : read_stride(loop);
    forget(assignments_.in(node), &loop);
    loop_ = &loop;
    if (strided != nullptr) {
      const Symbol* iteration = new_symbol(Symbol::Kind::unknown, loop.variable + " iteration", &loop);
      function_.symbols.back().operation = "iteration";
      strided->number = loop.start + loop.stride * Polynomial(iteration);
    }
    function_.guards.push_back({outer_guard, &loop});
    guard_ = function_.guards.size() - 1;
    if (loop.canonical) {
      loop.symbol = new_symbol(Symbol::Kind::loop_variable, loop.variable, &loop);
      function_.symbols.back().weight = weight_of_bounds(loop);
      loop.control = variable->variable;
      variable->number = Polynomial(loop.symbol);
      variable->indirect = false;
      statement(loop_body(node));
    } else {
      if (node.kind != NodeKind::do_loop) (void)visit(loop_condition(node), false);
      statement(loop_body(node));
      if (node.kind == NodeKind::for_loop) visit_discarded(loop_step(node));
      if (node.kind == NodeKind::do_loop) (void)visit(loop_condition(node), false);
    }
    guard_ = outer_guard;
    loop_ = outer_loop;
    loop.accesses.last = function_.accesses.size();
    loop.scalar_uses.last = function_.scalar_uses.size();
    loop.calls.last = function_.calls.size();
    loop.opaque.last = function_.opaque.size();
    loop.barriers.last = function_.barriers.size();
    loop.order.last = order_;
    loop.last_inside = function_.loops.size();
    forget(assignments_.in(node), outer_loop);
    if (variable != nullptr) forget(*variable, true, outer_loop);
    conditional_depth_ = outer_conditional;
    block_directives_ = outer_directives;
    close_scope(mark);
  }

  /// Of the loop's variable: the first value counts twice, as itself and in the number of iterations.
  [[nodiscard]] static std::uint32_t weight_of_bounds(const LoopInfo& loop) {
    std::size_t weight = 1 + 2 * loop.start.weight();
    for (const Polynomial& limit : loop.limits) weight += limit.weight();
    return static_cast<std::uint32_t>(weight);
  }

  [[nodiscard]] std::string path_of(const SyntaxNode& node) {
    std::string path = (loop_ == nullptr ? function_.path : loop_->path) + '/' + loop_component(node);
    const int number = ++path_counts_[path];
    if (number > 1) path += '#' + std::to_string(number);
    return path;
  }

  /// Reads a for loop's head, in the context before the loop. The state of its variable if it is canonical;
  /// otherwise null, with its init executed.
  [[nodiscard]] VariableState* enter_for(LoopInfo& loop, const AssignmentIndex::Part& part);

  /// Reads the head of a loop over a thread's share of an index range; its variable's state, or null if it is
  /// none.
  [[nodiscard]] VariableState* read_stride(LoopInfo& loop);

  void declare_control(const LoopInfo& loop);

  void run_init(const SyntaxNode& node, const LoopInfo* head);

  [[nodiscard]] Head read_init(const LoopInfo& loop);

  /// The constant value of an expression that has no effects, or nothing.
  [[nodiscard]] std::optional<std::int64_t> constant_value(const SyntaxNode& node);

  void read_step(LoopInfo& loop, Head& head);

  /// One comparison of a loop's condition.
  struct Bound {
    const SyntaxNode* expression = nullptr;
    /// Read with the variable on the left.
    std::string comparison;
    /// What is added to the variable on the left: `i + 3 < n`.
    std::int64_t shift = 0;
    bool plain = true;
  };

  void read_condition(const SyntaxNode& condition, Head& head, std::int64_t step, std::vector<Bound>& bounds);

  /// c if the expression is `variable` or `variable + c`.
  [[nodiscard]] std::optional<std::int64_t> shift_of(const SyntaxNode& node, std::string_view variable);

  /// Nothing in the loop changes the value of a bound, and computing it has no effects.
  [[nodiscard]] bool keeps_value(const SyntaxNode& node, const Head& head);

  /// The current for loop assigns something that a piece of its head names, besides its own variable.
  [[nodiscard]] bool names_change(const SyntaxNode& node, std::string_view variable);

  /// The current for loop assigns the variable of that name, or memory behind it.
  [[nodiscard]] bool assigned_in_current_for(std::string_view name);

  /// The operands of a `min` or `max`, or the number itself.
  [[nodiscard]] static std::vector<Polynomial> extremes(const Polynomial& number, std::string_view operation);

  void add_limits(LoopInfo& loop, const Bound& bound, const Polynomial& number);

  std::vector<std::string> pending_directives_;
  std::vector<std::string> block_directives_;
  std::size_t conditional_depth_ = 0;
  std::unordered_map<std::string, int> path_counts_;
  std::unordered_map<std::string_view, const Symbol*> parameter_symbols_;
  const SyntaxNode* current_for_ = nullptr;
  /// Names that the current for loop assigns; made when they are first asked for.
  std::optional<std::unordered_set<std::string_view>> assigned_in_for_;
};

} // namespace mtmc::detail
