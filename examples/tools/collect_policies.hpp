#pragma once
// Who chooses the actions of a collection: those that explore, and those that are compared with each other.

#include <mtmc/core/any.hpp>
#include <mtmc/policy/neural.hpp>
#include <mtmc/policy/random.hpp>
#include <mtmc/policy/rules.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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

/// A policy that may be asked for, and how its actions are chosen.
struct CollectingPolicy {
  std::string_view name;
  bool explores; ///< never stops, and its actions are drawn; else the likeliest is taken, and stopping heeded
};
inline constexpr std::array<CollectingPolicy, 5> collecting_policies{
    {{"random", true}, {"rules", true}, {"learnt", true}, {"best-rules", false}, {"best-learnt", false}}};

/// Whether the policy of that name explores.
inline bool explores(std::string_view name) {
  return std::any_of(collecting_policies.begin(), collecting_policies.end(),
                     [name](const CollectingPolicy& one) { return one.name == name && one.explores; });
}

/// The policy of that name; `weights` is the file of a learnt one's.
inline mtmc::AnyPolicy collecting_policy(std::string_view name, const std::string& weights) {
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
  return policy == "random" ? 1 : turns[seed % turns.size()];
}

} // namespace command_line
