#include <mtmc/support/process/program_roles.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

using namespace mtmc;
using namespace mtmc::detail;

TEST_CASE("a program plays the role that its first argument names; otherwise it offers all of them") {
  std::vector<std::string> heard;
  const std::vector<ProgramRole> roles{{"--test-role-a", [](const auto&) { return 1; }},
                                       {"--test-role-b", [&](const std::vector<std::string>& rest) {
                                          heard = rest;
                                          return 42;
                                        }}};
  const char* const played[] = {"program", "--test-role-b", "x", "--test-role-a"};
  CHECK(play_role(4, played, roles) == 42);
  CHECK(heard == std::vector<std::string>{"x", "--test-role-a"});
  CHECK_FALSE(offered_roles().has("--test-role-a"));
  CHECK(own_program("--test-role-a").empty());

  const char* const other[] = {"program", "x", "--test-role-b"};
  CHECK_FALSE(play_role(3, other, roles));
  CHECK(offered_roles().has("--test-role-a"));
  CHECK(offered_roles().has("--test-role-b"));
  CHECK_FALSE(offered_roles().has("--test-role"));
  CHECK(std::filesystem::equivalent(own_program("--test-role-a"), "/proc/self/exe"));
  CHECK_FALSE(play_role(1, other, roles));
  CHECK_FALSE(play_role(0, nullptr, roles));
}
