"""Compares the judge's shares of launches with the durations that activity tracing gives the very same binaries.

    bench_cuda_shares --output FOLDER && python3 tests/bench/cuda_shares.py FOLDER

PyTorch's profiler traces the launches (CUPTI's activities, no counters and no permission needed). Each call follows a flush of
the L2 cache, as in the judge's groups. Exit code 1 where a share differs by more than 5 points.
"""

import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cuda_kernels  # noqa: E402


def traced_seconds(torch, call, flush, entries, samples):
    """Median duration of each launch of a call, in their order."""
    for _ in range(3):
        flush()
        call()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(samples):
            flush()
            call()
        torch.cuda.synchronize()
    durations = {entry: [] for entry in entries}
    for event in profiler.events():
        for entry in entries:
            if event.name == entry or event.name.startswith(entry + "("):
                durations[entry].append(1e-6 * event.time_range.elapsed_us())
    missing = [entry for entry in entries if len(durations[entry]) < samples]
    if missing:
        raise RuntimeError(f"the trace has too few launches of {', '.join(missing)}")
    return [statistics.median(durations[entry]) for entry in entries]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="what bench_cuda_shares wrote")
    parser.add_argument("--samples", type=int, default=50, help="traced calls of each kernel")
    arguments = parser.parse_args()
    torch = cuda_kernels.import_torch()
    described = cuda_kernels.read_described(pathlib.Path(arguments.folder) / "kernels.json")
    driver = cuda_kernels.Driver()
    flush = cuda_kernels.Flush(torch)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {arguments.samples} traced calls")
    farthest = 0.0
    for kernel in described["kernels"]:
        call = cuda_kernels.BinaryKernel(torch, driver, kernel, arguments.folder)
        entries = [share["entry"] for share in kernel["shares"]]
        traced = traced_seconds(torch, call, flush, entries, arguments.samples)
        print(kernel["name"])
        for share, seconds in zip(kernel["shares"], traced):
            of_all = seconds / sum(traced)
            farthest = max(farthest, abs(share["share"] - of_all))
            print(f"  {share['entry']:16} judge {1e6 * share['seconds']:9.2f} us {100 * share['share']:5.1f} %, "
                  f"traced {1e6 * seconds:9.2f} us {100 * of_all:5.1f} %")
    print(f"farthest apart: {100 * farthest:.1f} points")
    return 1 if farthest > 0.05 else 0


if __name__ == "__main__":
    sys.exit(main())
