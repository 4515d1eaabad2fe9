#pragma once
/// Whether what a candidate gives is right, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// comparing.py, which judging.py imports.
inline constexpr std::string_view comparing_text =
    R"python("""Whether what a candidate gives is right."""
import torch

from measuring import (BESIDE_STEPS, FEW, FLIPPED, LOW_PRECISION, Groups, chunks, count_far, errors_of, far_in_slices,
                       is_floating, largest_error, name_of)
from players import Lost
from replaying import Refused

MOST_NUDGED = 1 << 27  # elements of a result that is computed once more in double precision, of changed inputs


class Comparison:
    """Of all results of a candidate with what is right for them."""

    def __init__(self, measure):
        self.measure = measure
        self.flips = {}  # by output: elements that roundings of inputs and weights move over a step
        self.checked = 0
        self.largest = 0.0  # error, in units of what is allowed

    def compare(self, results, case, truth, factor):
        """Raises where a result is wrong."""
        for i, (given, right, own) in enumerate(zip(results, truth, case.own)):
            self.checked += given.numel()
            if is_floating(own):
                self.compare_numbers(case, i, given, right, factor)
                continue
            for begin, (one, theirs, truth) in chunks(given, own, right):
                wrong = (one != theirs) & (one != truth.to(theirs.dtype))
                if bool(wrong.any()):
                    refuse_result(i, begin + int(wrong.nonzero()[0].item()), given, right, "wrong_result", 0)

    def compare_numbers(self, case, i, given, right, factor):
        """Each element is near the truth, or near what the problem's own arithmetic gives; and no group of them errs by
        much more than that does."""
        own = case.own[i]
        honest = case.worst[i] if case.worst else own
        scale, allowed = self.measure.scale_of(i, right), factor * self.measure.allowed(i, own.dtype)
        if scale == float("inf"):
            raise Refused("results whose mean cannot be told are not judged")
        far, worst, place = 0, 0.0, 0
        for begin, (one, truth, theirs) in chunks(given, right, own):
            if not one.numel():
                continue
            error = errors_of(one, truth, scale).minimum(errors_of(one, theirs, scale))
            far += int((error > allowed).sum().item())
            found, index = error.max(dim=0)
            if found.item() > worst:
                worst, place = found.item(), begin + int(index.item())
        self.largest = max(self.largest, worst / allowed if far else min(worst / allowed, 1.0))
        # Quotients and steps have some that are far off in either; but no larger errors than the problem's own kind.
        steps = self.measure.most[i] > LOW_PRECISION
        if far > FLIPPED * self.measure.far[i] or far and not steps and worst > max(allowed, LOW_PRECISION):
            steps = self.may_flip(case, i, far, scale, allowed)
            if not steps:
                verdict = "low_precision" if worst <= LOW_PRECISION else "wrong_result"
                refuse_result(i, place, given, right, verdict, worst / allowed)
        if right is own:
            return
        flipped = far and steps
        if flipped:
            self.demand_scattered(i, place, given, right, scale, allowed)
        # What is off by a little in every element of a group is seen in their mean.
        groups = Groups(given, honest, right, (scale, allowed) if flipped else None)
        least = self.measure.least(own.dtype) * (1 if name_of(own.dtype) in ("f32", "f64") else 0.1)
        factor *= BESIDE_STEPS if flipped else 1
        times, group = groups.worst(factor * least, factor * self.measure.factor(i, own.dtype))
        if times > 1:
            _, place = largest_error(given, right, 0.0)
            refuse_result(i, place, given, right, "low_precision" if worst <= LOW_PRECISION else "wrong_result", times,
                          groups.words(group))

    def may_flip(self, case, i, far, scale, allowed):
        """Whether roundings alone may move so many elements over a step: inputs and weights that are changed by some of them
        do, where the problem itself, computed once, has too few for them to tell."""
        own = case.own[i]
        if self.measure.far[i] > FEW or far > self.measure.most_flips(own.numel()) or own.numel() > MOST_NUDGED:
            return False
        if i not in self.flips:
            try:
                truth = case.truth[i] if case.truth[i] is not own else case.exact()[i]
                nudged = case.nudged()[i]
            except torch.OutOfMemoryError:
                return False
            step = max(allowed, LOW_PRECISION)  # what is continuous moves by less
            self.flips[i] = count_far(nudged, truth, scale, step)
            self.measure.note_slices(i, nudged, truth, scale, step)
        return far <= self.flips[i]

    def demand_scattered(self, i, place, given, right, scale, allowed):
        """Steps flip here and there; what leaves out a row, a channel or a tile has all of them in one place."""
        crowded = self.measure.crowded(i, far_in_slices(given, right, scale, allowed))
        if crowded:
            axis, number, count, most = crowded
            refuse_result(i, place, given, right, "wrong_result", 0,
                          f"{count} elements with index {number} of axis {axis} are far off, and as PyTorch computes them "
                          f"at most {most}")


def refuse_result(output, place, given, right, verdict, times, group=None):
    """Says where a result is wrong, and by how much."""
    index = []
    for size in reversed(given.shape):
        index.insert(0, place % size)
        place //= size
    where = f"output {output}{index}" if index else f"output {output}"
    message = f"{where} is {given[tuple(index)].item():.9g}, and {right[tuple(index)].item():.9g} is right"
    if times and times < float("inf"):
        message += f"; {group + ', so ' if group else ''}the error is {times:.3g} times what is allowed"
    elif group:
        message += "; " + group
    raise Lost(verdict, message)
)python";

} // namespace mtmc::detail
