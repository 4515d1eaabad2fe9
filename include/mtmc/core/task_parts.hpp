#pragma once
/// What files of tasks and of sequences have in common: texts beside them, and languages by name.

#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/support/file_io.hpp>

#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>

namespace mtmc::inline MTMC_ABI::detail {

/// The content of a file. `what` it is, for the `Error` (`mtmc.task.001`) where it cannot be read, is larger
/// than any text of a kernel, or is something that never ends, such as a pipe or a device.
[[nodiscard]] inline std::string read_task_part(const std::string& path, std::string_view what) {
  constexpr off_t max_bytes = off_t{64} << 20;
  struct stat facts{};
  if (::stat(path.c_str(), &facts) == 0 && (!S_ISREG(facts.st_mode) || facts.st_size > max_bytes))
    throw Error(error_id::task_unreadable,
                "cannot read the " + std::string(what) +
                    (S_ISREG(facts.st_mode) ? ": it has more than 64 MiB" : ": it is not a file"),
                "Name a file with the text", path);
  try {
    return read_file(path);
  } catch (const std::system_error& error) {
    throw Error(error_id::task_unreadable,
                "cannot read the " + std::string(what) + ": " + error.code().message(),
                "Check that the path exists and may be read", path);
  }
}

/// The language that a file names; one that this library does not know is the host's own, of C-like syntax.
/// Throws `Error` (`mtmc.task.002`) for other spellings of a known one.
[[nodiscard]] inline Language language_named(const std::string& name) {
  for (const auto& known :
       {languages::cpp, languages::cuda, languages::opencl, languages::triton, languages::pytorch})
    if (known.name == name) return known;
  for (const std::string_view alias : {"c++", "C++", "cxx", "cc", "CPP", "c"})
    if (name == alias)
      throw Error(error_id::task_malformed, "there is no language \"" + name + '"', "Write \"cpp\" for C++",
                  "language");
  return {name, Syntax::c_family};
}

} // namespace mtmc::detail
