#pragma once
/// Definitions of support/file_io.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/os_random.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::string_view file_remedy(int error) noexcept {
  switch (error) {
  case ENOSPC:
    return "the disk is full: free space or choose another folder";
  case EDQUOT:
    return "your quota is used up: free space or choose another folder";
  case EROFS:
    return "the file system is read-only: choose another folder";
  case EACCES:
  case EPERM:
    return "permission is missing: change the owner or mode, or choose another place";
  case ENOENT:
    return "check the spelling, and that its folder exists";
  case ENOTDIR:
    return "a part of the path is a file: choose another place";
  case EISDIR:
    return "it is a folder: name a file in it";
  case EMFILE:
  case ENFILE:
    return "too many files are open: raise the limit with ulimit -n";
  case ENAMETOOLONG:
    return "choose a shorter name";
  case EFBIG:
    return "the file would exceed a size limit: raise it with ulimit -f or choose another file system";
  case EIO:
    return "the disk reports an error: check it or choose another";
  default:
    return {};
  }
}

MTMC_INLINE void throw_file_error(std::string_view doing, std::string_view path, int error) {
  std::string text = "cannot " + std::string{doing} + " " + std::string{path};
  if (const std::string_view remedy = file_remedy(error); !remedy.empty())
    text += " (" + std::string{remedy} + ")";
  throw std::system_error{error, std::generic_category(), text};
}

MTMC_INLINE int write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0)
      text.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

MTMC_INLINE std::string content_of(int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || status.st_size <= 0) return {};
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::pread(descriptor, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    at += static_cast<std::size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

MTMC_INLINE std::string parent_folder(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string read_file(const std::string& path) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) detail::throw_file_error("read", path, errno);
  struct stat status{};
  std::string text;
  // The size is only a hint: files in /proc claim to be empty, and others may grow meanwhile.
  if (::fstat(file.get(), &status) == 0 && status.st_size > 0)
    text.reserve(static_cast<std::size_t>(status.st_size) + 1);
  for (;;) {
    const std::size_t used = text.size();
    const std::size_t spare = text.capacity() - used;
    text.resize(used + (spare > 4096 ? spare : 4096));
    const ssize_t got = ::read(file.get(), text.data() + used, text.size() - used);
    const int error = errno;
    text.resize(used + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) return text;
    if (got < 0 && error != EINTR) detail::throw_file_error("read", path, error);
  }
}

MTMC_INLINE void write_file_atomic(const std::string& path, std::string_view text,
                                   const WriteOptions& options) {
  const std::string beside = path + ".new-" + std::to_string(random_key_from_os());
  FileDescriptor file{::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (!file) detail::throw_file_error("write", path, errno);
  int error = 0;
  struct stat old{};
  if (::lstat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode) &&
      ::fchmod(file.get(), old.st_mode & 07777) != 0)
    error = errno;
  if (error == 0) error = detail::write_all(file.get(), text);
  if (error == 0 && options.durable && ::fsync(file.get()) != 0) error = errno;
  // Network file systems report a full disk only here.
  if (::close(file.release()) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(beside.c_str());
    detail::throw_file_error("write", path, error);
  }
  if (!options.durable) return;
  const FileDescriptor folder{
      ::open(detail::parent_folder(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!folder || (::fsync(folder.get()) != 0 && errno != EINVAL))
    detail::throw_file_error("write", path, errno);
}

MTMC_INLINE void create_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct stat status{};
    if (::mkdir(part.c_str(), 0777) != 0) {
      const int error = errno;
      // Some file systems answer EROFS or EACCES even for folders that exist.
      if (::stat(part.c_str(), &status) != 0) detail::throw_file_error("create the folder", path, error);
      if (!S_ISDIR(status.st_mode)) detail::throw_file_error("create the folder", path, ENOTDIR);
    }
    if (end == std::string::npos) return;
  }
}

} // namespace mtmc
