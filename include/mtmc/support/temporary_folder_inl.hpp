#pragma once
/// Definitions of support/temporary_folder.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

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

namespace mtmc::inline MTMC_ABI::detail {

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

/// Claims an open folder. The lock is taken before the file gets its name, so that nobody finds it free. -1
/// on failure.
[[nodiscard]] inline int claim_folder(int folder) noexcept {
  constexpr const char* unnamed = ".claiming";
  const int file =
      ::openat(folder, unnamed, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) return -1;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 && ::renameat(folder, unnamed, folder, claim_name) == 0)
    return file;
  ::close(file);
  return -1;
}

/// Whether a folder was claimed by a process that is no more. The lock, if it was free, is given back.
[[nodiscard]] inline bool is_abandoned(int base, const char* name) noexcept {
  const int folder = ::openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return false;
  struct stat status{};
  bool abandoned = false;
  if (::fstat(folder, &status) == 0 && status.st_uid == ::geteuid()) {
    const int file = ::openat(folder, claim_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0) {
      abandoned = ::flock(file, LOCK_EX | LOCK_NB) == 0;
      ::close(file);
    }
  }
  ::close(folder);
  return abandoned;
}

MTMC_INLINE bool remove_tree(const char* path) noexcept {
  const int descriptor = open_for_removal(AT_FDCWD, path);
  if (descriptor >= 0) remove_entries(descriptor, 100);
  return ::rmdir(path) == 0;
}

/// Removes folders whose claims have ended; silently leaves what cannot be removed.
inline void remove_abandoned(const std::string& base, const std::string& prefix) noexcept {
  DIR* folder = ::opendir(base.c_str());
  if (folder == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name.size() == prefix.size() + 6 && name.starts_with(prefix) &&
        is_abandoned(::dirfd(folder), entry->d_name))
      names.emplace_back(name);
  }
  ::closedir(folder);
  for (const auto& name : names) remove_tree((base + '/' + name).c_str());
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE TemporaryFolder::TemporaryFolder(const TemporaryFolderOptions& options)
    : path_{options.base + "/" + options.prefix + "XXXXXX"} {
  if (options.claimed && !options.base.empty()) detail::remove_abandoned(options.base, options.prefix);
  if (options.base.empty() || ::mkdtemp(path_.data()) == nullptr)
    detail::throw_file_error("create a temporary folder in", options.base,
                             options.base.empty() ? ENOENT : errno);
  if (!options.claimed) return;
  const FileDescriptor folder{::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  // Where locks do not work the folder is as good as one without a claim.
  if (folder) claim_.reset(detail::claim_folder(folder.get()));
}

MTMC_INLINE TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, std::string{});
    claim_ = std::move(other.claim_);
  }
  return *this;
}

MTMC_INLINE std::string TemporaryFolder::release() noexcept {
  if (claim_) ::unlink((path_ + '/' + detail::claim_name).c_str());
  claim_.reset();
  return std::exchange(path_, std::string{});
}

MTMC_INLINE void TemporaryFolder::remove() noexcept {
  if (!path_.empty()) detail::remove_tree(path_.c_str());
}

} // namespace mtmc
