#pragma once
/// Rows of a GPU's launch: what one thread does alone is done by a warp or by a block.

#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/threads/thread_language.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/covering_guard.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/reductions.hpp>
#include <mtmc/coder/transform/threads/row_loops.hpp>
#include <mtmc/coder/transform/threads/row_pairs.hpp>
#include <mtmc/coder/transform/threads/row_recurrences.hpp>
#include <mtmc/coder/transform/threads/row_scans.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/coder/transform/unrolling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// How many threads share a row, and how many rows a block has.
struct RowShape {
  std::int64_t threads = 256; ///< of a row: 32, or all of a block
  std::int64_t rows = 1;      ///< of a block
  bool shuffles = true;       ///< threads of a warp exchange registers

  [[nodiscard]] bool is_warp() const noexcept { return threads == 32; }
};

/// Ways to share rows, the one expected to be best first: as many threads as have eight elements each, but
/// blocks of more than 512 only where there are too few rows to fill the device with others, since all
/// threads of a block wait at its barriers. Warps, which have no barriers, come first where they fill the
/// device, and second where enough of them have their loads on the way.
[[nodiscard]] inline std::vector<RowShape>
row_shapes(std::optional<std::int64_t> iterations, std::optional<std::int64_t> rows, const Device& device) {
  constexpr std::int64_t each = 8;
  constexpr std::int64_t warps_to_fill = 32, warps_to_load = 8, blocks_to_fill = 2; // of a multiprocessor
  const std::int64_t length = iterations.value_or(1024);
  const std::int64_t count = rows.value_or(0), units = std::max(device.compute_units, 1);
  const std::int64_t most = count >= blocks_to_fill * units ? 512 : 1024;
  std::int64_t threads = 128;
  while (threads < most && threads * each < length) threads *= 2;
  std::vector<RowShape> shapes{{threads, 1}};
  for (const std::int64_t other : {threads * 2, threads / 2, threads * 4})
    if (other >= 64 && other <= 1024) shapes.push_back({other, 1});
  const bool is_short = length <= 1024;
  const std::ptrdiff_t place = is_short && count >= warps_to_fill * units   ? 0
                               : is_short && count >= warps_to_load * units ? 1
                                                                            : std::ssize(shapes);
  shapes.insert(shapes.begin() + place, RowShape{32, 4});
  return shapes;
}

/// Writes the body of a thread anew so that the threads of a row share it. What stands outside of loops every
/// thread computes for itself; only one of them stores.
class RowSpreader {
public:
  RowSpreader(SyntaxNode& tree, const FunctionAnalysis& function, const RowLoops& loops,
              const RowShape& shape, std::string lane)
      : tree_(tree), function_(function), loops_(loops), shape_(shape), lane_(std::move(lane)) {}

  /// The statements as the threads of a row execute them together. Throws `TransformDeclined`.
  [[nodiscard]] std::vector<SyntaxNode> spread(std::span<const SyntaxNode> body) {
    std::vector<SyntaxNode> result;
    for (const SyntaxNode& statement : body) add(statement, result);
    return result;
  }
  /// The threads share this loop's recurrence, each of them `each` neighbouring iterations at a time.
  void scan(const LoopInfo& loop, std::int64_t each) {
    scanned_ = &loop;
    each_ = each;
  }
  /// Functions of scans, in the order of their first use.
  [[nodiscard]] const std::vector<ThreadScan>& scans() const noexcept { return scans_; }
  /// Whether any loop is shared.
  [[nodiscard]] bool any() const noexcept { return any_; }
  /// Functions that the statements call, in the order of their first use.
  [[nodiscard]] const std::vector<ThreadReduction>& reductions() const noexcept { return used_; }

private:
  void add(const SyntaxNode& statement, std::vector<SyntaxNode>& result) {
    switch (statement.kind) {
    case NodeKind::declaration:
    case NodeKind::comment:
    case NodeKind::empty:
    case NodeKind::pragma:
      wait_for(statement, nullptr, result);
      result.push_back(statement);
      return;
    case NodeKind::for_loop:
      add_loop(statement, result);
      return;
    case NodeKind::expression_statement:
      add_plain(statement, result);
      return;
    case NodeKind::if_statement:
      add_branch(statement, result);
      return;
    case NodeKind::block:
      add_block(statement, result);
      return;
    case NodeKind::return_statement: // all threads of the row are here
      result.push_back(statement);
      return;
    default:
      throw TransformDeclined("line " + std::to_string(statement.range.first_line) +
                              " is a statement that threads cannot share");
    }
  }

