#pragma once
/// Proximal policy optimisation (Schulman and others, 2017) of an `ActionNetwork` in trees of recorded
/// searches: states with different numbers of actions, which are masked by never being listed.

#include <mtmc/policy/action_network.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/shuffle.hpp>
#include <mtmc/train/adam.hpp>
#include <mtmc/train/network_gradient.hpp>
#include <mtmc/train/tree_environment.hpp>
#include <mtmc/train/tree_policy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How training goes on.
struct PpoOptions {
  std::size_t environments = 8;  ///< played side by side
  std::size_t rollout = 1024;    ///< steps of all of them between updates
  std::size_t minibatch = 256;   ///< steps of an update
  int epochs = 4;                ///< over each rollout
  std::size_t steps = 100000;    ///< in all
  double discount = 0.99;        ///< of later rewards, (0, 1]
  double trace = 0.95;           ///< lambda of generalised advantage estimation, [0, 1]
  double clip = 0.2;             ///< largest change of a probability's ratio that is rewarded
  double entropy = 0.01;         ///< weight of the entropy, as part of the logarithm of the number of actions
  double largest_gradient = 0.5; ///< norm, for the policy's and the value's weights apart
  double largest_divergence = 0.02; ///< of the policy from that of the rollout: beyond it an update ends
  double policy_rate = 3e-4;        ///< learning rate at first; it falls to 0 along a line
  double value_rate = 1e-3;         ///< the same of the value
  /// Updates at first that leave the policy as it is and teach the value alone: for a policy that begins well
  /// and a value that knows nothing of it.
  std::uint64_t value_updates = 0;
  /// Largest numbers of steps of episodes, by turns, in place of the one by which trees are played: for a
  /// policy that is to search with few evaluations as well as with many. Empty for that one alone.
  std::vector<int> step_limits{};
  std::uint64_t seed = 0; ///< of everything that is drawn
};

/// What an update came to.
struct PpoProgress {
  std::size_t steps = 0;    ///< taken so far
  std::size_t episodes = 0; ///< that ended in this rollout
  double mean_return = 0;   ///< of those, without discount
  double mean_length = 0;   ///< of those
  double divergence = 0; ///< estimate of the Kullback-Leibler divergence (mean of r - 1 - log r) at the end
  double clipped = 0;    ///< part of the steps whose ratio was cut
  double entropy = 0;    ///< mean, as part of the logarithm of the number of actions
  double explained_variance = 0; ///< of the returns by the values before the update
  double first_ratio_error = 0;  ///< of the first minibatch, whose ratios must be 1: rounding alone
};

/// A network and how it came to be.
struct PpoResult {
  ActionNetwork network{};             ///< as it was after the last update that was finite
  std::vector<PpoProgress> progress{}; ///< one an update
  bool diverged = false;               ///< a weight was not finite any more: training has ended
};

namespace detail {

/// Steps of all environments, those of one environment next to each other.
struct Rollout {
  struct Step {
    std::size_t state = 0, actions = 0, priors = 0; ///< where they begin
    std::size_t count = 0;                          ///< choices
    std::size_t choice = 0;
    double log_probability = 0, value = 0, reward = 0;
    bool ended = false;
    double advantage = 0, target = 0;
  };
  std::vector<Step> steps{};
  std::vector<double> states{}, actions{}, priors{};

  void clear() {
    steps.clear();
    states.clear();
    actions.clear();
    priors.clear();
  }
};

} // namespace detail

/// Where an episode stands: what it takes to play it again up to there.
struct PpoEpisode {
  std::uint64_t tree = 0;               ///< number of the tree, of those that can be played
  std::uint64_t number = 0;             ///< of the episode in its training, from 1
  std::vector<std::uint64_t> choices{}; ///< taken so far

  friend bool operator==(const PpoEpisode&, const PpoEpisode&) = default; ///< member by member
};

