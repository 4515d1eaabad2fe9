#pragma once

#include <mtmc/analysis/flow/polynomial.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// \file
/// Loops as the analyses see them: which are canonical, their bounds, how they nest.

namespace mtmc::inline MTMC_ABI {

struct FunctionAnalysis;
struct Variable;

/// A loop of a function. Lives in its `FunctionAnalysis`; points into the syntax tree it was made from.
///
/// A loop is *canonical* if its number of iterations is known when it is entered: a `for` whose variable
/// starts at some value, is compared with a bound (`<`, `<=`, `>`, `>=`, `!=`) and moves by a constant step
/// (`++i`, `i--`, `i += 4`, `i = i - 2`), while nothing in the body assigns the variable or anything in the
/// bound, and neither `break`, `return` nor `goto` leaves it.
struct LoopInfo {
  /// The loop's statement.
  const SyntaxNode* node = nullptr;
  /// The function it stands in.
  const FunctionAnalysis* function = nullptr;
  /// The loop around it, or null.
  const LoopInfo* parent = nullptr;
  /// The loops directly inside it (under ifs too), in the order of the text.
  std::vector<const LoopInfo*> children{};
  /// 0 for a loop in no other loop.
  int depth = 0;
  /// Position among the function's loops in the order of the text; those inside it follow, up to
  /// `last_inside` (excluded).
  std::size_t index = 0;
  /// The index behind the last loop inside it.
  std::size_t last_inside = 0;
  /// Stable path, as in `Region::path`: "gemm/i/j".
  std::string path{};

  /// Its number of iterations is known when it is entered.
  bool canonical = false;
  /// One sentence, empty for canonical loops.
  std::string why_not_canonical{};

  // What follows is only meaningful for canonical loops.

  /// Its variable's name.
  std::string variable{};
  /// Type as declared in the loop's head ("int"); empty if the variable is declared outside (its value is
  /// then visible after the loop).
  std::string variable_type{};
  /// Its variable; null if it is not canonical.
  const Variable* control = nullptr;
  /// The variable as a symbol of polynomials.
  const Symbol* symbol = nullptr;
  /// First value, as written, and the bound, as written: what the variable is compared with.
  const SyntaxNode* start_expression = nullptr;
  /// The bound, as written.
  const SyntaxNode* bound_expression = nullptr;
  /// `<`, `<=`, `>`, `>=` or `!=`, read with the variable on the left. Empty where the head is canonical but
  /// not that plain (`i + 3 < n`, `i < n && i < m`): only `start` and `limits` tell the bounds then.
  std::string comparison{};
  /// Never 0; negative if it counts down.
  std::int64_t step = 1;
  /// First value.
  Polynomial start{};
  /// For a loop that counts up: every value is below each of these (one, or the operands of a `min`). For
  /// one that counts down: above each of these.
  std::vector<Polynomial> limits{};
  /// For a loop that counts up: every value is at least each of these (the start, or the operands of a
  /// `max`). For one that counts down: at most each of these.
  std::vector<Polynomial> origins{};

  /// Of a loop over a thread's share of an index range (`i += gridDim.x * blockDim.x`): what its variable
  /// moves by. It is not canonical, but `start` and `limits` are meaningful. Undefined for all others.
  Polynomial stride = Polynomial::undefined();

  /// A `continue` that belongs to this loop.
  bool has_continue = false;
  /// Nothing in it has effects that are not understood (opaque text, unknown calls).
  bool understood = true;
  /// An `if` stands between it and the loop (or function) around it.
  bool conditional = false;
  /// Floating-point operations of one iteration, those of inner loops not counted; branches count in full.
  double flops = 0;
  /// An `if`, `?:`, `&&` or `||` in an iteration (inner loops not counted) decides about work.
  bool branches = false;
  /// Directives right before it, as written after `#pragma `: "omp parallel for".
  std::vector<std::string> directives{};
  /// 1-based line of its head.
  int first_line = 0;
  /// 1-based line of its end.
  int last_line = 0;
  /// Where its parts stand in the lists of its function: [first, last) of `accesses`, `scalar_uses`, `calls`,
  /// `opaque` and `barriers`.
  struct Span {
    std::size_t first = 0; ///< index of the first
    std::size_t last = 0;  ///< index behind the last
  };
  /// Of `FunctionAnalysis::accesses`.
  Span accesses{};
  /// Of `FunctionAnalysis::scalar_uses`.
  Span scalar_uses{};
  /// Of `FunctionAnalysis::calls`.
  Span calls{};
  /// Of `FunctionAnalysis::opaque`.
  Span opaque{};
  /// Of `FunctionAnalysis::barriers`.
  Span barriers{};
  /// The same for `Access::order` and `ScalarUse::order`.
  Span order{};

