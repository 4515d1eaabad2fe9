#pragma once
/// Memory that the judge shares with runners, one piece for each buffer.

#include <mtmc/core/error.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/parallel.hpp>
#include <mtmc/support/readable_bytes.hpp>
#include <mtmc/support/streaming_copy.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The number behind a word at the start of a line of a file of the system, or at the start of the file where
/// the word is empty. Nothing if there is none.
[[nodiscard]] inline std::optional<std::uint64_t> number_in(const std::string& file, std::string_view word) {
  std::string text;
  try {
    text = '\n' + read_file(file);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  auto at = text.find('\n' + std::string(word));
  if (at == std::string::npos) return std::nullopt;
  at = text.find_first_not_of(' ', at + 1 + word.size());
  if (at == std::string::npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

/// Bytes that a container may still take, by the files of its control group in a folder like /sys/fs/cgroup;
/// files in memory that nobody uses count as free. Nothing where there is no limit.
[[nodiscard]] inline std::optional<std::uint64_t> memory_left_to_container(const std::string& folder) {
  struct Names {
    const char* limit;
    const char* used;
    const char* reclaimable;
    const char* statistics;
  };
  constexpr std::array<Names, 2> versions{
      {{"/memory.max", "/memory.current", "inactive_file", "/memory.stat"},
       {"/memory/memory.limit_in_bytes", "/memory/memory.usage_in_bytes", "total_inactive_file",
        "/memory/memory.stat"}}};
  for (const auto& names : versions) {
    const auto limit = number_in(folder + names.limit, "");
    const auto used = number_in(folder + names.used, "");
    if (!limit || !used) continue;
    const auto free = number_in(folder + names.statistics, names.reclaimable).value_or(0);
    const auto needed = *used - std::min(free, *used);
    return *limit - std::min(needed, *limit);
  }
  return std::nullopt;
}

/// Bytes of memory that are available without swapping, by the kernel's own estimate and the limit of the
/// container this process is in; 0 if unknown.
[[nodiscard]] inline std::uint64_t available_memory() {
  const auto kilobytes = number_in("/proc/meminfo", "MemAvailable:");
  const auto left = memory_left_to_container("/sys/fs/cgroup");
  if (!kilobytes) return left.value_or(0);
  const auto available = *kilobytes * 1024;
  // 0 would say that nothing is known.
  return left ? std::max<std::uint64_t>(1, std::min(*left, available)) : available;
}

/// One piece of shared memory, mapped into this process with all its pages present. Its size can never
/// change, not even by a process that holds its descriptor, so that this process cannot be killed by reading
/// it.
class SharedMemory {
public:
  /// Throws `Error` (`mtmc.backend.002`) if the memory could not be allocated.
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    mapped_bytes_ = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
    // Linux hands out memory it does not have, and kills somebody when it is touched: ask before.
    const auto available = available_memory();
    if (mapped_bytes_ < bytes || (available != 0 && mapped_bytes_ > available))
      refuse(readable_bytes(static_cast<double>(available)) + " are available");
    descriptor_.reset(::memfd_create("mtmc-buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!descriptor_) refuse(std::strerror(errno));
    const int error = ::posix_fallocate(descriptor_.get(), 0, static_cast<off_t>(mapped_bytes_));
    if (error != 0) refuse(std::strerror(error));
    if (::fcntl(descriptor_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      refuse(std::strerror(errno));
    void* const base = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                              descriptor_.get(), 0);
    if (base == MAP_FAILED) refuse(std::strerror(errno));
    base_ = static_cast<std::byte*>(base);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() {
    // Runners may have it mapped until their next command; the hole gives the pages back at once.
    ::fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                static_cast<off_t>(mapped_bytes_));
    ::munmap(base_, mapped_bytes_);
  }

  /// The bytes that were asked for, as a runner sees them. What is staged is not among them.
  [[nodiscard]] std::span<std::byte> content() const noexcept { return {base_, bytes_}; }

  /// Keeps bytes that are to stand at `offset` once `settle` is called. They must lie within `content`.
  void stage(std::size_t offset, std::span<const std::byte> bytes) const {
    if (bytes.empty()) return;
    make_room(offset, bytes.size());
    pending_.push_back({offset, bytes.size(), nullptr, staged_.size(), {}, {}});
    staged_.insert(staged_.end(), bytes.begin(), bytes.end());
  }
  /// The same without a copy: until then `owner` keeps the bytes, which nobody changes.
  void stage_shared(std::size_t offset, std::span<const std::byte> bytes,
                    std::shared_ptr<const void> owner) const {
    if (bytes.empty()) return;
    make_room(offset, bytes.size());
    pending_.push_back({offset, bytes.size(), bytes.data(), 0, std::move(owner), {}});
  }
  /// The same for `size` times the same byte.
  void stage_fill(std::size_t offset, std::size_t size, std::byte value) const {
    if (size == 0) return;
    make_room(offset, size);
    pending_.push_back({offset, size, nullptr, 0, {}, value});
  }
  /// Puts what is staged where it belongs; past this processor's caches, unless it is to be found there.
  void settle(bool cached = true) const {
    for (const auto& part : pending_) {
      auto* const to = base_ + part.offset;
      const auto* const from = part.shared != nullptr ? part.shared : staged_.data() + part.place;
      if (part.value && cached)
        std::memset(to, std::to_integer<int>(*part.value), part.size);
      else if (part.value)
        fill_streaming(to, *part.value, part.size);
      else if (cached)
        std::memcpy(to, from, part.size);
      else
        copy_streaming(to, from, part.size);
    }
    forget_pending();
  }
  /// Bytes that are staged.
  [[nodiscard]] std::size_t pending_bytes() const noexcept {
    std::size_t total = 0;
    for (const auto& part : pending_) total += part.size;
    return total;
  }
  /// Makes all bytes zero and forgets what is staged.
  void wipe() const noexcept {
    forget_pending();
    fill_streaming(base_, std::byte{0}, mapped_bytes_);
  }

  /// Held by every runner that was given the descriptor, until its process has ended: what it says of its
  /// mappings proves nothing.
  [[nodiscard]] std::shared_ptr<const void> showing() const noexcept { return showing_; }
  /// Whether a runner may have it mapped.
  [[nodiscard]] bool shown() const noexcept { return showing_.use_count() > 1; }
  /// Bytes of the mapping: whole pages.
  [[nodiscard]] std::size_t mapped_bytes() const noexcept { return mapped_bytes_; }
  /// To be passed to a runner, which maps it.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }

private:
  /// What is to stand at `offset`: one byte again and again, else bytes of others, else staged ones.
  struct Pending {
    std::size_t offset = 0;
    std::size_t size = 0;
    const std::byte* shared = nullptr;
    std::size_t place = 0;
    std::shared_ptr<const void> owner;
    std::optional<std::byte> value;
  };

  void forget_pending() const noexcept {
    pending_.clear();
    staged_.clear();
  }

  /// Forgets what would be covered whole, so that a buffer that is loaded again and never run does not grow.
  void make_room(std::size_t offset, std::size_t size) const {
    std::erase_if(pending_, [&](const Pending& part) {
      return part.offset >= offset && part.offset + part.size <= offset + size;
    });
    if (pending_.empty()) staged_.clear();
  }

  [[noreturn]] void refuse(const std::string& reason) const {
    throw Error(error_id::backend_memory,
                "a buffer of " + readable_bytes(static_cast<double>(bytes_)) +
                    " cannot be allocated: " + reason,
                "Choose smaller sizes, free memory, or judge fewer candidates at a time");
  }

  std::size_t bytes_;
  std::size_t mapped_bytes_ = 0;
  FileDescriptor descriptor_;
  std::byte* base_ = nullptr;
  // Like the bytes behind `content`, of which a const object is a handle, no part of its own value.
  mutable std::vector<std::byte> staged_;
  mutable std::vector<Pending> pending_;
  std::shared_ptr<const void> showing_ = std::make_shared<char>();
};

/// Settles all of them, several at a time if there is much to copy.
inline void settle_all(std::span<const std::shared_ptr<const SharedMemory>> memories, bool cached) {
  constexpr std::size_t worth_threads = std::size_t{8} << 20;
  std::size_t bytes = 0;
  for (const auto& memory : memories) bytes += memory->pending_bytes();
  const int threads = bytes >= worth_threads ? static_cast<int>(threads_for_memory()) : 1;
  for_each_parallel(memories.size(), threads, [&](std::size_t i) { memories[i]->settle(cached); });
}

/// All live buffers of one backend, by the number that is their handle. Numbers are never reused. May be used
/// from several threads.
class BufferRegistry {
public:
  [[nodiscard]] std::uint64_t add(std::shared_ptr<const SharedMemory> memory) {
    const std::scoped_lock lock(mutex_);
    buffers_.emplace(++last_, std::move(memory));
    return last_;
  }
  void remove(std::uint64_t handle) {
    const std::scoped_lock lock(mutex_);
    buffers_.erase(handle);
  }
  /// The buffer of that handle, or null.
  [[nodiscard]] std::shared_ptr<const SharedMemory> find(std::uint64_t handle) const {
    const std::scoped_lock lock(mutex_);
    const auto found = buffers_.find(handle);
    return found == buffers_.end() ? nullptr : found->second;
  }

private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<const SharedMemory>> buffers_;
  std::uint64_t last_ = 0;
};

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

/// Memory for one or more arguments, shared with the runners of the programs it is bound to. Page-aligned,
/// all pages present. Frees the memory when it dies. Move-only.
class CpuBuffer {
public:
  /// Takes over what the other holds; the other is empty.
  CpuBuffer(CpuBuffer&& other) noexcept
      : registry_(std::move(other.registry_)), memory_(std::move(other.memory_)),
        handle_(std::exchange(other.handle_, 0)) {}
  /// Takes over what the other holds.
  CpuBuffer& operator=(CpuBuffer&& other) noexcept {
    std::swap(registry_, other.registry_);
    std::swap(memory_, other.memory_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CpuBuffer() {
    if (registry_) registry_->remove(handle_);
  }

  /// What names it in `BoundBuffer::handle`; never 0.
  [[nodiscard]] std::uint64_t handle() const noexcept { return handle_; }
  /// Its bytes, as the judge sees them. A program may write to them while it runs, and only then.
  [[nodiscard]] std::span<std::byte> content() const {
    memory_->settle();
    return memory_->content();
  }

private:
  friend class CpuBackend;
  friend class CpuProgram;
  CpuBuffer(std::shared_ptr<detail::BufferRegistry> registry,
            std::shared_ptr<const detail::SharedMemory> memory)
      : registry_(std::move(registry)), memory_(std::move(memory)), handle_(registry_->add(memory_)) {}

  std::shared_ptr<detail::BufferRegistry> registry_;
  std::shared_ptr<const detail::SharedMemory> memory_;
  std::uint64_t handle_ = 0;
};

} // namespace mtmc
