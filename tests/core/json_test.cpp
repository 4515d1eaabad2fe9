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

TEST_CASE("a speed-up without an interval has none in JSON either") {
  const auto unknown = SpeedUp::without_interval(0.5);
  const nlohmann::json written = unknown;
  CHECK(written == nlohmann::json::parse(R"({"value": 0.5, "confidence": 0})"));
  CHECK(written.get<SpeedUp>() == unknown);
  CHECK(nlohmann::json(SpeedUp{2, 1.5, 2.5}) ==
        nlohmann::json::parse(R"({"value": 2, "low": 1.5, "high": 2.5})"));
  CHECK_THROWS_WITH_AS((void)nlohmann::json::parse(R"({"value": 2})").get<SpeedUp>(),
                       doctest::Contains("low"), Error);
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

TEST_CASE("a domain is an array of two bounds, numbers or expressions") {
  const auto domain = nlohmann::json::parse(R"([-0.5, "M - 1"])").get<ValueDomain>();
  CHECK(domain == ValueDomain{"-0.5", "M - 1"});
  CHECK(nlohmann::json(domain).dump() == R"(["-0.5","M - 1"])");
  nlohmann::json document = sample::task().arguments.front();
  for (const auto* wrong : {"[1]", "[1, 2, 3]", "[1, null]", "\"0..1\"", "3", "{\"low\": 1}"}) {
    CAPTURE(wrong);
    document["domain"] = nlohmann::json::parse(wrong);
    CHECK(read_error<Argument>(document).find("domain") != std::string::npos);
  }
  document["domain"] = nullptr;
  CHECK_FALSE(document.get<Argument>().domain);
}

TEST_CASE("where an expression is expected, a number will do") {
  nlohmann::json document = sample::task();
  document["arguments"][0]["shape"] = {64, "K"};
  document["arguments"][1]["value"] = 0.25;
  document["flops"] = 2000000000000;
  document["bytes"] = 4;
  const auto task = document.get<Task>();
  CHECK(task.arguments[0].shape == std::vector<std::string>{"64", "K"});
  CHECK(task.arguments[1].value == "0.25");
  CHECK(task.flops == "2000000000000");
  CHECK(task.bytes == "4");
  document["arguments"][0]["shape"][1] = true;
  CHECK(read_error<Task>(document).find("field \"arguments[0].shape[1]\"") != std::string::npos);
  document["arguments"][0]["shape"] = "M, K";
  CHECK(read_error<Task>(document).find("an array of expressions but found string \"M, K\"") !=
        std::string::npos);
}

TEST_CASE("an error says what was found, and names document and field") {
  nlohmann::json document = sample::task();
  document["sizes"][0]["M"] = 2.5;
  const auto text = read_error<Task>(document);
  CHECK(text.find("expected an integer but found number 2.5") != std::string::npos);
  CHECK(text.find("file.json, field \"sizes[0].M\"") != std::string::npos);
  document["schema"] = "one";
  CHECK(read_error<Task>(document).find("file.json, field \"schema\"") != std::string::npos);
  document = sample::task();
  document["name"] = nlohmann::json::array({std::string(1000, 'x')});
  CHECK(read_error<Task>(document).size() < 200); // a message, not the document
}

TEST_CASE("text kept for an unknown field must be JSON, or no document could be written") {
  auto task = sample::task();
  task.unknown.json["broken"] = "{";
  CHECK_THROWS_AS((void)to_document(task), Error);
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

TEST_CASE("whatever the text is, parsing gives a value or an Error with a place") {
  const auto error_of = [](const std::string& text) {
    try {
      (void)parse_json(text, "f");
    } catch (const Error& error) {
      CHECK(error.id() == error_id::json_malformed);
      CHECK(error.place().starts_with("f, line "));
      CHECK_FALSE(error.remedy().empty());
      return error.message();
    }
    return std::string();
  };
  CHECK(error_of("\xef\xbb\xbf{\"a\": 1}\r\n").empty()); // byte order mark, CRLF
  CHECK(error_of("").find("not JSON") != std::string::npos);
  CHECK(error_of("\xff\xfe{").find("not JSON") != std::string::npos);
  CHECK(error_of("\"\xe9\"").find("not JSON") != std::string::npos);
  CHECK(error_of("{\"M\": 1e999}") == "the number 1e999 is too large");
  CHECK(error_of(std::string(200, '[') + std::string(200, ']')).empty());
  CHECK(error_of(std::string(201, '[') + std::string(201, ']')).find("200") != std::string::npos);
  CHECK(error_of(std::string(100000, '[')).find("nested") != std::string::npos);
  CHECK(error_of("\"" + std::string(100000, '[') + "\\\"[\"").empty()); // brackets in a text nest nothing
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  CHECK(error_of(objects).find("nested") != std::string::npos);
}
