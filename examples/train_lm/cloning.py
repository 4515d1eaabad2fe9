"""Cloning: the model learns soft labels, in proportion of e^(Q* / temperature), of states that teacher,
chance and the model itself come to (Ross, Gordon and Bagnell, 2011).

Actions that a search would be offered, and that nobody tried, count as unlikely: a policy that has never heard
of them would take them where it knows no better, and nobody can say what they bring.

A model from scratch also has to learn to write actions at all: before it does, a sum of log-probabilities
tells little but how long a text is. So what it finds likely of any legal action's text is learnt beside."""

from __future__ import annotations

import dataclasses
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from action_policy import ActionPolicy, batches
from augmentation import AugmentationOptions, in_other_words
from environment import Environment, State, Tree, with_untried
from measures import Judge, Records, draw, judge_of

# By this mtmc's scorer finds out whether a server's log-probabilities are what they should be
# (mtmc/net/scoring.hpp). A model that never saw anything but kernels knows no cities.
PROBE = State(0.0, False, "The capital of France is", (" Paris", " banana"), 0.0, (1.0, 0.0))


@dataclass(frozen=True)
class CloningOptions:
    rounds: int = 2  # of visiting states and learning from all that were visited
    episodes: int = 8  # of each tree in a round
    exploring: float = 0.2  # part of the choices on the way that is drawn by chance
    epochs: int = 4  # over the states in each round
    seconds: float = 0  # after which it ends, however many epochs are left; 0 = no limit
    minibatch: int = 16  # states of an update
    rate: float = 3e-4  # learning rate of the model at first; it falls to 0 along a line
    value_rate: float = 1e-3  # of the critic
    untried: bool = True  # teach that actions which nobody tried are unlikely
    augmentation: AugmentationOptions | None = None  # each epoch tells states in other words
    language: float = 1.0  # weight of the texts' mean negative log-probability of a token
    largest_gradient: float = 1.0  # norm
    most_tokens: int = 16384  # in one pass, with padding
    seed: int = 0


def with_stop(state: State, environment: Environment) -> State:
    """A first state with stopping among its actions. Trees do not offer that, a search does: it is worth 0, so
    that its label is known all the same."""
    stop = environment.card.get("separator", " ") + "stop"
    if state.step > 0 or stop in state.actions:
        return state
    of_all = math.exp(min(state.value / environment.temperature, 700.0)) / max(state.soft)
    left = of_all / (of_all + 1)
    soft = (*(one * left for one in state.soft), 1 - left)
    return dataclasses.replace(state, actions=(*state.actions, stop), soft=soft, value=max(state.value, 0.0))


def visit(
    environment: Environment, trees: Sequence[Tree], options: CloningOptions, student: Judge | None, number: int
) -> list[State]:
    """States on the way of the labels, or of the student where there is one in half of the episodes. All
    episodes go on side by side."""
    chance = random.Random(options.seed * 1000 + number)
    states: list[State] = []
    running = {
        lane: environment.reset(tree, chance.randrange(2**31), lane)
        for lane, tree in enumerate([tree for tree in trees for _ in range(options.episodes)])
    }
    while running := {lane: state for lane, state in running.items() if not state.ended}:
        states += running.values()
        asked = [lane for lane in running if student is not None and lane % 2 == 0]
        answers = student([running[lane] for lane in asked]) if student is not None else []
        seen = dict(zip(asked, answers, strict=True))
        for lane, state in running.items():
            if chance.random() < options.exploring:
                choice = chance.randrange(len(state.actions))
            elif lane in seen:
                choice = draw(seen[lane], chance)
            else:
                choice = chance.choices(range(len(state.soft)), weights=state.soft)[0]
            running[lane] = environment.step(choice, lane)
    return states


