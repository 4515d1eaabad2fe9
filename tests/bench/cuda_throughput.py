"""Judges the candidates of bench_cuda_throughput by KernelBench's own steps, and compares the seconds.

    bench_cuda_throughput --output FOLDER && python3 tests/bench/cuda_throughput.py FOLDER

The steps: build the kernel as a PyTorch extension with load_inline, in a fresh folder; five runs on fresh inputs
(uniform in [0, 1), made on the GPU) compared with PyTorch's own result within 1e-4; for a kernel that is right,
three runs to warm up and 100 timed ones between CUDA events. Starting Python and PyTorch is left out, as the worker's start is.

Without --others only the product of 4096 x 4096 is built, which takes about a minute, as does each of the others. Asked
for: at least 100 times the seconds.
"""

import argparse
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cuda_kernels  # noqa: E402


def extension_source(kernel):
    """The kernel's text and a function `forward` that makes the output, launches, and gives it back."""
    inputs = [buffer for buffer in kernel["buffers"] if buffer["role"] == "input"]
    made = [buffer for buffer in kernel["buffers"] if buffer["role"] != "input"]
    output = next(buffer["name"] for buffer in made if buffer["role"] == "output")
    if any(buffer["dtype"] != "f32" for buffer in kernel["buffers"]):
        raise ValueError(f"{kernel['name']}: only f32 buffers can be passed to an extension")
    signature = "torch::Tensor forward(" + ", ".join(f"torch::Tensor {b['name']}_" for b in inputs) + ")"
    lines = [signature + " {"]
    for buffer in made:
        shape = ", ".join(str(extent) for extent in buffer["shape"])
        lines.append(f"  auto {buffer['name']}_ = torch::empty({{{shape}}}, {inputs[0]['name']}_.options());")
    lines.append("  auto stream = at::cuda::getCurrentCUDAStream();")
    for launch in kernel["launches"]:
        passed = ", ".join(f"{a['buffer']}_.data_ptr<float>()" if "buffer" in a else repr(a["value"])
                           for a in launch["arguments"])
        grid = ", ".join(str(extent) for extent in launch["grid"])
        block = ", ".join(str(extent) for extent in launch["block"])
        lines.append(f"  ::{launch['entry']}<<<dim3({grid}), dim3({block}), {launch['shared']}, stream>>>({passed});")
    lines += [f"  return {output}_;", "}"]
    headers = "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n"
    return signature + ";", headers + kernel["source"] + "\n" + "\n".join(lines) + "\n"


def judge(torch, kernel, number):
    """Verdict, seconds of building, comparing and timing, and the mean seconds of a call."""
    from torch.utils.cpp_extension import load_inline

    function = cuda_kernels.reference(torch, kernel["task"])
    declaration, source = extension_source(kernel)
    folder = tempfile.mkdtemp(prefix="mtmc-extension-")
    begin = time.perf_counter()
    try:
        module = load_inline(name=f"candidate_{number}_{time.time_ns()}", cpp_sources=declaration,
                             cuda_sources=source, functions=["forward"], build_directory=folder, verbose=False)
    except Exception:  # whatever ninja and nvcc say, it does not compile
        return "compile_error", {"build": time.perf_counter() - begin, "compare": 0.0, "time": 0.0}, 0.0
    finally:
        built = time.perf_counter()
        shutil.rmtree(folder, ignore_errors=True)
    inputs = [buffer["name"] for buffer in kernel["buffers"] if buffer["role"] == "input"]
    uniform = {"buffers": [buffer | {"domain": (0.0, 1.0)} for buffer in kernel["buffers"]]}
    right = True
    for trial in range(5):
        tensors = cuda_kernels.make_tensors(torch, uniform, seed=1000 * number + trial)
        wanted = function(tensors)
        found = module.forward(*[tensors[name] for name in inputs])
        torch.cuda.synchronize()
        right = right and wanted.shape == found.shape and torch.allclose(wanted, found, atol=1e-4, rtol=1e-4)
    compared = time.perf_counter()
    mean = 0.0
    if right:
        call = [tensors[name] for name in inputs]
        for _ in range(3):
            module.forward(*call)
            torch.cuda.synchronize()
        milliseconds = []
        for _ in range(100):
            start = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            start.record()
            module.forward(*call)
            end.record()
            torch.cuda.synchronize()
            milliseconds.append(start.elapsed_time(end))
        mean = 1e-3 * statistics.mean(milliseconds)
    timed = time.perf_counter()
    parts = {"build": built - begin, "compare": compared - built, "time": timed - compared}
    return ("correct" if right else "wrong_result"), parts, mean


def report(kernel, verdict, parts, mean):
    total = sum(parts.values())
    print(f"{kernel['name']:40} {kernel['seconds']:9.3f} s {kernel['verdict']:14} | {total:9.2f} s {verdict:14} "
          f"(build {parts['build']:.1f}, compare {parts['compare']:.2f}, time {parts['time']:.2f}; "
          f"{1e3 * mean:.3f} ms a call) | "
          f"{total / kernel['seconds']:7.0f} times", flush=True)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="what bench_cuda_throughput wrote")
    parser.add_argument("--others", type=int, default=0, help="so many of the ten right and of the ten wrong ones, too")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many of each before them, judged earlier")
    parser.add_argument("--repeats", type=int, default=1, help="builds of the large product")
    arguments = parser.parse_args()
    torch = cuda_kernels.import_torch()
    described = cuda_kernels.read_described(pathlib.Path(arguments.folder) / "candidates.json")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; worker started in "
          f"{described['worker_seconds']:.2f} s, once")
    large, *others = described["candidates"]
    for repeat in range(arguments.repeats):
        report(large, *judge(torch, large, repeat))
    totals = {True: [0.0, 0.0], False: [0.0, 0.0]}
    chosen = [kernel for right in (True, False)
              for kernel in [other for other in others if other["right"] == right][arguments.skip :][: arguments.others]]
    for number, kernel in enumerate(chosen, start=arguments.repeats):
        if cuda_kernels.reference(torch, kernel["task"]) is None:
            print(f"{kernel['name']:40} has no counterpart in PyTorch here")
            continue
        totals[kernel["right"]][0] += kernel["seconds"]
        totals[kernel["right"]][1] += report(kernel, *judge(torch, kernel, number))
    for right, (ours, theirs) in totals.items():
        if ours > 0:
            print(f"{'right' if right else 'wrong'} candidates together: {ours:.2f} s against {theirs:.1f} s, "
                  f"{theirs / ours:.0f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
