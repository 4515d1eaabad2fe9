#pragma once
/// Proximal policy optimisation (Schulman and others, 2017) of an `ActionNetwork` in trees of recorded
/// searches: states with different numbers of actions, which are masked by never being listed.

#include <mtmc/policy/action_network.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/softmax.hpp>
#include <mtmc/train/network_gradient.hpp>
#include <mtmc/train/tree_environment.hpp>

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

/// A state as a network sees it.
struct EncodedState {
  std::vector<double> state{};   ///< features of the state
  std::vector<double> actions{}; ///< features of each choice, `stop` last where it is one
};

/// Writes the features of where an environment stands: of the state, then of each of its `choices()`.
using TreeEncoder = std::function<void(const TreeEnvironment& environment, EncodedState& encoded)>;

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
  std::uint64_t seed = 0;           ///< of everything that is drawn
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

/// Probabilities of the choices, in the order of their scores.
inline void probabilities_of(std::span<const double> scores, std::vector<double>& probabilities) {
  probabilities.assign(scores.begin(), scores.end());
  softmax(probabilities);
}

/// A number drawn by those probabilities.
[[nodiscard]] inline std::size_t drawn(std::span<const double> probabilities, PhiloxEngine& random) {
  double place = random.uniform();
  for (std::size_t i = 0; i + 1 < probabilities.size(); ++i) {
    place -= probabilities[i];
    if (place < 0) return i;
  }
  return probabilities.size() - 1;
}

/// Adam (Kingma and Ba, 2015) over a part of the weights.
class Adam {
public:
  Adam(std::size_t first, std::size_t end) : first_(first), mean_(end - first), square_(end - first) {}
  void step(std::span<double> weights, std::span<const double> gradient, double rate, double largest_norm) {
    constexpr double of_mean = 0.9, of_square = 0.999, epsilon = 1e-5;
    double norm = 0;
    for (std::size_t i = 0; i < mean_.size(); ++i) norm += gradient[first_ + i] * gradient[first_ + i];
    norm = std::sqrt(norm);
    const double scale = norm > largest_norm ? largest_norm / norm : 1;
    ++steps_;
    const double mean_left = 1 - std::pow(of_mean, steps_), square_left = 1 - std::pow(of_square, steps_);
    for (std::size_t i = 0; i < mean_.size(); ++i) {
      const double one = scale * gradient[first_ + i];
      mean_[i] = of_mean * mean_[i] + (1 - of_mean) * one;
      square_[i] = of_square * square_[i] + (1 - of_square) * one * one;
      weights[first_ + i] -= rate * (mean_[i] / mean_left) / (std::sqrt(square_[i] / square_left) + epsilon);
    }
  }

private:
  std::size_t first_;
  std::vector<double> mean_, square_;
  int steps_ = 0;
};

/// Steps of all environments, those of one environment next to each other.
struct Rollout {
  struct Step {
    std::size_t state = 0, actions = 0; ///< where their features begin
    std::size_t count = 0;              ///< choices
    std::size_t choice = 0;
    double log_probability = 0, value = 0, reward = 0;
    bool ended = false;
    double advantage = 0, target = 0;
  };
  std::vector<Step> steps{};
  std::vector<double> states{}, actions{};

  void clear() {
    steps.clear();
    states.clear();
    actions.clear();
  }
};

/// Training, step by step.
class PpoTrainer {
public:
  PpoTrainer(std::span<KernelTree> trees, const TreeOptions& rules, const TreeEncoder& encode,
             const NetworkShape& shape, const PpoOptions& options)
      : rules_(rules), encode_(encode), options_(options), random_(options.seed, 1),
        network_(make_network(shape, options.seed)), layers_(shape),
        policy_adam_(0, layers_.first_of_value()), value_adam_(layers_.first_of_value(), layers_.size()),
        gradient_(layers_.size()) {
    for (KernelTree& tree : trees)
      if (!TreeEnvironment(tree, rules).ended()) playable_.push_back(&tree);
    for (std::size_t i = 0; i < options.environments && !playable_.empty(); ++i)
      playing_.push_back({next_tree()});
  }

  [[nodiscard]] bool can_play() const noexcept { return !playable_.empty(); }
  [[nodiscard]] const ActionNetwork& network() const noexcept { return network_; }
  [[nodiscard]] bool is_finite() const {
    return std::all_of(network_.weights.begin(), network_.weights.end(),
                       [](double one) { return std::isfinite(one); });
  }

  /// Plays, then learns from what was played. `left`: part of the training that is still to come, (0, 1].
  PpoProgress update(double left) {
    PpoProgress progress;
    play(progress);
    learn(left, progress);
    return progress;
  }

private:
  struct Playing {
    TreeEnvironment environment;
    double sum = 0; ///< of the episode's rewards
    int length = 0;
  };

