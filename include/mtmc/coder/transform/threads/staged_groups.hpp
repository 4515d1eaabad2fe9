#pragma once
/// Neighbouring elements of an operand that a thread brings into a tile by one access.

#include <mtmc/analysis/flow/type_facts.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// By how much an index grows when a variable does by one, as its sums and differences tell; nothing where
/// they do not.
[[nodiscard]] inline std::optional<std::int64_t> step_of_index(const SyntaxNode& index,
                                                               const std::string& variable) {
  if (!uses_name(index, variable)) return 0;
  if (index.kind == NodeKind::name) return 1;
  if (index.kind == NodeKind::cast) {
    const TypeFacts type = type_facts(index.type);
    return type.integer && !type.pointer && type.size >= 4 ? step_of_index(operand(index), variable)
                                                           : std::nullopt;
  }
  if (index.kind != NodeKind::binary || (index.text != "+" && index.text != "-")) return std::nullopt;
  const auto left = step_of_index(left_operand(index), variable);
  const auto right = step_of_index(right_operand(index), variable);
  if (!left || !right) return std::nullopt;
  return index.text == "+" ? *left + *right : *left - *right;
}

/// How many elements of a type one access moves, of `each` that a thread brings from runs of `run`
/// neighbours: at most 16 bytes; 1 where groups do not fit.
[[nodiscard]] inline std::int64_t group_of(std::string_view type, std::int64_t each, std::int64_t run) {
  constexpr std::int64_t widest = 16;
  const TypeFacts facts = type_facts(type);
  if (facts.size < 1 || facts.size > 8 || facts.pointer) return 1;
  std::int64_t group = widest / facts.size;
  while (group > 1 && (each % group != 0 || run % group != 0)) group /= 2;
  return group * facts.size >= 4 ? group : 1;
}

} // namespace mtmc::detail
