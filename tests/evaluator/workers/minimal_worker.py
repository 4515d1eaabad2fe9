#!/usr/bin/env python3
"""A whole worker in another language, written from the text of mtmc/evaluator/worker/worker_protocol.hpp alone.

Its judge is simple: a candidate is right unless its text says "wrong".
"""
import json
import sys


class Worker:
    def __init__(self):
        self.token = ""
        self.tasks = {}

    def send(self, kind, **fields):
        message = {"type": kind, "token": self.token, **fields}
        sys.stdout.write(json.dumps(message, allow_nan=False) + "\n")
        sys.stdout.flush()

    def refuse(self, request, identifier, text, remedy, **fields):
        error = {"id": identifier, "message": text, "remedy": remedy}
        self.send("error", request=request, error=error, **fields)

    def hello(self, message):
        self.token = message["token"]
        if message["protocol"] != 1:
            self.refuse(0, "mtmc.worker.003", "I speak protocol 1", "Use protocol 1", protocol=1)
            return False
        self.send("ready", request=0, protocol=1, version="python", identity="python judge",
                  device={"name": "paper", "kind": message["backend"]})
        return True

    def prepare(self, message):
        task = message["task"]
        if not task.get("sizes"):
            self.refuse(message["request"], "mtmc.task.002", "the task has no sizes", "Add one")
            return
        self.tasks[message["task_id"]] = task
        self.send("prepared", request=message["request"])

    def evaluate(self, message):
        asked = message["evaluation_request"]
        task = self.tasks[asked["task"]]
        self.send("log", text="judging " + task["name"])
        if "wrong" in asked["candidate"]["source"]:
            remark = {"severity": "error", "line": 1, "message": "it says wrong", "remedy": "Say right"}
            answer = {"verdict": "wrong_result", "rule": "reference", "diagnostics": [remark]}
        else:
            size = {"size": task["sizes"][0], "seconds": 0.1, "largest_error": {"$number": "infinity"}}
            answer = {"verdict": "correct", "seconds": 0.1, "sizes": [size]}
            if "incumbent" in asked:
                answer["speed_up"] = {"value": 1.5, "low": 1.25, "high": 1.75}
                answer["comparison"] = "faster"
        self.send("evaluation", request=message["request"], evaluation=answer)

    def run(self):
        for line in sys.stdin:
            message = json.loads(line)
            kind = message["type"]
            if kind == "bye" or (kind == "hello" and not self.hello(message)):
                return
            if kind == "prepare":
                self.prepare(message)
            elif kind == "evaluate":
                self.evaluate(message)
            elif kind == "forget":
                del self.tasks[message["task_id"]]


if __name__ == "__main__":
    Worker().run()
