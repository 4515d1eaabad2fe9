#pragma once
/// What does the steps of a recorded plan with PyTorch, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// replaying.py, which zygote.py imports.
inline constexpr std::string_view replaying_text =
    R"python("""Does what a recorded plan says, with PyTorch. Never runs what a candidate wrote; a plan has been checked before."""
import base64
import ctypes
import hashlib

import torch

TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
         "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i64": torch.int64, "i32": torch.int32,
         "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
FLOATING = {"f32", "f16", "bf16"}
# Names of operators of a library that the processor does not have, and the ones that do the same.
WITHOUT_DEVICE = {"aten.cudnn_batch_norm.default": "aten.native_batch_norm.default"}
# What opens files, exchanges memory, waits, gives what only looks negated, or trusts its indices.
FORBIDDEN = {"from_file", "set_", "resize_", "resize_as_", "record_stream", "pin_memory", "to_mkldnn", "is_nonzero",
             "copy_sparse_to_sparse_", "segment_reduce", "save", "manual_seed", "empty", "empty_strided", "new_empty",
             "empty_like", "empty_permuted", "set_data", "retain_grad", "requires_grad_", "backward"}
# Names that begin so are PyTorch's own; these are what modules become, and look at their operands.
INNER = ("_softmax", "_log_softmax", "_to_copy", "_scaled_dot_product", "_native_batch_norm_legit", "_adaptive_avg_pool",
         "_batch_norm", "_unsafe_view", "_foreach_", "_thnn_fused_", "_embedding_bag", "_weight_norm_interface",
         "_trilinear", "_pdist_forward", "_cdist_forward", "_prelu_kernel", "_fused_rms_norm", "_linalg_", "_fft_",
         "_cudnn_rnn", "_unique2", "_native_multi_head_attention", "_transform_bias_rescale_qkv", "_grouped_mm",
         "_int_mm", "_scaled_mm", "_upsample_", "_assert_async", "_safe_softmax", "_efficient_attention_forward",
         "_flash_attention_forward", "_fused_dropout", "_addmm_activation", "_add_relu", "_chunk_cat", "_stack",
         "_conv_depthwise2d", "_convolution", "_cummax_helper", "_cummin_helper", "_logcumsumexp", "_standard_gamma",
         "_sample_dirichlet", "_euclidean_dist", "_dim_arange", "_masked_softmax", "_triangular_solve")
POISON = 0x7F
MAX_CONTENT = 32 << 20


class Refused(Exception):
    """What a plan asks for that cannot be done, in words for whoever wrote it."""


def operator_of(name):
    """An operator of PyTorch's own library by its name and overload."""
    parts = name.split(".")
    if len(parts) != 3 or parts[0] != "aten":
        raise Refused(f"the operator {name} is not one of PyTorch's own; use those, or write a kernel")
    found = getattr(getattr(torch.ops.aten, parts[1], None), parts[2], None)
    if parts[1] in FORBIDDEN or parts[1].startswith("_") and not parts[1].startswith(("__", *INNER)):
        raise Refused(f"the operator {name} reaches beyond its tensors; use another one")
    if found is None or not torch._C._dispatch_has_kernel(f"aten::{parts[1]}" + (f".{parts[2]}" if parts[2] != "default"
                                                                                else "")):
        raise Refused(f"this PyTorch has no operator {name}; use another one")
    if any(given.alias_info is not None and not given.alias_info.is_write for given in found._schema.returns):
        raise Refused(f"the operator {name} computes nothing; a recording has none of its kind")
    return found


