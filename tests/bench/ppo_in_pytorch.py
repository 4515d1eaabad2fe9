"""The project's PPO training in PyTorch on the CPU, as one would write it first: what mtmc::PpoTrainer's speed is held against.

    python3 tests/bench/ppo_in_pytorch.py tests/data/trees/recorded.jsonl --steps 100000 --seed 1

One file with a plain loop: environments in Python side by side, a rollout in tensors, generalised advantage estimation,
epochs of minibatches with torch.optim.Adam. Environment, reward, features, network and algorithm are those of
include/mtmc/train (tree_rules.hpp, reward.hpp, tree_features.hpp, ppo.hpp) and include/mtmc/policy (features_inl.hpp,
action_network.hpp): 8 steps an episode, actions that were never tried masked, episodes go on from what is 1.02 times as
fast, nothing twice, the rules' scores as prior. Sets of actions are padded to the largest of a batch and masked.

Prints a table: steps of the environment a second by chance, without and with features, for two seconds each; the seconds
of a training; and what its likeliest choices return as a part of the best returns (V*, by backward induction), beside
what the rules alone do. To be read beside, on the same machine and with nothing else running:

    build/release/tests/bench_tree_environment    steps of the C++ environment a second ("items_per_second"), no features
    build/release/tests/bench_learnt_policy       seconds of `train/100000` on the same data set

Hyperparameters are those of mtmc-train's `ppo`: the defaults of mtmc::PpoOptions, but no discount and a policy_rate of
1e-3. For those that `bench_learnt_policy` trains with, add `--discount 0.99 --policy-rate 3e-4`. Other random numbers are
drawn than in C++, and weights have 32 bits instead of 64, as is usual in PyTorch: results agree in quality, not in bits.
"""

import argparse
import json
import math
import random
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy
import torch

STEP_LIMIT = 8
LEAST_GAIN_TO_GO_ON = math.log2(1.02)
SHAPING = 0.1
LEAST_GAIN_OF_REWARD = 0.02
LARGEST_GAIN = 3.0

TYPES = (
    "tiling fusion pipeline reordering unrolling vectorization parallelization retention online scanning splitting "
    "strength_reduction packing hoisting fission recomputation persistence finishing scalar_replacement rewriting"
).split()
PLACE_OF_TYPE = {name: place for place, name in enumerate(TYPES)}
KERNEL_FEATURES, LONE_ACTION_FEATURES = 19, 79  # feature version 1
FACTS_OF_WAY, FACTS_OF_TRIES = 8, 8
LAST_KEPT = KERNEL_FEATURES + FACTS_OF_WAY
KEPT = LAST_KEPT + len(TYPES)
STATE_FEATURES = KEPT + len(TYPES)
ACTION_FEATURES = LONE_ACTION_FEATURES + FACTS_OF_TRIES
PLACE_OF_RULES = 1
LEAST_PROBABILITY = 1e-4


# --- trees ---


class Outcome(NamedTuple):
    stage: str
    child: int  # -1 where it led to no kernel
    count: int


@dataclass(eq=False)
class Action:
    """What may be chosen on a kernel, with all that features ask of its key."""

    key: str
    features: numpy.ndarray
    outcomes: list

    def __post_init__(self):
        self.type, _, region = self.key.partition("|")
        self.functions = functions_of(region)
        self.prior = float((1 - self.features[PLACE_OF_RULES]) * math.log(LEAST_PROBABILITY))
        self.tries = sum(one.count for one in self.outcomes)


@dataclass(eq=False)
class Node:
    log2_speed_up: float
    deviation: float
    features: numpy.ndarray
    actions: list
    stop: Action


def functions_of(region):
    """{"gemm"} of "gemm/i/j" and of "launch:gemm#2", {"a", "b"} of "launch:a+launch:b"."""
    names = region.split("/")[0].split("+") if region else []
    return frozenset(name.removeprefix("launch:").split("#")[0] for name in names)


