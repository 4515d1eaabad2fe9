"""How good a policy is in trees, and files that tell of it.

Lines of metrics have the names of include/mtmc/train/metrics.hpp, so that mtmc reads them too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from action_policy import ActionPolicy, judge
from environment import Environment, State, Tree

# Log-probabilities of the actions of each of some states.
Judge = Callable[[Sequence[State]], list[Tensor]]


@dataclass(frozen=True)
class Ratios:
    """Sums of returns over the sum of the best ones; None where there is nothing to gain."""

    greedy: float | None  # the likeliest actions are taken
    sampled: float | None  # actions are drawn

    def __str__(self) -> str:
        if self.greedy is None:
            return "none"
        return f"{self.greedy:.3f} by the likeliest, {self.sampled:.3f} by drawn actions"


def judge_of(policy: ActionPolicy, most_tokens: int) -> Judge:
    """A policy that does not change meanwhile: states that come again cost nothing."""
    known: dict[tuple[str, tuple[str, ...]], Tensor] = {}

    def answer(states: Sequence[State]) -> list[Tensor]:
        new = [one for one in states if (one.prompt, one.actions) not in known]
        for state, (log_probabilities, _) in zip(new, judge(policy, new, most_tokens), strict=True):
            known[(state.prompt, state.actions)] = log_probabilities
        return [known[(state.prompt, state.actions)] for state in states]

    return answer


def draw(log_probabilities: Tensor, chance: random.Random) -> int:
    """A number drawn by those probabilities."""
    return chance.choices(range(len(log_probabilities)), weights=log_probabilities.exp().tolist())[0]


def returns(
    environment: Environment, trees: Sequence[Tree], judge_states: Judge, episodes: int, greedy: bool, seed: int
) -> float:
    """The sum over trees of a policy's mean return, without discount. All episodes go on side by side."""
    chance = random.Random(seed)
    total = 0.0
    running = {
        number: environment.reset(tree, seed + number, number)
        for number, tree in enumerate([tree for tree in trees for _ in range(episodes)])
    }
    while running:
        numbers = list(running)
        for number, seen in zip(numbers, judge_states([running[n] for n in numbers]), strict=True):
            choice = int(seen.argmax()) if greedy else draw(seen, chance)
            state = environment.step(choice, number)
            total += state.reward
            if state.ended:
                del running[number]
            else:
                running[number] = state
    return total / episodes


def ratios(
    environment: Environment, trees: Sequence[Tree], judge_states: Judge, episodes: int, seed: int = 0
) -> Ratios:
    best = sum(tree.best for tree in trees)
    if best <= 0:
        return Ratios(None, None)
    greedy = returns(environment, trees, judge_states, episodes, True, seed)
    sampled = returns(environment, trees, judge_states, episodes, False, seed)
    return Ratios(greedy / best, sampled / best)


class Records:
    """Files of a training: `metrics.jsonl` (lines of `imitation` and `ppo`), `scores.jsonl` (what was
    reached after which stage, as parts of the best) and `scores.svg`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.scores: list[dict[str, Any]] = []
        self.kept = "last"  # the stage whose weights are saved
        for name in ("metrics.jsonl", "scores.jsonl"):
            (folder / name).write_text("", encoding="utf-8")

    def metrics(self, kind: str, **members: Any) -> None:
        self._append("metrics.jsonl", {"kind": kind, **members})

    def score(self, stage: str, training: Ratios, held_out: Ratios) -> None:
        line = {"stage": stage, "training": asdict(training), "held_out": asdict(held_out)}
        self.scores.append(line)
        self._append("scores.jsonl", line)
        print(f"{stage}, of the best: {training}; held out {held_out}", flush=True)
        (self.folder / "scores.svg").write_text(self._svg(), encoding="utf-8")

    def _append(self, name: str, line: dict[str, Any]) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")

    def _svg(self) -> str:
        """The four ratios over the stages, one line each."""
        width, height, left, top = 640, 320, 48, 24
        series = [("training", "greedy"), ("training", "sampled"), ("held_out", "greedy"), ("held_out", "sampled")]
        colours = ["#1b6ca8", "#7fb2d9", "#b8431f", "#e3a58e"]
        values = [one[part][way] for one in self.scores for part, way in series]
        numbers = [value for value in values if value is not None]
        low, high = min([0.0, *numbers]), max([1.0, *numbers])

        def place(i: int, value: float) -> str:
            x = left + i * (width - left - 160) / max(len(self.scores) - 1, 1)
            y = top + (high - value) * (height - 2 * top) / (high - low)
            return f"{x:.1f},{y:.1f}"

        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"']
        lines.append(' font-family="sans-serif" font-size="12">')
        for level in sorted({low, 0.0, 1.0}):
            x, y = place(0, level).split(",")
            lines.append(f'<line x1="{x}" y1="{y}" x2="{width - 160}" y2="{y}" stroke="#ccc"/>')
            lines.append(f'<text x="8" y="{y}">{level:.2f}</text>')
        for number, ((part, way), colour) in enumerate(zip(series, colours, strict=True)):
            points = [place(i, one[part][way]) for i, one in enumerate(self.scores) if one[part][way] is not None]
            lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(points)}"/>')
            name = f"{part.replace('_', ' ')}, {way}"
            lines.append(f'<text x="{width - 150}" y="{top + 18 * number}" fill="{colour}">{name}</text>')
        for i, one in enumerate(self.scores):
            x, _ = place(i, low).split(",")
            lines.append(f'<text x="{x}" y="{height - 4}" text-anchor="middle">{one["stage"].split()[-1]}</text>')
        return "\n".join([*lines, "</svg>"]) + "\n"
