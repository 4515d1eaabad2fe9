#pragma once
/// Whether all threads that share a row have the same value of an expression.

#include <mtmc/analysis/flow/call_effects.hpp>
#include <mtmc/analysis/flow/type_facts.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Goes through a function as its threads do and notes which variables have one value for all threads of a
/// row. Elements of memory at one place have one value: what threads do to them has a barrier in between. In
/// doubt a value is taken to differ.
class RowUniformity {
public:
  /// Rows have `threads` threads each, which are neighbours along x; with `whole_blocks` values must be the
  /// same for all threads of a block, also where it has several rows.
  RowUniformity(const SyntaxNode& tree, const SyntaxNode& function, const CallEffects& effects,
                std::int64_t threads, bool whole_blocks)
      : tree_(tree), effects_(effects), threads_(threads), whole_blocks_(whole_blocks) {
    State state;
    for (const SyntaxNode& parameter : parameters(function)) state[parameter.text] = true;
    run(function_body(function), state);
  }

  /// The expression certainly has one value where `statement` begins.
  [[nodiscard]] bool holds(const SyntaxNode& expression, const SyntaxNode& statement) const {
    const auto known = states_.find(&statement);
    return known != states_.end() && uniform(expression, known->second);
  }

  /// An expression in the body of a loop that depends on which thread has an iteration, where there is one;
  /// `accumulators` are what the threads combine later.
  [[nodiscard]] const SyntaxNode* thread_dependence(const SyntaxNode& loop, const std::string& variable,
                                                    const std::vector<std::string>& accumulators) {
    const auto known = states_.find(&loop);
    if (known == states_.end()) return &loop;
    State state = known->second;
    state[variable] = true;
    for (const std::string& name : accumulators) state[name] = true;
    const auto states = states_;
    must_hold_ = true;
    different_ = nullptr;
    run(loop_body(loop), state);
    must_hold_ = false;
    states_ = states;
    return different_;
  }

private:
  /// Whether each variable has one value. Names that are missing are constants and functions.
  using State = std::map<std::string, bool, std::less<>>;

  // --- statements

  void run(const SyntaxNode& node, State& state) {
    const auto [known, fresh] = states_.emplace(&node, state);
    if (!fresh) known->second = both(known->second, state);
    switch (node.kind) {
    case NodeKind::block:
      return run_block(node, state);
    case NodeKind::declaration:
      return declare(node, state);
    case NodeKind::expression_statement:
      return evaluate(operand(node), state);
    case NodeKind::if_statement:
      return run_branch(node, state);
    case NodeKind::for_loop:
    case NodeKind::while_loop:
    case NodeKind::do_loop:
      return run_loop(node, state);
    case NodeKind::return_statement:
      if (!node.children.empty())
        result_ = result_ && differing_ == 0 && uniform(node.children.front(), state);
      return;
    case NodeKind::comment:
    case NodeKind::empty:
    case NodeKind::pragma:
      return;
    default: // not understood
      result_ = false;
      for (auto& [name, one] : state) one = false;
    }
  }

  void run_block(const SyntaxNode& node, State& state) {
    State hidden; // what names mean outside that the block declares
    for (const SyntaxNode& child : node.children) {
      if (child.kind == NodeKind::declaration)
        for (const SyntaxNode& declarator : declarators(child))
          if (const auto outer = state.find(declarator.text); outer != state.end()) hidden.insert(*outer);
      run(child, state);
    }
    std::set<std::string> declared;
    for (const SyntaxNode& child : node.children)
      if (child.kind == NodeKind::declaration)
        for (const SyntaxNode& declarator : declarators(child)) declared.insert(declarator.text);
    for (const std::string& name : declared)
      if (const auto outer = hidden.find(name); outer != hidden.end())
        state[name] = outer->second;
      else
        state.erase(name);
  }

  void declare(const SyntaxNode& node, State& state) {
    const bool shared = type_facts(node.type).shared;
    for (const SyntaxNode& declarator : declarators(node)) {
      const SyntaxNode* const start = initializer(declarator);
      if (start != nullptr)
        for (const SyntaxNode& value : start->children) evaluate(value, state);
      const bool values =
          start != nullptr && std::all_of(start->children.begin(), start->children.end(),
                                          [&](const SyntaxNode& value) { return uniform(value, state); });
      const bool own_array = !extents(declarator).empty() && !shared;
      const bool reference = declarator.type.find('&') != std::string::npos;
      state[declarator.text] = shared || (values && !own_array && !reference);
    }
  }