class Memory:
    """The storages of a plan, made when they are first needed, with a content of no meaning."""

    def __init__(self, plan, device, double):
        self.plan = plan
        self.device = device
        self.double = double
        self.held = {}
        self.poison = POISON
        self.factors = self.widths() if double else {}

    def widths(self):
        """By how much a storage grows where all its numbers become doubles; those of integers stay."""
        factors = {}
        for view in views_of(self.plan):
            factor = 8 // TYPES[view["type"]].itemsize if view["type"] in FLOATING else 1
            if factors.setdefault(view["storage"], factor) != factor:
                raise Refused("a tensor's memory is read with another type than it is written")
        return factors

    def type_of(self, name):
        return torch.float64 if self.double and name in FLOATING else TYPES[name]

    def factor(self, storage):
        return self.factors.get(storage, 1)

    def storage(self, number):
        if number not in self.held:
            facts = self.plan["storages"][number]
            tensor = torch.full([facts["bytes"] * self.factor(number)], self.poison, dtype=torch.uint8, device=self.device)
            self.held[number] = tensor.untyped_storage()
            if facts.get("content"):
                self.fill(number, bytes.fromhex(facts["content"]))
        return self.held[number]

    def whole(self, number):
        """All of a storage as one row of the type it is used with, and the name of that type."""
        name = next((view["type"] for view in views_of(self.plan) if view["storage"] == number), "u8")
        elements = self.plan["storages"][number]["bytes"] // TYPES[name].itemsize
        return self.tensor({"storage": number, "offset": 0, "sizes": [elements], "strides": [1], "type": name}), name

    def fill(self, number, content):
        row, name = self.whole(number)
        given = torch.frombuffer(bytearray(content), dtype=TYPES[name])
        row[:given.numel()].copy_(given)

    def widened(self, device):
        """The same content as doubles, there. What was converted is given back at once."""
        other = Memory(self.plan, device, True)
        for number in list(self.held):
            other.whole(number)[0].copy_(self.whole(number)[0])
            del self.held[number]
        return other

    def tensor(self, view):
        type = self.type_of(view["type"])
        offset = view["offset"] * self.factor(view["storage"]) // type.itemsize
        return torch.empty(0, dtype=type, device=self.device).set_(self.storage(view["storage"]), offset, view["sizes"],
                                                                   view["strides"])

    def keep(self, view, tensor, made):
        """Has what an operator gave lie where the recording says."""
        same = (tensor.storage_offset() * tensor.element_size() == view["offset"] * self.factor(view["storage"])
                and list(tensor.stride()) == view["strides"] and list(tensor.shape) == view["sizes"]
                and tensor.dtype == self.type_of(view["type"]))
        if list(tensor.shape) != view["sizes"]:
            raise Refused(f"an operator gives a tensor of {list(tensor.shape)} where {view['sizes']} was recorded")
        if made and same:
            self.held[view["storage"]] = tensor.untyped_storage()
        elif not same or tensor.untyped_storage().data_ptr() != self.storage(view["storage"]).data_ptr():
            self.tensor(view).copy_(tensor)


def parts_of(value):
    """A value and all that lies in it."""
    yield value
    for part in value.get("list", ()):
        yield from parts_of(part)


def values_of(step):
    operation = step.get("operation")
    if operation:
        for value in [*operation["arguments"], *operation.get("named", {}).values()]:
            yield from parts_of(value)


def views_of(plan):
    for steps in plan["phases"].values():
        for step in steps:
            for value in values_of(step):
                if value["kind"] == "tensor":
                    yield value["tensor"]
            if "operation" in step:
                yield from step["operation"]["outputs"]
            if "fill" in step:
                yield step["fill"]["view"]
    for value in plan.get("inputs", ()):
        for part in parts_of(value):
            if part["kind"] == "tensor":
                yield part["tensor"]
    for weight in plan.get("weights", ()):
        yield weight["view"]
    yield from plan["outputs"]


def storages_of(step):
    """What a step touches."""
    for value in values_of(step):
        if value["kind"] == "tensor":
            yield value["tensor"]["storage"]
    if "operation" in step:
        yield from (view["storage"] for view in step["operation"]["outputs"])
    if "fill" in step:
        yield step["fill"]["view"]["storage"]
    for argument in step.get("launch", {}).get("arguments", ()):
        if argument["kind"] == "pointer":
            yield argument["storage"]
    if step.get("launch", {}).get("memory", -1) >= 0:
        yield step["launch"]["memory"]


def constant_parameters(plan):
    """Of a module's parameters those that its constructor fills with one number, as ones and zeros of a normalisation:
    their views by name, and the step behind which they hold it."""
    steps, found = plan["phases"].get("setup", ()), {}
    for weight in plan.get("weights", ()):
        view = weight["view"]
        writing = [number for number, step in enumerate(steps) if view["storage"] in written_by(step)]
        if weight.get("parameter") and view["type"] in FLOATING and writing and \
                all(fills_alone(steps[number], view["storage"]) for number in writing):
            found[weight["name"]] = (view, writing[-1])
    return found


