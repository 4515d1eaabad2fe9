#include <mtmc/net/curl.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <string>

#include "curl_requests.hpp"
#include "fake_server.hpp"

using namespace curl_requests;
using mtmc::TransportFailure;

namespace {

/// The environment with no proxy but those that a test sets; as it was afterwards.
class ProxyEnvironment {
public:
  ProxyEnvironment() {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (const char* const value = std::getenv(names[i])) values_[i] = value;
      ::unsetenv(names[i]);
    }
  }
  ProxyEnvironment(const ProxyEnvironment&) = delete;
  ProxyEnvironment& operator=(const ProxyEnvironment&) = delete;
  ~ProxyEnvironment() {
    for (std::size_t i = 0; i < names.size(); ++i) {
      ::unsetenv(names[i]);
      if (!values_[i].empty()) ::setenv(names[i], values_[i].c_str(), 1);
    }
  }
  void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

private:
  static constexpr std::array names{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY",
                                    "all_proxy",  "ALL_PROXY",  "no_proxy",    "NO_PROXY"};
  std::array<std::string, names.size()> values_{};
};

const fake::Script as_proxy = [](const fake::Request& request, fake::Connection& connection) {
  connection.answer(200, "by proxy: " + request.target);
};
const fake::Script as_server = [](const fake::Request& request, fake::Connection& connection) {
  connection.answer(200, "direct: " + request.target);
};

} // namespace

TEST_CASE("a proxy gets the whole address, and what it answers is the answer") {
  if (!can_run()) return;
  ProxyEnvironment environment;
  fake::Server proxy(as_proxy);
  fake::Server server(as_server);
  mtmc::CurlTransport transport({.proxy = proxy.url()});
  CHECK(send(transport, post(server.url("/v1"))).body == "by proxy: " + server.url("/v1"));
  CHECK(server.connections() == 0);

  proxy.script([](const fake::Request&, fake::Connection& connection) { connection.answer_html(502); });
  const auto response = send(transport, post(server.url("/v1")));
  CHECK(response.arrived());
  CHECK(response.status == 502);
}

TEST_CASE("the environment names proxies and who is reached without") {
  if (!can_run()) return;
  ProxyEnvironment environment;
  fake::Server proxy(as_proxy);
  fake::Server server(as_server);
  const auto body = [&](const mtmc::CurlOptions& options = {}) {
    mtmc::CurlTransport transport(options);
    return send(transport, post(server.url("/v1"))).body;
  };
  CHECK(body() == "direct: /v1");
  environment.set("http_proxy", proxy.url());
  CHECK(body() == "by proxy: " + server.url("/v1"));
  // The options come first.
  CHECK(body({.no_proxy = "127.0.0.1"}) == "direct: /v1");
  CHECK(body({.no_proxy = "*"}) == "direct: /v1");
  CHECK(body({.no_proxy = "elsewhere.example"}) == "by proxy: " + server.url("/v1"));
  environment.set("NO_PROXY", "elsewhere.example,127.0.0.1");
  CHECK(body() == "direct: /v1");
  // It holds for a proxy in the options, too.
  CHECK(body({.proxy = proxy.url()}) == "direct: /v1");
  CHECK(body({.proxy = proxy.url(), .no_proxy = "elsewhere.example"}) == "by proxy: " + server.url("/v1"));
}

TEST_CASE("a proxy that cannot be reached or understood gives its password away to nobody") {
  if (!can_run()) return;
  ProxyEnvironment environment;
  const auto response_with = [](const std::string& proxy) {
    mtmc::CurlTransport transport({.proxy = proxy});
    const auto response = send(transport, post("http://127.0.0.1:1/v1"));
    CAPTURE(response.message);
    CHECK(is_harmless(response.message));
    CHECK(response.message.find("me:") == std::string::npos);
    return response.failure;
  };
  const int nobody = fake::Server(as_proxy).port();
  CHECK(response_with("http://me:hunter2@127.0.0.1:" + std::to_string(nobody)) ==
        TransportFailure::no_connection);
  CHECK(response_with("http://me:hunter2@" + std::string(70, 'a') + ".invalid") ==
        TransportFailure::name_not_found);
  CHECK(response_with("gopher://me:hunter2@127.0.0.1:70") != TransportFailure::none);
  CHECK(response_with("http://me:hunter2@127.0.0.1:port") != TransportFailure::none);
  CHECK(response_with("socks5h://me:hunter2@127.0.0.1:" + std::to_string(nobody)) ==
        TransportFailure::no_connection);
}
