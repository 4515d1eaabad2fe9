#pragma once
/// Which way neighbouring threads lie: the axis along memory becomes the one along which a warp's threads are
/// neighbours.

#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/grid_fusion.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/factors.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/pointwise.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// How far accesses jump when a thread's number changes, at the task's main size.
class ThreadJumps {
public:
  ThreadJumps(const TransformRequest& request, const ThreadLaunch& launch) : function_(*launch.function) {
    const auto formal = parameters(*function_.node);
    for (std::size_t i = 0; i < formal.size() && i < launch.line.arguments.size(); ++i)
      if (const auto value = value_at_main_size(request, launch.line.arguments[i]))
        values_[formal[i].text] = *value;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      values_[std::string(thread_index_names[axis])] = 0;
      values_[std::string(block_index_names[axis])] = 0;
      values_[std::string(block_extent_names[axis])] =
          axis < launch.line.block.size() ? integer_literal(launch.line.block[axis]).value_or(1) : 1;
    }
    for (const LoopInfo& loop : function_.loops) values_[loop.variable] = 0;
  }

  /// The value of a polynomial for the first thread.
  [[nodiscard]] std::optional<std::int64_t> value(const Polynomial& polynomial) const {
    return polynomial.evaluate_at(values_);
  }
  /// Accesses that jump when the number along an axis grows by `distance`, weighed by how often they happen,
  /// and less those that move by one element.
  [[nodiscard]] double along(std::size_t axis, std::int64_t distance = 1) const {
    Symbols moved = values_;
    moved[std::string(thread_index_names[axis])] = distance;
    double jumps = 0;
    for (const Access& access : function_.accesses) {
      if (access.array->place != ArrayPlace::common || access.array->local) continue;
      constexpr double often = 16; // in a loop
      const double weight = access.loop == nullptr ? 1 : often;
      std::optional<std::int64_t> there, here;
      if (access.subscripts.size() == 1) {
        here = access.subscripts.front().evaluate_at(values_);
        there = access.subscripts.front().evaluate_at(moved);
      }
      const std::int64_t elements = here && there ? *there - *here : 2;
      constexpr double gain = 1.0 / 1024; // of a move by one element, where all else is equal
      if (elements > 1 || elements < -1) jumps += weight;
      if (elements == 1 || elements == -1) jumps -= gain * weight;
    }
    return jumps;
  }

private:
  const FunctionAnalysis& function_;
  Symbols values_{};
};

/// Throws `TransformDeclined` where threads do more than work that nothing but their numbers tells apart.
inline void require_independent_threads(const ThreadLaunch& launch) {
  const FunctionAnalysis& function = *launch.function;
  if (!function.opaque.empty())
    throw TransformDeclined("line " + std::to_string(function.opaque.front().line) + " contains " +
                            function.opaque.front().reason);
  if (!function.barriers.empty()) throw TransformDeclined("the threads wait for each other");
  for (const Array& array : function.arrays)
    if (array.place == ArrayPlace::block)
      throw TransformDeclined("the threads of a block share the array " + array.name);
}

/// Threads of a block along x and along another axis.
struct BlockShape {
  std::int64_t x = 1, other = 1;
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

/// Exchanges x with another axis, or only changes how many threads of a block lie along each.
class AxisExchange {
public:
  AxisExchange(const TransformRequest& request, ThreadLaunch launch)
      : request_(request), launch_(std::move(launch)) {
    require_independent_threads(launch_);
    for (const ThreadIndex& index : thread_indices(launch_))
      if (index.axis < launch_.line.grid.size()) indices_.push_back(index);
    choose_axis();
  }

