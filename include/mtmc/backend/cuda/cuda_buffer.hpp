#pragma once
/// Memory of the device.

#include <mtmc/backend/cuda/context.hpp>
#include <mtmc/backend/cuda/mapped_memory.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/readable_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// Memory of the device, mapped by hand or not. Frees it when it dies, unless the context is lost. Move-only.
class CudaBuffer {
public:
  /// Takes over what the other holds; the other is empty.
  CudaBuffer(CudaBuffer&& other) noexcept
      : context_(std::move(other.context_)), address_(std::exchange(other.address_, 0)),
        bytes_(std::exchange(other.bytes_, 0)), mapping_(std::move(other.mapping_)) {}
  /// Takes over what the other holds.
  CudaBuffer& operator=(CudaBuffer&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapping_, other.mapping_);
    return *this;
  }
  ~CudaBuffer() {
    if (context_ == nullptr || address_ == 0 || context_->lost()) return;
    try {
      const detail::CudaContext::Use use(*context_);
      (void)context_->driver().memory_free(address_);
    } catch (const Error&) {
      // The context has just been lost.
      context_->lose("memory could not be freed");
    }
  }

  /// The device's address: what names it in `BoundBuffer::handle`.
  [[nodiscard]] std::uint64_t handle() const noexcept { return address_; }
  /// Size of the buffer.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
  friend class CudaBackend;
  CudaBuffer(std::shared_ptr<detail::CudaContext> context, std::size_t bytes)
      : context_(std::move(context)), bytes_(bytes) {
    context_->demand_alive();
    const detail::CudaContext::Use use(*context_);
    const auto& driver = context_->driver();
    // There are no empty allocations.
    const auto code = driver.memory_allocate(&address_, std::max<std::size_t>(bytes, 1));
    if (code == detail::cuda_code::success) return;
    std::size_t available = 0;
    std::size_t total = 0;
    (void)driver.memory_info(&available, &total);
    throw Error(error_id::backend_memory,
                "a buffer of " + readable_bytes(static_cast<double>(bytes)) + " cannot be allocated: " +
                    driver.describe(code) + "; " + readable_bytes(static_cast<double>(available)) + " of " +
                    readable_bytes(static_cast<double>(total)) + " are free",
                "Choose smaller sizes, or free memory of the device");
  }

  /// What a mapping holds, which frees itself.
  explicit CudaBuffer(std::unique_ptr<detail::CudaMapping> mapping)
      : address_(mapping->address()), bytes_(mapping->bytes()), mapping_(std::move(mapping)) {}

  /// Null where the memory is mapped.
  std::shared_ptr<detail::CudaContext> context_;
  detail::CudaAddress address_ = 0;
  std::size_t bytes_ = 0;
  /// Null where the driver placed the memory.
  std::unique_ptr<detail::CudaMapping> mapping_;
};

} // namespace mtmc
