#pragma once
/// Reordering: the programs of a kernel take the blocks of its result in another order, so that those that
/// run together share operands in the cache.

#include <mtmc/coder/transform/programs/bindings.hpp>
#include <mtmc/coder/transform/programs/launch_sites.hpp>
#include <mtmc/coder/transform/programs/launch_values.hpp>
#include <mtmc/coder/transform/programs/program_transformation.hpp>
#include <mtmc/coder/transform/programs/source_edits.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// An order of the blocks (row, column) of a result.
struct BlockOrder {
  int group = 8;        ///< so many rows go through all columns together; 0: one axis after the other
  bool columns = false; ///< groups are of columns, not of rows
};

/// Those that a kernel may get, the one expected to be best first: 8 rows of blocks of 64 to 128 rows share
/// what is loaded for a column while it is in the second-level cache.
[[nodiscard]] inline std::vector<BlockOrder> block_orders() {
  return {{8, false}, {4, false}, {16, false}, {8, true}, {0, false}};
}

/// Statements that compute the row and the column of a place in a grid, and the two expressions.
struct OrderedPlace {
  std::vector<std::string> before{}; ///< statements
  std::string row{};                 ///< uses what they compute
  std::string column{};
};

/// How a place (an expression for a number from 0 to before `rows * columns`) becomes row and column.
[[nodiscard]] inline OrderedPlace ordered_place(std::string_view source, const BlockOrder& order,
                                                const std::string& language, const std::string& place,
                                                const std::string& rows, const std::string& columns) {
  const std::string& grouped = order.columns ? columns : rows;
  const std::string& along = order.columns ? rows : columns;
  if (order.group == 0) // rows next to each other in time are those of one column, or the other way round
    return {{}, place + " // " + columns, place + " % " + columns};
  const std::string group = std::to_string(order.group);
  const std::string first = free_name(source, "first_of_group");
  const std::string height = free_name(source, "group_height");
  const std::string within = free_name(source, "within_group");
  OrderedPlace result;
  result.before = {first + " = " + place + " // (" + group + " * " + along + ") * " + group,
                   height + " = " + language + "minimum(" + grouped + " - " + first + ", " + group + ')',
                   within + " = " + place + " % (" + group + " * " + along + ')'};
  result.row = first + " + " + within + " % " + height;
  result.column = within + " // " + height;
  if (order.columns) std::swap(result.row, result.column);
  return result;
}

/// Statements as lines before the statement that begins at an offset.
[[nodiscard]] inline SourceEdit inserted_before(std::string_view source, const SyntaxNode& statement,
                                                const std::vector<std::string>& lines) {
  const std::size_t begin = statement.range.begin;
  const std::size_t line = without_lines(source, statement.range).begin;
  const std::string_view indentation = source.substr(line, begin - line);
  if (!trim(indentation).empty())
    throw TransformDeclined("something stands before the statement in " + line_of(statement));
  std::string text;
  for (const std::string& one : lines) text += one + '\n' + std::string(indentation);
  return {begin, begin, text};
}

/// The first statement of a function that does something; what stands before is its description.
[[nodiscard]] inline const SyntaxNode& first_statement(const SyntaxNode& definition) {
  const auto body = statements(function_body(definition));
  const bool described = body.size() > 1 && body[0].kind == NodeKind::expression_statement &&
                         operand(body[0]).kind == NodeKind::literal;
  return body[described ? 1 : 0];
}

/// An expression that can stand beside any operator.
[[nodiscard]] inline std::string as_operand(std::string_view source, const SyntaxNode& node) {
  const std::string text(text_in(source, node.range));
  const bool plain = node.kind == NodeKind::name || node.kind == NodeKind::literal ||
                     node.kind == NodeKind::call || node.kind == NodeKind::member;
  return plain ? text : '(' + text + ')';
}

/// Reorders the programs of one kernel.
class ProgramReorderer {
public:
  ProgramReorderer(const ProgramRequest& request, const TritonKernel& kernel)
      : request_(request), kernel_(kernel), source_(request.kernel.source),
        definition_(definition_of(request, kernel)), language_(language_prefix(request, kernel)) {
    for (const TritonOperation& operation : kernel.operations)
      if (operation.kind == TritonOperationKind::program_id) {
        const SyntaxNode* const call = node_of(definition_, NodeKind::call, operation.range);
        if (call == nullptr || operation.operand.size() != 1 || operation.operand[0] < '0' ||
            operation.operand[0] > '2')
          throw TransformDeclined("the axis of a program's number is computed in " +
                                  line_of(operation.range));
        numbers_[static_cast<std::size_t>(operation.operand[0] - '0')].push_back(call);
      }
  }