  /// Whether the threads have more to do in a statement than to execute it, all of them or one.
  [[nodiscard]] static bool is_divided(const SyntaxNode& statement) {
    bool found = false;
    walk(statement, [&](const SyntaxNode& node) {
      found = found || is_loop(node.kind) || node.kind == NodeKind::return_statement;
    });
    return found;
  }

  void add_block(const SyntaxNode& statement, std::vector<SyntaxNode>& result) {
    if (!is_divided(statement) && !stores_and_assigns(statement)) return add_plain(statement, result);
    SyntaxNode block = statement;
    block.children = spread(statement.children);
    result.push_back(std::move(block));
  }

  /// A branch that all threads of the row take, or none: what decides is the same for all of them.
  void add_branch(const SyntaxNode& statement, std::vector<SyntaxNode>& result) {
    if (!is_divided(statement) && !stores_and_assigns(statement)) return add_plain(statement, result);
    wait_for(if_condition(statement), nullptr, result);
    SyntaxNode branch = statement;
    const auto before = open_;
    spread_branch(then_branch(branch), then_branch(statement));
    auto after = std::exchange(open_, before);
    if (else_branch(branch) != nullptr) spread_branch(*else_branch(branch), *else_branch(statement));
    open_.insert(open_.end(), after.begin(), after.end());
    result.push_back(std::move(branch));
  }
  void spread_branch(SyntaxNode& branch, const SyntaxNode& statement) {
    auto inside = spread(statements(statement));
    if (statement.kind == NodeKind::block)
      branch.children = std::move(inside);
    else
      branch = inside.size() == 1 ? std::move(inside.front()) : make_block(std::move(inside));
  }
  [[nodiscard]] bool stores_and_assigns(const SyntaxNode& statement) const {
    const auto accesses = accesses_in(statement);
    return assigns_scalars(statement) &&
           std::any_of(accesses.begin(), accesses.end(), [](const Access* access) { return access->write; });
  }

  /// A statement without loops: all threads do it, or, where it stores, one.
  void add_plain(const SyntaxNode& statement, std::vector<SyntaxNode>& result) {
    const auto accesses = accesses_in(statement);
    const bool stores =
        std::any_of(accesses.begin(), accesses.end(), [](const Access* access) { return access->write; });
    wait_for(statement, nullptr, result);
    if (!stores) {
      result.push_back(statement);
      return;
    }
    if (assigns_scalars(statement))
      throw TransformDeclined("line " + std::to_string(statement.range.first_line) +
                              " stores an element and changes a variable that all threads need");
    SyntaxNode stored = statement;
    SyntaxNode guarded;
    const auto before = std::exchange(stored.leading_trivia, {});
    const auto after = std::exchange(stored.trailing_trivia, {});
    guarded = make_if(make_binary("==", make_name(lane_), make_integer(0)), std::move(stored));
    guarded.leading_trivia = before;
    guarded.trailing_trivia = after;
    result.push_back(std::move(guarded));
  }

  void add_loop(const SyntaxNode& statement, std::vector<SyntaxNode>& result) {
    const LoopInfo* const loop = function_.find_loop(statement);
    if (loop == nullptr) throw TransformDeclined("a loop was not analysed");
    if (loop == scanned_) return add_scan(*loop, statement, result);
    const LoopToShare shared = loops_.of(*loop);
    if (!shared.carried.legality) throw TransformDeclined(shared.carried.legality.reason);
    if (thread_index_is_used(*shared.loop))
      throw TransformDeclined(loop_name(*shared.loop) + " is shared already");
    wait_for(statement, shared.loop, result);
    SyntaxNode outer = statement;
    std::vector<SyntaxNode> ends;
    for (const Reduction& one : shared.carried.single) share_reduction(*loop, one, outer, result, ends);
    const RowNames names = names_for(*loop);
    for (const JointReduction& joint : shared.carried.joint)
      JointSharing(*shared.loop, joint, names).share(loop_body(outer), result, ends);
    share_head(*shared.loop, inner_loop(outer, statement, *shared.loop->node), lane_, shape_.threads);
    result.push_back(std::move(outer));
    for (SyntaxNode& end : ends) result.push_back(std::move(end));
    any_ = true;
  }

