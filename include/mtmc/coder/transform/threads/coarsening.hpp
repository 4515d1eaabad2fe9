#pragma once
/// Coarsening of a GPU's threads: each adds up several results next to each other along an axis, which share
/// what is loaded for all of them.

#include <mtmc/analysis/flow/type_facts.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/covering_guard.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/local_values.hpp>
#include <mtmc/coder/transform/threads/sum.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// An axis along which threads may do several results each.
struct CoarseAxis {
  ThreadIndex index{};
  const SyntaxNode* declaration = nullptr;
  std::string limit{};    ///< number of results along it, as the function says it
  std::size_t shared = 0; ///< loads in the loop that do not depend on it
  std::size_t others = 0; ///< those that do
};

/// The statements of the block in which the sum is updated; empty where it stands alone.
[[nodiscard]] inline std::vector<const SyntaxNode*> beside_update(const ThreadSum& sum) {
  std::vector<const SyntaxNode*> found;
  walk(*sum.loop->node, [&](const SyntaxNode& node) {
    const auto is_update = [&](const SyntaxNode& child) { return &child == sum.update; };
    if (node.kind == NodeKind::block && std::any_of(node.children.begin(), node.children.end(), is_update))
      for (const SyntaxNode& child : node.children) found.push_back(&child);
  });
  return found;
}

/// What is declared in front of the update, different for each result along an axis of one of these names, so
/// that each result declares it for itself. Throws `TransformDeclined` where another statement of the loop is
/// different for each result.
[[nodiscard]] inline std::vector<const SyntaxNode*> declared_for_each(const ThreadSum& sum,
                                                                      std::set<std::string> names) {
  const auto differs = [&](const SyntaxNode& node) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return uses_name(node, name); });
  };
  std::vector<const SyntaxNode*> moved{};
  for (const SyntaxNode* statement : beside_update(sum)) {
    if (statement == sum.update) break;
    if (statement->kind != NodeKind::declaration || !differs(*statement)) continue;
    moved.push_back(statement);
    for (const SyntaxNode& declarator : declarators(*statement)) names.insert(declarator.text);
  }
  walk(*sum.loop->node, [&](const SyntaxNode& node) {
    if (&node == sum.update || std::find(moved.begin(), moved.end(), &node) != moved.end()) return false;
    if ((node.kind == NodeKind::declaration || node.kind == NodeKind::expression_statement) && differs(node))
      throw TransformDeclined("line " + std::to_string(node.range.first_line) +
                              " is different for each result of a thread");
    return true;
  });
  return moved;
}

