#pragma once
/// What a recorded kernel becomes.

#include <mtmc/requirements.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// A kernel's binary and how it is launched.
struct LoweredKernel {
  std::string entry;                            ///< name of the function in the binary
  std::string ptx;                              ///< what the assembler got
  std::string cubin;                            ///< the binary
  std::int64_t threads = 128;                   ///< of a block, in x
  std::array<std::int64_t, 3> cluster{1, 1, 1}; ///< blocks of a cluster
  std::int64_t shared_bytes = 0;                ///< dynamic shared memory of a block
  /// Bytes that the first of the two pointers behind all other parameters has to point to, for each block,
  /// where the kernel makes descriptors of tensors (`with_launcher_memory`); 0: it is null.
  std::int64_t global_scratch_bytes = 0;
  /// The same of the second.
  std::int64_t profile_scratch_bytes = 0;
};

} // namespace mtmc
