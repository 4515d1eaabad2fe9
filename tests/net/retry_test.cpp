#include <mtmc/net/retry.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace mtmc;

namespace {

/// Sunday, 6 November 1994, 08:49:37 GMT.
constexpr std::int64_t then = 784111777;

HttpResponse answer(int status, std::string body = {}, std::vector<HttpHeader> headers = {}) {
  HttpResponse response;
  response.status = status;
  response.headers = std::move(headers);
  response.body = std::move(body);
  return response;
}
HttpResponse failed(TransportFailure failure) {
  HttpResponse response;
  response.failure = failure;
  return response;
}

std::optional<double> wait(const HttpResponse& response, int tries = 1, double chance = 0) {
  return wait_before_retry({}, response, tries, chance, then);
}
bool sent_again(const HttpResponse& response) { return wait(response).has_value(); }

std::optional<double> asked(std::string name, std::string value) {
  return wait(answer(503, {}, {{std::move(name), std::move(value)}}));
}

EndpointError error_of(std::string body) { return read_endpoint_error(answer(400, std::move(body))); }

} // namespace

TEST_CASE("what is not whole for reasons of the network is sent again, and nothing else") {
  for (const auto failure : {TransportFailure::name_not_found, TransportFailure::no_connection,
                             TransportFailure::dropped, TransportFailure::timeout})
    CHECK(sent_again(failed(failure)));
  for (const auto failure :
       {TransportFailure::malformed_request, TransportFailure::unavailable, TransportFailure::tls,
        TransportFailure::too_large, TransportFailure::cancelled, TransportFailure::pending})
    CHECK_FALSE(sent_again(failed(failure)));
}

TEST_CASE("408, 409, 429 and 5xx are sent again, other statuses are not") {
  for (const int status : {408, 409, 429, 500, 502, 503, 504, 529}) {
    CAPTURE(status);
    CHECK(sent_again(answer(status)));
  }
  for (const int status : {200, 201, 204, 301, 302, 307, 400, 401, 402, 403, 404, 405, 413, 422, 451}) {
    CAPTURE(status);
    CHECK_FALSE(sent_again(answer(status)));
  }
}

TEST_CASE("x-should-retry overrides the status") {
  CHECK(sent_again(answer(400, {}, {{"X-Should-Retry", "true"}})));
  CHECK_FALSE(sent_again(answer(503, {}, {{"x-should-retry", "false"}})));
  CHECK(sent_again(answer(503, {}, {{"x-should-retry", "maybe"}})));
  CHECK_FALSE(sent_again(answer(400, {}, {{"x-should-retry", "maybe"}})));
  // Not a success, and not for ever.
  CHECK_FALSE(sent_again(answer(200, {}, {{"x-should-retry", "true"}})));
  CHECK_FALSE(wait(answer(503, {}, {{"x-should-retry", "true"}}), 6).has_value());
}

TEST_CASE("a quota that is used up does not come back by waiting") {
  CHECK_FALSE(sent_again(answer(429, R"({"error":{"message":"You exceeded your current quota",)"
                                     R"("type":"insufficient_quota","param":null,)"
                                     R"("code":"insufficient_quota"}})")));
  CHECK_FALSE(sent_again(answer(429, R"({"error":{"message":"limit","type":"insufficient_quota"}})")));
  CHECK_FALSE(
      sent_again(answer(429, R"({"error":{"message":"limit","code":"billing_hard_limit_reached"}})")));
  CHECK(sent_again(answer(429, R"({"error":{"message":"slow down","code":"rate_limit_exceeded"}})")));
}

TEST_CASE("llama.cpp's 500 for what it cannot do is not sent again, its 503 while it loads is") {
  CHECK_FALSE(sent_again(answer(500, R"({"error":{"code":500,"message":"Only no echo is supported",)"
                                     R"("type":"server_error"}})")));
  CHECK_FALSE(sent_again(
      answer(500, R"({"error":{"code":500,"message":"[json.exception.parse_error.101] parse error at line 1,)"
                  R"( column 2: syntax error while parsing object key","type":"server_error"}})")));
  CHECK_FALSE(sent_again(answer(500, R"({"error":{"code":500,"message":"got exception: Unexpected empty )"
                                     R"(grammar stack after accepting piece: !","type":"server_error"}})")));
  CHECK(sent_again(answer(503, R"({"error":{"code":503,"message":"Loading model",)"
                               R"("type":"unavailable_error"}})")));
}

