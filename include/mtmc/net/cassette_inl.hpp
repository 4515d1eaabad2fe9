#pragma once
/// Definitions of net/cassette.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/net/cassette.hpp>
#include <mtmc/net/cassette_exchange.hpp>
#include <mtmc/support/file_io.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Opens a cassette to go on with it, or begins one.
[[nodiscard]] inline LineFile cassette_for_writing(const std::string& path) {
  LineFile file(path);
  // Before anything is cut off: it may be somebody's only copy of something else.
  const auto whole = file.content();
  const auto first = std::string_view(whole).substr(0, whole.find('\n'));
  const bool torn = first.size() == whole.size() && first_cassette_line().starts_with(first);
  if (!torn) check_first_cassette_line(first, line_place(path, 1));
  const auto content =
      file.mended([](std::string_view line) { return !parse_text(line, false).is_discarded(); });
  if (content.empty()) file.append(first_cassette_line());
  return file;
}

/// How much of two texts is the same at their starts and ends.
[[nodiscard]] inline std::size_t likeness(std::string_view a, std::string_view b) {
  const auto least = std::min(a.size(), b.size());
  std::size_t front = 0;
  while (front < least && a[front] == b[front]) ++front;
  std::size_t back = 0;
  while (back < least - front && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  return front + back;
}

[[nodiscard]] inline std::string named_request(const RecordedExchange& exchange) {
  const auto request = exchange.method + ' ' + exchange.path;
  return exchange.label.empty() ? request : '"' + exchange.label + "\" (" + request + ')';
}

/// Gives a recorded answer to the caller, whether or not the caller takes it piece by piece as it was
/// taken then.
[[nodiscard]] inline HttpResponse played(const RecordedAnswer& answer, const BodySink& sink) {
  auto response = response_of(answer);
  if (!sink) {
    std::string body;
    for (const auto& piece : answer.pieces) body += piece.bytes;
    response.body.insert(0, body);
    return response;
  }
  const auto give = [&](std::string_view piece) {
    if (sink(piece)) return true;
    response.failure = TransportFailure::cancelled;
    response.message = "the reader of the answer ended it";
    return false;
  };
  for (const auto& piece : answer.pieces)
    if (!give(piece.bytes)) return response;
  const bool success = answer.status >= 200 && answer.status < 300;
  if (success && answer.pieces.empty() && !answer.body.empty()) {
    response.body.clear();
    (void)give(answer.body.bytes);
  }
  return response;
}

} // namespace detail

struct RecordingTransport::State {
  AnyTransport transport;
  std::vector<std::string> secrets;
  std::mutex lock;
  detail::LineFile file;
};

MTMC_INLINE RecordingTransport::RecordingTransport(AnyTransport transport, const std::string& path,
                                                   std::vector<std::string> secrets)
    : state_(new State{std::move(transport), std::move(secrets), {}, detail::cassette_for_writing(path)}) {}

MTMC_INLINE HttpResponse RecordingTransport::send(const HttpRequest& request, const BodySink& sink,
                                                  Deadline deadline, std::stop_token stop) {
  std::string streamed;
  std::vector<std::size_t> ends;
  BodySink noting;
  if (sink)
    noting = [&](std::string_view piece) {
      streamed += piece;
      ends.push_back(streamed.size());
      return sink(piece);
    };
  auto response = state_->transport.send(request, noting, deadline, stop);
  const auto failure = response.failure;
  if (failure == TransportFailure::pending || failure == TransportFailure::unavailable ||
      (failure == TransportFailure::cancelled && stop.stop_requested()))
    return response;

  const Secrets secrets(request, state_->secrets);
  auto exchange = detail::recorded_request(request, secrets);
  exchange.answer = detail::recorded_answer(response, streamed, std::move(ends), secrets);
  detail::Json line;
  detail::write_value(line, exchange);
  auto text = detail::dumped(line);
  const std::scoped_lock lock(state_->lock);
  state_->file.append(std::move(text));
  return response;
}

struct ReplayTransport::State {
  struct Recorded {
    detail::RecordedExchange exchange;
    std::size_t line = 0;
    bool played = false;
  };

