#pragma once
/// Can a task tell right from wrong? Wrong results that are easy to produce must be refused.

#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/content/comparison.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/evaluator/content/wrong_result.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One result that is known to be right, with all that a comparison needs. Spans are borrowed.
struct KnownResult {
  /// The buffers of its size.
  const ProblemLayout* layout = nullptr;
  /// Place of the output in `layout->buffers`.
  std::size_t output = 0;
  /// The right content of the output.
  std::span<const std::byte> wanted{};
  /// Contents before the call, in the order of `layout->buffers`; empty for outputs.
  std::span<const std::vector<std::byte>> inputs{};
  Tolerance tolerance{}; ///< what is allowed
};

/// A wrong result and what it stands for.
struct Mutant {
  std::string name;               ///< "zero", "constant", ..
  std::vector<std::byte> content; ///< the wrong result itself
};

namespace detail {

/// The nearest number with `bits` bits of mantissa after the point; the exponent keeps its range.
[[nodiscard]] inline double rounded_to_bits(double value, int bits) noexcept {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits + 1)), exponent - bits - 1);
}

inline void store_number(std::span<std::byte> content, DataType type, std::size_t place, double value) {
  std::byte* at = content.data() + place * size_of(type);
  if (is_floating(type))
    store_real(type, value, {-HUGE_VAL, HUGE_VAL}, at);
  else
    store_integer(type, static_cast<std::int64_t>(value), at);
}

[[nodiscard]] inline double mean_value(std::span<const std::byte> content, DataType type) {
  const auto count = static_cast<std::int64_t>(content.size() / size_of(type));
  double total = 0;
  double finite = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = element_value(content, type, i);
    if (std::isfinite(value)) total += value, finite += 1;
  }
  return finite > 0 ? total / finite : 0;
}

} // namespace detail

/// The wrong results that a task must refuse: all zero; all the mean; a copy of each input of the same type
/// and length, if that is at least 16 (for an inout argument of any length: left as it was); the last tile (a
/// sixteenth of the elements, at least one) left at zero; and, for floating-point outputs, the right result
/// rounded to the next lower precision.
[[nodiscard]] inline std::vector<Mutant> mutants_of(const KnownResult& known) {
  const auto& buffer = known.layout->buffers[known.output];
  const auto& wanted = known.wanted;
  const auto elements = static_cast<std::size_t>(buffer.elements);
  std::vector<Mutant> mutants;
  mutants.push_back({"all zero", std::vector<std::byte>(wanted.size())});

  Mutant constant{"all the same value", std::vector<std::byte>(wanted.size())};
  const double mean = detail::mean_value(wanted, buffer.type);
  for (std::size_t i = 0; i < elements; ++i) detail::store_number(constant.content, buffer.type, i, mean);
  mutants.push_back(std::move(constant));

  // A single element is equal to another by chance: x / |x| * scale is the scale for every positive x.
  constexpr std::int64_t too_few_for_chance = 16;
  for (std::size_t i = 0; i < known.inputs.size() && i < known.layout->buffers.size(); ++i) {
    const auto& input = known.layout->buffers[i];
    if (!input.is_read() || input.type != buffer.type || known.inputs[i].size() != wanted.size()) continue;
    if (i != known.output && buffer.elements < too_few_for_chance) continue;
    mutants.push_back(
        {i == known.output ? buffer.name + " left as it was" : "a copy of " + input.name, known.inputs[i]});
  }

  Mutant dropped{"the last tile left at zero", std::vector<std::byte>(wanted.begin(), wanted.end())};
  const std::size_t tile = std::max<std::size_t>(1, elements / 16) * size_of(buffer.type);
  std::memset(dropped.content.data() + dropped.content.size() - tile, 0, tile);
  mutants.push_back(std::move(dropped));

  if (is_floating(buffer.type)) {
    Mutant coarse{"computed in the next lower precision", std::vector<std::byte>(wanted.size())};
    const int bits = -static_cast<int>(std::lround(std::log2(lower_epsilon(buffer.type))));
    for (std::size_t i = 0; i < elements; ++i)
      detail::store_number(
          coarse.content, buffer.type, i,
          detail::rounded_to_bits(detail::element_value(wanted, buffer.type, static_cast<std::int64_t>(i)),
                                  bits));
    mutants.push_back(std::move(coarse));
  }
  return mutants;
}

/// Collects, over all known results of a task, which mutants were refused at least once.
class TaskCheck {
public:
  /// `accepts_lower_precision`: the host has asked for a tolerance that lets it pass.
  explicit TaskCheck(bool accepts_lower_precision = false)
      : accepts_lower_precision_(accepts_lower_precision) {}

  /// Judges the mutants of one known result; `is_right(content)` is the comparison that candidates will face.
  template <class IsRight> void add(const KnownResult& known, IsRight&& is_right) {
    for (const auto& mutant : mutants_of(known)) {
      if (accepts_lower_precision_ && mutant.name.starts_with("computed in")) continue;
      // What equals the reference is no mutant here.
      const Tolerance none{};
      if (compare_output(mutant.content, known.wanted, known.layout->buffers[known.output].type, none)
              .right())
        continue;
      const auto key = known.layout->buffers[known.output].name + ": " + mutant.name;
      auto& refused = refused_[key];
      refused = refused || !is_right(mutant.content);
    }
  }

  /// "C: all zero", ...: what differs from the reference in at least one case and is refused in none.
  [[nodiscard]] std::vector<std::string> survivors() const {
    std::vector<std::string> names;
    for (const auto& [name, refused] : refused_)
      if (!refused) names.push_back(name);
    return names;
  }

  /// Throws `Error` (`mtmc.task.006`) that names the survivors, if there are any.
  void demand_none(const Task& task) const {
    const auto names = survivors();
    if (names.empty()) return;
    std::string listed;
    for (const auto& name : names) listed += (listed.empty() ? "" : "; ") + name;
    throw Error(
        error_id::task_cannot_tell,
        "the task cannot tell a right kernel from a wrong one: these wrong results would pass in "
        "every case: " +
            listed,
        "Make the output depend on the inputs at every size (choose sizes, domains or a generate hook "
        "for which it does), or ask for a smaller tolerance" +
            std::string(task.compare ? ", or have the compare hook refuse them" : ""),
        "task " + task.name);
  }

private:
  bool accepts_lower_precision_;
  std::map<std::string, bool> refused_;
};

} // namespace mtmc
