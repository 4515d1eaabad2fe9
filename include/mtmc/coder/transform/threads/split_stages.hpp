#pragma once
/// The bodies of the functions that a reduction is split into.

#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/block_trees.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/threads/reductions.hpp>
#include <mtmc/coder/transform/threads/result_clamps.hpp>
#include <mtmc/coder/transform/threads/split_geometry.hpp>
#include <mtmc/coder/transform/threads/split_loops.hpp>
#include <mtmc/coder/transform/threads/split_plan.hpp>
#include <mtmc/coder/transform/threads/split_scratch.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What a function does of a split reduction.
enum class SplitStage {
  whole, ///< all of it
  parts, ///< a part of each result
  rest   ///< it combines the parts
};

/// Writes the bodies.
class SplitStages {
public:
  /// `reduction` and `plan` must outlive it.
  SplitStages(const ReductionLaunch& reduction, const SplitPlan& plan)
      : reduction_(reduction), plan_(plan), shape_(plan.shape), combination_(plan.combination),
        geometry_(plan.geometry), names_(plan.names), loops_(reduction, plan), scratch_(reduction, plan) {}

  /// The body of a stage.
  [[nodiscard]] std::string text(SplitStage stage) const {
    const std::string work =
        stage == SplitStage::rest ? loop_over_parts() : loops_.text(stage == SplitStage::parts);
    std::string behind;
    if (shape_.team == ReductionTeam::present) {
      if (stage == SplitStage::parts && combination_)
        for (std::size_t i = 0; i < combination_->statements; ++i)
          behind += print(*reduction_.body.epilogue[i]) + '\n';
    } else {
      behind += combine_lanes();
    }
    std::string end = end_of_stage(stage);
    if (const std::string condition = first_lane();
        !condition.empty() && (stage == SplitStage::parts || shape_.team != ReductionTeam::present))
      end = "if (" + condition + ") {\n" + end + "}\n";
    behind += end;
    return head(stage) + around(work + behind, stage);
  }

private:
  /// The thread of the lanes that goes on alone, as a condition; empty where each thread does.
  [[nodiscard]] std::string first_lane() const {
    if (shape_.team == ReductionTeam::present)
      return !combination_ ? "" : combination_->warp ? "threadIdx.x % 32 == 0" : "threadIdx.x == 0";
    std::string condition = names_.lane + " == 0";
    if (shape_.team == ReductionTeam::column && any_clamp()) condition += " && " + names_.inside;
    return condition;
  }
  /// Threads may lie beyond the last result.
  [[nodiscard]] bool any_clamp() const {
    return std::any_of(plan_.clamps.begin(), plan_.clamps.end(),
                       [](const ResultClamp& clamp) { return !clamp.limit.empty(); });
  }

  /// Which thread it is.
  [[nodiscard]] std::string head(SplitStage stage) const {
    std::string code;
    if (shape_.team == ReductionTeam::block) code += "const int " + names_.lane + " = threadIdx.x;\n";
    if (shape_.team == ReductionTeam::column)
      code +=
          "const int " + names_.lane + " = " + launch_member("threadIdx", geometry_.block.size() - 1) + ";\n";
    if (stage == SplitStage::parts)
      code += "const int " + names_.part + " = " + launch_member("blockIdx", geometry_.part_axis) +
              ";\nconst int " + names_.parts + " = " + launch_member("gridDim", geometry_.part_axis) + ";\n";
    if (stage != SplitStage::whole && !geometry_.single) {
      const auto [number, count] = scratch_.result_number();
      code += "const int " + names_.result + " = " + number + ";\n";
      if (!scratch_.parts_are_neighbours()) code += "const int " + names_.results + " = " + count + ";\n";
    }
    return code;
  }

  /// The steps in front of the work, as far as it needs them, and the work in the branches that guard it.
  [[nodiscard]] std::string around(const std::string& work, SplitStage stage) const {
    std::set<std::string> needed;
    for (const SyntaxNode& statement : parse_statements(work))
      for (std::string& name : names_used(statement)) needed.insert(std::move(name));
    std::vector<std::string> code;
    std::string ends;
    for (std::size_t at = reduction_.body.steps.size(); at-- > 0;) {
      const ReductionStep& step = reduction_.body.steps[at];
      const auto need = [&](const SyntaxNode& node) {
        for (std::string& name : names_used(node)) needed.insert(std::move(name));
      };
      if (step.declaration == nullptr) {
        const std::string condition = condition_text(step.condition);
        if (condition.empty()) continue;
        need(step.condition);
        code.push_back("if (" + condition + ") {\n");
        ends += "}\n";
        continue;
      }
      const auto declared = declarators(*step.declaration);
      const bool wanted = is_value(*step.declaration) ||
                          std::any_of(declared.begin(), declared.end(), [&](const SyntaxNode& declarator) {
                            return needed.contains(declarator.text);
                          });
      if (!wanted) continue;
      need(*step.declaration);
      code.push_back(declaration_text(*step.declaration, stage));
    }
    std::string before = clamps();
    for (auto line = code.rbegin(); line != code.rend(); ++line) before += *line;
    return before + work + ends;
  }

