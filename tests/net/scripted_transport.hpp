#pragma once
/// A transport whose answers a test writes down.

#include <mtmc/net/transport.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace mtmc_test {

/// Answers with a function and remembers what was asked. Copies share both.
class ScriptedTransport {
public:
  using Answer = std::function<mtmc::HttpResponse(const mtmc::HttpRequest&)>;

  explicit ScriptedTransport(Answer answer) : state_(std::make_shared<State>()) {
    state_->answer = std::move(answer);
  }
  /// Answers in this order, the last one for ever.
  explicit ScriptedTransport(std::vector<mtmc::HttpResponse> answers)
      : ScriptedTransport([answers = std::move(answers), next = std::size_t{0}](const auto&) mutable {
          return answers[next + 1 < answers.size() ? next++ : next];
        }) {}

  [[nodiscard]] mtmc::HttpResponse send(const mtmc::HttpRequest& request, const mtmc::BodySink& sink,
                                        mtmc::Deadline, std::stop_token stop) {
    mtmc::HttpResponse response;
    {
      const std::scoped_lock lock(state_->lock);
      state_->asked.push_back(request);
      response = state_->answer(request);
    }
    if (stop.stop_requested()) {
      response = {};
      response.failure = mtmc::TransportFailure::cancelled;
      response.message = "stopped";
      return response;
    }
    if (sink && response.status / 100 == 2) {
      // Byte by byte: no reader may depend on how an answer is cut.
      for (const char byte : std::exchange(response.body, {}))
        if (!sink({&byte, 1})) response.failure = mtmc::TransportFailure::cancelled;
    }
    return response;
  }

  [[nodiscard]] std::vector<mtmc::HttpRequest> asked() const {
    const std::scoped_lock lock(state_->lock);
    return state_->asked;
  }

private:
  struct State {
    std::mutex lock;
    Answer answer;
    std::vector<mtmc::HttpRequest> asked;
  };
  std::shared_ptr<State> state_;
};

static_assert(mtmc::check_transport<ScriptedTransport>());

/// A whole answer.
inline mtmc::HttpResponse http(int status, std::string body, std::vector<mtmc::HttpHeader> headers = {}) {
  mtmc::HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  response.headers = std::move(headers);
  return response;
}
/// None.
inline mtmc::HttpResponse lost(mtmc::TransportFailure failure, std::string message = "as scripted") {
  mtmc::HttpResponse response;
  response.failure = failure;
  response.message = std::move(message);
  return response;
}

} // namespace mtmc_test
