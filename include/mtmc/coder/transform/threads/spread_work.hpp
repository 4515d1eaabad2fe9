#pragma once
/// A function whose threads are few: the loops that they go through, and the declarations in front of these.

#include <mtmc/analysis/flow/updates.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/one_thread.hpp>
#include <mtmc/coder/transform/threads/spread_levels.hpp>
#include <mtmc/coder/transform/threads/thread_rows.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A declaration outside of the loops.
struct SpreadDeclaration {
  const SyntaxNode* statement = nullptr;
  std::size_t loops_before = 0; ///< how many loops come before it
  bool is_number = false;       ///< it declares the number of the thread alone
};

/// What the threads of a function do.
struct SpreadWork {
  std::vector<const SyntaxNode*> loops{}; ///< one after the other
  std::vector<SpreadDeclaration> declarations{};
  bool shared = false;              ///< the threads of few blocks share the loops; else one thread does all
  std::optional<SpreadLevel> row{}; ///< rows that threads do already

  /// Declarations whose values differ from row to row.
  [[nodiscard]] std::set<const SyntaxNode*> row_dependent() const {
    std::set<const SyntaxNode*> found;
    if (!row) return found;
    std::set<std::string> names{row->head.variable};
    for (const SpreadDeclaration& declaration : declarations) {
      const auto used = names_used(*declaration.statement);
      if (std::none_of(used.begin(), used.end(), [&](const auto& name) { return names.contains(name); }))
        continue;
      found.insert(declaration.statement);
      for (const SyntaxNode& declarator : declarators(*declaration.statement)) names.insert(declarator.text);
    }
    return found;
  }
  /// What a thread does: the body of the innermost loop, and what it needs of the declarations that depend on
  /// the row.
  [[nodiscard]] SyntaxNode body_of(const SpreadNest& nest) const {
    SyntaxNode body = loop_body(*innermost_of(nest).node);
    const auto dependent = row_dependent();
    if (dependent.empty()) return body;
    SyntaxNode block = as_block(std::move(body));
    for (auto entry = declarations.rbegin(); entry != declarations.rend(); ++entry) {
      const auto names = declarators(*entry->statement);
      if (dependent.contains(entry->statement) &&
          std::any_of(names.begin(), names.end(),
                      [&](const SyntaxNode& one) { return uses_name(block, one.text); }))
        block.children.insert(block.children.begin(), *entry->statement);
    }
    return block;
  }
};

/// Reads what the threads of a function do.
class SpreadWorkReader {
public:
  /// `request` and `launch` must outlive it.
  SpreadWorkReader(const TransformRequest& request, const ThreadLaunch& launch)
      : request_(request), launch_(launch), function_(*launch.function) {}

  /// Throws `TransformDeclined` with the reason where they do more than loops.
  [[nodiscard]] SpreadWork read() {
    require_understood();
    read_statements();
    return std::move(work_);
  }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }

  /// All of the function is understood, its threads do not wait, and it has no memory but the common one.
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
    const OneThread only(launch_);
    std::vector<const SyntaxNode*> work;
    const auto body = statements(function_body(*function_.node));
    if (only.alone())
      work = only.work();
    else if (shares_loops())
      work_.shared = true;
    else
      work = read_row();
    if (work_.shared)
      for (const SyntaxNode& statement : body) work.push_back(&statement);
    for (const SyntaxNode* statement : work) {
      switch (statement->kind) {
      case NodeKind::comment:
      case NodeKind::empty:
      case NodeKind::pragma:
        continue;
      case NodeKind::declaration:
        if (writes_memory(*statement)) break;
        work_.declarations.push_back({statement, work_.loops.size()});
        continue;
      case NodeKind::for_loop:
        work_.loops.push_back(statement);
        continue;
      default:
        break;
      }
      decline("line " + std::to_string(statement->range.first_line) + " does something outside of loops");
    }
    if (work_.loops.empty()) decline("a thread goes through no loop");
    if (work_.shared) read_shared();
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
    work_.row = std::move(row);
    std::vector<const SyntaxNode*> work = rows.before;
    work.insert(work.end(), rows.work.begin(), rows.work.end());
    return work;
  }
  /// The statement stores to memory.
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
    for (const SyntaxNode* node : work_.loops) {
      const LoopInfo* const loop = function_.find_loop(*node);
      if (loop == nullptr || !loop->canonical || loop->step != all ||
          !is_number(*loop->start_expression, *blocks == 1))
        decline("the threads of " + line.entry + " do not share all loops one after the other");
      if (names_thread(*loop->bound_expression)) decline(loop_name(*loop) + " has a bound for each thread");
    }
    std::set<std::string> numbers;
    for (SpreadDeclaration& declaration : work_.declarations) {
      const SyntaxNode& statement = *declaration.statement;
      if (is_number_declaration(statement)) {
        numbers.insert(declarators(statement).front().text);
        declaration.is_number = true;
        continue;
      }
      bool speaks = names_thread(statement);
      for (const std::string& number : numbers) speaks = speaks || uses_name(statement, number);
      if (speaks)
        decline("line " + std::to_string(statement.range.first_line) + " speaks of threads or blocks");
    }
    for (const SyntaxNode* node : work_.loops) {
      bool speaks = names_thread(loop_body(*node));
      for (const std::string& number : numbers) speaks = speaks || uses_name(loop_body(*node), number);
      if (speaks) decline("line " + std::to_string(node->range.first_line) + " speaks of threads or blocks");
    }
  }
  /// The statement declares nothing but the number of the thread in the launch.
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
    return std::any_of(work_.declarations.begin(), work_.declarations.end(), [&](const auto& declaration) {
      const auto names = declarators(*declaration.statement);
      return names.size() == 1 && names.front().text == plain->text &&
             is_number_declaration(*declaration.statement);
    });
  }

  const TransformRequest& request_;
  const ThreadLaunch& launch_;
  const FunctionAnalysis& function_;
  SpreadWork work_{};
};

/// Throws `TransformDeclined` unless what is read outside of the loops is not written in them by other
/// threads.
inline void require_reads_apart(const FunctionAnalysis& function, const SpreadWork& work) {
  for (const SpreadDeclaration& declaration : work.declarations)
    walk(*declaration.statement, [&](const SyntaxNode& node) {
      for (const Access& access : function.accesses)
        if (access.node == &node)
          for (const Access& other : function.accesses)
            if (other.write && other.array == access.array)
              throw TransformDeclined(access.array->name + " is read in front of a loop and written");
    });
}

} // namespace mtmc::detail
