#pragma once
/// Splitting: more threads than results work on a long reduction on a GPU. The threads of a block share it
/// and combine their parts in shared memory; where that leaves multiprocessors idle, several blocks share it,
/// and a second launch combines their parts in fixed order.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/block_trees.hpp>
#include <mtmc/coder/transform/threads/columns.hpp>
#include <mtmc/coder/transform/threads/known_combination.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/threads/reduction_nest.hpp>
#include <mtmc/coder/transform/threads/reductions.hpp>
#include <mtmc/coder/transform/threads/result_clamps.hpp>
#include <mtmc/coder/transform/threads/split_geometry.hpp>
#include <mtmc/coder/transform/threads/split_shapes.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Writes a function that reduces anew, and its launches.
class ReductionSplitter {
public:
  /// Throws `TransformDeclined` with the reason where the function is not one that reduces in one loop.
  explicit ReductionSplitter(const TransformRequest& request)
      : request_(request), reduction_(reduction_launch(request)), launch_(reduction_.launch),
        function_(reduction_.function()), nest_(reduction_) {
    choose_names();
  }

  /// The tree with the reduction split.
  [[nodiscard]] SyntaxNode write() {
    shape_ = choose_variant(SplitShapes(reduction_).all(), request_.variant);
    if (shape_.team == ReductionTeam::present) combined_ = known_combination(reduction_);
    if (shape_.team == ReductionTeam::column) clamps_ = result_clamps(reduction_);
    geometry_ = split_geometry(reduction_, shape_, combined_);
    SyntaxNode tree = request_.tree;
    if (shape_.team == ReductionTeam::block)
      for (const ReducedValue& value : reduction_.body.values) add_combiner(tree, value);
    if (shape_.blocks == 0)
      write_one(tree);
    else
      write_two(tree);
    for (const ThreadReduction& one : combiners_)
      if (!one.is_there) launch_.add_function(tree, one.text());
    return tree;
  }

private:
  enum class Stage { whole, parts, rest };

  void choose_names() {
    const SyntaxNode& tree = request_.tree;
    lane_ = fresh_name(tree, "lane");
    part_ = fresh_name(tree, "part");
    parts_ = fresh_name(tree, "parts");
    result_ = fresh_name(tree, "result");
    results_ = fresh_name(tree, "results");
    inside_ = fresh_name(tree, "inside");
    for (const ReducedValue& value : reduction_.body.values) {
      std::string name = fresh_name(tree, value.name + "_parts");
      while (request_.task.find_argument(name) != nullptr) name = fresh_name(tree, name + "_of_blocks");
      scratch_.push_back(name);
      shared_.push_back(fresh_name(tree, value.name + "_of_lanes"));
    }
  }

  // --- Text

