"""Serves a model on 127.0.0.1 until standard input ends; started by start.py. Only the line `ready URL` comes on
standard output, everything else on standard error."""

import argparse
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import threading

CONTEXT = 8192
REQUESTS_AT_ONCE = 4  # llama.cpp's own server; the package's takes one request after the other
# Of the attention cache, whose default of 16 bits lets log-probabilities differ in the third decimal from one server
# to the other, as flash attention does.
FLOAT32 = 0  # GGML_TYPE_F32

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--model", required=True)
options.add_argument("--port", type=int, default=0)
options.add_argument("--program", help="llama.cpp's own server; without it, that of llama-cpp-python")
options.add_argument("--api-key")
options = options.parse_args()

standard_output = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # the servers print what nobody is to read as an answer


def say_ready(url):
    print("ready", url, file=standard_output, flush=True)


def serve_package():
    import uvicorn
    from llama_cpp.server.app import create_app
    from llama_cpp.server.settings import ModelSettings, ServerSettings

    # interrupt_requests would cut a streamed answer short as soon as another request comes.
    server_settings = ServerSettings(api_key=options.api_key, interrupt_requests=False)
    model_settings = ModelSettings(
        model=options.model,
        model_alias="tiny-random",
        n_ctx=CONTEXT,
        n_threads=1,
        n_threads_batch=1,
        type_k=FLOAT32,
        type_v=FLOAT32,
        logits_all=True,
        verbose=False,
    )
    app = create_app(server_settings=server_settings, model_settings=[model_settings])

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            if self.started:
                say_ready("http://127.0.0.1:%d" % sockets[0].getsockname()[1])

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


def start_program():
    """llama.cpp's server, which the kernel ends with this process however that ends."""
    arguments = [options.program, "--model", options.model, "--alias", "tiny-random", "--host", "127.0.0.1"]
    arguments += ["--port", str(options.port), "--threads", "1", "--parallel", str(REQUESTS_AT_ONCE)]
    arguments += ["--ctx-size", str(CONTEXT * REQUESTS_AT_ONCE), "--no-webui", "--offline"]
    arguments += ["--flash-attn", "off", "--cache-type-k", "f32", "--cache-type-v", "f32"]
    environment = dict(os.environ)
    if options.api_key is not None:
        environment["LLAMA_API_KEY"] = options.api_key
    end_with_parent = ctypes.CDLL(None).prctl
    PR_SET_PDEATHSIG = 1
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        preexec_fn=lambda: end_with_parent(PR_SET_PDEATHSIG, signal.SIGKILL),
    )


def follow_program(program):
    for line in program.stdout:
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
        address = re.search(rb"listening on (http://[0-9.]+:[0-9]+)", line)
        if address is not None:
            say_ready(address[1].decode())
    print("llama-server ended with", program.wait(), file=sys.stderr)


def then_exit(work, *arguments):
    """A server that ends by itself has failed, and ends this process."""
    try:
        work(*arguments)
    finally:
        sys.stderr.flush()
        os._exit(1)


if options.program is None:
    work = (serve_package,)
else:
    work = (follow_program, start_program())
# Beside the main thread, so that no server handles the signals: SIGTERM and SIGINT end everything at once.
threading.Thread(target=then_exit, args=work, daemon=True).start()
signal.signal(signal.SIGINT, signal.SIG_DFL)
while os.read(0, 4096):
    pass
os._exit(0)
