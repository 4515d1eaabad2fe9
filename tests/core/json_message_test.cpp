// What processes say to each other, beyond what JSON can say. Numbers:
// tests/evaluator/worker/worker_protocol_test.cpp.
#include <mtmc/core/json_message.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;
using namespace mtmc::detail;

TEST_CASE("texts come back with all their bytes, be they long, no UTF-8 or full of zeros") {
  std::string every;
  for (int i = 0; i < 256; ++i) every.push_back(static_cast<char>(i));
  const std::string longer(5000, 'x'), zeros(3, '\0');
  const Json message{{"plain", "text"},
                     {"every", every},
                     {"list", {longer, zeros, "\xff", 7}},
                     {"deeper", {{"text", every + longer}}},
                     {"empty", ""}};
  const auto bytes = message_with_texts(message);
  CHECK(bytes.find('\n') < 400); // the line is short whatever the texts are
  CHECK(parse_message_with_texts(bytes, "here") == message);
}

TEST_CASE("what is cut short or lies about its texts is no message") {
  const auto bytes = message_with_texts({{"text", std::string(2000, 'x')}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS((void)parse_message_with_texts(bytes.substr(0, size), "here"), Error);
  for (const auto* place : {"[4,1]", "[0,5]", "[1,18446744073709551615]", "[-1,1]", "[0]", "[0,1,2]", "0",
                            "null", "{}", "[0.5,1]"}) {
    CAPTURE(place);
    CHECK_THROWS_AS(
        (void)parse_message_with_texts("{\"a\":{\"$bytes\":" + std::string(place) + "}}\n1234", "here"),
        Error);
  }
  CHECK(parse_message_with_texts("{\"a\":{\"$bytes\":[1,3]}}\n1234", "here")["a"] == "234");
  for (const auto* line : {"", "\n", "[]\n", "7\n", "{\n", "{} {}\n"})
    CHECK_THROWS_AS((void)parse_message_with_texts(line, "here"), Error);
  CHECK_THROWS_AS((void)parse_message_with_texts(std::string(100'000, '[') + '\n', "here"), Error);
  CHECK_THROWS_AS((void)parse_message_with_texts('{' + std::string(max_message_line, ' ') + "}\n", "here"),
                  Error);
}

TEST_CASE("an error keeps all it says, and one without an id gets one") {
  const Error error("mtmc.task.002", "what", "remedy", "place");
  CHECK(std::string(error_from_json(error_to_json(error), "mtmc.other.001").what()) == error.what());
  CHECK(error_from_json({{"message", "what"}}, "mtmc.other.001").id() == "mtmc.other.001");
}
