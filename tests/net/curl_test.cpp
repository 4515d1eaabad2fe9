#include <mtmc/net/curl.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "curl_requests.hpp"
#include "fake_server.hpp"

using namespace curl_requests;
using namespace std::chrono_literals;
using mtmc::TransportFailure;

static_assert(mtmc::check_transport<mtmc::CurlTransport>());

TEST_CASE("a request arrives as it was made, and its answer as it was given") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request&, fake::Connection& connection) {
    connection.answer(200, R"({"ok":true})", {{"X-Request-Id", "r1"}, {"X-Empty", ""}});
  });
  auto transport = direct();
  auto request = post(server.url("/v1/chat?x=1"), std::string("{\"a\":\"\0b\"}", 10));
  request.headers.push_back({"X-Nothing", ""});
  const auto response = send(transport, request);

  CHECK(response.ok());
  CHECK(response.status == 200);
  CHECK(response.body == R"({"ok":true})");
  CHECK(*mtmc::find_header(response.headers, "x-request-id") == "r1");
  CHECK(mtmc::find_header(response.headers, "x-empty")->empty());
  CHECK(response.message.empty());
  CHECK(response.seconds > 0);

  REQUIRE(server.request_count() == 1);
  const auto got = server.requests().front();
  CHECK(got.method == "POST");
  CHECK(got.target == "/v1/chat?x=1");
  CHECK(got.body == request.body);
  CHECK(got.header("Content-Type") == "application/json");
  CHECK(got.header("Authorization") == "Bearer sk-secret");
  CHECK(got.header("Accept-Encoding") == "identity");
  CHECK(got.header("Host") == "127.0.0.1:" + std::to_string(server.port()));
  CHECK(mtmc::find_header(got.headers, "X-Nothing") != nullptr);
  // What libcurl would add by itself.
  CHECK(mtmc::find_header(got.headers, "Expect") == nullptr);
}

TEST_CASE("each method is sent under its name, with or without a body") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request& request, fake::Connection& connection) {
    if (request.method == "HEAD")
      connection.head(200, {{"Content-Length", "5"}});
    else
      connection.answer(200, request.method + " " + request.body);
  });
  auto transport = direct();
  const auto body_of = [&](const char* method, const char* body) {
    return send(transport, {.method = method, .url = server.url("/x"), .body = body}).body;
  };
  CHECK(body_of("GET", "") == "GET ");
  CHECK(body_of("GET", "q") == "GET q");
  CHECK(body_of("POST", "") == "POST ");
  CHECK(body_of("PUT", "p") == "PUT p");
  CHECK(body_of("DELETE", "") == "DELETE ");
  CHECK(send(transport, {.method = "HEAD", .url = server.url("/x")}).ok());
  // A form is what libcurl calls a body whose type nobody told.
  for (const auto& request : server.requests()) CHECK(request.header("Content-Type").empty());
  CHECK(server.connections() == 1);
}

TEST_CASE("a connection is kept for the next request, unless the server ends it") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request& request, fake::Connection& connection) {
    connection.answer(200, "{}");
    if (request.path == "/last") connection.close();
  });
  auto transport = direct();
  for (int i = 0; i < 5; ++i) REQUIRE(send(transport, post(server.url())).ok());
  CHECK(server.connections() == 1);
  REQUIRE(send(transport, post(server.url("/last"))).ok());
  REQUIRE(send(transport, post(server.url())).ok());
  CHECK(server.connections() == 2);
}

TEST_CASE("statuses other than 2xx are answers, and redirects are not followed") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request& request, fake::Connection& connection) {
    const int status = std::stoi(request.path.substr(1));
    connection.answer(status, "body", {{"Location", "http://127.0.0.1:1/elsewhere"}});
  });
  auto transport = direct();
  for (const int status : {301, 302, 307, 400, 401, 404, 407, 429, 500, 503}) {
    CAPTURE(status);
    std::string streamed;
    const auto response =
        send(transport, post(server.url("/" + std::to_string(status))), [&](std::string_view piece) {
          streamed += piece;
          return true;
        });
    CHECK(response.arrived());
    CHECK_FALSE(response.ok());
    CHECK(response.status == status);
    CHECK(response.body == "body");
    CHECK(streamed.empty());
  }
  CHECK(server.request_count() == 10);
}

