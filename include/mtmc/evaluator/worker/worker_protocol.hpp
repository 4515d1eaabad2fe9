#pragma once
/// What a host and its workers say to each other, protocol 1.
///
/// A worker is a program that reads messages on its standard input and writes messages on its standard
/// output. What it writes to its standard error is kept by the host (the end of it) and quoted where the
/// worker fails. A message is one JSON object (RFC 8259, UTF-8) on one line, ended by a line feed, of at most
/// 64 MiB and at most 200 levels. Its field "type" says which. Fields that a reader does not know it skips;
/// messages that a worker does not know it skips, too.
///
/// Numbers are written with as many digits as the same double needs to be read again. What JSON has no number
/// for is `{"$number": "nan"}`, `{"$number": "infinity"}` and `{"$number": "-infinity"}`, wherever a number
/// may stand; `null` in the place of a number is read as NaN. "Noun" below is the JSON form of the type of
/// that name (core/json.hpp); fields of it that are missing have their defaults.
///
/// The worker is the group leader of a session of its own: everything in it is killed with it. It must end
/// when its standard input ends, because then its host is gone, and leave nothing running.
///
/// Host to worker:
///
/// - `hello`, once, first. `protocol`: 1. `version`: that of the host's library. `token`: 32 hexadecimal
///   digits, new for each worker. `backend`: which of its backends the worker shall judge with.
///   `backend_options`: an object that is the backend's own business. `evaluator_options`: an object whose
///   fields are those of `KernelEvaluatorOptions` that differ from their defaults. `temporary_folder`: an
///   empty folder for this worker's files, removed by the host after its end; a worker that does not find it
///   (it is on another machine) uses one of its own. `device_lock_folder`: where the device is locked
///   (`DeviceLock`), "" = nowhere. `memory_limit`: bytes of address space the worker shall allow itself, 0 =
///   no limit. Answer: `ready`.
/// - `prepare`. `request`: an integer, new for each request. `task_id`: a string by which the task is known
///   from now on. `task`: `Task`. `hooks`: which of "generate" and "compare" the task has at the host's; the
///   worker must know them by the task's name. Compile, try and measure the start kernel. Answer: `prepared`.
/// - `evaluate`. `request`. `evaluation_request`: `EvaluationRequest`, with the `task_id` of a prepared task,
///   a string, as its `task`. Answer: `evaluation`.
/// - `cancel`. `request`: the one under way is not wanted any more. No answer of its own; the answer to the
///   request, whichever it is, must come soon (2 s), an error `mtmc.evaluator.003` for instance.
/// - `forget`. `task_id`: it will not be asked for again. No answer.
/// - `bye`: end now. No answer.
///
/// Worker to host. Every message carries the `token` of the hello, and every answer the `request` it is for
/// (the hello is request 0), so that no text that somebody else manages to write can be taken for an answer:
///
/// - `ready`. `protocol`: 1. `version`: of the worker, any text. `device`: `Device`, ready to be used.
///   `identity`: one line that names judge, device and settings; part of cache keys. `attaches_hooks`
///   (false): whether tasks with hooks can be sent.
/// - `prepared`.
/// - `evaluation`. `evaluation`: `Evaluation`. A candidate that fails is a verdict.
/// - `error`. `error`: `id`, `message`, `remedy`, `place`, `option`, `category`, all strings, the last four
///   may be missing: what became an exception (`Error`) in the worker and becomes one at the host's.
///   `category` is one of "input", "surroundings" and "internal"; without it, or with another one, it is
///   that of the id. The answer to any request that has no other. With `protocol`, as an answer to `hello`:
///   the worker speaks that version only.
/// - `log`. `text`: something worth knowing, any time; no answer to anything.
/// - `bye`, after an answer: the worker ends now and wants to be replaced, which is nobody's fault.
///
/// The host asks one thing at a time: after `hello`, `prepare` and `evaluate` it waits for the answer, with a
/// deadline, and meanwhile sends nothing but `cancel`. Whatever is not one of these messages, with the right
/// token and request, ends the conversation: the worker is killed and replaced, and the candidate that was
/// under way gets the verdict `crashed`, or `timeout` at the deadline. An error `mtmc.backend.004` (device
/// lost) as an answer to `prepare` or `evaluate` does the same, but that `prepare` is tried again with
/// another worker. While nothing is asked a worker says nothing but `log`.
///
/// An example, `>` from host to worker, shortened where `...` stands, each message on one line:
///
///     > {"type":"hello","protocol":1,"version":"0.1.0","token":"9f...","backend":"cpu",
///        "backend_options":{},"evaluator_options":{"explore_seconds":0.5},
///        "temporary_folder":"/tmp/mtmc-worker-a1b2c3","device_lock_folder":"/tmp","memory_limit":0}
///     < {"type":"ready","token":"9f...","request":0,"protocol":1,"version":"0.1.0","identity":"...",
///        "device":{"name":"AMD EPYC","kind":"cpu","compute_units":2},"attaches_hooks":false}
///     > {"type":"prepare","request":1,"task_id":"t1","hooks":[],
///        "task":{"name":"scale","kernel":{"language":{"name":"cpp"},"source":"..."},
///                "arguments":[...],"sizes":[{"N":4096}]}}
///     < {"type":"prepared","token":"9f...","request":1}
///     > {"type":"evaluate","request":2,
///        "evaluation_request":{"task":"t1","candidate":{"language":{"name":"cpp"},"source":"..."},
///                              "incumbent":{"language":{"name":"cpp"},"source":"..."},"purpose":"promote"}}
///     < {"type":"evaluation","token":"9f...","request":2,
///        "evaluation":{"verdict":"correct","seconds":1.25e-05,
///                      "sizes":[{"size":{"N":4096},"seconds":1.25e-05,
///                                "largest_error":{"$number":"nan"}}]}}
///     > {"type":"bye"}