/// All that a training between two updates depends on, besides what its trainer was made of.
struct PpoState {
  std::uint64_t updates = 0;         ///< made so far
  std::uint64_t episodes = 0;        ///< begun so far
  std::vector<double> weights{};     ///< of the network
  AdamMoments policy{};              ///< of the policy's weights
  AdamMoments value{};               ///< of the value's weights
  std::vector<PpoEpisode> playing{}; ///< the environments, side by side

  friend bool operator==(const PpoState&, const PpoState&) = default; ///< member by member
};

/// Training, update by update. Random numbers of an update depend on the seed and its number alone.
class PpoTrainer {
public:
  /// Begins with the network `start`. The trees outlive the trainer.
  PpoTrainer(ActionNetwork start, std::span<KernelTree> trees, TreeOptions rules, TreeEncoder encode,
             PpoOptions options)
      : rules_(std::move(rules)), encode_(std::move(encode)), options_(std::move(options)),
        random_(options_.seed, 1), network_(std::move(start)), layers_(network_.shape),
        policy_adam_(0, layers_.first_of_value()), value_adam_(layers_.first_of_value(), layers_.size()),
        gradient_(layers_.size()) {
    for (KernelTree& tree : trees)
      if (!TreeEnvironment(tree, rules_).ended()) playable_.push_back(&tree);
    for (std::size_t i = 0; i < options_.environments && !playable_.empty(); ++i)
      playing_.push_back(next_episode());
  }

  /// Whether nothing is left to do: all steps are taken, or there is nothing to play.
  [[nodiscard]] bool finished() const noexcept { return playing_.empty() || steps() >= options_.steps; }
  /// Taken so far.
  [[nodiscard]] std::size_t steps() const noexcept { return updates_ * options_.rollout; }
  /// As it is now.
  [[nodiscard]] const ActionNetwork& network() const noexcept { return network_; }
  /// How it goes on.
  [[nodiscard]] const PpoOptions& options() const noexcept { return options_; }
  /// What it plays by.
  [[nodiscard]] const TreeOptions& rules() const noexcept { return rules_; }
  /// What it plays: the trees in which something can be done.
  [[nodiscard]] std::span<KernelTree* const> trees() const noexcept { return playable_; }
  /// What the network sees of each tree's start kernel.
  [[nodiscard]] std::vector<EncodedState> start_states() const {
    std::vector<EncodedState> states;
    for (KernelTree* tree : playable_) encode_(TreeEnvironment(*tree, rules_), states.emplace_back());
    return states;
  }
  /// Whether all weights are finite; where they are not, nothing can be learnt any more.
  [[nodiscard]] bool is_finite() const { return detail::are_finite(network_.weights); }

  /// Plays, then learns from what was played; not where training is finished.
  PpoProgress update() {
    constexpr std::uint64_t first_stream = 16; // those before are others'
    random_ = PhiloxEngine(options_.seed, first_stream + updates_);
    const double left = 1 - static_cast<double>(steps()) / static_cast<double>(options_.steps);
    PpoProgress progress;
    play(progress);
    learn(left, progress);
    ++updates_;
    progress.steps = steps();
    return progress;
  }

