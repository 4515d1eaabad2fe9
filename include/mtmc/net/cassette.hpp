#pragma once
/// Exchanges with an endpoint, written down as they happen and played back without a network.
///
/// A cassette is a text file. Its first line is `{"format":"mtmc-cassette","version":1}`; each line after it
/// is one exchange:
///
///     {"label":"gemm-3-0","method":"POST","path":"/v1/chat/completions","headers":[...],"body":{...},
///      "answer":{"status":200,"headers":[...],"body":"...","seconds":1.5}}
///
/// A streamed answer has `"pieces"`, one text for each piece as it came; a failure has `"failure"` (the names
/// of `TransportFailure`) and `"message"`. Texts that are no UTF-8 are `{"hex":"..."}`. A request that is not
/// JSON has `"text"` instead of `"body"`. Secrets are replaced by "[redacted]": see net/redact.hpp.
///
/// What makes a request the one that was recorded is its content: the SHA-256 of method, path below the host
/// with query, and body, all without secrets. A JSON body is compared with its members in order of their
/// names. The host is no part of it, so that a recording of a provider plays for a server on this machine;
/// neither are headers, nor the label, which is written for people.

#include <mtmc/net/transport.hpp>

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Sends by another transport and writes each exchange down. Copies share file and transport. May be used
/// from several threads.
class RecordingTransport {
public:
  /// Goes on with the cassette where there is one already; the line that a killed writer left unfinished is
  /// cut off. `secrets`: texts that must not reach the file, besides what is found in each request. Throws
  /// `Error` (`mtmc.net.002`) where the file cannot be written, is something else, or has another writer.
  RecordingTransport(AnyTransport transport, const std::string& path, std::vector<std::string> secrets = {});

  /// As `transport`. The exchange is in the file when this returns, failures included, but for what says
  /// nothing about the endpoint: `pending`, `unavailable`, and what the stop token ended. Throws `Error`
  /// (`mtmc.net.002`) where the file can no longer be written.
  [[nodiscard]] HttpResponse send(const HttpRequest& request, const BodySink& sink, Deadline deadline,
                                  std::stop_token stop);

private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Answers from a cassette. Copies share what has been played. May be used from several threads.
class ReplayTransport {
public:
  /// `secrets`: those that the recording was given. Throws `Error` (`mtmc.net.002`) with file and line where
  /// the file cannot be read or is malformed; an unfinished last line is passed over.
  explicit ReplayTransport(const std::string& path, std::vector<std::string> secrets = {});

  /// The answer that was recorded for this content, the n-th for the n-th asking, with the seconds it took
  /// then and at once. Where several were recorded for the same content under different labels (samples), one
  /// under the asker's label goes first, so that the order of threads does not matter. Streamed answers come
  /// in the pieces they came in. Without an answer left: `unavailable`, with the request and the recorded one
  /// that is most like it in the message. The deadline is not looked at.
  [[nodiscard]] HttpResponse send(const HttpRequest& request, const BodySink& sink, Deadline deadline,
                                  std::stop_token stop);

  /// Recorded answers that have not been played.
  [[nodiscard]] std::size_t left() const;

private:
  struct State;
  std::shared_ptr<State> state_;
};

static_assert(check_transport<RecordingTransport>());
static_assert(check_transport<ReplayTransport>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/net/cassette_inl.hpp>
#endif
