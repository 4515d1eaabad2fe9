#include <mtmc/net/curl.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <thread>
#include <utility>

#include "curl_requests.hpp"
#include "fake_server.hpp"
#include "tls_server.hpp"

using namespace curl_requests;
using mtmc::TransportFailure;

namespace {

bool can_run_tls() { return can_run() && fake::has_openssl(); }

/// Takes connections, reads what comes first and, if told so, says a word and ends them.
class RudeListener {
public:
  explicit RudeListener(bool ends, std::string word = {}) {
    port_ = fake::listen_on_loopback(listener_);
    if (!ends) return;
    thread_ = std::jthread([this, word = std::move(word)] {
      while (true) {
        const mtmc::FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!client) return;
        std::array<char, 1000> hello{};
        (void)::recv(client.get(), hello.data(), hello.size(), 0);
        (void)::send(client.get(), word.data(), word.size(), MSG_NOSIGNAL);
      }
    });
  }
  RudeListener(const RudeListener&) = delete;
  RudeListener& operator=(const RudeListener&) = delete;
  ~RudeListener() { ::shutdown(listener_.get(), SHUT_RDWR); }
  [[nodiscard]] std::string url() const { return "https://127.0.0.1:" + std::to_string(port_) + "/"; }

private:
  mtmc::FileDescriptor listener_;
  int port_ = 0;
  std::jthread thread_{};
};

} // namespace

TEST_CASE("a certificate that nobody trusts is refused, with a word on what to do") {
  if (!can_run_tls()) return;
  const fake::Certificate certificate("DNS:localhost,IP:127.0.0.1");
  const fake::TlsServer server(certificate);
  auto transport = direct();
  const auto response = send(transport, get(server.url()));
  CHECK(response.failure == TransportFailure::tls);
  CHECK(response.status == 0);
  CHECK(is_harmless(response.message));
  CHECK(response.option == "CurlOptions::ca_file");
}

TEST_CASE("a certificate in ca_file is trusted") {
  if (!can_run_tls()) return;
  const fake::Certificate certificate("DNS:localhost,IP:127.0.0.1");
  const fake::TlsServer server(certificate);
  auto transport = direct({.ca_file = certificate.file()});
  for (const auto* const host : {"127.0.0.1", "localhost"}) {
    CAPTURE(host);
    const auto response = send(transport, get(server.url(host)));
    CHECK(response.message == "");
    CHECK(response.ok());
    CHECK(contains(response.body, "s_server"));
  }
}

TEST_CASE("another's certificate is refused, however trusted") {
  if (!can_run_tls()) return;
  const fake::Certificate certificate("DNS:elsewhere.example");
  const fake::TlsServer server(certificate);
  auto transport = direct({.ca_file = certificate.file()});
  CHECK(send(transport, get(server.url())).failure == TransportFailure::tls);
  CHECK(send(transport, get(server.url("localhost"))).failure == TransportFailure::tls);
}

TEST_CASE("a ca_file that is not there or holds no certificate is a failure of trust") {
  if (!can_run_tls()) return;
  const fake::Certificate certificate("DNS:localhost,IP:127.0.0.1");
  const fake::TlsServer server(certificate);
  for (const auto& file : {certificate.file() + ".missing", certificate.key()}) {
    CAPTURE(file);
    auto transport = direct({.ca_file = file});
    const auto response = send(transport, get(server.url()));
    CHECK(response.failure == TransportFailure::tls);
    CHECK(contains(response.message, "ca-certificates"));
  }
}

TEST_CASE("a server that falls silent in the handshake is given up") {
  if (!can_run_tls()) return;
  const fake::Certificate certificate("DNS:localhost,IP:127.0.0.1");
  const RudeListener server(false);
  auto transport = direct({.ca_file = certificate.file(), .connect_seconds = 0.1});
  const auto response = send(transport, get(server.url()));
  CHECK(response.failure == TransportFailure::timeout);
  CHECK(contains(response.message, "within 0.1 s"));
}

TEST_CASE("a server that answers something else than TLS is not trusted") {
  if (!can_run_tls()) return;
  const fake::Certificate certificate("DNS:localhost,IP:127.0.0.1");
  const RudeListener server(true, "HTTP/1.1 400 Bad Request\r\n\r\n");
  auto transport = direct({.ca_file = certificate.file()});
  const auto response = send(transport, get(server.url()));
  CHECK(response.failure == TransportFailure::tls);
  CHECK(contains(response.message, "http://"));
}

TEST_CASE("a connection that ends in the handshake is dropped, not distrusted") {
  if (!can_run_tls()) return;
  const fake::Certificate certificate("DNS:localhost,IP:127.0.0.1");
  const RudeListener server(true);
  auto transport = direct({.ca_file = certificate.file()});
  const auto response = send(transport, get(server.url()));
  CAPTURE(response.message);
  CHECK(response.failure == TransportFailure::dropped);
}

TEST_CASE("through a proxy the server is verified all the same, and the proxy sees no secrets") {
  if (!can_run_tls()) return;
  const fake::Certificate certificate("DNS:localhost,IP:127.0.0.1");
  const fake::TlsServer server(certificate);
  fake::Server proxy([&](const fake::Request& request, fake::Connection& connection) {
    if (request.method != "CONNECT" || request.header("Proxy-Authorization").empty()) {
      connection.answer(407, "who are you?");
      return;
    }
    connection.head(200, {{"X-Proxy", "1"}});
    connection.tunnel(server.port());
  });
  const auto proxy_port = std::to_string(proxy.port());
  // A list that names nobody, so that the machine's own does not count.
  mtmc::CurlOptions options{.ca_file = certificate.file(),
                            .proxy = "http://me:hunter2@127.0.0.1:" + proxy_port,
                            .no_proxy = "nobody.example"};
  mtmc::HttpRequest request = get(server.url());
  request.headers.push_back({"Authorization", "Bearer sk-secret"});

  mtmc::CurlTransport transport(options);
  const auto response = send(transport, request);
  CHECK(response.message == "");
  CHECK(response.ok());
  CHECK(mtmc::find_header(response.headers, "X-Proxy") == nullptr);
  REQUIRE(proxy.request_count() == 1);
  CHECK(proxy.requests().front().target == "127.0.0.1:" + std::to_string(server.port()));
  CHECK(proxy.requests().front().header("Authorization").empty());

  options.ca_file.clear();
  mtmc::CurlTransport distrustful(options);
  CHECK(send(distrustful, request).failure == TransportFailure::tls);

  options.proxy = "http://127.0.0.1:" + proxy_port;
  mtmc::CurlTransport stranger(options);
  const auto refused = send(stranger, request);
  CHECK(refused.failure == TransportFailure::no_connection);
  CHECK(contains(refused.message, "407"));
  CHECK(refused.status == 0);
  CHECK(refused.body.empty());
}
