"""Runs both sides of the built-in examples in Triton that example_library_triton_slow_test.cpp described: on a GPU or,
where there is none, in Triton's interpreter (only the sizes that are not timed). Each side must agree with the
reference in double precision, leave nothing of its output unwritten, and write nothing beyond it.

Usage: triton_examples.py FOLDER, with FOLDER/examples.json. "SKIPPED: ..." says what is missing.
"""

import importlib.util
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "bench"))
import cuda_kernels  # noqa: E402

GUARD = 256  # elements behind every buffer that a kernel writes
SENTINEL = -1234.5


def reference(torch, task):
    """The output of an example's task from its inputs in double precision."""
    return {
        "tiling_triton": lambda t: torch.stack([(row[:, None] + t["B"]).amin(dim=0) for row in t["A"]]),
        "fusion_triton": lambda t: 10 * torch.log10(t["re"] ** 2 + t["im"] ** 2 + 0.001),
        "pipeline_triton": lambda t: torch.exp(-((t["x"][:, None] - t["site"]) ** 2)) @ t["weight"],
        "reordering_triton": lambda t: t["gain"][:, None] * (t["x"] - t["offset"][:, None]),
    }[task]


def load(path, text):
    """The module of a text. Triton reads a kernel's source again, so it must be a file."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Side:
    """A described kernel with its buffers; calling it queues all of its launches."""

    def __init__(self, torch, described, module, inputs, device):
        self.module = module
        self.launches = described["launches"]
        self.made = [buffer for buffer in described["buffers"] if buffer["role"] in ("output", "scratch")]
        self.tensors = dict(inputs)
        for buffer in self.made:
            count = math.prod(buffer["shape"])
            tensor = torch.full((count + GUARD,), float("nan"), device=device)
            tensor[count:] = SENTINEL
            self.tensors[buffer["name"]] = tensor

    def __call__(self):
        for launch in self.launches:
            arguments = [self.tensors[a["buffer"]] if "buffer" in a else a["value"] for a in launch["arguments"]]
            kernel = getattr(self.module, launch["entry"])
            kernel[tuple(launch["grid"])](*arguments, num_warps=launch["block"][0] // 32)

    def complaint(self, wanted):
        """What is wrong after a call, or None."""
        for buffer in self.made:
            tensor, count = self.tensors[buffer["name"]], math.prod(buffer["shape"])
            if not bool((tensor[count:] == SENTINEL).all()):
                return f"writes behind {buffer['name']}"
            if bool(tensor[:count].isnan().any()):
                return f"leaves elements of {buffer['name']} unwritten"
            if buffer["role"] == "output":
                found = tensor[:count].reshape(buffer["shape"]).double()
                distance = float((found - wanted).abs().max()) / max(1.0, float(wanted.abs().max()))
                if distance > 1e-5:
                    return f"is off by {distance:.1e} of the largest element"
        return None


def main():
    folder = pathlib.Path(sys.argv[1])
    try:
        import torch
    except ImportError:
        cuda_kernels.skip("there is no PyTorch to run examples in Triton with")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    try:
        import triton
        import triton.testing
    except ImportError:
        cuda_kernels.skip("there is no Triton to run its examples with")
    print(f"Triton {triton.__version__}, PyTorch {torch.__version__}, "
          + (torch.cuda.get_device_name() if device == "cuda" else "interpreted"))
    failed = False
    for number, example in enumerate(cuda_kernels.read_described(folder / "examples.json")):
        if example["timed"] and device == "cpu":
            continue
        inputs = {buffer["name"]: cuda_kernels.make_tensor(torch, buffer,
                                                           torch.Generator(device=device).manual_seed(97 * number + k))
                  for k, buffer in enumerate(example["before"]["buffers"]) if buffer["role"] == "input"}
        wanted = reference(torch, example["before"]["task"])({name: x.double() for name, x in inputs.items()})
        for when in ("before", "after"):
            described = example[when]
            module = load(folder / f"example_{number}_{when}.py", described["source"])
            side = Side(torch, described, module, inputs, device)
            side()
            complaint = side.complaint(wanted)
            failed = failed or complaint is not None
            said = complaint or "right"
            if example["timed"] and complaint is None:
                said += f", {1e3 * triton.testing.do_bench(side, return_mode='median'):.1f} us"
            print(f"{described['task']} {when}, {described['size']}: {said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