  [[nodiscard]] SyntaxNode write() {
    const BlockShape shape = choose_variant(shapes(), request_.variant);
    LaunchLine& line = launch_.line;
    std::map<std::size_t, std::string> threads; // along each axis as it is now
    for (const std::size_t axis : {std::size_t{0}, other_}) threads[axis] = launch_.threads(axis);
    if (exchanges_) {
      std::swap(line.grid[0], line.grid[other_]);
      std::swap(line.block[0], line.block[other_]);
      std::swap(threads[0], threads[other_]);
    }
    const BlockShape now = present();
    if (!(shape == now)) {
      line.grid[0] = blocks(threads[0], shape.x);
      line.grid[other_] = blocks(threads[other_], shape.other);
      line.block[0] = std::to_string(shape.x);
      line.block[other_] = std::to_string(shape.other);
    }
    require_launchable();
    SyntaxNode tree = request_.tree;
    auto& body = launch_.body_in(tree).children;
    for (const ThreadIndex& index : indices_)
      if (index.axis == 0 || index.axis == other_) renumber(body[index.statement], index.axis, shape);
    tree.children[launch_.line_at].text = launch_line_text(line);
    return tree;
  }

private:
  [[nodiscard]] const ThreadIndex* index_along(std::size_t axis) const {
    for (const ThreadIndex& index : indices_)
      if (index.axis == axis) return &index;
    return nullptr;
  }

  /// The axis whose neighbours lie best in memory; x itself if none is better.
  void choose_axis() {
    const ThreadJumps jumps(request_, launch_);
    double fewest = jumps.along(0);
    for (std::size_t axis = 1; axis < launch_.line.block.size() && axis < launch_.line.grid.size(); ++axis) {
      if (index_along(axis) == nullptr) continue;
      if (other_ == 0) other_ = axis;
      if (jumps.along(axis) >= fewest) continue;
      fewest = jumps.along(axis);
      other_ = axis;
      exchanges_ = true;
    }
    if (index_along(0) == nullptr || other_ == 0)
      throw TransformDeclined("no variables number the threads of " + launch_.line.entry + " along two axes");
  }

  /// As the line says it.
  [[nodiscard]] BlockShape present() const {
    return {integer_literal(launch_.line.block[0]).value_or(1),
            integer_literal(launch_.line.block[other_]).value_or(1)};
  }

  /// The shape that an exchange alone gives, and, where guards leave out what is beyond the last result along
  /// both axes, others of as many threads; the one expected to be best first.
  [[nodiscard]] std::vector<BlockShape> shapes() const {
    BlockShape kept = present();
    if (exchanges_) std::swap(kept.x, kept.other);
    constexpr std::int64_t warp = 32, deepest = 64; // threads along z
    std::vector<BlockShape> result;
    if (exchanges_ && kept.x >= warp) result.push_back(kept);
    const std::int64_t all = kept.x * kept.other;
    if (is_guarded(0) && is_guarded(other_))
      for (const std::int64_t x : {32, 64, 16, 128, 256}) {
        const BlockShape shape{x, all / x};
        if (all % x != 0 || shape == kept || (other_ == 2 && shape.other > deepest)) continue;
        if (exchanges_ || (x >= warp && kept.x < warp)) result.push_back(shape);
      }
    constexpr std::int64_t sectors = 16; // as many threads touch whole sectors, of most types
    if (exchanges_ && kept.x < warp)
      result.insert(kept.x >= sectors && !result.empty() ? result.begin() + 1 : result.end(), kept);
    if (result.empty())
      throw TransformDeclined("no other axis of " + launch_.line.entry +
                              " lets neighbouring threads touch neighbouring elements more often");
    return result;
  }
  /// Nothing is touched beyond the last result, and the number of results is the line's.
  [[nodiscard]] bool is_guarded(std::size_t axis) const {
    const GuardBound* const guard = guard_of(request_, launch_, *index_along(axis));
    return guard != nullptr && std::all_of(launch_.function->accesses.begin(),
                                           launch_.function->accesses.end(), [guard](const Access& access) {
                                             return guard->first <= access.order &&
                                                    access.order < guard->last;
                                           });
  }

  [[nodiscard]] static std::string blocks(const std::string& threads, std::int64_t each) {
    return each == 1 ? threads : "ceil_div(" + threads + ", " + std::to_string(each) + ')';
  }

  /// There are fewer blocks along y and z than along x.
  void require_launchable() const {
    constexpr std::int64_t most = 65535;
    for (const ProblemSize& size : request_.task.sizes)
      for (std::size_t axis = 1; axis < launch_.line.grid.size(); ++axis)
        if (evaluate_expression(launch_.line.grid[axis], size.symbols) > most)
          throw TransformDeclined("there would be more than 65535 blocks along " +
                                  std::string(axis_names[axis]));
  }

