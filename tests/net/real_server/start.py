"""Gets and starts a real language-model server with a tiny random model.

Everything lies in the folder DIR: a virtual environment, llama.cpp compiled from the source that llama-cpp-python
carries (without a GPU and for any x86-64, so that the folder can be kept), and the models. The first time takes, on two
idle cores, about 4 minutes, 10 with --own-server, and 100 MB of downloads; later it takes a moment. Ask for --own-server
the first time if it is wanted at all: what has been compiled is kept, what it was compiled from is not.

When the server answers, one line `ready http://127.0.0.1:PORT` comes on standard output. It ends when standard input
ends or when it is killed. Exit code 77: it cannot be had here, and standard error says why in one sentence.
"""

import argparse
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
SDIST_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"

# Small and quick to compile instead of quick to run: the model is tiny. No instruction beyond plain x86-64, no threads
# that spin, no download of a web page, no version taken from a git repository around the folder.
CMAKE_OPTIONS = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
    "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
    "-DBUILD_SHARED_LIBS=ON",
    "-DLLAMA_BUILD_NUMBER=0",
    "-DLLAMA_BUILD_COMMIT=unknown",
    "-DLLAMA_ALL_WARNINGS=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
] + [
    f"-DGGML_{name}=OFF"
    for name in "NATIVE SSE42 AVX AVX2 BMI2 FMA F16C OPENMP LLAMAFILE CPU_REPACK CCACHE".split()
]


class Unavailable(Exception):
    """The server cannot be had on this machine."""


def digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Preparation:
    """The steps that fill the folder; each is done once, and again when what it depends on has changed."""

    def __init__(self, folder):
        self.folder = folder
        self.venv = folder / "venv"
        self.python = self.venv / "bin" / "python"
        self.libraries = folder / "bin"
        self.work = folder / "work"
        self.log = folder / "prepare.log"

    def run(self, own_server):
        self.folder.mkdir(parents=True, exist_ok=True)
        requirements = (HERE / "requirements.txt").read_text()
        build = digest(VERSION, *CMAKE_OPTIONS)
        with open(self.folder / "lock", "w") as self.lock:
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            self.step("packages", digest(requirements), self.install_packages)
            self.step("libraries", build, lambda: self.build("llama"))
            if own_server:
                self.step("own-server", build, lambda: self.build("llama-server"))
            self.step("llama-cpp-python", digest(VERSION), self.install_llama_cpp_python)
            self.step("models", digest((HERE / "make_model.py").read_text()), self.make_models)
            shutil.rmtree(self.work, ignore_errors=True)

    def step(self, name, key, action):
        stamp = self.folder / (name + ".done")
        if stamp.exists() and stamp.read_text() == key:
            return
        print(f"start: preparing {name} (once; see {self.log})", file=sys.stderr, flush=True)
        stamp.unlink(missing_ok=True)
        action()
        stamp.write_text(key)

    def install_packages(self):
        shutil.rmtree(self.venv, ignore_errors=True)
        (self.folder / "llama-cpp-python.done").unlink(missing_ok=True)  # it was in there
        packages = ["-r", str(HERE / "requirements.txt")]
        packages += [tool for tool in ("cmake", "ninja") if shutil.which(tool) is None]
        self.command([sys.executable, "-m", "venv", str(self.venv)], "a virtual environment cannot be made")
        self.pip(["install", *packages], "Python packages cannot be had (no network?)")

    def install_llama_cpp_python(self):
        self.pip(
            ["install", "--no-deps", "--no-build-isolation", "--force-reinstall"]
            + ["--config-settings=cmake.define.LLAMA_BUILD=OFF", str(self.source())]
        )
        package = next(self.venv.glob("lib/python3*/site-packages/llama_cpp"))
        (package / "lib").unlink(missing_ok=True)
        (package / "lib").symlink_to(self.libraries)

    def build(self, target):
        compiler = os.environ.get("CXX", "c++").split()[0]
        if shutil.which(compiler) is None:
            raise Unavailable(f"{PACKAGE} comes as source, and there is no C++ compiler ({compiler})")
        tree = self.work / "build"
        source = self.source() / "vendor" / "llama.cpp"
        self.command(["cmake", "-S", str(source), "-B", str(tree), "-G", "Ninja", *CMAKE_OPTIONS])
        jobs = str(os.cpu_count() or 1)
        self.command(["nice", "cmake", "--build", str(tree), "--target", target, "--parallel", jobs])
        shutil.rmtree(self.libraries, ignore_errors=True)
        shutil.copytree(tree / "bin", self.libraries, symlinks=True)

    def source(self):
        """The unpacked source of the package."""
        unpacked = self.work / f"llama_cpp_python-{VERSION}"
        if not unpacked.exists():
            self.work.mkdir(exist_ok=True)
            self.pip(
                ["download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:"]
                + ["--dest", str(self.work), f"{PACKAGE}=={VERSION}"],
                f"{PACKAGE} {VERSION} cannot be had (no network?)",
            )
            archive = self.work / (unpacked.name + ".tar.gz")
            if hashlib.sha256(archive.read_bytes()).hexdigest() != SDIST_SHA256:
                raise SystemExit(f"start: {archive.name} is not the file that is known here; do not use it")
            with tarfile.open(archive) as files:
                files.extractall(self.work / "unpacking")
            (self.work / "unpacking" / unpacked.name).rename(unpacked)
            archive.unlink()
        return unpacked

    def make_models(self):
        for name, options in (("model", []), ("model-without-begin-token", ["--no-begin-token"])):
            path = self.folder / (name + ".gguf")
            self.command([str(self.python), str(HERE / "make_model.py"), str(path), *options])

    def pip(self, arguments, unavailable=None):
        quiet = ["--disable-pip-version-check", "--no-input", "--retries", "2"]
        self.command([str(self.python), "-m", "pip", arguments[0], *quiet, *arguments[1:]], unavailable)

    def command(self, arguments, unavailable=None):
        """Runs a program; `unavailable`: its failure means that the server cannot be had, for this reason."""
        environment = dict(os.environ, PATH=f"{self.venv / 'bin'}:{os.environ.get('PATH', os.defpath)}")
        with open(self.log, "a") as log:
            print("$", *arguments, file=log, flush=True)
            # What outlives this script, should it be killed, keeps the lock.
            done = subprocess.run(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=[self.lock.fileno()],
            )
        if done.returncode == 0:
            return
        if unavailable is not None:
            raise Unavailable(f"{unavailable}; see {self.log}")
        last = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
        raise SystemExit(f"start: {' '.join(arguments[:4])} ... failed; the end of {self.log}:\n{last}")


def main():
    parser = argparse.ArgumentParser(
        prog="start", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", required=True, type=pathlib.Path, metavar="DIR", help="such as build/llama")
    parser.add_argument("--prepare", action="store_true", help="install what is missing, start nothing")
    parser.add_argument("--own-server", action="store_true", help="llama.cpp's own server, not the package's")
    parser.add_argument("--port", type=int, default=0, help="0, the default: any that is free")
    parser.add_argument("--api-key", help="refuse requests without this key")
    parser.add_argument("--no-begin-token", action="store_true", help="the model whose texts begin without <s>")
    options = parser.parse_args()

    preparation = Preparation(options.folder.resolve())
    try:
        preparation.run(options.own_server)
    except Unavailable as reason:
        print(f"start: no real server: {reason}", file=sys.stderr)
        return 77
    if options.prepare:
        return 0
    model = "model-without-begin-token.gguf" if options.no_begin_token else "model.gguf"
    arguments = [str(preparation.python), str(HERE / "serve.py"), "--model", str(preparation.folder / model)]
    arguments += ["--port", str(options.port)]
    if options.own_server:
        arguments += ["--program", str(preparation.libraries / "llama-server")]
    if options.api_key is not None:
        arguments += ["--api-key", options.api_key]
    os.execv(arguments[0], arguments)


if __name__ == "__main__":
    sys.exit(main())
