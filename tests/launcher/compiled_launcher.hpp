#pragma once
/// A plan's launcher, compiled as an engine would, and run on a driver without a device.

#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace mtmc_test {

enum class LaunchedOn {
  no_device, ///< a driver of these tests, which says what it is asked for
  device,    ///< the one of this system
};

/// A folder with a launcher, a program that uses it, and libcuda.so.1 without a device.
class CompiledLauncher {
public:
  /// `use` is the program, which may use what the launcher's header includes, and `<cstdio>`.
  CompiledLauncher(const std::string& launcher, const std::string& use,
                   LaunchedOn place = LaunchedOn::no_device) {
    mtmc::write_file_atomic(folder_.path() + "/launcher.hpp", launcher);
    mtmc::write_file_atomic(folder_.path() + "/main.cpp",
                            "#include \"launcher.hpp\"\n#include \"launcher.hpp\"\n"
                            "#include <cstdio>\n" +
                                use);
    if (place == LaunchedOn::no_device) {
      const auto driver = run({"cc", "-std=gnu11", "-Wall", "-shared", "-fPIC", "-o", "libcuda.so.1",
                               std::string(MTMC_REPOSITORY) + "/tests/launcher/driver_stub.c"});
      REQUIRE_MESSAGE(driver.succeeded(), driver.error);
    }
    for (const char* const standard : {"-std=c++20", "-std=c++17"}) {
      const auto built = run({"c++", standard, "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion",
                              "-Wshadow", "-Werror", "main.cpp", "-o", "program", "-ldl"});
      REQUIRE_MESSAGE(built.succeeded(), built.error << launcher.substr(0, 5000));
    }
  }

  /// What the program prints, and the driver: `kernel: blocks, ...` for each launch.
  [[nodiscard]] mtmc::ProcessResult run() const { return run({folder_.path() + "/program"}); }

private:
  [[nodiscard]] mtmc::ProcessResult run(std::vector<std::string> arguments) const {
    return mtmc::run_process({.arguments = std::move(arguments),
                              .working_folder = folder_.path(),
                              .extra_environment = {"LD_LIBRARY_PATH=" + library_path()}});
  }

  /// Before what is set already, where a driver of a device may lie.
  [[nodiscard]] std::string library_path() const {
    const char* const known = std::getenv("LD_LIBRARY_PATH"); // NOLINT(concurrency-mt-unsafe)
    return folder_.path() + (known == nullptr ? std::string() : ":" + std::string(known));
  }

  mtmc::TemporaryFolder folder_;
};

} // namespace mtmc_test