/// The axes but x (along which neighbours lie), the one that shares most first.
[[nodiscard]] inline std::vector<CoarseAxis> coarse_axes(const ThreadSum& sum) {
  const FunctionAnalysis& function = *sum.function;
  std::vector<CoarseAxis> axes;
  const auto add = [&](CoarseAxis axis) {
    for (const Access& access : function.accesses)
      if (access.loop != nullptr && access.loop->inside(sum.loop))
        ++(uses_name(*access.node, axis.index.name) ? axis.others : axis.shared);
    bool bounds = false;
    walk(*sum.loop->node, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::for_loop)
        bounds = bounds || uses_name(loop_condition(node), axis.index.name) ||
                 uses_name(loop_init(node), axis.index.name);
      if (node.kind == NodeKind::if_statement)
        bounds = bounds || uses_name(if_condition(node), axis.index.name);
    });
    for (const SyntaxNode* declaration : sum.prologue)
      bounds = bounds || uses_name(*declaration, axis.index.name);
    if (axis.shared > 0 && !axis.limit.empty() && !bounds) axes.push_back(std::move(axis));
  };
  const auto body = statements(function_body(*function.node));
  const auto formal = parameters(*function.node);
  for (const ThreadIndex& index : sum.indices) {
    if (index.axis == 0) continue;
    CoarseAxis axis{index, &body[index.statement]};
    for (const SyntaxNode& condition : sum.conditions)
      if (condition.kind == NodeKind::binary && condition.text == "<" &&
          is_name(left_operand(condition), index.name)) {
        axis.limit = print(right_operand(condition));
      } else if (uses_name(condition, index.name)) {
        axis.limit.clear();
        break;
      }
    add(std::move(axis));
  }
  for (const SyntaxNode* declaration : sum.before) {
    if (declarators(*declaration).size() != 1) continue;
    const SyntaxNode& declarator = declarators(*declaration).front();
    const SyntaxNode* const value = initial_value(declarator);
    if (value == nullptr || value->kind != NodeKind::member || !is_name(operand(*value), "blockIdx"))
      continue;
    const std::size_t number = value->text == ".z" ? 2 : value->text == ".y" ? 1 : 0;
    if (number == 0 || number >= sum.launch.line.grid.size()) continue;
    CoarseAxis axis{{declarator.text, 0, number}, declaration};
    for (std::size_t i = 0; i < formal.size(); ++i)
      if (sum.launch.line.arguments[i] == sum.launch.line.grid[number]) axis.limit = formal[i].text;
    for (const SyntaxNode* other : sum.before)
      if (other != declaration && uses_name(*other, declarator.text)) axis.limit.clear();
    for (const SyntaxNode& condition : sum.conditions)
      if (uses_name(condition, declarator.text)) axis.limit.clear();
    std::size_t uses = 0; // of the number of the block, which means something else then
    walk(*function.node, [&](const SyntaxNode& node) {
      uses += node.kind == NodeKind::member && node.text == value->text && is_name(operand(node), "blockIdx")
                  ? 1
                  : 0;
    });
    if (uses == 1) add(std::move(axis));
  }
  std::stable_sort(axes.begin(), axes.end(), [](const CoarseAxis& a, const CoarseAxis& b) {
    return a.shared * (b.others + 1) > b.shared * (a.others + 1);
  });
  return axes;
}

/// An axis and how many results of a thread lie along it.
struct CoarseStep {
  const CoarseAxis* axis = nullptr;
  std::int64_t each = 1;
  std::string first{};  ///< name of the number of a thread's first result along it
  std::string number{}; ///< name of what counts a thread's results along it
};

/// Ways to coarsen, the one expected to be best first: along two axes where there are two, since a tile of
/// results shares what is loaded in both directions.
[[nodiscard]] inline std::vector<std::vector<CoarseStep>> coarse_steps(const std::vector<CoarseAxis>& axes) {
  std::vector<std::vector<CoarseStep>> steps;
  if (axes.size() > 1)
    for (const auto& [a, b] : std::vector<std::pair<std::int64_t, std::int64_t>>{{4, 4}, {8, 4}, {2, 4}})
      steps.push_back({{&axes[0], a}, {&axes[1], b}});
  for (const std::int64_t each : {4, 8, 2})
    for (const CoarseAxis& axis : axes) steps.push_back({{&axis, each}});
  return steps;
}

/// Whether a variable of that name is an `int`.
[[nodiscard]] inline bool is_int_variable(const FunctionAnalysis& function, const std::string& name) {
  return std::any_of(function.variables.begin(), function.variables.end(), [&](const Variable& variable) {
    return variable.name == name && without_qualifiers(variable.type) == "int";
  });
}