  /// The statement declares a value that is reduced.
  [[nodiscard]] bool is_value(const SyntaxNode& declaration) const {
    return std::any_of(reduction_.body.values.begin(), reduction_.body.values.end(),
                       [&](const ReducedValue& value) { return value.declaration == &declaration; });
  }

  /// What is left of a condition where threads beyond the last result do the last one's work.
  [[nodiscard]] std::string condition_text(const SyntaxNode& condition) const {
    if (shape_.team != ReductionTeam::column) return print(condition);
    std::vector<const SyntaxNode*> all;
    add_conditions(condition, all);
    std::string rest;
    for (const SyntaxNode* one : all)
      if (!reduction_.depends_on_index(*one)) rest += (rest.empty() ? "" : " && ") + print(*one);
    return rest;
  }

  /// The numbers of results along the axes, where threads above each other have the same.
  [[nodiscard]] std::string clamps() const {
    if (shape_.team != ReductionTeam::column) return {};
    std::string code, inside, last;
    for (const ResultClamp& clamp : plan_.clamps) {
      std::string type = clamp.type;
      if (type.find("const") == std::string::npos) type = "const " + type;
      const std::string extent = geometry_.block[clamp.index.axis];
      const std::string number = launch_member("blockIdx", clamp.index.axis) + " * " + extent + " + " +
                                 launch_member("threadIdx", clamp.index.axis);
      if (clamp.limit.empty()) {
        code += type + ' ' + clamp.index.name + " = " + number + ";\n";
        continue;
      }
      const std::string thread = fresh_name(reduction_.request.tree, clamp.index.name + "_thread");
      code += type + ' ' + thread + " = " + number + ";\n";
      inside += (inside.empty() ? "" : " && ") + thread + " < " + clamp.limit;
      last += type + ' ' + clamp.index.name + " = " + thread + " < " + clamp.limit + " ? " + thread + " : " +
              bracketed(clamp.limit) + " - 1;\n";
    }
    if (inside.empty()) return code;
    return code + "const bool " + names_.inside + " = " + inside +
           ";\n// Threads beyond the last result do the last one's work, and store nothing.\n" + last;
  }

  /// A declaration in front of the loop: numbers of threads as they are now, sums from their identity.
  [[nodiscard]] std::string declaration_text(const SyntaxNode& declaration, SplitStage stage) const {
    for (const ThreadIndex& index : reduction_.indices) {
      if (&declaration != &statements(function_body(*reduction_.function().node))[index.statement]) continue;
      if (shape_.team == ReductionTeam::column) return {}; // `clamps` says it
      SyntaxNode changed = declaration;
      if (shape_.team == ReductionTeam::block)
        *initial_value(declarators(changed).front()) =
            parse_expression(launch_member("blockIdx", index.axis));
      return print(changed) + '\n';
    }
    const bool as_it_is = shape_.team == ReductionTeam::present && stage == SplitStage::rest;
    if (!is_value(declaration) || as_it_is) return print(declaration) + '\n';
    SyntaxNode changed = declaration;
    for (SyntaxNode& declarator : declarators(changed))
      for (const ReducedValue& value : reduction_.body.values)
        if (declarator.text == value.name && !value.is_extremum() && !starts_as_nothing(value))
          *initial_value(declarator) = make_literal(identity_of_reduction(value.reduction));
    return print(changed) + '\n';
  }
  /// It starts with what changes no sum or product.
  [[nodiscard]] static bool starts_as_nothing(const ReducedValue& value) {
    if (value.start.kind != NodeKind::literal) return false;
    std::string_view start = value.start.text;
    while (!start.empty() && (start.back() == 'f' || start.back() == 'F' || start.back() == 'u' ||
                              start.back() == 'U' || start.back() == 'l' || start.back() == 'L'))
      start.remove_suffix(1);
    if (start.find('.') != std::string_view::npos)
      while (start.ends_with('0')) start.remove_suffix(1);
    if (start.ends_with('.')) start.remove_suffix(1);
    return start == (value.reduction.operation == ReductionOperation::sum ? "0" : "1");
  }

