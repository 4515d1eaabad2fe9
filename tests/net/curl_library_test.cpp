#include <mtmc/net/curl_library.hpp>
#include <mtmc/net/curl_transfer.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "curl_requests.hpp"
#include "fake_server.hpp"

using namespace curl_requests;
using mtmc::TransportFailure;
using mtmc::detail::CurlLibrary;

namespace {

/// What a request comes to with that library.
mtmc::HttpResponse send_with(const CurlLibrary& library, const mtmc::HttpRequest& request,
                             const std::stop_token& stop = {}) {
  const mtmc::CurlOptions options{.no_proxy = "*"};
  const mtmc::BodySink no_sink;
  mtmc::detail::CurlExchange exchange{request, no_sink, options};
  const mtmc::detail::CurlHandle handle(library, {});
  mtmc::HttpResponse response;
  mtmc::detail::run_exchange(library, handle, exchange, in_seconds(30), stop, response);
  response.body = exchange.body;
  return response;
}

} // namespace

TEST_CASE("libraries that cannot be woken are asked in short steps") {
  if (!can_run()) return;
  CurlLibrary before_7_68;
  before_7_68.multi_wakeup = nullptr;
  CurlLibrary before_7_66;
  before_7_66.multi_wakeup = nullptr;
  before_7_66.multi_poll = nullptr;
  for (const auto* const library : {&before_7_68, &before_7_66}) {
    fake::Server server([](const fake::Request& request, fake::Connection& connection) {
      if (request.path == "/hang") connection.hang();
      connection.answer(200, request.body);
    });
    CHECK(send_with(*library, post(server.url(), "one")).body == "one");
    std::stop_source stop;
    std::jthread stopper([&] {
      (void)server.wait_for_requests(2);
      stop.request_stop();
    });
    const auto start = std::chrono::steady_clock::now();
    CHECK(send_with(*library, post(server.url("/hang")), stop.get_token()).failure ==
          TransportFailure::cancelled);
    CHECK(seconds_since(start) < 10);
  }
}

TEST_CASE("several threads may start the library at once") {
  if (!can_run()) return;
  std::atomic<int> started = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const CurlLibrary library;
      started += static_cast<int>(library.easy_init != nullptr);
    });
  threads.clear();
  CHECK(started == 8);
}
