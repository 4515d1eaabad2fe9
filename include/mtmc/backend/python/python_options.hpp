#pragma once
/// Where Python is, and what a process of it may use.

#include <mtmc/requirements.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How Python is started to record what a module does and to lower its kernels. Nothing of the environment
/// is asked: whatever is to be used is named here.
struct PythonOptions {
  /// The interpreter, as a path or as a name that is looked up in PATH: CPython 3.9 or later. Of a virtual
  /// environment the interpreter inside of it.
  std::string interpreter = "python3";
  /// Folders in which packages are looked for before those of the interpreter.
  std::vector<std::string> package_folders{};
  /// Where the folders of its processes are made.
  std::string temporary_folder = "/tmp";
  /// For the imports, which take seconds and are done once.
  std::chrono::milliseconds start_timeout = std::chrono::minutes{2};
  /// For one call of a module.
  std::chrono::milliseconds record_timeout = std::chrono::seconds{20};
  /// For one kernel.
  std::chrono::milliseconds lower_timeout = std::chrono::minutes{2};
  /// Bytes of address space that a recording or a lowering may take up beyond what the imports have.
  std::int64_t memory_limit = std::int64_t{8} << 30;
  /// Whether it goes on where the system has no Landlock (before Linux 5.13): then what a module's text
  /// runs may read the files of this user.
  bool unfenced = false;
};

} // namespace mtmc