  [[nodiscard]] TreeEnvironment next_tree() {
    TreeOptions rules = rules_;
    rules.seed = options_.seed + ++episodes_; // streams of neighbouring seeds have nothing in common
    return {*playable_[static_cast<std::size_t>(random_.uniform() * static_cast<double>(playable_.size()))],
            rules};
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
    probabilities_of(seen_.scores, probabilities_);
    Rollout::Step step;
    step.state = rollout_.states.size();
    step.actions = rollout_.actions.size();
    step.count = probabilities_.size();
    step.choice = drawn(probabilities_, random_);
    step.log_probability = std::log(probabilities_[step.choice]);
    step.value = seen_.value;
    rollout_.states.insert(rollout_.states.end(), encoded_.state.begin(), encoded_.state.end());
    rollout_.actions.insert(rollout_.actions.end(), encoded_.actions.begin(), encoded_.actions.end());
    const TreeStep came = one.environment.step(step.choice);
    step.reward = came.reward;
    step.ended = came.ended;
    one.sum += came.reward;
    ++one.length;
    if (came.ended) {
      ++progress.episodes;
      progress.mean_return += one.sum;
      progress.mean_length += one.length;
      one = {next_tree()};
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
      total += std::pow(step.target - mean, 2);
      left += std::pow(step.target - step.value - mean_left, 2);
    }
    progress.explained_variance = total > 0 ? 1 - left / total : 0;
  }
  /// Over the whole rollout: minibatches are too small for it.
  void normalise_advantages() {
    const auto count = static_cast<double>(rollout_.steps.size());
    double mean = 0, square = 0;
    for (const Rollout::Step& step : rollout_.steps) mean += step.advantage / count;
    for (const Rollout::Step& step : rollout_.steps) square += std::pow(step.advantage - mean, 2) / count;
    const double deviation = std::max(std::sqrt(square), 1e-8);
    for (Rollout::Step& step : rollout_.steps) step.advantage = (step.advantage - mean) / deviation;
  }

  void learn(double left, PpoProgress& progress) {
    std::vector<std::size_t> order(rollout_.steps.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    bool first = true;
    for (int epoch = 0; epoch < options_.epochs; ++epoch) {
      for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<std::size_t>(random_.uniform() * static_cast<double>(i))]);
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
    network_.evaluate(state, actions, seen_);
    probabilities_of(seen_.scores, probabilities_);
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
  std::uint64_t episodes_ = 0;
  Rollout rollout_{};
  NetworkGradient backward_{};
  NetworkActivations seen_{};
  EncodedState encoded_{};
  std::vector<double> probabilities_{}, by_scores_{};
};

} // namespace detail

/// Trains a policy in trees, which are drawn anew for each episode. `observe` is called after each update;
/// training ends early where it answers false. With the same seed the result has the same bits on x86-64
/// without floating-point contraction. Trees in which nothing can be done are left out; where there is no
/// other, the network stays as it begins.
[[nodiscard]] inline PpoResult train_ppo(std::span<KernelTree> trees, const TreeOptions& rules,
                                         const TreeEncoder& encode, const NetworkShape& shape,
                                         const PpoOptions& options,
                                         const std::function<bool(const PpoProgress&)>& observe = {}) {
  detail::PpoTrainer trainer(trees, rules, encode, shape, options);
  PpoResult result{trainer.network()};
  if (!trainer.can_play()) return result;
  for (std::size_t steps = 0; steps < options.steps; steps += options.rollout) {
    PpoProgress progress =
        trainer.update(1 - static_cast<double>(steps) / static_cast<double>(options.steps));
    if (!trainer.is_finite()) {
      result.diverged = true;
      return result;
    }
    progress.steps = steps + options.rollout;
    result.progress.push_back(progress);
    result.network = trainer.network();
    if (observe && !observe(progress)) break;
  }
  return result;
}

/// Mean return (without discount) of a network in a tree over that many episodes: with `greedy` its likeliest
/// choice is taken, else one is drawn.
[[nodiscard]] inline double mean_return(const ActionNetwork& network, KernelTree& tree, TreeOptions rules,
                                        const TreeEncoder& encode, int episodes, bool greedy,
                                        std::uint64_t seed = 0) {
  rules.seed = seed;
  TreeEnvironment environment(tree, rules);
  PhiloxEngine random{seed, 2};
  EncodedState encoded;
  NetworkActivations seen;
  std::vector<double> probabilities;
  double sum = 0;
  for (int i = 0; i < episodes; ++i)
    for (environment.reset(); !environment.ended();) {
      encode(environment, encoded);
      network.evaluate(encoded.state, encoded.actions, seen);
      detail::probabilities_of(seen.scores, probabilities);
      auto choice = static_cast<std::size_t>(std::max_element(probabilities.begin(), probabilities.end()) -
                                             probabilities.begin());
      if (!greedy) choice = detail::drawn(probabilities, random);
      sum += environment.step(choice).reward;
    }
  return sum / episodes;
}

} // namespace mtmc
