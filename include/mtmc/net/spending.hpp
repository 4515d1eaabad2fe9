#pragma once
/// What answers cost, and caps that hold however many requests are under way.

#include <mtmc/core/step.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Money for a million tokens of a model, in the host's currency.
struct Price {
  /// The model's name, or its beginning and a `*`; the first entry that fits counts.
  std::string model;
  /// Of a million tokens of questions.
  double prompt = 0;
  /// Of a million tokens of answers.
  double completion = 0;
  /// Of prompt tokens that the provider's cache held; as `prompt` if not given.
  std::optional<double> cached{};

  friend bool operator==(const Price&, const Price&) = default; ///< member by member
};

/// The host's prices. An empty table makes everything free.
using PriceTable = std::vector<Price>;

/// The entry for a model; null if there is none.
[[nodiscard]] inline const Price* find_price(const PriceTable& prices, std::string_view model) noexcept {
  for (const auto& price : prices) {
    const std::string_view pattern = price.model;
    if (pattern == model) return &price;
    if (pattern.ends_with('*') && model.starts_with(pattern.substr(0, pattern.size() - 1))) return &price;
  }
  return nullptr;
}

/// Money for these tokens.
[[nodiscard]] inline double cost_of(const Price* price, const Usage& usage) noexcept {
  if (price == nullptr) return 0;
  const auto cached = std::clamp<std::int64_t>(usage.cached_tokens, 0, usage.prompt_tokens);
  return 1e-6 * (price->prompt * static_cast<double>(usage.prompt_tokens - cached) +
                 price->cached.value_or(price->prompt) * static_cast<double>(cached) +
                 price->completion * static_cast<double>(usage.completion_tokens));
}

/// The most that may be spent; 0 = no cap.
struct SpendingCaps {
  std::int64_t tokens = 0; ///< of questions and answers together
  double cost = 0;         ///< in the currency of the price table

  friend bool operator==(const SpendingCaps&, const SpendingCaps&) = default; ///< member by member
};

/// What was spent, and what requests under way may still spend. Copies are the same account, which may be
/// used from several threads and shared by coder and policy.
class Spending {
  struct State {
    SpendingCaps caps;
    std::mutex lock;
    Usage spent;
    std::int64_t reserved_tokens = 0;
    double reserved_cost = 0;
  };

public:
  /// An account on which nothing has been spent.
  explicit Spending(SpendingCaps caps = {}) : state_(std::make_shared<State>()) { state_->caps = caps; }

  /// A part of the caps that is set aside; what is not settled when it dies counts as spent in full, because
  /// it may have been.
  class Reservation {
  public:
    /// Takes over what the other holds; the other is empty.
    Reservation(Reservation&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), held_(std::move(other.held_)) {}
    Reservation& operator=(Reservation&&) = delete;
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;
    ~Reservation() { settle(held_); }

    /// Puts what was really spent in the place of what was set aside.
    void settle(const Usage& spent) {
      const auto state = std::exchange(state_, nullptr);
      if (!state) return;
      const std::scoped_lock lock(state->lock);
      state->reserved_tokens -= held_.tokens();
      state->reserved_cost -= held_.cost;
      state->spent += spent;
    }

    /// For an answer that was lost on the way: `likely` counts as spent, and the rest stays set aside for
    /// good, because it may have been.
    void settle_lost(const Usage& likely) {
      const auto state = std::exchange(state_, nullptr);
      if (!state) return;
      const std::scoped_lock lock(state->lock);
      state->reserved_tokens -= std::min(held_.tokens(), likely.tokens());
      state->reserved_cost -= std::min(held_.cost, likely.cost);
      state->spent += likely;
    }

  private:
    friend class Spending;
    Reservation(std::shared_ptr<State> state, const Usage& held) : state_(std::move(state)), held_(held) {}

    std::shared_ptr<State> state_;
    Usage held_;
  };

  /// Sets aside the most a request may use; nothing if a cap could be passed.
  [[nodiscard]] std::optional<Reservation> reserve(const Usage& most) {
    const std::scoped_lock lock(state_->lock);
    const auto tokens = state_->spent.tokens() + state_->reserved_tokens + most.tokens();
    const double cost = state_->spent.cost + state_->reserved_cost + most.cost;
    if (state_->caps.tokens > 0 && tokens > state_->caps.tokens) return std::nullopt;
    if (state_->caps.cost > 0 && cost > state_->caps.cost) return std::nullopt;
    state_->reserved_tokens += most.tokens();
    state_->reserved_cost += most.cost;
    return Reservation(state_, most);
  }

  /// Without what is under way.
  [[nodiscard]] Usage spent() const {
    const std::scoped_lock lock(state_->lock);
    return state_->spent;
  }
  /// The most that may be spent.
  [[nodiscard]] const SpendingCaps& caps() const noexcept { return state_->caps; }

private:
  std::shared_ptr<State> state_;
};

} // namespace mtmc
