"""Times of PyTorch and cuBLAS for the tasks of the hand-made CUDA sequences, in f32 without TF32.

    python3 tests/bench/cuda_counterparts.py --output counterparts.json
    bench_cuda_sequences --counterparts counterparts.json
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cuda_kernels  # noqa: E402

TASKS = [
    ("gemm", {"M": 1024, "N": 1024, "K": 1024}, {"A": ["M", "K"], "B": ["K", "N"]}),
    ("gemm", {"M": 4096, "N": 4096, "K": 4096}, {"A": ["M", "K"], "B": ["K", "N"]}),
    ("softmax", {"M": 4096, "N": 1024}, {"x": ["M", "N"]}),
    ("gemm_bias_gelu", {"M": 512, "N": 1024, "K": 768}, {"x": ["M", "K"], "W": ["K", "N"], "b": ["N"]}),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="file for bench_cuda_sequences --counterparts")
    parser.add_argument("--samples", type=int, default=200, help="timed calls of each")
    parser.add_argument("--compiled", action="store_true", help="torch.compile as well")
    arguments = parser.parse_args()
    torch = cuda_kernels.import_torch()
    flush = cuda_kernels.Flush(torch)
    cuda_kernels.say_conditions(torch)
    counterparts = []
    for task, size, shapes in TASKS:
        buffers = [{"name": name, "role": "input", "dtype": "f32", "shape": [size[symbol] for symbol in shape]}
                   for name, shape in shapes.items()]
        tensors = cuda_kernels.make_tensors(torch, {"buffers": buffers}, 1)
        function = cuda_kernels.reference(torch, task)
        ways = [("PyTorch" + (" (cuBLAS)" if task.startswith("gemm") else ""), function)]
        if arguments.compiled:
            ways.append(("torch.compile", torch.compile(function)))
        for name, way in ways:
            seconds = cuda_kernels.median_seconds(torch, lambda: way(tensors), flush, arguments.samples)
            counterparts.append({"task": task, "size": size, "name": name, "seconds": seconds})
            print(f"{task:16} {str(size):42} {name:20} {1e6 * seconds:10.2f} us", flush=True)
    cuda_kernels.write_counterparts(torch, counterparts, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