TEST_CASE("llama-cpp-python's 500 for a wrong request is not sent again, that for its own trouble is") {
  const auto error = [](const std::string& message) {
    return answer(500, R"({"error":{"message":")" + message +
                           R"(","type":"internal_server_error","param":null,"code":null}})");
  };
  CHECK_FALSE(sent_again(error("logprobs is not supported for models created with logits_all=False")));
  CHECK_FALSE(sent_again(error(R"(1 validation error:\n  {'type': 'literal_error', 'loc': ('body',)"
                               R"( 'response_format', 'type'), 'input': 'json_schema'})")));
  CHECK_FALSE(sent_again(error(R"(4 validation errors:\n  {'type': 'string_type', 'loc': ('body',)")));
  CHECK(sent_again(error("")));
  CHECK(sent_again(error("llama_decode returned 1")));
}

TEST_CASE("waits double from half a second to eight, less up to a quarter") {
  const double expected[] = {0.5, 1, 2, 4, 8};
  for (int tries = 1; tries <= 5; ++tries) {
    CAPTURE(tries);
    CHECK(*wait(answer(503), tries, 0) == doctest::Approx(expected[tries - 1]));
    CHECK(*wait(answer(503), tries, 1) == doctest::Approx(0.75 * expected[tries - 1]));
    CHECK(*wait(answer(503), tries, 0.5) == doctest::Approx(0.875 * expected[tries - 1]));
  }
  CHECK_FALSE(wait(answer(503), 6).has_value());

  const RetryRules patient{.max_retries = 100000, .first_wait = 3, .max_wait = 20};
  CHECK(*wait_before_retry(patient, answer(503), 4, 0, then) == doctest::Approx(20));
  CHECK(*wait_before_retry(patient, answer(503), 99999, 0, then) == doctest::Approx(20));
  CHECK_FALSE(wait_before_retry({.max_retries = 0}, answer(503), 1, 0, then).has_value());
}

TEST_CASE("a server that says when is asked then, without jitter, up to two minutes") {
  CHECK(*asked("Retry-After", "3") == doctest::Approx(3));
  CHECK(*asked("retry-after", " 0.25 ") == doctest::Approx(0.25));
  CHECK(*asked("Retry-After-Ms", "1500") == doctest::Approx(1.5));
  CHECK(*asked("Retry-After", "120") == doctest::Approx(120));
  CHECK(*wait(answer(429, {}, {{"Retry-After", "3"}}), 1, 0.9) == doctest::Approx(3));
  // Milliseconds come first, unless they are none.
  CHECK(*wait(answer(503, {}, {{"Retry-After", "9"}, {"retry-after-ms", "10"}})) == doctest::Approx(0.01));
  CHECK(*wait(answer(503, {}, {{"Retry-After", "9"}, {"retry-after-ms", "soon"}})) == doctest::Approx(9));
}

TEST_CASE("a server that asks for more than two minutes is not asked again") {
  CHECK_FALSE(asked("Retry-After", "121").has_value());
  CHECK_FALSE(asked("retry-after-ms", "120001").has_value());
  CHECK_FALSE(asked("Retry-After", "Sun, 06 Nov 1994 08:51:38 GMT").has_value());
  const RetryRules rules{.max_asked_wait = 5};
  CHECK_FALSE(wait_before_retry(rules, answer(503, {}, {{"Retry-After", "6"}}), 1, 0, then).has_value());
}

TEST_CASE("a date to wait for") {
  CHECK(*asked("Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT") == doctest::Approx(30));
  CHECK(*asked("Retry-After", "Sun, 06 Nov 1994 08:51:37 GMT") == doctest::Approx(120));
  // Past, or none at all: as if nothing had been said.
  for (const auto* const text : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sat, 05 Nov 1994 08:49:37 GMT",
                                 "Sun, 06 Foo 1994 08:50:07 GMT", "tomorrow", "0", "-3", "nan", ""}) {
    CAPTURE(text);
    CHECK(*asked("Retry-After", text) == doctest::Approx(0.5));
  }
}

