#pragma once
/// The loops of a nest whose iterations are shared by the lanes of a block and by the blocks that have a part
/// of a result each.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/threads/reduction_nest.hpp>
#include <mtmc/coder/transform/threads/split_geometry.hpp>
#include <mtmc/coder/transform/threads/split_plan.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// A text as an operand: in brackets, unless it is one name or number.
[[nodiscard]] inline std::string bracketed(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), is_name_character);
  return plain ? text : '(' + text + ')';
}

/// Writes the nest of a reduction anew.
class SplitLoops {
public:
  /// `reduction` and `plan` must outlive it.
  SplitLoops(const ReductionLaunch& reduction, const SplitPlan& plan)
      : reduction_(reduction), nest_(reduction), shape_(plan.shape), names_(plan.names) {}

  /// The nest with its iterations shared by lanes and, where they are wanted, by parts.
  [[nodiscard]] std::string text(bool parts) const {
    const bool lanes = shape_.team != ReductionTeam::present;
    const LoopInfo* const shared = lanes ? &lane_level() : nullptr;
    const LoopInfo* const split = parts ? &part_level() : nullptr;
    std::string code = parts ? range_of_part(*split, split == shared ? shape_.lanes : 1) : "";
    std::string ends;
    for (const LoopInfo* level : reduction_.body.nest) {
      if (level != shared && level != split) {
        code += head_text(*level);
      } else {
        code += shared_head(*level, level == shared, level == split);
      }
      code += " {\n";
      ends += "}\n";
    }
    for (const SyntaxNode& statement : body_of(*reduction_.body.nest.back()->node))
      code += print(statement) + '\n';
    return code + ends;
  }

private:
  /// The loop that lanes share: the innermost one that goes along memory for a block, the outermost one with
  /// iterations enough for a column.
  [[nodiscard]] const LoopInfo& lane_level() const {
    return shape_.team == ReductionTeam::column ? nest_.longest_level() : nest_.level_along_memory();
  }
  /// The loop that blocks share: another one than the lanes' where that has more iterations to give.
  [[nodiscard]] const LoopInfo& part_level() const {
    if (shape_.team == ReductionTeam::present) return nest_.longest_level();
    const LoopInfo& lanes = lane_level();
    const LoopInfo* best = &lanes;
    std::int64_t most = nest_.trips_of(lanes).value_or(1) / shape_.lanes;
    for (const LoopInfo* level : reduction_.body.nest)
      if (const std::int64_t trips = nest_.trips_of(*level).value_or(1); level != &lanes && trips > most) {
        best = level;
        most = trips;
      }
    return *best;
  }

  /// `for (...)` as it is.
  [[nodiscard]] static std::string head_text(const LoopInfo& level) {
    const std::string loop(trim(print(head_of(level).with_body({}))));
    return loop.substr(0, loop.rfind(')') + 1);
  }

  /// The values of a loop's variable that the threads of this part go through.
  struct PartRange {
    std::string each{}, first{}, end{};
  };
  /// The names of these values.
  [[nodiscard]] PartRange names_of(const LoopInfo& level) const {
    return {fresh_name(reduction_.request.tree, level.variable + "_each"),
            fresh_name(reduction_.request.tree, level.variable + "_first"),
            fresh_name(reduction_.request.tree, level.variable + "_end")};
  }
  /// The threads that share the loop already start with their numbers and move by how many they are.
  [[nodiscard]] bool starts_with_thread(const LoopInfo& level) const {
    return level.step == reduction_.threads && reduction_.is_thread_number(*level.start_expression);
  }
  /// Each part is a run of iterations. Else parts take them in turns.
  [[nodiscard]] bool parts_are_runs(const LoopInfo& level) const {
    const CountingLoop head = head_of(level);
    if (shape_.team == ReductionTeam::present && reduction_.depends_on_thread(*level.start_expression))
      return starts_with_thread(level) && !reduction_.depends_on_thread(*level.bound_expression);
    if (reduction_.depends_on_thread(*level.bound_expression)) return false;
    return literal_value(head.first) == 0 || (!head.is_unsigned() && head.step == 1);
  }
  /// The declarations of the values of a part that is a run of iterations, in units of `lanes`.
  [[nodiscard]] std::string range_of_part(const LoopInfo& level, std::int64_t lanes) const {
    if (!parts_are_runs(level)) return {};
    const CountingLoop head = head_of(level);
    const bool thread =
        shape_.team == ReductionTeam::present && reduction_.depends_on_thread(*level.start_expression);
    const SyntaxNode first = thread ? make_integer(0) : head.first;
    const PartRange names = names_of(level);
    const std::int64_t unit = head.step * lanes;
    const std::string type = "const " + head.type + ' ';
    const std::string count = print(make_binary("+", difference(head.bound, first), make_integer(0)));
    const std::string range = count.substr(0, count.rfind(" + 0"));
    const std::string units =
        unit == 1 ? names_.parts : '(' + names_.parts + " * " + std::to_string(unit) + ')';
    std::string code = type + names.each + " = (" + range + " + " + units + " - 1) / " + units +
                       (unit == 1 ? "" : " * " + std::to_string(unit)) + ";\n";
    const std::string start = print(make_binary("+", first, make_name(names_.part)));
    code += type + names.first + " = " +
            (literal_value(first) == 0 ? "" : start.substr(0, start.rfind(names_.part))) + names_.part +
            " * " + names.each + ";\n";
    const std::string bound = print(make_binary("+", head.bound, make_integer(0)));
    const std::string last = bound.substr(0, bound.rfind(" + 0"));
    code += type + names.end + " = " + names.first + " + " + names.each + " < " + last + " ? " + names.first +
            " + " + names.each + " : " + last + ";\n";
    return code;
  }

  /// `for (...)` of a loop that lanes share, or parts, or both.
  [[nodiscard]] std::string shared_head(const LoopInfo& level, bool lanes, bool parts) const {
    CountingLoop head = head_of(level);
    const std::int64_t count = lanes ? shape_.lanes : 1;
    const auto worker = [&](const std::string& number) {
      return head.step == 1 ? number : std::to_string(head.step) + " * " + bracketed(number);
    };
    const auto plus = [&](const SyntaxNode& first, const std::string& number) {
      if (literal_value(first) == 0) return number;
      return print(make_binary("+", first, make_name("x"))).substr(0, print(first).size()) + " + " + number;
    };
    std::string first, bound = print(head.bound), step = std::to_string(head.step * count);
    if (parts && parts_are_runs(level)) {
      const PartRange names = names_of(level);
      first = names.first;
      if (lanes) first += " + " + worker(names_.lane);
      if (shape_.team == ReductionTeam::present && reduction_.depends_on_thread(*level.start_expression))
        first += " + " + print(head.first);
      bound = names.end;
    } else if (parts) {
      const std::string number =
          lanes ? names_.part + " * " + std::to_string(count) + " + " + names_.lane : names_.part;
      first = plus(head.first, worker(number));
      step = names_.parts + (head.step * count == 1 ? "" : " * " + std::to_string(head.step * count));
    } else {
      first = plus(head.first, worker(names_.lane));
    }
    const std::string next = step == "1" ? "++" + head.variable : head.variable + " += " + step;
    return "for (" + head.type + ' ' + head.variable + " = " + first + "; " + head.variable + " < " + bound +
           "; " + next + ')';
  }

  const ReductionLaunch& reduction_;
  ReductionNest nest_;
  const SplittingShape& shape_;
  const SplitNames& names_;
};

} // namespace mtmc::detail
