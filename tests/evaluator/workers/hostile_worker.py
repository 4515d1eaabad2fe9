#!/usr/bin/env python3
"""A worker that misbehaves: hostile_worker.py PHASE MODE; PHASE is hello, prepare or evaluate. While it evaluates,
a candidate whose text is "mode: MODE" decides instead."""
import os
import signal
import subprocess
import sys
import time

from minimal_worker import Worker


def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()


class Hostile(Worker):
    def __init__(self, phase, mode):
        super().__init__()
        self.phase, self.mode = phase, mode

    def misbehave(self, mode, message):
        """Whether an honest answer follows."""
        request = message.get("request", 0)
        right = {"verdict": "correct", "seconds": 1e-9}
        if mode == "garbage":
            say("Segmentation fault (not really)\n")
        elif mode == "binary":
            os.write(1, bytes(range(256)) * 16 + b"\n")
        elif mode == "deep":
            say("[" * 100000 + "\n")
        elif mode == "half":
            say('{"type":"evaluation","tok')
            sys.exit(0)
        elif mode == "flood":
            block = b"x" * (1 << 20)
            while True:
                os.write(1, block)
        elif mode == "silent":
            time.sleep(1000)
        elif mode == "exit":
            print("I have had enough", file=sys.stderr)
            sys.exit(7)
        elif mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif mode == "close":
            os.close(1)
            time.sleep(1000)
        elif mode == "no token":
            self.token = ""
            self.send("evaluation", request=request, evaluation=right)
        elif mode == "wrong token":
            self.token = "0" * 32
            self.send("evaluation", request=request, evaluation=right)
        elif mode == "wrong request":
            self.send("evaluation", request=request + 1, evaluation=right)
        elif mode == "no evaluation":
            self.send("evaluation", request=request, evaluation={"verdict": "splendid"})
        elif mode == "no verdict":
            self.send("evaluation", request=request, evaluation={"verdict": "not_given", "seconds": 1e-9})
        elif mode == "other answer":
            self.send("prepared", request=request)
        elif mode == "device lost":
            self.refuse(request, "mtmc.backend.004", "the device fell off the bus", "Put it back")
        elif mode.startswith("device lost once: "):
            marker = mode.split(": ", 1)[1]
            if os.path.exists(marker) and open(marker).read() != str(os.getpid()):
                return True
            with open(marker, "w") as file:
                file.write(str(os.getpid()))
            self.refuse(request, "mtmc.backend.004", "the device fell off the bus", "Put it back")
        elif mode == "stderr":
            block = b"mistake " * (1 << 17)
            for _ in range(1000):
                os.write(2, block)
            return True
        elif mode == "children":
            # One in a process group of its own; both outlive this process unless they are killed.
            first = subprocess.Popen(["sleep", "1000"])
            second = subprocess.Popen(["sleep", "1000"], preexec_fn=lambda: os.setpgid(0, 0))
            print("children", first.pid, second.pid, file=sys.stderr)
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        elif mode == "twice":
            self.send("evaluation", request=request, evaluation=right)
            self.send("evaluation", request=request, evaluation=right)
        elif mode == "bye":
            self.send("evaluation", request=request, evaluation=right)
            self.send("bye")
            sys.exit(0)
        elif mode == "slow stop":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        return False

    def hello(self, message):
        if self.phase == "hello" and self.mode == "version":
            self.token = message["token"]
            self.send("ready", request=0, protocol=2, version="future", identity="x", device={"name": "x", "kind": "x"})
            return True
        if self.phase == "hello" and not self.misbehave(self.mode, message):
            return True
        return super().hello(message)

    def prepare(self, message):
        if self.phase != "prepare" or self.misbehave(self.mode, message):
            super().prepare(message)

    def evaluate(self, message):
        source = message["evaluation_request"]["candidate"]["source"].strip()
        mode = source[6:] if source.startswith("mode: ") else ""
        if not mode or self.misbehave(mode, message):
            super().evaluate(message)


if __name__ == "__main__":
    Hostile(*(sys.argv[1:3] or ["", ""])).run()
