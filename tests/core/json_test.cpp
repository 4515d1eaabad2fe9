#include <mtmc/core/json.hpp>

#include <doctest/doctest.h>

#include "sample_nouns.hpp"

using namespace mtmc;

namespace {

/// Error text of a read, or "" if it succeeds.
template <class T> std::string read_error(const nlohmann::json& document) {
  try {
    (void)from_document<T>(document, "file.json");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

template <class T> void check_round_trip(const T& noun) {
  const nlohmann::json once = noun;
  const auto parsed = nlohmann::json::parse(once.dump());
  const auto back = parsed.get<T>();
  CHECK(back == noun);
  CHECK(nlohmann::json(back) == once);
  CHECK(from_document<T>(to_document(noun)) == noun);
}

template <class T> void check_default_round_trip() {
  const T noun{};
  CHECK(nlohmann::json(noun).get<T>() == noun);
}

} // namespace

TEST_CASE("every noun survives the way to JSON text and back, unknown fields included") {
  check_round_trip(sample::kernel());
  check_round_trip(sample::kernel().language);
  check_round_trip(sample::diagnostic());
  check_round_trip(sample::task());
  check_round_trip(sample::task().arguments.front());
  check_round_trip(sample::task().sizes.front());
  check_round_trip(sample::device());
  check_round_trip(sample::region());
  check_round_trip(sample::structure());
  check_round_trip(sample::action());
  check_round_trip(sample::plan());
  check_round_trip(sample::speed_up());
  check_round_trip(sample::evaluation());
  check_round_trip(sample::evaluation_request());
  check_round_trip(sample::distribution());
  check_round_trip(sample::usage());
  check_round_trip(sample::draft());
  check_round_trip(sample::history_entry());
  check_round_trip(sample::observation());
  check_round_trip(sample::coding_request());
  check_round_trip(sample::step());
}

TEST_CASE("defaults survive too") {
  check_default_round_trip<Task>();
  check_default_round_trip<Device>();
  check_default_round_trip<Structure>();
  check_default_round_trip<LaunchPlan>();
  check_default_round_trip<Evaluation>();
  check_default_round_trip<Observation>();
  check_default_round_trip<CodingRequest>();
  check_default_round_trip<Step>();
}

TEST_CASE("a size keeps its symbols next to its weight") {
  const auto size =
      nlohmann::json::parse(R"({"M": 8, "N": 4, "weight": 0, "note": "tail"})").get<ProblemSize>();
  CHECK(size.symbols == Symbols{{"M", 8}, {"N", 4}});
  CHECK(size.weight == 0);
  CHECK(size.unknown.json.at("note") == R"("tail")");
}

TEST_CASE("what is malformed is named by its field") {
  nlohmann::json document = sample::task();
  SUBCASE("wrong type") {
    document["sizes"][0]["M"] = 1.5;
    CHECK(read_error<Task>(document).find("sizes[0].M") != std::string::npos);
  }
  SUBCASE("missing field") {
    document.erase("name");
    CHECK(read_error<Task>(document).find("\"name\" is missing") != std::string::npos);
  }
  SUBCASE("value outside the closed list") {
    document["arguments"][0]["role"] = "inputs";
    const auto text = read_error<Task>(document);
    CHECK(text.find("arguments[0].role") != std::string::npos);
    CHECK(text.find("input, output, inout, scalar") != std::string::npos);
  }
  SUBCASE("unknown data type") {
    document["arguments"][0]["dtype"] = "float";
    CHECK(read_error<Task>(document).find("f32") != std::string::npos);
  }
  SUBCASE("integer too large") {
    document["sizes"][0]["M"] = 18446744073709551615ULL;
    CHECK(read_error<Task>(document).find("2^63") != std::string::npos);
  }
  SUBCASE("not an object") {
    CHECK(read_error<Task>(nlohmann::json::array()).find("an object") != std::string::npos);
  }
}

TEST_CASE("a document of a newer schema is refused, and says so") {
  auto document = to_document(sample::step());
  CHECK(document.at("schema") == json_schema_version);
  document["schema"] = json_schema_version + 1;
  CHECK(read_error<Step>(document).find(error_id::json_schema) != std::string::npos);
}

TEST_CASE("text that is not JSON is located by line and column") {
  try {
    (void)parse_json("{\n  \"a\": 1,\n  \"b\" 2\n}", "task.json");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.id() == error_id::json_malformed);
    CHECK(error.place().find("task.json, line 3, column") == 0);
  }
}
