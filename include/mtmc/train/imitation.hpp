#pragma once
/// Supervised training of an `ActionNetwork` in trees: it learns the choices of a teacher (the exact values
/// of a tree, or any other policy) in states that both of them come to (Ross, Gordon and Bagnell, 2011). A
/// start for `train_ppo`, and often enough by itself.

#include <mtmc/core/error.hpp>
#include <mtmc/policy/action_network.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/shuffle.hpp>
#include <mtmc/support/softmax.hpp>
#include <mtmc/train/adam.hpp>
#include <mtmc/train/best_network.hpp>
#include <mtmc/train/exact_values.hpp>
#include <mtmc/train/network_gradient.hpp>
#include <mtmc/train/tree_environment.hpp>
#include <mtmc/train/tree_policy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What a network is to learn of a state.
struct TreeLesson {
  std::vector<double> probabilities{}; ///< of each of the state's `choices()`; they sum to 1
  std::optional<double> value{};       ///< of the state, where the teacher knows it
};

/// Writes what is to be learnt of where an environment stands. May keep buffers: for one thread at a time.
using TreeTeacher = std::function<void(const TreeEnvironment& environment, TreeLesson& lesson)>;

/// Teaches the best that can be done: probabilities in the proportion of e^(Q* / `temperature`), and V*. The
/// lower the temperature (above 0, in units of the reward), the less is a choice that is nearly as good as
/// the best. `rules` and `discount` as in `ExactValues`; the trees outlive the teacher and do not change.
[[nodiscard]] inline TreeTeacher exact_teacher(TreeOptions rules, double temperature = 0.1,
                                               double discount = 1) {
  return [rules = std::move(rules), temperature, discount,
          known = std::map<const KernelTree*, ExactValues>{}](const TreeEnvironment& environment,
                                                              TreeLesson& lesson) mutable {
    const KernelTree& tree = environment.tree();
    ExactValues& exact = known.try_emplace(&tree, tree, rules, discount).first->second;
    lesson.probabilities = exact.values_of_choices(environment.state(), environment.actions());
    lesson.value = *std::max_element(lesson.probabilities.begin(), lesson.probabilities.end());
    for (double& one : lesson.probabilities) one /= temperature;
    detail::softmax(lesson.probabilities);
  };
}

/// Teaches what a policy does, and no values: behaviour cloning.
[[nodiscard]] inline TreeTeacher cloning_teacher(TreePolicy policy) {
  return [policy = std::move(policy)](const TreeEnvironment& environment, TreeLesson& lesson) {
    policy(environment, lesson.probabilities);
    lesson.value.reset();
  };
}

/// How a teacher is imitated.
struct ImitationOptions {
  int rounds = 3;            ///< of visiting states and learning from all that were visited
  std::size_t states = 4000; ///< visited in each round, as episodes come by them
  double exploring = 0.2;    ///< part of the choices on the way that is drawn by chance, [0, 1]
  double by_student = 0.5;   ///< part of the episodes from the second round on that the network plays, [0, 1]
  int epochs = 20;           ///< over the states in each round
  std::size_t minibatch = 256;   ///< states of an update
  double largest_gradient = 0.5; ///< norm, for the policy's and the value's weights apart
  double policy_rate = 3e-3;     ///< learning rate at first; it falls to 0 along a line
  double value_rate = 3e-3;      ///< the same of the value
  /// Part of the tasks whose trees are not learnt from but tell when to end, [0, 1): at least one where this
  /// is above 0 and there are two.
  double held_out = 0.1;
  int patience = 10;      ///< epochs that may bring no gain in the trees held out, before training ends
  std::uint64_t seed = 0; ///< of everything that is drawn
};

/// How much of its teacher a network has learnt, over some states.
struct ImitationError {
  double divergence = 0;  ///< mean Kullback-Leibler divergence of the teacher from the network, in nats
  double agreement = 0;   ///< part of the states in which the network's likeliest choice is the teacher's
  double value_error = 0; ///< root of the mean square, of the states whose value the teacher knows
};

