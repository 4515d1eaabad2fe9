#pragma once

#include <mtmc/support/file_descriptor.hpp>

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The file in a claimed folder that its process holds the lock of.
inline constexpr const char* claim_name = ".claim";

/// Removes a folder and all it contains; of a symbolic link neither the link nor what it points to. False if
/// something stays behind.
bool remove_tree(const char* path) noexcept;

} // namespace detail

/// Where a temporary folder is made and how its name begins.
struct TemporaryFolderOptions {
  /// The folder it is made in, which must exist. The environment (TMPDIR) is not asked; a host that wants to
  /// can.
  std::string base = "/tmp";
  /// The beginning of its name; six random characters follow.
  std::string prefix = "mtmc-";
  /// Whether it is claimed by a lock that ends with this process, at the cost of a descriptor, and folders of
  /// this user and prefix whose claims have ended so (kill -9, a crash) are removed first.
  bool claimed = false;
};

/// A new folder that only this user can enter, removed with all its content when the object goes. What cannot
/// be removed then (files of another user, more than 100 levels) stays, silently. Move-only.
class TemporaryFolder {
public:
  /// Throws std::system_error, whose what() names the path, the reason and the remedy.
  explicit TemporaryFolder(const TemporaryFolderOptions& options = {});
  /// Takes over what the other holds; the other is empty.
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_{std::exchange(other.path_, std::string{})}, claim_{std::move(other.claim_)} {}
  /// Takes over what the other holds.
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder() { remove(); }

  /// Its path, absolute if the base is, without a slash at the end; empty after a move or release.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Leaves the folder to the caller, who gets its path: it is no longer removed, nor claimed.
  [[nodiscard]] std::string release() noexcept;

private:
  void remove() noexcept;

  std::string path_;
  FileDescriptor claim_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/support/temporary_folder_inl.hpp>
#endif
