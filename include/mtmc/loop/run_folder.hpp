#pragma once
/// The folder of one run and how files are written into it.
///
///     <output>/<task>/journal.jsonl    the journal (loop/journal.hpp)
///     <output>/<task>/kernels/         every kernel of the run, one file each (loop/kernel_store.hpp)
///     <output>/<task>/texts/           coders' answers as they came

#include <mtmc/core/error.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/sha256.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace mtmc::inline MTMC_ABI {

/// Where the run of a task lives: `output` and the task's name as one file name. Characters other than
/// letters, digits, '-', '_' and '.' become '_'; a name that had to be changed gets a few digits of its hash
/// so that two tasks never share a folder.
[[nodiscard]] inline std::string run_folder(const std::string& output, std::string_view task_name) {
  std::string name;
  bool changed = task_name.empty() || task_name.front() == '.';
  if (changed) name += '_';
  for (const char c : task_name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    changed = changed || !plain;
    name += plain ? c : '_';
  }
  constexpr std::size_t longest = 100;
  changed = changed || name.size() > longest;
  if (name.size() > longest) name.resize(longest);
  if (changed) name += '-' + sha256_hex(task_name).substr(0, 8);
  return output.empty() || output.back() == '/' ? output + name : output + '/' + name;
}

/// The journal's file in a run's folder.
[[nodiscard]] inline std::string journal_path(const std::string& folder) { return folder + "/journal.jsonl"; }

namespace detail {

/// "the disk is full: free space or ..." -> "The disk is full: free space or ..."
[[nodiscard]] inline std::string journal_remedy(int error) {
  std::string text{file_remedy(error)};
  if (text.empty()) return "Check the file system of the output folder, then resume the run";
  if (text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

[[noreturn]] inline void write_error(const std::string& what, const std::string& path, int error) {
  throw Error(error_id::journal_write, what + ": " + std::strerror(error), journal_remedy(error), path);
}

/// `mtmc::create_folders` with the loop's error.
inline void make_run_folder(const std::string& path) {
  try {
    create_folders(path);
  } catch (const std::system_error& error) {
    write_error("cannot create the folder", path, error.code().value());
  }
}

/// Writes a file whose content its name tells. One that a dying process left unfinished is found by its size
/// and written anew, so it needs no detour over a temporary name.
inline void write_run_file(const std::string& path, std::string_view text, bool durable) {
  const FileDescriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (!file) write_error("cannot create the file", path, errno);
  int error = write_all(file.get(), text);
  if (error == 0 && durable && ::fsync(file.get()) != 0) error = errno;
  if (error != 0) {
    ::unlink(path.c_str());
    write_error("cannot write the file", path, error);
  }
  if (!durable) return;
  const FileDescriptor folder{::open(parent_folder(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!folder || (::fsync(folder.get()) != 0 && errno != EINVAL))
    write_error("cannot write the folder of the file", path, errno);
}

/// `mtmc::read_file` with the loop's error.
[[nodiscard]] inline std::string read_run_file(const std::string& path) {
  try {
    return read_file(path);
  } catch (const std::system_error& error) {
    throw Error(error_id::journal_read,
                std::string("cannot read the file: ") + std::strerror(error.code().value()),
                journal_remedy(error.code().value()), path);
  }
}

/// Bytes of a file; -1 if there is none.
[[nodiscard]] inline std::int64_t file_size(const std::string& path) noexcept {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::int64_t>(status.st_size) : -1;
}

} // namespace detail

} // namespace mtmc
