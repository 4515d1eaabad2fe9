#include <mtmc/coder/example_library.hpp>
#include <mtmc/mtmc.hpp>

#include <cstdio>
#include <string>

int main() {
  const std::string version = std::to_string(mtmc::version_major) + "." +
                              std::to_string(mtmc::version_minor) + "." + std::to_string(mtmc::version_patch);
  std::printf("found mtmc %s, expected %s\n", version.c_str(), EXPECTED_VERSION);
  // What needs a library besides the headers links, too.
  const auto examples = mtmc::ExampleLibrary::built_in();
  std::printf("%zu examples\n", examples.all().size());
  if (examples.all().empty()) return 1;
#ifdef WITH_WORKER
  try {
    mtmc::WorkerEvaluator evaluator{{.search_path = ""}};
    std::printf("the installed worker has %s\n", evaluator.device().name.c_str());
  } catch (const mtmc::Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
#endif
  return version == EXPECTED_VERSION ? 0 : 1;
}
