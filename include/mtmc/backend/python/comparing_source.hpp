#pragma once
/// Whether what a candidate gives is right, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// comparing.py, which judging.py imports.
inline constexpr std::string_view comparing_text =
    R"python("""Whether what a candidate gives is right."""
import torch

from measuring import (BESIDE_STEPS, EPSILONS, FEW, FLIPPED, LOW_PRECISION, Groups, chunks, count_far, errors_of,
                       far_by_axis, hit_by_axis, is_floating, largest_error, most_by_axis, name_of)
from players import Lost
from replaying import Refused

MOST_NUDGED = 1 << 27  # elements of a result that is computed once more in double precision, of changed inputs
OFTEN = 0.1  # part of the slices that may have elements far off without that telling anything
BY_CHANCE = 1e-3  # as rarely a slice has some in every case by chance


class Comparison:
    """Of all results of a candidate with what is right for them."""

    def __init__(self, measure):
        self.measure = measure
        self.repeated = {}  # by output: in how many of which cases each slice had elements that are far off
        self.flips = {}  # by output: elements that roundings of inputs and weights move over a step
        self.checked = 0
        self.largest = 0.0  # error, in units of what is allowed

    def compare(self, results, case, truth, factor):
        """Raises where a result is wrong. What is not what the problem gives may be right all the same."""
        try:
            self.compare_with(results, case, truth, factor)
        except Lost:
            if truth is not case.own or case.truth is not case.own:
                raise
            case.find_truth()
            self.measure.learn(case)
            self.compare_with(results, case, case.truth, factor)

    def compare_with(self, results, case, truth, factor):
        for i, (given, right, own) in enumerate(zip(results, truth, case.own)):
            self.checked += given.numel()
            if is_floating(own):
                self.compare_numbers(case, i, given, right, factor)
            else:
                self.compare_choices(case, i, given, right)

    def compare_choices(self, case, i, given, right):
        """Whole numbers and truth values are right, or what the problem's own arithmetic gives; as many others as there are
        near ties."""
        far, place = 0, 0  # not by errors: doubles do not tell large whole numbers apart
        for begin, (one, theirs, truth) in chunks(given, case.own[i], right):
            wrong = (one != theirs) & (one != truth.to(theirs.dtype))
            place = place if far or not bool(wrong.any()) else begin + int(wrong.nonzero()[0].item())
            far += int(wrong.sum().item())
        if far > FLIPPED * self.measure.far[i] and not self.may_flip(case, i, far, 1.0, 0.0):
            refuse_result(i, place, given, right, "wrong_result", 0)
        self.demand_scattered(case, i, far, place, given, right, 1.0, 0.0)

    def compare_numbers(self, case, i, given, right, factor):
        """Each element is near the truth, or near what the problem's own arithmetic gives; and no group of them errs by
        much more than that does."""
        own = case.own[i]
        honest = case.worst[i] if case.worst else own
        scale, allowed = self.measure.scale_of(i, right), factor * self.measure.allowed(i, own.dtype)
        if scale == float("inf"):
            raise Refused("results whose mean cannot be told are not judged")
        far, worst, place = far_from_both(given, right, own, scale, allowed)
        self.largest = max(self.largest, worst / allowed if far else min(worst / allowed, 1.0))
        # Quotients and steps have some that are far off in either; but no larger errors than the problem's own kind.
        steps = self.measure.most[i] > LOW_PRECISION
        if far > FLIPPED * self.measure.far[i] or far and not steps and worst > max(allowed, LOW_PRECISION):
            steps = self.may_flip(case, i, far, scale, max(allowed, LOW_PRECISION))  # what is continuous moves by less
            if not steps:
                verdict = "low_precision" if worst <= LOW_PRECISION else "wrong_result"
                refuse_result(i, place, given, right, verdict, worst / allowed)
        flipped = far and steps
        self.demand_scattered(case, i, far if flipped else 0, place, given, right, scale, allowed)
        if right is own:
            return
        # What is off by a little in every element of a group is seen in their mean.
        near = (scale, allowed) if flipped else None
        least = self.measure.least(own.dtype) * (1 if name_of(own.dtype) in ("f32", "f64") else 0.1)
        factor *= BESIDE_STEPS if flipped else 1
        bounds = factor * least, factor * self.measure.factor(i, own.dtype)
        groups = Groups(given, honest, right, near)
        times, group = groups.worst(*bounds)
        if times > 1 and not self.is_stable(case, i, given, right, near, bounds):
            _, place = largest_error(given, right, 0.0)
            refuse_result(i, place, given, right, "low_precision" if worst <= LOW_PRECISION else "wrong_result", times,
                          groups.words(group))

    def is_stable(self, case, i, given, right, near, bounds):
        """Whether each group errs by what roundings of inputs and weights alone do: what is left of larger numbers may err by
        theirs, and the problem may round less often than others do."""
        type, (least, factor) = name_of(given.dtype), bounds
        precise = type in ("f32", "f64")  # sums round at each step there, and once where results have 16 bits
        moved = self.nudged(case, i, EPSILONS[type] if precise else EPSILONS[type] / 4)
        factor = max(factor, self.measure.FACTOR) if precise else factor
        return moved is not None and Groups(given, moved, right, near).worst(least, factor)[0] <= 1

    def may_flip(self, case, i, far, scale, step):
        """Whether roundings alone may move so many elements over a step: inputs and weights that are changed by some of them
        do, where the problem itself, computed once, has too few for them to tell."""
        own = case.own[i]
        if self.measure.far[i] > FEW or far > self.measure.most_flips(own.numel()):
            return False
        if i not in self.flips:
            truth = case.truth[i] if case.truth[i] is not own else case.exact()[i]
            nudged = self.nudged(case, i, None)
            if nudged is None:
                return False
            self.flips[i] = count_far(nudged, truth, scale, step)
            self.measure.note_slices(i, nudged, truth, scale, step)
        return far <= self.flips[i]

    @staticmethod
    def nudged(case, i, nudge):
        """What is right for inputs and weights that are changed a little; nothing where there is no memory for it."""
        if case.own[i].numel() > MOST_NUDGED:
            return None
        try:
            return case.nudged(nudge)[i]
        except (torch.OutOfMemoryError, NotImplementedError):
            return None

    def demand_scattered(self, case, i, far, place, given, right, scale, allowed):
        """Steps flip here and there, and elsewhere in each case; what leaves out a row, a channel or a tile has all of them in
        one place, and always in the same."""
        counts = far_by_axis(given, right, scale, allowed) if far else []
        crowded = self.measure.crowded(i, most_by_axis(counts)) if right is not case.own[i] else None
        if crowded:
            axis, number, count, most = crowded
            refuse_result(i, place, given, right, "wrong_result", 0,
                          f"{count} {slice_text(axis, number, right)} are far off, and as PyTorch computes them at most {most}")
        repeated = self.repeated.setdefault(i, Repeated())
        repeated.take(case.key, counts)
        always = repeated.always(self.measure.far_anywhere[i])
        if always:
            refuse_result(i, place, given, right, "wrong_result", 0,
                          f"{slice_text(*always, right)} are far off in each of {len(repeated.keys)} calls on other inputs, "
                          "and as PyTorch computes them in none")


class Repeated:
    """In which slices of a result elements have been far off, case by case."""

    def __init__(self):
        self.keys, self.hits = set(), []

    def take(self, key, counts):
        if key in self.keys:
            return
        self.keys.add(key)
        hits = [one.int() for one in hit_by_axis(counts)]
        if hits:
            self.hits = [old + new for old, new in zip(self.hits, hits)] if self.hits else hits

    def always(self, own):
        """A slice, by axis and number, that has had some in each case though it is not one in ten that has; and where the
        problem's own arithmetic never had any."""
        number = len(self.keys)
        for axis, hits in enumerate(self.hits):
            if not hits.numel():
                continue
            usual = max(OFTEN, hits.sort().values[int(0.9 * (hits.numel() - 1))].item() / number)
            suspect = (hits == number) & ~own[axis] if own else hits == number
            if hits.numel() * usual ** number < BY_CHANCE and bool(suspect.any()):
                return axis, int(suspect.nonzero()[0].item())
        return None


def slice_text(axis, number, right):
    is_value = axis == max(1, right.dim())
    return f"elements whose right value is {number}" if is_value else f"elements with index {number} of axis {axis}"


def far_from_both(given, right, own, scale, allowed):
    """How many elements are further off than is allowed from what is right and from what the problem's own arithmetic gives,
    the largest error, and where it is."""
    far, worst, place = 0, 0.0, 0
    for begin, (one, truth, theirs) in chunks(given, right, own):
        if not one.numel():
            continue
        error = errors_of(one, truth, scale).minimum(errors_of(one, theirs, scale))
        far += int((error > allowed).sum().item())
        found, index = error.max(dim=0)
        if found.item() > worst:
            worst, place = found.item(), begin + int(index.item())
    return far, worst, place


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
