#include <mtmc/core/error.hpp>
#include <mtmc/net/curl.hpp>
#include <mtmc/net/endpoint.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "curl_requests.hpp"
#include "fake_server.hpp"
#include "scripted_transport.hpp"

using namespace curl_requests;
using mtmc::AnyTransport;
using mtmc::Endpoint;
using mtmc::EndpointOptions;
using mtmc::HttpRequest;
using mtmc::HttpResponse;
using mtmc::TransportFailure;

namespace {

/// What a transport was given, for each call of it.
struct Sent {
  HttpRequest request;
  mtmc::Deadline deadline;
  std::chrono::steady_clock::time_point at;
};
using Log = std::vector<Sent>;

/// A transport that answers its n-th request as a function of n says, n from 1.
struct Scripted {
  std::shared_ptr<Log> log;
  std::function<HttpResponse(int, const mtmc::BodySink&)> script;

  HttpResponse send(const HttpRequest& request, const mtmc::BodySink& sink, mtmc::Deadline deadline,
                    const std::stop_token&) {
    log->push_back({request, deadline, std::chrono::steady_clock::now()});
    return script(static_cast<int>(log->size()), sink);
  }
};

HttpResponse answer(int status, std::vector<mtmc::HttpHeader> headers = {}) {
  HttpResponse response;
  response.status = status;
  response.headers = std::move(headers);
  return response;
}

/// Options whose waits no test feels.
EndpointOptions options_for(std::string url = "http://host:8000/v1") {
  EndpointOptions options;
  options.base_url = std::move(url);
  options.model = "m";
  options.retries.first_wait = 1e-4;
  return options;
}

/// An endpoint, what is sent to it, and how it answers.
struct Trial {
  std::shared_ptr<Log> log = std::make_shared<Log>();
  Endpoint endpoint;

  explicit Trial(std::function<HttpResponse(int)> script, EndpointOptions options = options_for())
      : endpoint(
            Scripted{log, [script = std::move(script)](int n, const mtmc::BodySink&) { return script(n); }},
            std::move(options)) {}

  Endpoint::Outcome send(std::string_view path = "/chat/completions", std::string body = "{}",
                         double seconds = 30, std::stop_token stop = {}) {
    return endpoint.send(path, std::move(body), in_seconds(seconds), std::move(stop));
  }
};

std::string error_of(const std::string& url) {
  try {
    const Endpoint endpoint(Scripted{}, options_for(url));
    return "none";
  } catch (const mtmc::Error& error) {
    CHECK(error.option() == "EndpointOptions::base_url");
    return error.id();
  }
}

} // namespace

TEST_CASE("an address without scheme or host is refused") {
  for (const auto* const url :
       {"", "/", "localhost:8000/v1", "ftp://host/v1", "http://", "https:///v1", "http:"})
    CHECK(error_of(url) == "mtmc.net.001");
  for (const auto* const url :
       {"http://host", "https://host/", "http://host:8000/v1/", "http://[::1]:8000/v1"})
    CHECK(error_of(url) == "none");
}

TEST_CASE("an address that is refused is shown without what it keeps secret") {
  try {
    const Endpoint endpoint(Scripted{}, options_for("ftp://me:hunter2@host/v1?key=hunter2"));
    FAIL("the address was taken");
  } catch (const mtmc::Error& error) {
    CHECK(
        std::string(error.what()) ==
        "[mtmc.net.001] the URL does not begin with http:// or https:// (\"ftp://host/v1?key=[redacted]\"). "
        "Give the whole address, such as http://localhost:8000/v1 (EndpointOptions::base_url)");
  }
}

TEST_CASE("an endpoint is recognised by its host's name or its usual port, not by other parts of a URL") {
  const auto name = [](const char* url) { return mtmc::endpoint_profile_for(url).name; };
  CHECK(name("https://api.openai.com/v1") == "openai");
  CHECK(name("https://API.OpenAI.com") == "openai");
  CHECK(name("https://gateway/api.openai.com/v1") == "unknown");
  CHECK(name("http://localhost:8080/v1") == "llama.cpp");
  CHECK(name("http://10.0.0.7:11434/v1") == "ollama");
  CHECK(name("http://host:18080/v1") == "unknown");
  CHECK(name("http://host/:8080") == "unknown");
  CHECK(name("http://host:8000/v1") == "unknown");
  CHECK(name("") == "unknown");
}

TEST_CASE("a path is below the base, or below the server's root with two slashes") {
  const auto url_of = [](const std::string& base, std::string_view path) {
    Trial trial([](int) { return answer(200); }, options_for(base));
    (void)trial.send(path);
    return trial.log->front().request.url;
  };
  CHECK(url_of("http://host:8000/v1", "/chat/completions") == "http://host:8000/v1/chat/completions");
  CHECK(url_of("http://host:8000/v1//", "/models") == "http://host:8000/v1/models");
  CHECK(url_of("http://host:8000/v1", "//tokenize") == "http://host:8000/tokenize");
  CHECK(url_of("https://host/a/b/v1", "//version") == "https://host/version");
  CHECK(url_of("http://host", "/models") == "http://host/models");
  CHECK(url_of("http://host", "//models") == "http://host/models");
  // A gateway that wants a parameter wants it everywhere.
  CHECK(url_of("https://host/v1/?api-version=2", "/models") == "https://host/v1/models?api-version=2");
  CHECK(url_of("https://host/v1?api-version=2", "//version") == "https://host/version?api-version=2");
}