TEST_CASE("a sink gets the pieces of a 2xx body as they come") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request&, fake::Connection& connection) {
    connection.answer_events({R"({"a":1})", "[DONE]"}, 1);
  });
  auto transport = direct();
  std::string streamed;
  const auto response = send(transport, post(server.url()), [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  CHECK(response.ok());
  CHECK(streamed == "data: {\"a\":1}\n\ndata: [DONE]\n\n");
  CHECK(response.body.empty());
}

TEST_CASE("pieces come while the server still writes") {
  if (!can_run()) return;
  std::atomic<int> taken = 0;
  std::atomic<bool> waited_in_vain = false;
  fake::Server server([&](const fake::Request&, fake::Connection& connection) {
    connection.begin_chunks();
    for (int i = 1; i <= 3; ++i) {
      connection.chunk("piece");
      // The next one only after this one has been seen.
      const auto end = std::chrono::steady_clock::now() + 20s;
      while (taken < i && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      if (taken < i) waited_in_vain = true;
    }
    connection.end_chunks();
  });
  auto transport = direct();
  const auto response = send(transport, post(server.url()), [&](std::string_view piece) {
    taken += static_cast<int>(piece.size() / 5);
    return true;
  });
  CHECK(response.ok());
  CHECK(taken == 3);
  CHECK_FALSE(waited_in_vain);
}

TEST_CASE("a sink ends the exchange, and what it throws reaches the caller") {
  if (!can_run()) return;
  fake::Server server(
      [](const fake::Request&, fake::Connection& connection) { connection.answer_huge(1 << 20, false); });
  auto transport = direct();
  const auto ended = send(transport, post(server.url()), [](std::string_view) { return false; });
  CHECK(ended.failure == TransportFailure::cancelled);
  CHECK(ended.status == 200);
  CHECK(contains(ended.message, "the reader of the answer ended it"));

  const mtmc::BodySink thrower = [](std::string_view) -> bool { throw std::runtime_error("mine"); };
  CHECK_THROWS_WITH(send(transport, post(server.url()), thrower), "mine");
  // Nothing of that is left behind.
  server.script([](const fake::Request&, fake::Connection& connection) { connection.answer(200, "fine"); });
  CHECK(send(transport, post(server.url())).body == "fine");
}

TEST_CASE("an answer may come byte by byte, in lines that are continued, and after interim answers") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request&, fake::Connection& connection) {
    connection.write_split("HTTP/1.1 102 Processing\r\nX-Interim: 1\r\n\r\n"
                           "HTTP/1.1 103 Early Hints\r\nX-Interim: 2\r\n\r\n"
                           "HTTP/1.1 200 OK\r\nX-Long: one\r\n two\r\nTransfer-Encoding: chunked\r\n"
                           "Trailer: X-Trailer\r\n\r\n3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n");
  });
  auto transport = direct();
  const auto response = send(transport, post(server.url()));
  CHECK(response.ok());
  CHECK(response.body == "abc");
  CHECK(*mtmc::find_header(response.headers, "X-Long") == "one two");
  CHECK(mtmc::find_header(response.headers, "X-Interim") == nullptr);
  CHECK(mtmc::find_header(response.headers, "X-Trailer") == nullptr);
}

TEST_CASE("compressed answers are left as they are") {
  if (!can_run()) return;
  const std::string packed("\x1f\x8b\x08\x00 not unpacked", 17);
  fake::Server server([&](const fake::Request&, fake::Connection& connection) {
    connection.answer(200, packed, {{"Content-Encoding", "gzip"}});
  });
  auto transport = direct();
  const auto response = send(transport, post(server.url()));
  CHECK(response.ok());
  CHECK(response.body == packed);
}

