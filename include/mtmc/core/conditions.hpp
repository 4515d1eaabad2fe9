#pragma once
/// What a timing met on the machine, besides the kernel that was timed.

#include <mtmc/requirements.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// A reading of a device's and its host's counters, as a backend offers it with `conditions()`. Two readings
/// are compared: what is said to grow never runs backwards. What a machine does not tell is absent, or empty.
///
/// A backend that can tell counts only while it times, because what is done between two timed groups disturbs
/// nothing; one that cannot counts all the time.
struct Conditions {
  /// Grows: wall-clock seconds over which the counters were watched. 0 = they are not.
  double watched_seconds = 0;
  /// Processors of the host that were watched.
  int processors = 0;
  /// Grows: processor seconds that everything but the timed kernel and the thread that waits for it used on
  /// the watched processors.
  std::optional<double> others_seconds{};
  /// Grows: processor seconds that a hypervisor gave to others while a watched processor had work to do.
  std::optional<double> stolen_seconds{};
  /// Grows: variance, in seconds squared, that the counters' coarseness gives each of the two above.
  double counter_variance = 0;
  /// Grows: how often the clock was lowered for heat or power, by the part or the reason: "core", "package",
  /// "sw_power_cap", ...
  std::map<std::string, std::int64_t> throttle_events{};
  /// The clock at the moment of the reading.
  std::optional<double> clock_hz{};
  /// What else the device tells of that moment, by the keys of the environment record.
  std::map<std::string, double> readings{};
};

/// Keys of `Evaluation::environment` that say what the kernels were compiled with and what the timing met.
/// Numbers are written as text.
namespace environment_key {
/// What runs the compiler as it ran for the kernel's code, up to the names of the files: "/usr/bin/c++ -fPIC
/// -O3". Of NVRTC: "nvrtc" and its options. Also a key of `Device::software`.
inline constexpr const char* compile_command = "compile_command";
/// Variables that decide how a kernel's threads run: "OMP_NUM_THREADS=2 OMP_PROC_BIND=spread ...".
inline constexpr const char* kernel_environment = "kernel_environment";
/// What the audit of a promotion did: "2046 calls at 74 sizes, in rows that followed up to 32768 others".
inline constexpr const char* audit = "audit";
/// Whether all branches of a promoted kernel went both ways in its audit, and else on which lines those stand
/// that did not, so that nobody has seen what is behind them; or "not observed".
inline constexpr const char* branches = "branches";
/// Why right results of a task tell little, as where PyTorch's own are mostly far from the truth; absent if
/// nothing is known against it.
inline constexpr const char* flaw = "flaw";
/// Second half of the times over the first half, at the size where it is furthest from 1.
inline constexpr const char* drift = "drift";
/// Average number of processors that others kept busy while the kernels were timed.
inline constexpr const char* others_busy = "others_busy";
/// Share of the processors' time that the hypervisor took.
inline constexpr const char* steal = "steal";
/// How often the clock was lowered for heat or power, and why where that is known: "2 (sw_power_cap)".
inline constexpr const char* throttled = "throttled";
/// Megahertz: at the end of the timing where that is known, else of the data sheet.
inline constexpr const char* clock = "clock_mhz";
/// Of a GPU at the end of the timing: clock of its memory, temperature, power.
inline constexpr const char* memory_clock = "memory_clock_mhz";
/// Degrees Celsius.
inline constexpr const char* temperature = "temperature_celsius";
/// Watts.
inline constexpr const char* power = "power_watts";
/// Other processes that computed on the GPU within about the last second. No reason for a warning: those of a
/// pool of workers take turns.
inline constexpr const char* other_processes = "other_processes";
/// Which of the above were bad enough for a warning, by name, with blanks between; absent if none was.
inline constexpr const char* disturbed_by = "disturbed_by";
} // namespace environment_key

} // namespace mtmc
