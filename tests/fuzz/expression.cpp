// Expressions of shapes, grids and flop counts.
#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <optional>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

std::optional<std::int64_t> value_of(const std::string& text) {
  static const mtmc::Symbols symbols{{"M", 1024}, {"N", 3},
                                     {"K", -7},   {"min", 5},
                                     {"zero", 0}, {"large", std::numeric_limits<std::int64_t>::max()}};
  try {
    return mtmc::evaluate_expression(text, symbols);
  } catch (const mtmc::ExpressionError& error) {
    require(error.position() <= text.size(), "an error points into the text");
    return std::nullopt;
  }
}

bool is_well_formed(const std::string& text) {
  try {
    const auto names = mtmc::expression_symbols(text);
    for (auto name = names.begin(); name != names.end(); ++name)
      require(std::count(names.begin(), names.end(), *name) == 1, "each symbol is told once");
    return true;
  } catch (const mtmc::ExpressionError&) {
    return false;
  }
}

} // namespace

void expression(std::string_view input) {
  const std::string text(input);
  const bool well_formed = is_well_formed(text);
  const auto value = value_of(text);
  if (!value) return;
  require(well_formed, "what has a value is well formed");
  // One more level may be one too many.
  if (const auto same = value_of("(" + text + ")")) require(same == value, "parentheses change nothing");
  if (*value >= 0) require(value_of(std::to_string(*value)) == value, "a value is an expression");
}

} // namespace mtmc_fuzz