TEST_CASE("what is malformed is not sent, and its secrets are not repeated") {
  if (!can_run()) return;
  fake::Server server(
      [](const fake::Request&, fake::Connection& connection) { connection.answer(200, "{}"); });
  auto transport = direct();
  const auto refused = [&](const mtmc::HttpRequest& request) {
    const auto response = send(transport, request);
    CHECK(is_harmless(response.message));
    CHECK(response.status == 0);
    return response.failure == TransportFailure::malformed_request;
  };
  const std::string nul("\0", 1);
  for (const auto& bad : {std::string("\r\nX: 1"), std::string("\n"), std::string("\r"), nul}) {
    CAPTURE(bad);
    CHECK(refused(post(server.url("/hunter2" + bad))));
    CHECK(refused({.method = "GET" + bad, .url = server.url()}));
    CHECK(refused({.method = "GET", .url = server.url(), .headers = {{"X-hunter2" + bad, "1"}}}));
    CHECK(refused({.method = "GET", .url = server.url(), .headers = {{"Api-Key", "sk-secret" + bad}}}));
  }
  const auto port = std::to_string(server.port());
  const std::vector<std::string> urls{"http://me:hunter2@127.0.0.1:" + port + "/",
                                      "http://me@127.0.0.1:" + port,
                                      "http://hunter2@127.0.0.1:" + port + "?x",
                                      "HTTP://a@b\\@127.0.0.1:" + port,
                                      "http://",
                                      "http://:" + port + "/",
                                      "ftp://127.0.0.1:" + port,
                                      "file:///etc/passwd",
                                      "127.0.0.1:" + port,
                                      "",
                                      "http:///x",
                                      "http://127.0.0.1:" + port + "/a b"};
  for (const auto& url : urls) {
    CAPTURE(url);
    CHECK(refused(get(url)));
  }
  CHECK(refused({.method = "", .url = server.url()}));
  CHECK(refused({.method = "CONNECT", .url = server.url()}));
  CHECK(refused({.method = "GET", .url = server.url(), .headers = {{"", "1"}}}));
  CHECK(server.connections() == 0);
  // An @ elsewhere is none of a hunter2.
  CHECK(send(transport, get(server.url("/a@b?c@d"))).ok());
}

TEST_CASE("without libcurl every request is unavailable, with what was tried and what to install") {
  mtmc::CurlTransport transport({.library = "libcurl-of-nobody.so.9"});
  CHECK(contains(transport.problem(), "libcurl-of-nobody.so.9"));
  CHECK(contains(transport.problem(), "apt-get install libcurl4"));
  CHECK(transport.version().empty());
  const auto response = send(transport, post("http://127.0.0.1:1/"));
  CHECK(response.failure == TransportFailure::unavailable);
  CHECK(contains(response.message, "libcurl-of-nobody.so.9"));

  mtmc::CurlTransport other({.library = "libm.so.6"});
  CHECK(contains(other.problem(), "libm.so.6 has no curl_global_init"));
}

TEST_CASE("the library says what it is, and any of its flavours will do") {
  if (!can_run()) return;
  CHECK(contains(direct().version(), "7.61 or newer") == false);
  CHECK_FALSE(direct().version().empty());
  fake::Server server(
      [](const fake::Request&, fake::Connection& connection) { connection.answer(200, "{}"); });
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"}) {
    CAPTURE(name);
    auto transport = direct({.library = name});
    if (!transport.problem().empty()) continue;
    CHECK(send(transport, post(server.url())).ok());
  }
}

TEST_CASE("64 requests run at once, each on a connection of its own, and the next 64 on the same ones") {
  if (!can_run()) return;
  std::atomic<int> waiting = 0;
  fake::Server server([&](const fake::Request& request, fake::Connection& connection) {
    // Nobody is answered before everybody has come.
    const int wave = (request.number - 1) / 64 + 1;
    ++waiting;
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (waiting < 64 * wave && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    connection.answer(200, request.body);
  });
  auto transport = direct();
  for (int wave = 0; wave < 2; ++wave) {
    std::atomic<int> right = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 64; ++i)
      threads.emplace_back([&, i] {
        auto mine = transport;
        right +=
            static_cast<int>(send(mine, post(server.url(), std::to_string(i))).body == std::to_string(i));
      });
    threads.clear();
    CHECK(right == 64);
  }
  CHECK(server.connections() == 64);
}

TEST_CASE("no more connections are kept than allowed") {
  if (!can_run()) return;
  fake::Server server(
      [](const fake::Request&, fake::Connection& connection) { connection.answer(200, "{}"); });
  auto transport = direct({.max_kept = 0});
  for (int i = 0; i < 3; ++i) REQUIRE(send(transport, post(server.url())).ok());
  CHECK(server.connections() == 3);
}

TEST_CASE("requests to two servers do not take each other's connections") {
  if (!can_run()) return;
  const fake::Script echo = [](const fake::Request& request, fake::Connection& connection) {
    connection.answer(200, request.header("Host"));
  };
  fake::Server one(echo);
  fake::Server other(echo);
  auto transport = direct();
  for (int i = 0; i < 4; ++i)
    for (const auto* const server : {&one, &other})
      CHECK(send(transport, post(server->url())).body == "127.0.0.1:" + std::to_string(server->port()));
  CHECK(one.connections() == 1);
  CHECK(other.connections() == 1);
}
