#pragma once
/// What a run may spend, and why it ends.

#include <mtmc/core/enum_names.hpp>

#include <cstdint>
#include <optional>
#include <span>

namespace mtmc::inline MTMC_ABI {

/// Why a run ended. The list is closed.
enum class StopReason {
  /// The policy chose to stop.
  stop_action,
  step_limit,
  time,
  tokens,
  cost,
  /// So many steps in succession without a new best.
  patience,
  /// Nothing is legal any more on any kernel the search stands on.
  no_legal_action,
  /// The host asked for it.
  cancelled,
  /// Drafts are pending; resume when the answers are there.
  waiting_for_answers,
  /// A part or the surroundings broke: see the result's error.
  failed
};

namespace detail {
inline constexpr EnumName<StopReason> stop_reason_names[] = {
    {StopReason::stop_action, "stop_action"},
    {StopReason::step_limit, "step_limit"},
    {StopReason::time, "time"},
    {StopReason::tokens, "tokens"},
    {StopReason::cost, "cost"},
    {StopReason::patience, "patience"},
    {StopReason::no_legal_action, "no_legal_action"},
    {StopReason::cancelled, "cancelled"},
    {StopReason::waiting_for_answers, "waiting_for_answers"},
    {StopReason::failed, "failed"},
};
} // namespace detail
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<StopReason>> enum_names(StopReason) noexcept {
  return detail::stop_reason_names;
}

/// Limits of a run besides its number of steps; 0 = no limit. What earlier sessions of a resumed run spent
/// counts.
struct Budget {
  /// Wall-clock seconds of searching. Work under way is cancelled when they are over; what was found by then
  /// is still confirmed and compared with the start kernel.
  double seconds = 0;
  /// Tokens of all drafts. Looked at before each step and each repair: the drafts of one step may overshoot.
  std::int64_t tokens = 0;
  /// Money for all drafts, in the currency of the coder's price table. As for tokens.
  double cost = 0;
  /// Steps in succession without a new best.
  int patience = 0;

  friend bool operator==(const Budget&, const Budget&) = default; ///< member by member
};

/// What a run has spent so far.
struct Spent {
  /// Finished steps.
  int steps = 0;
  /// Wall-clock time over all sessions.
  double seconds = 0;
  /// Of questions and answers together.
  std::int64_t tokens = 0;
  /// Money, in the currency of the price table.
  double cost = 0;
  /// Steps since the last new best.
  int idle_steps = 0;
};

/// The first limit that is reached, in the order steps, time, tokens, cost, patience; nothing while work may
/// go on.
[[nodiscard]] inline std::optional<StopReason> exhausted(int max_steps, const Budget& budget,
                                                         const Spent& spent) noexcept {
  if (spent.steps >= max_steps) return StopReason::step_limit;
  if (budget.seconds > 0 && spent.seconds >= budget.seconds) return StopReason::time;
  if (budget.tokens > 0 && spent.tokens >= budget.tokens) return StopReason::tokens;
  if (budget.cost > 0 && spent.cost >= budget.cost) return StopReason::cost;
  if (budget.patience > 0 && spent.idle_steps >= budget.patience) return StopReason::patience;
  return std::nullopt;
}

} // namespace mtmc
