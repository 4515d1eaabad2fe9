#pragma once
/// A wrong result in words: where, how much, and what the pattern of the wrong elements suggests.

#include <mtmc/core/data_type.hpp>
#include <mtmc/evaluator/content/comparison.hpp>
#include <mtmc/evaluator/content/poison.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/evaluator/protocol/case_book.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A description of a wrong result: the facts, and what to look at.
struct WrongResult {
  std::string message; ///< one sentence: where and how the result differs
  std::string remedy;  ///< what to look at
};

namespace detail {

/// One element as a number: floating-point and integer types alike.
[[nodiscard]] double element_value(std::span<const std::byte> content, DataType type, std::int64_t place);

/// "C[3, 17]".
[[nodiscard]] std::string element_name(const BufferLayout& buffer, std::int64_t place);

/// Everything the hints look at, gathered in one pass over the wrong elements. Where millions are wrong, over
/// every so many-th element.
struct WrongElements {
  /// Elements from one that is looked at to the next.
  std::int64_t stride = 1;
  std::int64_t count = 0;
  std::int64_t poisoned = 0;
  std::int64_t zero = 0;
  std::int64_t not_a_number = 0;
  /// Least and greatest index of a wrong element in each dimension.
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;
  /// Of got / wanted, where both are finite and not 0, and of got - wanted.
  double least_ratio = HUGE_VAL;
  double greatest_ratio = -HUGE_VAL;
  std::int64_t ratios = 0;
  double least_got = HUGE_VAL;
  double greatest_got = -HUGE_VAL;
};

} // namespace detail

/// Describes a result that `compare_output` found wrong. `inputs` are the contents before the call, in the
/// order of `layout.buffers` and empty where there was none; `poison` is what outputs held.
[[nodiscard]] WrongResult describe_wrong_result(const ProblemLayout& layout, std::size_t output,
                                                std::span<const std::byte> got, const WantedContent& wanted,
                                                std::span<const std::vector<std::byte>> inputs,
                                                const Tolerance& tolerance,
                                                const ComparisonResult& comparison, const Poison& poison);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/content/wrong_result_inl.hpp>
#endif