def node_of(record):
    features = numpy.array(record.get("features", []), numpy.float32)
    features_of = dict(zip(record.get("legal", []), record.get("action_features", [])))
    actions = []
    for edge in record.get("edges", []):
        seen = features_of.get(edge["action"], [])
        if len(features) != KERNEL_FEATURES or len(seen) != LONE_ACTION_FEATURES:
            continue  # as keep_featured does
        outcomes = [Outcome(one["outcome"], one.get("child", -1), one.get("count", 1)) for one in edge["outcomes"]]
        actions.append(Action(edge["action"], numpy.array(seen, numpy.float32), outcomes))
    of_stop = numpy.zeros(LONE_ACTION_FEATURES, numpy.float32)
    of_stop[0] = 1
    if len(features) > 0:
        of_stop[PLACE_OF_RULES] = features[0]
    speed_up, deviation = record.get("log2_speed_up", 0.0), record.get("deviation", 0.0)
    return Node(speed_up, deviation, features, actions, Action("stop", of_stop, []))


def read_trees(path):
    """Each tree as a list of nodes, the start kernel first; those in which something can be done."""
    with open(path, encoding="utf-8") as lines:
        card = json.loads(next(lines))
        if card.get("features") != 1:
            raise SystemExit(f"{path}: features of version {card.get('features')}, known is 1")
        trees = [[node_of(record) for record in json.loads(line)["nodes"]] for line in lines]
    return [tree for tree in trees if tree[0].actions]


# --- rules of the environment ---


class State(NamedTuple):
    node: int = 0
    best: float = 0.0  # logarithm of the fastest kernel's speed-up
    step: int = 0


class Step(NamedTuple):
    state: State
    reward: float
    ended: bool
    gain: float  # over the kernel that the step started from
    kept: bool


def reward_of(state, outcome, node):
    left = 1 - state.step / STEP_LIMIT
    if outcome.stage == "not_compiled":
        return -SHAPING
    if outcome.stage == "wrong":
        return 0.1 * SHAPING * left - 0.6 * SHAPING
    gain = node.log2_speed_up - state.best
    if gain >= math.log2(1 + max(LEAST_GAIN_OF_REWARD, 2 * node.deviation)):
        return (0.3 * SHAPING + min(gain, LARGEST_GAIN)) * left
    return 0.3 * SHAPING * left - 0.3 * SHAPING * (1 + min(max(-gain, 0.0), 1.0))


def take_outcome(tree, state, outcome):
    here, best, gain, kept, node = state.node, state.best, 0.0, False, None
    if outcome.child >= 0:
        node = tree[outcome.child]
        gain = node.log2_speed_up - tree[here].log2_speed_up
        kept = gain >= LEAST_GAIN_TO_GO_ON
        best = max(best, node.log2_speed_up)
        here = outcome.child if kept else here
    behind = State(here, best, state.step + 1)
    ended = behind.step >= STEP_LIMIT or not tree[here].actions
    return Step(behind, reward_of(state, outcome, node), ended, gain, kept)


class PastStep(NamedTuple):
    action: Action
    node: int  # on which it was taken
    stage: str
    gain: float
    kept: bool

    @property
    def gained(self):
        return self.stage == "correct" and self.gain > 0


class Environment:
    """Plays one tree after the other, drawn from `trees`."""

    def __init__(self, trees, seed):
        self.trees = trees
        self.random = random.Random(seed)
        self.reset()

    def reset(self):
        self.tree = self.random.choice(self.trees)
        self.state = State()
        self.past = []
        self.list_actions()

    def list_actions(self):
        node = self.tree[self.state.node]
        taken = {step.action.key for step in self.past if step.node == self.state.node}
        self.actions = [action for action in node.actions if action.key not in taken]
        if self.state.step > 0:
            self.actions.append(node.stop)

    def step(self, choice):
        """The reward, and whether the episode has ended: `reset` begins the next."""
        action = self.actions[choice]
        if not action.outcomes:
            return 0.0, True
        outcome = action.outcomes[0] if len(action.outcomes) == 1 else self.drawn(action)
        came = take_outcome(self.tree, self.state, outcome)
        self.past.append(PastStep(action, self.state.node, outcome.stage, came.gain, came.kept))
        self.state = came.state
        self.list_actions()
        return came.reward, came.ended

    def drawn(self, action):
        return self.random.choices(action.outcomes, [one.count for one in action.outcomes])[0]


def best_return(tree, state=State(), known=None):
    """V*, as if actions were offered again: that changes nothing where each has one outcome."""
    known = {} if known is None else known
    if state in known:
        return known[state]
    values = [0.0] if state.step > 0 else []  # stopping
    for action in tree[state.node].actions:
        total = 0.0
        for outcome in action.outcomes:
            came = take_outcome(tree, state, outcome)
            total += outcome.count * (came.reward + (0.0 if came.ended else best_return(tree, came.state, known)))
        values.append(total / action.tries)
    known[state] = max(values)
    return known[state]


