#include <mtmc/net/transport.hpp>
#include <mtmc/support/file_descriptor.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "real_server/real_server.hpp"

using nlohmann::json;
using real_server::Server;

namespace {

/// Takes the framing off a chunked body.
class Chunks {
public:
  /// The content of the chunks that `piece` completes.
  std::string take(std::string_view piece) {
    pending_ += piece;
    std::string content;
    for (auto line = pending_.find("\r\n"); line != std::string::npos; line = pending_.find("\r\n")) {
      const std::size_t size = std::stoul(pending_, nullptr, 16);
      if (pending_.size() < line + size + 4) break;
      content += pending_.substr(line + 2, size);
      pending_.erase(0, line + size + 4);
    }
    return content;
  }

private:
  std::string pending_;
};

/// As little of an HTTP client as these servers need: plain HTTP to 127.0.0.1, one connection a request. To
/// be replaced by the transport under test in `transport()` below.
class LoopbackTransport {
public:
  mtmc::HttpResponse send(const mtmc::HttpRequest& request, const mtmc::BodySink& sink,
                          mtmc::Deadline deadline, std::stop_token) {
    mtmc::HttpResponse response;
    constexpr std::string_view scheme = "http://127.0.0.1:";
    const auto slash = request.url.find('/', scheme.size());
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    address.sin_port = ::htons(static_cast<std::uint16_t>(std::stoi(request.url.substr(scheme.size()))));
    const mtmc::FileDescriptor connection{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return failed(mtmc::TransportFailure::no_connection);

    std::string text = request.method + ' ' + request.url.substr(slash) + " HTTP/1.1\r\n";
    text += "Host: 127.0.0.1\r\nConnection: close\r\n";
    for (const auto& header : request.headers) text += header.name + ": " + header.value + "\r\n";
    text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n\r\n" + request.body;
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t sent = ::send(connection.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) return failed(mtmc::TransportFailure::dropped);
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }

    std::string head;
    bool chunked = false;
    Chunks chunks;
    std::array<char, 4096> buffer;
    pollfd readable{connection.get(), POLLIN, 0};
    while (::poll(&readable, 1, mtmc::detail::poll_timeout(deadline)) == 1) {
      const ssize_t got = ::read(connection.get(), buffer.data(), buffer.size());
      if (got <= 0) return response;
      std::string piece(buffer.data(), static_cast<std::size_t>(got));
      if (response.status == 0) {
        head += piece;
        const auto end = head.find("\r\n\r\n");
        if (end == std::string::npos) continue;
        response.status = std::stoi(head.substr(head.find(' ')));
        piece = head.substr(end + 4);
        chunked = head.substr(0, end).find("Transfer-Encoding: chunked") != std::string::npos;
      }
      if (chunked) piece = chunks.take(piece);
      if (!sink || !response.ok())
        response.body += piece;
      else if (!piece.empty() && !sink(piece))
        return failed(mtmc::TransportFailure::cancelled);
    }
    return failed(mtmc::TransportFailure::timeout);
  }

private:
  static mtmc::HttpResponse failed(mtmc::TransportFailure why) {
    mtmc::HttpResponse response;
    response.failure = why;
    return response;
  }
};

mtmc::AnyTransport transport() { return LoopbackTransport{}; }

mtmc::HttpResponse post(const Server& server, const std::string& path, const json& body,
                        const mtmc::BodySink& sink = {}) {
  const mtmc::HttpRequest request{
      .url = server.url() + path, .headers = {{"Content-Type", "application/json"}}, .body = body.dump()};
  auto response = transport().send(request, sink, mtmc::Deadline::clock::now() + std::chrono::minutes{2}, {});
  INFO(response.body);
  REQUIRE(response.ok());
  return response;
}

json chat_request(const std::string& text) {
  return {{"model", "tiny-random"},
          {"messages", {{{"role", "user"}, {"content", text}}}},
          {"max_tokens", 24},
          {"temperature", 0}};
}

/// The content and the reason for the end that the events of a stream add up to, and whether it was whole.
struct Streamed {
  std::string content;
  std::string finish_reason;
  bool done = false;
};

Streamed read_stream(const std::string& events) {
  Streamed streamed;
  constexpr std::string_view field = "data: ";
  for (std::size_t at = events.find(field); at != std::string::npos; at = events.find(field, at)) {
    at += field.size();
    const std::string data = events.substr(at, events.find_first_of("\r\n", at) - at);
    streamed.done = data == "[DONE]";
    if (streamed.done) continue;
    const json choice = json::parse(data)["choices"][0];
    if (choice["delta"].contains("content") && choice["delta"]["content"].is_string())
      streamed.content += choice["delta"]["content"];
    if (choice["finish_reason"].is_string()) streamed.finish_reason = choice["finish_reason"];
  }
  return streamed;
}

void check_chat(const Server& server) {
  const json request = chat_request("Which action is next?");
  const json answer = json::parse(post(server, "/v1/chat/completions", request).body);
  const json& choice = answer["choices"][0];
  CHECK(choice["message"]["role"] == "assistant");
  CHECK_FALSE(choice["message"]["content"].get<std::string>().empty());
  CHECK(answer["usage"]["prompt_tokens"] > 0);
  CHECK(answer["usage"]["completion_tokens"] <= 24);

  json streaming = request;
  streaming["stream"] = true;
  std::string events;
  post(server, "/v1/chat/completions", streaming, [&](std::string_view piece) {
    events += piece;
    return true;
  });
  const Streamed streamed = read_stream(events);
  CHECK(streamed.done);
  CHECK(streamed.content == choice["message"]["content"]);
  CHECK(streamed.finish_reason == choice["finish_reason"]);
}

const std::string context = "void kernel(const float* in, float* out, int N) Action:";
const std::vector<std::string> continuations = {" tile the loop", " fuse the loops in line 15 to 20",
                                                " stop"};

void check_scores(const std::vector<double>& scores, const json& expected) {
  const std::vector<double> wanted = expected["log_probabilities"];
  REQUIRE(scores.size() == wanted.size());
  REQUIRE_FALSE(scores.empty());
  for (std::size_t token = 0; token < wanted.size(); ++token)
    CHECK(std::abs(scores[token] - wanted[token]) < 1e-3);
}

} // namespace

