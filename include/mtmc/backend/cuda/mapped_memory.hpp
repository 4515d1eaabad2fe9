#pragma once
/// Memory of the device that is mapped by hand, with nothing mapped beside it.

#include <mtmc/backend/cuda/context.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/readable_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Memory in the middle of addresses that nobody else is given: a kernel that touches a byte before its first
/// or behind its last faults.
class CudaMapping {
public:
  /// Addresses kept free on either side. Bytes; more than a wrong row index usually misses by.
  static constexpr std::size_t distance = std::size_t{64} << 20;

  /// `bytes` is a multiple of the granularity. Throws `Error` (`mtmc.backend.002`) where there is no such
  /// memory.
  CudaMapping(std::shared_ptr<CudaContext> context, std::size_t bytes)
      : context_(std::move(context)), bytes_(bytes) {
    context_->demand_alive();
    const CudaContext::Use use(*context_);
    if (const auto code = map(); code != cuda_code::success) {
      free();
      throw Error(error_id::backend_memory,
                  "guarded memory of " + readable_bytes(static_cast<double>(bytes)) +
                      " cannot be mapped: " + context_->driver().describe(code),
                  "Choose smaller sizes, or free memory of the device");
    }
  }
  CudaMapping(const CudaMapping&) = delete;
  CudaMapping& operator=(const CudaMapping&) = delete;
  ~CudaMapping() {
    if (context_->lost()) return;
    try {
      const CudaContext::Use use(*context_);
      // What is queued may still write to it.
      (void)context_->driver().stream_synchronize(context_->stream());
      free();
    } catch (const Error&) {
      context_->lose("guarded memory could not be freed");
    }
  }

  /// Of the first byte.
  [[nodiscard]] CudaAddress address() const noexcept { return reserved_ + distance; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
  [[nodiscard]] CudaCode map() {
    const auto& driver = context_->driver();
    const MemoryLocation location{.device = context_->device()};
    const MemoryKind kind{.location = location};
    const MemoryAccess access{.location = location};
    if (const auto code = driver.address_reserve(&reserved_, bytes_ + 2 * distance, 0, 0, 0);
        code != cuda_code::success) {
      reserved_ = 0;
      return code;
    }
    std::uint64_t memory = 0;
    auto code = driver.memory_create(&memory, bytes_, &kind, 0);
    if (code != cuda_code::success) return code;
    code = driver.memory_map(address(), bytes_, 0, memory, 0);
    mapped_ = code == cuda_code::success;
    // The mapping keeps it.
    (void)driver.memory_release(memory);
    return mapped_ ? driver.memory_set_access(address(), bytes_, &access, 1) : code;
  }
  void free() const noexcept {
    const auto& driver = context_->driver();
    if (mapped_) (void)driver.memory_unmap(address(), bytes_);
    if (reserved_ != 0) (void)driver.address_free(reserved_, bytes_ + 2 * distance);
  }

  std::shared_ptr<CudaContext> context_;
  std::size_t bytes_;
  CudaAddress reserved_ = 0;
  bool mapped_ = false;
};

/// Whether a context can map guarded memory, and if not, why; tried once, since a virtual machine may have
/// the functions and not the permission. `expendable`: whether a fault may cost this process its context.
[[nodiscard]] inline GuardedAllocation guarded_allocation_in(const std::shared_ptr<CudaContext>& context,
                                                             bool expendable) {
  if (!expendable)
    return {0, "a fault would cost this process its device; a worker (CudaEvaluator) may be lost"};
  const auto& driver = context->driver();
  if (!driver.maps_memory()) return {0, "the driver does not map memory"};
  int supported = 0;
  if (driver.device_attribute(&supported, DeviceAttribute::maps_memory, context->device()) !=
          cuda_code::success ||
      supported == 0)
    return {0, "the device does not map memory"};
  std::size_t granularity = 0;
  const MemoryKind kind{.location = {.device = context->device()}};
  constexpr int smallest = 0;
  {
    const CudaContext::Use use(*context);
    if (const auto code = driver.memory_granularity(&granularity, &kind, smallest);
        code != cuda_code::success || granularity == 0)
      return {0, "cuMemGetAllocationGranularity gave " + driver.describe(code)};
  }
  if (CudaMapping::distance % granularity != 0)
    return {0, "memory is mapped in pieces of " + readable_bytes(static_cast<double>(granularity))};
  try {
    const CudaMapping trial(context, granularity);
  } catch (const Error& error) {
    return {0, error.message()};
  }
  return {granularity, {}};
}

} // namespace mtmc::detail
