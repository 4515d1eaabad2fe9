#include <mtmc/net/curl.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <dirent.h>
#include <optional>
#include <stop_token>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include "curl_requests.hpp"
#include "fake_server.hpp"

using namespace curl_requests;
using namespace std::chrono_literals;
using mtmc::TransportFailure;

namespace {

std::size_t entries_of(const char* path) {
  DIR* folder = ::opendir(path);
  std::size_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}
std::size_t descriptors() { return entries_of("/proc/self/fd"); }
std::size_t threads() { return entries_of("/proc/self/task"); }

/// Whether there are no more than so many threads; those that have ended take a moment to go.
bool threads_go_down_to(std::size_t count) {
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (threads() > count && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return threads() <= count;
}

/// A port of this machine on which nobody listens.
int closed_port() {
  return fake::Server([](const fake::Request&, fake::Connection&) {}).port();
}

/// The failure of a request to a server with that script.
mtmc::HttpResponse response_to(fake::Script script, const mtmc::CurlOptions& options = {},
                               const mtmc::BodySink& sink = {}) {
  fake::Server server(std::move(script));
  auto transport = direct(options);
  auto response = send(transport, post(server.url("/v1/chat?key=sk-secret"), "the body"), sink);
  CHECK((response.arrived() || is_harmless(response.message)));
  CHECK((response.arrived() || contains(response.message, "POST " + server.url("/v1/chat") + ": ")));
  return response;
}

const auto take_all = [](std::string_view) { return true; };

} // namespace

TEST_CASE("a server that does not accept connections") {
  if (!can_run()) return;
  auto transport = direct();
  const auto response =
      send(transport, post("http://127.0.0.1:" + std::to_string(closed_port()) + "/v1?key=1"));
  CHECK(response.failure == TransportFailure::no_connection);
  CHECK(response.status == 0);
  CHECK(is_harmless(response.message));
}

TEST_CASE("a host without an address") {
  if (!can_run()) return;
  auto transport = direct();
  // Longer than a name may be, so that nobody is asked for it.
  const auto response = send(transport, post("http://" + std::string(70, 'a') + ".invalid/v1"));
  CHECK(response.failure == TransportFailure::name_not_found);
  CHECK(is_harmless(response.message));
}

TEST_CASE("a connection that ends before the answer does is dropped, and what came is kept") {
  if (!can_run()) return;
  const auto cut = [](const std::string& bytes) {
    return response_to([=](const fake::Request&, fake::Connection& connection) {
      connection.write(bytes);
      connection.close();
    });
  };
  SUBCASE("before anything") { CHECK(cut("").failure == TransportFailure::dropped); }
  SUBCASE("in the status line") { CHECK(cut("HTTP/1.").failure == TransportFailure::dropped); }
  SUBCASE("in the headers") {
    CHECK(cut("HTTP/1.1 200 OK\r\nContent-Le").failure == TransportFailure::dropped);
  }
  SUBCASE("after an interim answer") {
    const auto response = cut("HTTP/1.1 103 Early Hints\r\nX-Interim: 1\r\n\r\n");
    CHECK(response.failure == TransportFailure::dropped);
    CHECK(response.status == 0);
    CHECK(response.headers.empty());
  }
  SUBCASE("in a body whose length was told") {
    const auto response = cut("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    CHECK(response.failure == TransportFailure::dropped);
    CHECK(response.status == 200);
    CHECK(response.body == "abc");
    CHECK(contains(response.message, "after 3 bytes"));
  }
  SUBCASE("in a body of chunks") {
    const auto response = cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    CHECK(response.failure == TransportFailure::dropped);
    CHECK(response.body == "abc");
  }
  SUBCASE("with chunks that are none") {
    const auto response = cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nxyz\r\n");
    CHECK(response.failure == TransportFailure::dropped);
    CHECK(response.body == "abc");
  }
}

TEST_CASE("a reset is a dropped connection, too") {
  if (!can_run()) return;
  const auto response = response_to([](const fake::Request&, fake::Connection& connection) {
    connection.head(200, {{"Content-Length", "100000"}});
    connection.reset();
  });
  CHECK(response.failure == TransportFailure::dropped);
}

TEST_CASE("an answer that is no HTTP is dropped") {
  if (!can_run()) return;
  const auto response = response_to([](const fake::Request&, fake::Connection& connection) {
    connection.write("220 smtp.example.org ESMTP\r\n");
    connection.close();
  });
  CHECK(response.failure == TransportFailure::dropped);
  CHECK(response.body.empty());
}

TEST_CASE("pages of a proxy and broken JSON are answers: who reads them judges them") {
  if (!can_run()) return;
  const auto page =
      response_to([](const fake::Request&, fake::Connection& connection) { connection.answer_html(502); });
  CHECK(page.arrived());
  CHECK(page.status == 502);
  CHECK(contains(page.body, "<title>502 Bad Gateway</title>"));
  const auto broken = response_to(
      [](const fake::Request&, fake::Connection& connection) { connection.answer(200, "{\"choices\":[{"); });
  CHECK(broken.ok());
}

TEST_CASE("a body larger than allowed is cut, whoever takes it") {
  if (!can_run()) return;
  const mtmc::CurlOptions options{.max_body = 1000};
  for (const bool streamed : {false, true}) {
    CAPTURE(streamed);
    std::size_t taken = 0;
    const mtmc::BodySink count = [&](std::string_view piece) {
      taken += piece.size();
      return true;
    };
    const auto send_bytes = [&](std::int64_t bytes, bool length_told) {
      return response_to([=](const fake::Request&,
                             fake::Connection& connection) { connection.answer_huge(bytes, length_told); },
                         options, streamed ? count : mtmc::BodySink{});
    };
    CHECK(send_bytes(1000, true).ok());
    CHECK(send_bytes(1001, true).failure == TransportFailure::too_large);
    taken = 0;
    CHECK(send_bytes(1000, false).ok());
    taken = 0;
    const auto cut = send_bytes(1001, false);
    CHECK(cut.failure == TransportFailure::too_large);
    CHECK(cut.body.size() + taken == 1000);
    CHECK(contains(cut.message, "larger than 1000 bytes"));
  }
}

TEST_CASE("10 GB are not taken, nor is memory for them") {
  if (!can_run()) return;
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  for (const bool length_told : {true, false}) {
    for (const bool streamed : {true, false}) {
      const auto response = response_to(
          [=](const fake::Request&, fake::Connection& connection) {
            connection.answer_huge(std::int64_t{10} << 30, length_told);
          },
          {.max_body = 8 << 20}, streamed ? take_all : mtmc::BodySink{});
      CHECK(response.failure == TransportFailure::too_large);
    }
  }
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 64 << 10); // KiB
}

TEST_CASE("a head without end is cut") {
  if (!can_run()) return;
  const auto many_lines = response_to([](const fake::Request&, fake::Connection& connection) {
    connection.write("HTTP/1.1 200 OK\r\n");
    while (connection.write("X-More: " + std::string(1000, 'x') + "\r\n")) {
    }
  });
  CHECK(many_lines.failure == TransportFailure::too_large);
  CHECK(contains(many_lines.message, "head of the answer"));
  const auto one_line = response_to([](const fake::Request&, fake::Connection& connection) {
    connection.write("HTTP/1.1 200 OK\r\nX-More: ");
    while (connection.write(std::string(1000, 'x'))) {
    }
  });
  CHECK(one_line.failure == TransportFailure::too_large);
  const auto interim = response_to([](const fake::Request&, fake::Connection& connection) {
    while (connection.write("HTTP/1.1 102 Processing\r\n\r\n")) {
    }
  });
  CHECK(interim.failure == TransportFailure::too_large);
}

TEST_CASE("the deadline ends a request, whatever the server is at") {
  if (!can_run()) return;
  auto transport = direct();
  for (const auto& begin : {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"}) {
    CAPTURE(begin);
    fake::Server server([&](const fake::Request&, fake::Connection& connection) {
      connection.write(begin);
      connection.hang();
    });
    const auto response = transport.send(post(server.url()), {}, in_seconds(0.05), {});
    CHECK(response.failure == TransportFailure::timeout);
    CHECK(contains(response.message, "by the deadline"));
    CHECK(response.seconds >= 0.05);
    CHECK(response.seconds < 10);
  }
}

TEST_CASE("a deadline that has passed already costs no connection") {
  if (!can_run()) return;
  fake::Server server(
      [](const fake::Request&, fake::Connection& connection) { connection.answer(200, "{}"); });
  auto transport = direct();
  CHECK(transport.send(post(server.url()), {}, in_seconds(-1), {}).failure == TransportFailure::timeout);
  CHECK(server.connections() == 0);
}

TEST_CASE("a server that falls silent is given up") {
  if (!can_run()) return;
  const mtmc::CurlOptions options{.idle_seconds = 0.05};
  SUBCASE("before the first byte of a streamed answer") {
    const auto response = response_to(
        [](const fake::Request&, fake::Connection& connection) { connection.hang(); }, options, take_all);
    CHECK(response.failure == TransportFailure::timeout);
    CHECK(contains(response.message, "nothing came for 0.05 s"));
  }
  SUBCASE("in the middle of an answer") {
    const auto response = response_to(
        [](const fake::Request&, fake::Connection& connection) {
          connection.head(200, {{"Content-Length", "10"}});
          connection.write("abc");
          connection.hang();
        },
        options);
    CHECK(response.failure == TransportFailure::timeout);
    CHECK(response.body == "abc");
  }
  SUBCASE("but not while a model thinks that does not stream") {
    const auto response = response_to(
        [](const fake::Request&, fake::Connection& connection) {
          connection.pause(500ms);
          connection.answer(200, "at last");
        },
        {.idle_seconds = 0.25});
    CHECK(response.body == "at last");
  }
  SUBCASE("nor while the reader takes its time") {
    std::string text;
    const auto response = response_to(
        [](const fake::Request&, fake::Connection& connection) {
          connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
          // Comes while the reader is still busy.
          connection.write("3\r\ntwo\r\n0\r\n\r\n");
        },
        {.idle_seconds = 0.25},
        [&](std::string_view piece) {
          if (text.empty()) std::this_thread::sleep_for(400ms);
          text += piece;
          return true;
        });
    CHECK(response.ok());
    CHECK(text == "onetwo");
  }
}

TEST_CASE("a server that does not read the request is given up") {
  if (!can_run()) return;
  // Accepts connections and does nothing with them.
  const mtmc::FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(listener.get(), 8) == 0);
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  auto transport = direct({.idle_seconds = 0.1});
  const auto response =
      send(transport, post("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/",
                           std::string(std::size_t{32} << 20, 'x')));
  CHECK(response.failure == TransportFailure::timeout);
}

TEST_CASE("a stop request ends a request at once, and one that comes before sends nothing") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request&, fake::Connection& connection) { connection.hang(); });
  auto transport = direct();
  std::stop_source stop;
  std::jthread stopper([&] {
    (void)server.wait_for_requests(1);
    stop.request_stop();
  });
  const auto response = send(transport, post(server.url()), {}, stop.get_token());
  CHECK(response.failure == TransportFailure::cancelled);
  CHECK(is_harmless(response.message));
  CHECK(send(transport, post(server.url()), {}, stop.get_token()).failure == TransportFailure::cancelled);
  CHECK(server.request_count() == 1);
}

