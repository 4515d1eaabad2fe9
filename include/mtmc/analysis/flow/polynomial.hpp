#pragma once

#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Integer polynomials over symbols: what subscripts and loop bounds are to the analyses.

namespace mtmc::inline MTMC_ABI {

struct LoopInfo;
struct Symbol;

/// A polynomial with integer coefficients over symbols, as a sum of terms in a canonical order. A value type.
///
/// It may be *undefined*: not representable (a coefficient beyond 64 bits, a term of degree above 6, more
/// than 64 terms). Everything computed from an undefined polynomial is undefined, and nothing can be proved
/// of it.
class Polynomial {
public:
  /// Largest degree of a term: enough for the flattened subscript of a six-dimensional tensor.
  static constexpr std::size_t largest_degree = 6;
  /// Most terms. Subscripts have below ten; without a bound, sums that are assigned and used in turn grow
  /// with the text, and so does each operation on them.
  static constexpr std::size_t max_terms = 64;

  /// A product of symbols and a coefficient other than 0.
  struct Term {
    /// Never 0.
    std::int64_t coefficient = 0;
    /// How many symbols are multiplied.
    std::uint8_t degree = 0;
    /// The first `degree` are set, ordered by `Symbol::index`.
    std::array<const Symbol*, largest_degree> factors{};

    /// How often a symbol is a factor.
    [[nodiscard]] int power_of(const Symbol* symbol) const noexcept {
      int power = 0;
      for (std::size_t i = 0; i < degree; ++i) power += factors[i] == symbol ? 1 : 0;
      return power;
    }
    /// Whether both are products of the same symbols.
    [[nodiscard]] bool alike(const Term& other) const noexcept {
      return degree == other.degree &&
             std::equal(factors.begin(), factors.begin() + degree, other.factors.begin());
    }
  };

  /// Zero.
  Polynomial() = default;
  /// A constant.
  Polynomial(std::int64_t constant) { // NOLINT(google-explicit-constructor): numbers are polynomials
    if (constant != 0) terms_.push_back({constant, 0, {}});
  }
  /// One symbol.
  explicit Polynomial(const Symbol* symbol) { terms_.push_back({1, 1, {symbol}}); }
  /// The polynomial of which nothing is known.
  [[nodiscard]] static Polynomial undefined() {
    Polynomial result;
    result.defined_ = false;
    return result;
  }

  /// Whether its value is known at all.
  [[nodiscard]] bool defined() const noexcept { return defined_; }
  /// Whether it is defined and 0 for all values of the symbols.
  [[nodiscard]] bool is_zero() const noexcept { return defined_ && terms_.empty(); }
  /// The terms, highest degree first; the constant, if any, is the last one.
  [[nodiscard]] const std::vector<Term>& terms() const noexcept { return terms_; }
  /// Its value if no symbol occurs in it.
  [[nodiscard]] std::optional<std::int64_t> constant() const noexcept {
    if (!defined_) return std::nullopt;
    if (terms_.empty()) return 0;
    if (terms_.size() == 1 && terms_.front().degree == 0) return terms_.front().coefficient;
    return std::nullopt;
  }
  /// The term without symbols.
  [[nodiscard]] std::int64_t constant_term() const noexcept {
    return !terms_.empty() && terms_.back().degree == 0 ? terms_.back().coefficient : 0;
  }

  /// Highest power of the symbol in any term.
  [[nodiscard]] int degree_in(const Symbol* symbol) const noexcept {
    int degree = 0;
    for (const Term& term : terms_) degree = std::max(degree, term.power_of(symbol));
    return degree;
  }
  /// What the symbol is multiplied with in the terms where its power is 1: `N` for `i` in `i*N + j`.
  [[nodiscard]] Polynomial coefficient_of(const Symbol* symbol) const;
  /// The terms in which the symbol does not occur.
  [[nodiscard]] Polynomial without(const Symbol* symbol) const;
  /// The polynomial with `value` in place of the symbol.
  [[nodiscard]] Polynomial substitute(const Symbol* symbol, const Polynomial& value) const;
  /// All symbols that occur, by order of appearance.
  [[nodiscard]] std::vector<const Symbol*> symbols() const;
  /// `this` divided by a single term, if every term is divisible by it.
  [[nodiscard]] std::optional<Polynomial> divided_by(const Term& divisor) const;

  /// Its value where `value_of(const Symbol&)` gives the values of symbols as `std::optional<std::int64_t>`;
  /// nothing if a value is missing or the result does not fit into 64 bits.
  template <class ValueOf> [[nodiscard]] std::optional<std::int64_t> evaluate(const ValueOf& value_of) const;
  /// Its value at a problem size, by the symbols' names; derived symbols are computed from their operands.
  [[nodiscard]] std::optional<std::int64_t> evaluate_at(const Symbols& symbols) const;