  /// The number of a thread along the axis that takes the place of the old one.
  void renumber(SyntaxNode& declaration, std::size_t axis, const BlockShape& shape) const {
    const std::size_t to = exchanges_ ? (axis == 0 ? other_ : 0) : axis;
    walk(*initial_value(declarators(declaration).front()), [&](SyntaxNode& node) {
      if (node.kind == NodeKind::member) node.text = '.' + std::string(axis_names[to]);
      if (node.kind == NodeKind::literal) node.text = std::to_string(to == 0 ? shape.x : shape.other);
    });
  }

  const TransformRequest& request_;
  ThreadLaunch launch_;
  std::vector<ThreadIndex> indices_{};
  std::size_t other_ = 0;
  bool exchanges_ = false;
};

/// A part of a thread's number: `number / unit % extent`.
struct NumberDigit {
  std::string name{};                              ///< of the variable
  std::vector<SyntaxNode> unit{};                  ///< factors; none: 1
  std::optional<std::vector<SyntaxNode>> extent{}; ///< factors; nothing: up to the last number
};

/// Takes the number of a thread apart in another order.
class NumberReorderer {
public:
  explicit NumberReorderer(const TransformRequest& request) : request_(request), function_(request) {
    require_independent_threads(function_.launch);
    read_digits();
    chain_digits();
  }

  [[nodiscard]] SyntaxNode write() {
    const std::size_t fast = choose_variant(better_digits(), request_.variant);
    std::vector<std::pair<std::string, SyntaxNode>> values;
    const SyntaxNode number = make_name(function_.index.name);
    std::vector<SyntaxNode> unit = *digits_[fast].extent;
    values.emplace_back(digits_[fast].name, make_binary("%", number, product_of(unit)));
    std::size_t left = digits_.size() - 1;
    for (std::size_t i = 0; i < digits_.size(); ++i) {
      if (i == fast) continue;
      SyntaxNode value = make_binary("/", number, product_of(unit));
      if (--left > 0) value = make_binary("%", std::move(value), product_of(*digits_[i].extent));
      values.emplace_back(digits_[i].name, std::move(value));
      for (const SyntaxNode& factor : *digits_[i].extent) unit.push_back(factor);
    }
    SyntaxNode tree = request_.tree;
    rewrite(function_.launch.body_in(tree), values);
    return tree;
  }

private:
  void add_definitions(const std::vector<const SyntaxNode*>& statements) {
    for (const SyntaxNode* statement : statements) {
      if (statement->kind != NodeKind::declaration) continue;
      for (const SyntaxNode& declarator : declarators(*statement)) {
        const SyntaxNode* const value = initial_value(declarator);
        if (value == nullptr || !declarator.type.empty() || !is_integer_type_name(statement->type)) continue;
        const Variable* variable = nullptr;
        for (const Variable& one : function_.function->variables)
          if (one.declaration == &declarator) variable = &one;
        const bool changes = variable == nullptr || variable->address_taken ||
                             std::any_of(variable->uses.begin(), variable->uses.end(), [&](std::size_t at) {
                               const ScalarUse& use = function_.function->scalar_uses[at];
                               return use.write && use.statement != statement;
                             });
        if (!changes) definitions_[declarator.text] = value;
      }
    }
  }

