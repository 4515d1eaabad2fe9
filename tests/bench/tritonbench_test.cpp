#include <mtmc/bench.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

using namespace mtmc;

TEST_SUITE("problems of TritonBench") {
  TEST_CASE("are the files of one part, by name") {
    const TemporaryFolder folder;
    const auto part = folder.path() + "/data/TritonBench_G_v1";
    std::filesystem::create_directories(part);
    for (const auto* name : {"softmax.py", "add.py", "notes.txt"})
      write_file_atomic(part + '/' + name, "pass\n");
    const auto problems = find_tritonbench(folder.path(), "G");
    REQUIRE(problems.size() == 2);
    CHECK(problems[0].name == "add");
    CHECK(problems[1].suite == "TritonBench-G");
    CHECK(problems[1].number == 2);
    CHECK_THROWS_AS((void)find_tritonbench(folder.path(), "T"), Error);
  }

  TEST_CASE("lend their tests to a candidate") {
    const std::string line(146, '#');
    CHECK(with_tests_of("old = 1\n" + line + "\ntest()\n", "new = 2") == "new = 2\n" + line + "\ntest()\n");
    CHECK_THROWS_AS((void)with_tests_of("old = 1\n# tests\n", "new = 2"), Error);
  }
}