  [[nodiscard]] std::string axis(std::string_view object, std::size_t number) const {
    return std::string(object) + '.' + std::string(axis_names[number]);
  }
  /// The number of the block among those that share no result, and how many there are.
  [[nodiscard]] std::pair<std::string, std::string> block_number() const {
    if (geometry_.grid.size() == 1 && geometry_.part_axis == 0) return {"0", "1"};
    std::string number = axis("blockIdx", geometry_.grid.size() - 1), count = axis("gridDim", 0);
    for (std::size_t i = geometry_.grid.size() - 1; i-- > 0;)
      number = (number.find(' ') == std::string::npos ? number : '(' + number + ')') + " * " +
               axis("gridDim", i) + " + " + axis("blockIdx", i);
    for (std::size_t i = 1; i < geometry_.grid.size(); ++i) count += " * " + axis("gridDim", i);
    return {number, count};
  }
  /// The number of the thread's result, and how many there are.
  [[nodiscard]] std::pair<std::string, std::string> result_number() const {
    auto [number, count] = block_number();
    if (geometry_.width == 1) return {number, count};
    std::string thread = "threadIdx.x";
    if (combined_) thread = "threadIdx.x / 32"; // a warp's
    const std::size_t axes =
        shape_.team == ReductionTeam::column ? geometry_.block.size() - 1 : geometry_.block.size();
    if (axes > 1) thread = "threadIdx.y * " + geometry_.block[0] + " + threadIdx.x";
    if (axes > 2)
      thread = "(threadIdx.z * " + geometry_.block[1] + " + threadIdx.y) * " + geometry_.block[0] +
               " + threadIdx.x";
    const std::string width = std::to_string(geometry_.width);
    if (number == "0") return {thread, width};
    return {(number.find(' ') == std::string::npos ? number : '(' + number + ')') + " * " + width + " + " +
                thread,
            count + " * " + width};
  }
  /// Parts of one result lie next to each other where neighbouring threads combine them.
  [[nodiscard]] bool parts_are_neighbours() const {
    return shape_.team == ReductionTeam::block || combined_.has_value();
  }
  [[nodiscard]] std::string part_place(std::size_t value) const {
    if (geometry_.single) return scratch_[value] + '[' + part_ + ']';
    if (parts_are_neighbours()) return scratch_[value] + '[' + result_ + " * " + parts_ + " + " + part_ + ']';
    return scratch_[value] + '[' + part_ + " * " + results_ + " + " + result_ + ']';
  }
  [[nodiscard]] std::string scratch_line(std::size_t value) const {
    std::vector<std::string> factors = geometry_.grid;
    if (geometry_.width > 1) factors.push_back(std::to_string(geometry_.width));
    std::vector<std::string> extents{geometry_.parts};
    if (!geometry_.single)
      extents.insert(parts_are_neighbours() ? extents.begin() : extents.end(), extent_product(factors));
    return "//@ scratch " + scratch_[value] + ": " + scratch_type(reduction_.body.values[value].type) + '[' +
           joined(extents, ", ") + ']';
  }

  /// The thread of the lanes that goes on alone, as a condition; empty where each thread does.
  [[nodiscard]] std::string first_lane() const {
    if (shape_.team == ReductionTeam::present)
      return !combined_ ? "" : combined_->warp ? "threadIdx.x % 32 == 0" : "threadIdx.x == 0";
    std::string condition = lane_ + " == 0";
    if (shape_.team == ReductionTeam::column && any_clamp()) condition += " && " + inside_;
    return condition;
  }
  [[nodiscard]] bool any_clamp() const {
    return std::any_of(clamps_.begin(), clamps_.end(),
                       [](const ResultClamp& clamp) { return !clamp.limit.empty(); });
  }

  [[nodiscard]] std::string body_of_stage(Stage stage) const {
    const std::string work = stage == Stage::rest ? loop_over_parts() : loops(stage == Stage::parts);
    std::string behind;
    if (shape_.team == ReductionTeam::present) {
      if (stage == Stage::parts && combined_)
        for (std::size_t i = 0; i < combined_->statements; ++i)
          behind += print(*reduction_.body.epilogue[i]) + '\n';
    } else {
      behind += combine_lanes();
    }
    std::string end = end_of_stage(stage);
    if (const std::string condition = first_lane();
        !condition.empty() && (stage == Stage::parts || shape_.team != ReductionTeam::present))
      end = "if (" + condition + ") {\n" + end + "}\n";
    behind += end;
    return head(stage) + around(work + behind, stage);
  }

  /// Which thread it is.
  [[nodiscard]] std::string head(Stage stage) const {
    std::string code;
    if (shape_.team == ReductionTeam::block) code += "const int " + lane_ + " = threadIdx.x;\n";
    if (shape_.team == ReductionTeam::column)
      code += "const int " + lane_ + " = " + axis("threadIdx", geometry_.block.size() - 1) + ";\n";
    if (stage == Stage::parts)
      code += "const int " + part_ + " = " + axis("blockIdx", geometry_.part_axis) + ";\nconst int " +
              parts_ + " = " + axis("gridDim", geometry_.part_axis) + ";\n";
    if (stage != Stage::whole && !geometry_.single) {
      const auto [number, count] = result_number();
      code += "const int " + result_ + " = " + number + ";\n";
      if (!parts_are_neighbours()) code += "const int " + results_ + " = " + count + ";\n";
    }
    return code;
  }