  /// Unit and extent of an expression; nothing if it is no part of the number.
  [[nodiscard]] std::optional<NumberDigit> digit_of(const SyntaxNode& expression) const {
    const SyntaxNode& node = without_casts(expression);
    if (is_name(node, function_.index.name)) return NumberDigit{};
    if (node.kind == NodeKind::name) {
      const auto known = definitions_.find(node.text);
      return known == definitions_.end() ? std::nullopt : digit_of(*known->second);
    }
    if (node.kind != NodeKind::binary) return std::nullopt;
    auto whole = digit_of(left_operand(node));
    const SyntaxNode& other = right_operand(node);
    if (!whole) return std::nullopt;
    if (node.text == "-" && whole->unit.empty() && !whole->extent) return remainder_of(other);
    if (!function_.is_uniform(other) || touches_memory(other)) return std::nullopt;
    const auto factors = factors_of(without_casts(other));
    if (node.text == "%" && !whole->extent) {
      whole->extent = factors;
      return whole;
    }
    if (node.text != "/") return std::nullopt;
    if (whole->extent) whole->extent = without(*whole->extent, factors);
    if (!whole->extent && !is_open(left_operand(node))) return std::nullopt;
    whole->unit.insert(whole->unit.end(), factors.begin(), factors.end());
    return whole;
  }
  [[nodiscard]] bool is_open(const SyntaxNode& expression) const {
    const auto digit = digit_of(expression);
    return digit && !digit->extent;
  }
  /// `number - row * N`, where the row is `number / N`.
  [[nodiscard]] std::optional<NumberDigit> remainder_of(const SyntaxNode& subtracted) const {
    if (subtracted.kind != NodeKind::binary || subtracted.text != "*") return std::nullopt;
    for (const bool first : {true, false}) {
      const SyntaxNode& quotient = first ? left_operand(subtracted) : right_operand(subtracted);
      const SyntaxNode& extent = first ? right_operand(subtracted) : left_operand(subtracted);
      const auto digit = function_.is_uniform(extent) ? digit_of(quotient) : std::nullopt;
      const auto factors = factors_of(extent);
      if (digit && !digit->extent && digit->unit.size() == factors.size() && without(digit->unit, factors))
        return NumberDigit{{}, {}, factors};
    }
    return std::nullopt;
  }

  /// The variables that are parts of the number, and that the number is used for nothing else.
  void read_digits() {
    if (!function_.limit) throw TransformDeclined("no guard tells how many elements there are");
    if (!function_.element_conditions.empty())
      throw TransformDeclined("the guard depends on parts of " + function_.index.name);
    add_definitions(function_.own);
    add_definitions(function_.work);
    std::set<std::string> parts; // variables that say the number, or a part of it
    for (const auto& [name, value] : definitions_)
      if (digit_of(*value)) parts.insert(name);
    const auto is_part = [&](const SyntaxNode& statement) {
      return statement.kind == NodeKind::declaration && declarators(statement).size() == 1 &&
             parts.contains(declarators(statement).front().text);
    };
    std::set<std::string> used;
    for (const auto* list : {&function_.own, &function_.work})
      for (const SyntaxNode* statement : *list) {
        if (is_part(*statement)) continue;
        for (std::string& name : names_used(*statement)) used.insert(std::move(name));
      }
    if (used.contains(function_.index.name))
      throw TransformDeclined(function_.index.name + " is used for more than its parts");
    for (const auto* list : {&function_.own, &function_.work})
      for (const SyntaxNode* statement : *list) {
        if (!is_part(*statement)) continue;
        const SyntaxNode& declarator = declarators(*statement).front();
        replaced_.insert(declarator.text);
        if (!used.contains(declarator.text)) continue;
        NumberDigit digit = *digit_of(*definitions_.at(declarator.text));
        digit.name = declarator.text;
        digits_.push_back(std::move(digit));
      }
    if (digits_.size() < 2)
      throw TransformDeclined("the number of a thread of " + function_.launch.line.entry +
                              " is not taken apart");
  }

