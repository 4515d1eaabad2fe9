#pragma once
/// A process that calls a plan, or a module of PyTorch, as often as the judge asks, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// contestant.py, which judging.py imports.
inline constexpr std::string_view contestant_text =
    R"python("""Calls a recorded plan, or a module of PyTorch, as often as the judge asks. Of what a candidate wrote only kernels
that were lowered elsewhere run here; what is computed is judged in another process."""
import base64
import ctypes
import json
import os
import time
import traceback
import types

import torch

from replaying import Refused, Replay, TYPES, input_tensors, leaves, number_of, parts_of, seed_of, storages_of, values_of
from sharing import RED_ZONE, DeviceBuffers, any_differs, memory_at

NO_MEMORY = "there is not enough memory for inputs, results, and what lies between"
FLUSHED = {"cpu": 64 << 20, "cuda": 256 << 20}


class Channel:
    """Messages of JSON over two pipes."""

    def __init__(self, reading, writing):
        self.reading = os.fdopen(reading, "rb", buffering=0)
        self.writing = writing

    def say(self, message):
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(self.writing, data):]

    def close(self):
        self.reading.close()
        os.close(self.writing)

    def hear(self):
        """The next message, or None at the end."""
        line = b""
        while not line.endswith(b"\n"):
            part = self.reading.read(1 << 16)
            if not part:
                return None
            line += part
        return json.loads(line)


class Clock:
    """Times of single calls, with cold caches."""

    def __init__(self, device):
        self.device = device
        self.junk = torch.zeros(FLUSHED[device.type] // 4, dtype=torch.int32, device=device)
        self.on_device = device.type == "cuda"

    def memory(self):
        """Bytes of the device that all calls together have needed at once, beside inputs and copies of results."""
        own = self.junk.numel() * self.junk.element_size()
        return max(0, torch.cuda.max_memory_allocated(self.device) - own) if self.on_device else 0

    def time(self, call, ahead):
        """Seconds of a call. `ahead`: seconds for which the device waits first, so that what the host does to launch
        is not part of it."""
        self.junk.add_(1)
        if not self.on_device:
            begin = time.perf_counter()
            call()
            return time.perf_counter() - begin
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        self.junk.add_(1)
        if ahead > 0:
            torch.cuda._sleep(int(ahead * 2e9))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3


class Attribute(ctypes.Structure):
    """Of a launch: CUlaunchAttribute, whose value is 64 bytes long."""
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class Configuration(ctypes.Structure):
    """CUlaunchConfig."""
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("number", ctypes.c_uint)]


CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
PASSED = {"i1": ctypes.c_uint8, "u1": ctypes.c_uint8, "i8": ctypes.c_int8, "u8": ctypes.c_uint8,
          "i16": ctypes.c_int16, "u16": ctypes.c_uint16, "i32": ctypes.c_int32, "u32": ctypes.c_uint32,
          "i64": ctypes.c_int64, "u64": ctypes.c_uint64, "fp64": ctypes.c_double}


class LaunchFailed(Exception):
    """What the driver refuses."""


class Driver:
    """Launches lowered kernels through the driver, in PyTorch's context and on its stream."""

    def __init__(self, kernels, library="libcuda.so.1"):
        self.cuda = ctypes.CDLL(library)
        self.kernels = [self.load(kernel) for kernel in kernels]

    def demand(self, what, status):
        if status != 0:
            name = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(name))
            raise LaunchFailed(f"{what} fails with {(name.value or b'an unknown error').decode()}")

    def load(self, kernel):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.demand("loading a kernel", self.cuda.cuModuleLoadData(ctypes.byref(module), kernel["cubin"]))
        self.demand("finding a kernel",
                    self.cuda.cuModuleGetFunction(ctypes.byref(function), module, kernel["entry"].encode()))
        if kernel["shared_bytes"] > 48 << 10:
            self.demand("shared memory", self.cuda.cuFuncSetAttribute(function, SHARED_BYTES, kernel["shared_bytes"]))
        return function, kernel

    def prepared(self, plan, launch, stream):
        """A launch as something to call with the addresses of its storages, by their numbers."""
        function, kernel = self.kernels[launch["kernel"]]
        types = [parameter["type"] for parameter in plan["kernels"][launch["kernel"]]["parameters"]
                 if parameter["type"] != "constexpr"]
        values, pointers = [], []
        for argument, type in zip(launch["arguments"], types):
            if argument["kind"] == "pointer":
                pointers.append((len(values), argument["storage"], argument.get("offset", 0)))
                values.append(ctypes.c_void_p(0))
            elif type.startswith("*"):
                values.append(ctypes.c_void_p(0))
            else:
                values.append(PASSED.get(type, ctypes.c_float)(number_of(argument)))
        if launch.get("memory", -1) >= 0:
            pointers.append((len(values), launch["memory"], 0))
        values += [ctypes.c_void_p(0), ctypes.c_void_p(0)]  # memory of Triton's launcher, and of its profiler
        addresses = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        grid, threads = launch["grid"], kernel["threads"]
        attributes = (Attribute * 1)()
        attributes[0].id = CLUSTER
        attributes[0].value[:3] = kernel["cluster"]
        clustered = kernel["cluster"] != [1, 1, 1]
        # Triton's grid counts clusters.
        blocks = [grid[0] * kernel["cluster"][0] * kernel["cluster"][1] * kernel["cluster"][2], grid[1], grid[2]]
        configuration = Configuration((ctypes.c_uint * 3)(*blocks), (ctypes.c_uint * 3)(threads, 1, 1),
                                      kernel["shared_bytes"], stream, attributes, 1 if clustered else 0)
        held = (values, attributes)

        def run(address_of):
            for place, storage, offset in pointers:
                held[0][place].value = address_of(storage) + offset
            self.demand("a launch", self.cuda.cuLaunchKernelEx(ctypes.byref(configuration), function, addresses, None))

        return run if min(grid) > 0 else lambda address_of: None

    def launch(self, plan, launch, memory):
        """At once, as a replay asks for it."""
        run = self.prepared(plan, launch, stream_of(memory.device))
        run(lambda storage: memory.storage(storage).data_ptr())


