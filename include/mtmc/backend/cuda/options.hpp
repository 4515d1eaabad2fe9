#pragma once

#include <mtmc/requirements.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How a `CudaBackend` finds its libraries and its device, and compiles kernels.
struct CudaBackendOptions {
  /// Number of the device, as the driver counts them in this process.
  int device = 0;
  /// The driver's library; empty = libcuda.so.1 where the loader finds it.
  std::string driver_library{};
  /// NVIDIA's run-time compiler; empty = the newest that fits the driver, where the loader finds it or in
  /// `toolkit_folder`.
  std::string nvrtc_library{};
  /// A CUDA toolkit, for its headers (`cuda_fp16.h`, `mma.h`, ...) and its compiler; empty = /usr/local/cuda
  /// if it is there. Without one, kernels include nothing but the standard integer types.
  std::string toolkit_folder{};
  /// Flags every kernel is compiled with, besides those for the architecture and the headers.
  std::vector<std::string> flags{"--std=c++17"};
  /// Longest compilation where `CompileOptions` gives no deadline.
  std::chrono::milliseconds compile_timeout{60'000};
  /// Bytes of address space that one compilation may add to what the compiler itself takes, where
  /// `CompileOptions` gives no limit; 0 = no limit.
  std::int64_t compile_memory_bytes = std::int64_t{4} << 30;
  /// Most compilations at once. At least 1.
  int parallel_compiles = 4;
  /// The program in whose process kernels are compiled, `{"mtmc-worker"}` say, or any other that calls
  /// `play_role` with `cuda_worker()` first of all. Empty: this very program, if it does so (in a worker
  /// it always does); else this process itself, where a compilation ends only if the compiler asks now and
  /// then whether it shall go on, there is no limit on memory, and a crash of the compiler is one of this
  /// process.
  std::vector<std::string> compiler_command{};
  /// Landlock, where the system has it, keeps the compiler to the headers of the toolkit. Without it another
  /// process opens them for it and seccomp forbids the rest, in a process of its own; in this process itself
  /// the text alone is looked at. To be switched off to see what that holds; has no JSON form.
  bool landlock = true;
  /// Where the compiler process gets a private folder, for precompiled headers of the toolkit (up to 600 MB).
  std::string temporary_folder = "/tmp";
  /// A folder, "/tmp" say, with the lock that keeps the timings of this user's processes on the same device
  /// undisturbed by each other's runs and timings (see `DeviceLock`); empty = processes do not wait for each
  /// other.
  std::string device_lock_folder{};
  /// Whether this process may lose the device to a kernel that reads where nothing lies, so that some checks
  /// take place in memory with nothing beside it. A worker sets it, since it is replaced. Any other process
  /// would have to be: there only red zones show what a kernel does beside its buffers, and
  /// `environment["guarded_allocation"]` says so.
  bool expendable_process = false;
};

} // namespace mtmc
