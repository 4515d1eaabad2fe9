#include <mtmc/report/terminal_text.hpp>

#include <doctest/doctest.h>

using namespace mtmc::detail;

TEST_CASE("columns are counted by code points, without escape sequences") {
  CHECK(columns_of("") == 0);
  CHECK(columns_of("abc") == 3);
  CHECK(columns_of("a·b→…") == 5);
  CHECK(columns_of("\033[1mbold\033[0m") == 4);
  CHECK(columns_of("\033[1") == 0);
}

TEST_CASE("one line of limited length, never cut inside a character") {
  CHECK(one_line("short", 10, true) == "short");
  CHECK(one_line("exactly ten", 11, true) == "exactly ten");
  CHECK(one_line("too long for it", 8, true) == "too lon…");
  CHECK(one_line("too long for it", 8, false) == "too l...");
  CHECK(one_line("äöüäöüäöü", 5, true) == "äöüä…");
  CHECK(one_line("first\nsecond", 0, true) == "first");
  CHECK(one_line("tab\tand \033[31mred", 0, true) == "tab and  [31mred");
  CHECK(one_line("abc", 1, true).size() <= 1);
}

TEST_CASE("padding") {
  CHECK(padded("ab", 4) == "ab  ");
  CHECK(padded("ab", 4, true) == "  ab");
  CHECK(padded("·", 2) == "· ");
  CHECK(padded("abc", 2) == "abc");
}

TEST_CASE("numbers for people") {
  CHECK(ratio_text(0.5) == "0.50");
  CHECK(ratio_text(9.994) == "9.99");
  CHECK(ratio_text(9.996) == "10.0");
  CHECK(ratio_text(99.96) == "100");
  CHECK(ratio_text(12345) == "12345");
  CHECK(interval_text({7.081, 6.914, 7.239, 0.95, {}}) == "7.08x [6.91, 7.24]");
  CHECK(interval_text(mtmc::SpeedUp::without_interval(0.214)) == "0.21x");
  CHECK(duration_for_people(0.04) == "0.0 s");
  CHECK(duration_for_people(9.96) == "9 s");
  CHECK(duration_for_people(59.9) == "59 s");
  CHECK(duration_for_people(185) == "3 min 05 s");
  CHECK(duration_for_people(8040) == "2 h 14 min");
  CHECK(count_text(0) == "0");
  CHECK(count_text(999) == "999");
  CHECK(count_text(1234) == "1.2k");
  CHECK(count_text(123456) == "123k");
  CHECK(count_text(999949) == "1000k");
  CHECK(count_text(1250000) == "1.25M");
}
