#pragma once
/// Columns of a GPU's launch: what one thread does alone is done by threads above each other, while
/// neighbours along x go on reading neighbouring elements.

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
#include <mtmc/coder/transform/threads/reductions.hpp>
#include <mtmc/coder/transform/threads/thread_rows.hpp>
#include <mtmc/coder/transform/threads/transposition.hpp>
#include <mtmc/coder/transform/threads/warp_lanes.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/coder/transform/unrolling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A function by which threads above each other in a block combine a value that each of them has.
struct ColumnReduction {
  ReductionOperation operation = ReductionOperation::sum;
  std::string type{};
  std::string name{};

  /// The definition.
  [[nodiscard]] std::string text() const {
    const std::string what = operation == ReductionOperation::sum       ? "Sum"
                             : operation == ReductionOperation::product ? "Product"
                             : operation == ReductionOperation::minimum ? "Least"
                                                                        : "Largest";
    return "// " + what +
           " of the values of the block's threads with one number along x, for each of them.\n"
           "__device__ " +
           type + ' ' + name + '(' + type + " value) {\n  __shared__ " + type +
           " parts[1024];\n"
           "  __syncthreads();\n"
           "  parts[threadIdx.y * blockDim.x + threadIdx.x] = value;\n"
           "  __syncthreads();\n"
           "  value = parts[threadIdx.x];\n"
           "  for (int y = 1; y < blockDim.y; ++y) {\n    value = " +
           combined_values(operation, type, "value", "parts[y * blockDim.x + threadIdx.x]") +
           ";\n  }\n  return value;\n}\n";
  }
  /// Without a number: "sum_of_column".
  [[nodiscard]] std::string base() const {
    std::string text = operation == ReductionOperation::sum       ? "sum"
                       : operation == ReductionOperation::product ? "product"
                       : operation == ReductionOperation::minimum ? "least"
                                                                  : "largest";
    text += "_of_column";
    if (type != "float") text += '_' + type.substr(0, type.find(' '));
    return text;
  }
};

/// Writes the body of a thread anew so that threads above each other share it. What stands outside of loops
/// all of them compute; only one stores.
class ColumnSpreader {
public:
  /// Throws `TransformDeclined` with the reason where the threads do not each have a column.
  explicit ColumnSpreader(const TransformRequest& request)
      : request_(request), launch_(thread_launch(request)), function_(*launch_.function) {
    require_understood();
    if (launch_.line.block.size() != 1)
      throw TransformDeclined("the blocks of " + function_.name + " have not one axis");
    const auto indices = thread_indices(launch_);
    if (indices.size() != 1) throw TransformDeclined("no variable numbers the threads of " + function_.name);
    rows_ = thread_rows(request, launch_, indices.front());
    lane_ = fresh_name(request.tree, "lane");
    inside_ = fresh_name(request.tree, "inside");
    thread_ = fresh_name(request.tree, rows_.index.name + "_thread");
  }

  /// Neighbouring threads read neighbouring elements in their loops, and those are not neighbours in the
  /// loops.
  [[nodiscard]] bool lies_along_memory() const {
    bool across = false;
    const WarpLanes lanes(request_, launch_);
    for (const Access& access : function_.accesses) {
      if (access.loop == nullptr) continue;
      if (is_neighbour_along(access, rows_.index) || lanes.are_neighbours(access)) {
        across = true;
        continue;
      }
      if (access.subscripts.size() != 1 || !access.subscripts.front().defined()) continue;
      for (const LoopInfo* loop = access.loop; loop != nullptr; loop = loop->parent)
        if (loop->symbol != nullptr &&
            expanded(access.subscripts.front()).coefficient_of(loop->symbol).constant() == 1)
          for (const auto& term : access.subscripts.front().terms())
            for (std::size_t i = 0; i < term.degree; ++i)
              if (term.factors[i]->name == rows_.index.name) return false;
    }
    return across;
  }

  /// How many threads share a column, what is expected to be best first.
  [[nodiscard]] std::vector<std::int64_t> shapes() const {
    const std::int64_t units = std::max(request_.device.compute_units, 1);
    const std::int64_t columns = threads_at_main_size(request_, launch_).value_or(1024);
    std::int64_t lanes = 8;
    while (lanes < 32 && columns * lanes < 1024 * units) lanes *= 2;
    std::vector<std::int64_t> result{lanes};
    for (const std::int64_t other : {32, 16, 8, 4})
      if (other != lanes) result.push_back(other);
    return result;
  }