TEST_CASE("what is asked for does not make a request go again that may not") {
  CHECK_FALSE(sent_again(answer(400, {}, {{"Retry-After", "1"}})));
  CHECK_FALSE(wait(answer(503, {}, {{"Retry-After", "1"}}), 6).has_value());
}

TEST_CASE("errors are read in every form that is in use") {
  SUBCASE("OpenAI") {
    const auto error = error_of(R"({"error":{"message":"Too long","type":"invalid_request_error",)"
                                R"("param":"messages","code":"context_length_exceeded"}})");
    CHECK(error == EndpointError{"Too long", "context_length_exceeded", "messages"});
  }
  SUBCASE("nested, with a code that is a number") {
    const auto error =
        error_of(R"({"error":{"message":"bad","type":"BadRequestError","param":null,"code":400}})");
    CHECK(error == EndpointError{"bad", "BadRequestError", ""});
  }
  SUBCASE("flat") {
    const auto error =
        error_of(R"({"object":"error","message":"bad","type":"BadRequestError","param":"n","code":400})");
    CHECK(error == EndpointError{"bad", "BadRequestError", "n"});
  }
  SUBCASE("llama.cpp") {
    const auto error = error_of(R"({"error":{"code":400,"message":"the request exceeds the context",)"
                                R"("type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":4}})");
    CHECK(error.code == "exceed_context_size_error");
  }
  SUBCASE("Anthropic") {
    CHECK(error_of(R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})") ==
          EndpointError{"Overloaded", "overloaded_error", ""});
  }
  SUBCASE("Gemini: a list of one") {
    CHECK(error_of(R"([{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}])") ==
          EndpointError{"bad", "INVALID_ARGUMENT", ""});
  }
  SUBCASE("TGI") {
    CHECK(error_of(R"({"error":"overloaded","error_type":"overloaded"})") ==
          EndpointError{"overloaded", "overloaded", ""});
  }
  SUBCASE("Ollama") {
    CHECK(error_of(R"({"error":"no such model"})") == EndpointError{"no such model", "", ""});
  }
  SUBCASE("FastAPI") {
    CHECK(error_of(R"({"detail":"Not Found"})").message == "Not Found");
    CHECK(error_of(R"({"detail":[{"loc":["body","n"],"msg":"bad"}]})").message ==
          R"([{"loc":["body","n"],"msg":"bad"}])");
  }
  SUBCASE("other objects") {
    CHECK(error_of(R"({"error":null,"message":"odd"})").message == "odd");
    CHECK(error_of(R"({"reason":"odd"})").message == R"({"reason":"odd"})");
  }
  SUBCASE("text") { CHECK(error_of(" upstream\n  is gone\n").message == "upstream is gone"); }
  SUBCASE("nothing") { CHECK(error_of("") == EndpointError{}); }
  SUBCASE("a list of nothing") { CHECK(error_of("[]").message == "[]"); }
  SUBCASE("half a JSON") { CHECK(error_of(R"({"error":{"mess)").message == R"({"error":{"mess)"); }
}

TEST_CASE("of a page the title is read, or else its text") {
  CHECK(error_of("<html><head><title>502 Bad\nGateway</title></head><body>nginx</body></html>").message ==
        "502 Bad Gateway");
  CHECK(error_of("<!DOCTYPE html>\n<HTML><HEAD><TITLE>Blocked</TITLE></HEAD></HTML>").message == "Blocked");
  CHECK(error_of("<html><body><h1>Gone</h1> <p>for good</p></body></html>").message == "Gone for good");
  CHECK(error_of("<html><title></title><body>Gone</body></html>").message == "Gone");
}

TEST_CASE("a server's words are one line of valid text, and not long") {
  CHECK(error_of(std::string(300, 'x')).message == std::string(300, 'x'));
  CHECK(error_of(std::string(301, 'x')).message == std::string(300, 'x') + "...");
  CHECK(error_of(std::string(100000, 'x')).message.size() == 303);
  // Not in the middle of a character.
  CHECK(error_of(std::string(299, 'x') + "\xc3\xa4 and more").message == std::string(299, 'x') + "...");
  CHECK(error_of("odd \xff bytes").message == "odd ? bytes");
  CHECK(error_of("red \x1b[31m\a\r\n line").message == "red [31m line");
}