  void add_scan(const LoopInfo& loop, const SyntaxNode& statement, std::vector<SyntaxNode>& result) {
    const LoopScan scan = loop_scan(loop);
    if (!scan.legality) throw TransformDeclined(scan.legality.reason);
    if (thread_index_is_used(loop)) throw TransformDeclined(loop_name(loop) + " is shared already");
    wait_for(statement, nullptr, result);
    const RowNames names = names_for(loop);
    const auto function = [this](ThreadScan kind) {
      for (const ThreadScan& known : scans_)
        if (known.same_as(kind)) return known.name;
      give_name(tree_, kind);
      scans_.push_back(kind);
      return kind.name;
    };
    result.push_back(
        ScanSharing(loop, scan, names, function, lane_, {shape_.threads, each_, shape_.is_warp()})
            .share(statement));
    any_ = true;
  }

  /// The copy of a loop in the copy of the one around it.
  [[nodiscard]] static SyntaxNode& inner_loop(SyntaxNode& copy, const SyntaxNode& statement,
                                              const SyntaxNode& loop) {
    if (&statement == &loop) return copy;
    // Statements may stand in front of it now, but it is the only loop there.
    for (SyntaxNode& child : statements(loop_body(copy)))
      if (child.kind == NodeKind::for_loop)
        for (const SyntaxNode& original : statements(loop_body(statement)))
          if (original.kind == NodeKind::for_loop) return inner_loop(child, original, loop);
    throw TransformDeclined("a loop was not found again");
  }

  /// Names and functions for what is reduced by a loop.
  [[nodiscard]] RowNames names_for(const LoopInfo& loop) {
    RowNames names;
    names.fresh = [this](const std::string& base) { return new_name(base); };
    names.function = [this](ReductionOperation operation, const std::string& type) {
      Reduction reduction;
      reduction.operation = operation;
      reduction.type = type;
      return function_of(reduction);
    };
    names.starts_with = [this, &loop](const Variable& variable, std::string_view value) {
      return starts_with_identity(variable, loop, std::string(value));
    };
    return names;
  }
  /// A name that neither the file nor the new statements have.
  [[nodiscard]] std::string new_name(const std::string& base) {
    std::string name = fresh_name(tree_, base);
    for (int i = 2; names_.contains(name); ++i) name = fresh_name(tree_, base + '_' + std::to_string(i));
    names_.insert(name);
    return name;
  }
  [[nodiscard]] std::string function_of(const Reduction& reduction) {
    auto kind = thread_reduction(reduction, shape_.is_warp());
    if (!kind) throw TransformDeclined("threads cannot combine values of the type " + reduction.type);
    kind->shuffles = shape_.shuffles;
    kind->threads = shape_.threads;
    return function_for(*kind);
  }

  /// Each thread reduces for itself; then the parts of all are combined, and all have the result.
  void share_reduction(const LoopInfo& loop, const Reduction& reduction, SyntaxNode& statement,
                       std::vector<SyntaxNode>& before, std::vector<SyntaxNode>& after) {
    const std::string& name = reduction.scalar->name;
    const std::string function = function_of(reduction);
    const auto all = [&](const std::string& value) {
      return make_call(function, node_list(make_name(value)));
    };
    const std::string identity = identity_of_reduction(reduction);
    // The extremum of what was there before is found once for each thread; a sum may count it only once.
    if (identity.empty() || starts_with_identity(*reduction.scalar, loop, identity)) {
      after.push_back(make_assignment(make_name(name), "=", all(name)));
      return;
    }
    const std::string part = new_name(name + "_part");
    before.push_back(make_declaration(reduction.type, part, make_literal(identity)));
    substitute(loop_body(statement), name, make_name(part));
    after.push_back(combine(reduction, make_name(name), all(part)));
  }

