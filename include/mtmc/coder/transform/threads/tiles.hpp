#pragma once
/// Tiles of a GPU's launch whose threads each add up one result: a block makes a tile of results, several for
/// each thread, from tiles of the operands in shared memory; the next ones are on their way meanwhile.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_cost.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/sum.hpp>
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
  std::string next{};     ///< name of what a thread brings for the next tile
};

/// Finds the parts of a function that adds up one result for each thread of a two-dimensional launch, and
/// writes it anew.
class ResultTiler {
public:
  explicit ResultTiler(const TransformRequest& request)
      : request_(request), sum_(request), function_(*sum_.function) {
    read_axes();
    read_loop();
    read_operands();
  }

  [[nodiscard]] SyntaxNode write() {
    const auto extent_of = [&](std::size_t axis) -> std::optional<std::int64_t> {
      if (axis >= sum_.launch.line.grid.size()) return std::nullopt;
      return value_at_main_size(request_, sum_.launch.threads(axis));
    };
    const std::int64_t layers = sum_.launch.line.grid.size() > 2 ? extent_of(2).value_or(1) : 1;
    const auto tiles = result_tiles(extent_of(1), extent_of(0), layers, request_.device);
    const ResultTile tile = choose_variant(tiles, request_.variant);
    SyntaxNode tree = request_.tree;
    name_things(tree);
    sum_.launch.body_in(tree).children = parse_statements(text_of(tile));
    std::vector<std::string> grid{sum_.launch.threads_divided_by(tile.columns, 0),
                                  sum_.launch.threads_divided_by(tile.rows, 1)};
    if (sum_.launch.line.grid.size() > 2) grid.push_back(sum_.launch.line.grid[2]);
    sum_.launch.set_grid(tree, std::move(grid), std::to_string(ResultTile::threads));
    return tree;
  }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }

  void read_axes() {
    const LaunchLine& line = sum_.launch.line;
    if (line.block.size() != 2 && !(line.block.size() == 3 && line.block[2] == "1"))
      decline("the blocks of " + line.entry + " have not two axes");
    column_ = sum_.index_along(0);
    row_ = sum_.index_along(1);
    if (column_.name.empty() || row_.name.empty())
      decline("no variables number the threads of " + line.entry + " along both axes");
    for (const SyntaxNode* condition : sum_.conditions) {
      const bool rows = uses_name(*condition, row_.name), columns = uses_name(*condition, column_.name);
      if (rows && columns) decline("a condition of the branch is about rows and columns together");
      (rows      ? row_conditions_
       : columns ? column_conditions_
                 : other_conditions_)
          .push_back(print(*condition));
    }
  }
  void read_loop() {
    const LoopInfo& loop = *sum_.loop;
    if (request_.action.region != loop.path) decline("it is " + loop_name(loop) + " that adds up");
    head_ = head_of(loop);
    if (literal_value(head_.first) != 0 || head_.step != 1)
      decline(loop_name(loop) + " does not count from 0 by one");
    for (const std::string& name : names_used(head_.bound))
      if (!sum_.uniform.contains(name))
        decline("the bound of " + loop_name(loop) + " is not the same for all");
    const auto body = statements(loop_body(*loop.node));
    if (body.size() != 1 || &body.front() != sum_.update)
      decline("the body of " + loop_name(loop) + " is not one sum");
  }

  void read_operands() {
    const ProblemSize* const size = request_.task.main_size();
    const Symbols symbols = size == nullptr ? Symbols{} : size->symbols;
    for (const Access& access : function_.accesses)
      if (access.loop == sum_.loop) add_operand(access, symbols);
    const bool rows =
        std::any_of(operands_.begin(), operands_.end(), [](const auto& one) { return one.by_rows; });
    const bool columns =
        std::any_of(operands_.begin(), operands_.end(), [](const auto& one) { return !one.by_rows; });
    if (!rows || !columns)
      decline("the threads of a block share no operand along " + std::string(rows ? "columns" : "rows"));
    if (operands_.size() > 3) decline("there are more than three operands");
    if (!is_product(sum_.term())) decline("what " + loop_name(*sum_.loop) + " adds up is no product");
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
      else if (name != sum_.loop->variable && !sum_.uniform.contains(name))
        decline("the subscript of " + access.array->name + " uses " + name);
    }
    if (subscript_base(*access.node).kind != NodeKind::name)
      decline("the elements of " + access.array->name + " have several subscripts");
    if (rows == columns)
      decline(access.array->name + (rows ? " moves with rows and columns" : " moves with the sum alone"));
    one.by_rows = rows;
    one.type = pointed_type(access.array->variable->type);
    one.along_sum = stride_of(access, *sum_.loop, symbols) == 1;
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
    sums_ = fresh_name(tree, sum_.sum.scalar->name + "s");
    tile_of_sum_ = fresh_name(tree, head_.variable + "_tile");
    inner_ = fresh_name(tree, head_.variable + "_inner");
    r_ = fresh_name(tree, "r");
    c_ = fresh_name(tree, "c");
    n_ = fresh_name(tree, "n");
    int number = 0;
    for (TiledOperand& one : operands_) {
      const std::string name = subscript_base(one.access).text;
      const std::string suffix =
          number++ > 0 && name == subscript_base(operands_.front().access).text ? "_2" : "";
      one.tile = fresh_name(tree, name + "_tile" + suffix);
      one.value = fresh_name(tree, name + "_values" + suffix);
      one.next = fresh_name(tree, name + "_next" + suffix);
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
    std::string within = thread + " * " + std::to_string(together) + " + " + number;
    if (each <= group) return within;
    return number + " / 4 * " + std::to_string(group * ResultTile::edge) + " + " + thread + " * 4 + " +
           number + " % 4";
  }

  [[nodiscard]] std::string text_of(const ResultTile& tile) const {
    const auto n = [](std::int64_t value) { return std::to_string(value); };
    const std::string bound = print(head_.bound);
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
    for (const SyntaxNode* declaration : sum_.before) code += print(*declaration) + '\n';
    const std::string type = sum_.sum.type;
    code += type + ' ' + sums_ + '[' + n(tile.thread_rows) + "][" + n(tile.thread_columns) + "];\n";
    code += for_results(tile, sums_ + '[' + r_ + "][" + c_ + "] = " + sum_.start + ';');
    for (const TiledOperand& one : operands_)
      code += one.type + ' ' + one.next + '[' + n(loads_of(tile, one)) + "];\n";
    for (const TiledOperand& one : operands_) code += load(tile, one, "");
    code += "for (" + head_.type + ' ' + tile_of_sum_ + " = 0; " + tile_of_sum_ + " < " + bound + "; " +
            tile_of_sum_ + " += " + n(tile.depth) + ") {\n";
    for (const TiledOperand& one : operands_)
      code += for_loads(tile, one, place_in_tile(tile, one) + " = " + one.next + '[' + n_ + "];\n");
    code += "__syncthreads();\n";
    code += "if (" + tile_of_sum_ + " + " + n(tile.depth) + " < " + bound + ") {\n";
    for (const TiledOperand& one : operands_)
      code += load(tile, one, tile_of_sum_ + " + " + n(tile.depth) + " + ");
    code += "}\n#pragma unroll\n";
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
    for (const SyntaxNode* declaration : sum_.prologue) result += print(*declaration) + '\n';
    result += type + ' ' + sum_.sum.scalar->name + " = " + sums_ + '[' + r_ + "][" + c_ + "];\n";
    for (const SyntaxNode* statement : sum_.epilogue) result += print(*statement) + '\n';
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
  /// Elements of a tile of an operand that each thread brings.
  [[nodiscard]] static std::int64_t loads_of(const ResultTile& tile, const TiledOperand& one) {
    return (one.by_rows ? tile.rows : tile.columns) * tile.depth / ResultTile::threads;
  }
  /// For each of them, numbered through the tile.
  [[nodiscard]] std::string for_loads(const ResultTile& tile, const TiledOperand& one,
                                      const std::string& body) const {
    return "for (int " + n_ + " = 0; " + n_ + " < " + std::to_string(loads_of(tile, one)) + "; ++" + n_ +
           ") {\nconst int " + at_ + " = " + thread_ + " + " + n_ + " * " +
           std::to_string(ResultTile::threads) + ";\n" + body + "}\n";
  }
  /// Where element `at` lies across the operand and along the sum: neighbours along memory.
  [[nodiscard]] std::pair<std::string, std::string> position_in_tile(const ResultTile& tile,
                                                                     const TiledOperand& one) const {
    const std::string depth = std::to_string(tile.depth);
    const std::string across = std::to_string(one.by_rows ? tile.rows : tile.columns);
    if (one.along_sum) return {at_ + " / " + depth, at_ + " % " + depth};
    return {at_ + " % " + across, at_ + " / " + across};
  }
  [[nodiscard]] std::string place_in_tile(const ResultTile& tile, const TiledOperand& one) const {
    const auto [across, along] = position_in_tile(tile, one);
    return one.tile + '[' + along + "][" + across + ']';
  }
  /// Brings a tile's elements into registers, zeros beyond its end; `first` is where the tile begins along
  /// the sum.
  [[nodiscard]] std::string load(const ResultTile& tile, const TiledOperand& one,
                                 const std::string& first) const {
    const auto [across, along] = position_in_tile(tile, one);
    const ThreadIndex& index = one.by_rows ? row_ : column_;
    auto conditions = one.by_rows ? row_conditions_ : column_conditions_;
    conditions.insert(conditions.end(), other_conditions_.begin(), other_conditions_.end());
    conditions.push_back(head_.variable + " < " + print(head_.bound));
    return for_loads(tile, one,
                     "const int " + index.name + " = " + (one.by_rows ? first_row_ : first_column_) + " + " +
                         across + ";\nconst " + head_.type + ' ' + head_.variable + " = " + first + along +
                         ";\n" + one.next + '[' + n_ + "] = " + both(conditions) + " ? " + print(one.access) +
                         " : (" + one.type + ")0.0f;\n");
  }
  [[nodiscard]] std::string term_of_values() const {
    SyntaxNode term = sum_.term();
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
  ThreadSum sum_;
  const FunctionAnalysis& function_;
  ThreadIndex row_{}, column_{};
  std::vector<std::string> row_conditions_{}, column_conditions_{}, other_conditions_{};
  CountingLoop head_{};
  std::vector<TiledOperand> operands_{};
  std::string thread_, at_, first_row_, first_column_, sums_, tile_of_sum_, inner_, r_, c_, n_;
};

} // namespace mtmc::detail