  /// The tree with columns shared by `lanes` threads each.
  [[nodiscard]] SyntaxNode write(std::int64_t lanes) {
    lanes_ = lanes;
    SyntaxNode tree = request_.tree;
    std::vector<SyntaxNode> work;
    for (const SyntaxNode* statement : rows_.work) add(*statement, work);
    if (!any_) throw TransformDeclined("a thread has no loop that others could share");
    std::vector<SyntaxNode> body = parse_statements(
        "const int " + lane_ + " = threadIdx.y;\nconst " + rows_.type + ' ' + thread_ +
        " = blockIdx.x * 32 + threadIdx.x;\nconst bool " + inside_ + " = " +
        print(make_binary("<", make_name(thread_), rows_.limit)) +
        ";\n// Threads beyond the last column do the last one's work, and store nothing.\nconst " +
        rows_.type + ' ' + rows_.index.name + " = " + inside_ + " ? " + thread_ + " : " +
        print(make_binary("-", rows_.limit, make_integer(1))) + ";\n");
    for (const SyntaxNode* declaration : rows_.before) body.push_back(*declaration);
    for (SyntaxNode& statement : work) body.push_back(std::move(statement));
    SyntaxNode& function = *node_at(tree, launch_.function_at);
    function.type = without_launch_bounds(function.type);
    function_body(function).children = std::move(body);
    LaunchLine& line = launch_.line;
    line.grid[0] = launch_.threads_divided_by(32);
    line.block = {"32", std::to_string(lanes_)};
    tree.children[launch_.line_at].text = launch_line_text(line);
    for (const ColumnReduction& one : used_)
      if (find_function(tree, one.name) == nullptr) launch_.add_function(tree, one.text());
    return tree;
  }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }

  void require_understood() const {
    if (!function_.opaque.empty())
      decline("line " + std::to_string(function_.opaque.front().line) + " contains " +
              function_.opaque.front().reason);
    if (!function_.barriers.empty()) decline("the threads wait for each other already");
    for (const Array& array : function_.arrays) {
      if (array.unknown) decline("it is not known what " + array.name + " points to");
      if (array.place == ArrayPlace::own && array.variable->loop == nullptr)
        decline("each thread has an array of its own, " + array.name);
    }
  }

  void add(const SyntaxNode& statement, std::vector<SyntaxNode>& result) {
    switch (statement.kind) {
    case NodeKind::declaration:
    case NodeKind::comment:
    case NodeKind::empty:
      wait_for(statement, result);
      result.push_back(statement);
      return;
    case NodeKind::pragma:
      return;
    case NodeKind::for_loop:
      add_loop(statement, result);
      return;
    case NodeKind::expression_statement:
    case NodeKind::if_statement:
    case NodeKind::block:
      add_plain(statement, result);
      return;
    default:
      decline("line " + std::to_string(statement.range.first_line) +
              " is a statement that threads cannot share");
    }
  }

  /// A statement without loops: all threads do it, or, where it stores, the first one of the column.
  void add_plain(const SyntaxNode& statement, std::vector<SyntaxNode>& result) {
    walk(statement, [&](const SyntaxNode& node) {
      if (is_loop(node.kind)) decline("a loop stands in a branch");
      if (node.kind == NodeKind::return_statement) decline("a branch of a column ends the thread");
    });
    wait_for(statement, result);
    if (!stores(statement)) {
      result.push_back(statement);
      return;
    }
    const auto inside = nodes_of(statement);
    for (const ScalarUse& use : function_.scalar_uses)
      if (use.write && inside.contains(use.node))
        decline("line " + std::to_string(statement.range.first_line) +
                " stores an element and changes a variable that all threads need");
    result.push_back(
        guarded(make_binary("&&", make_binary("==", make_name(lane_), make_integer(0)), make_name(inside_)),
                statement));
  }
  [[nodiscard]] static SyntaxNode guarded(SyntaxNode condition, SyntaxNode statement) {
    const auto before = std::exchange(statement.leading_trivia, {});
    const auto after = std::exchange(statement.trailing_trivia, {});
    SyntaxNode branch = make_if(std::move(condition), std::move(statement));
    branch.leading_trivia = before;
    branch.trailing_trivia = after;
    return branch;
  }

  void add_loop(const SyntaxNode& statement, std::vector<SyntaxNode>& result) {
    const LoopInfo* const loop = function_.find_loop(statement);
    if (loop == nullptr) decline("a loop was not analysed");
    const bool parallel = loop_is_parallel(*loop).legal;
    const Legality reduction = parallel ? Legality{} : loop_is_reduction(*loop);
    if (!parallel && !reduction) decline(reduction.reason);
    for (const ScalarFacts& scalar : classify_scalars(*loop))
      if (scalar.role == ScalarRole::privatizable && scalar.live_out)
        decline("the last value of " + scalar.variable->name + " in " + loop_name(*loop) +
                " is used after it");
    wait_for(statement, result);
    const CountingLoop head = head_of(*loop);
    SyntaxNode body = loop_body(statement);
    std::vector<SyntaxNode> ends;
    if (!parallel)
      for (const Reduction& one : scalar_reductions(*loop)) share(*loop, one, body, result, ends);
    SyntaxNode lane =
        head.step == 1 ? make_name(lane_) : make_binary("*", make_integer(head.step), make_name(lane_));
    SyntaxNode first =
        literal_value(head.first) == 0 ? std::move(lane) : make_binary("+", head.first, std::move(lane));
    SyntaxNode shared = make_counting_loop(head.type, head.variable, std::move(first), head.bound,
                                           make_integer(head.step * lanes_), std::move(body));
    if (stores(statement)) {
      shared = guarded(make_name(inside_), std::move(shared));
      if (!ends.empty()) decline(loop_name(*loop) + " stores and reduces");
    }
    shared.leading_trivia = statement.leading_trivia;
    shared.trailing_trivia = statement.trailing_trivia;
    result.push_back(std::move(shared));
    for (SyntaxNode& end : ends) result.push_back(std::move(end));
    if (!ends.empty()) open_.clear(); // threads have waited
    any_ = true;
  }

  /// Each thread reduces for itself; then the parts of the column are combined, and all have the result.
  void share(const LoopInfo& loop, const Reduction& reduction, SyntaxNode& body,
             std::vector<SyntaxNode>& before, std::vector<SyntaxNode>& after) {
    const std::string& name = reduction.scalar->name;
    const std::string type(trim(reduction.type));
    const TypeFacts facts = type_facts(type);
    if (facts.pointer || facts.size < 4 || (!facts.floating && !facts.integer))
      decline("threads cannot combine values of the type " + type);
    const std::string function = function_for({reduction.operation, type});
    const auto all = [&](const std::string& value) {
      return make_call(function, node_list(make_name(value)));
    };
    const std::string identity = identity_of_reduction(reduction);
    if (identity.empty() || starts_as_nothing(*reduction.scalar, loop, identity)) {
      after.push_back(make_assignment(make_name(name), "=", all(name)));
      return;
    }
    const std::string part = fresh_name(request_.tree, name + "_part");
    before.push_back(make_declaration(type, part, make_literal(identity)));
    substitute(body, name, make_name(part));
    after.push_back(make_assignment(make_name(name),
                                    reduction.operation == ReductionOperation::sum ? "+=" : "*=", all(part)));
  }
  [[nodiscard]] std::string function_for(ColumnReduction wanted) {
    for (const ColumnReduction& known : used_)
      if (known.operation == wanted.operation && known.type == wanted.type) return known.name;
    wanted.name = wanted.base();
    if (const SyntaxNode* const there = find_function(request_.tree, wanted.name)) {
      const SyntaxNode text = parse(wanted.text());
      const SyntaxNode* const own = find_function(text, wanted.name);
      if (own == nullptr || !structurally_equal(*there, *own))
        wanted.name = fresh_name(request_.tree, wanted.name);
    } else {
      wanted.name = fresh_name(request_.tree, wanted.name);
    }
    used_.push_back(wanted);
    return wanted.name;
  }
  /// Nothing is written to the variable before the loop but its first value, which changes nothing.
  [[nodiscard]] bool starts_as_nothing(const Variable& variable, const LoopInfo& loop,
                                       const std::string& identity) const {
    if (variable.declaration == nullptr || variable.loop != nullptr) return false;
    const SyntaxNode* const value = initial_value(*variable.declaration);
    if (value == nullptr || value->kind != NodeKind::literal ||
        (value->text != identity && value->text != "0" && value->text != "0.f" && value->text != "0.0"))
      return false;
    if (identity.front() != value->text.front()) return false;
    return std::none_of(variable.uses.begin(), variable.uses.end(), [&](std::size_t at) {
      const ScalarUse& use = function_.scalar_uses[at];
      return use.order < loop.order.first && use.write && use.node != variable.declaration;
    });
  }

  [[nodiscard]] static std::set<const SyntaxNode*> nodes_of(const SyntaxNode& statement) {
    std::set<const SyntaxNode*> nodes;
    walk(statement, [&](const SyntaxNode& node) { nodes.insert(&node); });
    return nodes;
  }
  /// The accesses of memory that other threads see.
  [[nodiscard]] std::vector<const Access*> accesses_in(const SyntaxNode& statement) const {
    const auto nodes = nodes_of(statement);
    std::vector<const Access*> found;
    for (const Access& access : function_.accesses)
      if (nodes.contains(access.node) && access.array->place == ArrayPlace::common) found.push_back(&access);
    return found;
  }
  [[nodiscard]] bool stores(const SyntaxNode& statement) const {
    const auto accesses = accesses_in(statement);
    return std::any_of(accesses.begin(), accesses.end(), [](const Access* access) { return access->write; });
  }
  /// Puts a barrier in front of a statement that touches what others of the column wrote before, or writes
  /// what they read.
  void wait_for(const SyntaxNode& statement, std::vector<SyntaxNode>& result) {
    const auto accesses = accesses_in(statement);
    const bool conflict = std::any_of(accesses.begin(), accesses.end(), [&](const Access* access) {
      return std::any_of(open_.begin(), open_.end(), [&](const Access* earlier) {
        return earlier->array == access->array && (earlier->write || access->write);
      });
    });
    if (conflict) {
      result.push_back(make_expression_statement(make_call("__syncthreads", {})));
      open_.clear();
    }
    open_.insert(open_.end(), accesses.begin(), accesses.end());
  }

  const TransformRequest& request_;
  ThreadLaunch launch_;
  const FunctionAnalysis& function_;
  ThreadRows rows_{};
  std::int64_t lanes_ = 8;
  std::string lane_, inside_, thread_;
  std::vector<ColumnReduction> used_{};
  std::vector<const Access*> open_{}; ///< since threads waited last
  bool any_ = false;
};

} // namespace mtmc::detail
