#!/usr/bin/env python3
"""Whether the answers in tests/bench/python_answers compute what their problems do: on the processor, in Triton's
interpreter, with small batches and images.

    build/python/bin/python tests/bench/python_answers.py KernelBench/level1/*3_*.py KernelBench/level2/*3_*.py ...

The numbers of a problem's text that say how large batch and images are become small; channels and widths stay, because
kernels are written for them. Both modules are made from one seed and called on one input of mean zero. It tells nothing
of times, of other sizes, or of races. Autotuned kernels take their first configuration.
"""
import os
import pathlib
import re
import signal
import sys
import tempfile
import types

os.environ["TRITON_INTERPRET"] = "1"
import importlib.util  # noqa: E402

import torch  # noqa: E402
import triton.runtime.autotuner  # noqa: E402

ANSWERS = pathlib.Path(__file__).parent / "python_answers"
SMALL = {"batch_size": 2, "height": 10, "width": 10, "depth": 10, "dim": 40, "dim1": 40, "dim2": 40, "dim3": 40,
         "N": 70, "M": 70, "K": 50, "m": 50, "n": 70, "k": 40, "features": 20, "in_features": 96, "out_features": 80,
         "input_size": 96, "hidden_size": 80, "output_size": 80}


def smaller(text):
    text = re.sub(r"^(\w+) = (\d+)\b", lambda m: f"{m[1]} = {min(int(m[2]), SMALL.get(m[1], int(m[2])))}", text,
                  flags=re.MULTILINE)
    return re.sub(r"^((?:depth, )?height, width) = .*$", lambda m: m[1] + " = " + ", ".join(["10"] * len(m[1].split(","))),
                  text, flags=re.MULTILINE)


def load(text, path):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def first_configuration(self, *arguments, **named):
    self.nargs = dict(zip(self.arg_names, arguments))
    first = self.configs[0]
    if first.pre_hook is not None:
        first.pre_hook({**self.nargs, **named, **first.all_kwargs()})
    return self.fn.run(*arguments, **named, **first.all_kwargs())


def pretend():
    """What modules ask of a device that is not there; autotuned kernels take their first configuration."""
    torch.cuda.get_device_properties = lambda device=None: types.SimpleNamespace(multi_processor_count=4, major=9, minor=0)
    triton.runtime.autotuner.Autotuner.run = first_configuration


def compare(name, problem, folder):
    answer = re.search(r"```python\n(.*?)```", (ANSWERS / f"{name}.md").read_text(), re.DOTALL)[1]
    reference = load(smaller(problem.read_text()), folder / "reference.py")
    candidate = load(answer, folder / "candidate.py")
    inputs = [2 * value - 1 if torch.is_tensor(value) and value.is_floating_point() else value
              for value in reference.get_inputs()]
    if sum(value.numel() for value in inputs if torch.is_tensor(value)) > 3_000_000:
        return "still too large"
    results = []
    for made in (reference.Model, candidate.ModelNew):
        torch.manual_seed(5)
        model = made(*reference.get_init_inputs())
        torch.manual_seed(9)
        with torch.no_grad():
            result = model(*[value.clone() if torch.is_tensor(value) else value for value in inputs])
        results.append(result if torch.is_tensor(result) else result[0])
    expected, found = results
    distance = (expected - found).abs().max().item() / max(expected.abs().max().item(), 1e-30)
    return f"{'right' if distance < 1e-4 else 'other'}, {distance:.1e} of the largest element, {tuple(found.shape)}"


def main():
    torch.set_num_threads(1)
    pretend()
    for problem in map(pathlib.Path, sys.argv[1:]):
        if not (ANSWERS / f"{problem.stem}.md").exists():
            continue
        child = os.fork()
        if child == 0:
            signal.alarm(200)
            try:
                with tempfile.TemporaryDirectory() as folder:
                    said = compare(problem.stem, problem, pathlib.Path(folder))
            except Exception as error:
                said = f"{type(error).__name__}: {error}".replace("\n", " ")[-160:]
            print(f"{problem.stem}: {said}", flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(f"{problem.stem}: ended with {status}", flush=True)


if __name__ == "__main__":
    main()
