#pragma once
/// Everything that can be set about `PyTorchEvaluator`.

#include <mtmc/backend/python/python_options.hpp>
#include <mtmc/core/enum_names.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Whether operators of PyTorch may remain in a candidate.
enum class LibraryCalls {
  allow,  ///< they may
  refuse, ///< a candidate whose call has one is refused
};

namespace detail {
inline constexpr EnumName<LibraryCalls> library_calls_names[] = {
    {LibraryCalls::allow, "allow"},
    {LibraryCalls::refuse, "refuse"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<LibraryCalls>> enum_names(LibraryCalls) noexcept {
  return detail::library_calls_names;
}

/// Settings of `PyTorchEvaluator`.
struct PyTorchEvaluatorOptions {
  PythonOptions python{}; ///< where Python is; it needs torch and triton
  /// "cuda", or "cpu", where candidates can launch no kernels of their own.
  std::string device = "cuda";
  /// Which device of the kind.
  int ordinal = 0;
  /// Where judgements lock a GPU, so that processes of one user do not disturb each other's times: "/tmp",
  /// say, for all of them. Empty: none is locked.
  std::string device_lock_folder{};
  /// Whether operators of PyTorch may remain; their share of the time is in
  /// `Evaluation::resources["library_share"]` in any case.
  LibraryCalls library_calls = LibraryCalls::allow;
  /// Configurations of autotuned kernels that are tried: in the i-th all of them take their i-th, or their
  /// last one. The fastest that is right is judged; `Evaluation::environment["configuration"]` says which.
  int configurations = 8;
  /// Inputs that are compared with the truth.
  int cases = 2;
  /// Probability with which the interval of a speed-up covers the true one. From (0.5, 1).
  double confidence = 0.95;
  /// Seconds that timing may take when a candidate is explored, beyond the fewest pairs.
  double explore_seconds = 1.5;
  double promote_seconds = 3;       ///< the same for a promotion
  int explore_pairs = 28;           ///< most timed pairs
  int promote_pairs = 56;           ///< most timed pairs of a promotion
  double call_seconds = 20;         ///< a call may take; seconds
  double compiled_seconds = 240;    ///< a call may take of a problem that `torch.compile` is given first
  double evaluation_seconds = 300;  ///< one evaluation may take after compilation
  std::size_t kept_recordings = 64; ///< recordings and binaries that are kept, by text
  /// Key of all inputs, for tests that must repeat. Without one it is secret and comes from the operating
  /// system. Never set it where candidates are not trusted.
  std::optional<std::uint64_t> seed{};
};

} // namespace mtmc
