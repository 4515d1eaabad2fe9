"""Runs both sides of the built-in examples in Triton that example_library_triton_slow_test.cpp described: on a GPU or,
where there is none, in Triton's interpreter. Both are made from the same seed and called on the same inputs, and must
give the same but for rounding.

Usage: triton_examples.py FOLDER, with FOLDER/examples.json. "SKIPPED: ..." says what is missing.
"""

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


def result(torch, module, constructor, shapes, device):
    torch.manual_seed(7)
    model = module.ModelNew(*constructor).to(device)
    torch.manual_seed(11)
    inputs = [torch.randn(shape, device=device) for shape in shapes]
    with torch.no_grad():
        return model(*inputs)


def main():
    folder = pathlib.Path(sys.argv[1])
    try:
        import torch
    except ImportError:
        print("SKIPPED: there is no PyTorch to run examples in Triton with")
        return 0
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
        torch.cuda.get_device_properties = lambda device=None: types.SimpleNamespace(multi_processor_count=3)
    try:
        import triton
    except ImportError:
        print("SKIPPED: there is no Triton to run its examples with")
        return 0
    print(f"Triton {triton.__version__}, PyTorch {torch.__version__}, "
          + (torch.cuda.get_device_name() if device == "cuda" else "interpreted"))
    failed = False
    for number, example in enumerate(json.loads((folder / "examples.json").read_text())):
        sides = [load(folder / f"example_{number}_{when}.py", example[when]) for when in ("before", "after")]
        for shapes in example["calls"]:
            before, after = (result(torch, side, example["constructor"], shapes, device) for side in sides)
            largest = max(1.0, before.abs().max().item())
            distance = (before - after).abs().max().item() / largest
            right = before.shape == after.shape and bool(after.isfinite().all()) and distance < 1e-5
            failed = failed or not right
            print(f"{example['name']} {shapes}: {'right' if right else f'off by {distance:.1e} of the largest element'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
