"""Compares the judge's median times with those of PyTorch's CUDA events around the very same binaries.

    bench_cuda_agreement --output FOLDER && python3 tests/bench/cuda_agreement.py FOLDER

Asked for: within 2 % for kernels above 20 us, within 5 % below. The judge leaves the L2 cache with nothing of the
kernel's buffers and nothing to be written back; so does the flush that the bounds are applied to. Beside it stand the
times after a flush by writing alone, with a cache full of what must be written back, and, for calls that the judge times
in groups on buffers of their own, those of such groups, where a call lacks the start and the end of being alone. Exit
code 1 if a kernel misses its bound.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cuda_kernels  # noqa: E402


def group_size(kernel, seconds, memory):
    """Calls that the judge times together: as long as KernelEvaluatorOptions::shortest_timing, with at most
    `largest_group` of them and `group_bytes` of buffers, which on a device of `memory` bytes is a 64th of it."""
    return max(1, min(32, int(200e-6 / seconds), int(memory / 64 / max(kernel["bytes"], 1))))


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
    print(f"{'kernel':26} {'judge':>11} {'PyTorch':>11} {'ratio':>8} {'bound':>6} {'':6} {'after writes':>13} {'ratio':>8} "
          f"{'in groups':>13} {'ratio':>8}")
    memory = torch.cuda.get_device_properties(0).total_memory
    missed = 0
    for kernel in described["kernels"]:
        if not kernel["name"].startswith(arguments.only):
            continue
        call = cuda_kernels.BinaryKernel(torch, driver, kernel, arguments.folder)
        ours = kernel["seconds"]
        theirs = cuda_kernels.median_seconds(torch, call, clean, arguments.samples)
        after_writes = cuda_kernels.median_seconds(torch, call, written, arguments.samples)
        bound = 0.02 if theirs > 20e-6 else 0.05
        kept = abs(ours / theirs - 1) <= bound
        missed += not kept
        grouped = ""
        if (size := group_size(kernel, ours, memory)) > 1:
            calls = [call] + [cuda_kernels.BinaryKernel(torch, driver, kernel, arguments.folder, seed)
                              for seed in range(2, size + 1)]
            together = cuda_kernels.median_seconds(torch, lambda: [one() for one in calls], clean, arguments.samples)
            grouped = f"{1e6 * together / size:10.2f} us {ours * size / together:8.3f} ({size} calls)"
            del calls
        print(f"{kernel['name']:26} {1e6 * ours:8.2f} us {1e6 * theirs:8.2f} us {ours / theirs:8.3f} {100 * bound:4.0f} % "
              f"{'kept' if kept else 'MISSED':6} {1e6 * after_writes:10.2f} us {ours / after_writes:8.3f} {grouped}",
              flush=True)
        del call
        torch.cuda.empty_cache()
    print(f"{missed} missed their bound")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
