#pragma once
/// A compiled kernel as bytes.

#include <mtmc/requirements.hpp>

#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What a backend loads of a program, so that it can be kept and loaded elsewhere (`CudaBackend::binary`).
struct ProgramBinary {
  /// Exactly the bytes that are loaded: a CUBIN. Their SHA-256 is the program's `binary_hash`.
  std::string bytes{};
  /// What the binary calls the entry of each launch, in the order of the kernel's launch lines.
  std::vector<std::string> entries{};

  friend bool operator==(const ProgramBinary&, const ProgramBinary&) = default; ///< member by member
};

} // namespace mtmc