  /// The name of the function that combines, which is added to the file where it is not there yet.
  [[nodiscard]] std::string function_for(ThreadReduction kind) {
    for (const ThreadReduction& known : used_)
      if (known.same_as(kind)) return known.name;
    give_name(tree_, kind);
    used_.push_back(kind);
    return kind.name;
  }

  /// Nothing is written to the variable before the loop but its first value, which changes nothing.
  [[nodiscard]] bool starts_with_identity(const Variable& variable, const LoopInfo& loop,
                                          const std::string& identity) const {
    if (variable.declaration == nullptr || variable.loop != nullptr) return false;
    const SyntaxNode* const value = initial_value(*variable.declaration);
    if (value == nullptr || value->kind != NodeKind::literal || !same_number(value->text, identity))
      return false;
    return std::none_of(variable.uses.begin(), variable.uses.end(), [&](std::size_t at) {
      const ScalarUse& use = function_.scalar_uses[at];
      return use.order < loop.order.first && use.write && use.node != variable.declaration;
    });
  }
  [[nodiscard]] static bool same_number(std::string_view a, std::string_view b) {
    const auto number = [](std::string_view text) {
      while (!text.empty() && (text.back() == 'f' || text.back() == 'F')) text.remove_suffix(1);
      if (text.find('.') != std::string_view::npos)
        while (text.ends_with('0')) text.remove_suffix(1);
      if (text.ends_with('.')) text.remove_suffix(1);
      return text;
    };
    return number(a) == number(b);
  }

  /// The accesses of memory that other threads see.
  [[nodiscard]] std::vector<const Access*> accesses_in(const SyntaxNode& statement) const {
    std::set<const SyntaxNode*> inside;
    walk(statement, [&](const SyntaxNode& node) { inside.insert(&node); });
    std::vector<const Access*> found;
    for (const Access& access : function_.accesses)
      if (inside.contains(access.node)) found.push_back(&access);
    return found;
  }
  [[nodiscard]] bool assigns_scalars(const SyntaxNode& statement) const {
    std::set<const SyntaxNode*> inside;
    walk(statement, [&](const SyntaxNode& node) { inside.insert(&node); });
    return std::any_of(function_.scalar_uses.begin(), function_.scalar_uses.end(),
                       [&](const ScalarUse& use) { return use.write && inside.contains(use.node); });
  }
  [[nodiscard]] static bool thread_index_is_used(const LoopInfo& loop) {
    return names_thread(*loop.start_expression) || names_thread(*loop.bound_expression);
  }

  /// Puts a barrier in front of a statement that touches what other threads of the row wrote before, or
  /// writes what they read.
  void wait_for(const SyntaxNode& statement, const LoopInfo* loop, std::vector<SyntaxNode>& result) {
    const auto accesses = accesses_in(statement);
    const bool conflict = std::any_of(accesses.begin(), accesses.end(), [&](const Access* access) {
      return std::any_of(open_.begin(), open_.end(), [&](const OpenAccess& earlier) {
        return earlier.access->array == access->array && (earlier.access->write || access->write) &&
               !by_the_same_thread(earlier, *access, loop);
      });
    });
    if (conflict) {
      result.push_back(
          make_expression_statement(make_call(shape_.is_warp() ? "__syncwarp" : "__syncthreads", {})));
      open_.clear();
    }
    for (const Access* access : accesses) open_.push_back({access, loop});
  }

  struct OpenAccess {
    const Access* access = nullptr;
    const LoopInfo* loop = nullptr; ///< the shared loop around it, or null
  };

