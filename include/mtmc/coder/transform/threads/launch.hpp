#pragma once
/// The one launch of a function on a GPU, and the parts of its text that change when its threads do: the
/// line, the number of the thread, the guard around the work.

#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/syntax/launch_text.hpp>
#include <mtmc/analysis/syntax/macro_definition.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether the expression names an index or extent of threads or blocks (`threadIdx.x`).
[[nodiscard]] inline bool names_thread(const SyntaxNode& expression) {
  bool found = false;
  walk(expression, [&](const SyntaxNode& node) {
    found = found || is_launch_name(node) || node.kind == NodeKind::opaque;
  });
  return found;
}

/// Whether a statement is `__syncthreads();`.
[[nodiscard]] inline bool is_block_barrier(const SyntaxNode& statement) {
  return statement.kind == NodeKind::expression_statement &&
         is_call_of(operand(statement), "__syncthreads") && arguments(operand(statement)).empty();
}

/// The arguments of `function(...)`, where that is all of the text.
[[nodiscard]] inline std::vector<std::string> arguments_of_call(std::string_view text,
                                                                std::string_view function) {
  text = trim(text);
  if (!text.starts_with(function) || !text.ends_with(')')) return {};
  const std::string_view inside = text.substr(function.size());
  if (!inside.starts_with('(')) return {};
  int depth = 0; // the first bracket closes at the end
  for (std::size_t i = 0; i < inside.size(); ++i) {
    depth += inside[i] == '(' ? 1 : inside[i] == ')' ? -1 : 0;
    if (depth == 0 && i + 1 < inside.size()) return {};
  }
  return parts_at_commas(inside.substr(1, inside.size() - 2));
}

/// A text of a launch line as a factor: in brackets, unless it is a name, a number or one call.
[[nodiscard]] inline std::string as_factor(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), is_name_character);
  return plain || !arguments_of_call(text, "ceil_div").empty() ? text : '(' + text + ')';
}

/// The number of a thread along an axis: where it is declared.
struct ThreadIndex {
  std::string name{};
  std::size_t statement = 0; ///< of the function's body
  std::size_t axis = 0;      ///< 0 = x
};

/// The work of a thread, behind or inside the branch that leaves out threads beyond the last result.
struct GuardedBody {
  std::span<const SyntaxNode> statements{};
  bool guarded = false;
  bool nested = false;   ///< stands in the branch, not behind it
  std::size_t first = 0; ///< statement of the function's body: the branch, or the first one behind it
};

/// A function's type without `__launch_bounds__`, which speaks of another block.
[[nodiscard]] inline std::string without_launch_bounds(std::string type) {
  const std::size_t at = type.find("__launch_bounds__");
  if (at == std::string::npos) return type;
  std::size_t end = type.find('(', at);
  int depth = 0;
  for (; end < type.size(); ++end) {
    depth += type[end] == '(' ? 1 : type[end] == ')' ? -1 : 0;
    if (type[end] == ')' && depth == 0) break;
  }
  std::string before(trim(std::string_view(type).substr(0, at)));
  const std::string_view behind = end < type.size() ? trim(std::string_view(type).substr(end + 1)) : "";
  if (!behind.empty()) before += ' ' + std::string(behind);
  return before;
}

/// `M` of `(M + 127) / 128`, where the block is 128; empty for other texts.
[[nodiscard]] inline std::string rounded_up(const std::string& grid, const std::string& block) {
  const SyntaxNode quotient = parse_expression(grid);
  const auto extent = integer_literal(block);
  if (!extent || quotient.kind != NodeKind::binary || quotient.text != "/" ||
      integer_literal(right_operand(quotient).text) != extent)
    return {};
  const SyntaxNode& sum = left_operand(quotient);
  if (sum.kind != NodeKind::binary || sum.text != "+" ||
      integer_literal(right_operand(sum).text) != *extent - 1)
    return {};
  return print(left_operand(sum));
}

/// The names that a file defines as macros.
[[nodiscard]] inline std::vector<std::string> macros_of(const SyntaxNode& tree) {
  std::vector<std::string> names;
  walk(tree, [&](const SyntaxNode& node) {
    if (node.kind != NodeKind::preprocessor) return;
    if (const auto macro = macro_definition(node.text)) names.emplace_back(macro->name);
  });
  return names;
}