  /// Where it stands.
  [[nodiscard]] PpoState state() const {
    PpoState state{updates_, episodes_, network_.weights, policy_adam_.moments(), value_adam_.moments()};
    for (const Playing& one : playing_) state.playing.push_back(one.episode);
    return state;
  }
  /// Goes on from where a trainer stood that was made of the same: what follows has the same bits. Episodes
  /// are played again up to there, so what outcomes are drawn from must not have grown
  /// (`UnknownActions::live`).
  /// Throws `Error` (`mtmc.train.003`) where the state is not that of such a trainer; then this one is as it
  /// was.
  void restore(const PpoState& state) {
    const auto fits = [](const AdamMoments& theirs, const AdamMoments& ours) {
      return theirs.mean.size() == ours.mean.size() && theirs.square.size() == ours.square.size();
    };
    bool same = true;
    for (const auto* values :
         {&state.weights, &state.policy.mean, &state.policy.square, &state.value.mean, &state.value.square})
      same = same && detail::are_finite(*values);
    same = same && state.weights.size() == network_.weights.size() &&
           state.playing.size() == playing_.size() && fits(state.policy, policy_adam_.moments()) &&
           fits(state.value, value_adam_.moments());
    std::vector<Playing> playing;
    for (const PpoEpisode& episode : state.playing) {
      same = same && episode.tree < playable_.size();
      if (!same) break;
      Playing& one = playing.emplace_back(begun(episode.tree, episode.number));
      for (const std::uint64_t choice : episode.choices) {
        same = same && choice < one.environment.choices();
        if (same) (void)one.step(choice);
      }
      same = same && !one.environment.ended();
    }
    if (!same)
      throw Error(error_id::train_checkpoint, "the state is that of another training",
                  "Restore it with the same trees, rules, features and options");
    updates_ = state.updates;
    episodes_ = state.episodes;
    network_.weights = state.weights;
    policy_adam_.restore(state.policy);
    value_adam_.restore(state.value);
    playing_ = std::move(playing);
  }

private:
  using Rollout = detail::Rollout;
  struct Playing {
    PpoEpisode episode;
    TreeEnvironment environment;
    double sum = 0; ///< of the episode's rewards

    TreeStep step(std::size_t choice) {
      episode.choices.push_back(choice);
      const TreeStep came = environment.step(choice);
      sum += came.reward;
      return came;
    }
  };

  [[nodiscard]] Playing begun(std::uint64_t tree, std::uint64_t number) const {
    TreeOptions rules = rules_;
    rules.seed = options_.seed + number; // streams of neighbouring seeds have nothing in common
    if (const auto& limits = options_.step_limits; !limits.empty())
      rules.reward.step_limit = limits[number % limits.size()];
    return {{tree, number}, {*playable_[tree], rules}};
  }
  [[nodiscard]] Playing next_episode() {
    const auto tree = static_cast<std::uint64_t>(random_.uniform() * static_cast<double>(playable_.size()));
    return begun(tree, ++episodes_);
  }

  void play(PpoProgress& progress) {
    rollout_.clear();
    const std::size_t each = std::max<std::size_t>(options_.rollout / playing_.size(), 1);
    for (Playing& one : playing_) {
      const std::size_t first = rollout_.steps.size();
      for (std::size_t i = 0; i < each; ++i) play_step(one, progress);
      encode_(one.environment, encoded_);
      network_.evaluate(encoded_.state, encoded_.actions, seen_);
      estimate_advantages(first, seen_.value);
    }
    if (progress.episodes > 0) {
      progress.mean_return /= static_cast<double>(progress.episodes);
      progress.mean_length /= static_cast<double>(progress.episodes);
    }
    explain(progress);
    normalise_advantages();
  }

  void play_step(Playing& one, PpoProgress& progress) {
    encode_(one.environment, encoded_);
    network_.evaluate(encoded_.state, encoded_.actions, seen_);
    detail::probabilities_of(seen_.scores, encoded_.priors, probabilities_);
    Rollout::Step step;
    step.state = rollout_.states.size();
    step.actions = rollout_.actions.size();
    step.priors = rollout_.priors.size();
    step.count = probabilities_.size();
    step.choice = detail::drawn(probabilities_, random_);
    step.log_probability = std::log(probabilities_[step.choice]);
    step.value = seen_.value;
    rollout_.states.insert(rollout_.states.end(), encoded_.state.begin(), encoded_.state.end());
    rollout_.actions.insert(rollout_.actions.end(), encoded_.actions.begin(), encoded_.actions.end());
    rollout_.priors.insert(rollout_.priors.end(), encoded_.priors.begin(), encoded_.priors.end());
    rollout_.priors.resize(step.priors + step.count); // 0 where the encoder gave none
    const TreeStep came = one.step(step.choice);
    step.reward = came.reward;
    step.ended = came.ended;
    if (came.ended) {
      ++progress.episodes;
      progress.mean_return += one.sum;
      progress.mean_length += static_cast<double>(one.episode.choices.size());
      one = next_episode();
    }
    rollout_.steps.push_back(step);
  }

