#pragma once
/// Tiles of a GPU's launch whose threads each add up one result: a block makes a tile of results, several for
/// each thread, from tiles of the operands in shared memory.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_cost.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/thread_launch.hpp>
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

/// Extents of a tile of results, and how far a step goes along the sum.
struct ResultTile {
  std::int64_t rows = 128;
  std::int64_t columns = 128;
  std::int64_t depth = 16;
  std::int64_t thread_rows = 8;    ///< results of a thread along the rows
  std::int64_t thread_columns = 8; ///< and along the columns

  static constexpr std::int64_t edge = 16; ///< threads of a block along each axis
  static constexpr std::int64_t threads = edge * edge;
};

/// Tiles for results of these extents, the one expected to be best first: the largest that leaves a block for
/// each multiprocessor, then smaller ones.
[[nodiscard]] inline std::vector<ResultTile> result_tiles(std::optional<std::int64_t> rows,
                                                          std::optional<std::int64_t> columns,
                                                          std::int64_t layers, const Device& device) {
  const std::vector<ResultTile> all{
      {128, 128, 16, 8, 8}, {128, 64, 16, 8, 4}, {64, 64, 16, 4, 4}, {32, 32, 32, 2, 2}};
  std::size_t first = 0;
  const auto blocks = [&](const ResultTile& tile) {
    const auto along = [](std::optional<std::int64_t> extent, std::int64_t each) {
      return extent ? (*extent + each - 1) / each : 1024;
    };
    return along(rows, tile.rows) * along(columns, tile.columns) * layers;
  };
  while (first + 1 < all.size() && blocks(all[first]) < std::max(device.compute_units, 1)) ++first;
  std::vector<ResultTile> tiles{all[first]};
  for (std::size_t distance = 1; distance < all.size(); ++distance) {
    if (first + distance < all.size()) tiles.push_back(all[first + distance]);
    if (distance <= first) tiles.push_back(all[first - distance]);
  }
  return tiles;
}

/// An operand of the sum: an access that moves with the loop and with one of the two axes.
struct TiledOperand {
  SyntaxNode access{};
  std::string type{};     ///< of an element
  bool by_rows = false;   ///< moves with the rows, not with the columns
  bool along_sum = false; ///< neighbouring elements lie along the sum
  std::string tile{};     ///< name of the array in shared memory
  std::string value{};    ///< name of a thread's values
};

/// Finds the parts of a function that adds up one result for each thread of a two-dimensional launch, and
/// writes it anew.
class ResultTiler {
public:
  explicit ResultTiler(const TransformRequest& request)
      : request_(request), launch_(thread_launch(request)), function_(*launch_.function) {
    read_indices();
    read_guard();
    read_sum();
    read_operands();
  }