/// What an epoch came to.
struct ImitationProgress {
  int round = 0;             ///< from 1
  int epoch = 0;             ///< over all rounds, from 1
  std::size_t states = 0;    ///< visited so far
  ImitationError training{}; ///< in those, while they were learnt
  ImitationError held_out{}; ///< in trees that are not learnt from, after the epoch; 0 without such trees
};

/// A network and how it came to be.
struct ImitationResult {
  /// The one that was best in the trees held out; without such trees the last one that was finite.
  ActionNetwork network{};
  std::vector<ImitationProgress> progress{}; ///< one an epoch
  bool diverged = false;                     ///< a weight was not finite any more: training has ended
};

namespace detail {

/// States and what is to be learnt of them.
struct LessonSet {
  struct Lesson {
    std::size_t state = 0, actions = 0; ///< where their features begin
    std::size_t choices = 0;            ///< where priors and probabilities begin
    std::size_t count = 0;              ///< choices
    std::optional<double> value{};
  };
  std::vector<Lesson> lessons{};
  std::vector<double> states{}, actions{}, priors{}, probabilities{};

  void add(const EncodedState& encoded, const TreeLesson& lesson) {
    lessons.push_back(
        {states.size(), actions.size(), priors.size(), lesson.probabilities.size(), lesson.value});
    states.insert(states.end(), encoded.state.begin(), encoded.state.end());
    actions.insert(actions.end(), encoded.actions.begin(), encoded.actions.end());
    probabilities.insert(probabilities.end(), lesson.probabilities.begin(), lesson.probabilities.end());
    priors.insert(priors.end(), encoded.priors.begin(), encoded.priors.end());
    priors.resize(probabilities.size()); // 0 where the encoder gave none
  }
};

/// Sums of what an `ImitationError` tells.
class ErrorSums {
public:
  void add(double divergence, bool agrees) {
    divergence_ += divergence;
    agreeing_ += agrees ? 1 : 0;
    ++states_;
  }
  void add_value(double error) {
    squares_ += error * error;
    ++values_;
  }
  [[nodiscard]] ImitationError means() const {
    ImitationError error;
    if (states_ > 0) error.divergence = divergence_ / states_;
    if (states_ > 0) error.agreement = agreeing_ / states_;
    if (values_ > 0) error.value_error = std::sqrt(squares_ / values_);
    return error;
  }

private:
  double divergence_ = 0, agreeing_ = 0, squares_ = 0;
  double states_ = 0, values_ = 0;
};

/// Trees to learn from, and trees that tell when to end: all of a task on one side.
[[nodiscard]] inline std::pair<std::vector<KernelTree*>, std::vector<KernelTree*>>
hold_out(std::span<KernelTree> trees, const TreeOptions& rules, double part, PhiloxEngine& random) {
  std::pair<std::vector<KernelTree*>, std::vector<KernelTree*>> sides;
  const std::vector<std::string> groups = task_groups(trees);
  std::map<const KernelTree*, std::string> group_of;
  std::vector<std::string> tasks;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    if (TreeEnvironment(trees[i], rules).ended()) continue;
    sides.first.push_back(&trees[i]);
    group_of[&trees[i]] = groups[i];
    if (std::find(tasks.begin(), tasks.end(), groups[i]) == tasks.end()) tasks.push_back(groups[i]);
  }
  if (part <= 0 || tasks.size() < 2) return sides;
  shuffle(tasks, random);
  const auto wanted = static_cast<std::size_t>(part * static_cast<double>(tasks.size()));
  const std::size_t count = std::clamp<std::size_t>(wanted, 1, tasks.size() - 1);
  const std::set<std::string> held(tasks.begin(), tasks.begin() + static_cast<std::ptrdiff_t>(count));
  const auto first_held =
      std::stable_partition(sides.first.begin(), sides.first.end(),
                            [&](const KernelTree* one) { return !held.contains(group_of.at(one)); });
  sides.second.assign(first_held, sides.first.end());
  sides.first.erase(first_held, sides.first.end());
  return sides;
}