/// Each thread adds up several results. Loads beyond the last result are those of the last one.
[[nodiscard]] inline SyntaxNode coarsen_threads(const TransformRequest& request) {
  ThreadSum sum(request);
  require_covering(request, sum.launch);
  if (!sum.dependent.empty())
    throw TransformDeclined("line " + std::to_string(sum.dependent.front()->range.first_line) +
                            " depends on the number of a thread");
  const auto axes = coarse_axes(sum);
  if (axes.empty()) throw TransformDeclined("results share no load along an axis but x");
  auto steps = choose_variant(coarse_steps(axes), request.variant);

  SyntaxNode tree = request.tree;
  const std::string sums = fresh_name(tree, sum.sum.scalar->name + "s");
  std::string heads, ends, declared = sums, element = sums, clamped, exact, inside;
  for (CoarseStep& step : steps) {
    const std::string& name = step.axis->index.name;
    const std::string count = std::to_string(step.each);
    step.first = fresh_name(tree, "first_" + name);
    step.number = fresh_name(tree, "each_" + name);
    heads +=
        "for (int " + step.number + " = 0; " + step.number + " < " + count + "; ++" + step.number + ") {\n";
    ends += "}\n";
    declared += '[' + count + ']';
    element += '[' + step.number + ']';
    const std::string type = without_qualifiers(step.axis->declaration->type);
    const std::string number = step.first + " + " + step.number, last = step.axis->limit + " - 1";
    clamped += "const " + type + ' ' + name + " = ";
    // types that differ have no common minimum everywhere
    if (type == "int" && is_int_variable(*sum.function, step.axis->limit))
      clamped += "min(" + number + ", " + last + ");\n";
    else
      clamped += number + " < " + step.axis->limit + " ? " + number + " : " + last + ";\n";
    exact += "const " + type + ' ' + name + " = " + number + ";\n";
    inside += (inside.empty() ? "" : " && ") + name + " < " + step.axis->limit;
  }
  const auto for_each = [&](const std::string& body) { return heads + body + ends; };
  const auto coarse = [&](const SyntaxNode& node) {
    return std::find_if(steps.begin(), steps.end(),
                        [&](const CoarseStep& step) { return step.axis->declaration == &node; });
  };

  std::string code;
  const auto body = statements(function_body(*sum.function->node));
  for (const SyntaxNode& statement : body) {
    const bool index = std::any_of(sum.indices.begin(), sum.indices.end(), [&](const ThreadIndex& one) {
      return &statement == &body[one.statement];
    });
    const bool shared = std::find(sum.before.begin(), sum.before.end(), &statement) != sum.before.end();
    if (!index && !shared) continue;
    SyntaxNode declaration = statement;
    if (const auto step = coarse(statement); step != steps.end()) {
      SyntaxNode& declarator = declarators(declaration).front();
      declarator.text = step->first;
      SyntaxNode& value = initializer(declarator)->children.front();
      value = make_binary("*", value, make_integer(step->each));
    }
    code += print(declaration) + '\n';
  }
  std::vector<std::string> outside;
  for (const CoarseStep& step : steps) outside.push_back(step.first + " < " + step.axis->limit);
  for (const SyntaxNode& condition : sum.conditions)
    if (std::none_of(steps.begin(), steps.end(),
                     [&](const CoarseStep& step) { return uses_name(condition, step.axis->index.name); }))
      outside.push_back(print(condition));
  code += "if (" + joined(outside, " && ") + ") {\n";
  for (const SyntaxNode* declaration : sum.prologue) code += print(*declaration) + '\n';
  code += sum.sum.type + ' ' + declared + ";\n" + for_each(element + " = " + sum.start + ";\n");
  std::set<std::string> names;
  for (const CoarseStep& step : steps) names.insert(step.axis->index.name);
  const auto moved = declared_for_each(sum, names);
  for (const SyntaxNode* declaration : moved) clamped += print(*declaration) + '\n';
  SyntaxNode loop = *sum.loop->node;
  walk(loop, [&](SyntaxNode& node) {
    std::erase_if(node.children, [&](const SyntaxNode& child) {
      return std::any_of(moved.begin(), moved.end(), [&](const SyntaxNode* declaration) {
        return structurally_equal(child, *declaration);
      });
    });
    if (node.kind != NodeKind::expression_statement || !structurally_equal(node, *sum.update)) return true;
    node =
        std::move(parse_statements(for_each(clamped + element + " += " + print(sum.term()) + ";\n")).front());
    return false;
  });
  code += print(loop) + '\n';
  std::string result = exact + "if (" + inside + ") {\n" + sum.sum.type + ' ' + sum.sum.scalar->name + " = " +
                       sum.whole(element) + ";\n";
  for (const SyntaxNode* statement : sum.epilogue) result += print(*statement) + '\n';
  code += for_each(result + "}\n") + "}\n";

  sum.launch.body_in(tree).children = parse_statements(code);
  LaunchLine& line = sum.launch.line;
  auto grid = line.grid;
  for (const CoarseStep& step : steps) {
    const std::size_t along = step.axis->index.axis;
    const std::int64_t threads =
        along < line.block.size() ? integer_literal(line.block[along]).value_or(1) : 1;
    grid[along] = "ceil_div(" + sum.launch.threads(along) + ", " + std::to_string(threads * step.each) + ')';
  }
  line.grid = std::move(grid);
  tree.children[sum.launch.line_at].text = launch_line_text(line);
  return tree;
}

