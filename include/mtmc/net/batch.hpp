#pragma once
/// Requests as files that somebody carries to a machine with a network, and answers as files that come back.
///
/// A batch is a folder:
///
///     requests-1.jsonl      input of OpenAI's Batch API and of `vllm run-batch`: carry these over
///     requests-1-2.jsonl    more of the first round: another model or endpoint, or too much for one file
///     answers/*.jsonl       what came back: output and error files under any names, in any order
///     round, lock           the current round; held by the process that writes
///
/// All requests of a round, of however many tasks and however often the process is started, go to one file
/// for each model and endpoint. They are appended line by line as they are asked; a line that was cut off
/// when the process was killed is mended by the next one. A round ends with the first answer to one of its
/// files, or with `close_round`: from then on its files are never touched again, and new requests go to the
/// next round's.
///
/// A request is known by its label and body. It is written once and its answer is found again by every later
/// asking, so that each answer is paid for once. Samples of the same body need different labels. Headers and
/// secrets (net/redact.hpp) are not written. Answers must stay in the folder until the run has ended.

#include <mtmc/net/batch_options.hpp>
#include <mtmc/net/transport.hpp>

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Answers from the files that came back, and writes down what has no answer yet. Copies share the folder.
/// May be used from several threads, but by one process at a time.
class BatchTransport {
public:
  /// Reads the folder. Throws `Error`: `mtmc.net.001` where an option is out of range; `mtmc.net.002` where
  /// the folder cannot be written, another process uses it, or somebody changed a file of requests.
  explicit BatchTransport(BatchOptions options);

  /// The answer, if it came back; otherwise `pending` with the id of the request as message, and the request
  /// is in its file when this returns.
  ///
  /// An error that came back is a response of its status, with the header `x-should-retry: false`, since
  /// asking again at once would find the same. Where a batch expired, was cancelled, or ran out of time
  /// (`batch_expired`, `batch_cancelled`, `request_timeout`), or a limit of rates was met (429, but for a
  /// quota that is used up), the request is written again, under a new id and in the next round, up to
  /// `max_askings`; then it is a response of that status (504 where it expired, 503 where it was cancelled).
  ///
  /// `malformed_request`: a body that is no JSON object, asks for a stream, or fits into no file.
  /// `unavailable`: something else than a POST to chat completions, completions, responses or embeddings,
  /// which batches do not take; what needs such requests (the start-up probe, the scores of a served policy)
  /// is not available without a network. Throws `Error` (`mtmc.net.002`) where the folder can no longer be
  /// written. `sink` is given a whole answer in one piece. Nothing waits; the deadline is not looked at.
  [[nodiscard]] HttpResponse send(const HttpRequest& request, const BodySink& sink, Deadline deadline,
                                  std::stop_token stop);

  /// Requests that are written down and have no answer.
  [[nodiscard]] std::size_t waiting() const;
  /// The files with such requests, in the order they were written. Those with no answer at all are to be
  /// carried over; of the others some answers are still missing (the error file, mostly).
  [[nodiscard]] std::vector<BatchFile> files() const;
  /// What is wrong with the answers that came back, one sentence each with file and line: lines that are
  /// malformed, and answers to a body that was not asked. They are left out; all others count.
  [[nodiscard]] std::vector<std::string> problems() const;

  /// Looks for answers that came since this was constructed. Throws as the constructor does.
  void read_answers();
  /// Ends the current round: what is asked from now on goes to new files. To be called when the user is told
  /// to carry the files over; without it, what is asked before their answers come is appended to them. Throws
  /// as the constructor does.
  void close_round();

private:
  struct State;
  std::shared_ptr<State> state_;
};

static_assert(check_transport<BatchTransport>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/net/batch_inl.hpp>
#endif