  /// Both touch the element of their iteration, and equal iterations are done by the same thread.
  [[nodiscard]] static bool by_the_same_thread(const OpenAccess& earlier, const Access& access,
                                               const LoopInfo* loop) {
    if (loop == nullptr || earlier.loop == nullptr) return false;
    if (earlier.access->loop != earlier.loop || access.loop != loop) return false;
    if (loop->parent != nullptr || earlier.loop->parent != nullptr || names_locals(access)) return false;
    if (!structurally_equal(*earlier.loop->start_expression, *loop->start_expression) ||
        earlier.loop->step != loop->step)
      return false;
    SyntaxNode renamed = *earlier.access->node;
    substitute(renamed, earlier.loop->variable, make_name(loop->variable));
    return structurally_equal(renamed, *access.node);
  }

  /// A variable of the body decides which element it is: one of that name may have another value elsewhere.
  [[nodiscard]] static bool names_locals(const Access& access) {
    const auto& variables = access.loop->function->variables;
    return std::any_of(variables.begin(), variables.end(), [&](const Variable& variable) {
      if (variable.name == access.loop->variable || variable.array || !uses_name(*access.node, variable.name))
        return false;
      const auto& uses = access.loop->function->scalar_uses;
      return variable.loop != nullptr ||
             std::any_of(variable.uses.begin(), variable.uses.end(),
                         [&](std::size_t at) { return uses[at].write && uses[at].loop != nullptr; });
    });
  }

  SyntaxNode& tree_;
  const FunctionAnalysis& function_;
  const RowLoops& loops_;
  const RowShape shape_;
  const std::string lane_;
  std::vector<OpenAccess> open_{};
  std::vector<ThreadReduction> used_{};
  std::vector<ThreadScan> scans_{};
  std::set<std::string> names_{};
  const LoopInfo* scanned_ = nullptr;
  std::int64_t each_ = 1;
  bool any_ = false;
};

/// Throws `TransformDeclined` where a thread's own work cannot be shared, whatever the loops say.
inline void require_shareable(const FunctionAnalysis& function) {
  if (!function.opaque.empty())
    throw TransformDeclined("line " + std::to_string(function.opaque.front().line) + " contains " +
                            function.opaque.front().reason);
  if (!function.barriers.empty()) throw TransformDeclined("the threads wait for each other already");
  for (const Array& array : function.arrays) {
    if (array.unknown) throw TransformDeclined("it is not known what " + array.name + " points to");
    if (array.place == ArrayPlace::own)
      throw TransformDeclined("each thread has an array of its own, " + array.name);
  }
}

/// Whether there are just as many threads as the guard around the work lets through: `i < M` where the launch
/// line gives `M` threads and `M` as argument.
[[nodiscard]] inline bool guard_holds_always(const ThreadLaunch& launch, const ThreadIndex& index,
                                             const GuardedBody& work) {
  if (!work.guarded) return false;
  const auto body = statements(function_body(*launch.function->node));
  const SyntaxNode& condition = if_condition(body[work.nested ? work.first : work.first - 1]);
  if (condition.kind != NodeKind::binary || condition.text != (work.nested ? "<" : ">=") ||
      !is_name(left_operand(condition), index.name) || right_operand(condition).kind != NodeKind::name)
    return false;
  const std::string& bound = right_operand(condition).text;
  const auto formal = parameters(*launch.function->node);
  for (std::size_t i = 0; i < formal.size() && i < launch.line.arguments.size(); ++i)
    if (formal[i].text == bound)
      return launch.line.arguments[i] == launch.threads() &&
             std::none_of(launch.function->scalar_uses.begin(), launch.function->scalar_uses.end(),
                          [&](const ScalarUse& use) { return use.write && use.variable->name == bound; });
  return false;
}

/// Takes the guard away from work that was replaced.
inline void remove_guard(SyntaxNode& body, const GuardedBody& work) {
  const auto branch = body.children.begin() + static_cast<std::ptrdiff_t>(work.first + (work.nested ? 1 : 0));
  if (!work.nested) {
    body.children.erase(branch);
    return;
  }
  std::vector<SyntaxNode> inside = std::move(then_branch(*branch).children);
  const auto at = body.children.erase(branch);
  body.children.insert(at, std::make_move_iterator(inside.begin()), std::make_move_iterator(inside.end()));
}