  /// Generalised advantage estimation over the steps from `first` on; `next` values the state behind the
  /// last.
  void estimate_advantages(std::size_t first, double next) {
    double advantage = 0;
    for (std::size_t i = rollout_.steps.size(); i-- > first;) {
      Rollout::Step& step = rollout_.steps[i];
      const double going_on = step.ended ? 0 : 1;
      const double surprise = step.reward + options_.discount * going_on * next - step.value;
      advantage = surprise + options_.discount * options_.trace * going_on * advantage;
      step.advantage = advantage;
      step.target = advantage + step.value;
      next = step.value;
    }
  }
  void explain(PpoProgress& progress) const {
    const auto count = static_cast<double>(rollout_.steps.size());
    double mean = 0, mean_left = 0, total = 0, left = 0;
    for (const Rollout::Step& step : rollout_.steps) {
      mean += step.target / count;
      mean_left += (step.target - step.value) / count;
    }
    for (const Rollout::Step& step : rollout_.steps) {
      const double off = step.target - mean, off_value = step.target - step.value - mean_left;
      total += off * off;
      left += off_value * off_value;
    }
    progress.explained_variance = total > 0 ? 1 - left / total : 0;
  }
  /// Over the whole rollout: minibatches are too small for it.
  void normalise_advantages() {
    const auto count = static_cast<double>(rollout_.steps.size());
    double mean = 0, square = 0;
    for (const Rollout::Step& step : rollout_.steps) mean += step.advantage / count;
    for (const Rollout::Step& step : rollout_.steps)
      square += (step.advantage - mean) * (step.advantage - mean) / count;
    const double deviation = std::max(std::sqrt(square), 1e-8);
    for (Rollout::Step& step : rollout_.steps) step.advantage = (step.advantage - mean) / deviation;
  }