TEST_CASE("a stop request ends 16 requests that hang within 200 ms") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request& request, fake::Connection& connection) {
    if (request.body == "1") connection.begin_chunks();
    connection.hang();
  });
  auto transport = direct();
  std::stop_source stop;
  std::atomic<int> cancelled = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      auto mine = transport;
      cancelled += static_cast<int>(
          send(mine, post(server.url(), std::to_string(i % 2)), take_all, stop.get_token()).failure ==
          TransportFailure::cancelled);
    });
  REQUIRE(server.wait_for_requests(16));
  const auto start = std::chrono::steady_clock::now();
  stop.request_stop();
  threads.clear();
  CHECK(cancelled == 16);
  CHECK(seconds_since(start) < 0.2);
}

TEST_CASE("a stop request ends an answer that keeps coming") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request&, fake::Connection& connection) {
    connection.answer_huge(std::int64_t{1} << 40, false);
  });
  auto transport = direct({.max_body = std::int64_t{1} << 41});
  std::stop_source stop;
  std::size_t taken = 0;
  const auto response = send(
      transport, post(server.url()),
      [&](std::string_view piece) {
        taken += piece.size();
        if (taken > 1 << 20) stop.request_stop();
        return true;
      },
      stop.get_token());
  CHECK(response.failure == TransportFailure::cancelled);
}