# --- features ---


def write_state(environment, row):
    past, step = environment.past, environment.state.step
    speed_up, fruitless, last_kept = 0.0, 0, None
    row[LAST_KEPT:] = 0
    for one in past:
        if one.kept:
            last_kept = PLACE_OF_TYPE.get(one.action.type)
            speed_up += one.gain
            if last_kept is not None:
                row[KEPT + last_kept] += 0.5
        fruitless = 0 if one.gained else fruitless + 1
    if last_kept is not None:
        row[LAST_KEPT + last_kept] = 1
    last = past[-1] if past else None
    row[:KERNEL_FEATURES] = environment.tree[environment.state.node].features
    row[KERNEL_FEATURES:LAST_KEPT] = (
        step / 8,
        (STEP_LIMIT - step) / 8,
        speed_up / 6,
        fruitless / 4,
        last is not None and last.stage == "not_compiled",
        last is not None and last.stage == "wrong",
        last is not None and last.stage == "correct" and not last.gained,
        last.gain / 3 if last is not None and last.gained else 0,
    )


def write_action(action, past, row):
    tried = kept = about_the_same = False
    gained = in_vain = fruitless_here = 0
    best = 0.0
    for one in past:
        about_the_same = not action.functions.isdisjoint(one.action.functions)
        if one.action.key == action.key:
            kept, tried = kept or one.kept, tried or not one.kept
        if about_the_same:
            fruitless_here = 0 if one.gained else fruitless_here + 1
        if one.action.type != action.type:
            continue
        gained, in_vain = gained + one.gained, in_vain + (not one.gained)
        best = max(best, one.gain)  # 0 of a failed one
    follows = bool(past) and past[-1].action.type == action.type
    row[:LONE_ACTION_FEATURES] = action.features
    row[LONE_ACTION_FEATURES:] = (
        tried, kept, gained / 2, in_vain / 2, best / 3, fruitless_here / 4, follows, about_the_same
    )


class Observations(NamedTuple):
    """States and their actions, padded; the leading axes say which."""

    states: torch.Tensor
    actions: torch.Tensor
    priors: torch.Tensor
    counts: torch.Tensor

    @staticmethod
    def room(*axes, widest):
        return Observations(
            torch.zeros(*axes, STATE_FEATURES),
            torch.zeros(*axes, widest, ACTION_FEATURES),
            torch.zeros(*axes, widest),
            torch.ones(*axes, dtype=torch.int64),
        )

    def part(self, which):
        """Those of one axis, padded no more than they need."""
        counts = self.counts[which]
        widest = int(counts.max())
        return Observations(
            self.states[which], self.actions[which][:, :widest], self.priors[which][:, :widest], counts
        )

    def flattened(self):
        return Observations(*(one.flatten(0, 1) for one in self))

    def write(self, environments):
        """What lies behind a row's count is left as it was: it is masked."""
        states, actions, priors, counts = (one.numpy() for one in self)
        for i, environment in enumerate(environments):
            write_state(environment, states[i])
            counts[i] = len(environment.actions)
            for k, action in enumerate(environment.actions):
                write_action(action, environment.past, actions[i, k])
                priors[i, k] = action.prior


# --- network ---


def layer(columns, rows, gain=math.sqrt(2)):
    made = torch.nn.Linear(columns, rows)
    torch.nn.init.orthogonal_(made.weight, gain)
    torch.nn.init.zeros_(made.bias)
    return made