  void run_branch(const SyntaxNode& node, State& state) {
    evaluate(if_condition(node), state);
    const bool same = uniform(if_condition(node), state);
    differing_ += same ? 0 : 1;
    State then = state, otherwise = state;
    run(then_branch(node), then);
    if (else_branch(node) != nullptr) run(*else_branch(node), otherwise);
    differing_ -= same ? 0 : 1;
    State after = both(then, otherwise);
    if (!same) forget_assigned(node, after);
    state = std::move(after);
  }

  void run_loop(const SyntaxNode& node, State& state) {
    const State outside = state;
    if (node.kind == NodeKind::for_loop) {
      const SyntaxNode& init = loop_init(node);
      if (init.kind == NodeKind::declaration)
        declare(init, state);
      else if (init.kind != NodeKind::empty)
        evaluate(init, state);
    }
    const std::string exchanged = node.kind == NodeKind::for_loop ? combined_by_warp(node) : "";
    for (bool changed = true; changed;) {
      const State before = state;
      const SyntaxNode& condition = loop_condition(node);
      const bool same = condition.kind == NodeKind::empty || uniform(condition, state);
      differing_ += same ? 0 : 1;
      if (condition.kind != NodeKind::empty) evaluate(condition, state);
      run(loop_body(node), state);
      if (node.kind == NodeKind::for_loop && loop_step(node).kind != NodeKind::empty)
        evaluate(loop_step(node), state);
      differing_ -= same ? 0 : 1;
      if (!same) forget_assigned(node, state);
      state = both(before, state);
      changed = state != before;
    }
    if (node.kind == NodeKind::for_loop && loop_init(node).kind == NodeKind::declaration)
      for (const SyntaxNode& declarator : declarators(loop_init(node))) {
        const auto outer = outside.find(declarator.text);
        if (outer != outside.end())
          state[declarator.text] = outer->second;
        else
          state.erase(declarator.text);
      }
    if (!exchanged.empty() && differing_ == 0 && threads_ == 32 && !whole_blocks_) state[exchanged] = true;
  }

  /// The variable `v` of `for (d = 16; d > 0; d /= 2) v = v + __shfl_xor_sync(~0u, v, d);`, which then has
  /// one value in all of a warp; empty for any other loop.
  [[nodiscard]] static std::string combined_by_warp(const SyntaxNode& loop) {
    const SyntaxNode& init = loop_init(loop);
    if (init.kind != NodeKind::declaration || declarators(init).size() != 1) return {};
    const std::string& distance = declarators(init).front().text;
    const SyntaxNode* const first = initial_value(declarators(init).front());
    const SyntaxNode &condition = loop_condition(loop), &step = loop_step(loop);
    if (first == nullptr || condition.kind != NodeKind::binary || step.kind != NodeKind::assignment ||
        !is_name(left_operand(condition), distance) || !is_name(left_operand(step), distance))
      return {};
    const auto value = [](const SyntaxNode& node) { return literal_value(node).value_or(-1); };
    const std::int64_t limit = value(right_operand(condition)), by = value(right_operand(step));
    const bool falls = value(*first) == 16 &&
                       ((condition.text == ">" && limit == 0) || (condition.text == ">=" && limit == 1)) &&
                       ((step.text == "/=" && by == 2) || (step.text == ">>=" && by == 1));
    const bool rises = value(*first) == 1 &&
                       ((condition.text == "<" && limit == 32) || (condition.text == "<=" && limit == 16)) &&
                       ((step.text == "*=" && by == 2) || (step.text == "<<=" && by == 1));
    const auto body = statements(loop_body(loop));
    if (!(falls || rises) || body.size() != 1 || body.front().kind != NodeKind::expression_statement)
      return {};
    const SyntaxNode& update = operand(body.front());
    if (update.kind != NodeKind::assignment || left_operand(update).kind != NodeKind::name) return {};
    const std::string& name = left_operand(update).text;
    const auto is_exchange = [&](const SyntaxNode& node) {
      return is_call_of(node, "__shfl_xor_sync") && arguments(node).size() == 3 &&
             is_name(arguments(node)[1], name) && is_name(arguments(node)[2], distance);
    };
    const SyntaxNode& other = right_operand(update);
    if (update.text == "+=" || update.text == "*=") return is_exchange(other) ? name : std::string{};
    if (update.text != "=") return {};
    constexpr std::array<std::string_view, 6> symmetric{"fmaxf", "fminf", "fmax", "fmin", "max", "min"};
    const SyntaxNode *a = nullptr, *b = nullptr;
    if (other.kind == NodeKind::binary && (other.text == "+" || other.text == "*")) {
      a = &left_operand(other);
      b = &right_operand(other);
    } else if (other.kind == NodeKind::call && callee(other).kind == NodeKind::name &&
               arguments(other).size() == 2 &&
               std::find(symmetric.begin(), symmetric.end(), callee(other).text) != symmetric.end()) {
      a = &arguments(other)[0];
      b = &arguments(other)[1];
    } else {
      return {};
    }
    const bool exchanges = (is_name(*a, name) && is_exchange(*b)) || (is_name(*b, name) && is_exchange(*a));
    return exchanges ? name : std::string{};
  }

