// Gives every target every file of all corpora and of other folders, so that what a fuzzer once found stays
// found with any compiler. Usage: fuzz_replay <folder of the corpora> [<folder of more inputs>...]
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "target.hpp"

namespace {

std::vector<std::filesystem::path> files_below(std::span<char* const> folders) {
  std::vector<std::filesystem::path> files;
  for (const auto* const folder : folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Whether the target keeps its promises about the input.
bool holds(const mtmc_fuzz::Target& target, const std::filesystem::path& file, const std::string& input) {
  try {
    mtmc_fuzz::run(target, input);
    return true;
  } catch (const std::exception& error) {
    std::printf("%s, given to %s: %s\n", file.c_str(), std::string(target.name).c_str(), error.what());
    return false;
  }
}

} // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: fuzz_replay <folder of the corpora> [<folder of more inputs>...]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IONBF, 0); // a crash must not take the file's name with it
  const auto files = files_below({words + 1, words + count});
  bool right = true;
  for (const auto& target : mtmc_fuzz::targets())
    if (!std::filesystem::is_directory(std::filesystem::path(words[1]) / target.name)) {
      std::printf("the target %s has no corpus\n", std::string(target.name).c_str());
      right = false;
    }
  for (const auto& file : files) {
    std::printf("%s\n", file.c_str());
    const auto input = content_of(file);
    for (const auto& target : mtmc_fuzz::targets()) right &= holds(target, file, input);
  }
  std::printf("%zu inputs, %zu targets\n", files.size(), mtmc_fuzz::targets().size());
  return right ? 0 : 1;
}
