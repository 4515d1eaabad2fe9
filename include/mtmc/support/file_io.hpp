#pragma once

#include <mtmc/requirements.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// What a person can do about an errno value of a file operation; empty if the reason says it all.
[[nodiscard]] std::string_view file_remedy(int error) noexcept;

/// Throws std::system_error with a text like "cannot write /a/b (the disk is full: ...): No space left on
/// device".
[[noreturn]] void throw_file_error(std::string_view doing, std::string_view path, int error);

/// Writes all of `text`. 0, or the errno value of the failure.
[[nodiscard]] int write_all(int descriptor, std::string_view text) noexcept;

/// All bytes of an open file from its start, wherever it is being read or written; as many of them as can be
/// read.
[[nodiscard]] std::string content_of(int descriptor);

/// The folder that an entry lies in: "." for a bare name.
[[nodiscard]] std::string parent_folder(const std::string& path);

} // namespace detail

/// The whole content of a file, byte for byte.
/// Throws std::system_error, whose what() names the path, the reason and the remedy.
[[nodiscard]] std::string read_file(const std::string& path);

/// How a file is written.
struct WriteOptions {
  /// Whether the content must survive a power failure from the return of the call on (fsync of file and
  /// folder).
  bool durable = false;
};

/// Replaces a file, or creates it, with `text`, so that others see either all of the old content or all of
/// the new, also if the program or the machine stops in the middle. Its folder must exist and be writable,
/// since the text first goes to a file beside it, which is removed again on failure. The mode of an existing
/// file is kept, a symbolic link is replaced and not followed. Throws std::system_error, whose what() names
/// the path, the reason and the remedy; the old content is then untouched.
void write_file_atomic(const std::string& path, std::string_view text, const WriteOptions& options = {});

/// Creates a folder and those above it, as far as they are missing.
/// Throws std::system_error, whose what() names the path, the reason and the remedy.
void create_folders(const std::string& path);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/support/file_io_inl.hpp>
#endif
