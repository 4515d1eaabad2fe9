#pragma once
// Seeded choices of the task generator.

#include <mtmc/core/kernel.hpp>
#include <mtmc/support/philox.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace generated {

/// Choices for one task: equal for equal seed and stream on every platform.
class Draw {
public:
  /// Choices for a task of `language`; each stream of a seed is independent of the others.
  Draw(mtmc::Language language, std::uint64_t seed, std::uint64_t stream)
      : language_(std::move(language)), engine_(seed, stream) {}

  /// The language that the task is written in.
  [[nodiscard]] const mtmc::Language& language() const noexcept { return language_; }
  /// Whether that is CUDA C++.
  [[nodiscard]] bool cuda() const { return language_ == mtmc::languages::cuda; }
  /// True with this probability.
  [[nodiscard]] bool chance(double probability) { return engine_.uniform() < probability; }
  /// An integer from [0, `bound`), each equally likely; `bound` is at least 1.
  [[nodiscard]] std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(engine_.below(bound));
  }
  /// One of the values, each equally likely; there is at least one.
  template <class Value> [[nodiscard]] Value pick(const std::vector<Value>& values) {
    return values[below(values.size())];
  }
  /// One of the texts, each equally likely.
  [[nodiscard]] std::string pick(std::initializer_list<const char*> texts) {
    return texts.begin()[below(texts.size())];
  }
  /// Puts the values into an order of which each is equally likely.
  template <class Value> void shuffle(std::vector<Value>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

private:
  mtmc::Language language_;
  mtmc::PhiloxEngine engine_;
};

} // namespace generated