/// Whether a word stands in a tree as a name, also of what is declared.
[[nodiscard]] inline bool uses_word(const SyntaxNode& tree, const std::string& word) {
  bool found = false;
  walk(tree, [&](const SyntaxNode& node) {
    found = found || node.text == word || (node.kind == NodeKind::opaque && uses_name(node, word));
  });
  return found;
}

/// An expression of a launch line in the words of its function: parameters for what is given for them.
/// Nothing where some of it is given for none.
[[nodiscard]] inline std::optional<SyntaxNode>
in_function_words(SyntaxNode expression, const LaunchLine& line, const SyntaxNode& function) {
  const auto formal = parameters(function);
  bool known = true;
  walk(expression, [&](SyntaxNode& node) {
    if (node.kind == NodeKind::literal) return true;
    const std::string text = print(node);
    for (std::size_t i = 0; i < formal.size() && i < line.arguments.size(); ++i)
      if (print(parse_expression(line.arguments[i])) == text) {
        node = make_name(formal[i].text);
        return false;
      }
    known = known && node.kind != NodeKind::name && node.kind != NodeKind::call;
    return true;
  });
  return known ? std::optional(std::move(expression)) : std::nullopt;
}

/// A function and its one launch.
struct ThreadLaunch {
  const FunctionAnalysis* function = nullptr;
  std::vector<std::size_t> function_at{}; ///< child indices that lead to it
  std::size_t line_at = 0;                ///< the launch line, among the children of the tree
  LaunchLine line{};

  /// The threads along an axis, as the launch line says it: `M` of `ceil_div(M, 128)` blocks of 128.
  [[nodiscard]] std::string threads(std::size_t axis = 0) const {
    const std::string& grid = line.grid[axis];
    if (axis >= line.block.size() || line.block[axis] == "1") return grid;
    const auto arguments = arguments_of_call(grid, "ceil_div");
    if (arguments.size() == 2 && arguments[1] == line.block[axis]) return arguments[0];
    if (const std::string count = rounded_up(grid, line.block[axis]); !count.empty()) return count;
    return launched(axis);
  }
  /// All threads that are launched along an axis, also those beyond the last result.
  [[nodiscard]] std::string launched(std::size_t axis = 0) const {
    const std::string& grid = line.grid[axis];
    return axis >= line.block.size() || line.block[axis] == "1" ? grid
                                                                : as_factor(grid) + " * " + line.block[axis];
  }
  /// Blocks of `each` of them.
  [[nodiscard]] std::string threads_divided_by(std::int64_t each, std::size_t axis = 0) const {
    return each == 1 ? threads(axis) : "ceil_div(" + threads(axis) + ", " + std::to_string(each) + ')';
  }

