#pragma once
/// The hardware a kernel runs on.

#include <mtmc/core/data_type.hpp>
#include <mtmc/core/unknown_fields.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One level of the cache hierarchy.
struct CacheLevel {
  /// 1 is nearest to the core.
  int level = 1;
  /// Capacity of one instance in bytes.
  std::int64_t bytes = 0;
  /// Bytes of a line.
  int line_bytes = 64;
  /// How many compute units share one instance.
  int shared_by = 1;
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const CacheLevel&, const CacheLevel&) = default; ///< member by member
};

/// Rates reached by the library's own probes on this very device; 0 = not measured.
struct MeasuredCeilings {
  /// Bytes per second read from memory by all compute units together.
  double read_bandwidth = 0;
  /// Bytes per second read from the last-level cache by all compute units together.
  double cache_bandwidth = 0;
  /// Floating-point operations per second by all compute units together (a fused multiply-add counts two).
  double f32_rate = 0;
  double f64_rate = 0;     ///< the same in double precision
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const MeasuredCeilings&, const MeasuredCeilings&) = default; ///< member by member
};

/// A device as policies, coders and reports see it. Unknown numbers are 0.
struct Device {
  /// Marketing name: "AMD EPYC 7R13", "NVIDIA H100 80GB HBM3".
  std::string name{};
  /// "cpu" or "gpu", or what a host's backend calls its own.
  std::string kind{};
  /// Instruction set or architecture: "x86-64 avx2 fma", "sm_90a".
  std::string arch{};
  /// Cores of a CPU, multiprocessors of a GPU.
  int compute_units = 1;
  /// Bits of the widest vector register of a CPU; lanes times 32 of a GPU's warp.
  int vector_bits = 0;
  /// Bytes of the main memory.
  std::int64_t memory_bytes = 0;
  /// On-chip memory a block can manage itself, per compute unit (shared memory); 0 on a CPU.
  std::int64_t shared_memory_bytes = 0;
  /// Nearest first.
  std::vector<CacheLevel> caches{};
  /// Nominal clock in hertz; 0 = unknown.
  double clock_hz = 0;
  /// Bytes per second by the data sheet.
  double memory_bandwidth = 0;
  /// Dense operations per second by the data sheet, by data type name ("f32", "f16", ...).
  std::map<std::string, double> peak_rates{};
  /// What was measured on this device.
  MeasuredCeilings measured{};
  /// Instruction set extensions and abilities that a coder may use: "avx2", "fma", "openmp", ...
  std::vector<std::string> features{};
  /// What a kernel's text may include by name, as in `#include <name>`: what is really there. Empty = not
  /// said.
  std::vector<std::string> headers{};
  /// What judges with it, by name: "compiler" -> "g++ 12.2.0", "compile_command" -> "/usr/bin/c++ -O3 ...",
  /// "driver" -> ...
  std::map<std::string, std::string> software{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const Device&, const Device&) = default; ///< member by member
};

} // namespace mtmc