/// The shape of rows, and how many neighbouring iterations a thread takes at a time where they are scanned.
struct SharingPlan {
  RowShape shape{};
  std::int64_t each = 1;
};

/// Gives a warp or a block to what one thread of a launch does now. `scanned`: the loop that they scan.
[[nodiscard]] inline SyntaxNode share_rows(const TransformRequest& request, const LoopInfo* scanned) {
  ThreadLaunch launch = thread_launch(request);
  if (!has_flat_blocks(launch))
    throw TransformDeclined("the blocks of " + launch.line.entry + " have several axes");
  const FunctionAnalysis& function = *launch.function;
  require_shareable(function);
  const ThreadIndex index = thread_index(launch);
  const GuardedBody body = guarded_body(launch, index);

  const RowLoops loops(request, launch);
  auto shapes = row_shapes(loops.longest(function), threads_at_main_size(request, launch), request.device);
  if (!body.guarded) std::erase_if(shapes, [](const RowShape& shape) { return shape.rows > 1; });
  if (!has_warps(request.kernel.language))
    std::erase_if(shapes, [](const RowShape& one) { return one.is_warp(); });
  std::vector<SharingPlan> plans;
  for (const RowShape& shape : shapes)
    for (const std::int64_t each : scanned == nullptr ? std::vector<std::int64_t>{1} : scan_widths())
      plans.push_back({shape, each});
  const SharingPlan plan = choose_variant(plans, request.variant);
  RowShape shape = plan.shape;
  shape.shuffles = has_warps(request.kernel.language);

  SyntaxNode tree = request.tree;
  const std::string lane = fresh_name(tree, "lane");
  RowSpreader spreader(tree, function, loops, shape, lane);
  if (scanned != nullptr) spreader.scan(*scanned, plan.each);
  auto statements = spreader.spread(body.statements);
  if (!spreader.any()) throw TransformDeclined("a thread has no loop that others could share");

  SyntaxNode row = parse_expression(
      shape.is_warp() ? "blockIdx.x * " + std::to_string(shape.rows) + " + threadIdx.x / 32" : "blockIdx.x");
  SyntaxNode within =
      shape.is_warp() ? parse_expression("threadIdx.x % 32") : parse_expression("threadIdx.x");
  launch.replace_index(tree, index, std::move(row), make_declaration("const int", lane, std::move(within)));
  launch.replace_body(tree, body, std::move(statements));
  // Where threads have no warps, compilers are also poor at barriers in branches.
  if (!shape.shuffles && shape.rows == 1 && guard_holds_always(launch, index, body))
    remove_guard(launch.body_in(tree), body);
  auto grid = launch.line.grid;
  const std::string rows = threads_with_work(request, launch);
  grid[0] = shape.rows == 1 ? rows : "ceil_div(" + rows + ", " + std::to_string(shape.rows) + ')';
  launch.set_grid(tree, std::move(grid), std::to_string(shape.threads * shape.rows));
  for (const ThreadReduction& reduction : spreader.reductions())
    if (!reduction.is_there) launch.add_function(tree, reduction.text());
  for (const ThreadScan& scan : spreader.scans())
    if (!scan.is_there) launch.add_function(tree, scan.text());
  return tree;
}

/// Gives a warp or a block to what one thread of a launch does now.
[[nodiscard]] inline SyntaxNode spread_rows(const TransformRequest& request) {
  return share_rows(request, nullptr);
}

/// Gives a warp or a block to a loop of a thread that hands a value on from iteration to iteration, and to
/// its other loops.
[[nodiscard]] inline SyntaxNode scan_rows(const TransformRequest& request) {
  const LoopTarget target = find_loop(request);
  const auto carried = with_carried_element(request.tree, target);
  if (!carried) return share_rows(request, target.loop);
  const KernelAnalysis analysis{*carried, &request.task};
  const TransformRequest inner{request.task, request.kernel, request.device, request.action,
                               *carried,     analysis,       request.variant};
  return share_rows(inner, find_loop(inner).loop);
}

} // namespace mtmc::detail
