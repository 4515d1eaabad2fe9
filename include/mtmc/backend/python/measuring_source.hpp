#pragma once
/// How far results are from the truth, and how far they may be, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// measuring.py, which judging.py imports.
inline constexpr std::string_view measuring_text =
    R"python("""How far results are from the truth, and how far they may be."""
import os

import torch

from replaying import TYPES

CHUNK = 1 << 24  # elements that are compared at once
# Spacing of the numbers of a type, relative to their size.
EPSILONS = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7, "f8e4m3": 2.0**-3, "f8e5m2": 2.0**-2}
# Roundings that are allowed whatever the problem's own arithmetic errs; sums in f64 err more than the truth tells.
LEAST_EPSILONS = {"f64": 65536, "f32": 16, "f16": 4, "bf16": 4, "f8e4m3": 2, "f8e5m2": 2}
COARSE_EPSILONS = 256  # from here on the problem itself computes with shortened operands
LOW_PRECISION = 0.03  # relative errors up to this are told as lack of precision; no more is ever allowed
SAMPLED = 1 << 20  # errors of which the usual one is found
RARE = 0.125  # part of all elements that are not zero, below which each of them is looked for
USUAL = 0.999  # part of all elements whose error the usual one is at least
FLIPPED = 4  # times as many elements as the problem's own arithmetic has may be far off: a step, a tie, a quotient
BESIDE_STEPS = 3  # times as large an error of groups is allowed where some elements have gone over a step
CHOICES = 1 << 12  # whole numbers from 0 of which each is looked at by itself
REMEMBERED = 1 << 22  # slices along an axis of which it is kept whether they have had elements far off
FAR_PART = 0.05  # of a result that errs so often it is told that it cannot be judged
CROWDED, FEW = 2, 16  # times as many, and so many more, may be far off in one slice as in any of the problem itself
GROUPED = 1 << 22  # elements of which each is counted in the group of its magnitude
FEWEST = 32  # elements, of those that are not zero, of a group whose errors are held against those of the problem itself
DWARFED = 1e4  # times as large as a quarter of all elements are: what is larger says nothing about the scale of the others


def is_floating(tensor):
    return tensor.dtype.is_floating_point


def name_of(type):
    return next(name for name, known in TYPES.items() if known == type)


def signed(number):
    return number - (1 << 64) if number >> 63 else number


SECRET = signed(int.from_bytes(os.urandom(8), "big"))
PLACES, MIXED = signed(0x9E3779B97F4A7C15), signed(0xBF58476D1CE4E5B9)


def sums_of(tensors):
    """A sum over the bits of each and their places, which nobody can keep who changes some of them."""
    found = []
    for tensor in tensors:
        whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        if tensor.numel():
            whole.set_(tensor.untyped_storage())
        words = whole[:whole.numel() // 8 * 8].view(torch.int64)
        total = torch.zeros((), dtype=torch.int64, device=tensor.device)
        for begin, (part,) in chunks(words):
            mixed = torch.arange(begin, begin + part.numel(), device=tensor.device).mul_(PLACES).add_(SECRET).bitwise_xor_(part)
            mixed.bitwise_xor_(mixed >> 30).mul_(MIXED)
            total += mixed.bitwise_xor_(mixed >> 27).sum()
        found.append((total.item(), bytes(whole[words.numel() * 8:].tolist())))
    return found


def chunks(*tensors):
    """The same elements of each, some at a time, and the place of the first; all on the device if one of them is."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    place = next((tensor.device for tensor in flat if tensor.device.type != "cpu"), torch.device("cpu"))
    for begin in range(0, flat[0].numel(), CHUNK):
        yield begin, [tensor[begin:begin + CHUNK].to(place) for tensor in flat]


def scale_of(truth, below=float("inf")):
    """Mean magnitude of the finite elements that are not zero, as of a rectifier's result nearly all may be; and not larger
    than `below`."""
    number = max(1, sum(int(counted(part, below).sum().item()) for _, (part,) in chunks(truth)))
    return sum((torch.where(counted(part, below), part, 0.0).double().abs_() / number).sum().item()
               for _, (part,) in chunks(truth))


