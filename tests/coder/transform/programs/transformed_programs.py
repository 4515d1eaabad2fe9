"""Runs texts with Triton kernels and what the offline coder made of them, as transformed_programs_python_slow_test.cpp
described: in Triton's interpreter, or on a GPU where there is one. Both are made from the same seed and called on the
same inputs, and must give the same but for the rounding of sums in another order.

Usage: transformed_programs.py FOLDER, with FOLDER/programs.json: a list of
{"name", "constructor", "calls": [[shape, ...], ...], "text", "variants": {"tiling|kernel@0": text, ...}}; without
"calls" texts are only parsed. "SKIPPED: ..." says what is missing.
"""

import ast
import importlib.util
import json
import os
import pathlib
import sys
import types


def load(path, text):
    """The module of a text. Triton reads a kernel's source again, so it must be a file."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(torch, module, constructor, shapes, device):
    torch.manual_seed(7)
    model = module.ModelNew(*constructor).to(device)
    torch.manual_seed(11)
    inputs = [torch.randn(shape, device=device) for shape in shapes]
    with torch.no_grad():
        result = model(*inputs)
    return [*result, *inputs] if isinstance(result, tuple) else [result, *inputs]


def distance(before, after):
    if before.shape != after.shape or before.dtype != after.dtype:
        return float("inf")
    before, after = before.double().nan_to_num(nan=1e30), after.double().nan_to_num(nan=1e30)
    return (before - after).abs().max().item() / max(1.0, before.abs().max().item())


def main():
    folder = pathlib.Path(sys.argv[1])
    try:
        import torch
    except ImportError:
        print("SKIPPED: there is no PyTorch to run texts with Triton kernels with")
        return 0
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
        torch.cuda.get_device_properties = lambda device=None: types.SimpleNamespace(multi_processor_count=3)
    try:
        import triton
    except ImportError:
        print("SKIPPED: there is no Triton to run texts with")
        return 0
    if device == "cpu":
        autotune = triton.autotune  # there is nothing to time configurations on
        triton.autotune = lambda configs, *rest, **named: autotune(configs[:1], *rest, **named)
    print(f"Triton {triton.__version__}, PyTorch {torch.__version__}, "
          + (torch.cuda.get_device_name() if device == "cuda" else "interpreted"))
    wrong = ran = parsed = 0
    for number, program in enumerate(json.loads((folder / "programs.json").read_text())):
        before = [results(torch, load(folder / f"program_{number}_{call}.py", program["text"]),
                          program["constructor"], shapes, device)
                  for call, shapes in enumerate(program.get("calls", []))]
        for place, (key, text) in enumerate(program["variants"].items()):
            said = f"{program['name']} {key}"
            try:
                ast.parse(text)
                parsed += 1
                for call, shapes in enumerate(program.get("calls", [])):
                    module = load(folder / f"program_{number}_{call}_{place}.py", text)
                    after = results(torch, module, program["constructor"], shapes, device)
                    off = max(map(distance, before[call], after)) if len(before[call]) == len(after) else float("inf")
                    ran += 1
                    if not off < 1e-5:
                        wrong += 1
                        print(f"{said} {shapes}: off by {off:.1e} of the largest element\n{text}")
            except Exception as error:
                wrong += 1
                print(f"{said}: {type(error).__name__}: {error}\n{text}")
    print(f"{parsed} texts parsed, {ran} calls compared, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