  /// As people write it: `N*i + j - 1`. What is longer than 300 bytes ends in "...".
  [[nodiscard]] std::string text() const;

  /// How many symbols it has, those of their definitions and of the bounds of their loops counted in, however
  /// often they occur: what a walk through all of it costs. See `Symbol::weight`.
  [[nodiscard]] std::size_t weight() const noexcept;

  /// Sum; undefined where either operand is.
  Polynomial& operator+=(const Polynomial& other) { return *this = combine(*this, other, 1); }
  /// Difference; undefined where either operand is.
  Polynomial& operator-=(const Polynomial& other) { return *this = combine(*this, other, -1); }
  /// Sum; undefined where either operand is.
  friend Polynomial operator+(const Polynomial& a, const Polynomial& b) { return combine(a, b, 1); }
  /// Difference; undefined where either operand is.
  friend Polynomial operator-(const Polynomial& a, const Polynomial& b) { return combine(a, b, -1); }
  /// The negative; undefined where the operand is.
  friend Polynomial operator-(const Polynomial& a) { return combine({}, a, -1); }
  /// Product; undefined where either operand is or the terms become too many.
  friend Polynomial operator*(const Polynomial& a, const Polynomial& b);
  /// Equal for all values of the symbols. Undefined ones are equal to nothing.
  friend bool operator==(const Polynomial& a, const Polynomial& b) {
    if (!a.defined_ || !b.defined_ || a.terms_.size() != b.terms_.size()) return false;
    for (std::size_t i = 0; i < a.terms_.size(); ++i)
      if (a.terms_[i].coefficient != b.terms_[i].coefficient || !a.terms_[i].alike(b.terms_[i])) return false;
    return true;
  }

private:
  /// Canonical order: higher degree first, then by the factors' indices.
  [[nodiscard]] static bool before(const Term& a, const Term& b) noexcept;
  /// a + sign * b.
  [[nodiscard]] static Polynomial combine(const Polynomial& a, const Polynomial& b, std::int64_t sign);
  /// Puts terms into canonical order and adds those that are alike.
  void normalize();
  /// Makes it undefined if it has too many terms.
  void limit_terms();

  std::vector<Term> terms_;
  bool defined_ = true;
};

/// An integer known by name: a parameter, a loop's variable, a value derived from others (`N / 2`), or one
/// whose origin is not understood. Two symbols are the same exactly if they are the same object; a name alone
/// may be shadowed or assigned anew.
struct Symbol {
  /// What it stands for.
  enum class Kind : std::uint8_t {
    /// A variable with one value for the whole life of the symbol: a parameter, a constant, ...
    variable,
    /// The variable of a canonical loop (`loop`).
    loop_variable,
    /// `operation` applied to `operands`.
    derived,
    /// A value nobody knows.
    unknown
  };
  /// What it stands for.
  Kind kind = Kind::variable;
  /// As the text names it.
  std::string name;
  /// Order of appearance: it makes the order of terms the same in every run.
  std::uint32_t index = 0;
  /// The innermost loop in whose iterations the value may differ; null: one value for the whole function.
  const LoopInfo* loop = nullptr;
  /// Of a derived symbol: `/`, `%`, `min`, `max`; `=` for a name of its one operand, a polynomial of several
  /// terms; `[]` for an element of an array that is never written, and others that cannot be evaluated. Of an
  /// unknown symbol: `iteration` if it is the number of the iteration of `loop`, counted from 0.
  std::string operation{};
  /// Of a derived symbol: what `operation` is applied to.
  std::vector<Polynomial> operands{};
  /// 1, and the weights of the operands, or of the bounds if it is a loop's variable. Definitions that use
  /// others twice would double it with each level; what would weigh more than `heaviest` is an unknown symbol
  /// instead, so that walks through definitions (values, expansions, names) stay short.
  std::uint32_t weight = 1;

