// Launchers of kernels of many styles: what the judge takes, a launcher can hold.
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/launcher/launcher.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

using namespace mtmc;

namespace {

const std::string exploits = std::string(MTMC_REPOSITORY) + "/tests/exploits";

std::string field_of(const std::string& text, const std::string& name) {
  const auto marker = "// " + name + ": ";
  const auto at = text.find(marker);
  if (at == std::string::npos) return {};
  const auto begin = at + marker.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

} // namespace

TEST_CASE("the launchers of honest kernels of many styles compile") {
  const TemporaryFolder folder;
  int compiled = 0;
  for (const auto& file : std::filesystem::directory_iterator(exploits + "/honest")) {
    const auto text = read_file(file.path().string());
    const auto task = load_task(exploits + "/cpu/tasks/" + field_of(text, "task") + ".json");
    const Kernel kernel{languages::cpp, text, {}};
    write_file_atomic(folder.path() + "/launcher.cpp", launcher_source(kernel, task, 4));
    write_file_atomic(folder.path() + "/launcher.hpp", launcher_header(kernel, task));
    const auto done =
        run_process({.arguments = {"c++", "-std=gnu++20", "-O0", "-march=native", "-fopenmp", "-Wall",
                                   "-fsyntax-only", "-include", "launcher.hpp", "launcher.cpp"},
                     .working_folder = folder.path()});
    CHECK_MESSAGE(done.succeeded(), file.path().filename().string(), ": ", done.error);
    ++compiled;
  }
  CHECK(compiled > 50);
}
