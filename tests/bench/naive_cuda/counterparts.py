"""Times of PyTorch eager and torch.compile for the tasks of this folder and of examples/tasks/cuda, in f32 without TF32.

    python3 tests/bench/naive_cuda/counterparts.py --output counterparts.json [TASK.json | NAME]...
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import cuda_kernels  # noqa: E402

HERE = pathlib.Path(__file__).parent
FOLDERS = [HERE / "tasks", HERE / "later_tasks", pathlib.Path(__file__).parents[3] / "examples/tasks/cuda"]


def operations(torch):
    """What each task of `tasks` computes, from its inputs and its symbols by name, as one writes it in PyTorch."""
    functional = torch.nn.functional

    def weight_gradient(t, size):
        return t["x"].t() @ t["dy"]

    def linear_bias_relu(t, size):
        return functional.relu(functional.linear(t["x"], t["w"], t["bias"]))

    def batched_product(t, size):
        return torch.bmm(t["A"], t["B"])

    def low_rank_update(t, size):
        return torch.addmm(t["residual"], t["A"], t["B"], alpha=0.5)

    def normal_matvec(t, size):
        return t["A"].t() @ (t["A"] @ t["x"])

    def product_double(t, size):
        return t["a"] @ t["b"]

    def gram(t, size):
        return t["X"].t() @ t["X"] / t["X"].shape[0]

    def int8_product(t, size):
        weights = (t["q"].float() - t["zero"].float()[:, None]) * t["scale"][:, None]
        return functional.linear(t["x"], weights)

    def gelu(t, size):
        return functional.gelu(t["x"], approximate="tanh")

    def gated_silu(t, size):
        gate, up = t["in"].chunk(2, dim=1)
        return functional.silu(gate) * up

    def activation_chain(t, size):
        scaled = t["x"] * t["scale"][:, None] + t["shift"][:, None]
        return functional.softsign(functional.leaky_relu(functional.hardtanh(scaled, -2.0, 2.0), 0.01))

    def mean_middle(t, size):
        return t["x"].mean(dim=1)

    def argmax_rows(t, size):
        values, indices = t["data"].max(dim=1)
        return values, indices.int()

    def column_products(t, size):
        return t["in"].prod(dim=0)

    def nearest_centres(t, size):
        values, indices = torch.cdist(t["centres"], t["points"]).min(dim=0)
        return indices.int(), values

    def batch_norm(t, size):
        return functional.batch_norm(t["x"], t["mean"], t["var"], t["gamma"], t["beta"], eps=1e-5)

    def instance_norm(t, size):
        return functional.instance_norm(t["x"], eps=1e-5)

    def group_norm(t, size):
        return functional.group_norm(t["x"].flatten(1, 2), size["G"], t["weight"], t["bias"], 1e-5).view_as(t["x"])

    def rms_channels(t, size):
        return t["x"] * torch.rsqrt(t["x"].square().mean(dim=1, keepdim=True) + 1e-5) * t["weight"][:, None]

    def l1_normalise(t, size):
        return functional.normalize(t["x"], p=1.0, dim=1)

    def frobenius_normalise(t, size):
        return t["x"] / torch.linalg.vector_norm(t["x"])

    def online_softmax(t, size):
        return torch.softmax(t["input"], dim=1)

    def mse_loss(t, size):
        return functional.mse_loss(t["prediction"], t["target"]).reshape(1)

    def cross_entropy(t, size):
        return functional.cross_entropy(t["logits"], t["labels"].long()).reshape(1)

    def kl_divergence(t, size):
        log_probabilities = functional.log_softmax(t["logits"], dim=1)
        return functional.kl_div(log_probabilities, t["target"], reduction="batchmean").reshape(1)

    def cosine_hinge(t, size):
        return functional.cosine_embedding_loss(t["a"], t["b"], 2 * t["same"] - 1, margin=0.1).reshape(1)

    def max_pool2d(t, size):
        return functional.max_pool2d(t["x"], 3, stride=2, padding=1)

    def avg_pool1d(t, size):
        return functional.avg_pool1d(t["x"], size["K"], stride=size["S"])

    def conv1d(t, size):
        return functional.conv1d(t["x"], t["w"], t["bias"])

    def conv2d_strided(t, size):
        return functional.conv2d(t["input"], t["weight"], stride=size["S"], padding=size["P"])

    def separable_conv(t, size):
        middle = functional.conv2d(t["x"], t["dw"][:, None], padding=1, groups=size["C"])
        return functional.conv2d(middle, t["pw"][:, :, None, None])

    def conv_transpose1d(t, size):
        return functional.conv_transpose1d(t["x"], t["w"], stride=size["S"])

    def cumulative_sum(t, size):
        return t["x"].cumsum(dim=1)

    def cumulative_product(t, size):
        return t["x"].cumprod(dim=1)

    def causal_attention(t, size):
        q, k, v = (t[name][None] for name in "qkv")
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.125)[0]

    def embedding_norm(t, size):
        rows = functional.embedding(t["ids"], t["table"])
        return functional.layer_norm(rows, (size["D"],), t["weight"], t["bias"], 1e-5)

    functions = (weight_gradient, linear_bias_relu, batched_product, low_rank_update, normal_matvec, product_double, gram,
                 int8_product, gelu, gated_silu, activation_chain, mean_middle, argmax_rows, column_products,
                 nearest_centres, batch_norm, instance_norm, group_norm, rms_channels, l1_normalise,
                 frobenius_normalise, online_softmax, mse_loss, cross_entropy, kl_divergence, cosine_hinge, max_pool2d,
                 avg_pool1d, conv1d, conv2d_strided, separable_conv, conv_transpose1d, cumulative_sum,
                 cumulative_product, causal_attention, embedding_norm)
    return {function.__name__: function for function in functions}


def later_operations(torch):
    """The same for `later_tasks`."""
    functional = torch.nn.functional

    def squared_relu_mlp(t, size):
        hidden = functional.relu(torch.addmm(t["b1"], t["x"], t["w1"])).square()
        return torch.addmm(t["b2"], hidden, t["w2"])

    def batched_matvec(t, size):
        return torch.bmm(t["A"], t["x"][:, :, None])[:, :, 0]

    def bias_residual_silu(t, size):
        return functional.silu(t["x"] + t["bias"] + t["residual"])

    def channel_moments(t, size):
        variances, means = torch.var_mean(t["x"], dim=(0, 2, 3), correction=0)
        return means, variances

    def top1_middle(t, size):
        values, indices = t["scores"].max(dim=1)
        return values, indices.int()

    def l2_rows_scaled(t, size):
        return functional.normalize(t["x"], dim=1, eps=1e-6) * t["gain"]

    def layer_norm_planes(t, size):
        return functional.layer_norm(t["x"], t["weight"].shape, t["weight"], t["bias"], 1e-5)

    def log_softmax_temperature(t, size):
        return functional.log_softmax(t["logits"] / 0.7, dim=1)

    def huber_loss(t, size):
        return functional.huber_loss(t["prediction"], t["target"], delta=0.5).reshape(1)

    def depthwise_conv2d(t, size):
        return functional.conv2d(t["x"], t["filter"][:, None], t["bias"], stride=size["S"], padding=size["P"],
                                 groups=size["C"])

    def avg_pool2d(t, size):
        pooled = functional.avg_pool2d(t["x"].permute(0, 3, 1, 2), 3, stride=2, padding=1, count_include_pad=False)
        return pooled.permute(0, 2, 3, 1)

    def cumulative_max(t, size):
        return t["in"].cummax(dim=1).values

    def decode_attention(t, size):
        keys, values = t["k_cache"].transpose(1, 2), t["v_cache"].transpose(1, 2)
        return functional.scaled_dot_product_attention(t["q"][:, :, None], keys, values, scale=0.125)[:, :, 0]

    def embedding_bag(t, size):
        return functional.embedding_bag(t["ids"], t["table"], mode="sum", per_sample_weights=t["weights"])

    functions = (squared_relu_mlp, batched_matvec, bias_residual_silu, channel_moments, top1_middle, l2_rows_scaled,
                 layer_norm_planes, log_softmax_temperature, huber_loss, depthwise_conv2d, avg_pool2d, cumulative_max,
                 decode_attention, embedding_bag)
    return {function.__name__: function for function in functions}


def example_operations(torch):
    """The same for examples/tasks/cuda."""
    functional = torch.nn.functional

    def attention(t, size):
        q, k, v = (t[name][None] for name in "qkv")
        return functional.scaled_dot_product_attention(q, k, v, scale=0.125)[0]

    def conv2d(t, size):
        return functional.conv2d(t["image"][None], t["filters"])[0]

    def dequantize_gemv(t, size):
        return (t["Q"].float() @ t["x"]) * t["scales"]

    def gemm_f16(t, size):
        return torch.mm(t["A"], t["B"], out_dtype=torch.float32)

    def rms_norm(t, size):
        return functional.rms_norm(t["x"], t["scale"].shape, t["scale"], 1e-5)

    def rotary_embedding(t, size):
        q = t["q"]
        places = torch.arange(size["T"], device=q.device)[:, None]
        angles = places * 10000.0 ** (-torch.arange(size["D"], device=q.device) / size["D"])
        c, s = angles.cos()[:, None], angles.sin()[:, None]
        a, b = q[..., 0], q[..., 1]
        return torch.stack((a * c - b * s, a * s + b * c), dim=-1)

    functions = {function.__name__: function
                 for function in (attention, conv2d, dequantize_gemv, gemm_f16, rms_norm, rotary_embedding)}
    for name in ("gemm", "gemm_bias_gelu", "layer_norm", "row_sum", "softmax", "transpose"):
        functions[name] = lambda t, size, known=cuda_kernels.reference(torch, name): known(t)
    return functions


def cases(torch):
    """(name, size, inputs, function) of every task at its main size, and a product of 4096 cubed."""
    for folder, functions in zip(FOLDERS, (operations(torch), later_operations(torch), example_operations(torch))):
        for name, function in functions.items():
            size, buffers = cuda_kernels.main_buffers(json.loads((folder / f"{name}.json").read_text()))
            yield name, size, buffers, function
    square = [{"name": name, "role": "input", "dtype": "f32", "shape": [4096, 4096]} for name in "AB"]
    yield "gemm_4096", {"M": 4096, "N": 4096, "K": 4096}, square, lambda t, size: torch.mm(t["A"], t["B"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="tasks, or their files; all if there is none")
    parser.add_argument("--output", help="file for table.py")
    parser.add_argument("--samples", type=int, default=100, help="timed calls of each")
    arguments = parser.parse_args()
    names = {pathlib.Path(name).stem for name in arguments.names}
    torch = cuda_kernels.import_torch()
    flush = cuda_kernels.Flush(torch)
    cuda_kernels.say_conditions(torch)
    counterparts = []
    for name, size, buffers, function in cases(torch):
        if names and name not in names:
            continue
        tensors = cuda_kernels.make_tensors(torch, {"buffers": buffers}, 1)
        row = {"task": name, "size": size}
        for way, call in (("eager", function), ("compiled", torch.compile(function))):
            try:
                row[way] = cuda_kernels.median_seconds(torch, lambda: call(tensors, size), flush, arguments.samples)
            except Exception as error:  # what the compiler cannot do costs one number, not the table
                row[f"{way}_error"] = str(error).splitlines()[0] if str(error) else type(error).__name__
        counterparts.append(row)
        times = [f"{way} {1e6 * row[way]:10.2f} us" if way in row else f"{way} failed: {row[f'{way}_error']}"
                 for way in ("eager", "compiled")]
        print(f"{name:20} {', '.join(times)}", flush=True)
        cuda_kernels.write_counterparts(torch, counterparts, arguments.output)
        del tensors
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