  /// Puts the digits into their order, the fastest first; each begins where the one before ends, and the last
  /// one ends at the number of elements.
  void chain_digits() {
    std::vector<NumberDigit> ordered;
    std::vector<SyntaxNode> unit;
    while (!digits_.empty()) {
      const auto next = std::find_if(digits_.begin(), digits_.end(), [&](const NumberDigit& digit) {
        return digit.unit.size() == unit.size() && without(digit.unit, unit);
      });
      if (next == digits_.end() || (!next->extent && digits_.size() > 1)) decline_parts();
      ordered.push_back(std::move(*next));
      digits_.erase(next);
      if (!digits_.empty())
        for (const SyntaxNode& factor : *ordered.back().extent) unit.push_back(factor);
    }
    digits_ = std::move(ordered);
    NumberDigit& last = digits_.back();
    const auto limit = factors_of(without_casts(*function_.limit));
    if (auto rest = without(limit, unit); rest && !rest->empty()) {
      if (last.extent && !(last.extent->size() == rest->size() && without(*rest, *last.extent)))
        decline_parts();
      last.extent = std::move(rest);
    } else {
      if (!divides_limit(unit, last)) decline_parts();
      if (!last.extent)
        last.extent = std::vector<SyntaxNode>{make_binary("/", *function_.limit, product_of(unit))};
    }
  }
  [[noreturn]] void decline_parts() const {
    throw TransformDeclined("it is not proved that the parts of " + function_.index.name +
                            " take all values that the extents allow");
  }
  /// The number of elements is a multiple of the unit, whatever the size, and that of the last digit.
  [[nodiscard]] bool divides_limit(const std::vector<SyntaxNode>& unit, const NumberDigit& last) const {
    TaskSizes sizes(&request_.task);
    const auto read = [&](const SyntaxNode& expression) {
      SyntaxNode text = expression;
      const auto formal = parameters(*function_.function->node);
      for (std::size_t i = 0; i < formal.size() && i < function_.launch.line.arguments.size(); ++i)
        substitute(text, formal[i].text, parse_expression(function_.launch.line.arguments[i]));
      return sizes.read(print(text));
    };
    const Polynomial all = read(*function_.limit), one = read(product_of(unit));
    if (!all.defined() || !one.defined() || one.terms().size() != 1) return false;
    const auto rest = all.divided_by(one.terms().front());
    return rest && (!last.extent || *rest == read(product_of(*last.extent)));
  }

  /// Digits that make better neighbours than the fastest one, the best first.
  [[nodiscard]] std::vector<std::size_t> better_digits() const {
    const ThreadJumps jumps(request_, function_.launch);
    std::vector<std::pair<double, std::size_t>> found;
    std::int64_t unit = 1;
    for (std::size_t i = 0; i < digits_.size(); ++i) {
      if (i > 0) {
        const auto extent = main_value(product_of(*digits_[i - 1].extent));
        if (!extent) break;
        unit *= *extent;
        if (jumps.along(0, unit) < jumps.along(0)) found.emplace_back(jumps.along(0, unit), i);
      }
    }
    std::stable_sort(found.begin(), found.end());
    if (found.empty())
      throw TransformDeclined("no other order of the parts of " + function_.index.name +
                              " lets neighbouring threads touch neighbouring elements more often");
    std::vector<std::size_t> result;
    for (const auto& [cost, digit] : found) result.push_back(digit);
    return result;
  }
  [[nodiscard]] std::optional<std::int64_t> main_value(SyntaxNode text) const {
    const auto formal = parameters(*function_.function->node);
    for (std::size_t i = 0; i < formal.size() && i < function_.launch.line.arguments.size(); ++i)
      substitute(text, formal[i].text, parse_expression(function_.launch.line.arguments[i]));
    return value_at_main_size(request_, print(text));
  }

  /// New values for the variables; those that only helped are gone.
  void rewrite(SyntaxNode& block, const std::vector<std::pair<std::string, SyntaxNode>>& values) const {
    std::erase_if(block.children, [&](const SyntaxNode& statement) {
      return statement.kind == NodeKind::declaration && declarators(statement).size() == 1 &&
             replaced_.contains(declarators(statement).front().text) &&
             std::none_of(values.begin(), values.end(), [&](const auto& value) {
               return value.first == declarators(statement).front().text;
             });
    });
    for (SyntaxNode& child : block.children) {
      if (child.kind == NodeKind::declaration && declarators(child).size() == 1)
        for (const auto& [name, value] : values)
          if (declarators(child).front().text == name)
            initializer(declarators(child).front())->children.front() = value;
      if (child.kind == NodeKind::if_statement || child.kind == NodeKind::block) rewrite(child, values);
    }
  }

  const TransformRequest& request_;
  PointwiseLaunch function_;
  std::map<std::string, const SyntaxNode*> definitions_{};
  std::set<std::string> replaced_{};
  std::vector<NumberDigit> digits_{};
};

/// Neighbouring threads are numbered along another axis: x and another one change places, or the parts of a
/// single number do.
[[nodiscard]] inline SyntaxNode reorder_axes(const TransformRequest& request) {
  ThreadLaunch launch = thread_launch(request);
  if (launch.line.grid.size() > 1 && launch.line.block.size() > 1)
    return AxisExchange(request, std::move(launch)).write();
  return NumberReorderer(request).write();
}

} // namespace mtmc::detail