  /// Index arithmetic of kernels weighs below 30.
  static constexpr std::size_t heaviest = 256;
};

inline bool Polynomial::before(const Term& a, const Term& b) noexcept {
  if (a.degree != b.degree) return a.degree > b.degree;
  for (std::size_t i = 0; i < a.degree; ++i)
    if (a.factors[i] != b.factors[i]) return a.factors[i]->index < b.factors[i]->index;
  return false;
}

inline Polynomial Polynomial::combine(const Polynomial& a, const Polynomial& b, std::int64_t sign) {
  if (!a.defined_ || !b.defined_) return undefined();
  Polynomial result;
  result.terms_.reserve(a.terms_.size() + b.terms_.size());
  std::size_t i = 0, j = 0;
  while (i < a.terms_.size() || j < b.terms_.size()) {
    const bool from_a = j == b.terms_.size() || (i < a.terms_.size() && !before(b.terms_[j], a.terms_[i]));
    const bool from_b = i == a.terms_.size() || (j < b.terms_.size() && !before(a.terms_[i], b.terms_[j]));
    Term term = from_a ? a.terms_[i] : b.terms_[j];
    if (from_b) {
      std::int64_t signed_coefficient = 0;
      if (__builtin_mul_overflow(b.terms_[j].coefficient, sign, &signed_coefficient)) return undefined();
      if (!from_a)
        term.coefficient = signed_coefficient;
      else if (__builtin_add_overflow(term.coefficient, signed_coefficient, &term.coefficient))
        return undefined();
    }
    if (term.coefficient != 0) result.terms_.push_back(term);
    i += from_a ? 1 : 0;
    j += from_b ? 1 : 0;
  }
  result.limit_terms();
  return result;
}

inline void Polynomial::limit_terms() {
  if (terms_.size() > max_terms) *this = undefined();
}

inline std::size_t Polynomial::weight() const noexcept {
  std::size_t sum = 0;
  for (const Term& term : terms_)
    for (std::size_t i = 0; i < term.degree; ++i) sum += term.factors[i]->weight;
  return sum;
}

inline void Polynomial::normalize() {
  std::sort(terms_.begin(), terms_.end(), before);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < terms_.size();) {
    Term sum = terms_[i];
    for (++i; i < terms_.size() && terms_[i].alike(sum); ++i)
      if (__builtin_add_overflow(sum.coefficient, terms_[i].coefficient, &sum.coefficient)) defined_ = false;
    if (sum.coefficient != 0) terms_[kept++] = sum;
  }
  terms_.resize(kept);
  if (!defined_) terms_.clear();
  limit_terms();
}

/// Product; undefined where either operand is or the terms become too many.
inline Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  if (!a.defined_ || !b.defined_) return Polynomial::undefined();
  Polynomial result;
  result.terms_.reserve(a.terms_.size() * b.terms_.size());
  for (const auto& left : a.terms_)
    for (const auto& right : b.terms_) {
      Polynomial::Term term;
      if (left.degree + right.degree > Polynomial::largest_degree ||
          __builtin_mul_overflow(left.coefficient, right.coefficient, &term.coefficient))
        return Polynomial::undefined();
      term.degree = static_cast<std::uint8_t>(left.degree + right.degree);
      std::merge(left.factors.begin(), left.factors.begin() + left.degree, right.factors.begin(),
                 right.factors.begin() + right.degree, term.factors.begin(),
                 [](const Symbol* x, const Symbol* y) { return x->index < y->index; });
      result.terms_.push_back(term);
    }
  if (a.terms_.size() > 1 || b.terms_.size() > 1) result.normalize();
  return result;
}

inline Polynomial Polynomial::coefficient_of(const Symbol* symbol) const {
  if (!defined_) return undefined();
  Polynomial result;
  for (Term term : terms_) {
    if (term.power_of(symbol) != 1) continue;
    const auto at = std::find(term.factors.begin(), term.factors.begin() + term.degree, symbol);
    std::copy(at + 1, term.factors.begin() + term.degree, at);
    term.factors[--term.degree] = nullptr;
    result.terms_.push_back(term);
  }
  result.normalize();
  return result;
}

inline Polynomial Polynomial::without(const Symbol* symbol) const {
  if (!defined_) return undefined();
  Polynomial result;
  for (const Term& term : terms_)
    if (term.power_of(symbol) == 0) result.terms_.push_back(term);
  return result;
}

inline Polynomial Polynomial::substitute(const Symbol* symbol, const Polynomial& value) const {
  if (!defined_) return undefined();
  if (degree_in(symbol) == 0) return *this;
  Polynomial result;
  for (const Term& term : terms_) {
    Polynomial product{term.coefficient};
    for (std::size_t i = 0; i < term.degree; ++i)
      product = product * (term.factors[i] == symbol ? value : Polynomial{term.factors[i]});
    result += product;
  }
  return result;
}

inline std::vector<const Symbol*> Polynomial::symbols() const {
  std::vector<const Symbol*> result;
  for (const Term& term : terms_)
    for (std::size_t i = 0; i < term.degree; ++i)
      if (std::find(result.begin(), result.end(), term.factors[i]) == result.end())
        result.push_back(term.factors[i]);
  std::sort(result.begin(), result.end(),
            [](const Symbol* a, const Symbol* b) { return a->index < b->index; });
  return result;
}