  /// The steps in front of the work, as far as it needs them, and the work in the branches that guard it.
  [[nodiscard]] std::string around(const std::string& work, Stage stage) const {
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
    std::string text = clamps();
    for (auto line = code.rbegin(); line != code.rend(); ++line) text += *line;
    return text + work + ends;
  }

  [[nodiscard]] bool is_value(const SyntaxNode& declaration) const {
    return std::any_of(reduction_.body.values.begin(), reduction_.body.values.end(),
                       [&](const ReducedValue& value) { return value.declaration == &declaration; });
  }

  /// What is left of a condition where threads beyond the last result do the last one's work.
  [[nodiscard]] std::string condition_text(const SyntaxNode& condition) const {
    if (shape_.team != ReductionTeam::column) return print(condition);
    std::vector<const SyntaxNode*> all;
    add_conditions(condition, all);
    std::string text;
    for (const SyntaxNode* one : all)
      if (!reduction_.depends_on_index(*one)) text += (text.empty() ? "" : " && ") + print(*one);
    return text;
  }

  /// The numbers of results along the axes, where threads above each other have the same.
  [[nodiscard]] std::string clamps() const {
    if (shape_.team != ReductionTeam::column) return {};
    std::string code, inside, last;
    for (const ResultClamp& clamp : clamps_) {
      std::string type = clamp.type;
      if (type.find("const") == std::string::npos) type = "const " + type;
      const std::string extent = geometry_.block[clamp.index.axis];
      const std::string number =
          axis("blockIdx", clamp.index.axis) + " * " + extent + " + " + axis("threadIdx", clamp.index.axis);
      if (clamp.limit.empty()) {
        code += type + ' ' + clamp.index.name + " = " + number + ";\n";
        continue;
      }
      const std::string thread = fresh_name(request_.tree, clamp.index.name + "_thread");
      code += type + ' ' + thread + " = " + number + ";\n";
      inside += (inside.empty() ? "" : " && ") + thread + " < " + clamp.limit;
      last += type + ' ' + clamp.index.name + " = " + thread + " < " + clamp.limit + " ? " + thread + " : " +
              bracketed(clamp.limit) + " - 1;\n";
    }
    if (inside.empty()) return code;
    return code + "const bool " + inside_ + " = " + inside +
           ";\n// Threads beyond the last result do the last one's work, and store nothing.\n" + last;
  }
  [[nodiscard]] static std::string bracketed(const std::string& text) {
    const bool plain = std::all_of(text.begin(), text.end(), is_name_character);
    return plain ? text : '(' + text + ')';
  }

  /// A declaration in front of the loop: numbers of threads as they are now, sums from their identity.
  [[nodiscard]] std::string declaration_text(const SyntaxNode& declaration, Stage stage) const {
    for (const ThreadIndex& index : reduction_.indices) {
      if (&declaration != &statements(function_body(*function_.node))[index.statement]) continue;
      if (shape_.team == ReductionTeam::column) return {}; // `clamps` says it
      SyntaxNode changed = declaration;
      if (shape_.team == ReductionTeam::block)
        *initial_value(declarators(changed).front()) = parse_expression(axis("blockIdx", index.axis));
      return print(changed) + '\n';
    }
    const bool as_it_is = shape_.team == ReductionTeam::present && stage == Stage::rest;
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
    std::string_view text = value.start.text;
    while (!text.empty() && (text.back() == 'f' || text.back() == 'F' || text.back() == 'u' ||
                             text.back() == 'U' || text.back() == 'l' || text.back() == 'L'))
      text.remove_suffix(1);
    if (text.find('.') != std::string_view::npos)
      while (text.ends_with('0')) text.remove_suffix(1);
    if (text.ends_with('.')) text.remove_suffix(1);
    return text == (value.reduction.operation == ReductionOperation::sum ? "0" : "1");
  }

