#pragma once
/// The walls round a process of Python that runs what a candidate wrote, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// sandbox.py, which zygote.py imports or is.
inline constexpr std::string_view sandbox_text =
    R"python("""Walls round a process that runs what a candidate wrote: files, system calls, memory. Nothing takes them down again."""
import ctypes
import os
import platform
import resource
import struct
import sys

LIBRARY = ctypes.CDLL(None, use_errno=True)
LIBRARY.syscall.restype = ctypes.c_long

# Numbers on x86-64 and on 64-bit Arm; None where there is none.
CALLS = {
    "read": (0, 63), "write": (1, 64), "open": (2, None), "close": (3, 57), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "poll": (7, None), "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "pread64": (17, 67), "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66),
    "access": (21, None), "sched_yield": (24, 124), "mremap": (25, 216), "madvise": (28, 233), "dup": (32, 23),
    "nanosleep": (35, 101), "getpid": (39, 172), "exit": (60, 93), "uname": (63, 160),
    "getcwd": (79, 17), "readlink": (89, None), "umask": (95, 166), "gettimeofday": (96, 169),
    "getrlimit": (97, 163), "getrusage": (98, 165), "sysinfo": (99, 179), "times": (100, 153), "getuid": (102, 174),
    "getgid": (104, 176), "geteuid": (107, 175), "getegid": (108, 177), "getppid": (110, 173),
    "sigaltstack": (131, 132), "statfs": (137, 43), "fstatfs": (138, 44), "gettid": (186, 178), "futex": (202, 98),
    "sched_getaffinity": (204, 123), "getdents64": (217, 61), "set_tid_address": (218, 96),
    "restart_syscall": (219, 128), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "exit_group": (231, 94), "openat": (257, 56),
    "newfstatat": (262, 79), "readlinkat": (267, 78),
    "faccessat": (269, 48), "ppoll": (271, 73), "set_robust_list": (273, 99), "dup3": (292, 24),
    "getcpu": (309, 168), "getrandom": (318, 278), "membarrier": (324, 283),
    "statx": (332, 291), "rseq": (334, 293), "faccessat2": (439, 439)}
# What a compiler does besides, which writes files and starts an assembler.
STARTING = {
    "ftruncate": (77, 46), "rename": (82, None), "mkdir": (83, None), "rmdir": (84, None), "unlink": (87, None),
    "mkdirat": (258, 34), "unlinkat": (263, 35), "renameat": (264, 38), "renameat2": (316, 276), "flock": (73, 32),
    "pipe": (22, None), "dup2": (33, None), "fork": (57, None), "vfork": (58, None), "clone": (56, 220),
    "execve": (59, 221), "wait4": (61, 260), "waitid": (247, 95), "pipe2": (293, 59), "arch_prctl": (158, None),
    "getpgrp": (111, None), "chmod": (90, None), "fchmod": (91, 52), "close_range": (436, 436),
    "utimensat": (280, 88), "utime": (132, None), "getpgid": (121, 155), "mincore": (27, 232), "fadvise64": (221, 223)}
CLONE, CLONE3, IOCTL, FCNTL, PRCTL, TGKILL, PRLIMIT = (56, 220), (435, 435), (16, 29), (72, 25), (157, 167), (234, 131), (302, 261)

ALLOW, KILL, NOT_PERMITTED, NOT_IMPLEMENTED = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
CLONE_THREAD = 0x00010000
X32 = 0x40000000


class Unavailable(Exception):
    """A wall that this system does not have."""


def failed(what):
    return OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


class Filter:
    """A program for seccomp: (code, jump if true, jump if false, value) an instruction."""

    LOAD, EQUAL, SET, RETURN = 0x20, 0x15, 0x45, 0x06

    def __init__(self, machine):
        if machine not in MACHINES:
            raise Unavailable(f"on {machine} system calls cannot be filtered here")
        self.column, audit = MACHINES[machine]
        self.rules = [(self.LOAD, 0, 0, 4), (self.EQUAL, 1, 0, audit), (self.RETURN, 0, 0, KILL), (self.LOAD, 0, 0, 0)]
        if self.column == 0:
            self.rules += [(self.SET, 0, 1, X32), (self.RETURN, 0, 0, KILL)]

    def answer(self, numbers, answer):
        number = numbers[self.column]
        if number is not None:
            self.rules += [(self.EQUAL, 0, 1, number), (self.RETURN, 0, 0, answer)]

    def where(self, numbers, argument, values, answer=ALLOW):
        """Answers so where an argument's lower half is one of the values."""
        number = numbers[self.column]
        if number is None:
            return
        tests = [(self.EQUAL, len(values) - 1 - i, 0, value) for i, value in enumerate(values)]
        tests[-1] = (self.EQUAL, 0, 1, values[-1])
        body = [(self.LOAD, 0, 0, 16 + 8 * argument), *tests, (self.RETURN, 0, 0, answer), (self.LOAD, 0, 0, 0)]
        self.rules += [(self.EQUAL, 0, len(body), number), *body]

    def where_all(self, numbers, conditions):
        """Allows it where all conditions hold: (argument, whether its upper half, test, value)."""
        number = numbers[self.column]
        if number is None:
            return
        body = []
        for left, (argument, upper, test, value) in zip(range(len(conditions) - 1, -1, -1), conditions):
            body += [(self.LOAD, 0, 0, 16 + 8 * argument + (4 if upper else 0)), (test, 0, 2 * left + 1, value)]
        body += [(self.RETURN, 0, 0, ALLOW), (self.LOAD, 0, 0, 0)]
        self.rules += [(self.EQUAL, 0, len(body), number), *body]

    def install(self):
        rules = self.rules + [(self.RETURN, 0, 0, NOT_PERMITTED)]
        code = b"".join(struct.pack("=HBBI", *rule) for rule in rules)
        held = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("@HP", len(rules), ctypes.addressof(held))
        if LIBRARY.prctl(22, 2, program, 0, 0) != 0:
            raise failed("seccomp")


