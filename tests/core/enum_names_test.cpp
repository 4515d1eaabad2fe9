#include <mtmc/core/concepts.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/policy/situation.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;

TEST_CASE_TEMPLATE("names of a closed list are unique, plain and read back as the value they name", Enum,
                   Severity, Syntax, ArgumentRole, LaunchArgument::Kind, RegionKind, DependenceKind,
                   Action::Kind, Purpose, Verdict, Comparison, DraftFailure, RunOutcome, Bottleneck, Headroom,
                   ErrorCategory) {
  const auto entries = enum_names(Enum{});
  REQUIRE(!entries.empty());
  int position = 0;
  for (const auto& entry : entries) {
    CAPTURE(entry.name);
    CHECK(static_cast<int>(entry.value) == position++); // nothing is left out
    CHECK(to_string(entry.value) == entry.name);
    CHECK(parse_enum<Enum>(entry.name) == entry.value); // fails for all but the first of two equal names
    CHECK(entry.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
  }
  CHECK(to_string(static_cast<Enum>(position)) == "?");
  CHECK_FALSE(parse_enum<Enum>("?"));
}

TEST_CASE("only the exact name is read") {
  CHECK(parse_enum<Verdict>("correct") == Verdict::correct);
  CHECK_FALSE(parse_enum<Verdict>("Correct"));
  CHECK_FALSE(parse_enum<Verdict>("correct "));
  CHECK_FALSE(parse_enum<Verdict>(""));
}

TEST_CASE("names are known at compile time") {
  static_assert(to_string(Verdict::wrong_result) == "wrong_result");
  static_assert(parse_enum<ArgumentRole>("inout") == ArgumentRole::inout);
  static_assert(!NamedEnum<int> && NamedEnum<Purpose>);
  enum class Unnamed { one };
  static_assert(!NamedEnum<Unnamed>);
  CHECK(to_string(RunOutcome::device_lost) == "device_lost");
}