  /// An expression of the function's parameters in the words of the launch line: their arguments instead.
  [[nodiscard]] SyntaxNode in_launch_words(SyntaxNode expression) const {
    const auto formal = parameters(*function->node);
    walk(expression, [&](SyntaxNode& node) {
      if (node.kind != NodeKind::name) return true;
      for (std::size_t i = 0; i < formal.size() && i < line.arguments.size(); ++i)
        if (formal[i].text == node.text) {
          node = parse_expression(line.arguments[i]);
          return false;
        }
      return true;
    });
    return expression;
  }
  /// A name for a variable of the function.
  [[nodiscard]] std::string fresh_local(const SyntaxNode& tree, std::string_view base) const {
    SyntaxNode names = visible_names(tree, function_at);
    names.children.back().leading_trivia.clear();
    return fresh_name(names, base);
  }
  [[nodiscard]] SyntaxNode& function_in(SyntaxNode& tree) const { return *node_at(tree, function_at); }
  [[nodiscard]] SyntaxNode& body_in(SyntaxNode& tree) const { return function_body(function_in(tree)); }
  /// Another first value for the number of the thread, and a declaration behind it.
  void replace_index(SyntaxNode& tree, const ThreadIndex& index, SyntaxNode value, SyntaxNode behind) const {
    auto& body = body_in(tree).children;
    SyntaxNode& declaration = body[index.statement];
    initializer(declarators(declaration).front())->children.front() = std::move(value);
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(index.statement) + 1, std::move(behind));
  }
  /// Other statements in the place of the work. After `replace_index`, which moves them by one.
  void replace_body(SyntaxNode& tree, const GuardedBody& work, std::vector<SyntaxNode> statements) const {
    auto& body = body_in(tree).children;
    const std::size_t first = work.first + 1;
    if (work.nested) {
      SyntaxNode& branch = then_branch(body[first]);
      SyntaxNode block = as_block(branch);
      block.children = std::move(statements);
      branch = std::move(block);
      return;
    }
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(first), body.end());
    for (SyntaxNode& statement : statements) body.push_back(std::move(statement));
  }
  /// Other blocks. What was said about the old ones (`__launch_bounds__`) goes.
  void set_grid(SyntaxNode& tree, std::vector<std::string> grid, std::string block) {
    function_in(tree).type = without_launch_bounds(function_in(tree).type);
    line.grid = std::move(grid);
    line.block = {std::move(block)};
    tree.children[line_at].text = launch_line_text(line);
  }
  /// A function in front of all others, which may call it then. Moves all places behind it.
  void add_function(SyntaxNode& tree, const std::string& text) {
    SyntaxNode parsed = parse(text);
    for (const std::string& macro : macros_of(tree))
      if (uses_word(parsed, macro)) rename(parsed, macro, fresh_name(tree, macro + "_own"));
    std::size_t first = 0;
    while (first < function_at.front() && tree.children[first].kind != NodeKind::function) ++first;
    const auto at = tree.children.begin() + static_cast<std::ptrdiff_t>(first);
    for (SyntaxNode& child : parsed.children)
      if (child.kind == NodeKind::function) {
        child.leading_trivia.insert(0, "\n");
        tree.children.insert(at, std::move(child));
        break;
      }
    ++function_at.front();
    std::string& before = tree.children[first + 1].leading_trivia;
    if (before.empty() || before.front() != '\n') before.insert(0, "\n");
  }
};

/// The function that a region is part of, by the region's path.
[[nodiscard]] inline std::string function_of_region(const std::string& region) {
  return region.substr(0, region.find('/'));
}

/// The launch of the action's function. Throws `TransformDeclined` where there is not just one, or its blocks
/// are more than threads in a number that the line names.
[[nodiscard]] inline ThreadLaunch thread_launch(const TransformRequest& request) {
  const std::string name = function_of_region(request.action.region);
  const auto located = locate(request.tree, name);
  ThreadLaunch result;
  for (const auto& function : request.analysis.functions())
    if (!located.empty() && function->node == located.front().node) result.function = function.get();
  if (result.function == nullptr) throw TransformDeclined("the kernel has no function \"" + name + '"');
  result.function_at = located.front().indices;
  int count = 0;
  for (const LaunchNode& launch : launches_of(request.tree)) {
    if (launch.line.entry != result.function->name) continue;
    result.line_at = launch.index;
    result.line = launch.line;
    ++count;
  }
  if (count != 1)
    throw TransformDeclined(result.function->name + " is launched " + std::to_string(count) + " times");
  if (is_called(request.tree, result.function->name))
    throw TransformDeclined(result.function->name + " is called by another function, too");
  const LaunchLine& line = result.line;
  if (line.grid.empty()) throw TransformDeclined("the launch line of " + line.entry + " has no grid");
  if (!line.shared_bytes.empty() || !line.cluster.empty())
    throw TransformDeclined("the blocks of " + line.entry + " have dynamic shared memory or form clusters");
  for (const std::string& extent : line.block)
    if (!integer_literal(extent))
      throw TransformDeclined("the launch line of " + line.entry + " names no number of threads");
  return result;
}

/// Whether blocks have threads along x alone.
[[nodiscard]] inline bool has_flat_blocks(const ThreadLaunch& launch) {
  return std::all_of(launch.line.block.begin() + 1, launch.line.block.end(),
                     [](const std::string& extent) { return extent == "1"; });
}

/// Throws `TransformDeclined` unless threads and blocks are numbered along one axis.
inline void require_one_axis(const ThreadLaunch& launch) {
  if (launch.line.grid.size() != 1 || launch.line.block.size() != 1)
    throw TransformDeclined("the threads of " + launch.line.entry + " are not numbered along one axis");
}

