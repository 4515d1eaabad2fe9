#include <mtmc/analysis/syntax/unfinished.hpp>

#include <doctest/doctest.h>

using namespace mtmc;

TEST_CASE("unfinished: a whole text has nothing open, whatever its quotes and comments hold") {
  CHECK(find_unfinished("").empty());
  CHECK(find_unfinished("void f(int a[3]) { g(\"(\", ')', R\"x(\")x\"); } // {\n/* ( */\n").empty());
}

TEST_CASE("unfinished: the innermost bracket that another one overtakes, or the text's end") {
  CHECK(find_unfinished("void f(float* y, int n {\n}\n") == "the '(' at line 1, column 7 is never closed");
  CHECK(find_unfinished("void f() {\n  for (int i = 0; i < 3; ++i {\n  }\n}\n") ==
        "the '(' at line 2, column 7 is never closed");
  CHECK(find_unfinished("void f() {\n  if (true) {\n}\n") == "the '{' at line 1, column 10 is never closed");
  CHECK(find_unfinished("void f() {\n}}\n") == "the '}' at line 2, column 2 closes nothing");
}

TEST_CASE("unfinished: comments and quotes") {
  CHECK(find_unfinished("void f() {}\n  /* here") == "the comment at line 2, column 3 is never closed");
  CHECK(find_unfinished("const char* s = \"abc;\n") == "the quote at line 1, column 17 is never closed");
}

TEST_CASE("unfinished: of an #if only the first branch counts, and none of an #if 0") {
  CHECK(find_unfinished("#ifdef A\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n}\n").empty());
  CHECK(find_unfinished("#if 0\n((( it's\n#endif\nvoid f() {}\n").empty());
}