TEST_CASE("the server of llama-cpp-python answers a chat, whole and as a stream") {
  const auto server = Server::start();
  if (!server) return;
  check_chat(*server);
}

TEST_CASE("llama.cpp's own server answers a chat, whole and as a stream") {
  const auto server = Server::start({"--own-server"});
  if (!server) return;
  check_chat(*server);
}

TEST_CASE("an echoed prompt carries the log-probabilities that the library computes") {
  const auto server = Server::start();
  if (!server) return;
  const json expected =
      real_server::expected_scores({{{"context", context}, {"continuations", continuations}}});

  for (std::size_t i = 0; i < continuations.size(); ++i) {
    CAPTURE(continuations[i]);
    // This server takes max_tokens 0 for "as many as there is room for", so a token more is asked for.
    const json answer = json::parse(post(*server, "/v1/completions",
                                         {{"prompt", context + continuations[i]},
                                          {"echo", true},
                                          {"logprobs", 1},
                                          {"max_tokens", 1},
                                          {"temperature", 0}})
                                        .body);
    const json& echoed = answer["choices"][0]["logprobs"];
    const std::size_t count = expected[0]["continuations"][i]["log_probabilities"].size();
    // What the model added, nothing if it ended at once, is no part of the score.
    const std::size_t end = echoed["tokens"].size() - answer["usage"]["completion_tokens"].get<std::size_t>();
    REQUIRE(echoed["text_offset"][end - count] == context.size());
    std::vector<double> scores;
    for (std::size_t token = end - count; token < end; ++token)
      scores.push_back(echoed["token_logprobs"][token]);
    check_scores(scores, expected[0]["continuations"][i]);
  }
}

TEST_CASE("a grammar of tokens makes llama.cpp's own server score a continuation as the library does") {
  const auto server = Server::start({"--own-server"});
  if (!server) return;
  const json expected =
      real_server::expected_scores({{{"context", context}, {"continuations", continuations}}});
  const auto tokens_of = [&](const std::string& text) -> json {
    return json::parse(post(*server, "/tokenize", {{"content", text}, {"add_special", true}}).body)["tokens"];
  };
  const json prompt = tokens_of(context);

  for (std::size_t i = 0; i < continuations.size(); ++i) {
    CAPTURE(continuations[i]);
    const json tokens = tokens_of(context + continuations[i]);
    std::string grammar = "root ::=";
    for (std::size_t token = prompt.size(); token < tokens.size(); ++token)
      grammar += " <[" + tokens[token].dump() + "]>";
    const json answer = json::parse(post(*server, "/completion",
                                         {{"prompt", prompt},
                                          {"n_predict", tokens.size() - prompt.size()},
                                          {"n_probs", 1},
                                          {"temperature", 0},
                                          {"grammar", grammar}})
                                        .body);
    std::vector<double> scores;
    for (const json& token : answer["completion_probabilities"]) scores.push_back(token["logprob"]);
    check_scores(scores, expected[0]["continuations"][i]);
  }
}
