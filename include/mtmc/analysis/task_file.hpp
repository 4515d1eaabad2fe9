#pragma once
/// Tasks from JSON files next to their sources (design, section 4).

#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Reads a task from the JSON text of a task file; `path` says where it stands, so that `source`, `reference`
/// and `data` are found beside it. The kernel may also be given as text in `"kernel"`. Throws `Error` with
/// file and field.
[[nodiscard]] Task parse_task(std::string_view text, const std::string& path);

/// Reads one task file. Throws `Error` (`mtmc.task.001` if it or its source cannot be read, `mtmc.json.001`,
/// `mtmc.task.002` to `004`).
[[nodiscard]] Task load_task(const std::string& path);

/// Reads a kernel from a file with its source. A C++ text with one function that takes buffers and no launch
/// line gets the line that calls it with its own parameter names; what is wrong with launch lines is for
/// whoever judges the kernel to say. Throws `Error` (`mtmc.task.001` if it cannot be read).
[[nodiscard]] Kernel load_kernel(const std::string& path, const Language& language);

/// The task files that a path means: itself if it is a file, every `*.json` in it, by name, if it is a
/// folder.
[[nodiscard]] std::vector<std::string> find_task_files(const std::string& path);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/task_file_inl.hpp>
#endif