  void learn(double left, PpoProgress& progress) {
    std::vector<std::size_t> order(rollout_.steps.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    bool first = true;
    for (int epoch = 0; epoch < options_.epochs; ++epoch) {
      detail::shuffle(order, random_);
      double divergence = 0, clipped = 0, entropy = 0;
      for (std::size_t at = 0; at < order.size(); at += options_.minibatch) {
        const auto part = std::span(order).subspan(at, std::min(options_.minibatch, order.size() - at));
        std::fill(gradient_.begin(), gradient_.end(), 0);
        divergence = clipped = entropy = 0;
        for (const std::size_t step : part) {
          const double ratio = add(rollout_.steps[step], static_cast<double>(part.size()), entropy);
          divergence += (ratio - 1 - std::log(ratio)) / static_cast<double>(part.size());
          if (std::abs(ratio - 1) > options_.clip) clipped += 1 / static_cast<double>(part.size());
          if (first) progress.first_ratio_error = std::max(progress.first_ratio_error, std::abs(ratio - 1));
        }
        first = false;
        if (divergence > options_.largest_divergence) break;
        if (updates_ >= options_.value_updates)
          policy_adam_.step(network_.weights, gradient_, options_.policy_rate * left,
                            options_.largest_gradient);
        value_adam_.step(network_.weights, gradient_, options_.value_rate * left, options_.largest_gradient);
      }
      progress.divergence = divergence;
      progress.clipped = clipped;
      progress.entropy = entropy;
      if (divergence > options_.largest_divergence) return;
    }
  }

  /// Adds the gradient of a step's loss, one of `of` steps; the ratio of its probability to that when it was
  /// played.
  double add(const Rollout::Step& step, double of, double& entropy) {
    const auto state = std::span<const double>(rollout_.states).subspan(step.state, network_.shape.state);
    const auto actions =
        std::span<const double>(rollout_.actions).subspan(step.actions, step.count * network_.shape.action);
    const auto priors = std::span<const double>(rollout_.priors).subspan(step.priors, step.count);
    network_.evaluate(state, actions, seen_);
    detail::probabilities_of(seen_.scores, priors, probabilities_);
    const double ratio = std::exp(std::log(probabilities_[step.choice]) - step.log_probability);
    by_scores_.assign(step.count, 0);
    if (step.count > 1) { // else there is nothing to choose
      const double gain = step.advantage;
      const bool cut = gain > 0 ? ratio > 1 + options_.clip : ratio < 1 - options_.clip;
      const double most = std::log(static_cast<double>(step.count));
      double own = 0;
      for (const double one : probabilities_)
        if (one > 0) own -= one * std::log(one);
      entropy += own / most / of;
      for (std::size_t k = 0; k < step.count; ++k) {
        const double p = probabilities_[k];
        if (!cut) by_scores_[k] -= gain * ratio * ((k == step.choice ? 1 : 0) - p) / of;
        // d entropy / d score = -p (log p + entropy)
        if (p > 0) by_scores_[k] += options_.entropy / most * p * (std::log(p) + own) / of;
      }
    }
    backward_.add(network_, state, actions, seen_, by_scores_, (seen_.value - step.target) / of, gradient_);
    return ratio;
  }

  TreeOptions rules_;
  TreeEncoder encode_;
  PpoOptions options_;
  PhiloxEngine random_;
  ActionNetwork network_;
  NetworkLayers layers_;
  Adam policy_adam_, value_adam_;
  std::vector<double> gradient_;
  std::vector<KernelTree*> playable_{};
  std::vector<Playing> playing_{};
  std::uint64_t updates_ = 0, episodes_ = 0;
  Rollout rollout_{};
  NetworkGradient backward_{};
  NetworkActivations seen_{};
  EncodedState encoded_{};
  std::vector<double> probabilities_{}, by_scores_{};
};

/// Trains a policy in trees, which are drawn anew for each episode, from the network `start` on. `observe` is
/// called after each update; training ends early where it answers false. Trees in which nothing can be done
/// are left out; where there is no other, the network stays as it begins.
///
/// The same seed gives the same bits on x86-64 with any compiler at any level of optimisation, as long as it
/// does not contract floating-point operations and the C library rounds `exp`, `log`, `pow` and `cos` alike:
/// glibc does so on all processors with fused multiply-add, and otherwise on those without.
[[nodiscard]] inline PpoResult train_ppo(ActionNetwork start, std::span<KernelTree> trees,
                                         const TreeOptions& rules, const TreeEncoder& encode,
                                         const PpoOptions& options,
                                         const std::function<bool(const PpoProgress&)>& observe = {}) {
  PpoTrainer trainer(std::move(start), trees, rules, encode, options);
  PpoResult result{trainer.network()};
  while (!trainer.finished()) {
    const PpoProgress progress = trainer.update();
    if (!trainer.is_finite()) {
      result.diverged = true;
      return result;
    }
    result.progress.push_back(progress);
    result.network = trainer.network();
    if (observe && !observe(progress)) break;
  }
  return result;
}

/// The same from a new network of that shape, whose first weights come from `PpoOptions::seed`.
[[nodiscard]] inline PpoResult train_ppo(std::span<KernelTree> trees, const TreeOptions& rules,
                                         const TreeEncoder& encode, const NetworkShape& shape,
                                         const PpoOptions& options,
                                         const std::function<bool(const PpoProgress&)>& observe = {}) {
  return train_ppo(make_network(shape, options.seed), trees, rules, encode, options, observe);
}

} // namespace mtmc