  /// One value where both states say so.
  [[nodiscard]] static State both(const State& a, const State& b) {
    State result = a;
    for (auto& [name, one] : result)
      if (const auto other = b.find(name); other != b.end()) one = one && other->second;
    return result;
  }
  /// What a statement assigns may differ.
  static void forget_assigned(const SyntaxNode& node, State& state) {
    walk(node, [&](const SyntaxNode& part) {
      assigned_place(part, [&](const SyntaxNode& place, bool) { forget(place, state); });
      if (part.kind == NodeKind::call)
        for (const SyntaxNode& given : arguments(part))
          if (given.kind == NodeKind::unary && given.text == "&") forget(given, state);
    });
  }
  static void forget(const SyntaxNode& place, State& state) {
    const bool address = place.kind == NodeKind::unary && place.text == "&";
    if (is_memory_place(place) && !address) return;
    if (const auto known = state.find(root_name(place)); known != state.end()) known->second = false;
  }

  // --- expressions

  /// What an expression does to variables.
  void evaluate(const SyntaxNode& node, State& state) {
    if (must_hold_ && different_ == nullptr && !uniform(node, state)) different_ = origin(node, state);
    apply(node, state);
  }
  /// The part of an expression because of which it differs.
  [[nodiscard]] const SyntaxNode* origin(const SyntaxNode& node, const State& state) const {
    const SyntaxNode* at = &node;
    for (bool deeper = true; deeper;) {
      const auto parts = at->kind == NodeKind::call ? arguments(*at) : std::span(at->children);
      const auto part = std::find_if(parts.begin(), parts.end(),
                                     [&](const SyntaxNode& child) { return !uniform(child, state); });
      deeper = part != parts.end() && !(part->kind == NodeKind::name && is_launch_name(*part));
      if (deeper) at = &*part;
    }
    return at;
  }
  void apply(const SyntaxNode& node, State& state) {
    if (node.kind == NodeKind::opaque)
      for (auto& [name, one] : state) one = false;
    const bool sure = node.kind != NodeKind::conditional &&
                      !(node.kind == NodeKind::binary && (node.text == "&&" || node.text == "||"));
    if (sure) {
      for (const SyntaxNode& child : node.children) apply(child, state);
    } else {
      State after = state;
      for (const SyntaxNode& child : node.children) apply(child, after);
      if (!uniform(node.children.front(), state)) forget_assigned(node, after);
      state = both(state, after);
    }
    if (node.kind == NodeKind::assignment && !is_memory_place(left_operand(node))) {
      const std::string name(root_name(left_operand(node)));
      const bool whole = node.text == "=" && left_operand(node).kind == NodeKind::name;
      const bool value = uniform(right_operand(node), state);
      if (const auto known = state.find(name); known != state.end())
        known->second = value && (whole || known->second);
    }
    if (node.kind == NodeKind::call && callee(node).kind == NodeKind::name) {
      const CallEffect& effect = effects_.of(callee(node).text);
      const auto given = arguments(node);
      for (std::size_t i = 0; i < given.size(); ++i) {
        const bool writes = !effect.known || (i < effect.writes.size() && effect.writes[i]);
        const bool address = given[i].kind == NodeKind::unary && given[i].text == "&";
        const bool variable = given[i].kind == NodeKind::name && effect.known && writes;
        if ((writes && address) || variable) forget(address ? operand(given[i]) : given[i], state);
      }
    }
  }