  /// `sum += value;` and the like.
  [[nodiscard]] static std::string combine(const ReducedValue& value, const std::string& other) {
    if (value.reduction.operation == ReductionOperation::sum) return value.name + " += " + other + ";\n";
    if (value.reduction.operation == ReductionOperation::product) return value.name + " *= " + other + ";\n";
    return value.name + " = " + combined_values(value.reduction.operation, value.type, value.name, other) +
           ";\n";
  }

  /// The name of the function that combines a value of all threads of a block.
  [[nodiscard]] std::string combiner_of(const ReducedValue& value) const {
    const auto kind = thread_reduction(value.reduction, false);
    for (const ThreadReduction& known : plan_.combiners)
      if (known.same_as(*kind)) return known.name;
    return {};
  }
  /// The lane 0 has the result behind it.
  [[nodiscard]] std::string combine_lanes() const {
    std::string code;
    if (shape_.team == ReductionTeam::block) {
      for (std::size_t i = 0; i < reduction_.body.values.size(); ++i)
        code += reduction_.body.values[i].name + " = " + combiner_of(reduction_.body.values[i]) + '(' +
                reduction_.body.values[i].name + ");\n";
      return code;
    }
    std::string across, thread;
    for (std::size_t i = geometry_.block.size() - 1; i-- > 0;) {
      across += '[' + geometry_.block[i] + ']';
      thread += '[' + launch_member("threadIdx", i) + ']';
    }
    const std::string lanes = std::to_string(shape_.lanes);
    std::string combined;
    for (std::size_t i = 0; i < reduction_.body.values.size(); ++i) {
      code += "__shared__ " + reduction_.body.values[i].type + ' ' + names_.shared[i] + '[' + lanes + ']' +
              across + ";\n";
      code += names_.shared[i] + '[' + names_.lane + ']' + thread + " = " + reduction_.body.values[i].name +
              ";\n";
      combined += combine(reduction_.body.values[i], names_.shared[i] + "[other]" + thread);
    }
    return code + "__syncthreads();\nif (" + names_.lane + " == 0) {\nfor (int other = 1; other < " + lanes +
           "; ++other) {\n" + combined + "}\n}\n";
  }

  /// What is done with the values: stored as a part, or what the function does with them.
  [[nodiscard]] std::string end_of_stage(SplitStage stage) const {
    std::string code;
    if (stage == SplitStage::parts) {
      for (std::size_t i = 0; i < reduction_.body.values.size(); ++i)
        code += scratch_.place(i) + " = " +
                (combination_ ? combination_->totals[i] : reduction_.body.values[i].name) + ";\n";
      return code;
    }
    // Present threads start with it, as they did.
    if (shape_.team != ReductionTeam::present)
      for (const ReducedValue& value : reduction_.body.values)
        if (!value.is_extremum() && !starts_as_nothing(value)) code += combine(value, print(value.start));
    for (const SyntaxNode* statement : reduction_.body.epilogue) code += print(*statement) + '\n';
    return code;
  }

  /// The values are combined of their parts.
  [[nodiscard]] std::string loop_over_parts() const {
    std::string first = "0", step = "1";
    if (shape_.team != ReductionTeam::present) {
      first = names_.lane;
      step = std::to_string(shape_.lanes);
    } else if (combination_) {
      first = combination_->warp ? "threadIdx.x % 32" : "threadIdx.x";
      step = combination_->warp ? "32" : std::to_string(reduction_.threads);
    }
    std::string code;
    if (step == "1") code += "#pragma unroll 8\n";
    code += "for (int " + names_.part + " = " + first + "; " + names_.part + " < " + names_.parts + "; " +
            (step == "1" ? "++" + names_.part : names_.part + " += " + step) + ") {\n";
    for (std::size_t i = 0; i < reduction_.body.values.size(); ++i)
      code += combine(reduction_.body.values[i], scratch_.place(i));
    return code + "}\n";
  }

  const ReductionLaunch& reduction_;
  const SplitPlan& plan_;
  const SplittingShape& shape_;
  const std::optional<KnownCombination>& combination_;
  const SplitGeometry& geometry_;
  const SplitNames& names_;
  SplitLoops loops_;
  SplitScratch scratch_;
};

} // namespace mtmc::detail
