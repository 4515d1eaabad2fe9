#pragma once
/// The process of Python that forks for every question, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// zygote.py, which zygote.py imports or is.
inline constexpr std::string_view zygote_text =
    R"python("""Answers each question in a process forked for it, which is fenced in first and ended in time.

Starts with its folder in sys.path; descriptor 3 is a socket of packets. A question is a packet with three
descriptors: the question's JSON, a file for the answer, and a socket that says how it ended. Whoever closes
that socket gives the question up. Where a device takes long to be used first, a process that has used it waits for each
question; another is made when a question has ended, so that it disturbs no times.
"""
import array
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
import traceback

# Nothing but the programs lies there, for whoever answers a question may read it.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sandbox

MAX_ANSWER = 16 << 20


def greeting(work):
    return {"python": sys.version.split()[0], "fenced": sandbox.has_landlock(), **work.versions()}


def packet_of(connection):
    data, ancillary, _, _ = connection.recvmsg(4096, socket.CMSG_LEN(4 * 4))
    descriptors = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[:len(content) // 4 * 4])
    return data, list(descriptors)


def content_of(descriptor):
    with open(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return file.read()


def keep_only(*descriptors):
    """Of other questions, and of whoever asks, a candidate holds nothing."""
    low = 3
    for descriptor in sorted(descriptors):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, 4096)


class StandBy:
    """A process that waits for a question."""

    def __init__(self, work, device, processes):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = os.fork()
        if self.process == 0:
            try:
                keep_only(theirs.fileno())
                sandbox.tie()
                ready = work.stand_by(device, processes)
                data, descriptors = packet_of(theirs)
                theirs.close()
                if data:
                    answer_question(work, *descriptors, ready=ready, **json.loads(data))
            finally:
                os._exit(70)
        theirs.close()

    def is_there(self):
        ended, _ = os.waitpid(self.process, os.WNOHANG)
        return ended == 0

    def hand_over(self, question, answer, limits):
        try:
            socket.send_fds(self.socket, [json.dumps(limits).encode()], [question, answer])
        except OSError:
            pass  # it has ended, which is seen as of any other
        self.socket.close()


def answer_question(work, question, answer, folder, seconds, memory_bytes, ready=None):
    """In a process of its own."""
    text = content_of(question)
    os.close(question)
    os.chdir(folder)
    os.environ.update(HOME=folder, TMPDIR=folder, TRITON_CACHE_DIR=folder + "/cache")
    request = json.loads(text)
    work.lay_out(request, folder, *([] if ready is None else [ready]))
    if ready is None and not work.needs_device(request):
        sandbox.enter(folder, memory_bytes, int(2 * seconds) + 10, MAX_ANSWER, work)
    elif ready is None:
        sandbox.tie()  # a driver needs what the walls keep away; what runs is the judge's own
    try:
        said = {"result": work.answer(request, folder)}
    except MemoryError:
        said = {"failure": {"kind": "memory", "message": "it needs more memory than it may have", "line": 0}}
    except BaseException as error:
        said = {"failure": work.failure(error)}
    with open(answer, "wb") as file:
        file.write(json.dumps(said).encode())
    os._exit(0)  # what else there is to destroy belongs to the parent


class Question:
    """A question under way: its process, its folder, and until when."""

    def __init__(self, work, folder, data, descriptors, waiting=None):
        limits = json.loads(data)
        self.question, self.answer, status = descriptors
        self.status = socket.socket(fileno=status)
        self.deadline = time.monotonic() + limits["seconds"]
        self.folder = folder
        os.mkdir(folder, 0o700)
        self.timed_out = False
        if waiting:
            self.process = waiting.process
            waiting.hand_over(self.question, self.answer, {"folder": folder, **limits})
        else:
            self.process = os.fork()
            if self.process == 0:
                try:
                    keep_only(self.question, self.answer)
                    answer_question(work, self.question, self.answer, folder, **limits)
                finally:
                    os._exit(70)
        self.ended = os.pidfd_open(self.process)
        os.close(self.question)
        os.close(self.answer)

    def over(self):
        """Ends the process where it is time, and says how it ended once it has."""
        ready = select.select([self.ended], [], [], 0)[0]
        if not ready:
            given_up = select.select([self.status], [], [], 0)[0]
            self.timed_out = time.monotonic() > self.deadline
            if not given_up and not self.timed_out:
                return False
            os.kill(self.process, signal.SIGKILL)
            select.select([self.ended], [], [], 5)
        try:
            os.killpg(self.process, signal.SIGKILL)
        except OSError:
            pass
        _, status = os.waitpid(self.process, 0)
        self.say({"timed_out": self.timed_out, "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
                  "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0})
        return True

    def say(self, end):
        try:
            self.status.send(json.dumps(end).encode(), socket.MSG_NOSIGNAL)
        except OSError:
            pass
        self.status.close()
        os.close(self.ended)
        try:
            shutil.rmtree(self.folder, ignore_errors=True)
        except Exception:
            pass  # what a program has nested too deep goes with the folder of all questions


class Readiness:
    """The processes that wait for the next questions, where there are to be some. Two, as one that is made when a question
    has ended is not ready when the next one comes."""

    WAITING = 2
    MOST_LOST = 3

    def __init__(self, work, device, processes):
        self.work, self.device, self.processes = work, device, int(processes)
        self.waiting, self.lost = [], 0

    def renew(self):
        while self.device and len(self.waiting) < self.WAITING and self.lost < self.MOST_LOST:
            self.waiting.append(StandBy(self.work, self.device, self.processes))

    def take(self):
        """The one that has waited longest; none if there is none."""
        while self.waiting:
            taken = self.waiting.pop(0)
            if taken.is_there():
                return taken
            self.lost += 1
        return None


def serve(connection, work, base, readiness):
    questions = []
    for number in range(1 << 62):
        if not questions:
            readiness.renew()
        now = time.monotonic()
        wait = min([question.deadline - now for question in questions], default=None)
        watched = [connection, *(question.ended for question in questions), *(question.status for question in questions)]
        select.select(watched, [], [], None if wait is None else max(wait, 0.001))
        questions = [question for question in questions if not question.over()]
        try:
            data, descriptors = packet_of(connection)
        except BlockingIOError:
            continue
        if not data:
            break
        questions.append(Question(work, f"{base}/{number}", data, descriptors, readiness.take()))
    for question in questions:
        question.deadline = 0
        question.over()


def main():
    connection = socket.socket(fileno=3)
    base, name, device, processes, *folders = sys.argv[1:]
    sys.path[:0] = folders
    try:
        work = importlib.import_module(name)
        work.prepare()
        connection.send(json.dumps(greeting(work)).encode())
    except BaseException as error:
        reason = "".join(traceback.format_exception_only(type(error), error)).strip()
        connection.send(json.dumps({"error": reason[-2000:], "missing": getattr(error, "name", None) or ""}).encode())
        return 1
    connection.setblocking(False)
    gc.freeze()
    serve(connection, work, base, Readiness(work, device, processes))
    return 0


sys.exit(main())
)python";

} // namespace mtmc::detail