/// Imitation, epoch by epoch.
class Imitator {
public:
  Imitator(ActionNetwork start, std::span<KernelTree> trees, const TreeOptions& rules,
           const TreeEncoder& encode, const TreeTeacher& teacher, const ImitationOptions& options)
      : rules_(rules), encode_(encode), teacher_(teacher), options_(options), random_(options.seed, 4),
        network_(std::move(start)), layers_(network_.shape), policy_adam_(0, layers_.first_of_value()),
        value_adam_(layers_.first_of_value(), layers_.size()), gradient_(layers_.size()) {
    std::tie(trees_, held_out_trees_) = hold_out(trees, rules, options.held_out, random_);
    const auto count = static_cast<double>(options.states) * options.held_out;
    if (!held_out_trees_.empty())
      visit(held_out_trees_, std::max<std::size_t>(static_cast<std::size_t>(count), 1), 0, held_out_);
  }

  [[nodiscard]] bool can_play() const noexcept { return !trees_.empty(); }
  [[nodiscard]] bool has_held_out() const noexcept { return !held_out_trees_.empty(); }
  [[nodiscard]] const ActionNetwork& network() const noexcept { return network_; }
  [[nodiscard]] bool is_finite() const { return are_finite(network_.weights); }

  /// Visits the states of a round, from 1.
  void visit_states(int round) {
    visit(trees_, options_.states, round == 1 ? 0 : options_.by_student, learnt_);
  }

  /// Learns from all states once. `left`: part of the training that is still to come, (0, 1].
  ImitationProgress learn(double left) {
    std::vector<std::size_t> order(learnt_.lessons.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    shuffle(order, random_);
    ErrorSums sums;
    for (std::size_t at = 0; at < order.size(); at += options_.minibatch) {
      const auto part = std::span(order).subspan(at, std::min(options_.minibatch, order.size() - at));
      std::fill(gradient_.begin(), gradient_.end(), 0);
      for (const std::size_t one : part)
        add_gradient_of(learnt_, learnt_.lessons[one], static_cast<double>(part.size()), sums);
      policy_adam_.step(network_.weights, gradient_, options_.policy_rate * left, options_.largest_gradient);
      value_adam_.step(network_.weights, gradient_, options_.value_rate * left, options_.largest_gradient);
    }
    ImitationProgress progress;
    progress.states = learnt_.lessons.size();
    progress.training = sums.means();
    ErrorSums held_out;
    for (const LessonSet::Lesson& one : held_out_.lessons) measure(held_out_, one, held_out);
    progress.held_out = held_out.means();
    return progress;
  }

private:
  /// Plays episodes until as many states are added to `set`; `by_student`: part of them played by the
  /// network.
  void visit(std::span<KernelTree* const> trees, std::size_t count, double by_student, LessonSet& set) {
    for (const std::size_t end = set.lessons.size() + count; set.lessons.size() < end;) {
      TreeOptions rules = rules_;
      rules.seed = options_.seed + ++episodes_; // streams of neighbouring seeds have nothing in common
      TreeEnvironment environment(*trees[random_.below(trees.size())], rules);
      const bool student = random_.uniform() < by_student;
      while (!environment.ended() && set.lessons.size() < end) {
        encode_(environment, encoded_);
        teacher_(environment, lesson_);
        if (lesson_.probabilities.size() != environment.choices())
          throw Error(error_id::train_data,
                      "the teacher gave " + std::to_string(lesson_.probabilities.size()) +
                          " probabilities for " + std::to_string(environment.choices()) + " choices",
                      "Give one a choice", "TreeLesson::probabilities");
        set.add(encoded_, lesson_);
        environment.step(choice_of(environment.choices(), student));
      }
    }
  }
  [[nodiscard]] std::size_t choice_of(std::size_t choices, bool student) {
    if (random_.uniform() < options_.exploring) return random_.below(choices);
    if (!student) return drawn(lesson_.probabilities, random_);
    network_.evaluate(encoded_.state, encoded_.actions, seen_);
    probabilities_of(seen_.scores, encoded_.priors, probabilities_);
    return drawn(probabilities_, random_);
  }

  /// Leaves what the network says in `seen_` and `probabilities_`.
  void measure(const LessonSet& set, const LessonSet::Lesson& lesson, ErrorSums& sums) {
    network_.evaluate(std::span(set.states).subspan(lesson.state, network_.shape.state),
                      std::span(set.actions).subspan(lesson.actions, lesson.count * network_.shape.action),
                      seen_);
    probabilities_of(seen_.scores, std::span(set.priors).subspan(lesson.choices, lesson.count),
                     probabilities_);
    if (lesson.value) sums.add_value(seen_.value - *lesson.value);
    if (lesson.count < 2) return; // there is nothing to choose
    const auto wanted = std::span(set.probabilities).subspan(lesson.choices, lesson.count);
    constexpr double least = 1e-300; // of which the logarithm is finite
    double divergence = 0;
    for (std::size_t k = 0; k < lesson.count; ++k)
      if (wanted[k] > 0) divergence += wanted[k] * std::log(wanted[k] / std::max(probabilities_[k], least));
    constexpr double rounding = 1e-12; // choices may be equally likely
    sums.add(divergence, wanted[likeliest(probabilities_)] + rounding >= wanted[likeliest(wanted)]);
  }

  /// Of the loss of a lesson, one of `of` lessons: the cross entropy, and half the square of the value's
  /// error.
  void add_gradient_of(const LessonSet& set, const LessonSet::Lesson& lesson, double of, ErrorSums& sums) {
    measure(set, lesson, sums);
    by_scores_.resize(lesson.count);
    for (std::size_t k = 0; k < lesson.count; ++k)
      by_scores_[k] = (probabilities_[k] - set.probabilities[lesson.choices + k]) / of;
    const double by_value = lesson.value ? (seen_.value - *lesson.value) / of : 0;
    backward_.add(network_, std::span(set.states).subspan(lesson.state, network_.shape.state),
                  std::span(set.actions).subspan(lesson.actions, lesson.count * network_.shape.action), seen_,
                  by_scores_, by_value, gradient_);
  }

  TreeOptions rules_;
  TreeEncoder encode_;
  TreeTeacher teacher_;
  ImitationOptions options_;
  PhiloxEngine random_;
  ActionNetwork network_;
  NetworkLayers layers_;
  Adam policy_adam_, value_adam_;
  std::vector<double> gradient_;
  std::vector<KernelTree*> trees_{}, held_out_trees_{};
  LessonSet learnt_{}, held_out_{};
  std::uint64_t episodes_ = 0;
  NetworkGradient backward_{};
  NetworkActivations seen_{};
  EncodedState encoded_{};
  TreeLesson lesson_{};
  std::vector<double> probabilities_{}, by_scores_{};
};

} // namespace detail