class Policy(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.encode = layer(STATE_FEATURES, hidden)
        self.mix = layer(hidden, hidden)
        self.join = layer(ACTION_FEATURES, hidden)
        self.score = layer(hidden, 1, gain=0.01)

    def forward(self, seen):
        """Logarithms of probabilities, -inf for what is masked, and the mask of what is not."""
        mixed = self.mix(torch.relu(self.encode(seen.states)))
        joined = torch.relu(mixed.unsqueeze(-2) + self.join(seen.actions))
        scores = self.score(joined).squeeze(-1) + seen.priors
        offered = torch.arange(scores.shape[-1]) < seen.counts.unsqueeze(-1)
        return torch.log_softmax(scores.masked_fill(~offered, -torch.inf), -1), offered


class Value(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.look = layer(STATE_FEATURES, hidden)
        self.value = layer(hidden, 1, gain=1)

    def forward(self, states):
        return self.value(torch.relu(self.look(states))).squeeze(-1)


# --- training ---


class Trainer:
    def __init__(self, trees, options):
        self.options = options
        self.environments = [Environment(trees, options.seed * 1000 + i) for i in range(options.environments)]
        self.policy, self.value = Policy(options.hidden), Value(options.hidden)
        self.policy_adam = torch.optim.Adam(self.policy.parameters(), options.policy_rate, eps=1e-5)
        self.value_adam = torch.optim.Adam(self.value.parameters(), options.value_rate, eps=1e-5)
        each = max(options.rollout // options.environments, 1)
        # One row more than steps: the states behind the last ones.
        self.seen = Observations.room(each + 1, options.environments, widest=widest_of(trees))
        self.choices = torch.zeros(each, options.environments, dtype=torch.int64)
        self.log_probabilities = torch.zeros(each, options.environments)
        self.rewards = torch.zeros(each, options.environments)
        self.going_on = torch.zeros(each, options.environments)
        self.values = torch.zeros(each + 1, options.environments)

    def train(self):
        """The seconds of playing and of learning."""
        playing = learning = 0.0
        for steps in range(0, self.options.steps, self.choices.numel()):
            left = 1 - steps / self.options.steps
            self.policy_adam.param_groups[0]["lr"] = self.options.policy_rate * left
            self.value_adam.param_groups[0]["lr"] = self.options.value_rate * left
            begin = time.perf_counter()
            self.play()
            played = time.perf_counter()
            self.learn()
            playing += played - begin
            learning += time.perf_counter() - played
        return playing, learning

    @torch.no_grad()
    def play(self):
        for t in range(len(self.choices)):
            seen = self.observe(t)
            log_probabilities, _ = self.policy(seen)
            choices = torch.multinomial(log_probabilities.exp(), 1)
            self.choices[t] = choices.squeeze(-1)
            self.log_probabilities[t] = log_probabilities.gather(-1, choices).squeeze(-1)
            self.step(t)
        self.observe(len(self.choices))

    def observe(self, t):
        Observations(*(one[t] for one in self.seen)).write(self.environments)
        seen = self.seen.part(t)
        self.values[t] = self.value(seen.states)
        return seen

    def step(self, t):
        rewards, ends = [], []
        for environment, choice in zip(self.environments, self.choices[t].tolist()):
            reward, ended = environment.step(choice)
            rewards.append(reward)
            ends.append(ended)
            if ended:
                environment.reset()
        self.rewards[t] = torch.tensor(rewards)
        self.going_on[t] = 1 - torch.tensor(ends, dtype=torch.float32)

    def advantages(self):
        advantages = torch.zeros_like(self.rewards)
        behind = torch.zeros(self.rewards.shape[1])
        for t in reversed(range(len(self.rewards))):
            kept = self.options.discount * self.going_on[t]
            surprise = self.rewards[t] + kept * self.values[t + 1] - self.values[t]
            behind = surprise + kept * self.options.trace * behind
            advantages[t] = behind
        return advantages

    def learn(self):
        advantages = self.advantages()
        targets = (advantages + self.values[:-1]).flatten()
        advantages = (advantages - advantages.mean()) / advantages.std(correction=0).clamp(min=1e-8)
        advantages = advantages.flatten()
        seen, choices, before = self.seen.flattened(), self.choices.flatten(), self.log_probabilities.flatten()
        for _ in range(self.options.epochs):
            for part in torch.randperm(len(choices)).split(self.options.minibatch):
                batch = (seen.part(part), choices[part], before[part], advantages[part], targets[part])
                if not self.improve(*batch):
                    return

    def improve(self, seen, choices, before, advantages, targets):
        """A step of both networks; none, and False, where the policy has moved too far."""
        log_probabilities, offered = self.policy(seen)
        change = log_probabilities.gather(-1, choices.unsqueeze(-1)).squeeze(-1) - before
        ratio = change.exp()
        if (ratio - 1 - change).mean() > self.options.largest_divergence:
            return False
        cut = ratio.clamp(1 - self.options.clip, 1 + self.options.clip)
        gain = torch.minimum(ratio * advantages, cut * advantages).mean()
        known = log_probabilities.masked_fill(~offered, 0)
        entropy = -(log_probabilities.exp() * known).sum(-1) / seen.counts.clamp(min=2).log()
        off = self.value(seen.states) - targets
        loss = -gain - self.options.entropy * entropy.mean() + off.square().mean() / 2
        self.policy_adam.zero_grad()
        self.value_adam.zero_grad()
        loss.backward()
        for network, adam in ((self.policy, self.policy_adam), (self.value, self.value_adam)):
            torch.nn.utils.clip_grad_norm_(network.parameters(), self.options.largest_gradient)
            adam.step()
        return True


def widest_of(trees):
    return 1 + max(len(node.actions) for tree in trees for node in tree)


# --- measurements ---


def steps_a_second(trees, options, with_features, seconds=2.0):
    environments = [Environment(trees, options.seed + i) for i in range(options.environments)]
    chance = random.Random(options.seed)
    seen = Observations.room(options.environments, widest=widest_of(trees))
    steps = 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        if with_features:
            seen.write(environments)
        for environment in environments:
            if environment.step(int(chance.random() * len(environment.actions)))[1]:
                environment.reset()
        steps += len(environments)
    return steps / (time.perf_counter() - begin)


@torch.no_grad()
def greedy_return(score, tree, seed):
    """Of the choices that `score` gives the most, of several the first; a mean where outcomes are drawn."""
    drawn = any(len(action.outcomes) > 1 for node in tree for action in node.actions)
    environment = Environment([tree], seed)
    seen = Observations.room(1, widest=widest_of([tree]))
    episodes, total = 100 if drawn else 1, 0.0
    for _ in range(episodes):
        environment.reset()
        ended = False
        while not ended:
            seen.write([environment])
            scores = score(seen.part(slice(None)))
            reward, ended = environment.step(int(numpy.argmax(scores[0].numpy())))
            total += reward
    return total / episodes


def part_of_best(score, trees, seed):
    best = sum(best_return(tree) for tree in trees)
    return sum(greedy_return(score, tree, seed) for tree in trees) / best


def arguments_of_call():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="a data set of mtmc-train: JSON Lines, the card first")
    parser.add_argument("--steps", type=int, default=100000, help="of all environments together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch")
    parser.add_argument("--environments", type=int, default=8)
    parser.add_argument("--rollout", type=int, default=1024, help="steps of all environments between updates")
    parser.add_argument("--minibatch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--discount", type=float, default=1.0)
    parser.add_argument("--trace", type=float, default=0.95, help="lambda of the generalised advantage")
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--entropy", type=float, default=0.01, help="its weight, as part of log(number of actions)")
    parser.add_argument("--largest-gradient", type=float, default=0.5, help="norm, of each network apart")
    parser.add_argument("--largest-divergence", type=float, default=0.02)
    parser.add_argument("--policy-rate", type=float, default=1e-3, help="at first; it falls to 0 along a line")
    parser.add_argument("--value-rate", type=float, default=1e-3)
    return parser.parse_args()


def main():
    options = arguments_of_call()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    trees = read_trees(options.data)
    bare = steps_a_second(trees, options, with_features=False)
    featured = steps_a_second(trees, options, with_features=True)
    trainer = Trainer(trees, options)
    playing, learning = trainer.train()
    rules = part_of_best(lambda seen: seen.priors, trees, options.seed)
    learnt = part_of_best(lambda seen: trainer.policy(seen)[0], trees, options.seed)
    print(f"PyTorch {torch.__version__}, {options.threads} threads, {len(trees)} trees, seed {options.seed}\n")
    print("| measured | |\n|---|---|")
    print(f"| environment, by chance, no features | {bare:,.0f} steps/s |")
    print(f"| environment, by chance, with features | {featured:,.0f} steps/s |")
    print(f"| training of {options.steps:,} steps | {playing + learning:.1f} s |")
    print(f"| of it playing, learning | {playing:.1f} s, {learning:.1f} s |")
    print(f"| rules alone, likeliest choices, of the best returns | {rules:.4f} |")
    print(f"| trained, likeliest choices, of the best returns | {learnt:.4f} |")


if __name__ == "__main__":
    main()
