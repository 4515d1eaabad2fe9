#include <mtmc/support/text.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace mtmc;

TEST_CASE("trim takes blanks, tabs and line ends off both ends and leaves the middle") {
  CHECK(trim(" \t a  b \r\n") == "a  b");
  CHECK(trim("a") == "a");
  CHECK(trim(" \r\n\t ").empty());
  CHECK(trim("").empty());
}

TEST_CASE("an identifier is a letter or underscore, then letters, digits and underscores") {
  for (const auto* name : {"a", "_", "A9", "block_size_2", "__x"}) CHECK(is_identifier(name));
  for (const auto* text : {"", "9a", "a-b", "a b", " a", "a ", "a.b", "a::b", "\xc3\xa4"})
    CHECK_FALSE(is_identifier(text));
}

TEST_CASE("taking an identifier consumes it and the blanks round it") {
  std::string_view text = "  launch  gemm(A)";
  CHECK(take_identifier(text) == "launch");
  CHECK(text == "gemm(A)");
  CHECK(take_identifier(text) == "gemm");
  CHECK(text == "(A)");
  CHECK(take_identifier(text).empty());
  CHECK(text == "(A)");
  text = "";
  CHECK(take_identifier(text).empty());
}

TEST_CASE("text that is UTF-8 has no malformed byte") {
  CHECK(find_malformed_utf8("") == std::string_view::npos);
  CHECK(find_malformed_utf8("plain\n") == std::string_view::npos);
  CHECK(find_malformed_utf8("\x7f \xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xef\xbf\xbf "
                            "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf") == std::string_view::npos);
}

TEST_CASE("the first malformed byte of a text is found") {
  CHECK(find_malformed_utf8("caf\xe9 au lait") == 3);  // Latin-1
  CHECK(find_malformed_utf8("ab\x80") == 2);           // continuation without a lead
  CHECK(find_malformed_utf8("a\xe2\x82") == 1);        // cut off
  CHECK(find_malformed_utf8("\xc0\xaf") == 0);         // too long a form of '/'
  CHECK(find_malformed_utf8("\xe0\x9f\xbf") == 0);     // too long a form
  CHECK(find_malformed_utf8("\xf0\x8f\xbf\xbf") == 0); // too long a form
  CHECK(find_malformed_utf8("\xed\xa0\x80") == 0);     // surrogate
  CHECK(find_malformed_utf8("\xf4\x90\x80\x80") == 0); // beyond U+10FFFF
  CHECK(find_malformed_utf8("\xf5\x80\x80\x80") == 0); // no such lead byte
  CHECK(find_malformed_utf8("\xff\xfe") == 0);         // UTF-16 with a byte order mark
}

TEST_CASE("a word of a shell is quoted where it has to be") {
  CHECK(mtmc::detail::shell_word("-std=gnu++20") == "-std=gnu++20");
  CHECK(mtmc::detail::shell_word("") == "''");
  CHECK(mtmc::detail::shell_word("-DX=(1 + 2)") == "'-DX=(1 + 2)'");
  CHECK(mtmc::detail::shell_word("it's") == "'it'\\''s'");
}

TEST_CASE("a server's words are shortened to one line of UTF-8 that says something") {
  using mtmc::detail::shortened;
  CHECK(shortened("  two \n lines\t\x1b[1m") == "two lines [1m");
  CHECK(shortened("abcdef", 3) == "abc...");
  CHECK(shortened("ab\u00e4", 3) == "ab...");
  CHECK(shortened("\xe4hnlich") == "?hnlich");
  CHECK(shortened("mod\xe8le inconnu") == "mod?le inconnu");
  CHECK(shortened("\xff\xfe\xfd", 2) == "...");
}

TEST_CASE("lines are taken off a text, empty ones and one without an end, too") {
  std::string_view text = "one\n\nthree";
  CHECK(mtmc::detail::take_line(text) == "one");
  CHECK(mtmc::detail::take_line(text).empty());
  CHECK(mtmc::detail::take_line(text) == "three");
  CHECK(text.empty());
}
