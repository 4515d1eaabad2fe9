#pragma once
/// Spreading: the iterations of parallel loops that few threads of a GPU go through become threads of a grid.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/launch_text.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/spread_forms.hpp>
#include <mtmc/coder/transform/threads/spread_levels.hpp>
#include <mtmc/coder/transform/threads/spread_nests.hpp>
#include <mtmc/coder/transform/threads/spread_work.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Spreads the parallel loops of a function over a grid, one launch for each loop nest that stands by itself.
class IterationSpreader {
public:
  /// Throws `TransformDeclined` with the reason where the function does more, or loops are not parallel.
  explicit IterationSpreader(const TransformRequest& request)
      : request_(request), launch_(thread_launch(request)), function_(*launch_.function) {
    if (launch_.function_at.size() != 1)
      throw TransformDeclined("the function " + function_.name + " stands in another scope");
    work_ = SpreadWorkReader(request, launch_).read();
    const SpreadNestReader nests(request, launch_, work_);
    for (const SyntaxNode* loop : work_.loops) nests_.push_back(nests.read(*loop));
    require_reads_apart(function_, work_);
  }

  /// There are rows enough for a block each.
  [[nodiscard]] bool has_many_rows() const {
    return work_.row &&
           work_.row->trips.value_or(0) >= std::int64_t{4} * std::max(request_.device.compute_units, 1);
  }

  /// How many ways there are to do it.
  [[nodiscard]] std::vector<SpreadShape> shapes() const {
    std::vector<SpreadShape> result;
    const auto& nest = nests_.front();
    const std::int64_t inner = nest.back().trips.value_or(1024);
    const bool loops_inside = nests_.size() == 1 && !innermost_of(nest).innermost();
    std::vector<SpreadForm> forms{SpreadForm::numbered};
    if (nest.size() > 1) {
      forms.push_back(SpreadForm::rows);
      constexpr std::int64_t enough = 64; // of a block along the innermost loop
      if (inner >= enough && names_left(nest) > 1) std::swap(forms[0], forms[1]);
    }
    constexpr std::int64_t most = 16384; // a grid has 65535 blocks along y, at all sizes near the main one
    if (loops_inside && nest.size() == 2 && nest.front().trips.value_or(most + 1) <= most)
      forms.insert(forms.begin(), SpreadForm::plane);
    for (const std::int64_t threads : {256, 128, 512})
      for (const SpreadForm form : forms) result.push_back({form, threads});
    std::stable_sort(result.begin(), result.end(), [](const SpreadShape& a, const SpreadShape& b) {
      return a.threads == 256 && b.threads != 256;
    });
    return result;
  }

  /// The tree with the nests as launches of their own.
  [[nodiscard]] SyntaxNode write(const SpreadShape& shape) {
    SyntaxNode tree = request_.tree;
    std::vector<SyntaxNode> functions;
    std::vector<SyntaxNode> lines;
    for (std::size_t i = 0; i < nests_.size(); ++i) {
      SyntaxNode function = *function_.node;
      LaunchLine line = launch_.line;
      if (nests_.size() > 1) {
        function.text = fresh_name(tree, function_.name + '_' + std::to_string(i + 1));
        function.leading_trivia = i == 0 ? function.leading_trivia : "\n";
        line.entry = function.text;
      }
      function.type = without_launch_bounds(function.type);
      function_body(function).children = body_of_nest(i, shape, line);
      functions.push_back(std::move(function));
      lines.push_back(make_launch_comment(launch_line_text(line)));
    }
    replace(tree, launch_.line_at, std::move(lines));
    const std::size_t moved = launch_.line_at < launch_.function_at.front() ? nests_.size() - 1 : 0;
    replace(tree, launch_.function_at.front() + moved, std::move(functions));
    return tree;
  }

private:
  /// Puts nodes into the place of one, whose comments the first of them keeps.
  static void replace(SyntaxNode& tree, std::size_t at, std::vector<SyntaxNode> nodes) {
    nodes.front().leading_trivia = tree.children[at].leading_trivia;
    nodes.front().trailing_trivia = tree.children[at].trailing_trivia;
    if (nodes.size() == 1 && nodes.front().kind == NodeKind::launch_comment) {
      tree.children[at].text = nodes.front().text;
      return;
    }
    const auto place = tree.children.begin() + static_cast<std::ptrdiff_t>(at);
    const auto next = tree.children.erase(place);
    tree.children.insert(next, std::make_move_iterator(nodes.begin()), std::make_move_iterator(nodes.end()));
  }

  /// Loops whose variable the body uses otherwise than in the number.
  [[nodiscard]] std::size_t names_left(const SpreadNest& nest) const {
    SyntaxNode body = work_.body_of(nest);
    (void)name_iteration_number(body, nest, "number");
    return static_cast<std::size_t>(std::count_if(nest.begin(), nest.end(), [&](const SpreadLevel& level) {
      return uses_name(body, level.head.variable);
    }));
  }

  /// The threads of a nest, and its body in their words.
  [[nodiscard]] SpreadThreads threads_of(const SpreadNest& nest, const SpreadShape& shape,
                                         SyntaxNode& body) const {
    if (nest.size() == 1) return threads_of_loop(nest.front(), shape.threads);
    if (shape.form == SpreadForm::plane && nest.size() == 2) return threads_in_plane(nest, shape.threads);
    if (shape.form == SpreadForm::rows) return threads_in_rows(nest, shape.threads, request_.tree);
    return threads_by_number(nest, shape.threads, request_.tree, function_, body);
  }

  /// The body of the function of a nest, whose grid and blocks the launch line gets.
  [[nodiscard]] std::vector<SyntaxNode> body_of_nest(std::size_t which, const SpreadShape& shape,
                                                     LaunchLine& line) const {
    const auto& nest = nests_[which];
    SyntaxNode body = work_.body_of(nest);
    const SpreadThreads threads = threads_of(nest, shape, body);
    line.grid = threads.grid;
    line.block = threads.block;
    std::vector<SyntaxNode> result;
    std::set<std::string> needed;
    const auto dependent = work_.row_dependent();
    for (std::string& name : names_used(body)) needed.insert(std::move(name));
    for (const SyntaxNode& statement :
         parse_statements(threads.numbers + "if (" + threads.condition + ") {}"))
      for (std::string& name : names_used(statement)) needed.insert(std::move(name));
    for (auto entry = work_.declarations.rbegin(); entry != work_.declarations.rend(); ++entry) {
      const SyntaxNode& declaration = *entry->statement;
      if (entry->loops_before > which || entry->is_number || dependent.contains(&declaration)) continue;
      const auto names = declarators(declaration);
      if (nests_.size() > 1 && std::none_of(names.begin(), names.end(),
                                            [&](const SyntaxNode& one) { return needed.contains(one.text); }))
        continue;
      for (std::string& name : names_used(declaration)) needed.insert(std::move(name));
      result.insert(result.begin(), declaration);
    }
    for (SyntaxNode& statement : parse_statements(threads.numbers)) result.push_back(std::move(statement));
    SyntaxNode branch = make_if(parse_expression(threads.condition), as_block(std::move(body)));
    branch.leading_trivia = work_.loops[which]->leading_trivia;
    result.push_back(std::move(branch));
    return result;
  }

  const TransformRequest& request_;
  ThreadLaunch launch_;
  const FunctionAnalysis& function_;
  SpreadWork work_{};
  std::vector<SpreadNest> nests_{};
};

} // namespace mtmc::detail