  [[nodiscard]] std::string write(const std::vector<LaunchSite>& sites, const BlockOrder& order) {
    if (numbers_[0].empty())
      throw TransformDeclined("no number of a program along axis 0 was recognised in " + kernel_.name);
    if (numbers_[1].empty())
      divide_number(sites, order);
    else
      exchange_numbers(order);
    return edited(source_, std::move(edits_));
  }

private:
  /// A grid of two axes: the number along both, in the order in which the device begins programs, is taken
  /// apart differently. The grid stays as it is.
  void exchange_numbers(const BlockOrder& order) {
    walk(definition_, [this](const SyntaxNode& node) {
      if (node.kind == NodeKind::call && last_part(dotted_name(callee(node))) == "num_programs")
        throw TransformDeclined(kernel_.name + " orders its programs itself, by their number in " +
                                line_of(node));
    });
    const std::string place = free_name(source_, "place");
    const std::string rows = language_ + "num_programs(0)";
    const std::string columns = language_ + "num_programs(1)";
    const OrderedPlace ordered = ordered_place(source_, order, language_, place, rows, columns);
    const std::string row = free_name(source_, "block_row");
    const std::string column = free_name(source_, "block_column");
    std::vector<std::string> lines{place + " = " + language_ + "program_id(1) * " + rows + " + " + language_ +
                                   "program_id(0)"};
    lines.insert(lines.end(), ordered.before.begin(), ordered.before.end());
    lines.push_back(row + " = " + ordered.row);
    lines.push_back(column + " = " + ordered.column);
    edits_.push_back(inserted_before(source_, first_statement(definition_), lines));
    for (const SyntaxNode* const call : numbers_[0])
      edits_.push_back({call->range.begin, call->range.end, row});
    for (const SyntaxNode* const call : numbers_[1])
      edits_.push_back({call->range.begin, call->range.end, column});
  }

  /// A grid of one axis, whose number is taken apart by `//` and `%`.
  void divide_number(const std::vector<LaunchSite>& sites, const BlockOrder& order) {
    std::vector<const SyntaxNode*> uses = numbers_[0];
    std::string place;
    const Bindings names(definition_);
    // pid = tl.program_id(0), perhaps as another type
    walk(function_body(definition_), [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::assignment || left_operand(node).kind != NodeKind::name) return;
      const SyntaxNode* value = &right_operand(node);
      if (value->kind == NodeKind::call && callee(*value).kind == NodeKind::member &&
          callee(*value).text == ".to")
        value = &operand(callee(*value));
      if (numbers_[0].size() == 1 && value == numbers_[0].front() &&
          names.count(left_operand(node).text) == 1)
        place = left_operand(node).text;
    });
    if (!place.empty()) {
      uses.clear();
      bool target = true; // the first one is where it is bound
      walk(function_body(definition_), [&](const SyntaxNode& node) {
        if (node.kind == NodeKind::name && node.text == place && !std::exchange(target, false))
          uses.push_back(&node);
      });
    }
    std::vector<const SyntaxNode*> quotients, remainders;
    std::size_t taken_apart = 0;
    walk(function_body(definition_), [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::binary || (node.text != "//" && node.text != "%")) return;
      if (std::find(uses.begin(), uses.end(), &left_operand(node)) == uses.end()) return;
      (node.text == "//" ? quotients : remainders).push_back(&node);
      ++taken_apart;
    });
    if (quotients.size() != 1 || remainders.size() != 1 || taken_apart != uses.size() ||
        !same_words(right_operand(*quotients[0]), right_operand(*remainders[0])))
      throw TransformDeclined("the number of a program is not taken apart by one // and one % in " +
                              kernel_.name);
    const SyntaxNode& columns = right_operand(*quotients[0]);
    for (const LaunchSite& site : sites) require_product(site, columns, names);
    const std::string width = as_operand(source_, columns);
    if (place.empty()) place = std::string(text_in(source_, uses[0]->range));
    const std::string rows = language_ + "num_programs(0) // " + width;
    if (order.group == 0) { // as it is, rows come first; now columns
      replace(*quotients[0], place + " % (" + rows + ')');
      replace(*remainders[0], place + " // (" + rows + ')');
      return;
    }
    const OrderedPlace ordered = ordered_place(source_, order, language_, place, '(' + rows + ')', width);
    edits_.push_back(
        inserted_before(source_, *statement_around(*quotients[0], *remainders[0]), ordered.before));
    replace(*quotients[0], ordered.row);
    replace(*remainders[0], ordered.column);
  }

  /// An expression instead of another one, in parentheses unless it is all that is assigned.
  void replace(const SyntaxNode& node, const std::string& text) {
    bool whole = false;
    walk(definition_, [&](const SyntaxNode& one) {
      whole = whole || (one.kind == NodeKind::assignment && &right_operand(one) == &node);
    });
    edits_.push_back({node.range.begin, node.range.end, whole ? text : '(' + text + ')'});
  }

  /// The earlier one of the statements of a kernel's body in which two expressions stand.
  [[nodiscard]] const SyntaxNode* statement_around(const SyntaxNode& a, const SyntaxNode& b) const {
    const std::size_t first = std::min(a.range.begin, b.range.begin);
    const std::size_t last = std::max(a.range.begin, b.range.begin);
    const SyntaxNode* found = nullptr;
    std::size_t both = 0;
    for (const SyntaxNode& statement : statements(function_body(definition_))) {
      if (statement.kind != NodeKind::expression_statement) continue;
      const auto holds = [&](std::size_t place) {
        return statement.range.begin <= place && place < statement.range.end;
      };
      if (holds(first)) found = &statement;
      both += (holds(first) ? 1U : 0U) + (holds(last) ? 1U : 0U);
    }
    if (found == nullptr || both != 2)
      throw TransformDeclined("the number of a program is taken apart in a branch or a loop");
    return found;
  }

  /// Throws unless a launch has a whole number of times as many programs as there are columns.
  void require_product(const LaunchSite& site, const SyntaxNode& columns, const Bindings& names) const {
    const Bindings own = bindings_around(request_, site);
    const Bindings outer(request_.tree);
    CanonicalText host(own, outer);
    const auto given = texts_given(site, definition_, host);
    std::map<std::string, std::string> for_grid;
    for (const auto& [name, text] : given) for_grid['[' + name + ']'] = text;
    const auto axes = grid_axes(site, own, outer);
    std::vector<std::string> factors;
    if (!axes.empty())
      add_factors(*axes[0], own, outer, CanonicalText(own, outer, for_grid), factors,
                  meta_of(site, own, outer));
    std::vector<std::string> wanted;
    add_factors(columns, names, outer, CanonicalText(names, outer, given), wanted, {});
    for (const std::string& factor : wanted) {
      const auto found = std::find(factors.begin(), factors.end(), factor);
      if (found == factors.end())
        throw TransformDeclined("the grid in " + line_of(*site.call) +
                                " was not recognised as a product with " +
                                std::string(text_in(source_, columns.range)));
      factors.erase(found);
    }
  }
  /// The parameter of the lambda that a grid is.
  [[nodiscard]] static std::string meta_of(const LaunchSite& site, const Bindings& own,
                                           const Bindings& outer) {
    const SyntaxNode& grid = looked_up(*site.grid, own, outer);
    return grid.kind == NodeKind::lambda && grid.children.size() == 2 ? grid.children.front().text
                                                                      : std::string();
  }
  static void add_factors(const SyntaxNode& node, const Bindings& own, const Bindings& outer,
                          CanonicalText texts, std::vector<std::string>& to, const std::string& meta) {
    const SyntaxNode& product = looked_up(node, own, outer);
    if (product.kind == NodeKind::binary && product.text == "*") {
      add_factors(left_operand(product), own, outer, texts, to, meta);
      add_factors(right_operand(product), own, outer, std::move(texts), to, meta);
    } else {
      to.push_back(texts.with_meta(meta).of(product));
    }
  }

  const ProgramRequest& request_;
  const TritonKernel& kernel_;
  std::string_view source_;
  const SyntaxNode& definition_;
  std::string language_;
  std::vector<const SyntaxNode*> numbers_[3]{}; ///< calls of `program_id`, by axis
  std::vector<SourceEdit> edits_{};
};

} // namespace detail

