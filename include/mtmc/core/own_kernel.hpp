#pragma once
/// Kernels of this library's own: to judge with, to measure ceilings with, to empty caches with.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// What the compilation of an own kernel made. Throws `Error` (`mtmc.backend.001`) if that is nothing.
/// `purpose` completes "the kernel that ...".
template <class Program>
[[nodiscard]] std::shared_ptr<Program> own_program(CompileResult<Program> compiled,
                                                   std::string_view purpose) {
  if (compiled.program) return std::move(compiled.program);
  const std::string reason = compiled.timed_out || compiled.diagnostics.empty()
                                 ? " in time"
                                 : ": " + compiled.diagnostics.front().message;
  throw Error(error_id::backend_compiler,
              "the kernel that " + std::string(purpose) + " cannot be compiled" + reason,
              "See that the device's compiler is whole, and allow it more time");
}

} // namespace mtmc::detail