def clone(
    policy: ActionPolicy, environment: Environment, trees: Sequence[Tree], options: CloningOptions, records: Records
) -> None:
    """Teaches the labels of these trees."""
    model_parameters = [one for one in policy.model.parameters() if one.requires_grad]
    actor = torch.optim.AdamW(model_parameters, lr=options.rate, weight_decay=0.0)
    critic = torch.optim.AdamW(policy.critic.parameters(), lr=options.value_rate, weight_decay=0.0)
    chance = random.Random(options.seed)
    states = {(PROBE.prompt, PROBE.actions): PROBE}
    epochs = options.rounds * options.epochs
    epoch = 0
    begin, limit = time.monotonic(), options.seconds or math.inf
    for number in range(options.rounds):
        student = judge_of(policy, options.most_tokens) if number > 0 else None
        for state in visit(environment, trees, options, student, number):
            lesson = with_stop(state, environment)
            if options.untried:
                lesson = with_untried(lesson)
            states[(lesson.prompt, lesson.actions)] = lesson
        lessons = list(states.values())
        for _ in range(options.epochs):
            epoch += 1
            divergence = agreement = squares = 0.0
            chance.shuffle(lessons)
            steps = math.ceil(len(lessons) / options.minibatch)
            for step in range(steps):
                done = max((epoch - 1 + step / steps) / epochs, (time.monotonic() - begin) / limit)
                if done >= 1:
                    print(f"cloning ends in epoch {epoch} of {epochs}, after {options.seconds:.0f} s", flush=True)
                    return
                for optimiser, rate in ((actor, options.rate), (critic, options.value_rate)):
                    optimiser.param_groups[0]["lr"] = rate * (1 - done)
                batch = lessons[step * options.minibatch : (step + 1) * options.minibatch]
                if options.augmentation is not None:
                    batch = [in_other_words(one, chance, options.augmentation) for one in batch]
                for group in batches(batch, policy, options.most_tokens):
                    taught = [batch[i] for i in group]
                    seen = policy(taught)
                    divergences, agreements = _divergences(seen.log_probabilities, taught)
                    best = torch.tensor([one.value for one in taught], device=seen.values.device)
                    errors = (seen.values - best).square()
                    loss = divergences.sum() + errors.sum() + options.language * seen.surprises.sum()
                    (loss / len(batch)).backward()
                    divergence += float(divergences.detach().sum())
                    agreement += agreements
                    squares += float(errors.detach().sum())
                torch.nn.utils.clip_grad_norm_(model_parameters, options.largest_gradient)
                for optimiser in (actor, critic):
                    optimiser.step()
                    optimiser.zero_grad(set_to_none=True)
            count = len(lessons)
            records.metrics(
                "imitation",
                round=number + 1,
                epoch=epoch,
                states=count,
                training={
                    "divergence": divergence / count,
                    "agreement": agreement / count,
                    "value_error": math.sqrt(squares / count),
                },
                held_out={"divergence": 0.0, "agreement": 0.0, "value_error": 0.0},
            )
            print(
                f"cloning, epoch {epoch} of {epochs}: {count} states, divergence {divergence / count:.3f},"
                f" agreement {agreement / count:.2f}, value error {math.sqrt(squares / count):.2f}",
                flush=True,
            )


def _divergences(log_probabilities: torch.Tensor, states: Sequence[State]) -> tuple[torch.Tensor, int]:
    """Kullback-Leibler divergence of the labels from the policy in each state, and in how many of them both
    like the same action best."""
    labels = torch.zeros(log_probabilities.shape)
    for row, state in enumerate(states):
        labels[row, : len(state.soft)] = torch.tensor(state.soft)
    labels = labels.to(log_probabilities.device)
    legal = labels > 0
    terms = labels * (labels.clamp(min=1e-30).log() - log_probabilities.masked_fill(~legal, 0.0))
    agreements = int((labels.argmax(1) == log_probabilities.argmax(1)).sum())
    return terms.masked_fill(~legal, 0.0).sum(1), agreements
