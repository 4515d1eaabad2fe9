// Which place of a kernel's text a line of assembly comes from.
#include <mtmc/backend/source_places.hpp>

#include <doctest/doctest.h>

#include <string_view>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

SourcePlaces after(std::string_view text, std::string_view assembly) {
  SourcePlaces places("kernel.cpp", text);
  for (auto rest = assembly; !rest.empty();) places.note_file(statement_of(take_line(rest)));
  while (!assembly.empty()) places.note_place(statement_of(take_line(assembly)));
  return places;
}

} // namespace

TEST_SUITE("source places") {
  TEST_CASE("a statement is found by the names that GCC, Clang and NVRTC give a file") {
    for (const std::string_view file :
         {".file 1 \"kernel.cpp\"", "\t.file\t1 \"/folder\" \"kernel.cpp\" md5 0x12",
          "\t.file\t1 \"/some/folder/kernel.cpp\""}) {
      const auto places = after("", std::string(file) + "\n\t.loc\t1 12 5 is_stmt 0\n");
      CHECK(places.is_known());
      CHECK(places.branch() == Branch{12, 5, false, false});
    }
  }

  TEST_CASE("a file may be named behind its use, as in PTX") {
    CHECK(after("", "\t.loc 1 3 2\n\t.file 1 \"kernel.cpp\"\n").is_known());
  }

  TEST_CASE("statements of headers, lines without a number, and lines of directives are not the kernel's") {
    CHECK_FALSE(after("", ".file 1 \"kernel.cpp\"\n.file 2 \"/usr/include/new\"\n.loc 2 12 5\n").is_known());
    CHECK_FALSE(after("", ".file 1 \"kernel.cpp\"\n.loc 1 0\n").is_known());
    const std::string_view text = "void f() {\n  #pragma omp parallel for\n  for (;;);\n}\n";
    CHECK_FALSE(after(text, ".file 1 \"kernel.cpp\"\n.loc 1 2 9\n").is_known());
    CHECK(after(text, ".file 1 \"kernel.cpp\"\n.loc 1 3 3\n").is_known());
    const std::string_view comment = "/*\n# */ if (n == 13) f();\n";
    CHECK(after(comment, ".file 1 \"kernel.cpp\"\n.loc 1 2 6\n").is_known());
  }
}
