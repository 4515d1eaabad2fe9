#pragma once
/// Tiles of a GPU's launch whose threads each add up one result: a block makes a tile of results, several for
/// each thread, from tiles of the operands in shared memory; the next ones are on their way meanwhile.

#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/contraction.hpp>
#include <mtmc/coder/transform/threads/covering_guard.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/result_tiles.hpp>
#include <mtmc/coder/transform/threads/staged_groups.hpp>
#include <mtmc/coder/transform/threads/vector_types.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Writes a contraction anew.
class ResultTiler {
public:
  explicit ResultTiler(const TransformRequest& request) : request_(request), what_(request) {
    if (!what_.is_about_nest()) decline("it is " + loop_name(*what_.sum.loop) + " that adds up");
    require_covering(request, what_.sum.launch);
    for (const CountingLoop& loop : what_.loops)
      for (const SyntaxNode* end : {&loop.first, &loop.bound}) {
        const SyntaxNode value = what_.values.expanded(*end);
        for (const auto* axes : {&what_.rows, &what_.columns})
          for (const ResultAxis& axis : *axes)
            if (uses_name(value, axis.name))
              decline("the bound of the " + loop.variable + " loop is not the same for all");
        for (const std::string& name : names_used(*end)) keep_for_block(name);
      }
    for (const ResultAxis& layer : what_.layers)
      (layer.is_block && layer.source == 2 ? kept_ : folded_).push_back(layer);
    for (const ResultAxis& layer : folded_)
      if (layer.limit.kind == NodeKind::empty)
        decline("it is not known how many results lie along " + layer.name);
  }

