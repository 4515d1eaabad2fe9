#pragma once

#include <mtmc/net/transport.hpp>

#include <functional>
#include <string>
#include <utility>

/// A transport that answers what a test says.
struct AnsweringTransport {
  std::function<mtmc::HttpResponse(const mtmc::HttpRequest&, const mtmc::BodySink&)> answer;

  mtmc::HttpResponse send(const mtmc::HttpRequest& request, const mtmc::BodySink& sink, mtmc::Deadline,
                          std::stop_token) const {
    return answer(request, sink);
  }
};
static_assert(mtmc::check_transport<AnsweringTransport>());

/// A request as an endpoint sends it.
inline mtmc::HttpRequest chat_request(std::string body, std::string label = {}) {
  mtmc::HttpRequest request;
  request.url = "https://api.example.com/v1/chat/completions";
  request.headers = {{"Content-Type", "application/json"},
                     {"Authorization", "Bearer sk-test-0123456789abcdef"}};
  request.body = std::move(body);
  request.label = std::move(label);
  return request;
}

inline mtmc::HttpResponse answered(int status, std::string body, double seconds = 0) {
  mtmc::HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  response.seconds = seconds;
  return response;
}

inline mtmc::HttpResponse failed(mtmc::TransportFailure failure, std::string message, double seconds = 0) {
  mtmc::HttpResponse response;
  response.failure = failure;
  response.message = std::move(message);
  response.seconds = seconds;
  return response;
}

/// Sends, with no end to wait for.
template <class T>
mtmc::HttpResponse send(T& transport, const mtmc::HttpRequest& request, const mtmc::BodySink& sink = {}) {
  return transport.send(request, sink, mtmc::Deadline::max(), {});
}