def read_by(step):
    """Storages of the tensors that are given to a step's operator."""
    return {value["tensor"]["storage"] for value in values_of(step) if value["kind"] == "tensor"}


def stream_of(device):
    return torch.cuda.current_stream().cuda_stream if device.type == "cuda" else 0


class Program:
    """The call of a plan, bound to memory, so that doing it costs no more than its launches and operators.

    What only operators give lies where they put it; all other memory of the call is made once. The first call goes by
    the recording and learns where results lie."""

    def __init__(self, replay):
        self.replay = replay
        self.memory = replay.memory
        self.plan = replay.plan
        self.steps = self.plan["phases"].get("forward", [])
        self.lasting = set(self.memory.held)
        self.outputs = {view["storage"] for view in self.plan["outputs"]}
        made = {}  # whether an operator gives a storage, and nothing needs it before
        for step in self.steps:
            read = read_by(step)
            for storage in storages_of(step):
                made.setdefault(storage, "operation" in step and storage not in read)
        for view in self.plan["outputs"]:
            made.setdefault(view["storage"], False)
        self.given = {storage for storage, by_operator in made.items() if by_operator} - self.lasting
        self.scratch = sorted(set(made) - self.given - self.lasting)
        self.zones, self.zone_byte = [], 0
        for storage in self.scratch:
            if self.memory.device.type == "cuda" and self.plan["storages"][storage]["bytes"] > 0:
                self.fence_in(storage)
            else:
                self.memory.storage(storage)
        self.tensors = {}
        self.last = {}
        for number, step in enumerate(self.steps):
            for storage in storages_of(step):
                self.last[storage] = number
        self.work = [self.bound(number, step) for number, step in enumerate(self.steps)]

    def fence_in(self, storage):
        """Makes memory of the call between two zones that nothing may write to."""
        size = self.plan["storages"][storage]["bytes"]
        whole = torch.empty(size + 2 * RED_ZONE, dtype=torch.uint8, device=self.memory.device)
        self.memory.held[storage] = memory_at(whole.data_ptr() + RED_ZONE, size).untyped_storage()
        self.zones += [whole[:RED_ZONE], whole[RED_ZONE + size:]]

    def wrote_outside(self):
        return any_differs(self.zones, self.zone_byte)

    def poison(self, byte):
        """Gives all memory that the call makes a content of no meaning, or the numbers that the text says."""
        self.zone_byte = byte
        for zone in self.zones:
            zone.fill_(byte)
        for storage in self.scratch:
            content = self.plan["storages"][storage].get("content")
            if content:
                self.memory.fill(storage, bytes.fromhex(content))
            else:
                raw = torch.empty(0, dtype=torch.uint8, device=self.memory.device)
                raw.set_(self.memory.held[storage]).fill_(byte)

    def call(self):
        self.replay.begin("forward")
        with torch.no_grad():
            for work in self.work:
                work()

    def results(self):
        return [self.tensor(view)() for view in self.plan["outputs"]]

    def end(self):
        """Gives back what operators made in a call."""
        self.tensors.clear()

    def forget(self):
        """Gives back all memory, which the call's steps hold, and they this."""
        self.end()
        self.work.clear()
        self.zones.clear()
        self.memory.held.clear()

    def address(self, storage):
        if storage in self.given:
            return self.tensors[storage].untyped_storage().data_ptr()
        return self.memory.held[storage].data_ptr()

    def tensor(self, view):
        """Something that gives the tensor of a view."""
        storage = view["storage"]
        if storage not in self.given:
            tensor = self.memory.tensor(view)
            return lambda: tensor
        type, sizes, strides = TYPES[view["type"]], view["sizes"], view["strides"]
        offset = view["offset"] // type.itemsize

        def find():
            tensor = self.tensors[storage]
            if (tensor.dtype == type and tensor.storage_offset() == offset and list(tensor.shape) == sizes
                    and list(tensor.stride()) == strides):
                return tensor
            return torch.empty(0, dtype=type, device=tensor.device).set_(tensor.untyped_storage(), offset, sizes, strides)

        return find

    def value(self, value, expected):
        """Something that gives an argument."""
        if value["kind"] == "tensor":
            return self.tensor(value["tensor"])
        if value["kind"] == "list" and any(part["kind"] == "tensor" for part in parts_of(value)):
            parts = [self.value(part, expected) for part in value["list"]]
            return lambda: [part() for part in parts]
        constant = self.replay.value(value, expected)
        return lambda: constant

    def bound(self, number, step):
        if "fill" in step:
            find, value = self.tensor(step["fill"]["view"]), self.replay.value(step["fill"]["value"], None)
            return lambda: find().fill_(value)
        if "launch" in step:
            if self.replay.launcher is None:
                raise Refused("a kernel is launched, which needs a device")
            run = self.replay.launcher.prepared(self.plan, step["launch"], stream_of(self.memory.device))
            return lambda: run(self.address)
        return self.operation(number, step)

    def operation(self, number, step):
        operation = step["operation"]
        function, expected = self.replay.operator(operation["name"])
        given = [self.value(value, kind) for value, kind in zip(operation["arguments"], expected.values())]
        named = {name: self.value(value, expected.get(name)) for name, value in operation.get("named", {}).items()}
        read = read_by(step)
        over = [storage for storage in set(storages_of(step)) & self.given - self.outputs if self.last[storage] == number]
        draws = operation.get("draws", False)

        def run():
            if draws:
                self.replay.seed()
            result = function(*[one() for one in given], **{name: one() for name, one in named.items()})
            results = [result] if isinstance(result, torch.Tensor) else \
                [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
            for view, tensor in zip(operation["outputs"], results):
                if tensor.numel() or 0 in view["sizes"] or self.memory.device.type != "cpu":
                    self.keep(view, tensor, read)  # else statistics that only a device's own operator gives
            for storage in over:
                self.tensors.pop(storage, None)

        return run

    def keep(self, view, tensor, read):
        """Has a result lie where the recording says; it mostly does."""
        storage = view["storage"]
        if list(tensor.shape) != view["sizes"]:
            raise Refused(f"an operator gives a tensor of {list(tensor.shape)} where {view['sizes']} was recorded")
        same = (list(tensor.stride()) == view["strides"] and tensor.dtype == TYPES[view["type"]]
                and tensor.storage_offset() * tensor.element_size() == view["offset"])
        if storage in self.given and storage not in read and storage not in self.tensors:
            if not same:
                whole = torch.empty(self.plan["storages"][storage]["bytes"], dtype=torch.uint8, device=tensor.device)
                self.tensors[storage] = whole
                self.tensor(view)().copy_(tensor)
            else:
                self.tensors[storage] = tensor
        elif not same or tensor.untyped_storage().data_ptr() != self.address(storage):
            self.tensor(view)().copy_(tensor)

    def shares(self):
        """Seconds of the steps that are kernels and fills, and of those that are operators, each step by itself."""
        clock = Clock(self.memory.device)
        self.replay.begin("forward")
        own, of_library = 0.0, 0.0
        with torch.no_grad():
            for step, work in zip(self.steps, self.work):
                seconds = clock.time(work, 20e-6)
                if "operation" in step:
                    of_library += seconds
                else:
                    own += seconds
        return own, of_library


class PlanContestant:
    """A plan that is called."""

    ahead = True
    program = None

    def __init__(self, request, device):
        self.request = request
        self.plan = request["plan"]
        self.device = device
        self.launcher = Driver(request["kernels"]) if request["kernels"] else None
        self.wanted = request["results"]

    def set_up(self, key, inputs):
        self.rest()
        self.replay = Replay(self.plan, self.device, key=key, launcher=self.launcher, varied=varied_by(key, self.request))
        self.replay.run("setup")
        views = input_tensors(self.plan)
        for view, given in zip(views, inputs, strict=True):
            storage = given.untyped_storage()
            if view["offset"] != 0 or self.plan["storages"][view["storage"]]["bytes"] > storage.nbytes():
                raise Refused("an input does not lie as it was asked for")
            self.replay.memory.held[view["storage"]] = storage
        self.of_inputs = {view["storage"] for view in views}
        self.kept = {number: clone_of(storage) for number, storage in self.replay.memory.held.items()
                     if number not in self.of_inputs}
        self.program = Program(self.replay)

    def renew(self, poison, whole=True):
        """All memory as it was after the constructor; or only what a call makes, so that a second one finds what the first
        has left."""
        self.given = None
        for number, content in self.kept.items() if whole else ():
            torch.empty(0, dtype=torch.uint8, device=content.device).set_(self.replay.memory.held[number]).copy_(content)
        self.program.end()
        self.program.poison(poison)

    def call(self):
        self.program.call()
        results = self.program.results()
        self.given = [self.laid_out(*one) for one in zip(results, self.plan["outputs"], self.wanted, strict=True)]

    def laid_out(self, tensor, view, wanted):
        """A result in rows, or as the problem's lies: what only looks at other memory is computed here."""
        borrowed = wanted["own"] and (view["storage"] in self.of_inputs or view["storage"] in self.kept)
        if not borrowed and (tensor.is_contiguous() or list(tensor.stride()) == wanted["strides"]):
            return tensor
        return tensor.clone(memory_format=torch.contiguous_format)

    def results(self):
        return self.given

    def shares(self):
        return self.program.shares()

    def wrote_outside(self):
        return self.program.wrote_outside()

    def rest(self):
        if self.program:
            self.program.forget()
        self.replay = self.program = self.kept = self.given = None


def varied_by(key, request):
    """Names of parameters that are varied: with the first key none, so that the module is judged as it begins, too."""
    return () if key == request.get("first_key") else request.get("varied", ())


def clone_of(storage):
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage).clone()


