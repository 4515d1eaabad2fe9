#include <mtmc/backend/python/python_failure.hpp>

#include <doctest/doctest.h>

#include <string>

using mtmc::detail::explained_python_failure;
using mtmc::detail::harmless;

TEST_SUITE("what Python says") {
  TEST_CASE("a refusal has its remedy behind the first semicolon") {
    const auto [message, remedy] =
        explained_python_failure("refused", "streams cannot be recorded; leave them out; really");
    CHECK(message == "streams cannot be recorded");
    CHECK(remedy == "Leave them out; really");
    CHECK(explained_python_failure("refused", "no more").second.empty());
  }

  TEST_CASE("host code that looks at values is told what it may look at") {
    const auto [message, remedy] = explained_python_failure("values", "aten._local_scalar_dense.default");
    CHECK(message.find("_local_scalar_dense") != std::string::npos);
    CHECK(remedy.find(".item()") != std::string::npos);
  }

  TEST_CASE("an exception keeps its name; known ones have a remedy") {
    CHECK(explained_python_failure("ZeroDivisionError", "division by zero").first ==
          "ZeroDivisionError: division by zero");
    CHECK(explained_python_failure("PermissionError", "[Errno 13]").second.find("files") !=
          std::string::npos);
  }

  TEST_CASE("what a hostile process says is cut off and has no control characters") {
    CHECK(harmless("a\x1b[2Jb\nc") == "a [2Jb\nc");
    CHECK(harmless(std::string(5000, 'x')).size() == 2000);
    CHECK(harmless("caf\xc3\xa9 \xe2\x80\xae \xc2\x9b \x7f") == "caf\xc3\xa9      ");
    CHECK(harmless("\xff\xc3(\xed\xa0\x80\xf8\x88") == "?\?(?????");
    std::string characters;
    while (characters.size() < 4000) characters += "\xc3\xa9";
    CHECK(harmless("a" + characters).size() % 2 == 1); // no half character at the end
  }
}