def filter_calls(starts_programs, has_threads):
    filter = Filter(platform.machine())
    for numbers in CALLS.values():
        filter.answer(numbers, ALLOW)
    if starts_programs:
        for numbers in STARTING.values():
            filter.answer(numbers, ALLOW)
    filter.answer(CLONE3, NOT_IMPLEMENTED)
    if has_threads:
        filter.where_all(CLONE, [(0, False, filter.SET, CLONE_THREAD)])
    filter.where(IOCTL, 1, [0x5401, 0x5450, 0x5451, 0x541B])  # questions to a terminal, close-on-exec, bytes that wait
    filter.where(FCNTL, 1, [0, 1, 2, 3, 4, 5, 1030])          # duplicates, flags, whether a file is locked
    filter.where(PRCTL, 0, [15, 16, 0x53564D41])              # names of threads and of memory
    filter.where(TGKILL, 0, [os.getpid()])
    # Of this process alone, and nothing is set: a pointer is null in both halves.
    filter.where_all(PRLIMIT, [(0, False, filter.EQUAL, 0), (2, False, filter.EQUAL, 0), (2, True, filter.EQUAL, 0)])
    filter.install()


# Landlock: rights of version 1, and what later versions add.
READ_FILE, READ_FOLDER, EXECUTE, WRITE = 1 << 2, 1 << 3, 1 << 0, 0x1FF2
REFER, TRUNCATE, DEVICES = 1 << 13, 1 << 14, 1 << 15
FILES_ONLY = READ_FILE | EXECUTE | (1 << 1) | TRUNCATE | DEVICES


def fence_files(readable, executable, writable):
    """Has the process open nothing but what lies there. Returns whether the system can."""
    version = LIBRARY.syscall(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint(1))
    if version <= 0:
        return False
    handled = READ_FILE | READ_FOLDER | EXECUTE | WRITE
    for least, right in ((2, REFER), (3, TRUNCATE), (5, DEVICES)):
        handled |= right if version >= least else 0
    attribute = struct.pack("=Q", handled)
    ruleset = LIBRARY.syscall(ctypes.c_long(444), attribute, ctypes.c_size_t(len(attribute)), ctypes.c_uint(0))
    if ruleset < 0:
        raise failed("landlock_create_ruleset")
    for paths, rights in ((readable, READ_FILE | READ_FOLDER), (executable, READ_FILE | READ_FOLDER | EXECUTE),
                          (writable, (READ_FILE | READ_FOLDER | WRITE | TRUNCATE | REFER) & handled)):
        for path in paths:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            allowed = rights if os.path.isdir(path) else rights & FILES_ONLY
            rule = struct.pack("=Qi", allowed & handled, place)
            if LIBRARY.syscall(ctypes.c_long(445), ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint(0)) != 0:
                raise failed("landlock_add_rule")
            os.close(place)
    if LIBRARY.syscall(ctypes.c_long(446), ctypes.c_int(ruleset), ctypes.c_uint(0)) != 0:
        raise failed("landlock_restrict_self")
    os.close(ruleset)
    return True


def has_landlock():
    return LIBRARY.syscall(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint(1)) > 0


def readable_places():
    """The interpreter's own files and those of its packages."""
    places = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom",
              "/proc/meminfo", "/proc/cpuinfo", "/sys/devices/system/cpu"}
    places |= {sys.prefix, sys.base_prefix, sys.exec_prefix} | {path for path in sys.path if path}
    return sorted(place for place in places if os.path.exists(place))


def limit(memory, seconds, file_bytes):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    for kind, value in ((resource.RLIMIT_AS, used + memory), (resource.RLIMIT_CPU, seconds),
                        (resource.RLIMIT_FSIZE, file_bytes), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 256)):
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def tie():
    """Ends with its parent, and may not be looked into."""
    os.setsid()
    LIBRARY.prctl(1, 9, 0, 0, 0)
    LIBRARY.prctl(4, 0, 0, 0, 0)


def enter(folder, memory, seconds, file_bytes, work):
    """Puts the walls up. Of `work`: `programs()`, what may be started, with the folder to write to; nothing, for a
    candidate, which only reads it; `threads`, whether it may have some."""
    programs = work.programs()
    tie()
    if LIBRARY.prctl(38, 1, 0, 0, 0) != 0:
        raise failed("no_new_privs")
    limit(memory, seconds, file_bytes)
    fence_files([*readable_places(), folder], programs, [folder] if programs else [])
    filter_calls(bool(programs), work.threads)
)python";

} // namespace mtmc::detail