  [[nodiscard]] SyntaxNode write() {
    const auto extent_of = [&](std::size_t axis) -> std::optional<std::int64_t> {
      const ProblemSize* const size = request_.task.main_size();
      if (size == nullptr || axis >= launch_.line.grid.size()) return std::nullopt;
      try {
        return evaluate_expression(launch_.threads(axis), size->symbols);
      } catch (const Error&) {
        return std::nullopt;
      }
    };
    const std::int64_t layers = launch_.line.grid.size() > 2 ? extent_of(2).value_or(1) : 1;
    const auto tiles = result_tiles(extent_of(1), extent_of(0), layers, request_.device);
    const ResultTile tile = choose_variant(tiles, request_.variant);
    SyntaxNode tree = request_.tree;
    name_things(tree);
    launch_.body_in(tree).children = parse_statements(text_of(tile));
    std::vector<std::string> grid{launch_.threads_divided_by(tile.columns, 0),
                                  launch_.threads_divided_by(tile.rows, 1)};
    if (launch_.line.grid.size() > 2) grid.push_back(launch_.line.grid[2]);
    launch_.set_grid(tree, std::move(grid), std::to_string(ResultTile::threads));
    return tree;
  }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }

  void read_indices() {
    const LaunchLine& line = launch_.line;
    if (line.block.size() != 2 && !(line.block.size() == 3 && line.block[2] == "1"))
      decline("the blocks of " + line.entry + " have not two axes");
    if (!function_.opaque.empty())
      decline("line " + std::to_string(function_.opaque.front().line) + " contains " +
              function_.opaque.front().reason);
    if (!function_.barriers.empty()) decline("the threads wait for each other already");
    for (const ThreadIndex& index : thread_indices(launch_)) {
      if (index.axis == 0) column_ = index;
      if (index.axis == 1) row_ = index;
    }
    if (column_.name.empty() || row_.name.empty())
      decline("no variables number the threads of " + line.entry + " along both axes");
    for (const Array& array : function_.arrays)
      if (array.unknown || array.place != ArrayPlace::common)
        decline("the function has memory of its own, " + array.name);
  }

  /// All statements but the last are declarations; the last one is a branch around the work.
  void read_guard() {
    const auto body = statements(function_body(*function_.node));
    for (std::size_t i = 0; i + 1 < body.size(); ++i) {
      if (body[i].kind != NodeKind::declaration)
        decline("what the threads of " + launch_.line.entry + " do is not one branch");
      if (i != column_.statement && i != row_.statement) before_.push_back(&body[i]);
    }
    const SyntaxNode& branch = body.back();
    if (branch.kind != NodeKind::if_statement || else_branch(branch) != nullptr)
      decline("what the threads of " + launch_.line.entry + " do is not one branch");
    take_conditions(if_condition(branch));
    work_ = statements(then_branch(branch));
    for (const SyntaxNode* declaration : before_)
      for (const SyntaxNode& declarator : declarators(*declaration))
        if (uses_name(*declaration, row_.name) || uses_name(*declaration, column_.name))
          decline(declarator.text + " depends on the number of a thread");
        else
          uniform_.insert(declarator.text);
    for (const SyntaxNode& parameter : parameters(*function_.node)) uniform_.insert(parameter.text);
  }
  void take_conditions(const SyntaxNode& condition) {
    if (condition.kind == NodeKind::binary && condition.text == "&&") {
      take_conditions(left_operand(condition));
      take_conditions(right_operand(condition));
      return;
    }
    const bool rows = uses_name(condition, row_.name), columns = uses_name(condition, column_.name);
    if (rows && columns) decline("a condition of the branch is about rows and columns together");
    (rows ? row_conditions_ : columns ? column_conditions_ : other_conditions_).push_back(print(condition));
  }

  /// The loop of the action, the variable that it adds up in, and what stands around it.
  void read_sum() {
    const auto located = locate(request_.tree, request_.action.region);
    if (located.size() != 1) decline("\"" + request_.action.region + "\" names no loop");
    loop_ = request_.analysis.find_loop(*located.front().node);
    if (loop_ == nullptr) decline("\"" + request_.action.region + "\" names no loop");
    std::size_t at = 0;
    while (at < work_.size() && &work_[at] != loop_->node) ++at;
    if (at == work_.size()) decline(loop_name(*loop_) + " does not stand in the branch itself");
    head_ = head_of(*loop_);
    if (literal_value(head_.first) != 0 || head_.step != 1)
      decline(loop_name(*loop_) + " does not count from 0 by one");
    for (const std::string& name : names_used(head_.bound))
      if (!uniform_.contains(name)) decline("the bound of " + loop_name(*loop_) + " is not the same for all");
    const Legality legality = loop_is_reduction(*loop_);
    if (!legality) decline(legality.reason);
    const auto reductions = reductions_of(*loop_);
    if (reductions.size() != 1 || reductions.front().scalar == nullptr ||
        reductions.front().operation != ReductionOperation::sum)
      decline(loop_name(*loop_) + " does not add up in one variable");
    sum_ = reductions.front();
    const auto body = statements(loop_body(*loop_->node));
    if (body.size() != 1 || body.front().kind != NodeKind::expression_statement)
      decline("the body of " + loop_name(*loop_) + " is not one sum");
    const SyntaxNode& added = operand(body.front());
    if (added.kind != NodeKind::assignment || added.text != "+=" ||
        !is_name(left_operand(added), sum_.scalar->name))
      decline("the body of " + loop_name(*loop_) + " is not one sum");
    term_ = right_operand(added);
    for (std::size_t i = 0; i < at; ++i) {
      if (work_[i].kind != NodeKind::declaration) decline("something happens before " + loop_name(*loop_));
      for (const SyntaxNode& declarator : declarators(work_[i])) {
        const SyntaxNode* const value = initial_value(declarator);
        if (declarator.text == sum_.scalar->name) {
          if (value == nullptr || value->kind != NodeKind::literal)
            decline(declarator.text + " does not start with a number");
          start_ = print(*value);
        }
      }
      if (declarators(work_[i]).size() != 1 || declarators(work_[i]).front().text != sum_.scalar->name)
        prologue_.push_back(&work_[i]);
    }
    if (start_.empty()) decline(sum_.scalar->name + " is not declared before " + loop_name(*loop_));
    for (std::size_t i = at + 1; i < work_.size(); ++i) {
      bool loops = false;
      walk(work_[i], [&](const SyntaxNode& node) {
        loops = loops || is_loop(node.kind) || node.kind == NodeKind::return_statement;
      });
      if (loops) decline("more than a result follows " + loop_name(*loop_));
      epilogue_.push_back(&work_[i]);
    }
  }

  void read_operands() {
    std::set<const Array*> written;
    for (const Access& access : function_.accesses)
      if (access.write) written.insert(access.array);
    const ProblemSize* const size = request_.task.main_size();
    const Symbols symbols = size == nullptr ? Symbols{} : size->symbols;
    for (const Access& access : function_.accesses) {
      if (access.loop != loop_) {
        if (access.loop != nullptr || (!access.write && written.contains(access.array)))
          decline(access.array->name + " is read and written");
        continue;
      }
      if (access.write || written.contains(access.array))
        decline(access.array->name + " is read and written");
      add_operand(access, symbols);
    }
    const bool rows =
        std::any_of(operands_.begin(), operands_.end(), [](const auto& one) { return one.by_rows; });
    const bool columns =
        std::any_of(operands_.begin(), operands_.end(), [](const auto& one) { return !one.by_rows; });
    if (!rows || !columns)
      decline("the threads of a block share no operand along " + std::string(rows ? "columns" : "rows"));
    if (operands_.size() > 3) decline("there are more than three operands");
    if (!is_product(term_)) decline("what " + loop_name(*loop_) + " adds up is no product");
  }
  void add_operand(const Access& access, const Symbols& symbols) {
    const bool known = std::any_of(operands_.begin(), operands_.end(), [&](const TiledOperand& other) {
      return structurally_equal(other.access, *access.node);
    });
    if (known) return;
    if (access.node->kind != NodeKind::subscript || access.indirect || access.conditional)
      decline("the elements of " + access.array->name + " are chosen by values");
    TiledOperand one;
    one.access = *access.node;
    bool rows = false, columns = false;
    for (const std::string& name : names_used(subscript_index(*access.node))) {
      if (name == row_.name)
        rows = true;
      else if (name == column_.name)
        columns = true;
      else if (name != loop_->variable && !uniform_.contains(name))
        decline("the subscript of " + access.array->name + " uses " + name);
    }
    if (subscript_base(*access.node).kind != NodeKind::name)
      decline("the elements of " + access.array->name + " have several subscripts");
    if (rows == columns)
      decline(access.array->name + (rows ? " moves with rows and columns" : " moves with the sum alone"));
    one.by_rows = rows;
    one.type = pointed_type(access.array->variable->type);
    one.along_sum = stride_of(access, *loop_, symbols) == 1;
    operands_.push_back(std::move(one));
  }
  /// A product of operands, or of conversions of them: zero where they are.
  [[nodiscard]] bool is_product(const SyntaxNode& term) const {
    if (term.kind == NodeKind::binary && term.text == "*")
      return is_product(left_operand(term)) && is_product(right_operand(term));
    if (term.kind == NodeKind::cast) return is_product(operand(term));
    if (term.kind == NodeKind::call && term.children.size() == 2 &&
        (is_call_of(term, "__half2float") || is_call_of(term, "__bfloat162float")))
      return is_product(term.children[1]);
    return std::any_of(operands_.begin(), operands_.end(),
                       [&](const TiledOperand& one) { return structurally_equal(one.access, term); });
  }

  void name_things(const SyntaxNode& tree) {
    thread_ = fresh_name(tree, "thread_index");
    at_ = fresh_name(tree, "at");
    first_row_ = fresh_name(tree, "first_" + row_.name);
    first_column_ = fresh_name(tree, "first_" + column_.name);
    sums_ = fresh_name(tree, sum_.scalar->name + "s");
    tile_of_sum_ = fresh_name(tree, head_.variable + "_tile");
    inner_ = fresh_name(tree, head_.variable + "_inner");
    r_ = fresh_name(tree, "r");
    c_ = fresh_name(tree, "c");
    int number = 0;
    for (TiledOperand& one : operands_) {
      const std::string name = subscript_base(one.access).text;
      const std::string suffix =
          number++ > 0 && name == subscript_base(operands_.front().access).text ? "_2" : "";
      one.tile = fresh_name(tree, name + "_tile" + suffix);
      one.value = fresh_name(tree, name + "_values" + suffix);
    }
  }

  [[nodiscard]] static std::string both(const std::vector<std::string>& conditions) {
    return joined(conditions, " && ");
  }
  /// Where a thread's results lie in the tile: groups of four next to each other, the groups of all threads
  /// next to each other.
  [[nodiscard]] static std::string position(const std::string& number, const std::string& thread,
                                            std::int64_t each) {
    constexpr std::int64_t group = 4;
    const std::int64_t together = std::min(group, each);
    const std::string within = thread + " * " + std::to_string(together) + " + " + number;
    if (each <= group) return within;
    return number + " / 4 * " + std::to_string(group * ResultTile::edge) + " + " + thread + " * 4 + " +
           number + " % 4";
  }

  [[nodiscard]] std::string text_of(const ResultTile& tile) const {
    const auto n = [](std::int64_t value) { return std::to_string(value); };
    const std::string k = head_.variable, bound = print(head_.bound);
    const std::string row = thread_ + " / " + n(ResultTile::edge),
                      column = thread_ + " % " + n(ResultTile::edge);
    std::string code;
    for (const TiledOperand& one : operands_) {
      const std::int64_t extent = one.by_rows ? tile.rows : tile.columns;
      code += "__shared__ __align__(16) " + one.type + ' ' + one.tile + '[' + n(tile.depth) + "][" +
              n(extent + (one.along_sum ? 4 : 0)) + "];\n";
    }
    code += "const int " + thread_ + " = threadIdx.x;\n";
    code += "const int " + first_row_ + " = blockIdx.y * " + n(tile.rows) + ";\n";
    code += "const int " + first_column_ + " = blockIdx.x * " + n(tile.columns) + ";\n";
    for (const SyntaxNode* declaration : before_) code += print(*declaration) + '\n';
    const std::string type = sum_.type;
    code += type + ' ' + sums_ + '[' + n(tile.thread_rows) + "][" + n(tile.thread_columns) + "];\n";
    code += for_results(tile, sums_ + '[' + r_ + "][" + c_ + "] = " + start_ + ';');
    code += "for (" + head_.type + ' ' + tile_of_sum_ + " = 0; " + tile_of_sum_ + " < " + bound + "; " +
            tile_of_sum_ + " += " + n(tile.depth) + ") {\n";
    for (const TiledOperand& one : operands_) code += load(tile, one);
    code += "__syncthreads();\n";
    code += "for (int " + inner_ + " = 0; " + inner_ + " < " + n(tile.depth) + "; ++" + inner_ + ") {\n";
    for (const TiledOperand& one : operands_) {
      const std::int64_t each = one.by_rows ? tile.thread_rows : tile.thread_columns;
      const std::string& number = one.by_rows ? r_ : c_;
      code += one.type + ' ' + one.value + '[' + n(each) + "];\n";
      code += "for (int " + number + " = 0; " + number + " < " + n(each) + "; ++" + number + ") {\n" +
              one.value + '[' + number + "] = " + one.tile + '[' + inner_ + "][" +
              position(number, one.by_rows ? '(' + row + ')' : '(' + column + ')', each) + "];\n}\n";
    }
    code += for_results(tile, sums_ + '[' + r_ + "][" + c_ + "] += " + term_of_values() + ';');
    code += "}\n__syncthreads();\n}\n";
    std::string result;
    result += "const int " + row_.name + " = " + first_row_ + " + " +
              position(r_, '(' + row + ')', tile.thread_rows) + ";\n";
    result += "const int " + column_.name + " = " + first_column_ + " + " +
              position(c_, '(' + column + ')', tile.thread_columns) + ";\n";
    auto conditions = row_conditions_;
    conditions.insert(conditions.end(), column_conditions_.begin(), column_conditions_.end());
    conditions.insert(conditions.end(), other_conditions_.begin(), other_conditions_.end());
    result += "if (" + both(conditions) + ") {\n";
    for (const SyntaxNode* declaration : prologue_) result += print(*declaration) + '\n';
    result += type + ' ' + sum_.scalar->name + " = " + sums_ + '[' + r_ + "][" + c_ + "];\n";
    for (const SyntaxNode* statement : epilogue_) result += print(*statement) + '\n';
    result += "}\n";
    code += for_results(tile, result);
    return code;
  }
  [[nodiscard]] std::string for_results(const ResultTile& tile, const std::string& body) const {
    const auto head = [](const std::string& name, std::int64_t count) {
      return "for (int " + name + " = 0; " + name + " < " + std::to_string(count) + "; ++" + name + ") {\n";
    };
    return head(r_, tile.thread_rows) + head(c_, tile.thread_columns) + body + "\n}\n}\n";
  }
  /// The threads of the block bring a tile of an operand, neighbours along memory; zeros beyond its end.
  [[nodiscard]] std::string load(const ResultTile& tile, const TiledOperand& one) const {
    const std::int64_t extent = one.by_rows ? tile.rows : tile.columns;
    const std::string depth = std::to_string(tile.depth), across = std::to_string(extent);
    const std::string place = one.along_sum ? at_ + " / " + depth : at_ + " % " + across;
    const std::string inner = one.along_sum ? at_ + " % " + depth : at_ + " / " + across;
    const ThreadIndex& index = one.by_rows ? row_ : column_;
    auto conditions = one.by_rows ? row_conditions_ : column_conditions_;
    conditions.insert(conditions.end(), other_conditions_.begin(), other_conditions_.end());
    conditions.push_back(head_.variable + " < " + print(head_.bound));
    std::string code = "for (int " + at_ + " = " + thread_ + "; " + at_ + " < " +
                       std::to_string(extent * tile.depth) + "; " + at_ +
                       " += " + std::to_string(ResultTile::threads) + ") {\n";
    code += "const int " + index.name + " = " + (one.by_rows ? first_row_ : first_column_) + " + " + place +
            ";\n";
    code += "const " + head_.type + ' ' + head_.variable + " = " + tile_of_sum_ + " + " + inner + ";\n";
    code += one.tile + '[' + inner + "][" + place + "] = " + both(conditions) + " ? " + print(one.access) +
            " : (" + one.type + ")0.0f;\n}\n";
    return code;
  }
  [[nodiscard]] std::string term_of_values() const {
    SyntaxNode term = term_;
    walk(term, [&](SyntaxNode& node) {
      for (const TiledOperand& one : operands_)
        if (structurally_equal(node, one.access)) {
          node = make_subscript(make_name(one.value), make_name(one.by_rows ? r_ : c_));
          return false;
        }
      return true;
    });
    return print(term);
  }

  const TransformRequest& request_;
  ThreadLaunch launch_;
  const FunctionAnalysis& function_;
  ThreadIndex row_{}, column_{};
  std::vector<const SyntaxNode*> before_{}, prologue_{}, epilogue_{};
  std::vector<std::string> row_conditions_{}, column_conditions_{}, other_conditions_{};
  std::set<std::string> uniform_{};
  std::span<const SyntaxNode> work_{};
  const LoopInfo* loop_ = nullptr;
  CountingLoop head_{};
  Reduction sum_{};
  std::string start_{};
  SyntaxNode term_{};
  std::vector<TiledOperand> operands_{};
  std::string thread_, at_, first_row_, first_column_, sums_, tile_of_sum_, inner_, r_, c_;
};

} // namespace mtmc::detail