  /// Contains no other loop.
  [[nodiscard]] bool innermost() const noexcept { return children.empty(); }
  /// It is `other` or stands somewhere inside it.
  [[nodiscard]] bool inside(const LoopInfo* other) const noexcept {
    for (const LoopInfo* at = this; at != nullptr; at = at->parent)
      if (at == other) return true;
    return false;
  }
};

/// One loop of a nest with what stands around the next one in its body.
struct NestLevel {
  /// The loop.
  const LoopInfo* loop = nullptr;
  /// Statements of the loop's body before the next loop of the nest (without the pragmas that belong to it)
  /// and after it. Both empty in the innermost level, whose statements are `body`.
  std::span<const SyntaxNode> before{};
  /// The statements after the next loop.
  std::span<const SyntaxNode> after{};
  /// All statements of the loop's body.
  std::span<const SyntaxNode> body{};
};

/// Canonical loops nested one by one: each contains the next as its only loop, directly in its body.
struct LoopNest {
  /// Outermost first; never empty.
  std::vector<NestLevel> levels{};

  /// Number of loops.
  [[nodiscard]] std::size_t size() const noexcept { return levels.size(); }
  /// The loop at a level, 0 = outermost. Throws `std::out_of_range` beyond the innermost.
  [[nodiscard]] const LoopInfo& loop(std::size_t level) const { return *levels.at(level).loop; }
  /// Nothing but the next loop stands in the body of each loop from `first` up to the one before `last`.
  [[nodiscard]] bool perfect(std::size_t first, std::size_t last) const noexcept {
    for (std::size_t i = first; i < last && i + 1 < levels.size(); ++i)
      if (!levels[i].before.empty() || !levels[i].after.empty()) return false;
    return true;
  }
};

namespace detail {

/// The statement of `body` that is `loop`, or its size.
[[nodiscard]] inline std::size_t statement_position(std::span<const SyntaxNode> body,
                                                    const SyntaxNode* loop) {
  for (std::size_t i = 0; i < body.size(); ++i)
    if (&body[i] == loop) return i;
  return body.size();
}

} // namespace detail

/// The nest that starts with `outermost`: the loops nested in it one by one as long as they are canonical and
/// each stands directly in the body of the one before, as its only loop.
[[nodiscard]] inline LoopNest nest_of(const LoopInfo& outermost) {
  LoopNest nest;
  for (const LoopInfo* loop = &outermost; loop != nullptr;) {
    NestLevel level;
    level.loop = loop;
    level.body = statements(loop_body(*loop->node));
    const LoopInfo* next = loop->children.size() == 1 ? loop->children.front() : nullptr;
    const std::size_t at =
        next == nullptr ? level.body.size() : detail::statement_position(level.body, next->node);
    if (at == level.body.size() || !next->canonical || !loop->canonical) next = nullptr;
    if (next != nullptr) {
      std::size_t end_of_before = at;
      while (end_of_before > 0 && level.body[end_of_before - 1].kind == NodeKind::pragma) --end_of_before;
      level.before = level.body.first(end_of_before);
      level.after = level.body.subspan(at + 1);
    }
    nest.levels.push_back(level);
    loop = next;
  }
  return nest;
}

/// The value of a polynomial of a function at a problem size. LoopInfo variables count as the middle of their
/// loop. Nothing if a value is not known.
[[nodiscard]] std::optional<std::int64_t> value_at(const Polynomial& polynomial, const Symbols& symbols);

/// Iterations of a canonical loop at a problem size, at least 0; where its bounds depend on an outer loop,
/// those of that loop's middle iteration. Nothing if the bounds cannot be evaluated.
[[nodiscard]] inline std::optional<std::int64_t> trip_count(const LoopInfo& loop, const Symbols& symbols) {
  if (!loop.canonical) return std::nullopt;
  const auto first = value_at(loop.start, symbols);
  if (!first) return std::nullopt;
  std::optional<std::int64_t> count;
  for (const Polynomial& limit : loop.limits) {
    const auto bound = value_at(limit, symbols);
    if (!bound) return std::nullopt;
    const std::int64_t stride = loop.step > 0 ? loop.step : -loop.step;
    std::int64_t distance = 0;
    if (__builtin_sub_overflow(loop.step > 0 ? *bound : *first, loop.step > 0 ? *first : *bound, &distance))
      return std::nullopt;
    const std::int64_t iterations = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    count = count ? std::min(*count, iterations) : iterations;
  }
  return count;
}

inline std::optional<std::int64_t> value_at(const Polynomial& polynomial, const Symbols& symbols) {
  struct ValueOf {
    const Symbols& symbols;
    std::optional<std::int64_t> operator()(const Symbol& symbol) const {
      if (symbol.kind == Symbol::Kind::derived) return evaluate_derived(symbol, *this);
      if (symbol.kind == Symbol::Kind::loop_variable) {
        const auto first = value_at(symbol.loop->start, symbols);
        const auto count = trip_count(*symbol.loop, symbols);
        if (!first || !count) return std::nullopt;
        return *first + (*count > 0 ? (*count - 1) / 2 : 0) * symbol.loop->step;
      }
      if (symbol.kind == Symbol::Kind::unknown) return std::nullopt;
      const auto found = symbols.find(symbol.name);
      if (found == symbols.end()) return std::nullopt;
      return found->second;
    }
  };
  return polynomial.evaluate(ValueOf{symbols});
}

} // namespace mtmc
