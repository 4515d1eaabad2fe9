#pragma once
/// Sizes that nobody was told: a kernel that is right at the listed ones alone is wrong.

#include <mtmc/core/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Draws at most `count` sizes of weight 0 near those of a task, none of them listed; by turns one more or
/// less, any smaller number, one to eight, multiples of powers of two, one less than those, larger ones, ones
/// beyond the largest, two or three more or less; some with all symbols alike. What the
/// listed sizes have in common stays: a symbol that is always the same, or always a multiple of a number;
/// symbols that are always equal; and of symbols that always divide each other, or whose ratio, difference or
/// product is always the same, the values of one listed size (where one mostly equals the other, both change
/// by the same factor). Whether a kernel bears a size is for the caller
/// to find out. None for a task of fewer than three sizes, because two have too much in common by chance.
[[nodiscard]] std::vector<ProblemSize> draw_secret_sizes(const Task& task, std::uint64_t key,
                                                         std::size_t count);

/// Draws at most `count` sizes whose symbols lie anywhere up to eight times the largest listed value, evenly
/// in their logarithm, so that small and large ones meet: few long rows, many short ones. For the same tasks
/// and by the same rules. Only those that `is_wanted`, and none of `known`.
[[nodiscard]] std::vector<ProblemSize>
draw_large_sizes(const Task& task, const std::vector<ProblemSize>& known, std::uint64_t key,
                 std::size_t count, const std::function<bool(const ProblemSize&)>& is_wanted);

/// Draws at most `count` of the sizes nearest to the listed ones, for the same tasks and by the same rules,
/// for calls that cost next to nothing: one or two more or less, or twice as much, of one symbol or of all.
/// Only those that `is_wanted`, and none of `known`.
[[nodiscard]] std::vector<ProblemSize>
draw_nearest_sizes(const Task& task, const std::vector<ProblemSize>& known, std::uint64_t key,
                   std::size_t count, const std::function<bool(const ProblemSize&)>& is_wanted);

/// The same for sizes with round numbers: values of one symbol, or of all, rounded down or up to a multiple
/// of 8, 16, 32, 64 or 128.
[[nodiscard]] std::vector<ProblemSize>
draw_round_sizes(const Task& task, const std::vector<ProblemSize>& known, std::uint64_t key,
                 std::size_t count, const std::function<bool(const ProblemSize&)>& is_wanted);

/// The same for sizes with all symbols alike, as square matrices have them: by turns a value that is listed,
/// a small one, and any up to the largest.
[[nodiscard]] std::vector<ProblemSize>
draw_alike_sizes(const Task& task, std::uint64_t key, std::size_t count,
                 const std::function<bool(const ProblemSize&)>& is_wanted);

/// The listed sizes with two symbols exchanged of which one always divides the other and mostly equals it, as
/// the sides of a window do: one that is 5 high and 1 wide may as well be 1 high and 5 wide. For the same
/// tasks, by the same rules. Only those that `is_wanted` and are not listed.
[[nodiscard]] std::vector<ProblemSize>
exchanged_sizes(const Task& task, const std::function<bool(const ProblemSize&)>& is_wanted);

/// Draws at most `count` sizes with one symbol anywhere up to 32 times its largest listed value and all
/// others small: what fits into a table, a grid or a counter at the listed sizes does not fit there. For the
/// same tasks, by the same rules. Only those that `is_wanted`.
[[nodiscard]] std::vector<ProblemSize>
draw_long_sizes(const Task& task, std::uint64_t key, std::size_t count,
                const std::function<bool(const ProblemSize&)>& is_wanted);

/// Draws sizes at which indices outgrow what narrow types count to, whatever is listed: one with a symbol a
/// little beyond 2^16 and all others small, and one with a buffer of a little more than 2^24 elements, up to
/// where f32 knows all integers. None of a kind where a listed size is as large as that. For the same tasks,
/// by the same rules. Only those that `is_wanted`. `elements_at`: of the largest buffer.
[[nodiscard]] std::vector<ProblemSize>
draw_vast_sizes(const Task& task, std::uint64_t key,
                const std::function<double(const ProblemSize&)>& elements_at,
                const std::function<bool(const ProblemSize&)>& is_wanted);

/// Draws at most `count` sizes at which something may begin, end or repeat that has to do with one of these
/// `numbers`: a symbol is that number, or one more or less, or a multiple; or the product of two symbols is.
/// For the same tasks, by the same rules. Only those that `is_wanted`; of each number some before all of any.
[[nodiscard]] std::vector<ProblemSize>
draw_sizes_at(const Task& task, std::span<const std::int64_t> numbers, std::uint64_t key, std::size_t count,
              const std::function<bool(const ProblemSize&)>& is_wanted);

namespace detail {

/// The first of each kind, then the second of each, and so on.
[[nodiscard]] inline std::vector<ProblemSize> by_turns(std::span<const std::vector<ProblemSize>> kinds) {
  std::vector<ProblemSize> sizes;
  std::size_t most = 0;
  for (const auto& kind : kinds) most = std::max(most, kind.size());
  for (std::size_t turn = 0; turn < most; ++turn)
    for (const auto& kind : kinds)
      if (turn < kind.size()) sizes.push_back(kind[turn]);
  return sizes;
}

} // namespace detail

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/secret_sizes_inl.hpp>
#endif
