// Readable names of symbols.

#include <mtmc/support/demangle.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc::detail;

namespace {

/// A variable of a function template whose argument is a pair of two equal pairs of two equal pairs ...
std::string variable_of_pairs(int depth) {
  constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  // S_ is the function's template, S0_ the pair's, S1_ the innermost pair, and so on.
  const auto reference = [&](int number) {
    std::string text;
    for (; number >= 0; number = number / 36 - 1)
      text.insert(0, 1, digits[static_cast<std::size_t>(number % 36)]);
    return "S" + text + "_";
  };
  std::string type = "1PI";
  for (int i = 1; i < depth; ++i) type += "S0_I";
  type += "iiE";
  for (int i = 1; i < depth; ++i) type += reference(i) + "E";
  return "_ZZ4rowsI" + type + "EvT_E5cache";
}

} // namespace

TEST_SUITE("readable names") {
  TEST_CASE("a symbol is shown as the coder wrote it") {
    CHECK(demangled("_ZZ4rowsPKfE5cache") == "rows(float const*)::cache");
    CHECK(demangled("_ZNSt6vectorIfSaIfEE9push_backERKf") ==
          "std::vector<float, std::allocator<float> >::push_back(float const&)");
    CHECK(demangled(variable_of_pairs(2)) ==
          "rows<P<P<int, int>, P<int, int> > >(P<P<int, int>, P<int, int> >)::cache");
  }

  TEST_CASE("what is no mangled name stays as it is") {
    CHECK(demangled("c") == "c");
    CHECK(demangled("memcpy") == "memcpy");
    CHECK(demangled("_Zwhat") == "_Zwhat");
    CHECK(demangled("").empty());
  }

  TEST_CASE("a long name keeps its beginning and its end") {
    const std::string cut = demangled(variable_of_pairs(6));
    CHECK(cut.size() <= 203);
    CHECK(cut.starts_with("rows<P<P<P"));
    CHECK(cut.find("...") != std::string::npos);
    CHECK(cut.ends_with("::cache"));
    CHECK(abridged("abcdefgh", 4) == "ab...gh");
    CHECK(abridged("abcd", 4) == "abcd");
  }

  TEST_CASE("a name that doubles with each level is never written out") {
    for (const int depth : {24, 40, 400}) {
      const std::string name = demangled(variable_of_pairs(depth));
      CHECK(name.size() <= 203);
      CHECK(name.starts_with("_ZZ4rowsI1P"));
      CHECK(name.ends_with("5cache"));
    }
  }

  TEST_CASE("no name is longer than what it was taken for") {
    for (int depth = 1; depth < 14; ++depth) {
      const std::string mangled = variable_of_pairs(depth);
      int status = 0;
      const std::unique_ptr<char, decltype(&std::free)> text{
          abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free};
      REQUIRE(status == 0);
      CHECK(static_cast<double>(std::string_view(text.get()).size()) <= largest_written_out(mangled));
    }
    CHECK(largest_written_out("_Z1fI1PIiES0_S0_EvT_") > largest_written_out("_Z1fI1PIiEE"));
  }
}
