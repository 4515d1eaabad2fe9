#pragma once
// Who chooses the actions of a collection: those that explore, and those that are compared with each other.

#include <mtmc/core/any.hpp>
#include <mtmc/policy/http.hpp>
#include <mtmc/policy/neural.hpp>
#include <mtmc/policy/random.hpp>
#include <mtmc/policy/rules.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/train/tree_policy.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// What was tried on which kernel of a task, in all of its searches so far.
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
    for (std::size_t i = 0; i < legal.size(); ++i) {
      constexpr double least = 0.05; // of an action that the rules would never take
      const bool open = legal[i].kind != mtmc::Action::Kind::stop && !known.contains(legal[i].key());
      weights[i] = open ? std::sqrt(weights[i]) + least : 0;
    }
    const double left = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (!(left > 0)) return answer;
    for (double& one : weights) one /= left;
    const std::size_t chosen = mtmc::detail::drawn(weights, random_);
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

/// Walks through what other searches found: one of the actions that were tried on the kernel, each as likely.
/// What it sees is known, so a search takes no more than reading.
class WalksOnKnownWays {
public:
  /// `tried` outlives the policy.
  explicit WalksOnKnownWays(const TriedActions& tried) : tried_(&tried) {}

  [[nodiscard]] mtmc::ActionDistribution distribution(const mtmc::Observation& seen,
                                                      std::span<const mtmc::Action> legal,
                                                      const std::stop_token&) const {
    const auto known = tried_->find(seen.kernel.id());
    const auto open = [&](const mtmc::Action& action) {
      return action.kind != mtmc::Action::Kind::stop && known != tried_->end() &&
             known->second.contains(action.key());
    };
    const auto count = std::count_if(legal.begin(), legal.end(), open);
    mtmc::ActionDistribution answer;
    for (const auto& action : legal) {
      const bool taken = count == 0 ? action.kind == mtmc::Action::Kind::stop : open(action);
      answer.probabilities.push_back(taken ? 1.0 / static_cast<double>(std::max<std::ptrdiff_t>(count, 1))
                                           : 0);
    }
    return answer;
  }
  [[nodiscard]] std::string identity() const { return "walks on known ways"; }

private:
  const TriedActions* tried_;
};

/// Takes the type that a policy likes best, summed over its regions, and any of those regions: what is left
/// of the policy where it does not say where (the paper's ablation of regions).
template <mtmc::Policy P> class TypesAlone {
public:
  TypesAlone(P policy, std::uint64_t seed) : policy_(std::move(policy)), random_(seed, 5) {}

  [[nodiscard]] mtmc::ActionDistribution
  distribution(const mtmc::Observation& seen, std::span<const mtmc::Action> legal, std::stop_token stop) {
    auto answer = policy_.distribution(seen, legal, std::move(stop));
    std::map<std::string, double> types;
    for (std::size_t i = 0; i < legal.size(); ++i)
      types[std::string(type_of(legal[i]))] += answer.probabilities[i];
    const auto best = std::max_element(types.begin(), types.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < legal.size(); ++i)
      if (best != types.end() && type_of(legal[i]) == best->first) places.push_back(i);
    std::fill(answer.probabilities.begin(), answer.probabilities.end(), 0);
    if (!places.empty())
      answer.probabilities[places[static_cast<std::size_t>(random_.uniform() *
                                                           static_cast<double>(places.size()))]] = 1;
    return answer;
  }
  [[nodiscard]] std::string identity() const { return "types alone of " + mtmc::identity_of(policy_); }

private:
  [[nodiscard]] static std::string_view type_of(const mtmc::Action& action) {
    return action.kind == mtmc::Action::Kind::stop ? std::string_view("stop") : action.optimization;
  }

  P policy_;
  mtmc::PhiloxEngine random_;
};

/// A policy that may be asked for, and how its actions are chosen.
struct CollectingPolicy {
  std::string_view name;
  bool explores; ///< goes on while it can, and its actions are drawn; else the likeliest is taken
};
inline constexpr std::array<CollectingPolicy, 9> collecting_policies{{{"random", true},
                                                                      {"anew", true},
                                                                      {"walk", true},
                                                                      {"rules", true},
                                                                      {"learnt", true},
                                                                      {"best-rules", false},
                                                                      {"best-learnt", false},
                                                                      {"best-types", false},
                                                                      {"best-served", false}}};

/// Whether the policy of that name explores.
inline bool explores(std::string_view name) {
  return std::any_of(collecting_policies.begin(), collecting_policies.end(),
                     [name](const CollectingPolicy& one) { return one.name == name && one.explores; });
}

/// Whether the policy of that name needs weights.
inline bool is_learnt(std::string_view name) {
  return name == "learnt" || name == "best-learnt" || name == "best-types";
}

/// Whether the policy of that name is a language model that an endpoint serves.
inline bool is_served(std::string_view name) { return name == "best-served"; }

/// Whether the policy of that name looks at what was tried before.
inline bool looks_back(std::string_view name) { return name == "anew" || name == "walk"; }

/// The policy of that name; `weights` is the file of a learnt one's, `served` is there for a served one, and
/// it and `tried` outlive the policy.
inline mtmc::AnyPolicy collecting_policy(std::string_view name, const std::string& weights,
                                         mtmc::HttpPolicy* served, TriedActions& tried, std::uint64_t seed) {
  if (is_served(name)) return std::ref(*served);
  if (name == "anew") return TriesAnew{tried, seed};
  if (name == "walk") return WalksOnKnownWays{tried};
  if (name == "random") return mtmc::RandomPolicy{};
  if (name == "best-rules") return mtmc::RulesPolicy{};
  if (!is_learnt(name)) return NeverStops{mtmc::RulesPolicy{}};
  mtmc::NeuralPolicy learnt{mtmc::load_policy_weights(weights)};
  if (name == "best-learnt") return learnt;
  if (name == "best-types") return TypesAlone{std::move(learnt), seed};
  return NeverStops{std::move(learnt)};
}

/// Actions are drawn from p^(1/temperature). Rules are drawn from more and less boldly by turns, so that what
/// they think best is seen, and what they think little of, too.
inline double collecting_temperature(std::string_view policy, std::uint64_t seed) {
  constexpr std::array<double, 4> turns{0.5, 1, 2, 4};
  return policy == "rules" || policy == "learnt" ? turns[seed % turns.size()] : 1;
}

/// Of its speed-up, what a step must keep for the search to go on from there. Searches that explore go on
/// from faster kernels only and from slower ones, too, by turns: what leads on from the best is known in full
/// so, and what one loses first and wins back later is seen.
inline double collecting_minimum_gain(std::string_view policy, std::uint64_t seed, double least) {
  return explores(policy) && seed % 2 == 0 ? std::max(least, 1.0) : least;
}

} // namespace command_line