def dwarfing(truth):
    """The magnitude from which elements dwarf at least a quarter of those that are not zero."""
    magnitudes = some_of(counted, truth)[0].double().abs().sort().values
    return DWARFED * magnitudes[magnitudes.numel() // 4].item() if magnitudes.numel() else float("inf")


def counted(part, below=float("inf")):
    some = torch.isfinite(part) & (part != 0)
    return some if below == float("inf") else some & (part.float().abs() <= below)


def errors_of(given, truth, scale):
    """Errors relative to scale or value, whichever is larger. Infinities and NaN are infinite errors where they differ."""
    given, truth = given.double(), truth.double()
    error = (given - truth).abs() / truth.abs().clamp(min=scale if scale > 0 else 1e-300)
    same = (given == truth) | (given.isnan() & truth.isnan())
    return torch.where(same, torch.zeros_like(error), torch.nan_to_num(error, nan=float("inf"), posinf=float("inf")))


def largest_error(given, truth, scale):
    """The largest error, and where it is."""
    worst, place = 0.0, 0
    for begin, (one, right) in chunks(given, truth):
        if one.numel():
            found, index = errors_of(one, right, scale).max(dim=0)
            if found.item() > worst:
                worst, place = found.item(), begin + int(index.item())
    return worst, place


def usual_error(given, truth, scale):
    """An error that few elements pass, of those that are not zero in both, which may be some in a million."""
    errors = errors_of(*some_of(either, given, truth), scale)
    rank = max(1, min(errors.numel(), int(USUAL * errors.numel()) + 1))
    # The few largest are found by many blocks of a device; one with a rank, by one.
    return errors.topk(errors.numel() - rank + 1).values[-1].item() if errors.numel() else 0.0


def some_of(kept, *tensors):
    """The elements of each that `kept` says yes to; of many, some that lie evenly."""
    number = sum(int(kept(*parts).sum().item()) for _, parts in chunks(*tensors))
    step = max(1, number // SAMPLED)
    rare = number < RARE * tensors[0].numel()
    found = [[torch.zeros(0, device=part.device, dtype=part.dtype) for part in tensors]]
    for begin, parts in chunks(*tensors):
        if not rare:
            parts = [part[begin % step::step] for part in parts]
        some = kept(*parts)
        found.append([part[some][::step] if rare else part[some] for part in parts])
    return [torch.cat([part.to(parts[-1].device) for part in parts]) for parts in zip(*found)]


def either(one, other):
    return (one != 0) | (other != 0)


def count_far(given, truth, scale, allowed):
    """Elements that are further off than is allowed."""
    return sum(int((errors_of(one, right, scale) > allowed).sum().item()) for _, (one, right) in chunks(given, truth))


def slabs(first, *others):
    """Some slices along the first axis of each at a time, where the first tensor lies, and the number of the first one."""
    tensors = [tensor.reshape(tensor.shape or (1,)) for tensor in (first, *others)]
    step = max(1, CHUNK * tensors[0].shape[0] // max(1, first.numel()))
    for begin in range(0, tensors[0].shape[0], step):
        yield begin, [tensor[begin:begin + step].to(first.device) for tensor in tensors]


def add_by_axis(sums, part, begin):
    """Adds up a slab in the slices along each axis: `sums` has a row for each."""
    for axis in range(part.dim()):
        others = [other for other in range(part.dim()) if other != axis]
        folded = part.sum(dim=others) if others else part
        if axis == 0:
            sums[axis][begin:begin + folded.numel()] += folded
        else:
            sums[axis] += folded


class Groups:
    """Roots of errors and of values in groups: the slices along each axis, and the elements of one magnitude. Where most of
    a result is large, what is small counts, too; and a few large errors, as of quotients, count little. Beside the errors
    of what is given those of the problem's own arithmetic, in the same elements."""

    MAGNITUDES = 64
    APART = 1024  # sums of one magnitude, that a device adds to at once

    def __init__(self, given, own, truth, near=None):
        """`near`: scale and error, where elements that are further off in either are left out, as they are looked at
        elsewhere; their numbers are sums, too."""
        self.near = near
        self.device = given.device
        sizes = (*(truth.shape or (1,)), self.MAGNITUDES)
        self.sums = [[self.zeros(size) for size in sizes] for _ in range(6 if near else 4)]
        self.kept = min(1.0, GROUPED / max(1, truth.numel()))
        for begin, parts in slabs(given, own, truth):
            self.take(*[part.double() for part in parts], begin)

    def zeros(self, size):
        return torch.zeros(size, dtype=torch.float64, device=self.device)

    def take(self, given, own, truth, begin):
        finite = torch.isfinite(truth) & torch.isfinite(given) & torch.isfinite(own)
        far = []
        if self.near:
            scale, most = self.near
            far = [errors_of(one, truth, scale) > most for one in (given, own)]
            finite &= ~either(*far)
        value = torch.where(finite, truth, 0.0)
        parts = [torch.where(finite, one - truth, 0.0).abs_().sqrt_() for one in (given, own)]
        parts += [value.abs().sqrt_(), (finite & either(either(truth, given), own)).double()]
        parts += [one.double() for one in far]
        for sums, part in zip(self.sums, parts):
            add_by_axis(sums, part, begin)
        self.add_magnitudes([part.reshape(-1) for part in (value, *parts)])

    def add_magnitudes(self, parts):
        """Of many elements some, by chance."""
        if self.kept < 1:
            some = torch.randint(parts[0].numel(), [int(self.kept * parts[0].numel()) + 1], device=self.device)
            parts = [part[some] for part in parts]
        value, *parts = parts
        magnitude = (value.abs_().clamp_(min=1e-300).log2_() / 2).round_().long().clamp_(-31, 32).add_(31)
        magnitude += torch.arange(magnitude.numel(), device=self.device) % self.APART * self.MAGNITUDES
        for sums, part in zip(self.sums, parts):
            apart = self.zeros(self.APART * self.MAGNITUDES).index_add_(0, magnitude, part)
            sums[-1] += apart.view(self.APART, self.MAGNITUDES).sum(dim=0)

    def worst(self, allowed, factor):
        """The largest error of a group, in units of what is allowed: a multiple of the problem's own in that group, and so
        many roundings of the group's values at least; and which group it is, by axis and number."""
        worst, group = 0.0, None
        for axis, (mine, theirs, values, numbers, *far) in enumerate(zip(*self.sums)):
            bound = (factor * theirs.square()).maximum(allowed * values.square())
            told = (numbers >= FEWEST) & (bound > 0)
            if far:  # what has flipped elsewhere than the problem's own moves what is near, too
                told &= far[0] <= CROWDED * far[1] + FEW
            times = torch.where(told, mine.square() / bound.clamp(min=1e-300), 0.0)
            if times.numel() and times.max().item() > worst:
                worst, group = times.max().item(), (axis, int(times.argmax().item()))
        return worst, group

    def words(self, group):
        """What a group is, and how far it errs in the mean."""
        axis, number = group
        is_magnitude = axis == len(self.sums[0]) - 1
        which = f"of about {4.0 ** (number - 31):.0e}" if is_magnitude else f"with index {number} of axis {axis}"
        mine, theirs, _, numbers = (sums[axis][number].item() for sums in self.sums[:4])
        return (f"elements {which} err by {(mine / numbers) ** 2:.1e} as a rule, and as PyTorch computes them by "
                f"{(theirs / numbers) ** 2:.1e}")


def far_by_axis(given, truth, scale, allowed):
    """How many elements are further off than is allowed in the slices along each axis; of whole numbers also among those
    that are to be 0, 1, and so on, as of what is chosen among a few."""
    counts = [torch.zeros(size, dtype=torch.int64, device=given.device) for size in truth.shape or (1,)]
    values = torch.zeros(0 if is_floating(truth) else CHOICES, dtype=torch.int64, device=given.device)
    for begin, (one, right) in slabs(given, truth):
        far = errors_of(one, right, scale) > allowed
        add_by_axis(counts, far, begin)
        if values.numel():
            chosen = right[far].long()
            values += torch.bincount(chosen[(chosen >= 0) & (chosen < CHOICES)], minlength=CHOICES)
    return counts + [values] * bool(values.numel())


def hit_by_axis(counts):
    """Which slices along each axis have some; nothing of an axis that has too many slices to remember."""
    return [(count > 0).cpu() if count.numel() <= REMEMBERED else torch.zeros(0, dtype=torch.bool) for count in counts]


def most_by_axis(counts):
    """Of the slices along each axis the one with most: how many, and its number."""
    return [(int(count.max().item()), int(count.argmax().item())) if count.numel() else (0, 0) for count in counts]


class Measure:
    """What errors are allowed: a multiple of what the problem's own arithmetic usually errs by, and never less than some
    roundings of the type."""

    FACTOR = 8

    def __init__(self, outputs):
        self.honest = [0.0] * outputs
        self.most = [0.0] * outputs
        self.plain = 0.0  # the largest error as PyTorch computes it
        self.below = [None] * outputs  # what is larger does not count for the scale
        self.far = [0] * outputs  # elements of a case that are further off than is allowed
        self.far_slices = [[] for _ in range(outputs)]  # of those the most in one slice along each axis
        self.far_anywhere = [[] for _ in range(outputs)]  # which slices along each axis ever had one

    def learn(self, case):
        for i, truth in enumerate(case.truth):
            for own in case.honest(i):
                if is_floating(own) and truth is not own:
                    if self.below[i] is None:
                        self.below[i] = self.find_below(i, own, truth)
                    worst = self.learn_from(i, own, truth, self.scale(i, case))
                    self.plain = max(self.plain, worst) if own is case.own[i] else self.plain
                elif not is_floating(own):
                    self.learn_choices(i, own, truth)

    def learn_choices(self, i, own, truth):
        """Whole numbers: which of two that are nearly equal is the larger one, say."""
        far = count_far(own, truth, 1.0, 0.0)
        self.far[i] = max(self.far[i], far)
        if far:
            self.note_slices(i, own, truth, 1.0, 0.0)

    def find_below(self, i, own, truth):
        """Numbers of a mask say nothing about the scale of the others, unless these are what is left of such numbers."""
        below = dwarfing(truth)
        usual = usual_error(own, truth, scale_of(truth, below))
        return below if self.FACTOR * usual <= LOW_PRECISION else float("inf")

    def scale(self, i, case):
        """What errors of a case are held against where elements are small."""
        return case.scale(i, self.scale_of)

    def scale_of(self, i, truth):
        return scale_of(truth, float("inf") if self.below[i] is None else self.below[i])

    def look_at(self, case, results):
        """At what PyTorch computes in another process."""
        for i, (result, truth) in enumerate(zip(results, case.truth)):
            if is_floating(truth):
                self.plain = max(self.plain, largest_error(result, truth, self.scale(i, case))[0])

    def learn_from(self, i, own, truth, scale):
        """The largest error."""
        self.honest[i] = max(self.honest[i], usual_error(own, truth, scale))
        worst = largest_error(own, truth, scale)[0]
        self.most[i] = max(self.most[i], worst)
        allowed = self.allowed(i, own.dtype)
        far = count_far(own, truth, scale, allowed)
        self.far[i] = max(self.far[i], far)
        if far and worst > LOW_PRECISION:
            self.note_slices(i, own, truth, scale, allowed)
        return worst

    def note_slices(self, i, own, truth, scale, allowed):
        counts = far_by_axis(own, truth, scale, allowed)
        most = [count for count, _ in most_by_axis(counts)]
        self.far_slices[i] = [max(pair) for pair in zip(most, self.far_slices[i] or most)]
        hits = hit_by_axis(counts)
        self.far_anywhere[i] = [either(*pair) for pair in zip(hits, self.far_anywhere[i] or hits)]

    @staticmethod
    def most_flips(elements):
        """More than these are no flips by roundings of a problem that itself has none; one that feeds its results back has
        many behind a single one."""
        return max(8, elements // 50)

    def is_far(self, truths):
        """Whether some result of the problem errs so often, and by so much, that one can hardly be wrong."""
        return any(most > LOW_PRECISION and far > FAR_PART * truth.numel()
                   for most, far, truth in zip(self.most, self.far, truths))

    def crowded(self, i, slices):
        """The slice with more elements far off than the problem's own arithmetic has in any: axis, number, how many, and how
        many that has at most."""
        own = self.far_slices[i] or [0] * len(slices)
        for axis, ((count, number), most) in enumerate(zip(slices, own)):
            if len(slices) > 1 and count > CROWDED * most + FEW:
                return axis, number, count, most
        return None

    def factor(self, i, type):
        """Where operands are shortened, other orders of sums add nothing to speak of; nor where results are."""
        name = name_of(type)
        coarse = self.honest[i] > COARSE_EPSILONS * EPSILONS[name] or name not in ("f32", "f64")
        return 3 if coarse else self.FACTOR

    def least(self, type):
        return LEAST_EPSILONS[name_of(type)] * EPSILONS[name_of(type)]

    def allowed(self, i, type):
        """Relative."""
        return max(self.least(type), min(self.factor(i, type) * self.honest[i], LOW_PRECISION))
)python";

} // namespace mtmc::detail