def written_by(step):
    if "fill" in step:
        return {step["fill"]["view"]["storage"]}
    return {view["storage"] for view in step["operation"]["outputs"]} if "operation" in step else set(storages_of(step))


def fills_alone(step, storage):
    """Whether what it writes there comes of numbers alone that are the same in each run."""
    operation = step.get("operation")
    return "fill" in step or operation is not None and not operation.get("draws") and all(
        value["kind"] != "tensor" or value["tensor"]["storage"] == storage for value in values_of(step))


PHASES = ("inputs", "setup", "forward")


def seed_of(key, phase, number):
    """Of a draw. Who finds out one of them, from numbers that it has drawn, say, knows nothing of the others."""
    return int.from_bytes(hashlib.sha256(f"{key} {phase} {number}".encode()).digest()[:8], "big") >> 1


def input_tensors(plan):
    """Views of the tensors that a module is called with, in lists too."""
    return [part["tensor"] for value in plan.get("inputs", ()) for part in parts_of(value) if part["kind"] == "tensor"]


class Replay:
    """A plan's storages, and its phases to be done one after the other."""

    def __init__(self, plan, device="cpu", key=0, launcher=None, memory=None, input_key=None, varied=()):
        self.plan = plan
        self.memory = memory or Memory(plan, torch.device(device), False)
        self.key = key
        self.input_key = key if input_key is None else input_key
        known = constant_parameters(plan) if varied else {}
        self.varied = {known[name][1]: (name, known[name][0]) for name in varied if name in known}
        self.phase, self.drawn = PHASES[0], 0
        self.launcher = launcher
        self.shortened = False  # whether convolutions are given operands as TF32 has them

    def widened(self, device=None):
        """Goes on in double precision: inputs and weights are the numbers they are."""
        return Replay(self.plan, key=self.key, launcher=self.launcher,
                      memory=self.memory.widened(device or self.memory.device))

    def run(self, phase):
        """Does the steps of a phase, whose n-th draw depends on key, phase and n alone. What only this phase needs is
        given back when it has been used."""
        steps = self.plan["phases"].get(phase, [])
        self.begin(phase)
        kept = {view["storage"] for view in self.plan["outputs"]} if phase == "forward" else None
        last, first = {}, {}
        for number, step in enumerate(steps):
            for storage in storages_of(step):
                last[storage] = number
                first.setdefault(storage, number)
        before = set(self.memory.held)
        with torch.no_grad():
            for number, step in enumerate(steps):
                self.do(step, {storage for storage in storages_of(step) if first[storage] == number})
                if phase == "setup" and number in self.varied:
                    self.vary(*self.varied[number])
                if kept is not None:
                    for storage in set(storages_of(step)):
                        if last[storage] == number and storage not in kept and storage not in before:
                            self.memory.held.pop(storage, None)

    def vary(self, name, view):
        """Trained parameters are not what they begin as: by up to a quarter they are something else."""
        tensor = self.memory.tensor(view)
        torch.manual_seed(seed_of(self.key, "varied " + name, 0))
        apart = torch.rand(tensor.shape, device=tensor.device).sub_(0.5).mul_(0.5)
        tensor.add_((apart * tensor.abs().clamp(min=1.0)).to(tensor.dtype))

    def do(self, step, new):
        if "fill" in step:
            value = self.value(step["fill"]["value"], None)
            self.memory.tensor(step["fill"]["view"]).fill_(value)
        elif "launch" in step:
            if self.launcher is None:
                raise Refused("a kernel is launched, which needs a device")
            self.launcher.launch(self.plan, step["launch"], self.memory)
        else:
            self.operate(step["operation"], new)

    def operate(self, operation, new):
        function, expected = self.operator(operation["name"])
        given = [self.value(value, kind) for value, kind in zip(operation["arguments"], expected.values())]
        named = {name: self.value(value, expected.get(name)) for name, value in operation.get("named", {}).items()}
        if operation.get("draws"):
            self.seed()
            if self.memory.double:  # the same numbers as in the recorded precision
                given = [narrowed(value, given) for value, given in zip(operation["arguments"], given)]
        if self.shortened and "convolution" in operation["name"]:
            given = [shortened(value) for value in given]
        read = {part["tensor"]["storage"] for value in values_of({"operation": operation}) for part in parts_of(value)
                if part["kind"] == "tensor"}
        result = function(*given, **named)
        results = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
        for view, tensor in zip(operation["outputs"], results):
            if tensor.numel() == 0 and 0 not in view["sizes"] and self.memory.device.type == "cpu":
                continue  # statistics that only a device's own operator gives
            self.memory.keep(view, tensor, view["storage"] in new and view["storage"] not in read)

    def operator(self, name):
        """The operator, and the types of its arguments by their names."""
        if self.memory.device.type == "cpu":
            name = WITHOUT_DEVICE.get(name, name)
        function = operator_of(name)
        return function, {argument.name: str(argument.type) for argument in function._schema.arguments}

    def begin(self, phase):
        self.phase, self.drawn = phase, 0

    def seed(self):
        torch.manual_seed(seed_of(self.input_key if self.phase == "inputs" else self.key, self.phase, self.drawn))
        self.drawn += 1

    def value(self, value, expected):
        kind = value["kind"]
        if kind == "tensor":
            return self.memory.tensor(value["tensor"])
        if kind == "list":
            return [self.value(part, expected) for part in value["list"]]
        if kind == "type":
            return self.memory.type_of(value["text"])
        if kind in ("real", "integer"):
            return number_of(value)
        if kind == "boolean":
            return value["integer"] != 0
        if kind == "none":
            return None
        if expected is not None and "Device" in expected:
            return self.memory.device
        if value["text"].startswith("torch."):
            return getattr(torch, value["text"][len("torch."):])
        return value["text"]

    def outputs(self):
        return [self.memory.tensor(view) for view in self.plan["outputs"]]


