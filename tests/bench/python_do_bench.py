"""What triton.testing.do_bench says of the candidates in tests/bench/python_pairs, to hold against the judge's times.

usage: python_do_bench.py FOLDER... (each with problem.py and candidate.py), on a machine with a GPU

do_bench clears the cache before each call and takes times with events, as the judge does; but the host's work is in them
where the device is faster than Python. Prints a line a folder: microseconds in the median, and those of a CUDA graph's
replays, where the host does nothing (and the cache is warm, which shows by how much that matters).
"""
import importlib.util
import pathlib
import sys

import torch
import triton.testing


def module_of(path):
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_device(value):
    if isinstance(value, (list, tuple)):
        return [on_device(part) for part in value]
    return value.cuda() if isinstance(value, torch.Tensor) else value


def times_of(folder):
    problem = module_of(folder / "problem.py")
    candidate = module_of(folder / "candidate.py")
    with torch.no_grad():
        torch.manual_seed(0)
        model = candidate.ModelNew(*problem.get_init_inputs()).cuda()
        inputs = on_device(problem.get_inputs())
        call = lambda: model(*inputs)
        call()
        flushed = triton.testing.do_bench(call, warmup=50, rep=200, return_mode="median")
        try:
            warm = triton.testing.do_bench_cudagraph(call, rep=50, return_mode="median")
        except Exception:
            warm = float("nan")  # what cannot be captured
    torch.cuda.synchronize()
    return 1e3 * flushed, 1e3 * warm


def main():
    for name in sys.argv[1:]:
        folder = pathlib.Path(name)
        try:
            flushed, warm = times_of(folder)
            print(f"{folder.name} {flushed:.2f} {warm:.2f}", flush=True)
        except Exception as error:
            print(f"{folder.name} {type(error).__name__}: {error}", flush=True)
        torch.cuda.empty_cache()


main()