/// Gives each thread of a launch without loops several elements, a block's width apart: neighbours go on
/// touching neighbouring elements, and several loads are on their way at once.
[[nodiscard]] inline SyntaxNode coarsen_elements(const TransformRequest& request) {
  ThreadLaunch launch = thread_launch(request);
  const FunctionAnalysis& function = *launch.function;
  if (!function.opaque.empty() || !function.barriers.empty())
    throw TransformDeclined("the threads wait for each other, or do what is not understood");
  for (const Array& array : function.arrays)
    if (array.place == ArrayPlace::block)
      throw TransformDeclined("the threads of a block share " + array.name);
  if (!has_flat_blocks(launch))
    throw TransformDeclined("the blocks of " + launch.line.entry + " have several axes");
  const ThreadIndex index = thread_index(launch);
  const GuardedBody work = guarded_body(launch, index);
  require_covering(request, launch);
  if (!work.guarded || !work.nested)
    throw TransformDeclined("no branch leaves out threads beyond the last element");
  const auto body = statements(function_body(*function.node));
  for (const SyntaxNode& statement : body)
    walk(statement, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::return_statement) throw TransformDeclined("a branch ends the thread");
    });
  for (std::size_t i = 0; i < index.statement; ++i)
    if (body[i].kind != NodeKind::declaration)
      throw TransformDeclined("line " + std::to_string(body[i].range.first_line) +
                              " does something before threads have their numbers");
  static const std::vector<std::int64_t> counts{4, 2, 8};
  const std::int64_t each = choose_variant(counts, request.variant);

  SyntaxNode tree = request.tree;
  const std::string first = launch.fresh_local(tree, "first_" + index.name);
  const std::string number = launch.fresh_local(tree, "each");
  const std::string& width = launch.line.block.front();
  const SyntaxNode& declaration = body[index.statement];
  const bool wide = type_facts(declaration.type).size == 8;
  std::string code = declaration.type + ' ' + first + " = " +
                     (wide ? '(' + declaration.type + ')' : std::string{}) + "blockIdx.x * " +
                     std::to_string(each * *integer_literal(width)) +
                     " + threadIdx.x;\n#pragma unroll\nfor (int " + number + " = 0; " + number + " < " +
                     std::to_string(each) + "; ++" + number + ") {\n" + declaration.type + ' ' + index.name +
                     " = " + first + " + " + number + " * " + width + ";\n";
  for (std::size_t i = index.statement + 1; i < body.size(); ++i) code += print(body[i]) + '\n';
  auto& children = launch.body_in(tree).children;
  children.erase(children.begin() + static_cast<std::ptrdiff_t>(index.statement), children.end());
  for (SyntaxNode& statement : parse_statements(code + "}\n")) children.push_back(std::move(statement));
  LaunchLine& line = launch.line;
  line.grid[0] = "ceil_div(" + launch.threads() + ", " + std::to_string(each * *integer_literal(width)) + ')';
  tree.children[launch.line_at].text = launch_line_text(line);
  return tree;
}

} // namespace mtmc::detail
