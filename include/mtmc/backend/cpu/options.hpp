#pragma once

#include <mtmc/requirements.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The defences between a candidate and the rest of the machine that can be switched off one by one, to show
/// what each of them stops. Never switch one off where candidates are not trusted.
struct CpuDefences {
  /// Tokens of the text, before and after preprocessing: headers, assembly, attributes, pragmas.
  bool text_screen = true;
  /// Tables of the object file: writable variables, constructors, functions of other libraries.
  bool object_screen = true;
  /// Landlock, where the system has it: the compiler's process opens its own files and nothing else. Without
  /// it, what the compiler has read is looked at before anything of it is believed.
  bool compiler_fence = true;
  /// System calls of the kernel's process: memory and its own threads only.
  bool sandbox = true;
  /// The kernel's process can name no other one: it is in a process namespace of its own, where the system
  /// gives one (Linux with user namespaces, or root). Where it does not, `sandbox` alone stands in the way.
  bool process_namespace = true;
  /// Between two calls the kernel's process stands still.
  bool freeze = true;

  friend bool operator==(const CpuDefences&, const CpuDefences&) = default; ///< member by member
};

/// What `CpuDefences` was called before 0.2.
using CpuLocks [[deprecated("is CpuDefences now")]] = CpuDefences;

/// How a `CpuBackend` compiles and runs kernels. The defaults suit an engineer's own machine.
struct CpuBackendOptions {
  /// The C++ compiler: a path, or a name looked for in `search_path`; empty = the first of c++, g++, clang++.
  std::string compiler{};
  /// Flags every kernel is compiled with. GNU mode, because only there GCC may contract a*b+c to one fused
  /// multiply-add without fast-math.
  std::vector<std::string> flags{"-std=gnu++20", "-O3", "-march=native", "-fopenmp"};
  /// Flags added after `flags`.
  std::vector<std::string> extra_flags{};
  /// Folders, separated by colons, in which the compiler, its assembler and its linker are looked for. The
  /// environment of the host is never read.
  std::string search_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  /// OpenMP threads of a kernel; 0 = one for each core this process may use.
  int threads = 0;
  /// Entries "NAME=value" for the environment of kernels, in place of this library's own of the same name.
  std::vector<std::string> kernel_environment{};
  /// Longest compilation where `CompileOptions` gives no deadline.
  std::chrono::milliseconds compile_timeout{60'000};
  /// Bytes of address space the compiler may use where `CompileOptions` gives no limit.
  std::int64_t compiler_memory_limit = std::int64_t{4} << 30;
  /// Bytes of its own memory (heap, stacks, globals) a kernel may use besides its buffers; 0 = 8 GiB, or half
  /// of the machine's memory where that is less.
  std::int64_t kernel_memory_limit = 0;
  /// Where the private folder for sources and compiled programs is made; it must allow execution.
  std::string temporary_folder = "/tmp";
  /// A folder of the host in which the compiled runner is kept from one run of the host to the next; empty =
  /// nowhere. Only what the host trusts may be able to write there.
  std::string cache_folder{};
  /// A folder, "/tmp" say, with the lock that keeps the timings of this user's processes undisturbed by each
  /// other's compilations, runs and timings (see `DeviceLock`); empty = processes do not wait for each other.
  /// Time spent waiting for the lock counts for no deadline of a run.
  std::string device_lock_folder{};
  /// Headers a kernel may include besides those of the C++ library that compute, as in `#include <name>`.
  std::vector<std::string> allowed_headers{};
  /// Functions a kernel may call besides those of the C and C++ library that compute, as the linker knows
  /// them. What they do is the host's responsibility.
  std::vector<std::string> allowed_functions{};
  /// Folders besides its own from which the compiler may read headers, those that `extra_flags` do not name.
  std::vector<std::string> compiler_folders{};
  /// What is defended against; leave all on outside of measurements.
  CpuDefences defences{};
  /// Memory of freed buffers that is kept for the next ones, in bytes; 0 = none. Without the sandbox none is.
  std::int64_t reserved_bytes = std::int64_t{128} << 20;
  /// How many compiled programs are kept for the case that the same kernel comes again.
  std::size_t cached_programs = 256;
};

} // namespace mtmc
