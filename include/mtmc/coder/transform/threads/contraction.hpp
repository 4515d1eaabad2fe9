#pragma once
/// Sums over products whose factors belong to different axes of the results (products of matrices,
/// convolutions, attention, distances): which axes are rows, which are columns, and what each side brings.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_cost.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>
#include <mtmc/coder/transform/threads/local_values.hpp>
#include <mtmc/coder/transform/threads/result_axes.hpp>
#include <mtmc/coder/transform/threads/sum.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What a block brings into shared memory for each step of the sum: an expression that moves with the rows or
/// with the columns, not with both.
struct StagedOperand {
  SyntaxNode value{};
  std::string type{};  ///< of the value
  SyntaxNode loaded{}; ///< what is loaded for it: the value, or the element that it converts
  std::string loaded_type{};
  bool by_rows = false;
  bool along_sum = false; ///< neighbouring elements lie along the tiled loop
  std::string array{};    ///< name of what it reads, for names
};

/// Such a sum.
struct Contraction {
  ThreadSum sum;
  std::vector<ResultAxis> rows{};    ///< slowest first
  std::vector<ResultAxis> columns{}; ///< slowest first; neighbouring threads lie along the last one
  std::vector<ResultAxis> layers{};  ///< axes that both sides move with
  std::vector<CountingLoop> loops{}; ///< of the sum, outermost first
  std::size_t tiled = 0;             ///< which of them goes in tiles
  std::vector<StagedOperand> operands{};
  SyntaxNode term{};                           ///< what is added, in which operands stand as they are
  bool zeros_add_nothing = false;              ///< where an operand is zero, so is the term
  std::vector<SyntaxNode> row_conditions{};    ///< for bringing what belongs to the rows
  std::vector<SyntaxNode> column_conditions{}; ///< and to the columns
  std::vector<SyntaxNode> result_conditions{}; ///< for storing, beyond the numbers of rows and columns
  LocalValues values;
  std::vector<AxisSource> sources{};

  /// Throws `TransformDeclined` where it is another kind of function.
  explicit Contraction(const TransformRequest& request)
      : sum(request), values(*sum.function), request_(request) {
    read_loops();
    ResultAxisReader axes(sum, values);
    sources = axes.sources();
    for (const AxisSource& source : sources)
      axes_.insert(axes_.end(), source.axes.begin(), source.axes.end());
    for (const SyntaxNode* declaration : sum.before)
      for (const SyntaxNode& declarator : declarators(*declaration))
        if (!depends(declarator.text)) values.keep(declarator.text);
    term = values.expanded(sum.term());
    separate();
    for (const auto* side : {&rows, &columns})
      for (const ResultAxis& axis : *side)
        if (axis.limit.kind == NodeKind::empty)
          decline("it is not known how many results lie along " + axis.name);
    for (const SyntaxNode& condition : sum.conditions)
      if (!axes.is_limit(condition)) add_condition(condition, false);
    for (const SyntaxNode& condition : inner_conditions_) add_condition(condition, true);
    if (!inner_conditions_.empty() && request.task.special_values)
      decline("zeros stand for what a condition leaves out, and infinities are among the values");
    choose_tiled();
    for (StagedOperand& operand : operands) require_understood(operand.value);
  }

