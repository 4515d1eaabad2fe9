#include <mtmc/mtmc.hpp>

#include <cstdio>
#include <string>

int main() {
  const std::string version = std::to_string(mtmc::version_major) + "." +
                              std::to_string(mtmc::version_minor) + "." + std::to_string(mtmc::version_patch);
  std::printf("found mtmc %s, expected %s\n", version.c_str(), EXPECTED_VERSION);
  return version == EXPECTED_VERSION ? 0 : 1;
}