/// `blockIdx.x * blockDim.x + threadIdx.x` for an axis, in any order.
[[nodiscard]] inline bool is_number_of_thread(const SyntaxNode& expression, const std::string& block,
                                              std::size_t axis) {
  const std::string member = '.' + std::string(axis_names[axis]);
  const auto is = [&member](const SyntaxNode& node, std::string_view object) {
    return node.kind == NodeKind::member && node.text == member && is_name(operand(node), object);
  };
  const auto bare = [](const SyntaxNode& node) { // `(size_t)blockIdx.x` counts as what it is
    return node.kind == NodeKind::cast ? &operand(node) : &node;
  };
  if (expression.kind == NodeKind::cast) return is_number_of_thread(operand(expression), block, axis);
  if (expression.kind != NodeKind::binary || expression.text != "+") return false;
  const SyntaxNode *first = bare(left_operand(expression)), *second = bare(right_operand(expression));
  if (is(*first, "threadIdx")) std::swap(first, second);
  if (!is(*second, "threadIdx") || first->kind != NodeKind::binary || first->text != "*") return false;
  const SyntaxNode *number = bare(left_operand(*first)), *extent = bare(right_operand(*first));
  if (!is(*number, "blockIdx")) std::swap(number, extent);
  return is(*number, "blockIdx") &&
         (is(*extent, "blockDim") || (extent->kind == NodeKind::literal && extent->text == block));
}

/// Throws `TransformDeclined` where something else than its declaration changes the number.
inline void require_constant(const ThreadLaunch& launch, const ThreadIndex& index) {
  const auto body = statements(function_body(*launch.function->node));
  for (const Variable& variable : launch.function->variables) {
    if (variable.name != index.name) continue;
    const bool changes = std::any_of(variable.uses.begin(), variable.uses.end(), [&](std::size_t at) {
      const ScalarUse& use = launch.function->scalar_uses[at];
      return use.write && use.statement != &body[index.statement];
    });
    if (changes || variable.address_taken) throw TransformDeclined(index.name + " changes");
  }
}

/// Whether threads are numbered along the axis of a member (".y"), not blocks alone.
[[nodiscard]] inline bool has_threads_along(const ThreadLaunch& launch, std::string_view member) {
  if (member == ".x") return true;
  for (std::size_t axis = 1; axis < launch.line.block.size() && axis < 3; ++axis)
    if (member == '.' + std::string(axis_names[axis])) return launch.line.block[axis] != "1";
  return false;
}

/// Where the function numbers its threads along each axis. Throws `TransformDeclined` where one has no
/// variable of its own that nothing changes, or the numbers within blocks are used otherwise.
[[nodiscard]] inline std::vector<ThreadIndex> thread_indices(const ThreadLaunch& launch) {
  const auto body = statements(function_body(*launch.function->node));
  std::vector<ThreadIndex> found;
  for (std::size_t i = 0; i < body.size(); ++i) {
    bool number = false;
    for (std::size_t axis = 0; axis < launch.line.block.size() && axis < 3; ++axis) {
      if (body[i].kind != NodeKind::declaration || declarators(body[i]).size() != 1) continue;
      const SyntaxNode* const value = initial_value(declarators(body[i]).front());
      if (value == nullptr || !is_number_of_thread(*value, launch.line.block[axis], axis)) continue;
      if (std::any_of(found.begin(), found.end(), [&](const auto& other) { return other.axis == axis; }))
        throw TransformDeclined("two variables number the threads along one axis");
      found.push_back({declarators(body[i]).front().text, i, axis});
      number = true;
    }
    walk(body[i], [&](const SyntaxNode& node) {
      // Numbers of blocks along axes with one thread each mean what they meant, unless those axes change.
      const bool block = node.kind == NodeKind::member && is_name(operand(node), "blockIdx") &&
                         has_threads_along(launch, node.text);
      const bool thread = is_name(node, "threadIdx") || is_name(node, "blockDim") ||
                          is_name(node, "gridDim") || node.kind == NodeKind::opaque;
      if (!number && (thread || block))
        throw TransformDeclined("line " + std::to_string(body[i].range.first_line) +
                                " speaks of threads or blocks");
    });
  }
  for (const ThreadIndex& index : found) require_constant(launch, index);
  return found;
}