TEST_CASE("a kept connection that the server has dropped is replaced once") {
  if (!can_run()) return;
  fake::Server server([](const fake::Request& request, fake::Connection& connection) {
    if (request.turn == 2)
      connection.close();
    else
      connection.answer(200, "{}");
  });
  auto transport = direct();
  REQUIRE(send(transport, post(server.url())).ok());
  CHECK(send(transport, post(server.url())).ok());
  CHECK(server.connections() == 2);
  // The server has seen the second request twice: libcurl cannot know.
  CHECK(server.request_count() == 3);
}

TEST_CASE("200 requests, half of them failed or cancelled, leave no descriptor and no thread behind") {
  if (!can_run()) return;
  { // What libcurl sets up once for the process.
    fake::Server server(
        [](const fake::Request&, fake::Connection& connection) { connection.answer(200, "{}"); });
    auto transport = direct();
    REQUIRE(send(transport, get("http://localhost:" + std::to_string(server.port()) + "/")).ok());
  }
  const auto descriptors_before = descriptors();
  const auto threads_before = threads();
  {
    const int nobody = closed_port();
    fake::Server server([](const fake::Request& request, fake::Connection& connection) {
      const int kind = std::stoi(request.body) % 8;
      if (kind < 4)
        connection.answer(kind == 3 ? 500 : 200, "{}");
      else if (kind == 4)
        connection.close();
      else if (kind == 5)
        connection.reset();
      else
        connection.hang();
    });
    auto transport = direct();
    std::atomic<int> arrived = 0;
    std::vector<std::jthread> senders;
    for (int sender = 0; sender < 4; ++sender)
      senders.emplace_back([&, sender] {
        for (int i = sender; i < 200; i += 4) {
          auto request = post(server.url(), std::to_string(i));
          if (i % 8 == 5 && i % 3 == 0) request.url = "http://127.0.0.1:" + std::to_string(nobody) + "/";
          std::stop_source stop;
          std::optional<std::jthread> stopper;
          if (i % 8 == 6) stopper.emplace([&] { stop.request_stop(); });
          const double patience = i % 8 == 7 ? 0.01 : 30;
          arrived +=
              static_cast<int>(transport.send(request, {}, in_seconds(patience), stop.get_token()).arrived());
        }
      });
    senders.clear();
    CHECK(arrived == 100);
    // What is kept is bounded: two ends and libcurl's own for each of at most 4 connections.
    CHECK(descriptors() < descriptors_before + 64);
  }
  CHECK(threads_go_down_to(threads_before));
  CHECK(descriptors() == descriptors_before);
}