/// Has the programs of a kernel with `dot` take the blocks of its result in groups of rows (or columns), or
/// one axis after the other: every block is computed by one program as before, in the same way. Of a grid of
/// two axes both numbers are exchanged within the kernel; of one axis the number that is taken apart by `//`
/// and `%`, where the grid is recognised as a product.
[[nodiscard]] inline std::string reorder_programs(const ProgramRequest& request) {
  const Region& region = detail::region_of(request);
  const TritonKernel& kernel = detail::kernel_of(request, region);
  if (region.kind != RegionKind::function)
    throw TransformDeclined("only the order of a kernel's programs is changed, not that of its loops");
  const auto has = [&](TritonOperationKind kind) {
    return std::any_of(kernel.operations.begin(), kernel.operations.end(),
                       [kind](const TritonOperation& one) { return one.kind == kind; });
  };
  if (!has(TritonOperationKind::dot)) throw TransformDeclined(kernel.name + " makes no products of tiles");
  if (has(TritonOperationKind::atomic))
    throw TransformDeclined("programs of " + kernel.name + " meet in atomic operations");
  for (const TritonKernel& called : request.triton.kernels)
    if (std::find(kernel.calls.begin(), kernel.calls.end(), called.name) != kernel.calls.end())
      for (const TritonOperation& operation : called.operations)
        if (operation.kind == TritonOperationKind::program_id)
          throw TransformDeclined(called.name + ", which it calls, asks for the number of the program");
  const auto sites = detail::plain_launches(request, kernel);
  const auto orders = detail::block_orders();
  const detail::BlockOrder order = choose_variant(orders, request.variant);
  return detail::ProgramReorderer(request, kernel).write(sites, order);
}

} // namespace mtmc
