#!/usr/bin/env python3
"""Whether a recorded problem, replayed on the processor, gives what PyTorch itself gives, bit by bit.

    build/python/bin/python tests/bench/python_replays.py [--batch 2] KernelBench/level2/*.py

Each problem is recorded in one process, replayed in another, and made and called by PyTorch with the replay's weights
and inputs. `--batch N` puts `batch_size = N` into the texts, so that they fit a small machine. The programs are those of
the headers in include/mtmc/backend/python.
"""
import argparse
import json
import os
import pathlib
import re
import sys
import tempfile
import types

HEADERS = pathlib.Path(__file__).parents[2] / "include/mtmc/backend/python"
TARGET = {"name": "NVIDIA H100", "capability": 90, "multiprocessors": 132, "shared_bytes": 232448,
          "cache_bytes": 50 << 20, "memory_bytes": 80 << 30}


def unpack(folder):
    for name in ("recording", "replaying"):
        text = (HEADERS / f"{name}_source.hpp").read_text()
        (folder / f"{name}.py").write_text(re.search(r'R"python\((.*)\)python"', text, re.DOTALL)[1])
    sys.path.insert(0, str(folder))


def in_child(work):
    """What `work` gives, from a process of its own, as JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            said = work()
        except BaseException as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        with os.fdopen(writing, "w") as file:
            json.dump(said, file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"error": "the process ended"}


def record(text, folder):
    import recording
    request = {"role": "problem", "text": text, "class": "Model", "target": TARGET}
    place = tempfile.mkdtemp(dir=folder)
    recording.lay_out(request, place)
    return recording.record(request, place)


def compare(text, plan):
    import torch
    import replaying
    replay = replaying.Replay(plan, key=12345)
    replay.run("inputs")
    replay.run("setup")
    module = types.ModuleType("problem")
    exec(compile(text, "problem", "exec"), module.__dict__)
    model = module.Model(*module.get_init_inputs())
    state = {weight["name"]: replay.memory.tensor(weight["view"]).clone() for weight in plan["weights"]}
    model.load_state_dict(state, strict=False)
    for name, buffer in model.named_buffers():
        if name in state:
            buffer.copy_(state[name])
    inputs = [replay.value(value, None) for value in plan["inputs"]]
    inputs = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
    with torch.no_grad():
        torch.manual_seed(replaying.seed_of(replay.key, "forward", 0))  # for what forward draws first
        expected = [leaf for leaf in replaying.leaves(model(*inputs)) if isinstance(leaf, torch.Tensor)]
    replay.run("forward")
    pairs = list(zip(replay.outputs(), expected, strict=True))
    return {"equal": all(torch.equal(a, b) for a, b in pairs),
            "largest": max((a.double() - b.double()).abs().max().item() for a, b in pairs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--most-bytes", type=int, default=2 << 30)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        unpack(pathlib.Path(folder))
        for file in options.files:
            text = pathlib.Path(file).read_text()
            if options.batch:
                text = re.sub(r"^batch_size = \d+", f"batch_size = {options.batch}", text, flags=re.MULTILINE)
            plan = in_child(lambda: record(text, folder))
            if "error" not in plan and sum(storage["bytes"] for storage in plan["storages"]) > options.most_bytes:
                said = {"error": "too large"}
            else:
                said = plan if "error" in plan else in_child(lambda: compare(text, plan))
            verdict = said["error"] if "error" in said else "equal" if said["equal"] else "differs"
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict != "equal":
                print(pathlib.Path(file).stem, verdict, said.get("largest", ""), flush=True)
    print(counts)


if __name__ == "__main__":
    main()