class ModuleContestant:
    """A problem's own module, as PyTorch runs it, with the weights that its plan gives."""

    ahead = False

    def __init__(self, request, device):
        self.request = request
        self.plan = request["plan"]
        self.device = device
        module = types.ModuleType("problem")
        exec(compile(request["text"], "problem", "exec"), module.__dict__)
        with torch.device(device), torch.no_grad():
            self.model = module.Model(*module.get_init_inputs())
        self.model.to(device)
        self.function = torch.compile(self.model) if request["compiled"] else self.model

    def set_up(self, key, inputs):
        self.rest()
        replay = Replay(self.plan, self.device, key=key, varied=varied_by(key, self.request))
        replay.run("setup")
        self.kept = {weight["name"]: replay.memory.tensor(weight["view"]).clone() for weight in self.plan.get("weights", ())}
        tensors = iter(inputs)
        self.arguments = [self.argument(replay, value, tensors) for value in self.plan.get("inputs", ())]
        self.key = key
        self.given = None

    def argument(self, replay, value, tensors):
        if value["kind"] == "tensor":
            return next(tensors)
        if value["kind"] == "list":
            return [self.argument(replay, part, tensors) for part in value["list"]]
        return replay.value(value, None)

    def wrote_outside(self):
        return False

    def renew(self, poison, whole=True):
        held = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        with torch.no_grad():
            for name, content in self.kept.items():
                if name in held:  # tied ones have one name
                    held[name].copy_(content)
        torch.manual_seed(seed_of(self.key, "forward", 0))  # which takes time of its own
        self.given = None

    def call(self):
        with torch.no_grad():
            self.given = self.function(*self.arguments)

    def results(self):
        return [leaf for leaf in leaves(self.given) if isinstance(leaf, torch.Tensor)]

    def shares(self):
        return 0.0, 1.0

    def rest(self):
        self.kept = self.given = self.arguments = None


