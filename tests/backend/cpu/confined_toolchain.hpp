#pragma once
/// Toolchains whose only defence is what keeps the compiler from files.

#include <mtmc/backend/cpu/cpu_toolchain.hpp>
#include <mtmc/support/file_fence.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

inline std::vector<std::string> compilers() {
  std::vector<std::string> found;
  for (const auto* const name : {"g++", "clang++"})
    if (!find_program(name, CpuBackendOptions{}.search_path).empty()) found.emplace_back(name);
  return found;
}

/// Whether there is nothing to test on this system, which it says.
inline bool without_landlock() {
  if (landlock_version() == 0) MESSAGE("SKIPPED: no Landlock");
  return landlock_version() == 0;
}

/// Nothing but the fence, or what stands in for it.
inline CpuBackendOptions fence_alone(const std::string& compiler, bool landlock) {
  CpuBackendOptions options;
  options.compiler = compiler;
  options.defences.text_screen = options.defences.object_screen = false;
  options.defences.compiler_fence = landlock;
  return options;
}

inline Compilation compile(CpuToolchain& toolchain, const std::string& text) {
  bool timed_out = false;
  auto result = toolchain.compile({languages::cpp, text, {}}, {}, {}, timed_out);
  CHECK_FALSE(timed_out);
  return result;
}

/// Calls `check` with a toolchain for each compiler of this machine, with Landlock and without.
template <class Check> void with_all_toolchains(Check check) {
  for (const auto& compiler : compilers())
    for (const bool landlock : {true, false}) {
      if (landlock && landlock_version() == 0) continue;
      CAPTURE(compiler);
      CAPTURE(landlock);
      CpuToolchain toolchain(fence_alone(compiler, landlock));
      try { // a Clang that another package brought along may lack its OpenMP
        toolchain.prepare();
      } catch (const Error& error) {
        REQUIRE(compiler != "g++");
        MESSAGE(std::string(error.what()));
        continue;
      }
      check(toolchain);
      CHECK(toolchain.confinement() == (landlock ? "Landlock" : "checked"));
    }
}

} // namespace