  /// Whether the action's region is a loop of the nest.
  [[nodiscard]] bool is_about_nest() const {
    return std::any_of(sum.function->loops.begin(), sum.function->loops.end(), [&](const LoopInfo& loop) {
      return loop.path == request_.action.region && loop.inside(sum.loop);
    });
  }
  /// The loop that goes in tiles, as it was analysed.
  [[nodiscard]] const LoopInfo& tiled_loop() const { return *infos_[tiled]; }
  /// The product of the limits of axes.
  [[nodiscard]] static SyntaxNode total(const std::vector<ResultAxis>& axes) {
    Factors limits;
    for (const ResultAxis& axis : axes) limits.push_back(axis.limit);
    return product_of(limits);
  }
  /// An expression of the function in the words of the launch line, which has the symbols of the task.
  [[nodiscard]] std::string in_launch(const SyntaxNode& expression) const {
    SyntaxNode words = sum.launch.in_launch_words(values.expanded(expression));
    walk(words, [&](SyntaxNode& node) {
      const Argument* const argument =
          node.kind == NodeKind::name ? request_.task.find_argument(node.text) : nullptr;
      if (argument == nullptr || argument->value.empty() || is_floating(argument->type)) return true;
      node = parse_expression(argument->value);
      return false;
    });
    return print(words);
  }
  /// How many results lie along axes, in the same words.
  [[nodiscard]] std::string total_in_launch(const std::vector<ResultAxis>& axes) const {
    return in_launch(total(axes));
  }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }

  /// The nest of loops: declarations, branches around the rest and the sum.
  void read_loops() {
    const LoopInfo* loop = sum.loop;
    while (true) {
      CountingLoop head = head_of(*loop);
      if (head.step != 1) decline(loop_name(*loop) + " does not count by one");
      for (const SyntaxNode* end : {&head.first, &head.bound})
        for (const std::string& name : names_used(*end))
          if (!sum.uniform.contains(name))
            decline("the bound of " + loop_name(*loop) + " is not the same for all");
      loops.push_back(std::move(head));
      infos_.push_back(loop);
      const SyntaxNode* const inner = read_body(statements(loop_body(*loop->node)), *loop);
      if (inner == nullptr) return;
      loop = request_.analysis.find_loop(*inner);
      if (loop == nullptr) decline("a loop was not analysed");
    }
  }
  /// The loop inside, or null where the sum stands.
  const SyntaxNode* read_body(std::span<const SyntaxNode> body, const LoopInfo& loop) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      const SyntaxNode& statement = body[i];
      const bool last = i + 1 == body.size();
      if (statement.kind == NodeKind::declaration || statement.kind == NodeKind::comment ||
          statement.kind == NodeKind::empty || statement.kind == NodeKind::pragma)
        continue;
      if (skips(statement)) {
        take_conditions(opposite_of(if_condition(statement), *sum.function->node), inner_conditions_);
        continue;
      }
      if (!last) break;
      if (&statement == sum.update) return nullptr;
      if (statement.kind == NodeKind::for_loop) return &statement;
      if (statement.kind == NodeKind::block) return read_body(statements(statement), loop);
      if (statement.kind != NodeKind::if_statement || else_branch(statement) != nullptr) break;
      take_conditions(if_condition(statement), inner_conditions_);
      return read_body(statements(then_branch(statement)), loop);
    }
    decline("the body of " + loop_name(loop) + " is not one sum");
  }
  [[nodiscard]] static bool skips(const SyntaxNode& statement) {
    if (statement.kind != NodeKind::if_statement || else_branch(statement) != nullptr) return false;
    const auto inside = statements(then_branch(statement));
    return inside.size() == 1 && inside.front().kind == NodeKind::continue_statement;
  }

  /// Whether a variable is made from the number of a result or of an iteration.
  [[nodiscard]] bool depends(const std::string& name) const {
    const SyntaxNode value = values.expanded(make_name(name));
    return !axes_of(value).empty() || moves(value);
  }
  /// The axes, by number, that an expression uses.
  [[nodiscard]] std::set<std::size_t> axes_of(const SyntaxNode& expression) const {
    std::set<std::size_t> found;
    for (std::size_t i = 0; i < axes_.size(); ++i)
      if (uses_name(expression, axes_[i].name)) found.insert(i);
    return found;
  }
  /// Whether an expression changes from iteration to iteration.
  [[nodiscard]] bool moves(const SyntaxNode& expression) const {
    return std::any_of(loops.begin(), loops.end(),
                       [&](const CountingLoop& loop) { return uses_name(expression, loop.variable); });
  }

  /// Finds the two sides: in the factors of the term, else in what it reads.
  void separate() {
    Factors parts;
    take_factors(term, parts);
    zeros_add_nothing = true;
    if (assign_sides(parts)) {
      SyntaxNode product;
      for (const bool by_rows : {true, false}) {
        Factors side;
        for (std::size_t i = 0; i < parts.size(); ++i)
          if (by_rows_[i] == by_rows) side.push_back(parts[i]);
        add_operand(product_of(side), by_rows);
      }
      term = make_binary("*", operands[0].value, operands[1].value);
      return;
    }
    zeros_add_nothing = false;
    parts.clear();
    take_reads(term, parts);
    if (!assign_sides(parts)) decline(reason_);
    for (std::size_t i = 0; i < parts.size(); ++i) add_operand(parts[i], by_rows_[i]);
    if (!inner_conditions_.empty())
      decline("what " + loop_name(*sum.loop) + " adds up under a condition is no product");
    if (operands.size() > 4) decline("there are more than four operands");
  }
  static void take_factors(const SyntaxNode& expression, Factors& parts) {
    if (expression.kind == NodeKind::binary && expression.text == "*") {
      take_factors(left_operand(expression), parts);
      take_factors(right_operand(expression), parts);
    } else {
      parts.push_back(expression);
    }
  }
  static void take_reads(const SyntaxNode& expression, Factors& parts) {
    walk(expression, [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::subscript) return true;
      const bool known = std::any_of(parts.begin(), parts.end(), [&](const SyntaxNode& other) {
        return structurally_equal(node, other);
      });
      if (!known) parts.push_back(node);
      return false;
    });
  }

  /// Gives each part to the rows or to the columns, in `by_rows_`; false, with `reason_`, where there are not
  /// two sides.
  bool assign_sides(const Factors& parts) {
    std::set<std::size_t> common;
    bool first = true;
    for (const SyntaxNode& part : parts) {
      if (!moves(part)) continue;
      const auto used = axes_of(part);
      if (used.empty()) continue;
      std::set<std::size_t> both;
      std::set_intersection(common.begin(), common.end(), used.begin(), used.end(),
                            std::inserter(both, both.end()));
      common = first ? used : both;
      first = false;
    }
    // Axes that some part moves with, alone or together with others: each set is one side.
    std::vector<std::set<std::size_t>> sides;
    for (const SyntaxNode& part : parts) {
      std::set<std::size_t> own = axes_of(part);
      for (const std::size_t axis : common) own.erase(axis);
      if (own.empty()) continue;
      std::erase_if(sides, [&](const std::set<std::size_t>& side) {
        const bool meet =
            std::any_of(side.begin(), side.end(), [&](std::size_t axis) { return own.contains(axis); });
        if (meet) own.insert(side.begin(), side.end());
        return meet;
      });
      sides.push_back(std::move(own));
    }
    if (sides.size() != 2) {
      reason_ = sides.size() > 2 ? "the threads of a block share operands along more than two directions"
                                 : "the threads of a block share no operand along one direction";
      if (sides.size() == 1 && parts.size() > 1)
        reason_ = "what " + loop_name(*sum.loop) + " adds up does not come from two directions";
      return false;
    }
    const std::size_t fastest = axes_.size() - 1;
    if (!sides[0].contains(fastest) && !sides[1].contains(fastest)) {
      reason_ = "neighbouring threads share no operand";
      return false;
    }
    const std::set<std::size_t>& across = sides[0].contains(fastest) ? sides[0] : sides[1];
    rows.clear(), columns.clear(), layers.clear();
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const bool some = sides[0].contains(i) || sides[1].contains(i);
      (across.contains(i) ? columns : some ? rows : layers).push_back(axes_[i]);
    }
    by_rows_.clear();
    for (const SyntaxNode& part : parts) {
      const auto used = axes_of(part);
      by_rows_.push_back(
          std::none_of(used.begin(), used.end(), [&](std::size_t axis) { return across.contains(axis); }));
    }
    return true;
  }
  void add_operand(SyntaxNode value, bool by_rows) {
    StagedOperand operand;
    operand.by_rows = by_rows;
    operand.type = sum.sum.type;
    walk(value, [&](const SyntaxNode& node) {
      if (operand.array.empty() && node.kind == NodeKind::subscript) operand.array = array_of(node);
    });
    operand.loaded = *converted(value);
    operand.loaded_type = operand.type;
    if (operand.loaded.kind == NodeKind::subscript)
      for (const Variable& variable : sum.function->variables)
        if (variable.name == operand.array) operand.loaded_type = pointed_type(variable.type);
    if (value.kind == NodeKind::subscript) operand.type = operand.loaded_type;
    if (operand.loaded.kind != NodeKind::subscript) operand.loaded = value;
    operand.value = std::move(value);
    operands.push_back(std::move(operand));
  }
  /// The expression inside of conversions, which wait for what is loaded and are carried out later therefore.
  [[nodiscard]] static const SyntaxNode* converted(const SyntaxNode& value) {
    if (value.kind == NodeKind::cast) return converted(operand(value));
    if (value.children.size() == 2 &&
        (is_call_of(value, "__half2float") || is_call_of(value, "__bfloat162float")))
      return converted(value.children[1]);
    return &value;
  }
  [[nodiscard]] static std::string array_of(const SyntaxNode& subscript) {
    std::string name;
    walk(subscript_base(subscript), [&](const SyntaxNode& node) {
      if (name.empty() && node.kind == NodeKind::name) name = node.text;
    });
    return name.empty() ? "operand" : name;
  }

  /// A condition belongs to one side, or to all, or (outside of the loops) to the results.
  void add_condition(const SyntaxNode& original, bool inner) {
    SyntaxNode condition = values.expanded(original);
    const auto uses_any = [&](const std::vector<ResultAxis>& axes) {
      return std::any_of(axes.begin(), axes.end(),
                         [&](const ResultAxis& axis) { return uses_name(condition, axis.name); });
    };
    const bool by_rows = uses_any(rows), by_columns = uses_any(columns);
    if (by_rows && by_columns) {
      if (inner) decline("a condition in the loops is about rows and columns together");
      result_conditions.push_back(std::move(condition));
      return;
    }
    require_understood(condition);
    if (!inner) result_conditions.push_back(condition);
    if (by_rows || !by_columns) row_conditions.push_back(condition);
    if (by_columns || !by_rows) column_conditions.push_back(condition);
  }

  /// Names that mean the same in the new body: axes, loop variables, parameters, what stands in front.
  void require_understood(const SyntaxNode& expression) const {
    for (const std::string& name : names_used(expression)) {
      const bool local = std::any_of(sum.function->variables.begin(), sum.function->variables.end(),
                                     [&](const Variable& variable) {
                                       return variable.name == name && variable.kind == Variable::Kind::local;
                                     });
      const bool known = std::any_of(axes_.begin(), axes_.end(),
                                     [&](const ResultAxis& axis) { return axis.name == name; }) ||
                         std::any_of(loops.begin(), loops.end(),
                                     [&](const CountingLoop& loop) { return loop.variable == name; }) ||
                         (sum.uniform.contains(name) && !values.has(name));
      if (local && !known) decline("what " + loop_name(*sum.loop) + " adds up uses " + name);
    }
    bool changes = false;
    walk(expression, [&](const SyntaxNode& node) {
      changes = changes || node.kind == NodeKind::assignment || node.kind == NodeKind::opaque ||
                is_launch_name(node);
    });
    if (changes) decline("what " + loop_name(*sum.loop) + " adds up is not understood");
  }

  /// The loop with most iterations goes in tiles; of equals, the one along which an operand lies in memory.
  void choose_tiled() {
    const ProblemSize* const size = request_.task.main_size();
    const Symbols symbols = size == nullptr ? Symbols{} : size->symbols;
    const auto along = [&](std::size_t loop, const SyntaxNode& value) {
      bool found = false;
      for (const Access& access : sum.function->accesses)
        walk(value, [&](const SyntaxNode& node) {
          found = found || (node.kind == NodeKind::subscript && !access.write && access.loop != nullptr &&
                            array_of(*access.node) == array_of(node) &&
                            stride_of(access, *infos_[loop], symbols) == 1);
        });
      return found;
    };
    std::int64_t most = -1;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const std::int64_t trips = main_trips(request_, *infos_[i]).value_or(64);
      if (trips < most) continue;
      if (trips == most && std::none_of(operands.begin(), operands.end(), [&](const StagedOperand& operand) {
            return along(i, operand.value);
          }))
        continue;
      most = trips;
      tiled = i;
    }
    for (StagedOperand& operand : operands) operand.along_sum = along(tiled, operand.value);
  }

  const TransformRequest& request_;
  std::vector<ResultAxis> axes_{}; ///< all, slowest first
  std::vector<const LoopInfo*> infos_{};
  std::vector<SyntaxNode> inner_conditions_{};
  std::vector<bool> by_rows_{};
  std::string reason_{};
};

} // namespace mtmc::detail
