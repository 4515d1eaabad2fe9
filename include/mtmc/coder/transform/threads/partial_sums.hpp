#pragma once
/// Sums of a contraction in parts: each thread adds up a part of its sum, blocks behind each other have the
/// parts of the same results, and a second launch adds the parts in order and does what follows the sum.
/// The first launch is of the form that it had, so that tiles of its results may follow.

#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/block_numbers.hpp>
#include <mtmc/coder/transform/threads/contraction.hpp>
#include <mtmc/coder/transform/threads/covering_guard.hpp>
#include <mtmc/coder/transform/threads/earlier_launch.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/launch_words.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/threads/result_parts.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/coder/transform/unrolling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Splits the sums of a contraction.
class PartialSums {
public:
  /// Throws `TransformDeclined` with the reason where the function adds up in another way.
  explicit PartialSums(const TransformRequest& request)
      : request_(request), what_(request), head_(what_.loops[what_.tiled]) {
    if (!what_.is_about_nest()) decline("it is " + loop_name(*what_.sum.loop) + " that adds up");
    if (names_used(head_.first).empty() && literal_value(head_.first) != 0)
      decline(loop_name(what_.tiled_loop()) + " does not count from 0");
    require_covering(request, what_.sum.launch);
    if (what_.sum.launch.function_at.size() != 1)
      decline("the function " + what_.sum.function->name + " stands in another scope");
    if (scratch_type(what_.sum.sum.type).empty())
      decline("threads cannot combine values of the type " + what_.sum.sum.type);
    for (const AxisSource& source : what_.sources)
      if (!source.limit) decline("it is not known how many results lie along " + source.name);
    require_room_for_parts();
    if (const auto results = threads_at_main_size(request, what_.sum.launch);
        results && *results <= few_results)
      decline("a tile of so few results is nearly empty");
  }

  /// Ways to split, the one expected to be best first. Throws `TransformDeclined` where there is none.
  [[nodiscard]] std::vector<ResultParts> all() const {
    if (!names_used(head_.first).empty())
      decline(loop_name(what_.tiled_loop()) + " goes through a part of a sum already");
    const auto along = [&](const std::string& text) {
      const auto value = value_at_main_size(request_, text);
      if (!value) decline("it is not known how many tiles the results of " + entry() + " have");
      return *value;
    };
    SumExtents sums{along(what_.total_in_launch(what_.rows)), along(what_.total_in_launch(what_.columns)),
                    along(what_.total_in_launch(what_.layers)), along(what_.in_launch(head_.bound))};
    for (std::size_t i = 0; i < what_.loops.size(); ++i)
      if (i != what_.tiled)
        sums.around *= value_at_main_size(request_, what_.in_launch(what_.loops[i].bound)).value_or(1);
    auto ways = result_parts(sums, request_.device);
    if (ways.empty()) decline("tiles of the results fill the device, or nearly so, with whole sums");
    return ways;
  }