def narrowed(value, given):
    """An argument in the precision it was recorded in."""
    if value["kind"] == "tensor":
        return given.to(TYPES[value["tensor"]["type"]])
    return TYPES[value["text"]] if value["kind"] == "type" else given


def shortened(value):
    """A tensor of f32 with the 10 bits of a mantissa that TF32 has; units that take it cut off the others."""
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
        return value
    return value.contiguous().view(torch.int32).bitwise_and(~0x1FFF).view(torch.float32)


def number_of(value):
    """JSON has no form for infinities, and plans none for zeros."""
    if value["kind"] == "real":
        return float(value["text"] if "text" in value else value.get("real", 0))
    return value.get("integer", 0)


def leaves(tree):
    if isinstance(tree, (list, tuple)):
        for part in tree:
            yield from leaves(part)
    else:
        yield tree


def answer(request, folder):
    """All phases of a plan, and what its outputs hold."""
    replay = Replay(request["plan"], key=request["key"])
    for phase in ("inputs", "setup"):
        replay.run(phase)
    if request["double"]:
        replay = replay.widened()
    replay.run("forward")
    outputs = replay.outputs()
    if sum(tensor.numel() * tensor.element_size() for tensor in outputs) > MAX_CONTENT:
        raise Refused(f"the outputs have more than {MAX_CONTENT >> 20} MiB; use smaller sizes")
    return {"outputs": [{"type": next(name for name, type in TYPES.items() if type == tensor.dtype),
                         "sizes": list(tensor.shape), "content": content_of(tensor)} for tensor in outputs]}


def content_of(tensor):
    whole = tensor.contiguous().cpu()
    content = ctypes.string_at(whole.data_ptr(), whole.numel() * whole.element_size())
    return base64.b64encode(content).decode()


def lay_out(request, folder):
    pass


threads = True


def needs_device(request):
    return False


def programs():
    return ()


def versions():
    return {"torch": torch.__version__}


def prepare():
    torch.zeros(4).sum()


def failure(error):
    kind = "refused" if isinstance(error, Refused) else type(error).__name__
    return {"kind": kind, "message": str(error)[:4000], "line": 0}
)python";

} // namespace mtmc::detail