#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/json_message.hpp>
#include <mtmc/support/os_random.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// The version of the protocol between a host and its workers.
inline constexpr int worker_protocol_version = 1;
/// Most bytes of one message.
inline constexpr std::size_t longest_worker_line = std::size_t{64} << 20;

/// Names of messages, as in their field "type".
namespace worker_message {
inline constexpr std::string_view hello = "hello";           ///< host: who it is and what to judge with
inline constexpr std::string_view prepare = "prepare";       ///< host: get a task ready
inline constexpr std::string_view evaluate = "evaluate";     ///< host: judge a candidate
inline constexpr std::string_view cancel = "cancel";         ///< host: stop the request under way
inline constexpr std::string_view forget = "forget";         ///< host: forget a task
inline constexpr std::string_view bye = "bye";               ///< both: the end
inline constexpr std::string_view ready = "ready";           ///< worker: answer to `hello`
inline constexpr std::string_view prepared = "prepared";     ///< worker: answer to `prepare`
inline constexpr std::string_view evaluation = "evaluation"; ///< worker: answer to `evaluate`
inline constexpr std::string_view error = "error";           ///< worker: answer to any request that failed
inline constexpr std::string_view log = "log";               ///< worker: something worth knowing
} // namespace worker_message

/// A message as a line, with its line feed. Text that is not UTF-8 is mended with U+FFFD.
[[nodiscard]] inline std::string worker_line(nlohmann::json message) {
  detail::mark_not_finite(message);
  return message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

/// A line, without its line feed, as a message. Throws `Error` (`mtmc.json.001`) if it is none, with whose
/// message it is and the header that tells what they look like.
[[nodiscard]] inline nlohmann::json
parse_worker_line(std::string_view line, const std::string& whose = "a worker's message",
                  std::string_view header = "evaluator/worker/worker_protocol.hpp") {
  auto message = parse_json(line, whose);
  if (!message.is_object() || !message.contains("type") || !message["type"].is_string())
    throw Error(error_id::json_malformed, "this is not a message: it is not an object with a \"type\"",
                "See " + std::string(header), whose);
  detail::unmark_not_finite(message);
  return message;
}

/// 128 unpredictable bits as 32 hexadecimal digits.
[[nodiscard]] inline std::string random_worker_token() {
  constexpr std::string_view digits = "0123456789abcdef";
  const std::array<std::uint64_t, 2> keys{random_key_from_os(), random_key_from_os()};
  std::string token;
  for (auto key : keys)
    for (int i = 0; i < 16; ++i, key >>= 4) token.push_back(digits[key & 15]);
  return token;
}

/// An error as part of a message, and back.
[[nodiscard]] inline nlohmann::json worker_error(const Error& error) { return detail::error_to_json(error); }
/// Reads an error from a message.
[[nodiscard]] inline Error worker_error(const nlohmann::json& error) {
  if (!error.is_object())
    return {error_id::worker_judge, "the worker reports an error without saying which", "See its log"};
  return detail::error_from_json(error, error_id::worker_judge);
}

} // namespace mtmc