  /// The tree with the sums split in that way.
  [[nodiscard]] SyntaxNode write(const ResultParts& split) {
    SyntaxNode tree = request_.tree;
    name_things(tree);
    ThreadLaunch launch = what_.sum.launch;
    SyntaxNode first = function_in_parts(tree);
    make_rest(tree);
    const std::string parts = parts_in_launch(split), type = what_.sum.sum.type;
    LaunchLine line = launch.line;
    line.entry = first.text;
    line.arguments = keep_used_parameters(first, launch.line);
    for (const std::string& argument : {scratch_, parts}) line.arguments.push_back(argument);
    add_parameter(first, type + "*", scratch_);
    add_parameter(first, "int", parts_);
    line.grid.resize(3, "1");
    line.grid[2] = line.grid[2] == "1" ? parts : as_factor(line.grid[2]) + " * " + as_factor(parts);

    SyntaxNode& rest = launch.function_in(tree);
    launch.line.arguments = keep_used_parameters(rest, launch.line);
    add_parameter(rest, "const " + type + "*", scratch_);
    add_parameter(rest, "int", parts_);
    for (const std::string& argument : {scratch_, parts}) launch.line.arguments.push_back(argument);
    tree.children[launch.line_at].text = launch_line_text(launch.line);
    add_earlier_launch(tree, launch, std::move(first), {scratch_line(parts), launch_line_text(line)});
    return tree;
  }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }
  [[nodiscard]] const std::string& entry() const { return what_.sum.launch.line.entry; }

  /// The parts lie along z, where blocks are numbered there alone, or nothing is.
  void require_room_for_parts() {
    const LaunchLine& line = what_.sum.launch.line;
    bool room = line.block.size() < 3 || line.block[2] == "1";
    for (const AxisSource& source : what_.sources)
      if (source.axis == 2) layer_ = &source;
    if (layer_ != nullptr) room = room && layer_->is_block;
    if (layer_ == nullptr) {
      room = room && (line.grid.size() < 3 || line.grid[2] == "1");
      walk(*what_.sum.function->node,
           [&](const SyntaxNode& node) { room = room && !is_block_number(node, 2); });
    }
    if (!room) decline("the grid of " + entry() + " has no axis left");
  }
  void name_things(const SyntaxNode& tree) {
    part_ = fresh_name(tree, "part");
    parts_ = fresh_name(tree, "parts");
    numbers_ = fresh_name(tree, "layer");
    const auto around_loop = [&](std::string_view name) {
      return fresh_name(tree, head_.variable + '_' + std::string(name));
    };
    each_ = around_loop("each"), first_ = around_loop("first"), end_ = around_loop("end");
    scratch_ = fresh_name(tree, what_.sum.sum.scalar->name + "_parts");
    while (request_.task.find_argument(scratch_) != nullptr)
      scratch_ = fresh_name(tree, scratch_ + "_of_blocks");
  }

  /// How many parts there are at any size: as many as give the device the tiles that it has at the main size.
  [[nodiscard]] std::string parts_in_launch(const ResultParts& split) const {
    const auto tiles = [&](const std::vector<ResultAxis>& axes, std::int64_t each) {
      return "ceil_div(" + what_.total_in_launch(axes) + ", " + std::to_string(each) + ')';
    };
    std::string all = tiles(what_.columns, split.tile.columns) + " * " + tiles(what_.rows, split.tile.rows);
    if (!what_.layers.empty()) all += " * " + as_factor(what_.total_in_launch(what_.layers));
    const auto now = value_at_main_size(request_, all);
    if (!now || *now * split.parts > largest_extent) decline("the grid of " + entry() + " becomes too large");
    return "ceil_div(" + std::to_string(*now * split.parts) + ", " + all + ')';
  }
  /// The element for this part of this result: its place among all results, part by part.
  [[nodiscard]] std::string place() const {
    SyntaxNode number = make_name(part_);
    for (const AxisSource& source : what_.sources)
      number = make_binary("+", make_binary("*", number, *source.limit), make_name(source.name));
    return scratch_ + '[' + print(number) + ']';
  }
  [[nodiscard]] std::string scratch_line(const std::string& parts) const {
    std::string extents = parts;
    for (const AxisSource& source : what_.sources) extents += ", " + what_.in_launch(*source.limit);
    return "//@ scratch " + scratch_ + ": " + scratch_type(what_.sum.sum.type) + '[' + extents + ']';
  }

  /// The function as it is, for a part of each sum.
  [[nodiscard]] SyntaxNode function_in_parts(const SyntaxNode& original) const {
    SyntaxNode tree = original;
    SyntaxNode& loop = *node_at(tree, place_of(what_.tiled_loop()));
    CountingLoop head = head_;
    head.first = make_name(first_);
    head.bound = make_name(end_);
    std::string trivia = loop.leading_trivia;
    loop = head.with_body(body_of(loop));
    loop.leading_trivia = std::move(trivia);
    end_sum_with(tree, parse_statements(place() + " = " + what_.sum.sum.scalar->name + ";\n"));
    SyntaxNode& function = what_.sum.launch.function_in(tree);
    for (SyntaxNode* declarator : declarators_of(function, what_.sum.sum.scalar->name))
      *initial_value(*declarator) = make_literal(identity_of_reduction(what_.sum.sum));
    std::vector<SyntaxNode>& body = function_body(function).children;
    const auto at = body.begin() + static_cast<std::ptrdiff_t>(place_of(*what_.sum.loop).at(depth_of_body));
    const auto numbers = parse_statements(part_numbers());
    body.insert(at, numbers.begin(), numbers.end());
    if (layer_ != nullptr) take_layer_apart(function);
    remove_unused_declarations(function);
    function.text = fresh_name(tree, function.text + "_in_parts");
    function.leading_trivia = "\n// A part of each sum of " + entry() + ", which adds them up.\n";
    return std::move(function);
  }
  /// Which part it is, and which iterations are its own.
  [[nodiscard]] std::string part_numbers() const {
    const std::string bound = print(head_.bound), unit = std::to_string(ResultParts::unit);
    const std::string units = '(' + parts_ + " * " + unit + ')', type = "const " + head_.type + ' ';
    std::string code;
    if (layer_ == nullptr) code += "const int " + part_ + " = blockIdx.z;\n";
    code += type + each_ + " = (" + bound + " + " + units + " - 1) / " + units + " * " + unit + ";\n";
    code += type + first_ + " = " + part_ + " * " + each_ + ";\n";
    code += type + end_ + " = " + first_ + " + " + each_ + " < " + bound + " ? " + first_ + " + " + each_ +
            " : " + bound + ";\n";
    return code;
  }
  /// The number of a block along z becomes one of those numbers and a part.
  void take_layer_apart(SyntaxNode& function) const {
    std::vector<SyntaxNode>& body = function_body(function).children;
    const auto at = std::find_if(body.begin(), body.end(), [&](const SyntaxNode& statement) {
      return declares_block_number(statement, 2);
    });
    *initial_value(at->children.front()) = make_binary("/", make_name(numbers_), make_name(parts_));
    const auto numbers = parse_statements("const int " + numbers_ + " = blockIdx.z;\nconst int " + part_ +
                                          " = " + numbers_ + " % " + parts_ + ";\n");
    body.insert(at, numbers.begin(), numbers.end());
  }

  /// The function, which adds up parts in the place of its sum.
  void make_rest(SyntaxNode& tree) const {
    const auto parts =
        parse_statements("#pragma unroll 8\nfor (int " + part_ + " = 0; " + part_ + " < " + parts_ + "; ++" +
                         part_ + ") {\n" + what_.sum.sum.scalar->name + " += " + place() + ";\n}\n");
    std::vector<std::size_t> around = place_of(*what_.sum.loop);
    const auto place = static_cast<std::ptrdiff_t>(around.back());
    around.pop_back();
    std::vector<SyntaxNode>& body = node_at(tree, around)->children;
    body.insert(body.erase(body.begin() + place), parts.begin(), parts.end());
    SyntaxNode& function = what_.sum.launch.function_in(tree);
    function.type = without_launch_bounds(function.type);
    remove_unused_declarations(function);
  }

  /// Other statements behind the outermost loop.
  void end_sum_with(SyntaxNode& tree, std::vector<SyntaxNode> statements) const {
    std::vector<std::size_t> around = place_of(*what_.sum.loop);
    const std::size_t at = around.back() + 1;
    around.pop_back();
    std::vector<SyntaxNode>& body = node_at(tree, around)->children;
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(at), body.end());
    for (SyntaxNode& statement : statements) body.push_back(std::move(statement));
  }
  /// The child indices that lead to a loop. The body of a function is one of its children.
  [[nodiscard]] std::vector<std::size_t> place_of(const LoopInfo& loop) const {
    return locate(request_.tree, loop.path).front().indices;
  }
  [[nodiscard]] static std::vector<SyntaxNode*> declarators_of(SyntaxNode& function,
                                                               const std::string& name) {
    std::vector<SyntaxNode*> found;
    walk(function, [&](SyntaxNode& node) {
      if (node.kind == NodeKind::declarator && node.text == name) found.push_back(&node);
    });
    return found;
  }
  static void remove_unused_declarations(SyntaxNode& function) {
    const auto is_unused = [&](const SyntaxNode& statement) {
      return statement.kind == NodeKind::declaration &&
             std::none_of(statement.children.begin(), statement.children.end(), [&](const SyntaxNode& one) {
               return uses_name(function_body(function), one.text);
             });
    };
    bool any = true;
    while (any) {
      any = false;
      walk(function, [&](SyntaxNode& node) {
        if (node.kind != NodeKind::block) return;
        const auto at = std::find_if(node.children.begin(), node.children.end(), is_unused);
        if (at == node.children.end()) return;
        node.children.erase(at);
        any = true;
      });
    }
  }

  static constexpr std::size_t depth_of_body = 2; ///< function, body, statement
  // Threads that share such sums in shared memory take 0.6 of the time of the smallest tile.
  static constexpr std::int64_t few_results = 256;
  static constexpr std::int64_t largest_extent = 65535;

  const TransformRequest& request_;
  Contraction what_;
  CountingLoop head_;                 ///< of the loop that is split
  const AxisSource* layer_ = nullptr; ///< numbers of blocks along z, which the parts share
  std::string part_, parts_, numbers_, each_, first_, end_, scratch_;
};

} // namespace mtmc::detail