  /// `sum += value;` and the like.
  [[nodiscard]] static std::string combine(const ReducedValue& value, const std::string& other) {
    if (value.reduction.operation == ReductionOperation::sum) return value.name + " += " + other + ";\n";
    if (value.reduction.operation == ReductionOperation::product) return value.name + " *= " + other + ";\n";
    return value.name + " = " + combined_values(value.reduction.operation, value.type, value.name, other) +
           ";\n";
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
      thread += '[' + axis("threadIdx", i) + ']';
    }
    const std::string lanes = std::to_string(shape_.lanes);
    std::string combined;
    for (std::size_t i = 0; i < reduction_.body.values.size(); ++i) {
      code += "__shared__ " + reduction_.body.values[i].type + ' ' + shared_[i] + '[' + lanes + ']' + across +
              ";\n";
      code += shared_[i] + '[' + lane_ + ']' + thread + " = " + reduction_.body.values[i].name + ";\n";
      combined += combine(reduction_.body.values[i], shared_[i] + "[other]" + thread);
    }
    return code + "__syncthreads();\nif (" + lane_ + " == 0) {\nfor (int other = 1; other < " + lanes +
           "; ++other) {\n" + combined + "}\n}\n";
  }

  [[nodiscard]] std::string end_of_stage(Stage stage) const {
    std::string code;
    if (stage == Stage::parts) {
      for (std::size_t i = 0; i < reduction_.body.values.size(); ++i)
        code += part_place(i) + " = " + (combined_ ? combined_->totals[i] : reduction_.body.values[i].name) +
                ";\n";
      return code;
    }
    // Present threads start with it, as they did.
    if (shape_.team != ReductionTeam::present)
      for (const ReducedValue& value : reduction_.body.values)
        if (!value.is_extremum() && !starts_as_nothing(value)) code += combine(value, print(value.start));
    for (const SyntaxNode* statement : reduction_.body.epilogue) code += print(*statement) + '\n';
    return code;
  }

  [[nodiscard]] std::string loop_over_parts() const {
    std::string first = "0", step = "1";
    if (shape_.team != ReductionTeam::present) {
      first = lane_;
      step = std::to_string(shape_.lanes);
    } else if (combined_) {
      first = combined_->warp ? "threadIdx.x % 32" : "threadIdx.x";
      step = combined_->warp ? "32" : std::to_string(reduction_.threads);
    }
    std::string code;
    if (step == "1") code += "#pragma unroll 8\n";
    code += "for (int " + part_ + " = " + first + "; " + part_ + " < " + parts_ + "; " +
            (step == "1" ? "++" + part_ : part_ + " += " + step) + ") {\n";
    for (std::size_t i = 0; i < reduction_.body.values.size(); ++i)
      code += combine(reduction_.body.values[i], part_place(i));
    return code + "}\n";
  }

  // --- Loops

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

  /// The nest with its iterations shared by lanes and, where they are wanted, by parts.
  [[nodiscard]] std::string loops(bool parts) const {
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
  [[nodiscard]] static std::string head_text(const LoopInfo& level) {
    SyntaxNode loop = *level.node;
    loop_body(loop) = make_empty();
    std::string text(trim(print(head_of(level).with_body({}))));
    return text.substr(0, text.rfind(')') + 1);
  }

  /// The values of a loop's variable that the threads of this part go through.
  struct PartRange {
    std::string each{}, first{}, end{};
  };
  [[nodiscard]] PartRange names_of(const LoopInfo& level) const {
    return {fresh_name(request_.tree, level.variable + "_each"),
            fresh_name(request_.tree, level.variable + "_first"),
            fresh_name(request_.tree, level.variable + "_end")};
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
    const std::string units = unit == 1 ? parts_ : '(' + parts_ + " * " + std::to_string(unit) + ')';
    std::string code = type + names.each + " = (" + range + " + " + units + " - 1) / " + units +
                       (unit == 1 ? "" : " * " + std::to_string(unit)) + ";\n";
    const std::string start = print(make_binary("+", first, make_name(part_)));
    code += type + names.first + " = " +
            (literal_value(first) == 0 ? "" : start.substr(0, start.rfind(part_))) + part_ + " * " +
            names.each + ";\n";
    const std::string bound = print(make_binary("+", head.bound, make_integer(0)));
    const std::string last = bound.substr(0, bound.rfind(" + 0"));
    code += type + names.end + " = " + names.first + " + " + names.each + " < " + last + " ? " + names.first +
            " + " + names.each + " : " + last + ";\n";
    return code;
  }

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
      if (lanes) first += " + " + worker(lane_);
      if (shape_.team == ReductionTeam::present && reduction_.depends_on_thread(*level.start_expression))
        first += " + " + print(head.first);
      bound = names.end;
    } else if (parts) {
      const std::string number = lanes ? part_ + " * " + std::to_string(count) + " + " + lane_ : part_;
      first = plus(head.first, worker(number));
      step = parts_ + (head.step * count == 1 ? "" : " * " + std::to_string(head.step * count));
    } else {
      first = plus(head.first, worker(lane_));
    }
    const std::string next = step == "1" ? "++" + head.variable : head.variable + " += " + step;
    return "for (" + head.type + ' ' + head.variable + " = " + first + "; " + head.variable + " < " + bound +
           "; " + next + ')';
  }

  // --- Writing

  void add_combiner(const SyntaxNode& tree, const ReducedValue& value) {
    auto kind = thread_reduction(value.reduction, false);
    if (!kind) throw TransformDeclined("threads cannot combine values of the type " + value.type);
    for (const ThreadReduction& known : combiners_)
      if (known.same_as(*kind)) return;
    give_name(tree, *kind);
    combiners_.push_back(*kind);
  }
  [[nodiscard]] std::string combiner_of(const ReducedValue& value) const {
    const auto kind = thread_reduction(value.reduction, false);
    for (const ThreadReduction& known : combiners_)
      if (known.same_as(*kind)) return known.name;
    return {};
  }

  void write_one(SyntaxNode& tree) {
    SyntaxNode& function = *node_at(tree, launch_.function_at);
    function.type = without_launch_bounds(function.type);
    function_body(function).children = parse_statements(body_of_stage(Stage::whole));
    launch_.line.grid = geometry_.grid;
    launch_.line.block = geometry_.block;
    tree.children[launch_.line_at].text = launch_line_text(launch_.line);
  }

  void write_two(SyntaxNode& tree) {
    SyntaxNode& rest = *node_at(tree, launch_.function_at);
    rest.type = without_launch_bounds(rest.type);
    SyntaxNode parts = rest;
    parts.text = fresh_name(tree, function_.name + "_in_parts");
    std::vector<std::string> part_arguments, rest_arguments;
    set_body(parts, body_of_stage(Stage::parts), part_arguments);
    set_body(rest, body_of_stage(Stage::rest), rest_arguments);
    for (std::size_t i = 0; i < reduction_.body.values.size(); ++i) {
      add_parameter(parts, reduction_.body.values[i].type + "*", scratch_[i]);
      add_parameter(rest, "const " + reduction_.body.values[i].type + "*", scratch_[i]);
      part_arguments.push_back(scratch_[i]);
      rest_arguments.push_back(scratch_[i]);
    }
    add_parameter(rest, "int", parts_);
    rest_arguments.push_back(geometry_.parts);

    LaunchLine first = launch_.line;
    first.entry = parts.text;
    first.arguments = part_arguments;
    first.block = geometry_.block;
    first.grid = geometry_.grid;
    if (geometry_.part_axis == 0)
      first.grid[0] = geometry_.parts;
    else
      first.grid.push_back(geometry_.parts);
    LaunchLine second = launch_.line;
    second.arguments = rest_arguments;
    second.block = geometry_.block;
    second.grid = geometry_.grid;

    parts.leading_trivia =
        "\n// A block's part of what " + function_.name + " reduces, which combines the parts.\n";
    std::vector<SyntaxNode> lines;
    for (std::size_t i = 0; i < reduction_.body.values.size(); ++i)
      lines.push_back(make_launch_comment(scratch_line(i)));
    lines.push_back(make_launch_comment(launch_line_text(first)));
    lines.front().leading_trivia = tree.children[launch_.line_at].leading_trivia;
    tree.children[launch_.line_at].leading_trivia.clear();
    tree.children[launch_.line_at].text = launch_line_text(second);
    const std::size_t function_at = launch_.function_at.front();
    SyntaxNode& behind = tree.children[function_at];
    if (!behind.leading_trivia.starts_with('\n')) behind.leading_trivia.insert(0, "\n");
    const auto insert = [&](std::size_t at, SyntaxNode node) {
      tree.children.insert(tree.children.begin() + static_cast<std::ptrdiff_t>(at), std::move(node));
    };
    insert(function_at, std::move(parts));
    const std::size_t line_at = launch_.line_at + (launch_.line_at > function_at ? 1 : 0);
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) insert(line_at, std::move(*line));
    launch_.function_at.front() += line_at <= function_at ? lines.size() : 0;
  }

  /// Another body, and the parameters that it uses.
  void set_body(SyntaxNode& function, const std::string& text, std::vector<std::string>& arguments) const {
    SyntaxNode& body = function_body(function);
    body.children = parse_statements(text);
    std::vector<SyntaxNode> kept;
    const auto formal = parameters(*function_.node);
    for (std::size_t i = 0; i < formal.size(); ++i) {
      if (!uses_name(body, formal[i].text)) continue;
      kept.push_back(formal[i]);
      arguments.push_back(launch_.line.arguments.at(i));
    }
    kept.push_back(std::move(function.children.back()));
    function.children = std::move(kept);
  }
  static void add_parameter(SyntaxNode& function, const std::string& type, const std::string& name) {
    function.children.insert(function.children.end() - 1, make_parameter(type, name));
  }

  const TransformRequest& request_;
  const ReductionLaunch reduction_;
  ThreadLaunch launch_;
  const FunctionAnalysis& function_;
  std::vector<ResultClamp> clamps_{};
  ReductionNest nest_;
  SplittingShape shape_{};
  SplitGeometry geometry_{};
  std::optional<KnownCombination> combined_{}; ///< what combines the values of threads already
  std::vector<ThreadReduction> combiners_{};   ///< what does so now
  std::string lane_, part_, parts_, result_, results_, inside_;
  std::vector<std::string> scratch_{}, shared_{};
};

/// Splits the reduction of the action; where more than a result follows it, threads above each other share
/// all that a thread does.
[[nodiscard]] inline SyntaxNode split_reduction(const TransformRequest& request) {
  try {
    return ReductionSplitter(request).write();
  } catch (const TransformDeclined& declined) {
    const std::string reason = declined.what();
    if (reason.starts_with("no further variant")) throw;
    try {
      ColumnSpreader columns(request);
      if (columns.lies_along_memory())
        return columns.write(choose_variant(columns.shapes(), request.variant));
    } catch (const TransformDeclined& other) {
      if (std::string_view(other.what()).starts_with("no further variant")) throw;
    }
    throw;
  }
}

} // namespace mtmc::detail
