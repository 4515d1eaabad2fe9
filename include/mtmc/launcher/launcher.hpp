#pragma once
/// A kernel as plain C++ that calls it: what an engine compiles in, without the SDK.

#include <mtmc/launcher/launcher_evidence.hpp>
#include <mtmc/launcher/launcher_head.hpp>
#include <mtmc/launcher/launcher_text.hpp>

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Behind `launcher_functions`.
inline constexpr std::string_view cpp_launcher_support = R"(
  // Memory that only the kernel uses. Each thread keeps its own from call to call, as it was when the kernel was
  // measured: every page of fresh memory would be a page fault.
  template <int> static void* scratch(Number bytes) {
    struct Memory {
      void* place = nullptr;
      Number bytes = 0;
      void free() { ::operator delete(place, std::align_val_t{64}); }
      ~Memory() { free(); }
    };
    static thread_local Memory memory;
    if (memory.bytes < bytes) {
      void* const larger = ::operator new(static_cast<std::size_t>(bytes), std::align_val_t{64});
      memory.free();
      memory.place = larger;
      memory.bytes = bytes;
    }
    return memory.place;
  }

  static void fill_with_zeros(void* memory, Number bytes) {
    if (bytes > 0) std::memset(memory, 0, static_cast<std::size_t>(bytes));
  }

  // Pass as whatever pointer or number the entry function asks for.
  struct Pointer {
    const void* memory;
    template <class T> operator T*() const { return static_cast<T*>(const_cast<void*>(memory)); }
  };
  template <class Value> struct Scalar {
    Value value;
    template <class T> operator T() const { return static_cast<T>(value); }
  };
};
} // namespace
)";

} // namespace detail

/// C++17 text that runs a kernel as its launch lines say and needs no part of this library. `compute_units`
/// is written in as a constant. Symbols that no scalar argument holds follow the task's arguments, which come
/// in their order, as `std::int64_t` parameters. Its head says how to compile it so that it is as fast as it
/// was measured, and what `evidence` knows.
///
/// Of a C++ kernel: a source file with the kernel's text and behind it `void launch_<task>(...)`, which
/// calls the launches in order. It may be called from several threads; each keeps its own scratch memory
/// until it ends. That function is all that can be seen from outside, so that a kernel's functions and types
/// clash with none of the program; for two kernels of one task give the tasks different names. Where the
/// kernel uses OpenMP, the file does not compile without it.
///
/// Of a CUDA kernel: a header for CUDA's driver API and NVRTC (link with -lcuda -lnvrtc) with a class
/// `launcher_<task>`, in an inline namespace of the kernel's own. It holds the kernel's text, compiles it
/// when it is made, for the device of the current context and with the options of the measurement, and is
/// then called with a stream, memory for the scratch buffers and the arguments, buffers as device addresses;
/// `scratch_bytes(...)` says how much memory.
///
/// Where the evidence has a `binary_hash`, the head says of which binary verdict and times are. That is a
/// record, no promise: the text is compiled anew, by the engine's compiler or the engine's NVRTC, beside code
/// of the launcher's own, and what comes of it is another binary. Only a CUDA launcher with
/// `LauncherEvidence::binary` runs what was judged: it holds that CUBIN, whose SHA-256 was compared with
/// `binary_hash` here, and hands it to the driver as it is; it needs no NVRTC, runs on devices of the judge's
/// architecture alone, and takes no options. It does not look at its own bytes again when it runs, and
/// drivers, clocks and neighbours are the engine's: the binary is the same, times need not be. A C++ kernel's
/// binary cannot be held, because the engine's linker takes none from a text.
///
/// Throws `Error`: `mtmc.report.001` for kernels of another language, for tensor maps, and for a binary that
/// is not the one that was judged or not a CUDA kernel's; `mtmc.launch.001` for malformed lines.
[[nodiscard]] std::string launcher_source(const Kernel& kernel, const Task& task, int compute_units,
                                          const LauncherEvidence& evidence = {});

/// The header that declares what `launcher_source` defines, with the same head; empty for CUDA kernels, whose
/// launcher is a header. Throws `Error` as `launcher_source`.
[[nodiscard]] std::string launcher_header(const Kernel& kernel, const Task& task,
                                          const LauncherEvidence& evidence = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/launcher/launcher_inl.hpp>
#endif
