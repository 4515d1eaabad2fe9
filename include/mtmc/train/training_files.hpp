#pragma once
/// The files of a training: what goes wrong with them is an `Error` with an id and a remedy.

#include <mtmc/core/error.hpp>
#include <mtmc/support/file_io.hpp>

#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Throws the `Error` (`mtmc.train.004`) of an errno value.
[[noreturn]] inline void training_file_error(const std::string& what, const std::string& path, int error) {
  std::string remedy(file_remedy(error));
  if (remedy.empty()) remedy = "See that the file and its folder can be used";
  throw Error(error_id::train_files, what + ": " + std::strerror(error), remedy, path);
}

} // namespace detail

/// `read_file` with an `Error` (`mtmc.train.004`) where that fails.
[[nodiscard]] inline std::string read_training_file(const std::string& path) {
  try {
    return read_file(path);
  } catch (const std::system_error& error) {
    detail::training_file_error("the file cannot be read", path, error.code().value());
  }
}

/// `write_file_atomic` with an `Error` (`mtmc.train.004`) where that fails: what was there before is still
/// there.
inline void write_training_file(const std::string& path, std::string_view text,
                                const WriteOptions& options = {}) {
  try {
    write_file_atomic(path, text, options);
  } catch (const std::system_error& error) {
    detail::training_file_error("the file cannot be written", path, error.code().value());
  }
}

/// `create_folders` with an `Error` (`mtmc.train.004`) where that fails.
inline void make_training_folder(const std::string& path) {
  try {
    create_folders(path);
  } catch (const std::system_error& error) {
    detail::training_file_error("the folder cannot be created", path, error.code().value());
  }
}

} // namespace mtmc
