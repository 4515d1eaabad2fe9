#pragma once
// Who chooses the actions of a collection. A further policy (learnt weights from a file, say) gets a name
// here and in --policies of collect_arguments.hpp.

#include <mtmc/core/any.hpp>
#include <mtmc/policy/random.hpp>
#include <mtmc/policy/rules.hpp>

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

/// The policy of that name.
inline mtmc::AnyPolicy collecting_policy(std::string_view name) {
  if (name == "random") return mtmc::RandomPolicy{};
  return NeverStops{mtmc::RulesPolicy{}};
}

/// Actions are drawn from p^(1/temperature). Rules are drawn from more and less boldly by turns, so that what
/// they think best is seen, and what they think little of, too.
inline double collecting_temperature(std::string_view policy, std::uint64_t seed) {
  constexpr std::array<double, 4> turns{0.5, 1, 2, 4};
  return policy == "random" ? 1 : turns[seed % turns.size()];
}

} // namespace command_line