  [[nodiscard]] bool uniform(const SyntaxNode& node, const State& state) const {
    const auto all = [&](const auto& children) {
      return std::all_of(children.begin(), children.end(),
                         [&](const SyntaxNode& child) { return uniform(child, state); });
    };
    switch (node.kind) {
    case NodeKind::literal:
    case NodeKind::empty:
      return true;
    case NodeKind::name: {
      const auto known = state.find(node.text);
      return known == state.end() ? !is_launch_name(node) : known->second;
    }
    case NodeKind::member:
      if (is_name(operand(node), "threadIdx")) return !whole_blocks_ && node.text != ".x";
      return is_launch_name(operand(node)) || all(node.children);
    case NodeKind::binary:
      return (!whole_blocks_ && is_number_of_row(node)) || all(node.children);
    case NodeKind::unary:
    case NodeKind::postfix:
    case NodeKind::conditional:
    case NodeKind::cast:
    case NodeKind::subscript:
    case NodeKind::assignment:
    case NodeKind::initializer_list:
      return all(node.children);
    case NodeKind::call:
      return uniform_call(node, state);
    default:
      return false;
    }
  }

  [[nodiscard]] bool uniform_call(const SyntaxNode& node, const State& state) const {
    if (callee(node).kind != NodeKind::name) return false;
    const std::string& name = callee(node).text;
    const auto given = arguments(node);
    std::vector<bool> same;
    for (const SyntaxNode& argument : given) same.push_back(uniform(argument, state));
    const bool all = std::all_of(same.begin(), same.end(), [](bool one) { return one; });
    if (const SyntaxNode* const function = find_function(tree_, name)) {
      constexpr int deepest = 4; // functions within functions
      if (depth_ == deepest || parameters(*function).size() != same.size()) return false;
      RowUniformity inside(tree_, effects_, threads_, whole_blocks_, depth_ + 1);
      State own;
      for (std::size_t i = 0; i < same.size(); ++i) own[parameters(*function)[i].text] = same[i];
      inside.run(function_body(*function), own);
      return inside.result_;
    }
    if (name == "__syncthreads_and" || name == "__syncthreads_or" || name == "__syncthreads_count")
      return true;
    if (name == "__shfl_sync") return threads_ == 32 && !whole_blocks_ && same.size() == 3 && same.back();
    const CallEffect& effect = effects_.of(name);
    const bool plain = effect.known && effect.synchronizes == Synchronization::none && effect.writes.empty();
    return all && (plain || is_one_of(name, cached_loads) || name.starts_with("make_"));
  }

  /// `threadIdx.x / 32` for rows of 32 threads.
  [[nodiscard]] bool is_number_of_row(const SyntaxNode& node) const {
    const auto divisor = literal_value(right_operand(node));
    const bool divides = divisor && ((node.text == "/" && *divisor == threads_) ||
                                     (node.text == ">>" && *divisor < 32 && (1LL << *divisor) == threads_));
    const SyntaxNode* number = &left_operand(node);
    while (number->kind == NodeKind::cast) number = &operand(*number);
    return divides && number->kind == NodeKind::member && is_name(operand(*number), "threadIdx") &&
           number->text == ".x";
  }

  RowUniformity(const SyntaxNode& tree, const CallEffects& effects, std::int64_t threads, bool whole_blocks,
                int depth)
      : tree_(tree), effects_(effects), threads_(threads), whole_blocks_(whole_blocks), depth_(depth) {}

  const SyntaxNode& tree_;
  const CallEffects& effects_;
  const std::int64_t threads_;
  const bool whole_blocks_;
  const int depth_ = 0;
  std::map<const SyntaxNode*, State> states_{}; ///< where statements begin
  int differing_ = 0;                           ///< branches around that not all threads take
  bool result_ = true;                          ///< what the function returns has one value
  bool must_hold_ = false;
  const SyntaxNode* different_ = nullptr;
};

} // namespace mtmc::detail
