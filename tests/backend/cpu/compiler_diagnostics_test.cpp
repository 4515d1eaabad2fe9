#include <mtmc/backend/cpu/compiler_diagnostics.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

const std::vector<LaunchSignature> launches{{"f", 2, {{LaunchArgument::Kind::buffer, DataType::f32, "x"}}}};

std::vector<Diagnostic> read(std::string text, std::size_t most = 20) {
  const auto is_header = [](const std::string& file) { return file.starts_with("/usr/"); };
  return CompilerReport(std::move(text), launches, 9, "/tmp/private", is_header).diagnostics(most);
}

} // namespace

TEST_SUITE("CompilerReport") {
  TEST_CASE("GCC's and Clang's remarks are read alike") {
    const auto gcc = read("In file included from program.cpp:1:\n"
                          "kernel.cpp: In function 'void f(float*)':\n"
                          "kernel.cpp:4:7: error: 'q' was not declared in this scope\n");
    const auto clang = read("In file included from program.cpp:1:\n"
                            "./kernel.cpp:4:7: error: use of undeclared identifier 'q'\n"
                            "1 error generated.\n");
    for (const auto& read_by : {gcc, clang}) {
      REQUIRE(read_by.size() == 1);
      CHECK(read_by[0].line == 4);
      CHECK(read_by[0].column == 7);
      CHECK(read_by[0].severity == Severity::error);
      CHECK(read_by[0].remedy == "Declare it before its use, or include the header that declares it");
    }
  }

  TEST_CASE("errors come before warnings, in the order of the compiler") {
    const auto all = read("kernel.cpp:1:1: warning: first\nkernel.cpp:5:1: error: second\n"
                          "kernel.cpp:4:1: error: third\n");
    REQUIRE(all.size() == 3);
    CHECK(all[0].message == "second");
    CHECK(all[1].message == "third");
    CHECK(all[2].message == "first");
  }

  TEST_CASE("there are no more than wanted, and long ones are cut") {
    std::string text;
    for (int i = 3; i < 50; ++i)
      text += "kernel.cpp:" + std::to_string(i) + ":1: error: e" + std::to_string(i) + "\n";
    CHECK(read(text).size() == 20);
    CHECK(read("kernel.cpp:3:1: error: " + std::string(5000, 'x') + "\n").at(0).message.size() < 500);
  }

  TEST_CASE("of thousands of remarks the first are compared, and an error behind them is not lost") {
    std::string text;
    for (int i = 0; i < 20'000; ++i)
      text += "kernel.cpp:" + std::to_string(i + 3) + ":1: warning: w" + std::to_string(i) + '\n';
    const auto all = read(text + "kernel.cpp:5:1: error: here\nkernel.cpp:6:1: note: because\n");
    REQUIRE(all.size() == 20);
    CHECK(all[0].message == "here");
    CHECK(all[0].line == 5);
    std::string missing;
    for (int i = 0; i < 20'000; ++i) missing += "undefined reference to `f" + std::to_string(i) + "'\n";
    CHECK(read(missing).size() == 20);
    CHECK(read("undefined reference to `" + std::string(5000, 'x') + "'\n").at(0).message.size() < 500);
  }

  TEST_CASE("words of a file that is no header are not passed on") {
    const auto all =
        read("In file included from kernel.cpp:3:\n/etc/fstab:1:3: error: invalid directive #secret\n");
    REQUIRE(all.size() == 1);
    CHECK(all[0].message == "the text includes a file that is not one of the compiler's headers");
    CHECK(all[0].remedy.find("secret") == std::string::npos);
    CHECK(read("/usr/include/x.h:1:3: error: here\n").at(0).message == "here (in <x.h>)");
  }

  TEST_CASE("whether there is a file is not told") {
    const auto absent = read("kernel.cpp:2:1: error: /etc/x: No such file or directory\n");
    const auto closed = read("kernel.cpp:2:1: error: /etc/x: Permission denied\n");
    REQUIRE(absent.size() == 1);
    CHECK(absent == closed);
    CHECK(absent[0].line == 2);
    CHECK(absent[0].message == "the text makes the compiler look for a file");
  }

  TEST_CASE("paths of the private folder do not get out") {
    const auto all = read("/tmp/private/program.cpp:3:1: error: in /tmp/private/kernel.cpp\n");
    REQUIRE(all.size() == 1);
    CHECK(all[0].message.find("/tmp/private") == std::string::npos);
  }

  TEST_CASE("at a launch line only what the coder can act on remains") {
    const auto all = read("kernel.cpp:2:700: error: static assertion failed: mtmc: this launch line passes 1 "
                          "argument, but `f` has 2 parameters\n"
                          "kernel.cpp:2:700: note: the comparison reduces to '(2 != 2)'\n"
                          "kernel.cpp:2: error: too few arguments to function 'void f(float*, int)'\n"
                          "mtmc-trampolines:12:1: error: nonsense about our own text\n");
    REQUIRE(all.size() == 1);
    CHECK(all[0].message == "this launch line passes 1 argument, but `f` has 2 parameters");
    CHECK(all[0].line == 2);
    CHECK(all[0].column == 0);
    CHECK_FALSE(all[0].remedy.empty());
  }

  TEST_CASE("the linker's last words give way to the reason") {
    const auto all = read("/usr/bin/ld: /tmp/private/ccX.o: in function `f':\n"
                          "kernel.cpp:(.text+0x1): undefined reference to `g()'\n"
                          "kernel.cpp:(.text+0x9): undefined reference to `g()'\n"
                          "collect2: error: ld returned 1 exit status\n");
    REQUIRE(all.size() == 1);
    CHECK(all[0].message == "`g()` is declared and used but defined nowhere");
    CHECK(read("collect2: error: ld returned 1 exit status\n").size() == 1);
  }

  TEST_CASE("text that is no remark, or a torn one, is no diagnostic") {
    CHECK(read("").empty());
    CHECK(read("\n\n:::\nkernel.cpp:1:2\nkernel.cpp:x:y: err").empty());
    CHECK(read("kernel.cpp:99999999999999999999:1: error: e\n").size() == 1);
    CHECK(read("kernel.cpp:3:1: note: alone\n").empty());
    CHECK(read("kernel.cpp:3:1: error:  \n").empty());
  }
}