/// Where the function numbers its threads along x. Throws `TransformDeclined` unless one variable, which
/// nothing changes, has the number, and nothing else speaks of threads, but for blocks along other axes.
[[nodiscard]] inline ThreadIndex thread_index(const ThreadLaunch& launch) {
  const auto indices = thread_indices(launch);
  if (indices.empty()) throw TransformDeclined("no variable numbers the threads of " + launch.line.entry);
  if (indices.size() != 1 || indices.front().axis != 0)
    throw TransformDeclined("the threads of " + launch.line.entry + " are not numbered along x alone");
  return indices.front();
}

/// The work of the threads. Throws `TransformDeclined` where it is not understood what threads it is for.
[[nodiscard]] inline GuardedBody guarded_body(const ThreadLaunch& launch, const ThreadIndex& index) {
  const FunctionAnalysis& function = *launch.function;
  const auto body = statements(function_body(*function.node));
  const auto reads_memory = [&](const SyntaxNode& part) {
    bool found = false;
    walk(part, [&](const SyntaxNode& node) {
      found = found || std::any_of(function.accesses.begin(), function.accesses.end(),
                                   [&](const Access& access) { return access.node == &node; });
    });
    return found;
  };
  std::size_t at = index.statement + 1;
  while (at < body.size() && body[at].kind == NodeKind::declaration && !reads_memory(body[at])) ++at;
  if (at == body.size()) throw TransformDeclined("the threads of " + launch.line.entry + " do nothing");
  GuardedBody work;
  work.first = at;
  const SyntaxNode& branch = body[at];
  if (branch.kind != NodeKind::if_statement || reads_memory(if_condition(branch))) {
    work.statements = body.subspan(at);
    return work;
  }
  work.guarded = true;
  const auto inside = statements(then_branch(branch));
  if (inside.size() == 1 && inside.front().kind == NodeKind::return_statement &&
      else_branch(branch) == nullptr) {
    work.first = at + 1;
    work.statements = body.subspan(at + 1);
    return work;
  }
  if (at + 1 != body.size() || else_branch(branch) != nullptr)
    throw TransformDeclined("what the threads of " + launch.line.entry + " do is not one branch");
  work.nested = true;
  work.statements = inside;
  return work;
}

/// The value of an expression of a launch line at a size of the task, where it is known.
[[nodiscard]] inline std::optional<std::int64_t>
value_at_size(const TransformRequest& request, const ProblemSize& size, const std::string& text) {
  Symbols symbols = size.symbols;
  symbols["compute_units"] = std::max(request.device.compute_units, 1);
  const Argument* const scalar = request.task.find_argument(text);
  try {
    return evaluate_expression(scalar != nullptr && !scalar->value.empty() ? scalar->value : text, symbols);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

/// The same at the task's main size.
[[nodiscard]] inline std::optional<std::int64_t> value_at_main_size(const TransformRequest& request,
                                                                    const std::string& text) {
  const ProblemSize* const size = request.task.main_size();
  return size == nullptr ? std::nullopt : value_at_size(request, *size, text);
}

/// What the parameters of a launched function are at a size, those that are numbers known before the launch.
[[nodiscard]] inline Symbols parameter_values(const TransformRequest& request, const ThreadLaunch& launch,
                                              const ProblemSize& size) {
  Symbols values;
  const auto formal = parameters(*launch.function->node);
  for (std::size_t i = 0; i < formal.size() && i < launch.line.arguments.size(); ++i)
    if (const auto value = value_at_size(request, size, launch.line.arguments[i]))
      values[formal[i].text] = *value;
  return values;
}

/// How many threads a launch has for its results at the task's main size, along all axes, where that is
/// known.
[[nodiscard]] inline std::optional<std::int64_t> threads_at_main_size(const TransformRequest& request,
                                                                      const ThreadLaunch& launch) {
  std::int64_t product = 1;
  for (std::size_t axis = 0; axis < launch.line.grid.size(); ++axis) {
    const auto threads = value_at_main_size(request, launch.threads(axis));
    if (!threads) return std::nullopt;
    product *= *threads;
  }
  return product;
}

} // namespace mtmc::detail