inline std::optional<Polynomial> Polynomial::divided_by(const Term& divisor) const {
  if (!defined_ || divisor.coefficient == 0) return std::nullopt;
  Polynomial result;
  for (const Term& term : terms_) {
    Term quotient;
    if (term.coefficient % divisor.coefficient != 0 || term.degree < divisor.degree) return std::nullopt;
    quotient.coefficient = term.coefficient / divisor.coefficient;
    std::size_t d = 0;
    for (std::size_t i = 0; i < term.degree; ++i) {
      if (d < divisor.degree && term.factors[i] == divisor.factors[d])
        ++d;
      else
        quotient.factors[quotient.degree++] = term.factors[i];
    }
    if (d != divisor.degree) return std::nullopt;
    result.terms_.push_back(quotient);
  }
  result.normalize();
  return result;
}

template <class ValueOf>
[[nodiscard]] std::optional<std::int64_t> Polynomial::evaluate(const ValueOf& value_of) const {
  if (!defined_) return std::nullopt;
  std::int64_t sum = 0;
  for (const Term& term : terms_) {
    std::int64_t product = term.coefficient;
    for (std::size_t i = 0; i < term.degree; ++i) {
      const std::optional<std::int64_t> value = value_of(*term.factors[i]);
      if (!value || __builtin_mul_overflow(product, *value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

/// The value of a derived symbol from the values of its operands, by the rules of C++ (`/` truncates);
/// nothing if it is not derived by arithmetic, or undefined.
template <class ValueOf>
[[nodiscard]] std::optional<std::int64_t> evaluate_derived(const Symbol& symbol, const ValueOf& value_of) {
  if (symbol.kind != Symbol::Kind::derived) return std::nullopt;
  if (symbol.operation == "=" && symbol.operands.size() == 1) return symbol.operands[0].evaluate(value_of);
  if (symbol.operands.size() != 2) return std::nullopt;
  const auto a = symbol.operands[0].evaluate(value_of);
  const auto b = symbol.operands[1].evaluate(value_of);
  if (!a || !b) return std::nullopt;
  if (symbol.operation == "min") return std::min(*a, *b);
  if (symbol.operation == "max") return std::max(*a, *b);
  if (*a >= 0 && *b >= 0 && symbol.operation == "&") return *a & *b;
  if (*a >= 0 && *b >= 0 && *b < 63 && symbol.operation == ">>") return *a >> *b;
  if (*b == 0 || *b == -1) return std::nullopt;
  if (symbol.operation == "/") return *a / *b;
  if (symbol.operation == "%") return *a % *b;
  return std::nullopt;
}

/// The polynomial with every name of another polynomial (`=`) replaced by that: two bounds are the same
/// number if their expansions are equal.
[[nodiscard]] inline Polynomial expanded(const Polynomial& polynomial) {
  Polynomial result = polynomial;
  while (result.defined()) {
    // Definitions refer to earlier symbols only: from the last one on, each is replaced once.
    const Symbol* last = nullptr;
    for (const auto& term : result.terms())
      for (std::size_t i = 0; i < term.degree; ++i) {
        const Symbol* symbol = term.factors[i];
        const bool is_name = symbol->kind == Symbol::Kind::derived && symbol->operation == "=";
        if (is_name && (last == nullptr || symbol->index > last->index)) last = symbol;
      }
    if (last == nullptr) break;
    result = result.substitute(last, last->operands[0]);
  }
  return result;
}

inline std::optional<std::int64_t> Polynomial::evaluate_at(const Symbols& symbols) const {
  struct ValueOf {
    const Symbols& symbols;
    std::optional<std::int64_t> operator()(const Symbol& symbol) const {
      if (symbol.kind == Symbol::Kind::derived) return evaluate_derived(symbol, *this);
      const auto found = symbols.find(symbol.name);
      if (found == symbols.end()) return std::nullopt;
      return found->second;
    }
  };
  return evaluate(ValueOf{symbols});
}

inline std::string Polynomial::text() const {
  if (!defined_) return "?";
  if (terms_.empty()) return "0";
  constexpr std::size_t longest = 300;
  std::string result;
  for (const Term& term : terms_) {
    if (result.size() > longest) break;
    std::int64_t coefficient = term.coefficient;
    if (!result.empty()) {
      result += coefficient < 0 ? " - " : " + ";
      if (coefficient < 0 && coefficient != INT64_MIN) coefficient = -coefficient;
    }
    if (term.degree == 0 || (coefficient != 1 && coefficient != -1))
      result += std::to_string(coefficient) + (term.degree > 0 ? "*" : "");
    else if (coefficient == -1)
      result += '-';
    for (std::size_t i = 0; i < term.degree; ++i) {
      if (i > 0) result += '*';
      result.append(term.factors[i]->name, 0, longest);
    }
  }
  if (result.size() > longest) result.replace(longest, std::string::npos, "...");
  return result;
}

} // namespace mtmc
