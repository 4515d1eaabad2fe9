#pragma once
// Who chooses the actions of a collection: those that explore, and those that are compared with each other.

#include <mtmc/core/any.hpp>
#include <mtmc/policy/neural.hpp>
#include <mtmc/policy/random.hpp>
#include <mtmc/policy/rules.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace command_line {

/// A policy that stops only where there is nothing else to do: a search that ends early is data that is not
/// there.
template <mtmc::Policy P> class NeverStops {
public:
  explicit NeverStops(P policy) : policy_(std::move(policy)) {}

  [[nodiscard]] mtmc::ActionDistribution
  distribution(const mtmc::Observation& seen, std::span<const mtmc::Action> legal, std::stop_token stop) {
    auto answer = policy_.distribution(seen, legal, std::move(stop));
    double others = 0;
    for (std::size_t i = 0; i < legal.size(); ++i)
      if (legal[i].kind != mtmc::Action::Kind::stop) others += answer.probabilities[i];
    if (!(others > 0)) return answer;
    for (std::size_t i = 0; i < legal.size(); ++i)
      answer.probabilities[i] =
          legal[i].kind == mtmc::Action::Kind::stop ? 0 : answer.probabilities[i] / others;
    return answer;
  }
  [[nodiscard]] std::string identity() const { return "never stops: " + mtmc::identity_of(policy_); }

private:
  P policy_;
};

/// What was tried on which kernel of a task, in all searches of a process.
using TriedActions = std::map<std::string, std::set<std::string>>;

/// Tries on each kernel what no search has tried there, by the square root of what the rules think of it: so
/// little is known of a kernel by one or two of its actions. Where nothing is left, it draws as the rules do.
class TriesAnew {
public:
  /// `tried` outlives the policy.
  TriesAnew(TriedActions& tried, std::uint64_t seed) : tried_(&tried), random_(seed, 4) {}

  [[nodiscard]] mtmc::ActionDistribution
  distribution(const mtmc::Observation& seen, std::span<const mtmc::Action> legal, std::stop_token stop) {
    auto answer = NeverStops{mtmc::RulesPolicy{}}.distribution(seen, legal, std::move(stop));
    auto& known = (*tried_)[seen.kernel.id()];
    auto weights = answer.probabilities;
    double left = 0;
    for (std::size_t i = 0; i < legal.size(); ++i) {
      constexpr double least = 0.05; // of an action that the rules would never take
      const bool open = legal[i].kind != mtmc::Action::Kind::stop && !known.contains(legal[i].key());
      weights[i] = open ? std::sqrt(weights[i]) + least : 0;
      left += weights[i];
    }
    if (!(left > 0)) return answer;
    std::size_t chosen = 0;
    for (double place = random_.uniform() * left; chosen + 1 < legal.size(); ++chosen) {
      place -= weights[chosen];
      if (place < 0) break;
    }
    known.insert(legal[chosen].key());
    std::fill(answer.probabilities.begin(), answer.probabilities.end(), 0);
    answer.probabilities[chosen] = 1;
    return answer;
  }
  [[nodiscard]] std::string identity() const { return "tries anew, by " + mtmc::RulesPolicy{}.identity(); }

private:
  TriedActions* tried_;
  mtmc::PhiloxEngine random_;
};

/// A policy that may be asked for, and how its actions are chosen.
struct CollectingPolicy {
  std::string_view name;
  bool explores; ///< never stops, and its actions are drawn; else the likeliest is taken, and stopping heeded
};
inline constexpr std::array<CollectingPolicy, 6> collecting_policies{{{"random", true},
                                                                      {"anew", true},
                                                                      {"rules", true},
                                                                      {"learnt", true},
                                                                      {"best-rules", false},
                                                                      {"best-learnt", false}}};

/// Whether the policy of that name explores.
inline bool explores(std::string_view name) {
  return std::any_of(collecting_policies.begin(), collecting_policies.end(),
                     [name](const CollectingPolicy& one) { return one.name == name && one.explores; });
}

/// The policy of that name; `weights` is the file of a learnt one's, `tried` outlives it.
inline mtmc::AnyPolicy collecting_policy(std::string_view name, const std::string& weights,
                                         TriedActions& tried, std::uint64_t seed) {
  if (name == "anew") return TriesAnew{tried, seed};
  if (name == "random") return mtmc::RandomPolicy{};
  if (name == "best-rules") return mtmc::RulesPolicy{};
  if (name == "rules") return NeverStops{mtmc::RulesPolicy{}};
  mtmc::NeuralPolicy learnt{mtmc::load_policy_weights(weights)};
  if (name == "best-learnt") return learnt;
  return NeverStops{std::move(learnt)};
}

/// Actions are drawn from p^(1/temperature). Rules are drawn from more and less boldly by turns, so that what
/// they think best is seen, and what they think little of, too.
inline double collecting_temperature(std::string_view policy, std::uint64_t seed) {
  constexpr std::array<double, 4> turns{0.5, 1, 2, 4};
  return policy == "rules" || policy == "learnt" ? turns[seed % turns.size()] : 1;
}

} // namespace command_line
