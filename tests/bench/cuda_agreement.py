"""Compares the judge's median times with those of PyTorch's CUDA events around the very same binaries.

    bench_cuda_agreement --output FOLDER && python3 tests/bench/cuda_agreement.py FOLDER

Asked for: within 2 % for kernels above 20 us, within 5 % below. The judge times short calls in groups, each on buffers of
its own with red zones around them, and leaves the L2 cache with nothing of them and nothing to be written back. The
bounds are applied to PyTorch's events around as many such calls, on buffers that lie so, after such a flush. Beside them
stand its times of a single call, which contain the start and the end of being alone (1 to 2 us), after the same flush and
after one by writing, with a cache full of what must be written back. Exit code 1 if a kernel misses its bound.
"""

import argparse
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cuda_kernels  # noqa: E402


def group_size(kernel, seconds, memory):
    """Calls that the judge times together: as long as KernelEvaluatorOptions::shortest_timing, with at most
    `max_group_size` of them and `group_bytes` of buffers, which on a device of `memory` bytes is a 64th of it."""
    return max(1, min(32, math.ceil(200e-6 / seconds), int(memory / 64 / max(kernel["bytes"], 1))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="what bench_cuda_agreement wrote")
    parser.add_argument("--only", default="", help="kernels whose name begins so")
    parser.add_argument("--samples", type=int, default=200, help="timed calls of each kernel and flush")
    arguments = parser.parse_args()
    torch = cuda_kernels.import_torch()
    described = cuda_kernels.read_described(pathlib.Path(arguments.folder) / "kernels.json")
    driver = cuda_kernels.Driver()
    clean = cuda_kernels.Flush(torch, clean=True)
    written = cuda_kernels.Flush(torch, clean=False)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {arguments.samples} samples")
    print(f"{'kernel':26} {'judge':>11} {'PyTorch':>11} {'calls':>6} {'ratio':>8} {'bound':>6} {'':6} "
          f"{'a single call':>14} {'ratio':>8} {'after writes':>14} {'ratio':>8}")
    memory = torch.cuda.get_device_properties(0).total_memory
    missed = 0
    for kernel in described["kernels"]:
        if not kernel["name"].startswith(arguments.only):
            continue
        call = cuda_kernels.BinaryKernel(torch, driver, kernel, arguments.folder)
        ours = kernel["seconds"]
        alone = cuda_kernels.median_seconds(torch, call, clean, arguments.samples)
        after_writes = cuda_kernels.median_seconds(torch, call, written, arguments.samples)
        size = group_size(kernel, ours, memory)
        calls = [call] + [cuda_kernels.BinaryKernel(torch, driver, kernel, arguments.folder, seed)
                          for seed in range(2, size + 1)]
        theirs = cuda_kernels.median_seconds(torch, lambda: [one() for one in calls], clean, arguments.samples) / size
        del calls
        bound = 0.02 if theirs > 20e-6 else 0.05
        kept = abs(ours / theirs - 1) <= bound
        missed += not kept
        print(f"{kernel['name']:26} {1e6 * ours:8.2f} us {1e6 * theirs:8.2f} us {size:6} {ours / theirs:8.3f} "
              f"{100 * bound:4.0f} % {'kept' if kept else 'MISSED':6} {1e6 * alone:11.2f} us {ours / alone:8.3f} "
              f"{1e6 * after_writes:11.2f} us {ours / after_writes:8.3f}", flush=True)
        del call
        torch.cuda.empty_cache()
    print(f"{missed} missed their bound")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
