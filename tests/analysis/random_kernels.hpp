#pragma once
// Small random loop nests that can be written as text and executed, to check the analysis against the truth.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace random_kernels {

/// A generator that gives the same numbers everywhere (splitmix64).
class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// A number in [low, high].
  int number(int low, int high) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    x ^= x >> 31U;
    return low + static_cast<int>(x % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return number(1, 100) <= percent; }

private:
  std::uint64_t state_;
};

/// constant + sum of coefficients[l] * loop l + n * N + sum of scaled[l] * N * loop l.
struct Subscript {
  int constant = 0;
  int n = 0;
  std::vector<int> coefficients;
  std::vector<int> scaled;

  [[nodiscard]] int value(const std::vector<int>& loops, int size) const {
    int result = constant + n * size;
    for (std::size_t l = 0; l < loops.size(); ++l) result += (coefficients[l] + scaled[l] * size) * loops[l];
    return result;
  }
  [[nodiscard]] std::string text(const std::vector<std::string>& names) const {
    std::string result = std::to_string(constant);
    if (n != 0) result += " + " + std::to_string(n) + " * N";
    for (std::size_t l = 0; l < coefficients.size(); ++l) {
      if (coefficients[l] != 0) result += " + " + std::to_string(coefficients[l]) + " * " + names[l];
      if (scaled[l] != 0) result += " + " + std::to_string(scaled[l]) + " * N * " + names[l];
    }
    return result;
  }
};

/// `for (v = low; v < high; v += step)`, or downwards from high - 1; bounds are c, c + N or c + an outer
/// loop.
struct Bound {
  int constant = 0;
  int n = 0;
  int outer = -1;

  [[nodiscard]] int value(const std::vector<int>& loops, int size) const {
    return constant + n * size + (outer >= 0 ? loops[static_cast<std::size_t>(outer)] : 0);
  }
  [[nodiscard]] std::string text(const std::vector<std::string>& names) const {
    std::string result = std::to_string(constant);
    if (n != 0) result += " + N";
    if (outer >= 0) result += " + " + names[static_cast<std::size_t>(outer)];
    return result;
  }
};
struct Loop {
  Bound low;
  Bound high;
  int step = 1;
  bool down = false;

  [[nodiscard]] std::vector<int> values(const std::vector<int>& outer, int size) const {
    std::vector<int> result;
    const int first = low.value(outer, size);
    const int last = high.value(outer, size);
    if (down)
      for (int v = last - 1; v >= first; v -= step) result.push_back(v);
    else
      for (int v = first; v < last; v += step) result.push_back(v);
    return result;
  }
  [[nodiscard]] std::string head(const std::string& name, const std::vector<std::string>& names) const {
    if (down)
      return "for (int " + name + " = " + high.text(names) + " - 1; " + name + " >= " + low.text(names) +
             "; " + name + " -= " + std::to_string(step) + ")";
    return "for (int " + name + " = " + low.text(names) + "; " + name + " < " + high.text(names) + "; " +
           name + " += " + std::to_string(step) + ")";
  }
};

/// `a[target] = a[source] + 1;`
struct Statement {
  Subscript target;
  Subscript source;
};

/// A perfect nest with statements in its innermost body.
struct Nest {
  std::vector<Loop> loops;
  std::vector<Statement> statements;

  /// All iterations in order.
  [[nodiscard]] std::vector<std::vector<int>> iterations(int size) const {
    std::vector<std::vector<int>> result{{}};
    for (const Loop& loop : loops) {
      std::vector<std::vector<int>> longer;
      for (const auto& outer : result)
        for (const int value : loop.values(outer, size)) {
          longer.push_back(outer);
          longer.back().push_back(value);
        }
      result = std::move(longer);
    }
    return result;
  }
  [[nodiscard]] std::string text(const std::vector<std::string>& names) const {
    std::string result;
    for (std::size_t l = 0; l < loops.size(); ++l)
      result += std::string(2 * l, ' ') + loops[l].head(names[l], names) + " {\n";
    for (const Statement& statement : statements)
      result += "a[" + statement.target.text(names) + "] = a[" + statement.source.text(names) + "] + 1.0f;\n";
    for (std::size_t l = 0; l < loops.size(); ++l) result += "}";
    return result + "\n";
  }
};

inline Subscript random_subscript(Random& random, std::size_t loops) {
  Subscript result;
  result.constant = random.number(-1, 2);
  result.coefficients.assign(loops, 0);
  result.scaled.assign(loops, 0);
  const bool rows = loops > 1 && random.chance(50);
  for (std::size_t l = 0; l < loops; ++l) {
    if (rows && l == 0)
      result.scaled[l] = 1;
    else if (random.chance(70))
      result.coefficients[l] = random.number(-1, 2);
  }
  if (random.chance(15)) result.n = random.number(-1, 1);
  return result;
}

inline Nest random_nest(Random& random, std::size_t depth, bool rectangular) {
  Nest nest;
  for (std::size_t l = 0; l < depth; ++l) {
    Loop loop;
    loop.low.constant = random.number(0, 1);
    if (random.chance(70))
      loop.high.n = 1;
    else
      loop.high.constant = random.number(2, 4);
    if (!rectangular && l > 0 && random.chance(30)) {
      Bound& bound = random.chance(50) ? loop.low : loop.high;
      bound = {random.number(0, 1), 0, random.number(0, static_cast<int>(l) - 1)};
    }
    if (random.chance(20)) loop.step = random.number(2, 3);
    loop.down = random.chance(20);
    nest.loops.push_back(loop);
  }
  const int statements = random.number(1, 2);
  for (int s = 0; s < statements; ++s)
    nest.statements.push_back({random_subscript(random, depth), random_subscript(random, depth)});
  return nest;
}

/// Memory in which every value tells how it came about: reordering that matters changes it.
class Memory {
public:
  void execute(const Statement& statement, const std::vector<int>& loops, int size) {
    const std::uint64_t read = value(statement.source.value(loops, size));
    cells_[statement.target.value(loops, size)] = (read + 0x9e37U) * 0x100000001b3U ^ (read >> 7U);
  }
  friend bool operator==(const Memory&, const Memory&) = default;

private:
  [[nodiscard]] std::uint64_t value(int index) const {
    const auto found = cells_.find(index);
    return found == cells_.end() ? static_cast<std::uint64_t>(index) * 77U + 13U : found->second;
  }
  std::map<int, std::uint64_t> cells_;
};

} // namespace random_kernels
