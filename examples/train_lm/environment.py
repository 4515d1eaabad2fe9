"""Recorded searches as an environment of texts: a client of mtmc-environment.

The protocol is in include/mtmc/train/environment_server.hpp.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Tree:
    """A task on a device, as recorded."""

    number: int
    task: str
    device: str
    best: float  # the best expected return, without discount
    held_out: bool  # not to be trained on


@dataclass(frozen=True)
class State:
    """Where an episode stands. What follows `ended` is empty where it has ended."""

    reward: float  # of the step that led here
    ended: bool
    prompt: str = ""
    actions: tuple[str, ...] = ()  # to be put right behind the prompt
    value: float = 0.0  # V*
    soft: tuple[float, ...] = ()  # labels: a probability for each action
    step: int = 0  # steps taken
    untried: tuple[str, ...] = ()  # of actions that a search would be offered, too, and that none took


def with_untried(state: State) -> State:
    """A state with the actions that nobody tried behind its own, never to be taken."""
    actions, soft = state.actions + state.untried, state.soft + (0.0,) * len(state.untried)
    return replace(state, actions=actions, soft=soft, untried=())


class EnvironmentFailure(RuntimeError):
    """What the server answered instead of a state."""


@dataclass
class Environment:
    """One server, any number of episodes at once. Use it in a `with` statement."""

    command: Sequence[str]  # "mtmc-environment", its data and its options
    card: dict[str, Any] = field(default_factory=dict)  # the PolicyCard by which prompts are made
    step_limit: int = 0
    temperature: float = 1.0  # of soft labels
    trees: list[Tree] = field(default_factory=list)

    def __enter__(self) -> Environment:
        self._server = subprocess.Popen(
            list(self.command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        ready = self._ask(type="hello")
        self.card, self.step_limit = ready["card"], ready["step_limit"]
        self.temperature = ready["temperature"]
        self.trees = [
            Tree(one["number"], one["task"], one["device"], one["best"], one["held_out"])
            for one in self._ask(type="trees")["trees"]
        ]
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()  # the server ends with its requests
        self._server.wait()

    def reset(self, tree: Tree, seed: int, episode: int = 0) -> State:
        """Begins an episode; what the environment draws follows from the seed."""
        return self._state(self._ask(type="reset", tree=tree.number, seed=seed, episode=episode))

    def step(self, choice: int, episode: int = 0) -> State:
        """Takes one of the state's actions."""
        return self._state(self._ask(type="step", choice=choice, episode=episode))

    def training(self) -> list[Tree]:
        return [tree for tree in self.trees if not tree.held_out]

    def held_out(self) -> list[Tree]:
        return [tree for tree in self.trees if tree.held_out]

    @staticmethod
    def _state(message: dict[str, Any]) -> State:
        if message["ended"]:
            return State(message["reward"], True)
        return State(
            message["reward"],
            False,
            message["observation"],
            tuple(message["actions"]),
            message["value"],
            tuple(message["soft"]),
            message["step"],
            tuple(message.get("untried", ())),
        )

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        line = self._server.stdout.readline()
        if not line:
            raise EnvironmentFailure("the environment has ended; what it said is above")
        message: dict[str, Any] = json.loads(line)
        if message["type"] == "error":
            raise EnvironmentFailure(message["error"]["message"])
        return message
