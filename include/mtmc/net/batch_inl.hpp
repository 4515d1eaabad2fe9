#pragma once
/// Definitions of net/batch.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/net/batch.hpp>
#include <mtmc/net/batch_folder.hpp>
#include <mtmc/net/url.hpp>

#include <array>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The path that a batch calls an endpoint by, whatever the server's own is; empty where batches know none.
[[nodiscard]] inline std::string batch_url(std::string_view url) {
  const auto path = split_url(url).path;
  constexpr std::array<std::string_view, 4> known{"/chat/completions", "/completions", "/responses",
                                                  "/embeddings"};
  for (const auto end : known)
    if (path.ends_with(end)) return "/v1" + std::string(end);
  return {};
}

[[nodiscard]] inline HttpResponse not_sent(TransportFailure failure, std::string message) {
  HttpResponse response;
  response.failure = failure;
  response.message = std::move(message);
  return response;
}

/// An answer as its asker wants it: a whole one through the sink, if there is one.
[[nodiscard]] inline HttpResponse handed_over(HttpResponse response, const BodySink& sink) {
  if (!sink || !response.ok()) return response;
  if (!sink(std::exchange(response.body, {}))) {
    response.failure = TransportFailure::cancelled;
    response.message = "the reader of the answer ended it";
  }
  return response;
}

} // namespace detail

struct BatchTransport::State {
  detail::BatchFolder folder;
  std::mutex lock{};

  /// The answer that came back, or what says why there is none.
  [[nodiscard]] HttpResponse ask(const detail::BatchId& known_by, const std::string& model,
                                 const std::string& url, const std::string& canonical_body) {
    const std::scoped_lock held(lock);
    const auto first_id = folder.id_of(known_by);
    const detail::BatchAnswer* answer = nullptr;
    for (int asking = 1; asking <= folder.options().max_askings; ++asking) {
      const auto id = detail::BatchId::again(first_id, asking);
      answer = folder.answer(id);
      if (answer != nullptr && answer->unasked) continue;
      if (answer != nullptr) break;
      if (!folder.asked(id)) {
        auto line = detail::BatchFolder::request_line(id, url, canonical_body);
        if (line.size() + 1 > folder.options().max_bytes)
          return detail::not_sent(TransportFailure::malformed_request,
                                  "the request is larger than a file of a batch may be");
        folder.ask(id, known_by.hash, model, url, std::move(line));
      }
      return detail::not_sent(TransportFailure::pending, id);
    }
    return answer->response;
  }
};

MTMC_INLINE BatchTransport::BatchTransport(BatchOptions options)
    : state_(new State{detail::BatchFolder(std::move(options))}) {}

MTMC_INLINE HttpResponse BatchTransport::send(const HttpRequest& request, const BodySink& sink, Deadline,
                                              std::stop_token stop) {
  using enum TransportFailure;
  if (stop.stop_requested()) return detail::not_sent(cancelled, "cancelled before it was sent");
  const auto url = detail::batch_url(request.url);
  const Secrets secrets(request);
  if (request.method != "POST" || url.empty())
    return detail::not_sent(unavailable, "a batch takes no " + request.method + ' ' +
                                             detail::path_content(request.url, secrets) +
                                             ": what needs it is not available without a network");
  const auto body = detail::body_content(request.body, secrets).json;
  if (!body.is_object()) return detail::not_sent(malformed_request, "the body is not a JSON object");
  if (detail::member_or_null(body, "stream") == detail::Json(true))
    return detail::not_sent(malformed_request, "a batch does not stream: ask without \"stream\"");

  const auto canonical = detail::dumped(body);
  const auto known_by = detail::batch_id(secrets.hide(request.label), canonical);
  return detail::handed_over(state_->ask(known_by, detail::string_member(body, "model"), url, canonical),
                             sink);
}

MTMC_INLINE std::size_t BatchTransport::waiting() const {
  const std::scoped_lock lock(state_->lock);
  return state_->folder.waiting();
}

MTMC_INLINE std::vector<BatchFile> BatchTransport::files() const {
  const std::scoped_lock lock(state_->lock);
  return state_->folder.unanswered_files();
}

MTMC_INLINE std::vector<std::string> BatchTransport::problems() const {
  const std::scoped_lock lock(state_->lock);
  return state_->folder.problems();
}

MTMC_INLINE void BatchTransport::read_answers() {
  const std::scoped_lock lock(state_->lock);
  state_->folder.read_answers();
}

MTMC_INLINE void BatchTransport::close_round() {
  const std::scoped_lock lock(state_->lock);
  state_->folder.close_round();
}

} // namespace mtmc