  std::string path;
  std::vector<std::string> secrets;
  std::vector<Recorded> recorded{};
  /// Places in `recorded`, in their order, by content.
  std::map<std::string, std::vector<std::size_t>> by_key{};
  std::mutex lock{};

  void read(std::string_view text) {
    bool begun = false;
    const auto torn = detail::open_end_of(text);
    detail::for_each_line(text, [&](std::string_view line, std::size_t number) {
      const auto place = detail::line_place(path, number);
      if (!std::exchange(begun, true)) return detail::check_first_cassette_line(line, place);
      const bool last = line.data() + line.size() > text.data() + torn;
      if (last && detail::parse_text(line, false).is_discarded()) return;
      auto exchange = detail::read_exchange(line, place);
      by_key[exchange.key()].push_back(recorded.size());
      recorded.push_back({std::move(exchange), number});
    });
    if (!begun) detail::check_first_cassette_line({}, path);
  }

  /// The answer to play, marked as played; null if there is none left.
  [[nodiscard]] const detail::RecordedAnswer* take(const detail::RecordedExchange& asked) {
    const auto same = by_key.find(asked.key());
    if (same == by_key.end()) return nullptr;
    const std::scoped_lock held(lock);
    Recorded* next = nullptr;
    for (const auto at : same->second) {
      auto& one = recorded[at];
      if (one.played) continue;
      const bool same_label = one.exchange.label == asked.label;
      if (next == nullptr || same_label) next = &one;
      if (same_label) break;
    }
    if (next == nullptr) return nullptr;
    next->played = true;
    return &next->exchange.answer;
  }

  /// What is missing, and what there is instead.
  [[nodiscard]] std::string missing(const detail::RecordedExchange& asked) const {
    const auto start = path + " holds ";
    if (const auto same = by_key.find(asked.key()); same != by_key.end())
      return start + "no more answers to " + detail::named_request(asked) + ": all " +
             std::to_string(same->second.size()) + " have been played";
    const auto body = asked.canonical_body();
    const Recorded* nearest = nullptr;
    std::size_t most = 0;
    for (const auto& one : recorded) {
      if (one.exchange.method != asked.method || one.exchange.path != asked.path) continue;
      const auto like = detail::likeness(body, one.exchange.canonical_body());
      if (nearest == nullptr || like > most) {
        nearest = &one;
        most = like;
      }
    }
    const auto none = start + "no answer to " + detail::named_request(asked);
    if (nearest == nullptr) return none + ", nor to any other " + asked.method + ' ' + asked.path;
    const auto& other = nearest->exchange;
    const auto difference = asked.body.empty() || other.body.empty()
                                ? "the body, " + detail::first_difference(body, other.canonical_body())
                                : detail::first_difference(asked.body.value, other.body.value, std::string());
    return none + ". The nearest is " + detail::named_request(other) + " in line " +
           std::to_string(nearest->line) + "; they differ in " + difference;
  }
};

MTMC_INLINE ReplayTransport::ReplayTransport(const std::string& path, std::vector<std::string> secrets)
    : state_(new State{path, std::move(secrets)}) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const std::system_error& error) {
    detail::line_file_error("the recording cannot be read", path, error.code().value());
  }
  state_->read(text);
}

MTMC_INLINE HttpResponse ReplayTransport::send(const HttpRequest& request, const BodySink& sink, Deadline,
                                               std::stop_token stop) {
  HttpResponse none;
  if (stop.stop_requested()) {
    none.failure = TransportFailure::cancelled;
    none.message = "cancelled before it was sent";
    return none;
  }
  const auto asked = detail::recorded_request(request, Secrets(request, state_->secrets));
  if (const auto* const answer = state_->take(asked)) return detail::played(*answer, sink);
  none.failure = TransportFailure::unavailable;
  none.message = state_->missing(asked);
  return none;
}

MTMC_INLINE std::size_t ReplayTransport::left() const {
  const std::scoped_lock lock(state_->lock);
  return static_cast<std::size_t>(std::count_if(state_->recorded.begin(), state_->recorded.end(),
                                                [](const auto& one) { return !one.played; }));
}

} // namespace mtmc
