"""The same state in other words, so that a model does not know tasks by heart.

What changes: numbers in the task's name, where lines begin, the order in which regions and steps are listed, and with
it the numbers of regions; now and then functions have other names, or the task is not told at all. None of it says
what to do next, and by any of it a few million parameters recognise a few hundred tasks. Prompts look as mtmc writes
them: regions are numbered in the order in which steps first name them.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from environment import State

LINES = re.compile(r"\bline (\d+)(?: to (\d+))?")
LISTS = re.compile(r"^(?:R\d+: .*\n)+(?:- .*\n)+", re.MULTILINE)
NUMBERED = re.compile(r"(.* )R(\d+)")
FUNCTION = re.compile(r"(?:\bof|\bthe function) (\w+)(?= in line| \(line)")
NAMES = ("kernel", "run", "compute", "apply", "f", "body", "main_loop", "transform", "work", "process")


@dataclass(frozen=True)
class AugmentationOptions:
    furthest: int = 40  # lines that a text is moved by at most
    other_names: float = 0.3  # how often functions have other names
    no_task: float = 0.25  # how often the first paragraph, which tells of the task, is left out


def in_other_words(state: State, chance: random.Random, options: AugmentationOptions) -> State:
    """The state with its actions in the same order. Labels and values stay what they are."""
    if state.ended:
        return state
    changed = _task(_lines(_order(state, chance), chance, options), chance, options)
    return _names(changed, chance) if chance.random() < options.other_names else changed


def _rewritten(state: State, change: Callable[[str], str]) -> State:
    return dataclasses.replace(
        state,
        prompt=change(state.prompt),
        actions=tuple(map(change, state.actions)),
        untried=tuple(map(change, state.untried)),
    )


def _order(state: State, chance: random.Random) -> State:
    """Regions and the steps of a kind in another order; kinds stay in theirs."""
    lists = LISTS.search(state.prompt)
    if lists is None:
        return state
    lines = lists.group().splitlines(keepends=True)
    legend = {line.split(":")[0]: line.partition(": ")[2] for line in lines if line.startswith("R")}
    numbers = list(legend)
    chance.shuffle(numbers)
    kinds: dict[str, list[str]] = {}
    rest = []
    for line in lines[len(legend) :]:
        step = NUMBERED.fullmatch(line.rstrip("\n"))
        if step is None:
            rest.append(line)
        else:
            kinds.setdefault(step[1], []).append("R" + step[2])
    steps = [(kind, one) for kind, of_kind in kinds.items() for one in sorted(of_kind, key=numbers.index)]
    renamed: dict[str, str] = {}
    for _, one in steps:
        renamed.setdefault(one, f"R{len(renamed) + 1}")
    told = [f"{name}: {legend[one]}" for one, name in renamed.items()]
    told += [f"{kind}{renamed[one]}\n" for kind, one in steps]
    begin, end = lists.span()
    prompt = state.prompt[:begin] + "".join(told + rest) + state.prompt[end:]

    def action(text: str) -> str:
        step = NUMBERED.fullmatch(text)
        return text if step is None else step[1] + renamed["R" + step[2]]

    return dataclasses.replace(
        state, prompt=prompt, actions=tuple(map(action, state.actions)), untried=tuple(map(action, state.untried))
    )


def _lines(state: State, chance: random.Random, options: AugmentationOptions) -> State:
    by = chance.randrange(options.furthest + 1)

    def moved(lines: re.Match[str]) -> str:
        first = f"line {int(lines[1]) + by}"
        return first if lines[2] is None else f"{first} to {int(lines[2]) + by}"

    return _rewritten(state, lambda text: LINES.sub(moved, text))


def _task(state: State, chance: random.Random, options: AugmentationOptions) -> State:
    task, separator, rest = state.prompt.partition("\n\n")
    if separator and chance.random() < options.no_task:
        return dataclasses.replace(state, prompt=rest)
    name, colon, told = task.partition(":")
    name = re.sub(r"(?<=_)\d+(?=_)", lambda number: f"{chance.randrange(10 ** len(number[0])):0{len(number[0])}}", name)
    return dataclasses.replace(state, prompt=name + colon + told + separator + rest)


def _names(state: State, chance: random.Random) -> State:
    functions = sorted(set(FUNCTION.findall(state.prompt)))
    if not 0 < len(functions) <= len(NAMES):
        return state
    names = dict(zip(functions, chance.sample(NAMES, len(functions)), strict=True))
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, functions)) + r")\b")
    return _rewritten(state, lambda text: pattern.sub(lambda found: names[found[0]], text))