TEST_CASE("a request carries type, key and the host's own headers") {
  auto options = options_for();
  options.api_key = "sk-1";
  options.headers = {{"OpenAI-Organization", "org"}};
  Trial trial([](int) { return answer(200); }, options);

  (void)trial.endpoint.send("/x", "{}", in_seconds(30), {}, {}, "gemm-3-0");
  const auto& post = trial.log->at(0).request;
  CHECK(post.method == "POST");
  CHECK(post.body == "{}");
  CHECK(post.label == "gemm-3-0");
  CHECK(*mtmc::find_header(post.headers, "Content-Type") == "application/json");
  CHECK(*mtmc::find_header(post.headers, "Accept") == "application/json");
  CHECK(*mtmc::find_header(post.headers, "Authorization") == "Bearer sk-1");
  CHECK(*mtmc::find_header(post.headers, "openai-organization") == "org");

  (void)trial.send("/models", "");
  const auto& get = trial.log->at(1).request;
  CHECK(get.method == "GET");
  CHECK(mtmc::find_header(get.headers, "Content-Type") == nullptr);

  mtmc::AnswerReader reader;
  reader.take = [](std::string_view) { return true; };
  (void)trial.endpoint.send("/x", "{}", in_seconds(30), {}, reader);
  CHECK(*mtmc::find_header(trial.log->at(2).request.headers, "Accept") == "text/event-stream");
}

TEST_CASE("a request is sent again until it is answered, and the same each time") {
  Trial trial([](int n) { return n < 4 ? answer(503) : answer(200); });
  const auto outcome = trial.send();
  CHECK(outcome.response.ok());
  CHECK(outcome.tries == 4);
  REQUIRE(trial.log->size() == 4);
  for (const auto& sent : *trial.log) CHECK(sent.request == trial.log->front().request);
}

TEST_CASE("the last answer is given where no try helps, and the first where none can") {
  Trial stubborn([](int) { return answer(503); });
  CHECK(stubborn.send().tries == 6);
  CHECK(stubborn.send().response.status == 503);
  Trial wrong([](int) { return answer(400); });
  CHECK(wrong.send().tries == 1);
  Trial once([](int) { return answer(503); },
             [] {
               auto options = options_for();
               options.retries.max_retries = 0;
               return options;
             }());
  CHECK(once.send().tries == 1);
}

TEST_CASE("a wait that a server asks for is kept") {
  Trial trial([](int n) { return n == 1 ? answer(429, {{"retry-after-ms", "50"}}) : answer(200); });
  CHECK(trial.send().tries == 2);
  CHECK(trial.log->at(1).at - trial.log->at(0).at >= std::chrono::milliseconds(50));
}

TEST_CASE("one deadline holds over all tries and waits") {
  // A wait that would pass it is not begun.
  Trial asked([](int) { return answer(503, {{"Retry-After", "60"}}); });
  const auto start = std::chrono::steady_clock::now();
  CHECK(asked.send("/x", "{}", 20).tries == 1);
  CHECK(seconds_since(start) < 10);

  auto options = options_for();
  options.try_seconds = 5;
  options.all_seconds = 3;
  Trial trial([](int n) { return n == 1 ? answer(503) : answer(200); }, options);
  const auto latest = in_seconds(3);
  (void)trial.send("/x", "{}", 30);
  REQUIRE(trial.log->size() == 2);
  CHECK(trial.log->at(0).deadline >= latest);
  CHECK(trial.log->at(1).deadline == trial.log->at(0).deadline);

  // The caller's own, where it is the earliest.
  const auto own = in_seconds(1);
  (void)trial.endpoint.send("/x", "{}", own, {});
  CHECK(trial.log->back().deadline == own);

  // And each try has its own below it.
  options.try_seconds = 1;
  Trial tries([](int n) { return n == 1 ? answer(503) : answer(200); }, options);
  const auto begun = std::chrono::steady_clock::now();
  (void)tries.send("/x", "{}", 30);
  CHECK(tries.log->at(0).deadline - begun < std::chrono::milliseconds(2500));
  CHECK(tries.log->at(1).deadline > tries.log->at(0).deadline);
}

TEST_CASE("times without bounds are no bounds") {
  auto options = options_for();
  options.try_seconds = std::numeric_limits<double>::infinity();
  options.all_seconds = 1e300;
  Trial trial([](int) { return answer(200); }, options);
  CHECK(trial.endpoint.send("/x", "{}", mtmc::Deadline::max(), {}).response.ok());
  CHECK(trial.log->front().deadline > in_seconds(1e6));
}

