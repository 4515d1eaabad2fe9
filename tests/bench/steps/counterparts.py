"""Times of PyTorch eager and torch.compile for the twelve tasks of this folder, in f32 without TF32.

    python3 tests/bench/steps/counterparts.py --output counterparts.json
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import cuda_kernels  # noqa: E402

FOLDER = pathlib.Path(__file__).parent / "tasks"


def operations(torch):
    """What each task computes, from its inputs by name, as one writes it in PyTorch."""
    functional = torch.nn.functional

    def squared_distances(t):
        q, p = t["q"], t["p"]
        return (q * q).sum(1, keepdim=True) + (p * p).sum(1) - 2 * q @ p.t()

    def gated_projection(t):
        return functional.silu(t["x"] @ t["W"]) * (t["x"] @ t["V"])

    def add_standardize(t):
        return functional.layer_norm(t["x"] + t["r"], t["x"].shape[1:], eps=1e-5)

    def local_response(t):
        return functional.local_response_norm(t["x"], 5, alpha=1e-4, beta=0.75, k=2.0)

    def causal_softmax(t):
        mask = torch.ones(t["x"].shape[1:], dtype=torch.bool, device=t["x"].device).tril()
        return torch.softmax(t["x"].masked_fill(~mask, float("-inf")), dim=-1)

    def focal_loss(t):
        log_probability = functional.log_softmax(t["x"], dim=1).gather(1, t["label"].long()[:, None])[:, 0]
        return (-((1 - log_probability.exp()) ** 2) * log_probability).mean().reshape(1)

    def column_variance(t):
        return t["x"].var(dim=0, correction=0)

    def decayed_scan(t):
        state = torch.zeros_like(t["x"][:, 0])
        states = []
        for step in range(t["x"].shape[1]):
            state = t["a"][:, step] * state + t["x"][:, step]
            states.append(state)
        return torch.stack(states, dim=1)

    def heat_step(t):
        u, out = t["u"], t["u"].clone()
        inner = u[1:-1, 1:-1, 1:-1]
        around = (u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
                  + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:])
        out[1:-1, 1:-1, 1:-1] = inner + 0.1 * (around - 6 * inner)
        return out

    def power_pooling(t):
        return functional.lp_pool2d(t["x"], 2, 3, stride=2)

    def gated_residual(t):
        return functional.silu(t["x"] + t["b"]) * t["mask"] * 1.25 + t["r"]

    def image_input(t):
        linear = (t["image"] / 255) ** 2
        return ((linear - t["centre"]) / t["spread"]).transpose(1, 2).contiguous()

    functions = (squared_distances, gated_projection, add_standardize, local_response, causal_softmax, focal_loss,
                 column_variance, decayed_scan, heat_step, power_pooling, gated_residual, image_input)
    return {function.__name__: function for function in functions}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="file for the times")
    parser.add_argument("--samples", type=int, default=100, help="timed calls of each")
    parser.add_argument("--only", default="", help="tasks whose name begins so")
    arguments = parser.parse_args()
    torch = cuda_kernels.import_torch()
    flush = cuda_kernels.Flush(torch)
    cuda_kernels.say_conditions(torch)
    counterparts = []
    for name, function in operations(torch).items():
        if not name.startswith(arguments.only):
            continue
        size, buffers = cuda_kernels.main_buffers(json.loads((FOLDER / f"{name}.json").read_text()))
        tensors = cuda_kernels.make_tensors(torch, {"buffers": buffers}, 1)
        row = {"task": name, "size": size}
        # A loop of thousands of steps takes the compiler longer than anybody waits.
        ways = [("eager", function)] + ([] if name == "decayed_scan" else [("compiled", torch.compile(function))])
        for way, call in ways:
            row[way] = cuda_kernels.median_seconds(torch, lambda: call(tensors), flush, arguments.samples)
        counterparts.append(row)
        print(f"{name:20} {str(size):36} eager {1e6 * row['eager']:10.2f} us"
              + (f", torch.compile {1e6 * row['compiled']:10.2f} us" if "compiled" in row else ""), flush=True)
        del tensors
        torch.cuda.empty_cache()
    cuda_kernels.write_counterparts(torch, counterparts, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
