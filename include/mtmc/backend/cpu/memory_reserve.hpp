#pragma once
/// Memory of freed buffers, kept for the next ones.

#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Hands out shared memory and takes it back. Getting 16 MiB from the system takes 13 ms and giving them back
/// 4 ms; wiping them takes 1 ms. No memory that a runner may still have mapped is ever handed out again, and
/// none that holds what another kernel was shown or computed. May be used from several threads.
class MemoryReserve : public std::enable_shared_from_this<MemoryReserve> {
public:
  /// Keeps at most `max_bytes`.
  explicit MemoryReserve(std::int64_t max_bytes)
      : max_bytes_(static_cast<std::size_t>(std::max<std::int64_t>(max_bytes, 0))) {}

  /// Memory that is all zeros. Comes back by itself when its last owner is gone. Throws `Error`
  /// (`mtmc.backend.002`) if it could not be allocated.
  [[nodiscard]] std::shared_ptr<const SharedMemory> allocate(std::size_t bytes) {
    auto memory = find(bytes);
    if (memory == nullptr) {
      try {
        memory = std::make_unique<SharedMemory>(bytes);
      } catch (const Error&) {
        if (!clear()) throw;
        memory = std::make_unique<SharedMemory>(bytes);
      }
    }
    return {memory.release(), [reserve = shared_from_this()](const SharedMemory* freed) {
              reserve->take_back(std::unique_ptr<const SharedMemory>(freed));
            }};
  }

  /// Bytes that are kept and not in use.
  [[nodiscard]] std::size_t bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
  }

private:
  /// Less than this is quickly had from the system, and not worth a descriptor.
  static constexpr std::size_t smallest = std::size_t{1} << 20;

  [[nodiscard]] std::unique_ptr<const SharedMemory> find(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find_if(free_.begin(), free_.end(),
                                    [&](const auto& known) { return known->content().size() == bytes; });
    if (found == free_.end()) return nullptr;
    auto memory = std::move(*found);
    free_.erase(found);
    bytes_ -= memory->mapped_bytes();
    return memory;
  }

  /// Frees all that is kept. False if there was nothing.
  bool clear() {
    const std::scoped_lock lock(mutex_);
    const bool any = !free_.empty();
    free_.clear();
    bytes_ = 0;
    return any;
  }

  void take_back(std::unique_ptr<const SharedMemory> memory) noexcept {
    const auto size = memory->mapped_bytes();
    if (size < smallest || size > max_bytes_ || memory->shown()) return;
    memory->wipe();
    const std::scoped_lock lock(mutex_);
    try {
      free_.push_back(std::move(memory));
    } catch (const std::bad_alloc&) {
      return;
    }
    bytes_ += size;
    // The oldest are of a size that is not asked for any more.
    auto kept = free_.begin();
    for (; bytes_ > max_bytes_; ++kept) bytes_ -= (*kept)->mapped_bytes();
    free_.erase(free_.begin(), kept);
  }

  std::size_t max_bytes_;
  mutable std::mutex mutex_;
  /// The one freed last at the end.
  std::vector<std::unique_ptr<const SharedMemory>> free_;
  std::size_t bytes_ = 0;
};

} // namespace mtmc::detail
