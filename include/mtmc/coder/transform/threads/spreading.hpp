#pragma once
/// Spreading: the iterations of parallel loops that few threads of a GPU go through become threads of a grid.

#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/launch_words.hpp>
#include <mtmc/coder/transform/threads/one_thread.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/threads/spread_forms.hpp>
#include <mtmc/coder/transform/threads/spread_levels.hpp>
#include <mtmc/coder/transform/threads/thread_rows.hpp>
#include <mtmc/coder/transform/threads/transposition.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
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
      : request_(request), launch_(thread_launch(request)), function_(*launch_.function), only_(launch_) {
    if (launch_.function_at.size() != 1)
      throw TransformDeclined("the function " + function_.name + " stands in another scope");
    require_understood();
    read_statements();
    for (const SyntaxNode* loop : loops_) nests_.push_back(levels_of(*loop));
    require_reads_apart();
  }

  /// There are rows enough for a block each.
  [[nodiscard]] bool has_many_rows() const {
    return row_ && row_->trips.value_or(0) >= std::int64_t{4} * std::max(request_.device.compute_units, 1);
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
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }

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

  void require_understood() const {
    if (!function_.opaque.empty())
      decline("line " + std::to_string(function_.opaque.front().line) + " contains " +
              function_.opaque.front().reason);
    if (!function_.barriers.empty()) decline("the threads wait for each other already");
    for (const Array& array : function_.arrays) {
      if (array.unknown) decline("it is not known what " + array.name + " points to");
      if (array.place != ArrayPlace::common && (array.variable == nullptr || array.variable->loop == nullptr))
        decline("the function has memory of its own, " + array.name);
    }
  }

  /// Declarations and loops, and nothing else.
  void read_statements() {
    std::vector<const SyntaxNode*> work;
    const auto body = statements(function_body(*function_.node));
    if (only_.alone())
      work = only_.work();
    else if (shares_loops())
      shared_ = true;
    else
      work = read_row();
    if (shared_)
      for (const SyntaxNode& statement : body) work.push_back(&statement);
    for (const SyntaxNode* statement : work) {
      switch (statement->kind) {
      case NodeKind::comment:
      case NodeKind::empty:
      case NodeKind::pragma:
        continue;
      case NodeKind::declaration:
        if (writes_memory(*statement)) break;
        declarations_.push_back({statement, loops_.size()});
        continue;
      case NodeKind::for_loop:
        loops_.push_back(statement);
        continue;
      default:
        break;
      }
      decline("line " + std::to_string(statement->range.first_line) + " does something outside of loops");
    }
    if (loops_.empty()) decline("a thread goes through no loop");
    if (shared_) read_shared();
  }
  /// Some loop starts with the number of a thread.
  [[nodiscard]] bool shares_loops() const {
    std::set<std::string> numbers;
    for (const SyntaxNode& statement : statements(function_body(*function_.node)))
      if (statement.kind == NodeKind::declaration)
        for (const SyntaxNode& declarator : declarators(statement))
          if (const SyntaxNode* const value = initial_value(declarator);
              value != nullptr && names_thread(*value))
            numbers.insert(declarator.text);
    return std::any_of(function_.loops.begin(), function_.loops.end(), [&](const LoopInfo& loop) {
      if (loop.parent != nullptr || loop.start_expression == nullptr) return false;
      const auto used = names_used(*loop.start_expression);
      return names_thread(*loop.start_expression) ||
             std::any_of(used.begin(), used.end(), [&](const auto& name) { return numbers.contains(name); });
    });
  }
  /// What each thread does with a row of its own.
  [[nodiscard]] std::vector<const SyntaxNode*> read_row() {
    require_one_axis(launch_);
    const ThreadIndex index = thread_index(launch_);
    const ThreadRows rows = thread_rows(request_, launch_, index);
    SpreadLevel row;
    row.head.type = rows.type;
    row.head.variable = index.name;
    row.head.first = make_integer(0);
    row.head.bound = rows.limit;
    row.trips = value_at_main_size(request_, launch_.threads());
    row.launch_count = rows.launch_limit;
    row.at_least_one = true; // the grid has a block
    row_ = std::move(row);
    std::vector<const SyntaxNode*> work = rows.before;
    work.insert(work.end(), rows.work.begin(), rows.work.end());
    return work;
  }
  /// What is read outside of the loops is not written in them by other threads.
  void require_reads_apart() const {
    for (const auto& [declaration, loops_before] : declarations_)
      walk(*declaration, [&](const SyntaxNode& node) {
        for (const Access& access : function_.accesses)
          if (access.node == &node)
            for (const Access& other : function_.accesses)
              if (other.write && other.array == access.array)
                decline(access.array->name + " is read in front of a loop and written");
      });
  }
  [[nodiscard]] bool writes_memory(const SyntaxNode& statement) const {
    bool found = false;
    walk(statement, [&](const SyntaxNode& node) {
      found =
          found || std::any_of(function_.accesses.begin(), function_.accesses.end(),
                               [&](const Access& access) { return access.write && access.node == &node; });
    });
    return found;
  }

  /// The threads of few blocks share each loop: `for (i = number; i < n; i += threads)`.
  void read_shared() {
    const LaunchLine& line = launch_.line;
    if (line.grid.size() != 1 || line.block.size() != 1)
      decline("the threads of " + line.entry + " are not numbered along one axis");
    const auto blocks = integer_literal(line.grid[0]);
    const auto threads = integer_literal(line.block[0]);
    if (!blocks || !threads) decline("the number of blocks of " + line.entry + " depends on the size");
    const std::int64_t all = *blocks * *threads;
    for (const SyntaxNode* node : loops_) {
      const LoopInfo* const loop = function_.find_loop(*node);
      if (loop == nullptr || !loop->canonical || loop->step != all ||
          !is_number(*loop->start_expression, *blocks == 1))
        decline("the threads of " + line.entry + " do not share all loops one after the other");
      if (names_thread(*loop->bound_expression)) decline(loop_name(*loop) + " has a bound for each thread");
    }
    std::set<std::string> numbers;
    for (const auto& [declaration, count] : declarations_) {
      if (is_number_declaration(*declaration)) {
        numbers.insert(declarators(*declaration).front().text);
        number_declarations_.insert(declaration);
        continue;
      }
      bool speaks = names_thread(*declaration);
      for (const std::string& number : numbers) speaks = speaks || uses_name(*declaration, number);
      if (speaks)
        decline("line " + std::to_string(declaration->range.first_line) + " speaks of threads or blocks");
    }
    for (const SyntaxNode* node : loops_) {
      bool speaks = names_thread(loop_body(*node));
      for (const std::string& number : numbers) speaks = speaks || uses_name(loop_body(*node), number);
      if (speaks) decline("line " + std::to_string(node->range.first_line) + " speaks of threads or blocks");
    }
  }
  [[nodiscard]] bool is_number_declaration(const SyntaxNode& declaration) const {
    if (declarators(declaration).size() != 1) return false;
    const SyntaxNode* const value = initial_value(declarators(declaration).front());
    return value != nullptr && is_number(*value, launch_.line.grid[0] == "1");
  }
  /// The expression is the number of the thread in the launch.
  [[nodiscard]] bool is_number(const SyntaxNode& expression, bool one_block) const {
    const SyntaxNode* plain = &expression;
    while (plain->kind == NodeKind::cast) plain = &operand(*plain);
    if (is_number_of_thread(*plain, launch_.line.block[0], 0)) return true;
    if (one_block && plain->kind == NodeKind::member && plain->text == ".x" &&
        is_name(operand(*plain), "threadIdx"))
      return true;
    if (plain->kind != NodeKind::name) return false;
    return std::any_of(declarations_.begin(), declarations_.end(), [&](const auto& entry) {
      return declarators(*entry.first).size() == 1 && declarators(*entry.first).front().text == plain->text &&
             is_number_declaration(*entry.first);
    });
  }

  /// The loops from the outermost one on that are parallel and perfectly nested; the one that goes along
  /// memory comes last.
  [[nodiscard]] SpreadNest levels_of(const SyntaxNode& node) const {
    const LoopInfo* const outermost = function_.find_loop(node);
    if (outermost == nullptr) decline("a loop was not analysed");
    require_legal(loop_is_parallel(*outermost));
    for (const ScalarFacts& scalar : classify_scalars(*outermost))
      if (scalar.role == ScalarRole::privatizable && scalar.live_out)
        decline("the last value of " + scalar.variable->name + " in " + loop_name(*outermost) +
                " is used after it");
    const LaunchWords words(request_.task, launch_);
    const LoopNest nest = nest_of(*outermost);
    SpreadNest levels;
    if (row_) levels.push_back(*row_);
    for (std::size_t i = 0; i < nest.size(); ++i) {
      const LoopInfo& loop = nest.loop(i);
      if (row_ && bound_depends_on_row(loop)) {
        if (i > 0) break;
        decline("rows of " + loop_name(loop) + " differ in length");
      }
      if (i > 0) {
        bool goes_on = nest.perfect(i - 1, i) && loop_is_parallel(loop) && !loop.variable_type.empty() &&
                       loop.step > 0 && !loop.comparison.empty();
        for (const SpreadLevel& outer : levels) // the range is the same for all
          goes_on = goes_on && !uses_name(*loop.bound_expression, outer.head.variable) &&
                    !uses_name(*loop.start_expression, outer.head.variable) &&
                    loop.variable != outer.head.variable;
        if (!goes_on) break;
      }
      SpreadLevel level{&loop, head_of(loop), launched_trips(request_, launch_, loop)};
      if (shared_ && i == 0) {
        level.head.first = make_integer(0);
        level.head.step = 1;
      }
      const auto first = words.of(level.head.first), bound = words.of(level.head.bound);
      const bool plain = level.counts_iterations();
      if (!bound || !first || (level.head.is_unsigned() && literal_value(level.head.first) != 0)) {
        if (i > 0) break;
        decline("the launch line does not know how many iterations " + loop_name(loop) + " has");
      }
      const std::string count = plain ? *bound : '(' + *bound + " - " + *first + ')';
      level.launch_count = level.head.step == 1 ? count
                                                : "ceil_div(" + without_brackets(count) + ", " +
                                                      std::to_string(level.head.step) + ')';
      level.at_least_one = plain && is_extent(*bound);
      levels.push_back(std::move(level));
    }
    const auto along = std::max_element(levels.begin(), levels.end(), [&](const auto& a, const auto& b) {
      return accesses_along(a, *outermost) < accesses_along(b, *outermost);
    });
    if (accesses_along(*along, *outermost) > accesses_along(levels.back(), *outermost))
      std::rotate(along, along + 1, levels.end());
    return levels;
  }
  /// Accesses of the nest that go from element to element with the level; writes count twice.
  [[nodiscard]] std::size_t accesses_along(const SpreadLevel& level, const LoopInfo& nest) const {
    std::size_t count = 0;
    for (const Access& access : function_.accesses) {
      if (access.loop == nullptr || !access.loop->inside(&nest) || access.subscripts.size() != 1 ||
          !access.subscripts.front().defined())
        continue;
      const bool along =
          level.loop == nullptr
              ? is_neighbour_along(access, ThreadIndex{level.head.variable, 0, 0})
              : expanded(access.subscripts.front()).coefficient_of(level.loop->symbol).constant() == 1;
      if (along) count += access.write ? 2 : 1;
    }
    return count;
  }
  [[nodiscard]] bool bound_depends_on_row(const LoopInfo& loop) const {
    std::set<std::string> names{row_->head.variable};
    for (const SyntaxNode* declaration : row_dependent())
      for (const SyntaxNode& declarator : declarators(*declaration)) names.insert(declarator.text);
    for (const SyntaxNode* end : {loop.start_expression, loop.bound_expression})
      for (const std::string& name : names_used(*end))
        if (names.contains(name)) return true;
    return false;
  }
  /// A symbol or a product of some: an extent, of which there is at least one.
  [[nodiscard]] static bool is_extent(const std::string& text) {
    return text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_ *()") ==
               std::string::npos &&
           text.find("min") == std::string::npos && text.find("max") == std::string::npos &&
           text.find("ceil_div") == std::string::npos;
  }

  /// What a thread does: the body of the innermost loop, and what it needs of the declarations that depend on
  /// the row.
  [[nodiscard]] SyntaxNode work_of(const SpreadNest& nest) const {
    SyntaxNode body = loop_body(*innermost_of(nest).node);
    const auto dependent = row_dependent();
    if (dependent.empty()) return body;
    SyntaxNode block = as_block(std::move(body));
    for (auto entry = declarations_.rbegin(); entry != declarations_.rend(); ++entry) {
      const auto names = declarators(*entry->first);
      if (dependent.contains(entry->first) &&
          std::any_of(names.begin(), names.end(),
                      [&](const SyntaxNode& one) { return uses_name(block, one.text); }))
        block.children.insert(block.children.begin(), *entry->first);
    }
    return block;
  }
  /// Declarations whose values differ from row to row.
  [[nodiscard]] std::set<const SyntaxNode*> row_dependent() const {
    std::set<const SyntaxNode*> found;
    if (!row_) return found;
    std::set<std::string> names{row_->head.variable};
    for (const auto& [declaration, loops_before] : declarations_) {
      const auto used = names_used(*declaration);
      if (std::none_of(used.begin(), used.end(), [&](const auto& name) { return names.contains(name); }))
        continue;
      found.insert(declaration);
      for (const SyntaxNode& declarator : declarators(*declaration)) names.insert(declarator.text);
    }
    return found;
  }
  /// Loops whose variable the body uses otherwise than in the number.
  [[nodiscard]] std::size_t names_left(const SpreadNest& nest) const {
    SyntaxNode body = work_of(nest);
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

  [[nodiscard]] std::vector<SyntaxNode> body_of_nest(std::size_t which, const SpreadShape& shape,
                                                     LaunchLine& line) const {
    const auto& nest = nests_[which];
    SyntaxNode body = work_of(nest);
    const SpreadThreads threads = threads_of(nest, shape, body);
    line.grid = threads.grid;
    line.block = threads.block;
    std::vector<SyntaxNode> result;
    std::set<std::string> needed;
    const auto dependent = row_dependent();
    for (std::string& name : names_used(body)) needed.insert(std::move(name));
    for (const SyntaxNode& statement :
         parse_statements(threads.numbers + "if (" + threads.condition + ") {}"))
      for (std::string& name : names_used(statement)) needed.insert(std::move(name));
    for (auto entry = declarations_.rbegin(); entry != declarations_.rend(); ++entry) {
      const auto& [declaration, loops_before] = *entry;
      if (loops_before > which || number_declarations_.contains(declaration) ||
          dependent.contains(declaration))
        continue;
      const auto names = declarators(*declaration);
      if (nests_.size() > 1 && std::none_of(names.begin(), names.end(),
                                            [&](const SyntaxNode& one) { return needed.contains(one.text); }))
        continue;
      for (std::string& name : names_used(*declaration)) needed.insert(std::move(name));
      result.insert(result.begin(), *declaration);
    }
    for (SyntaxNode& statement : parse_statements(threads.numbers)) result.push_back(std::move(statement));
    SyntaxNode branch = make_if(parse_expression(threads.condition), as_block(std::move(body)));
    branch.leading_trivia = loops_[which]->leading_trivia;
    result.push_back(std::move(branch));
    return result;
  }

  const TransformRequest& request_;
  ThreadLaunch launch_;
  const FunctionAnalysis& function_;
  OneThread only_;
  bool shared_ = false; ///< the threads of few blocks share the loops; else one thread does all
  std::vector<const SyntaxNode*> loops_{};
  std::vector<std::pair<const SyntaxNode*, std::size_t>> declarations_{}; ///< and how many loops come before
  std::optional<SpreadLevel> row_{};                                      ///< rows that threads do already
  std::set<const SyntaxNode*> number_declarations_{};
  std::vector<SpreadNest> nests_{};
};

} // namespace mtmc::detail
