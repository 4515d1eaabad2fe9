// One program for all targets, because each would hold the whole library: `mtmc_fuzz --target=<name> ...`.
// libFuzzer passes over words that begin with two dashes, and hands them on to the processes it starts.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "target.hpp"

namespace {

const mtmc_fuzz::Target* chosen = nullptr;

void choose(std::string_view name) {
  for (const auto& target : mtmc_fuzz::targets())
    if (target.name == name) chosen = &target;
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  constexpr std::string_view option = "--target=";
  for (int i = 1; i < *count; ++i) {
    const std::string_view word = (*words)[i];
    if (word == "--list") {
      for (const auto& target : mtmc_fuzz::targets())
        std::printf("%s %zu\n", std::string(target.name).c_str(), target.max_bytes);
      std::exit(0);
    }
    if (word.starts_with(option)) choose(word.substr(option.size()));
  }
  if (chosen == nullptr) {
    std::fprintf(stderr, "say --target=<name>; --list shows the names, with the most bytes of an input\n");
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mtmc_fuzz::run(*chosen, {reinterpret_cast<const char*>(data), size});
  return 0;
}
