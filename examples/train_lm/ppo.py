"""Proximal policy optimisation (Schulman and others, 2017) over actions that differ from state to state."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from action_policy import ActionPolicy, batches, judge
from augmentation import AugmentationOptions, in_other_words
from environment import Environment, State, Tree, with_untried
from measures import Records, draw


# Numbers of episodes; those below are of the scores in between.
FIRST_EPISODE = 1_000_000


@dataclass(frozen=True)
class PpoOptions:
    steps: int = 4096  # of all episodes together
    rollout: int = 256  # steps between updates
    seconds: float = 0  # after which it ends, however many steps are left; 0 = no limit
    episodes: int = 16  # side by side
    discount: float = 0.99
    trace: float = 0.95  # lambda of the generalised advantage
    clip: float = 0.2
    entropy: float = 0.01  # weight of the entropy, as part of log(number of actions)
    # Weight of how unlikely it finds all actions together that trees offer. Trees never offer the others, a search
    # does, and nothing else keeps a policy from preferring them in time. 0 = leave them out.
    untried: float = 0.1
    target_divergence: float = 0.02  # above it the update under way ends
    epochs: int = 2  # over a rollout
    minibatch: int = 32
    rate: float = 3e-5  # learning rate of the model at first; it falls to 0 along a line
    value_rate: float = 1e-3  # of the critic
    largest_gradient: float = 0.5  # norm, of model and critic apart
    # Largest distance of the first ratios from 1: they are of the same weights, in other batches. bfloat16
    # needs about 0.1.
    ratio_tolerance: float = 1e-3
    augmentation: AugmentationOptions | None = None  # states are told in other words
    score_steps: int = 0  # between calls of `scored`; 0 = none
    most_tokens: int = 16384  # in one pass, with padding
    seed: int = 0


@dataclass
class Sample:
    """A step that was taken."""

    state: State
    choice: int
    log_probability: float  # of the choice, as it was drawn
    value: float
    reward: float
    ended: bool
    next_value: float = 0.0  # of the state behind it; 0 at the end of an episode
    advantage: float = 0.0

    @property
    def target(self) -> float:
        return self.advantage + self.value


class RatioError(RuntimeError):
    """The first ratios of an update are not 1: log-probabilities are not those of the policy that acted."""


def with_advantages(lanes: Sequence[list[Sample]], options: PpoOptions) -> list[Sample]:
    """All samples with their generalised advantages (Schulman and others, 2016), of which those of each lane
    followed each other."""
    for lane in lanes:
        behind = 0.0
        for sample in reversed(lane):
            if sample.ended:
                behind = 0.0
            surprise = sample.reward + options.discount * sample.next_value - sample.value
            behind = surprise + options.discount * options.trace * behind
            sample.advantage = behind
    return [sample for lane in lanes for sample in lane]


class Ppo:
    """Plays and learns in turns."""

    def __init__(
        self, policy: ActionPolicy, environment: Environment, trees: Sequence[Tree], options: PpoOptions
    ) -> None:
        self.policy, self.environment, self.trees, self.options = policy, environment, list(trees), options
        self.chance = random.Random(options.seed)
        self.model_parameters = [one for one in policy.model.parameters() if one.requires_grad]
        self.actor = torch.optim.AdamW(self.model_parameters, lr=options.rate, eps=1e-5, weight_decay=0.0)
        self.critic = torch.optim.AdamW(policy.critic.parameters(), lr=options.value_rate, eps=1e-5, weight_decay=0.0)
        self.running = [self._begin(number) for number in range(options.episodes)]
        self.returns = [0.0] * options.episodes  # of the episodes under way
        self.lengths = [0] * options.episodes

    def train(self, records: Records, scored: Callable[[int], None]) -> None:
        """Plays and learns for `PpoOptions.steps`, or `seconds`, by which learning rates fall to 0. `scored` is
        called with the steps taken each `score_steps`."""
        taken = episodes = 0
        begin, limit = time.monotonic(), self.options.seconds or math.inf
        while (left := 1 - max(taken / self.options.steps, (time.monotonic() - begin) / limit)) > 0:
            self.actor.param_groups[0]["lr"] = self.options.rate * left
            self.critic.param_groups[0]["lr"] = self.options.value_rate * left
            lanes, finished = self.play()
            samples = with_advantages(lanes, self.options)
            taken += len(samples)
            episodes += len(finished)
            told = self.learn(samples)
            count = max(len(finished), 1)
            told["mean_return"] = sum(one for one, _ in finished) / count
            told["mean_length"] = sum(length for _, length in finished) / count
            records.metrics("ppo", steps=taken, episodes=episodes, **told)
            print(
                f"ppo, {taken} steps: return {told['mean_return']:.3f}, divergence {told['divergence']:.4f},"
                f" clipped {told['clipped']:.2f}, entropy {told['entropy']:.2f}, untried {told['untried']:.3f},"
                f" first ratios within {told['first_ratio_error']:.1e} of 1",
                flush=True,
            )
            if (every := self.options.score_steps) > 0 and taken // every > (taken - len(samples)) // every:
                scored(taken)

    def _begin(self, number: int) -> State:
        tree, seed = self.chance.choice(self.trees), self.chance.randrange(2**31)
        return self._told(self.environment.reset(tree, seed, FIRST_EPISODE + number))

    def _told(self, state: State) -> State:
        by = self.options.augmentation
        return state if by is None else in_other_words(state, self.chance, by)

    def play(self) -> tuple[list[list[Sample]], list[tuple[float, int]]]:
        """A rollout: the samples of each lane of episodes, and returns and lengths of those that ended. What
        is still under way goes on in the next one."""
        lanes: list[list[Sample]] = [[] for _ in self.running]
        finished: list[tuple[float, int]] = []
        for _ in range(max(self.options.rollout // len(self.running), 1)):
            seen = judge(self.policy, self.running, self.options.most_tokens)
            for number, (log_probabilities, value) in enumerate(seen):
                if lanes[number] and not lanes[number][-1].ended:
                    lanes[number][-1].next_value = value
                choice = draw(log_probabilities, self.chance)
                behind = self._told(self.environment.step(choice, FIRST_EPISODE + number))
                lanes[number].append(
                    Sample(
                        self.running[number],
                        choice,
                        float(log_probabilities[choice]),
                        value,
                        behind.reward,
                        behind.ended,
                    )
                )
                self.returns[number] += behind.reward
                self.lengths[number] += 1
                if behind.ended:
                    finished.append((self.returns[number], self.lengths[number]))
                    self.returns[number], self.lengths[number] = 0.0, 0
                    behind = self._begin(number)
                self.running[number] = behind
        # Episodes that the rollout's end cut off go on: their last steps are followed by what the critic says.
        for number, (_, value) in enumerate(judge(self.policy, self.running, self.options.most_tokens)):
            if not lanes[number][-1].ended:
                lanes[number][-1].next_value = value
        return lanes, finished

    def learn(self, samples: list[Sample]) -> dict[str, float]:
        """An update of model and critic, and what it tells."""
        options = self.options
        advantages = torch.tensor([one.advantage for one in samples])
        targets = torch.tensor([one.target for one in samples])
        unexplained = advantages.var(correction=0) / targets.var(correction=0).clamp(min=1e-12)
        scaled = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
        first_ratio_error: float | None = None
        divergences, clipped, entropies, untried = [], [], [], []
        order = list(range(len(samples)))
        far = False
        for _ in range(options.epochs):
            self.chance.shuffle(order)
            for begin in range(0, len(order), options.minibatch):
                chosen = order[begin : begin + options.minibatch]
                states = [self._seen(samples[i].state) for i in chosen]
                sums = {"divergence": 0.0, "clipped": 0.0, "entropy": 0.0, "untried": 0.0, "ratio error": 0.0}
                for group in batches(states, self.policy, options.most_tokens):
                    numbers = [chosen[i] for i in group]
                    self._add_gradients(
                        [samples[i] for i in numbers], [states[i] for i in group], scaled[numbers], len(chosen), sums
                    )
                if first_ratio_error is None:
                    first_ratio_error = sums["ratio error"]
                    if first_ratio_error > options.ratio_tolerance:
                        raise RatioError(f"the first ratios are up to {first_ratio_error} from 1")
                divergences.append(sums["divergence"] / len(chosen))
                far = divergences[-1] > options.target_divergence
                if not far:  # what would lead too far is not done
                    torch.nn.utils.clip_grad_norm_(self.model_parameters, options.largest_gradient)
                    self.actor.step()
                torch.nn.utils.clip_grad_norm_(self.policy.critic.parameters(), options.largest_gradient)
                self.critic.step()
                for optimiser in (self.actor, self.critic):
                    optimiser.zero_grad(set_to_none=True)
                clipped.append(sums["clipped"] / len(chosen))
                entropies.append(sums["entropy"] / len(chosen))
                untried.append(sums["untried"] / len(chosen))
                if far:
                    break
            if far:
                break
        return {
            "divergence": divergences[-1],
            "clipped": sum(clipped) / len(clipped),
            "entropy": sum(entropies) / len(entropies),
            "untried": sum(untried) / len(untried),
            "explained_variance": float(1 - unexplained),
            "first_ratio_error": first_ratio_error or 0.0,
        }

    def _seen(self, state: State) -> State:
        return with_untried(state) if self.options.untried > 0 else state

    def _add_gradients(
        self,
        samples: list[Sample],
        states: list[State],
        advantages: torch.Tensor,
        of: int,
        sums: dict[str, float],
    ) -> None:
        """Adds the gradients of a part of a minibatch of `of` samples, and what it tells to the sums."""
        options = self.options
        all_seen = self.policy(states)
        device = all_seen.values.device
        offered = torch.tensor([len(one.state.actions) for one in samples], device=device)
        seen, together = all_seen.of_first(offered)
        choices = torch.tensor([one.choice for one in samples], device=device)
        old = torch.tensor([one.log_probability for one in samples], device=device)
        targets = torch.tensor([one.target for one in samples], device=device)
        advantages = advantages.to(device)
        change = seen.log_probabilities.gather(1, choices[:, None]).squeeze(1) - old
        ratio = change.exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(1 - options.clip, 1 + options.clip) * advantages).sum()
        entropies = seen.entropies().sum()
        errors = (seen.values - targets).square().sum()
        unlikely = -together.sum()
        ((0.5 * errors - gain - options.entropy * entropies + options.untried * unlikely) / of).backward()
        with torch.no_grad():
            sums["divergence"] += float((ratio - 1 - change).sum())  # an estimate without bias, never below 0
            sums["clipped"] += float(((ratio - 1).abs() > options.clip).sum())
            sums["entropy"] += float(entropies)
            sums["untried"] += float((1 - together.exp()).sum())
            sums["ratio error"] = max(sums["ratio error"], float((ratio - 1).abs().max()))
