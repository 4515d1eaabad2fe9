#!/usr/bin/env python3
"""Whether the modules of tests/bench/steps_python and tests/bench/python_pairs compute what their problems do: on the
processor, in Triton's interpreter, at small sizes.

    build/python/bin/python tests/bench/python_steps.py [--recorder build/dev/examples/mtmc-record] [--only NAME]
        [KernelBench/level1/93_*.py KernelBench/level2/3_*.py KernelBench/level3/43_*.py]

Sequences of steps need their problems, which are not ours; without them only pairs are looked at. Sizes are names of a
problem's text and are made small as SMALL says. Both modules are made from one seed and called on three inputs of mean
zero: narrow ones, wide ones, and whole numbers, of which many are equal. With `--recorder` each module is also recorded at its real sizes, its weights and results paired
with the problem's, and its kernels lowered. It tells nothing of times, of other sizes, or of races. Autotuned kernels
take their first configuration.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import torch
from python_answers import load, pretend

HERE = pathlib.Path(__file__).parent
SMALL = {
    "level1_93": {"batch_size": 6, "input_shape": (5000,)},
    "level2_3": {"batch_size": 2, "in_channels": 3, "depth": 2, "height": 3},
    "level3_43": {"batch_size": 2, "seq_len": 90},
    "attention": {"batch": 1, "heads": 2, "queries": 70, "keys": 90},
    "batched_product_f16": {"batch": 2, "rows": 70, "columns": 140, "shared": 80},
    "cross_entropy": {"rows": 5, "classes": 9000},
    "depthwise_filter": {"signals": 2, "channels": 3, "length": 1500},
    "embedding": {"texts": 2, "length": 11, "words": 30, "features": 300},
    "group_norm_silu": {"images": 2, "channels": 6, "height": 50, "width": 60, "groups": 2},
    "histogram": {"rows": 3, "columns": 700},
    "layer_norm": {"rows": 5, "features": 300},
    "linear_gelu": {"rows": 9, "inner": 50, "outer": 300},
    "log_sum_exp": {"rows": 3, "columns": 5000},
    "middle_spread": {"batch": 2, "middle": 75, "inner": 90},
    "product": {"rows": 130, "shared": 70, "columns": 100},
    "product_descriptors": {"rows": 130, "inner": 72, "columns": 104},
    "residual_norm": {"rows": 9, "features": 70},
    "rms_norm_bf16": {"rows": 5, "features": 700},
    "rotary_projection": {"batch": 2, "length": 9, "heads": 3, "size": 16},
    "row_largest": {"rows": 9, "columns": 300},
    "row_softmax": {"rows": 5, "columns": 700},
    "running_sums": {"rows": 3, "columns": 5000},
    "top_values": {"rows": 3, "columns": 5000, "kept": 7},
    "gated_descriptors": {"rows": 70, "columns": 148},
    "transposed": {"rows": 70, "columns": 100},
    "vector_chain": {"elements": 5000},
}
LARGEST_ERROR = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 1e-2}


def flat(value):
    return [value] if torch.is_tensor(value) else [leaf for part in value for leaf in flat(part)]


def called(made, reference, inputs):
    torch.manual_seed(5)
    model = made(*reference.get_init_inputs())
    torch.manual_seed(9)
    with torch.no_grad():
        return flat(model(*[value.clone() if torch.is_tensor(value) else value for value in inputs]))


def error_of(expected, found):
    """The largest distance, as a share of the largest element."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        raise ValueError(f"{found.dtype} {tuple(found.shape)} instead of {expected.dtype} {tuple(expected.shape)}")
    if not expected.is_floating_point():
        return float((expected != found).any())
    expected, found = expected.double(), found.double()
    same = (expected == found) | (expected.isnan() & found.isnan())
    distance = torch.where(same, 0.0, (expected - found).abs())
    finite = expected[expected.isfinite()]
    return distance.max().item() / max(finite.abs().max().item() if finite.numel() else 0.0, 1e-30)


def compare(name, problem, candidate, folder):
    reference = load(problem.read_text(), folder / "reference.py")
    for size, value in SMALL[name].items():
        if not hasattr(reference, size):
            raise ValueError(f"the problem has no {size}")
        setattr(reference, size, value)
    made = load(candidate.read_text(), folder / "candidate.py").ModelNew
    worst, right = 0.0, True
    for change in (lambda x: 2 * x - 1, lambda x: 8 * (2 * x - 1), lambda x: (8 * (2 * x - 1)).round()):
        torch.manual_seed(3)
        inputs = [change(value) if torch.is_tensor(value) and value.is_floating_point() else value
                  for value in reference.get_inputs()]
        expected, found = called(reference.Model, reference, inputs), called(made, reference, inputs)
        if len(expected) != len(found):
            raise ValueError(f"{len(found)} results instead of {len(expected)}")
        for one, other in zip(expected, found):
            error = error_of(one, other)
            worst = max(worst, error)
            right = right and error <= LARGEST_ERROR.get(one.dtype, 0.0)
    return ("right" if right else "other") + f", {worst:.1e} of the largest element"


def recorded(recorder, problem, candidate):
    """What the recorder says of a module, in a few words."""
    surroundings = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    said = subprocess.run([recorder, problem, candidate, "--python", sys.executable], capture_output=True, text=True,
                          env=surroundings)
    text = said.stdout + said.stderr
    if said.returncode:
        return text.strip().splitlines()[-1][-160:]
    paired = "weights and results are the problem's" in text
    lowered, launched = len(re.findall(r"lowered in", text)), len(set(re.findall(r"launches (\w+)", text)))
    kept = sorted(set(re.findall(r"aten\.\w+", text[text.index(": candidate"):])))
    return (f"recorded, {'paired' if paired else 'NOT paired'}, {lowered} of {launched} kernels lowered"
            + (", keeps " + " ".join(kept) if kept else ""))


def in_child(work):
    """Runs it in a process of its own; whether it said that all is right."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        try:
            with tempfile.TemporaryDirectory() as folder:
                said = work(pathlib.Path(folder))
        except Exception as error:
            said = f"{type(error).__name__}: {error}".replace("\n", " ")[-200:]
        print(said, flush=True)
        os._exit(0 if said.startswith("right") else 1)
    return os.waitpid(child, 0)[1] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recorder", help="mtmc-record")
    parser.add_argument("--only", default="", help="names that have this in them")
    parser.add_argument("problems", nargs="*", type=pathlib.Path, help="of the sequences")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pretend()
    work = []
    for problem in options.problems:
        folder = HERE / "steps_python" / f"{problem.parent.name}_{problem.name.partition('_')[0]}"
        work += [(folder.name, problem, candidate) for candidate in sorted(folder.glob("*.py"))]
    for folder in sorted((HERE / "python_pairs").glob("*/")):
        work.append((folder.name, folder / "problem.py", folder / "candidate.py"))
    wrong = 0
    for name, problem, candidate in work:
        if options.only not in name:
            continue
        print(f"{name}/{candidate.stem}: ", end="")
        if options.recorder:
            print(recorded(options.recorder, problem, candidate), end="; ")
        wrong += not in_child(lambda folder: compare(name, problem, candidate, folder))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