/// Teaches the network `start` what a teacher does in trees. `observe` is called after each epoch; training
/// ends early where it answers false, and where trees that are held out say that nothing more is gained. The
/// same seed gives the same bits, as in `train_ppo`. Trees in which nothing can be done are left out; where
/// there is no other, the network stays as it begins. Throws `Error` (`mtmc.train.001`) where teacher or
/// encoder speak of another number of choices than a state has.
[[nodiscard]] inline ImitationResult
imitate(ActionNetwork start, std::span<KernelTree> trees, const TreeOptions& rules, const TreeEncoder& encode,
        const TreeTeacher& teacher, const ImitationOptions& options,
        const std::function<bool(const ImitationProgress&)>& observe = {}) {
  detail::Imitator imitator(std::move(start), trees, rules, encode, teacher, options);
  ImitationResult result{imitator.network()};
  if (!imitator.can_play()) return result;
  BestNetwork best;
  const int epochs = options.rounds * options.epochs;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const int round = epoch / options.epochs + 1;
    if (epoch % options.epochs == 0) imitator.visit_states(round);
    ImitationProgress progress = imitator.learn(1 - static_cast<double>(epoch) / epochs);
    if (!imitator.is_finite()) {
      result.diverged = true;
      return result;
    }
    progress.round = round;
    progress.epoch = epoch + 1;
    result.progress.push_back(progress);
    if (!imitator.has_held_out() || best.offer(-progress.held_out.divergence, imitator.network()))
      result.network = imitator.network();
    if ((observe && !observe(progress)) || best.since() >= options.patience) break;
  }
  return result;
}

} // namespace mtmc
