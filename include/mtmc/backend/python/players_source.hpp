#pragma once
/// A contestant's process as the judge sees it, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// players.py, which judging.py imports.
inline constexpr std::string_view players_text =
    R"python("""A contestant's process as the judge sees it."""
import os
import select

import contestant


class Lost(Exception):
    """A contestant that gave no answer, or a wrong one, and the verdict that this is."""

    def __init__(self, verdict, message, remedy="", who="candidate"):
        super().__init__(message)
        self.verdict = verdict
        self.remedy = remedy
        self.who = who


class Player:
    """A contestant's process, and what it is asked."""

    def __init__(self, buffers, walls):
        self.name = ""
        ours, theirs = os.pipe(), os.pipe()
        self.process = os.fork()
        if self.process == 0:
            try:
                low, high = sorted((theirs[0], ours[1]))
                for begin, end in ((3, low), (low + 1, high), (high + 1, 256)):
                    os.closerange(begin, end)
                walls()
                contestant.serve(contestant.Channel(theirs[0], ours[1]), buffers)
            finally:
                os._exit(0)
        os.close(theirs[0])
        os.close(ours[1])
        self.channel = contestant.Channel(ours[0], theirs[1])
        self.ahead = 0.0
        self.memory = 0
        self.key = None  # of its weights
        self.seconds = 0.0  # of its last call

    def begin(self, name, request, buffers, folder):
        """Tells it who it is. What it says to that is heard later, so that several can begin at once."""
        self.name = name
        try:
            self.channel.say({"do": "begin", "request": request, "folder": folder, **buffers.told()})
        except BrokenPipeError:
            pass  # heard later, too

    def hear(self, seconds, what):
        poll = select.poll()
        poll.register(self.channel.reading, select.POLLIN)
        if not poll.poll(seconds * 1e3):
            raise self.lost("timeout", f"{what} takes more than {seconds:.1f} s")
        said = self.channel.hear()
        if said is None:
            raise self.lost("crashed", f"its process ended while {what}")
        if "failure" in said:
            failure = said["failure"]
            told = failure["kind"] in ("refused", "LaunchFailed", "memory")
            message = failure["message"] if told else f"{failure['kind']}: {failure['message']}"
            remedies = {"refused": "Use other operators", "LaunchFailed": "", "memory": "Keep fewer tensors at once"}
            raise self.lost("launch_error", message.strip(),
                            remedies.get(failure["kind"], "Check what the operators of PyTorch are given"))
        return said

    def lost(self, verdict, message, remedy=""):
        return Lost(verdict, message, remedy, "incumbent" if self.name == "incumbent" else "candidate")

    def ask(self, message, seconds, what):
        try:
            self.channel.say(message)
        except BrokenPipeError:
            raise self.lost("crashed", f"its process ended before {what}")
        return self.hear(seconds, what)

    def set_up(self, key, seconds):
        self.key = key
        self.ask({"do": "set_up", "key": key}, seconds, "its constructor")

    def rest(self, seconds):
        """Gives back what it holds of the device's memory."""
        self.key = None
        self.ask({"do": "rest"}, seconds, "resting")

    def end(self):
        """Its process ends when nobody asks any more."""
        self.channel.close()

    def call(self, poison, seconds, look=False, renewed=True):
        """One timed call. The device waits as long as the last one took the host. `look`: whether anything was written
        outside of tensors; `renewed`: it finds what the constructor made, not what the last call has left."""
        said = self.ask({"do": "call", "poison": poison, "ahead": self.ahead, "look": look, "renewed": renewed},
                        seconds, "calling it")
        if said["outside"]:
            raise self.lost("out_of_bounds", "it writes outside of its tensors")
        self.ahead = min(said["host_seconds"], 2e-3)
        self.memory = said["memory_bytes"]
        self.seconds = said["seconds"]
        return said["seconds"]
)python";

} // namespace mtmc::detail
