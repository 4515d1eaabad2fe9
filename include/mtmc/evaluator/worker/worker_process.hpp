#pragma once
/// The host's side of one worker: the process, its three streams, and whether what it says is an answer.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/worker/worker_protocol.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/line_stream.hpp>
#include <mtmc/support/process/spawn.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <climits>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What came of asking a worker.
struct WorkerReply {
  /// `broken`, `late`, `cancelled` and `closing`: the worker must not be asked again.
  enum class Kind {
    answered,
    /// It ended, or said what is no message.
    broken,
    /// There was no answer before the deadline.
    late,
    /// It did not stop soon enough when it was asked to.
    cancelled,
    /// The evaluator is being destroyed.
    closing
  };
  Kind kind = Kind::broken;
  /// The answer: of the wanted type, or an error.
  Json message{};
  /// Why it is broken, half a sentence that begins with a verb.
  std::string reason{};
};

/// What can interrupt the waiting for an answer.
struct WorkerInterrupts {
  /// Readable when the request is not wanted any more; -1 = never.
  int stop = -1;
  /// Readable when the evaluator is being destroyed.
  int closing = -1;
};

/// What every worker of one evaluator is started with.
struct WorkerSetup {
  std::vector<std::string> command;
  std::uint64_t memory_limit = 0;
  std::string temporary_folder;
  std::chrono::milliseconds cancel_patience{2000};
  std::function<void(std::string_view)> log;
};

/// A running worker. It, and whatever it started, ends with this object at the latest. For one thread at a
/// time, in which SIGPIPE is blocked.
class WorkerProcess {
public:
  /// Starts the program. Throws ProcessStartError or std::system_error.
  explicit WorkerProcess(const WorkerSetup& setup)
      : setup_(setup), token_(random_worker_token()),
        folder_({.base = setup.temporary_folder, .prefix = "mtmc-worker-", .claimed = true}),
        child_(start()) {}
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess() { kill(); }

  [[nodiscard]] pid_t pid() const noexcept { return child_.pid(); }
  [[nodiscard]] const std::string& token() const noexcept { return token_; }
  [[nodiscard]] const std::string& folder() const noexcept { return folder_.path(); }
  /// Whether it said that it ends now.
  [[nodiscard]] bool leaving() const noexcept { return leaving_; }

  /// Sends a request, whose `request` is set here, and waits for its answer of type `wanted` or an error.
  [[nodiscard]] WorkerReply ask(std::string_view type, Json message, std::string_view wanted,
                                Deadline deadline, const WorkerInterrupts& interrupts) {
    const auto request = next_request_++;
    error_output_.clear();
    message["type"] = type;
    if (type != worker_message::hello) message["request"] = request;
    if (type == worker_message::hello) message["token"] = token_;
    before_request_ = input_.end();
    send(std::move(message));
    return wait_for(wanted, request, deadline, interrupts);
  }
  /// Sends a message that has no answer, with the next thing that is sent or waited for.
  void send(Json message) { input_.add(worker_line(std::move(message))); }

  /// Waits until `wake` or `closing` is readable. What it says meanwhile can only be log; otherwise, or if it
  /// ends, the answer is why it is broken.
  [[nodiscard]] std::optional<std::string> idle(int wake, int closing) {
    for (;;) {
      if (auto reply = take_lines({}, -1)) return std::move(reply->reason);
      if (auto broken = ended()) return broken;
      std::array<pollfd, 6> watched = this->watched(wake, closing);
      if (::poll(watched.data(), watched.size(), child_.exit_descriptor() < 0 ? blind_interval : -1) < 0)
        continue;
      serve(watched);
      if (watched[4].revents != 0 || watched[5].revents != 0) return std::nullopt;
    }
  }

  /// Whether its process has not ended.
  [[nodiscard]] bool alive() { return child_.alive(); }

  /// Whether it has taken in any of what it was last asked. One that had not when it ended did not end
  /// because of that.
  [[nodiscard]] bool has_read_request() const { return input_.has_been_read_beyond(before_request_); }

  /// Says bye, and gives it a moment to clean up behind itself.
  void finish(std::chrono::milliseconds patience) {
    send({{"type", worker_message::bye}});
    const auto until = time_after(patience);
    while (child_.alive() && std::chrono::steady_clock::now() < until) {
      std::array<pollfd, 6> watched = this->watched(-1, -1);
      if (::poll(watched.data(), watched.size(), poll_timeout(until, longest_poll())) <= 0) continue;
      serve(watched);
      if (input_.done()) input_.close();
      if (output_.ended() && error_.ended()) {
        (void)child_.wait(std::chrono::duration_cast<std::chrono::milliseconds>(
            std::max(until - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration{})));
        break;
      }
    }
    kill();
  }

  /// Kills it and everything it started.
  void kill() noexcept {
    child_.kill_family();
    (void)child_.wait(std::chrono::seconds{5});
  }

  /// The end of what it wrote to standard error since it was last asked for something, and its log.
  [[nodiscard]] const std::string& error_output() const noexcept { return error_output_; }
  static constexpr std::size_t max_error_output = 8192;

private:
  ChildProcess start() {
    FileDescriptor child_input;
    FileDescriptor child_output;
    FileDescriptor child_error;
    FileDescriptor input;
    FileDescriptor output;
    FileDescriptor error;
    open_pipe(child_input, input);
    open_pipe(output, child_output);
    open_pipe(error, child_error);
    for (const auto* end : {&input, &output, &error}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    input_ = LineWriter(std::move(input));
    output_ = LineReader(std::move(output), longest_worker_line);
    error_ = StreamReader(std::move(error));
    return ChildProcess{
        {.arguments = setup_.command,
         .descriptors = {{child_input.get(), 0}, {child_output.get(), 1}, {child_error.get(), 2}},
         .memory_limit = setup_.memory_limit,
         .new_session = true}};
  }
  static void open_pipe(FileDescriptor& reading, FileDescriptor& writing) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw ProcessStartError{"cannot make a pipe: " + std::generic_category().message(errno), errno};
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }

  [[nodiscard]] static WorkerReply broken(std::string reason) {
    return {WorkerReply::Kind::broken, {}, std::move(reason)};
  }

  [[nodiscard]] WorkerReply wait_for(std::string_view wanted, std::int64_t request, Deadline deadline,
                                     WorkerInterrupts interrupts) {
    bool cancelled = false;
    for (;;) {
      if (auto reply = take_lines(wanted, request)) return std::move(*reply);
      if (auto reason = ended()) return broken(std::move(*reason));
      const int timeout = poll_timeout(deadline, longest_poll());
      if (timeout == 0)
        return {
            cancelled ? WorkerReply::Kind::cancelled : WorkerReply::Kind::late, {}, "gave no answer in time"};
      std::array<pollfd, 6> watched = this->watched(interrupts.stop, interrupts.closing);
      if (::poll(watched.data(), watched.size(), timeout) <= 0) continue;
      serve(watched);
      if (watched[5].revents != 0) return {WorkerReply::Kind::closing, {}, {}};
      if (watched[4].revents != 0) {
        cancelled = true;
        interrupts.stop = -1;
        send({{"type", worker_message::cancel}, {"request", request}});
        deadline = std::min(deadline, time_after(setup_.cancel_patience));
      }
    }
  }

  [[nodiscard]] std::array<pollfd, 6> watched(int wake, int closing) const {
    return {{{output_.descriptor(), POLLIN, 0},
             {error_.descriptor(), POLLIN, 0},
             {input_.descriptor(), POLLOUT, 0},
             {child_.exit_descriptor(), POLLIN, 0},
             {wake, POLLIN, 0},
             {closing, POLLIN, 0}}};
  }
  /// Without a descriptor for its end it has to be looked at now and then.
  static constexpr int blind_interval = 50;
  [[nodiscard]] int longest_poll() const { return child_.exit_descriptor() < 0 ? blind_interval : INT_MAX; }

  void serve(const std::array<pollfd, 6>& watched) {
    if (watched[0].revents != 0) (void)output_.read();
    if (watched[1].revents != 0) keep_error_output(error_.read());
    if (watched[2].revents != 0) input_.write();
  }

  void keep_error_output(std::string_view text) {
    error_output_.append(text);
    if (error_output_.size() > 2 * max_error_output)
      error_output_.erase(0, error_output_.size() - max_error_output);
  }

  /// The first complete line that is more than log: an answer, or what breaks the conversation.
  [[nodiscard]] std::optional<WorkerReply> take_lines(std::string_view wanted, std::int64_t request) {
    std::string line;
    while (output_.next(line)) {
      try {
        auto message = parse_worker_line(line);
        if (text_of(message, "token") != token_)
          return broken("wrote a message without the token it was given: " + excerpt(line));
        const auto type = text_of(message, "type");
        if (type == worker_message::log) {
          const auto text = text_of(message, "text");
          keep_error_output(text + '\n');
          if (setup_.log) setup_.log(text);
          continue;
        }
        if (type == worker_message::bye) {
          leaving_ = true;
          continue;
        }
        if (request < 0 || (type != wanted && type != worker_message::error))
          return broken("said \"" + type + "\" without being asked: " + excerpt(line));
        if (integer_of(message, "request") != request)
          return broken("answered another request than it was asked: " + excerpt(line));
        return WorkerReply{WorkerReply::Kind::answered, std::move(message), {}};
      } catch (const Error&) {
        return broken("wrote something that is not a message: " + excerpt(line));
      }
    }
    if (output_.too_long()) return broken("wrote a message of more than 64 MiB");
    return std::nullopt;
  }

  [[nodiscard]] static std::string excerpt(std::string_view line) {
    constexpr std::size_t longest = 120;
    // As JSON, so that whatever it is can be shown.
    return Json(std::string(line.substr(0, longest))).dump(-1, ' ', false, Json::error_handler_t::replace) +
           (line.size() > longest ? "..." : "");
  }

  /// How it ended; nothing if it has not, or if there is a line to be taken yet.
  [[nodiscard]] std::optional<std::string> ended() {
    if (child_.alive() && !output_.ended()) return std::nullopt;
    // It may have closed its output on the way to its end, whose kind says more.
    constexpr std::chrono::milliseconds patience{200};
    pollfd exit_of_child{child_.exit_descriptor(), POLLIN, 0};
    if (child_.alive()) (void)poll_until({&exit_of_child, 1}, time_after(patience));
    const auto exit = child_.wait(std::chrono::milliseconds{0});
    output_.read_rest();
    // What it said with its last breath counts.
    if (output_.has_line()) return std::nullopt;
    for (auto text = error_.read(); !text.empty(); text = error_.read()) keep_error_output(text);
    std::string text = exit ? exit->text() : "closed its output";
    if (output_.in_the_middle()) text += " in the middle of a message";
    return text;
  }

  LineWriter input_;
  LineReader output_;
  StreamReader error_;
  const WorkerSetup& setup_;
  std::string token_;
  TemporaryFolder folder_;
  ChildProcess child_;
  /// Bytes of its input that lie before the last request.
  std::uint64_t before_request_ = 0;
  std::string error_output_;
  std::int64_t next_request_ = 0;
  bool leaving_ = false;
};

} // namespace mtmc::detail
