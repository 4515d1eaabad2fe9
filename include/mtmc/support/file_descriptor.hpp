#pragma once

#include <mtmc/requirements.hpp>

#include <unistd.h>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// Owns one POSIX file descriptor and closes it. Move-only; -1 stands for none.
class FileDescriptor {
public:
  FileDescriptor() noexcept = default;
  /// Takes over `descriptor`, which may be -1, the failure value of open() and its like.
  explicit FileDescriptor(int descriptor) noexcept : descriptor_{descriptor < 0 ? -1 : descriptor} {}
  /// Takes over what the other holds; the other is empty.
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_{other.release()} {}
  /// Takes over what the other holds.
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~FileDescriptor() { reset(); }

  /// Whether there is a descriptor.
  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }
  /// The descriptor, still owned by this object; -1 if there is none.
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  /// The descriptor, which the caller now has to close; -1 if there is none.
  [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }
  /// Closes the descriptor, if any, and takes over `descriptor`. An error of close() is not reported: on
  /// Linux the descriptor is gone even then.
  void reset(int descriptor = -1) noexcept {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = descriptor < 0 ? -1 : descriptor;
  }

private:
  int descriptor_ = -1;
};

} // namespace mtmc