def give_back(device):
    """Leaves a device's memory to other processes, if it is more than a little."""
    if device.type == "cuda" and torch.cuda.memory_reserved() > 2 << 30:
        torch.cuda.empty_cache()


def warm():
    """Uses the device for the first time, and what else takes long when it is first used."""
    device = torch.device("cuda")
    clock = Clock(device)
    square = torch.ones(64, 64, device=device)
    clock.time(lambda: (square @ square).copy_(square), 20e-6)
    square.clone().fill_(1.0).view(torch.uint8).fill_(1)
    return clock


class Process:
    """What a contestant's process holds. On a host its buffers are memory of the judge, too, by the fork."""

    def __init__(self, buffers):
        self.buffers = buffers
        self.contestant = self.clock = None

    def begin(self, message):
        request = message["request"]
        for kernel in request["kernels"]:
            kernel["cubin"] = base64.b64decode(kernel["cubin"])
        device = torch.device(request["device"])
        if self.buffers is None:
            os.chdir(message["folder"])
            os.environ.update(HOME=message["folder"], TMPDIR=message["folder"])  # of what compiles
            self.buffers = DeviceBuffers(message["inputs"], message["outputs"])
            self.buffers.open(message["handles"])
        self.contestant = (ModuleContestant if "text" in request else PlanContestant)(request, device)
        self.clock = self.clock or Clock(device)
        return {"ready": True}

    def answer(self, message):
        """What one message asks for."""
        contestant, doing = self.contestant, message["do"]
        if doing == "begin":
            return self.begin(message)
        if doing == "set_up":
            contestant.set_up(message["key"], self.buffers.inputs())
            return {}
        if doing == "rest":
            contestant.rest()
            give_back(contestant.device)
            return {}
        contestant.renew(message["poison"], message.get("renewed", True))
        if doing == "share":
            own, of_library = contestant.shares()
            return {"library_share": of_library / (own + of_library) if own + of_library > 0 else 0.0}
        return self.call(message)

    def call(self, message):
        ahead = message.get("ahead", 0.0) if self.contestant.ahead else 0.0
        begin = time.perf_counter()
        seconds = self.clock.time(self.contestant.call, ahead)
        host = time.perf_counter() - begin
        for given, wanted in zip(self.contestant.results(), self.buffers.outputs(), strict=True):
            wanted.copy_(given)
        if self.clock.on_device:
            torch.cuda.synchronize()
        outside = message.get("look", False) and self.contestant.wrote_outside()
        return {"seconds": seconds, "host_seconds": host, "memory_bytes": self.clock.memory(), "outside": outside}


def serve(channel, buffers):
    """Answers the judge until it has no more to ask."""
    process = Process(buffers)
    while True:
        message = channel.hear()
        if message is None:
            return
        try:
            if message["do"] == "warm":  # nobody waits for it
                process.clock = warm()
                continue
            said = process.answer(message)
        except Exception as error:
            if message["do"] == "warm":
                continue  # a question will find the same, and says so
            said = failure(error)
        channel.say(said)


def failure(error):
    message = (str(error).split("\nSearch for")[0] or type(error).__name__)[:2000]  # advice of PyTorch's to its users
    if isinstance(error, Refused):
        return {"failure": {"kind": "refused", "message": message}}
    if lacks_memory(error):
        return {"failure": {"kind": "memory", "message": NO_MEMORY}}
    own = isinstance(error, LaunchFailed)
    return {"failure": {"kind": type(error).__name__, "message": message + ("" if own else place_of(error))}}


def lacks_memory(error):
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)


def place_of(error):
    """" (judging.py, line 7)": where in these programs an error that nobody expected came from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if os.path.dirname(frame.filename) == os.path.dirname(os.path.abspath(__file__))]
    return f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
)python";

} // namespace mtmc::detail
