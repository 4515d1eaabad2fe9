"""Calls a module with kernels through a driver without a device (driver_stub.c), as contestant.py does on a GPU.

usage: contestant_calls.py HEADERS DRIVER FOLDER"""
import json
import os
import pathlib
import sys

import program_texts

headers, driver, folder = (pathlib.Path(path) for path in sys.argv[1:])
program_texts.write(headers, folder, "descriptors", "noting", "standing_in", "recording", "replaying", "sharing",
                    "contestant")
import torch

import contestant
from replaying import Replay

TARGET = {"name": "NVIDIA H100", "capability": 90, "multiprocessors": 132, "shared_bytes": 232448,
          "cache_bytes": 50 << 20, "memory_bytes": 80 << 30}
TEXT = """
import torch, torch.nn as nn, triton, triton.language as tl

@triton.jit
def scale_add(x, out, n, factor, add, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor + add, mask=i < n)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
    def forward(self, x):
        y = self.linear(x)  # lies where the operator puts it, elsewhere each time
        z = torch.empty_like(y)
        scale_add[(triton.cdiv(y.numel(), 64),)](y, z, y.numel(), 0.5, True, BLOCK=64)
        w = torch.zeros_like(z)
        scale_add[(1, 2)](z[1:], w, z.numel() - 8, 2.0, False, BLOCK=64)
        scale_add[(0,)](z, w, z.numel(), 3.0, False, BLOCK=64)
        return torch.relu(w.t()), z
"""


def recorded():
    """The plan of the text, from a process of its own."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        import recording
        tensor = {"storage": 0, "offset": 0, "sizes": [4, 8], "strides": [8, 1], "type": "f32"}
        request = {"role": "candidate", "text": TEXT, "class": "ModelNew", "target": TARGET, "constructor": [],
                   "inputs": [{"kind": "tensor", "tensor": tensor}], "choices": {}, "names": []}
        place = folder / "recording_folder"
        place.mkdir()
        recording.lay_out(request, str(place))
        with os.fdopen(writing, "w") as file:
            json.dump(recording.record(request, str(place)), file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        return json.load(file)


def expected(plan, key, x):
    replay = Replay(plan, key=key)
    replay.run("setup")
    weight, bias = (replay.memory.tensor(weight["view"]) for weight in plan["weights"])
    z = torch.nn.functional.linear(x, weight, bias) * 0.5 + 1
    w = torch.zeros(4, 8)
    w.view(-1)[:24] = z.view(-1)[8:] * 2
    return torch.relu(w.t()), z


plan = recorded()
contestant.Driver.__init__.__defaults__ = (str(driver),)
kernels = [{"cubin": b"ELF", "entry": kernel["name"], "threads": 128, "cluster": [2, 1, 1], "shared_bytes": 100000}
           for kernel in plan["kernels"]]
results = [{"strides": view["strides"], "own": True} for view in plan["outputs"]]
x = torch.rand(4, 8)


def check(plan):
    called = contestant.PlanContestant({"plan": plan, "kernels": kernels, "results": results}, torch.device("cpu"))
    for key in (1, 2):
        called.set_up(key, [x])
        for poison in (0x7F, 0x00):
            called.renew(poison)
            called.call()
            for given, right in zip(called.results(), expected(plan, key, x), strict=True):
                assert torch.equal(given, right)
    own, of_library = called.shares()
    assert own > 0 and of_library > 0


check(plan)
print("a kernel that is lent memory", flush=True)
next(step["launch"] for step in plan["phases"]["forward"] if "launch" in step)["memory"] = len(plan["storages"])
plan["storages"].append({"bytes": 64, "content": ""})
check(plan)
try:
    contestant.Driver([{"cubin": b"", "entry": "missing", "shared_bytes": 0}])
except contestant.LaunchFailed as failure:
    print(failure)
