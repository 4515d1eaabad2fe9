#pragma once
/// Inputs and weights of a key, and what is right for them, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// cases.py, which judging.py imports.
inline constexpr std::string_view cases_text =
    R"python("""Inputs and weights of a key, and what is right for them."""
import torch

import contestant
from contestant import give_back
from measuring import EPSILONS, GROUPED, chunks, is_floating, sums_of
from replaying import Replay, input_tensors

ROUNDINGS = 2.0**-16  # 128 of f32, relative: ten times what long sums in another order err by, as flips are few
TF32_ROUNDING = 2.0**-11
MOST_BESIDE = 4 << 30  # bytes of a result that lies on the device beside what is right and what the problem gives


class Case:
    """Inputs and weights, each from a key, and what is right for them. Inputs may fill a fifth of a device's memory, so
    they are made anew where they are needed, and lie nowhere twice."""

    def __init__(self, request, device, key, with_truth, state_key=None):
        self.request, self.problem, self.device, self.key = request, request["problem"], device, key
        self.state_key = key if state_key is None else state_key
        replay = self.made()
        given = [replay.memory.tensor(view) for view in input_tensors(self.problem)] if with_truth else []
        made = [memory_of(storage) for storage in replay.memory.held.values()] if with_truth else []
        before, state = sums_of(given), sums_of(made)
        replay.run("forward")
        self.own = rows(replay.outputs())
        self.writes_inputs = sums_of(given) != before  # told where there is a truth
        # Whether a second call gives something else, as what the first has left behind asks for.
        self.goes_on = sums_of(made) != state and not self.writes_inputs and self.differs_again(replay)
        del replay, given, made
        self.truth, self.worst, self.sums, self.scales = self.own, None, None, {}
        if with_truth:
            self.find_truth()
        give_back(device)

    def differs_again(self, replay):
        before = sums_of(self.own)
        for view in self.problem["outputs"]:
            replay.memory.held.pop(view["storage"], None)  # else the results would be overwritten
        try:
            replay.run("forward")
            return sums_of(rows(replay.outputs())) != before
        except Exception:
            return True  # a result lies in what the constructor made

    def find_truth(self):
        shortened = None
        if self.device.type == "cuda" and shortens(self.problem):
            replay = self.made()
            replay.shortened = True
            replay.run("forward")
            shortened = [aside(result) for result in rows(replay.outputs())]
            del replay
        self.truth = self.exact()
        for truth, own in zip(self.truth, self.own):
            settle(truth, own)
        if shortened:
            self.add(shortened)

    def add(self, results):
        """Takes in what honest arithmetic gives, too. Of all that does each element that errs most is kept."""
        if self.worst is None:
            self.worst = [aside(own) for own in self.own]
        for worst, other, truth in zip(self.worst, results, self.truth):
            if is_floating(truth):
                for begin, (right, kept, one) in chunks(truth, worst, other):
                    further = (one.double() - right).abs() > (kept.double() - right).abs()
                    worst.view(-1)[begin:begin + kept.numel()].copy_(torch.where(further, one.to(kept.dtype), kept))

    def exact(self):
        """In double precision, on the device, or on the host where that has not enough memory."""
        for place in (self.device, torch.device("cpu")):
            try:
                give_back(self.device)
                exact = self.made().widened(place)
                exact.run("forward")
                return rows(exact.outputs())
            except torch.OutOfMemoryError:
                exact = None
                if place.type == "cpu" or any(step.get("operation", {}).get("draws") for step in
                                              self.problem["phases"].get("forward", ())):
                    raise

    def nudged(self, nudge=None):
        """What is right for inputs and weights that are changed by so much, relative; by some roundings unless it is said."""
        views = [*input_tensors(self.problem), *(weight["view"] for weight in self.problem.get("weights", ()))]
        if nudge is None:
            spacing = max((EPSILONS[view["type"]] for view in views if view["type"] in ("f16", "bf16")), default=0.0)
            nudge = TF32_ROUNDING if shortens(self.problem) else max(ROUNDINGS, spacing / 4)
        exact = self.made().widened(self.device)
        for view in views:
            tensor = once(exact.memory.tensor(view))
            if is_floating(tensor):
                tensor.mul_(1 + nudge * torch.randn(tensor.shape, device=tensor.device, dtype=tensor.dtype))
        exact.run("forward")
        return rows(exact.outputs())

    def scale(self, i, scale_of):
        """Of what is right, which is asked for often."""
        if i not in self.scales:
            self.scales[i] = scale_of(i, self.truth[i])
        return self.scales[i]

    def honest(self, i):
        """What honest arithmetic gives."""
        return [self.own[i]] + ([self.worst[i]] if self.worst else [])

    def made(self):
        replay = Replay(self.problem, self.device, key=self.state_key, input_key=self.key,
                        varied=contestant.varied_by(self.state_key, self.request))
        replay.run("inputs")
        replay.run("setup")
        return replay

    def show(self, shared):
        """Puts the inputs where the contestants find them."""
        replay = Replay(self.problem, self.device, key=self.key)
        replay.run("inputs")
        for tensor, view in zip(shared, input_tensors(self.problem), strict=True):
            once(tensor).copy_(once(replay.memory.tensor(view)))
        self.sums = self.sums or sums_of(shared)


def memory_of(storage):
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def aside(result):
    """A copy; of a large one on the host, from where it is taken piece by piece."""
    return result.to("cpu", copy=True) if result.nbytes > MOST_BESIDE else result.clone()


def shortens(problem):
    """Whether PyTorch may shorten operands to TF32, as it does in convolutions unless it is told otherwise."""
    return any("convolution" in step.get("operation", {}).get("name", "") for step in problem["phases"].get("forward", ()))


def once(tensor):
    """Without what repeats along an axis, which is the same memory."""
    for axis, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def settle(truth, own):
    """Where only one of the two is a finite number, what the problem's own precision gives is right."""
    if is_floating(own):
        for begin, (right, given) in chunks(truth, own):
            settled = torch.where(torch.isfinite(right) == torch.isfinite(given), right, given.to(right.dtype))
            truth.view(-1)[begin:begin + right.numel()].copy_(settled)


def rows(tensors):
    return [tensor.contiguous() for tensor in tensors]


class Seen:
    """What is kept of a case: sums of its inputs, and its results, of many elements some at places of chance."""

    def __init__(self, case, before):
        self.sums = case.sums
        self.places = before.places if before else [places_in(truth) for truth in case.truth]
        self.results = [truth.reshape(-1)[places.to(truth.device)].to(case.device)
                        for truth, places in zip(case.truth, self.places)]


def places_in(tensor):
    number = tensor.numel()
    return torch.arange(number) if number <= GROUPED else torch.randint(number, [GROUPED])
)python";

} // namespace mtmc::detail
