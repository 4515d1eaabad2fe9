#pragma once
/// What happens to `#pragma` lines when their loop is taken apart.

#include <mtmc/analysis/threads/thread_language.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Throws `TransformDeclined` where directives of OpenMP change nothing: in the kernels of a GPU.
inline void require_openmp(const TransformRequest& request) {
  if (has_thread_grid(request.kernel.language))
    throw TransformDeclined("directives of OpenMP change nothing in a kernel for a GPU");
}

/// The text in the parentheses of a clause, from `collapse(2)`: "2"; empty if there is none. The first of
/// several.
[[nodiscard]] inline std::string clause_of(std::string_view directive, std::string_view clause) {
  for (std::size_t at = directive.find(clause); at != std::string_view::npos;
       at = directive.find(clause, at + 1)) {
    if (at > 0 && is_identifier_part(directive[at - 1])) continue;
    std::size_t open = at + clause.size();
    while (open < directive.size() && directive[open] == ' ') ++open;
    if (open >= directive.size() || directive[open] != '(') continue;
    const std::size_t close = directive.find(')', open);
    if (close == std::string_view::npos) return {};
    return std::string(directive.substr(open + 1, close - open - 1));
  }
  return {};
}

/// How many loops a directive takes together; 1 without `collapse`.
[[nodiscard]] inline int collapsed_loops(std::string_view directive) {
  const std::string count = clause_of(directive, "collapse");
  if (count.empty()) return 1;
  const auto value = literal_value(make_literal(std::string(trim(std::string_view(count)))));
  return value && *value < 10 ? static_cast<int>(*value) : 10;
}

/// Throws `TransformDeclined` if a directive with `collapse` on a loop around (or on the loop itself) needs
/// the loop as it stands.
inline void require_no_collapse(const LoopInfo& loop) {
  int distance = 0;
  for (const LoopInfo* at = &loop; at != nullptr; at = at->parent, ++distance)
    for (const std::string& directive : at->directives)
      if (collapsed_loops(directive) > std::max(distance, 1))
        throw TransformDeclined(loop_name(loop) + " is collapsed with others by `#pragma " + directive + '`');
}

/// Whether a loop, or one around it, is already spread over threads.
[[nodiscard]] inline bool is_inside_parallel(const LoopInfo& loop) {
  for (const LoopInfo* at = &loop; at != nullptr; at = at->parent)
    for (const std::string& directive : at->directives)
      if (has_word(directive, "parallel") || has_word(directive, "for")) return true;
  return false;
}

/// Whether a loop inside (or the loop itself) is spread over threads.
[[nodiscard]] inline bool contains_parallel(const LoopInfo& loop) {
  for (const std::string& directive : loop.directives)
    if (has_word(directive, "parallel") || has_word(directive, "for")) return true;
  return std::any_of(loop.children.begin(), loop.children.end(),
                     [](const LoopInfo* child) { return contains_parallel(*child); });
}

/// Whether a pragma is a compiler's own hint about the loop behind it, which must stand right before that
/// loop.
[[nodiscard]] inline bool is_loop_hint(const SyntaxNode& pragma) {
  return pragma.text.starts_with("GCC ") || pragma.text.starts_with("clang loop");
}

/// Removes the word `simd` and the clauses that belong to it from the pragmas before a loop that gets loops
/// inside; what hints at vectorization only goes altogether.
[[nodiscard]] inline std::vector<SyntaxNode> without_vector_hints(std::vector<SyntaxNode> pragmas) {
  std::erase_if(pragmas, [](const SyntaxNode& pragma) {
    return pragma.text.starts_with("omp simd") || is_loop_hint(pragma);
  });
  for (SyntaxNode& pragma : pragmas)
    if (const std::size_t at = pragma.text.find(" simd"); at != std::string::npos) pragma.text.erase(at, 5);
  return pragmas;
}

} // namespace mtmc::detail