TEST_CASE("a stop request ends a wait at once") {
  std::stop_source stop;
  std::atomic<bool> sent = false;
  Trial trial([&](int) {
    sent = true;
    sent.notify_all();
    return answer(503, {{"Retry-After", "100"}});
  });
  std::jthread stopper([&] {
    sent.wait(false);
    stop.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  const auto outcome = trial.send("/x", "{}", 1000, stop.get_token());
  CHECK(outcome.tries == 1);
  CHECK(seconds_since(start) < 50);
}

TEST_CASE("a reader begins anew before each try") {
  std::vector<std::string> seen;
  mtmc::AnswerReader reader;
  reader.begin = [&] { seen.emplace_back("begin"); };
  reader.take = [&](std::string_view piece) {
    seen.emplace_back(piece);
    return true;
  };
  Endpoint endpoint(Scripted{std::make_shared<Log>(),
                             [](int n, const mtmc::BodySink& sink) {
                               sink("part " + std::to_string(n));
                               auto response = answer(200);
                               if (n == 1) response.failure = TransportFailure::dropped;
                               return response;
                             }},
                    options_for());
  CHECK(endpoint.send("/x", "{}", in_seconds(30), {}, reader).tries == 2);
  CHECK(seen == std::vector<std::string>{"begin", "part 1", "begin", "part 2"});
}

TEST_CASE("copies share what is learnt") {
  Endpoint endpoint(Scripted{}, options_for("http://localhost:30000/v1"));
  CHECK(endpoint.profile().name == "sglang");
  auto copy = endpoint;
  copy.learn([](mtmc::EndpointProfile& profile) { profile.max_completion_tokens = true; });
  CHECK(endpoint.profile().max_completion_tokens);

  auto options = options_for("http://localhost:30000/v1");
  options.profile = mtmc::endpoint_profile("tgi");
  CHECK(Endpoint(Scripted{}, options).profile().name == "tgi");
}

TEST_CASE("the environment names endpoint, key and model") {
  ::unsetenv("OPENAI_BASE_URL");
  ::setenv("OPENAI_API_KEY", "sk-env", 1);
  ::setenv("OPENAI_MODEL", "m", 1);
  auto options = mtmc::endpoint_from_environment();
  CHECK(options.base_url == "https://api.openai.com/v1");
  CHECK(options.api_key == "sk-env");
  CHECK(options.model == "m");
  ::setenv("OPENAI_BASE_URL", "http://host/v1", 1);
  CHECK(mtmc::endpoint_from_environment().base_url == "http://host/v1");
  for (const auto* const name : {"OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"}) ::unsetenv(name);
}

TEST_CASE("over a network: half answers, resets and full servers are tried again until it works") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request& request, fake::Connection& connection) {
    switch (request.number) {
    case 1:
      connection.head(200, {{"Content-Length", "100"}});
      connection.write("{\"half\":");
      return connection.close();
    case 2:
      connection.reset();
      return;
    case 3:
      connection.answer(429, R"({"error":{"message":"slow down"}})", {{"retry-after-ms", "1"}});
      return;
    case 4:
      connection.answer_html(502);
      return;
    default:
      connection.answer_events({"{}", "[DONE]"});
    }
  });
  Endpoint endpoint(direct(), options_for(server.url("/v1")));
  std::string text;
  mtmc::AnswerReader reader;
  reader.begin = [&] { text.clear(); };
  reader.take = [&](std::string_view piece) {
    text += piece;
    return true;
  };
  const auto outcome = endpoint.send("/chat/completions", "{}", in_seconds(30), {}, reader);
  CHECK(outcome.response.ok());
  CHECK(outcome.tries == 5);
  CHECK(text == "data: {}\n\ndata: [DONE]\n\n");
}

TEST_CASE(
    "an address where nobody was ever reached is tried three times; a server that was, as often as others") {
  int asked = 0;
  int alive = 0;
  mtmc_test::ScriptedTransport transport([&](const mtmc::HttpRequest&) {
    return ++asked <= alive ? mtmc_test::http(200, "{}")
                            : mtmc_test::lost(mtmc::TransportFailure::no_connection);
  });
  mtmc::EndpointOptions options;
  options.base_url = "http://127.0.0.1:1/v1";
  options.retries = {.max_retries = 6, .first_wait = 0, .max_wait = 0};
  mtmc::Endpoint stranger(transport, options);
  CHECK(stranger.send("/models", {}, mtmc::Deadline::max(), {}).tries == 3);
  CHECK(stranger.send("/models", {}, mtmc::Deadline::max(), {}).tries == 3);
  asked = 0;
  alive = 1;
  mtmc::Endpoint known(transport, options);
  CHECK(known.send("/models", {}, mtmc::Deadline::max(), {}).response.ok());
  CHECK(known.send("/models", {}, mtmc::Deadline::max(), {}).tries == 7);
}