  [[nodiscard]] SyntaxNode write() {
    const auto extent = [&](const std::vector<ResultAxis>& axes) {
      return value_at_main_size(request_, what_.total_in_launch(axes));
    };
    const auto depth = value_at_main_size(request_, what_.in_launch(what_.loops[what_.tiled].bound));
    tile_ = choose_variant(
        result_tiles(extent(what_.rows), extent(what_.columns), depth, layers(), request_.device),
        request_.variant);
    SyntaxNode tree = request_.tree;
    name_things(tree);
    ThreadLaunch& launch = what_.sum.launch;
    launch.body_in(tree).children = parse_statements(text());
    const auto tiles = [&](const std::vector<ResultAxis>& axes, std::int64_t each) {
      return "ceil_div(" + what_.total_in_launch(axes) + ", " + n(each) + ')';
    };
    std::vector<std::string> grid{tiles(what_.columns, tile_.columns), tiles(what_.rows, tile_.rows)};
    if (!kept_.empty()) grid.push_back(launch.line.grid[2]);
    if (!folded_.empty()) grid[0] += " * " + as_factor(what_.total_in_launch(folded_));
    launch.set_grid(tree, std::move(grid), n(ResultTile::threads));
    // Two blocks on a multiprocessor: with more registers a thread the largest tile takes 1.2 times as long.
    // Smaller tiles take as much longer with such a bound.
    if (tile_.thread_rows * tile_.thread_columns >= 64)
      launch.function_in(tree).type += " __launch_bounds__(" + n(ResultTile::threads) + ", 2)";
    return tree;
  }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }
  [[nodiscard]] static std::string n(std::int64_t value) { return std::to_string(value); }

  /// How many layers there are at the task's main size.
  [[nodiscard]] std::int64_t layers() const {
    std::int64_t count = value_at_main_size(request_, what_.total_in_launch(folded_)).value_or(1);
    if (!kept_.empty()) count *= value_at_main_size(request_, what_.sum.launch.line.grid[2]).value_or(1);
    return count;
  }
  /// What loops begin or end with stays a variable of the block, where all that it is made from does. Returns
  /// whether it is one.
  bool keep_for_block(const std::string& name) {
    if (!what_.values.has(name)) return true;
    for (const SyntaxNode* declaration : what_.sum.before)
      for (const SyntaxNode& declarator : declarators(*declaration)) {
        if (declarator.text != name || declarators(*declaration).size() != 1) continue;
        bool stays = !is_axis(name);
        for (const std::string& used : names_used(*initial_value(declarator)))
          stays = stays && keep_for_block(used);
        if (stays) what_.values.keep(name);
        return stays;
      }
    return false;
  }

  void name_things(const SyntaxNode& tree) {
    const auto number = [&](const std::vector<ResultAxis>& axes, std::string_view name) {
      return axes.size() == 1 ? axes.front().name : fresh_name(tree, name);
    };
    row_ = number(what_.rows, "row");
    column_ = number(what_.columns, "column");
    layer_ = number(folded_.empty() ? what_.layers : folded_, "layer");
    thread_ = fresh_name(tree, "thread_index");
    at_ = fresh_name(tree, "at");
    first_row_ = fresh_name(tree, "first_" + row_);
    first_column_ = fresh_name(tree, "first_" + column_);
    sums_ = fresh_name(tree, what_.sum.sum.scalar->name + "s");
    const std::string& variable = what_.loops[what_.tiled].variable;
    tile_of_sum_ = fresh_name(tree, variable + "_tile");
    tiles_of_sum_ = fresh_name(tree, variable + "_tiles");
    inner_ = fresh_name(tree, variable + "_inner");
    step_ = fresh_name(tree, "step");
    r_ = fresh_name(tree, "r");
    c_ = fresh_name(tree, "c");
    n_ = fresh_name(tree, "n");
    e_ = fresh_name(tree, "e");
    for (const StagedOperand& operand : what_.operands) {
      std::string suffix;
      for (const Names& other : names_)
        if (other.array == operand.array) suffix += "_2";
      names_.push_back({operand.array, fresh_name(tree, operand.array + "_tile" + suffix),
                        fresh_name(tree, operand.array + "_values" + suffix),
                        fresh_name(tree, operand.array + "_next" + suffix)});
    }
    for (std::size_t i = 0; i < names_.size(); ++i) names_[i].group = neighbours(i);
  }

  /// The function's new body.
  [[nodiscard]] std::string text() const {
    std::string code = shared_tiles() + places();
    const std::string& type = what_.sum.sum.type;
    code += type + ' ' + sums_ + '[' + n(tile_.thread_rows) + "][" + n(tile_.thread_columns) + "];\n";
    code += for_results(sums_ + '[' + r_ + "][" + c_ + "] = " + what_.sum.start + ';');
    for (std::size_t i = 0; i < what_.operands.size(); ++i)
      code += alignment_of(i) + what_.operands[i].loaded_type + ' ' + names_[i].next + '[' + n(loads_of(i)) +
              "];\n" + fixed_numbers(i);
    code += what_.loops.size() == 1 ? along_one_loop() : along_steps();
    return code + results();
  }
  [[nodiscard]] std::string shared_tiles() const {
    std::string code;
    for (std::size_t i = 0; i < what_.operands.size(); ++i)
      code += "__shared__ __align__(16) " + what_.operands[i].type + ' ' + names_[i].tile + '[' +
              n(tile_.depth) + "][" + n(across_of(i) + (what_.operands[i].along_sum ? 4 : 0)) + "];\n";
    return code;
  }
  /// Which thread of which tile of which layer it is, and what was declared for all of them.
  [[nodiscard]] std::string places() const {
    std::string code = "const int " + thread_ + " = threadIdx.x;\n";
    std::string across = "blockIdx.x";
    if (!folded_.empty()) {
      const std::string tiles =
          '(' + print(what_.total(what_.columns)) + " + " + n(tile_.columns - 1) + ") / " + n(tile_.columns);
      const std::string column_tiles = column_ + "_tiles";
      code += "const int " + column_tiles + " = " + tiles + ";\n";
      across = "blockIdx.x % " + column_tiles;
      code += number_of(folded_, layer_, "blockIdx.x / " + column_tiles);
    }
    code += "const int " + first_row_ + " = blockIdx.y * " + n(tile_.rows) + ";\n";
    code += "const int " + first_column_ + " = " + across + " * " + n(tile_.columns) + ";\n";
    for (const SyntaxNode* declaration : what_.sum.before) {
      bool stands = true; // what is made from rows and columns is not the same for all any more
      for (const SyntaxNode& declarator : declarators(*declaration)) {
        const bool kept = std::any_of(kept_.begin(), kept_.end(),
                                      [&](const ResultAxis& axis) { return axis.name == declarator.text; });
        stands = stands && (kept || is_uniform(declarator.text));
      }
      if (stands) code += print(*declaration) + '\n';
    }
    return code;
  }
  /// The variable numbers an axis, or the threads or blocks that axes are taken out of.
  [[nodiscard]] bool is_axis(const std::string& name) const {
    return std::any_of(what_.sources.begin(), what_.sources.end(), [&](const AxisSource& source) {
      return source.name == name || std::any_of(source.axes.begin(), source.axes.end(),
                                                [&](const ResultAxis& axis) { return axis.name == name; });
    });
  }
  /// The variable stands for itself and is no axis.
  [[nodiscard]] bool is_uniform(const std::string& name) const {
    return !what_.values.has(name) && !is_axis(name);
  }
  /// Declares the numbers along axes from the number through all of them.
  [[nodiscard]] std::string number_of(const std::vector<ResultAxis>& axes, const std::string& name,
                                      const std::string& value) const {
    const auto declared = [](const ResultAxis& axis, const std::string& number) {
      return "const " + axis.type + ' ' + axis.name + " = " + number + ";\n";
    };
    if (axes.size() == 1) return declared(axes.front(), value);
    std::string code = "const int " + name + " = " + value + ";\n";
    return code + digits_of(axes, name, declared);
  }
  template <class Declared>
  [[nodiscard]] std::string digits_of(const std::vector<ResultAxis>& axes, const std::string& name,
                                      const Declared& declared) const {
    std::string code;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const SyntaxNode below = what_.total({axes.begin() + static_cast<std::ptrdiff_t>(i) + 1, axes.end()});
      SyntaxNode digit = make_name(name);
      if (i + 1 < axes.size()) digit = make_binary("/", digit, below);
      if (i > 0) digit = make_binary("%", digit, axes[i].limit);
      code += declared(axes[i], print(digit));
    }
    return code;
  }

  /// Tiles along the sum's only loop.
  [[nodiscard]] std::string along_one_loop() const {
    const CountingLoop& head = what_.loops.front();
    const std::string bound = bound_of(what_.tiled), depth = n(tile_.depth);
    const std::string next = tile_of_sum_ + " + " + depth;
    std::string code = load_all(behind_first(what_.tiled, ""));
    code += "for (" + head.type + ' ' + tile_of_sum_ + " = " + first_of(what_.tiled) + "; " + tile_of_sum_ +
            " < " + bound + "; " + tile_of_sum_ + " += " + depth + ") {\n";
    code += store_all() + "if (" + next + " < " + bound + ") {\n" + load_all(next + " + ") + "}\n";
    return code + sums() + "}\n";
  }
  /// Tiles along one loop, for each iteration of the others.
  [[nodiscard]] std::string along_steps() const {
    std::string code = "const int " + tiles_of_sum_ + " = (" + count_of(what_.tiled) + " + " +
                       n(tile_.depth - 1) + ") / " + n(tile_.depth) + ";\nconst int " + step_ +
                       "s = " + tiles_of_sum_;
    for (std::size_t i = 0; i < what_.loops.size(); ++i)
      if (i != what_.tiled) code += " * " + as_factor(count_of(i));
    code += ";\nif (" + step_ + "s > 0) {\n" + numbers_of_step("0") + load_all(tile_of_sum_ + " + ") + "}\n";
    code += "for (int " + step_ + " = 0; " + step_ + " < " + step_ + "s; ++" + step_ + ") {\n" + store_all();
    code += "if (" + step_ + " + 1 < " + step_ + "s) {\n" + numbers_of_step('(' + step_ + " + 1)") +
            load_all(tile_of_sum_ + " + ") + "}\n";
    if (!what_.zeros_add_nothing) code += numbers_of_step(step_);
    return code + sums() + "}\n";
  }
  /// The numbers of all loops but the tiled one, and where its tile begins, in a step.
  [[nodiscard]] std::string numbers_of_step(const std::string& step) const {
    const auto number = [](const CountingLoop& loop, const std::string& name, const std::string& value) {
      return "const " + loop.type + ' ' + name + " = " + value + ";\n";
    };
    const bool first = step == "0";
    std::string code = number(
        what_.loops[what_.tiled], tile_of_sum_,
        behind_first(what_.tiled, first ? step : step + " % " + tiles_of_sum_ + " * " + n(tile_.depth)));
    std::string before = " / " + tiles_of_sum_;
    for (std::size_t i = what_.loops.size(); i-- > 0;) {
      if (i == what_.tiled) continue;
      const std::string count = as_factor(count_of(i));
      code += number(what_.loops[i], what_.loops[i].variable,
                     behind_first(i, first ? step : step + before + " % " + count));
      before += " / " + count;
    }
    return code;
  }
  [[nodiscard]] std::string bound_of(std::size_t loop) const {
    return print(what_.values.expanded(what_.loops[loop].bound));
  }
  [[nodiscard]] std::string first_of(std::size_t loop) const {
    return print(what_.values.expanded(what_.loops[loop].first));
  }
  /// Iterations of a loop: none where it begins behind its end.
  [[nodiscard]] std::string count_of(std::size_t loop) const {
    const std::string first = first_of(loop);
    std::string bound = bound_of(loop);
    if (first == "0") return bound;
    return '(' + first + " < " + bound + " ? " + as_factor(bound) + " - " + as_factor(first) + " : 0)";
  }
  /// The number of an iteration, counted from 0, as the loop's variable has it; as a prefix where it is
  /// empty.
  [[nodiscard]] std::string behind_first(std::size_t loop, const std::string& number) const {
    const std::string first = first_of(loop);
    return first == "0" ? number : number == "0" ? first : as_factor(first) + " + " + number;
  }
  [[nodiscard]] std::string load_all(const std::string& first) const {
    std::string code;
    for (std::size_t i = 0; i < what_.operands.size(); ++i) code += load(i, first);
    return code;
  }
  [[nodiscard]] std::string store_all() const {
    std::string code;
    for (std::size_t i = 0; i < what_.operands.size(); ++i)
      code += for_loads(i, for_group(i, place_in_tile(i) + " = " + print(brought(i)) + ";\n"));
    return code + "__syncthreads();\n";
  }
  /// The value of an operand from what was loaded for it.
  [[nodiscard]] SyntaxNode brought(std::size_t operand) const {
    const StagedOperand& one = what_.operands[operand];
    SyntaxNode value = one.value;
    walk(value, [&](SyntaxNode& node) {
      if (!structurally_equal(node, one.loaded)) return true;
      node = parse_expression(next_of(operand));
      return false;
    });
    return value;
  }
  /// Adds up what a tile gives.
  [[nodiscard]] std::string sums() const {
    const std::string row = '(' + thread_ + " / " + n(ResultTile::edge) + ')';
    const std::string column = '(' + thread_ + " % " + n(ResultTile::edge) + ')';
    std::string code = what_.zeros_add_nothing ? "#pragma unroll\n" : "";
    code += "for (int " + inner_ + " = 0; " + inner_ + " < " + n(tile_.depth);
    if (!what_.zeros_add_nothing)
      code += " && " + tile_of_sum_ + " + " + inner_ + " < " + bound_of(what_.tiled);
    code += "; ++" + inner_ + ") {\n";
    for (std::size_t i = 0; i < what_.operands.size(); ++i) {
      const bool by_rows = what_.operands[i].by_rows;
      const std::int64_t each = by_rows ? tile_.thread_rows : tile_.thread_columns;
      const std::string& number = by_rows ? r_ : c_;
      code += what_.operands[i].type + ' ' + names_[i].value + '[' + n(each) + "];\n";
      code += "for (int " + number + " = 0; " + number + " < " + n(each) + "; ++" + number + ") {\n" +
              names_[i].value + '[' + number + "] = " + names_[i].tile + '[' + inner_ + "][" +
              position(number, by_rows ? row : column, each) + "];\n}\n";
    }
    code += for_results(sums_ + '[' + r_ + "][" + c_ + "] += " + term_of_values() + ';');
    return code + "}\n__syncthreads();\n";
  }
  [[nodiscard]] std::string term_of_values() const {
    SyntaxNode term = what_.term;
    walk(term, [&](SyntaxNode& node) {
      for (std::size_t i = 0; i < what_.operands.size(); ++i)
        if (structurally_equal(node, what_.operands[i].value)) {
          node = make_subscript(make_name(names_[i].value), make_name(what_.operands[i].by_rows ? r_ : c_));
          return false;
        }
      return true;
    });
    return print(term);
  }
  /// What follows the sums, for each result of a thread.
  [[nodiscard]] std::string results() const {
    const ThreadSum& sum = what_.sum;
    std::string code =
        number_of(what_.rows, row_,
                  first_row_ + " + " +
                      position(r_, '(' + thread_ + " / " + n(ResultTile::edge) + ')', tile_.thread_rows));
    code +=
        number_of(what_.columns, column_,
                  first_column_ + " + " +
                      position(c_, '(' + thread_ + " % " + n(ResultTile::edge) + ')', tile_.thread_columns));
    std::vector<std::string> conditions{limit_of(what_.rows, row_), limit_of(what_.columns, column_)};
    for (const SyntaxNode& condition : what_.result_conditions) conditions.push_back(print(condition));
    code += "if (" + joined(conditions, " && ") + ") {\n";
    for (const AxisSource& source : what_.sources)
      if (source.axes.size() > 1 && is_used_behind(source.name))
        code += "const " + source.type + ' ' + source.name + " = " + print(source.value()) + ";\n";
    for (const auto* declarations : {&sum.before, &sum.dependent, &sum.prologue})
      for (const SyntaxNode* declaration : *declarations)
        if (is_result_value(*declaration)) code += print(*declaration) + '\n';
    code += sum.sum.type + ' ' + sum.sum.scalar->name + " = " +
            sum.whole(sums_ + '[' + r_ + "][" + c_ + ']') + ";\n";
    for (const SyntaxNode* statement : sum.epilogue) code += print(*statement) + '\n';
    return for_results(code + "}\n");
  }
  [[nodiscard]] std::string limit_of(const std::vector<ResultAxis>& axes, const std::string& number) const {
    return print(make_binary("<", make_name(number), what_.total(axes)));
  }
  /// Whether what follows the loops needs the variable, directly or through others.
  [[nodiscard]] bool is_used_behind(const std::string& name) const {
    const ThreadSum& sum = what_.sum;
    const auto uses = [&](const SyntaxNode* statement) { return uses_name(*statement, name); };
    if (std::any_of(sum.epilogue.begin(), sum.epilogue.end(), uses)) return true;
    if (!sum.first.empty() && uses_name(parse_expression(sum.first), name)) return true;
    for (const auto* declarations : {&sum.before, &sum.dependent, &sum.prologue})
      for (const SyntaxNode* declaration : *declarations) {
        if (!uses(declaration)) continue;
        for (const SyntaxNode& declarator : declarators(*declaration))
          if (declarator.text != name && !is_axis(declarator.text) && is_used_behind(declarator.text))
            return true;
      }
    return false;
  }
  /// Whether a declaration in front of the loops is written again for each result.
  [[nodiscard]] bool is_result_value(const SyntaxNode& declaration) const {
    bool used = false, in_front = false, axis = false;
    for (const SyntaxNode& declarator : declarators(declaration)) {
      used = used || is_used_behind(declarator.text);
      axis = axis || is_axis(declarator.text);
      in_front = in_front || (is_uniform(declarator.text) && is_before(declaration));
    }
    if (axis && declarators(declaration).size() > 1 && used)
      decline("line " + std::to_string(declaration.range.first_line) + " declares several numbers");
    return used && !axis && !in_front;
  }
  [[nodiscard]] bool is_before(const SyntaxNode& declaration) const {
    const auto& before = what_.sum.before;
    return std::find(before.begin(), before.end(), &declaration) != before.end();
  }
  [[nodiscard]] std::string for_results(const std::string& body) const {
    const auto head = [](const std::string& name, std::int64_t count) {
      return "for (int " + name + " = 0; " + name + " < " + n(count) + "; ++" + name + ") {\n";
    };
    return head(r_, tile_.thread_rows) + head(c_, tile_.thread_columns) + body + "\n}\n}\n";
  }
  /// Where a thread's results lie in the tile: groups of four next to each other, the groups of all threads
  /// next to each other.
  [[nodiscard]] static std::string position(const std::string& number, const std::string& thread,
                                            std::int64_t each) {
    constexpr std::int64_t group = 4;
    if (each == 1) return thread + " + " + number;
    if (each <= group) return thread + " * " + n(each) + " + " + number;
    return number + " / 4 * " + n(group * ResultTile::edge) + " + " + thread + " * 4 + " + number + " % 4";
  }

  /// Elements of a tile of an operand along rows or columns.
  [[nodiscard]] std::int64_t across_of(std::size_t operand) const {
    return what_.operands[operand].by_rows ? tile_.rows : tile_.columns;
  }
  /// Elements of a tile of an operand that each thread brings.
  [[nodiscard]] std::int64_t loads_of(std::size_t operand) const {
    return across_of(operand) * tile_.depth / ResultTile::threads;
  }
  /// The axes of an operand's side.
  [[nodiscard]] const std::vector<ResultAxis>& axes_of(std::size_t operand) const {
    return what_.operands[operand].by_rows ? what_.rows : what_.columns;
  }
  /// What must hold for bringing what belongs to that side.
  [[nodiscard]] const std::vector<SyntaxNode>& conditions_of(std::size_t operand) const {
    return what_.operands[operand].by_rows ? what_.row_conditions : what_.column_conditions;
  }
  /// Neighbours among an operand's elements that one access brings: 1 where that is not sure to be possible.
  [[nodiscard]] std::int64_t neighbours(std::size_t operand) const {
    const StagedOperand& one = what_.operands[operand];
    const auto& axes = axes_of(operand);
    if (one.loaded.kind != NodeKind::subscript || (!one.along_sum && axes.size() > 1)) return 1;
    const std::string& fast = fast_variable(operand);
    if (uses_name(subscript_base(one.loaded), fast) || step_of_index(subscript_index(one.loaded), fast) != 1)
      return 1;
    for (const SyntaxNode& condition : conditions_of(operand))
      if (uses_name(condition, fast)) return 1;
    return group_of(one.loaded_type, loads_of(operand), one.along_sum ? tile_.depth : across_of(operand));
  }
  /// How many of them each access brings.
  [[nodiscard]] std::int64_t group(std::size_t operand) const { return names_[operand].group; }
  /// The variable along which an operand's neighbours lie.
  [[nodiscard]] const std::string& fast_variable(std::size_t operand) const {
    const StagedOperand& one = what_.operands[operand];
    if (one.along_sum) return what_.loops[what_.tiled].variable;
    return axes_of(operand).back().name;
  }
  [[nodiscard]] std::string alignment_of(std::size_t operand) const {
    if (group(operand) == 1) return {};
    return "__align__(" + n(group(operand) * type_facts(what_.operands[operand].loaded_type).size) + ") ";
  }
  /// For each group of them, the first of which has the number `at` in the tile.
  [[nodiscard]] std::string for_loads(std::size_t operand, const std::string& body) const {
    const std::int64_t each = group(operand);
    std::string first = thread_ + " + " + n_ + " * " + n(ResultTile::threads);
    if (each > 1) first = '(' + first + ") * " + n(each);
    return "for (int " + n_ + " = 0; " + n_ + " < " + n(loads_of(operand) / each) + "; ++" + n_ +
           ") {\nconst int " + at_ + " = " + first + ";\n" + body + "}\n";
  }
  /// For each element of a group.
  [[nodiscard]] std::string for_group(std::size_t operand, const std::string& body) const {
    const std::string each = n(group(operand));
    if (each == "1") return body;
    return "for (int " + e_ + " = 0; " + e_ + " < " + each + "; ++" + e_ + ") {\n" + body + "}\n";
  }
  /// Where an element of a group that was brought waits for its place in the tile.
  [[nodiscard]] std::string next_of(std::size_t operand) const {
    const std::int64_t each = group(operand);
    return names_[operand].next + '[' + n_ + (each > 1 ? " * " + n(each) + " + " + e_ : "") + ']';
  }
  /// Where the first element of a group lies across the operand and along the sum: neighbours along memory.
  [[nodiscard]] std::pair<std::string, std::string> position_in_tile(std::size_t operand) const {
    const std::string depth = n(tile_.depth), across = n(across_of(operand));
    if (what_.operands[operand].along_sum) return {at_ + " / " + depth, at_ + " % " + depth};
    return {at_ + " % " + across, at_ + " / " + across};
  }
  [[nodiscard]] std::string place_in_tile(std::size_t operand) const {
    auto [across, along] = position_in_tile(operand);
    if (group(operand) > 1) (what_.operands[operand].along_sum ? along : across) += " + " + e_;
    return names_[operand].tile + '[' + along + "][" + across + ']';
  }
  /// The axes of an operand's side, where there are several: their numbers do not change from tile to tile,
  /// and divisions are dear.
  [[nodiscard]] std::string fixed_numbers(std::size_t operand) const {
    const auto& axes = axes_of(operand);
    if (axes.size() == 1) return {};
    std::string arrays, numbers;
    for (const ResultAxis& axis : axes)
      arrays += (arrays.empty() ? "int " : ", ") + fixed(operand, axis) + '[' + n(loads_of(operand)) + ']';
    numbers = "const int " + number_name(operand) + " = " + number_in_tile(operand) + ";\n";
    numbers += digits_of(axes, number_name(operand), [&](const ResultAxis& axis, const std::string& value) {
      return fixed(operand, axis) + '[' + n_ + "] = " + value + ";\n";
    });
    return arrays + ";\n" + for_loads(operand, numbers);
  }
  [[nodiscard]] std::string fixed(std::size_t operand, const ResultAxis& axis) const {
    return axis.name + "_of_" + names_[operand].next;
  }
  [[nodiscard]] const std::string& number_name(std::size_t operand) const {
    return what_.operands[operand].by_rows ? row_ : column_;
  }
  [[nodiscard]] std::string number_in_tile(std::size_t operand) const {
    return (what_.operands[operand].by_rows ? first_row_ : first_column_) + " + " +
           position_in_tile(operand).first;
  }
  /// Brings a tile's elements into registers, zeros beyond its end; `first` is where the tile begins along
  /// the sum.
  [[nodiscard]] std::string load(std::size_t operand, const std::string& first) const {
    const auto& axes = axes_of(operand);
    const CountingLoop& head = what_.loops[what_.tiled];
    std::string code;
    if (axes.size() == 1) {
      code +=
          "const " + axes.front().type + ' ' + axes.front().name + " = " + number_in_tile(operand) + ";\n";
    } else {
      code += "const int " + number_name(operand) + " = " + number_in_tile(operand) + ";\n";
      for (const ResultAxis& axis : axes)
        code += "const " + axis.type + ' ' + axis.name + " = " + fixed(operand, axis) + '[' + n_ + "];\n";
    }
    code +=
        "const " + head.type + ' ' + head.variable + " = " + first + position_in_tile(operand).second + ";\n";
    return for_loads(operand, code + (group(operand) > 1 ? load_group(operand) : load_element(operand, "")));
  }
  /// Loads a whole group where its first element is aligned, else its elements one by one.
  [[nodiscard]] std::string load_group(std::size_t operand) const {
    const StagedOperand& one = what_.operands[operand];
    const std::int64_t each = group(operand);
    const std::int64_t bytes = each * type_facts(one.loaded_type).size;
    const VectorType vector{vector_type_name(one.loaded_type, bytes), each, bytes};
    const std::string place = print(one.loaded);
    return "if (" + joined(load_conditions(operand, n(each - 1)), " && ") + " && " +
           vector.is_aligned('&' + place) + ") {\n" +
           vector.store(names_[operand].next + '[' + n_ + " * " + n(each) + ']') + " = " +
           vector.load(place) + ";\n} else {\n" + for_group(operand, load_element(operand, e_)) + "}\n";
  }
  /// Loads the element that lies so far behind the first one of its group; 0 beyond the operand's end.
  [[nodiscard]] std::string load_element(std::size_t operand, const std::string& behind) const {
    const StagedOperand& one = what_.operands[operand];
    SyntaxNode loaded = one.loaded;
    if (!behind.empty())
      substitute(loaded, fast_variable(operand),
                 make_binary("+", make_name(fast_variable(operand)), make_name(behind)));
    return next_of(operand) + " = " + joined(load_conditions(operand, behind), " && ") + " ? " +
           print(loaded) + " : (" + one.loaded_type + ")0.0f;\n";
  }
  /// What must hold so that the element so far behind the first one of its group exists.
  [[nodiscard]] std::vector<std::string> load_conditions(std::size_t operand,
                                                         const std::string& behind) const {
    const StagedOperand& one = what_.operands[operand];
    const auto& axes = axes_of(operand);
    const std::string last = behind.empty() ? "" : " + " + behind;
    const std::string& variable = what_.loops[what_.tiled].variable;
    std::vector<std::string> conditions{limit_of(axes, number_name(operand) + (one.along_sum ? "" : last)),
                                        variable + (one.along_sum ? last : "") + " < " +
                                            bound_of(what_.tiled)};
    for (const SyntaxNode& condition : conditions_of(operand)) conditions.push_back(print(condition));
    return conditions;
  }

  /// What belongs to an operand: names, and how it is brought.
  struct Names {
    std::string array{};
    std::string tile{};     ///< of the array in shared memory
    std::string value{};    ///< of a thread's values
    std::string next{};     ///< of what a thread brings for the next tile
    std::int64_t group = 1; ///< neighbours that one access brings
  };

  const TransformRequest& request_;
  Contraction what_;
  ResultTile tile_{};
  std::vector<ResultAxis> kept_{};   ///< layers that stay a number of a block
  std::vector<ResultAxis> folded_{}; ///< layers that are counted together with tiles of columns
  std::vector<Names> names_{};
  std::string row_, column_, layer_, thread_, at_, first_row_, first_column_, sums_, tile_of_sum_,
      tiles_of_sum_, inner_, step_, r_, c_, n_, e_;
};

} // namespace mtmc::detail
