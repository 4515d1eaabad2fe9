#pragma once
/// The GPU that tests share.

#include <mtmc/backend/cuda/cuda_backend.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace mtmc_test {

/// The GPU of this process; null where there is none, which is said once.
inline mtmc::CudaBackend* gpu() {
  static const auto made = []() -> std::unique_ptr<mtmc::CudaBackend> {
    try {
      return std::make_unique<mtmc::CudaBackend>();
    } catch (const mtmc::Error& error) {
      MESSAGE("SKIPPED: ", std::string(error.what()));
      return nullptr;
    }
  }();
  return made.get();
}

} // namespace mtmc_test
