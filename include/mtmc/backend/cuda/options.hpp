#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mtmc {

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
  /// A folder, "/tmp" say, with the lock that keeps the timings of this user's processes on the same device
  /// undisturbed by each other's runs and timings (see `DeviceLock`); empty = each process minds itself only.
  std::string device_lock_folder{};
};

} // namespace mtmc
