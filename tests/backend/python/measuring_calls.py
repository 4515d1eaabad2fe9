"""Measures errors of results that are made up, as the judge does.

usage: measuring_calls.py HEADERS FOLDER"""
import pathlib
import sys

import program_texts

headers, folder = (pathlib.Path(path) for path in sys.argv[1:])
program_texts.write(headers, folder, "replaying", "measuring")
import torch

import measuring

torch.manual_seed(7)
# A rectifier of which some in a million pass: sums that err by 1e-4, whoever adds them up.
sums = torch.randn(1 << 24, dtype=torch.float64) - 4.5
truth = torch.relu(sums)
own, other, wrong = (torch.relu(sums + error * torch.randn_like(sums)).float() for error in (1e-4, 1e-4, 1e-2))
scale = measuring.scale_of(truth)
measure = measuring.Measure(1)
measure.learn_from(0, own, truth, scale)
allowed = measure.allowed(0, torch.float32)
print("scale of what passes" if 0.1 < scale < 1 else f"scale {scale}")
for name, result in (("honest", other), ("wrong", wrong), ("nothing", torch.zeros_like(own))):
    far = int((measuring.errors_of(result, truth, scale) > allowed).sum())
    print(name, "passes" if far <= measuring.FLIPPED * measure.far[0] else "is refused")
print("all zeros:", measuring.scale_of(torch.zeros(4)), measuring.usual_error(torch.zeros(4), torch.zeros(4), 0.0))

# Numbers of a mask do not set the scale of the others, unless these are what is left of such numbers.
ordinary = torch.randn(1 << 20, dtype=torch.float64)
truth = torch.where(torch.rand(ordinary.shape) < 0.5, -1e9, ordinary)
measure = measuring.Measure(1)
for name, own in (("beside a mask", truth.float()), ("what is left", truth + 100 * torch.randn_like(truth))):
    measure.below[0] = measure.find_below(0, own, truth)
    print(name, "the scale is", "ordinary" if measure.scale_of(0, truth) < 1 else "the mask's")

# One channel of eight errs by more than the problem itself.
truth = torch.rand(64, 8, 64, dtype=torch.float64) + 1
own, given = truth + 1e-7, truth + 1e-7
given[:, 5] += 1e-4
times, group = (groups := measuring.Groups(given, own, truth)).worst(1e-6, 8)
print("group:", group, "times", times > 1, groups.words(group))

# Steps flip here and there, and what leaves out a row has all in one place.
truth = torch.rand(512, 1024, dtype=torch.float64) + 1
own, given = truth.float(), truth.float()
for result in (own, given):
    result[torch.rand(truth.shape) < 1e-3] = 0
scale = measuring.scale_of(truth)
measure = measuring.Measure(1)
measure.learn_from(0, own, truth, scale)
for name, row in (("flips", None), ("a row", 7)):
    if row is not None:
        given[row] = 0
    found = measure.crowded(0, measuring.most_by_axis(measuring.far_by_axis(given, truth, scale, measure.allowed(0, torch.float32))))
    print(name, "in one place:", found and found[:3])
scaled = torch.where(given > 0, given * 1.0001, given)
print("what is near errs by", "more" if measuring.Groups(scaled, own, truth, (scale, 0.03)).worst(1e-5, 8)[0] > 1 else "no more")
