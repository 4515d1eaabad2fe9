#pragma once

#include <mtmc/support/file_io.hpp>

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace mtmc {

namespace detail {

/// Opens a folder for removal of its entries, unlocking it if its owner locked it; never a symbolic link. -1
/// on failure.
[[nodiscard]] inline int open_for_removal(int parent, const char* name) noexcept {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int descriptor = ::openat(parent, name, flags);
  if (descriptor < 0 && errno == EACCES && ::fchmodat(parent, name, S_IRWXU, 0) == 0)
    descriptor = ::openat(parent, name, flags);
  if (descriptor >= 0) ::fchmod(descriptor, S_IRWXU);
  return descriptor;
}

/// Empties the open folder `descriptor` (taken over), without following symbolic links. Goes no deeper than
/// `depth` levels, because each holds a descriptor.
inline void remove_entries(int descriptor, int depth) noexcept {
  DIR* folder = ::fdopendir(descriptor);
  if (folder == nullptr) {
    ::close(descriptor);
    return;
  }
  // What readdir gives after a removal is unspecified, hence passes until nothing more can be removed; not
  // without end, because somebody may go on creating files.
  bool removed = true;
  for (int pass = 0; removed && pass < 100; ++pass) {
    removed = false;
    ::rewinddir(folder);
    while (const dirent* entry = ::readdir(folder)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (::unlinkat(descriptor, entry->d_name, 0) == 0) {
        removed = true;
        continue;
      }
      if ((errno != EISDIR && errno != EPERM) || depth == 0) continue;
      const int inner = open_for_removal(descriptor, entry->d_name);
      if (inner < 0) continue;
      remove_entries(inner, depth - 1);
      if (::unlinkat(descriptor, entry->d_name, AT_REMOVEDIR) == 0) removed = true;
    }
  }
  ::closedir(folder);
}

/// Removes a folder and all it contains; of a symbolic link neither the link nor what it points to. False if
/// something stays behind.
inline bool remove_tree(const char* path) noexcept {
  const int descriptor = open_for_removal(AT_FDCWD, path);
  if (descriptor >= 0) remove_entries(descriptor, 100);
  return ::rmdir(path) == 0;
}

} // namespace detail

/// Where a temporary folder is made and how its name begins.
struct TemporaryFolderOptions {
  /// The folder it is made in, which must exist. The environment (TMPDIR) is not asked; a host that wants to
  /// can.
  std::string base = "/tmp";
  /// The beginning of its name; six random characters follow.
  std::string prefix = "mtmc-";
};

/// A new folder that only this user can enter, removed with all its content when the object goes. What cannot
/// be removed then (files of another user, more than 100 levels) stays, silently. Move-only.
class TemporaryFolder {
public:
  /// Throws std::system_error, whose what() names the path, the reason and the remedy.
  explicit TemporaryFolder(const TemporaryFolderOptions& options = {})
      : path_{options.base + "/" + options.prefix + "XXXXXX"} {
    if (options.base.empty() || ::mkdtemp(path_.data()) == nullptr)
      detail::throw_file_error("create a temporary folder in", options.base,
                               options.base.empty() ? ENOENT : errno);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_{other.release()} {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    if (this != &other) {
      remove();
      path_ = other.release();
    }
    return *this;
  }
  ~TemporaryFolder() { remove(); }

  /// Its path, absolute if the base is, without a slash at the end; empty after a move or release.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Leaves the folder to the caller, who gets its path: it is no longer removed.
  [[nodiscard]] std::string release() noexcept { return std::exchange(path_, std::string{}); }

private:
  void remove() noexcept {
    if (!path_.empty()) detail::remove_tree(path_.c_str());
  }

  std::string path_;
};

} // namespace mtmc
