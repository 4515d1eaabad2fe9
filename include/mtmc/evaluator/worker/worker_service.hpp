#pragma once
/// The inside of a worker: reads requests, lets the judge answer them, and ends when nobody listens.

#include <mtmc/core/any.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/evaluator/kernel_evaluator_options_json.hpp>
#include <mtmc/evaluator/worker/worker_backends.hpp>
#include <mtmc/evaluator/worker/worker_protocol.hpp>
#include <mtmc/observation/validate_evaluation.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/line_stream.hpp>
#include <mtmc/support/process/process_family.hpp>
#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/version.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <signal.h>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Exit codes of a worker besides 0.
inline constexpr int worker_misspoken = 3;
inline constexpr int worker_out_of_memory = 70;

/// One conversation with a host. Must live as long as the process, because its reader does.
class WorkerService {
public:
  /// `input` is a descriptor that blocks.
  WorkerService(const WorkerBackends& backends, FileDescriptor input, FileDescriptor output)
      : backends_(backends), input_(std::move(input), longest_worker_line), output_(std::move(output)) {}
  WorkerService(const WorkerService&) = delete;
  WorkerService& operator=(const WorkerService&) = delete;

  /// Serves until the host says bye or is gone. The exit code.
  [[nodiscard]] int run() {
    // It may wait for input for ever, so nobody waits for it.
    std::thread([this] { read(); }).detach();
    const auto first = next();
    if (!first) return 0;
    if (text_of(*first, "type") != worker_message::hello) {
      std::fprintf(stderr,
                   "mtmc-worker: the first message is not hello; this program speaks JSON lines with a "
                   "host, see evaluator/worker/worker_protocol.hpp\n");
      return worker_misspoken;
    }
    if (!greet(*first)) return 0;
    while (auto message = next()) {
      const auto type = text_of(*message, "type");
      if (type == worker_message::bye) break;
      if (type == worker_message::prepare) answer(*message, [&] { return prepare(*message); });
      if (type == worker_message::evaluate) answer(*message, [&] { return evaluate(*message); });
      if (type == worker_message::forget) tasks_.erase(text_of(*message, "task_id"));
      if (backend_->spent()) {
        send(worker_message::bye, Json::object());
        break;
      }
    }
    judge_.reset();
    backend_.reset();
    return 0;
  }

private:
  /// A judge that does not stop is not waited for.
  static constexpr std::chrono::seconds patience{3};

  // The reader.

  void read() {
    std::string line;
    while (!input_.ended()) {
      (void)input_.read();
      while (input_.next(line)) {
        try {
          take(parse_worker_line(line));
        } catch (const Error& error) {
          return end(error.what());
        }
      }
      if (input_.too_long()) return end("a message is longer than 64 MiB");
    }
    end("");
  }

  void take(Json message) {
    const std::scoped_lock lock(mutex_);
    const auto type = text_of(message, "type");
    if (type == worker_message::cancel) {
      const auto request = integer_of(message, "request");
      if (request == current_) stop_.request_stop();
      // It may still be waiting behind others.
      cancelled_ = std::max(cancelled_, request);
      return;
    }
    if (type == worker_message::bye) stop_.request_stop();
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }

  /// Nobody listens any more: stop, and if that takes too long, end at once.
  void end(const std::string& reason) {
    if (!reason.empty()) std::fprintf(stderr, "mtmc-worker: %s\n", reason.c_str());
    std::string folder;
    {
      std::unique_lock lock(mutex_);
      ended_ = true;
      stop_.request_stop();
      changed_.notify_all();
      if (changed_.wait_for(lock, patience, [this] { return left_; })) return;
      folder = own_folder_;
    }
    if (!folder.empty()) remove_tree(folder.c_str());
    if (::getsid(0) == ::getpid()) kill_family(::getpid());
    ::_exit(0);
  }

  [[nodiscard]] std::optional<Json> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !messages_.empty(); });
    if (ended_) return std::nullopt;
    auto message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

public:
  /// To be called when everything is cleaned up: the process may end.
  void leave() {
    const std::scoped_lock lock(mutex_);
    // The host removes it, too, if it is still there.
    if (!own_folder_.empty()) remove_tree(own_folder_.c_str());
    left_ = true;
    changed_.notify_all();
  }

private:
  // Answers.

  void send(std::string_view type, Json message) {
    message["type"] = type;
    message["token"] = token_;
    // A host that is gone is noticed by the reader.
    (void)write_all(output_.get(), worker_line(std::move(message)));
  }

  void send_error(std::int64_t request, const Error& error) {
    send(worker_message::error, {{"request", request}, {"error", worker_error(error)}});
  }

  /// Whether the host can be served.
  [[nodiscard]] bool greet(const Json& hello) {
    token_ = text_of(hello, "token");
    if (const auto version = integer_of(hello, "protocol"); version != worker_protocol_version) {
      const Error error(error_id::worker_protocol,
                        "the host speaks version " + std::to_string(version) +
                            " of the worker protocol, this worker version " +
                            std::to_string(worker_protocol_version),
                        "Use a host and a worker of the same version of mtmc");
      send(worker_message::error,
           {{"request", 0}, {"protocol", worker_protocol_version}, {"error", worker_error(error)}});
      return false;
    }
    limit_memory(integer_of(hello, "memory_limit"));
    bool ready = false;
    answer({{"request", 0}}, [&] {
      WorkerFolders folders;
      folders.temporary = text_of(hello, "temporary_folder");
      if (folders.temporary.empty() || ::access(folders.temporary.c_str(), W_OK | X_OK) != 0)
        folders.temporary.clear();
      folders.device_lock = text_of(hello, "device_lock_folder");
      {
        const std::scoped_lock lock(mutex_);
        own_folder_ = folders.temporary;
      }
      KernelEvaluatorOptions options;
      if (hello.contains("evaluator_options"))
        read_value(hello["evaluator_options"], options, "evaluator_options");
      const auto backend_options =
          hello.contains("backend_options") ? hello["backend_options"] : Json::object();
      backend_ = backend(text_of(hello, "backend")).make(backend_options.dump(), folders);
      judge_ = kernel_evaluator(AnyBackend(std::ref(*backend_)), options);
      Json message{{"protocol", worker_protocol_version},
                   {"version", version_string},
                   {"identity", judge_->identity()},
                   {"attaches_hooks", bool(backends_.attach_hooks)}};
      message["device"] = judge_->device();
      ready = true;
      return std::pair{worker_message::ready, std::move(message)};
    });
    return ready;
  }

  [[nodiscard]] const WorkerBackend& backend(const std::string& name) const {
    std::string known;
    for (const auto& entry : backends_.entries) {
      if (entry.name == name) return entry;
      known += (known.empty() ? "" : ", ") + entry.name;
    }
    throw Error(error_id::worker_request, "this worker has no backend \"" + name + '"',
                known.empty()
                    ? "Name the command of a worker that has it; this one has none at all"
                    : "Choose one of its own (" + known + "), or name the command of a worker that has it")
        .about("WorkerOptions::backend");
  }

  /// Only downwards, and only where it can be.
  static void limit_memory(std::int64_t bytes) {
    rlimit limit{};
    if (bytes <= 0 || ::getrlimit(RLIMIT_AS, &limit) != 0) return;
    limit.rlim_cur = std::min(limit.rlim_cur, static_cast<rlim_t>(bytes));
    (void)::setrlimit(RLIMIT_AS, &limit);
  }

  /// Sends what `call` gives, or the error it throws.
  template <class Call> void answer(const Json& request_message, Call&& call) {
    const auto request = integer_of(request_message, "request");
    {
      const std::scoped_lock lock(mutex_);
      current_ = request;
      stop_ = std::stop_source{};
      if (ended_ || (request > 0 && cancelled_ >= request)) stop_.request_stop();
    }
    try {
      auto [type, message] = call();
      message["request"] = request;
      send(type, std::move(message));
    } catch (const Error& error) {
      send_error(request, error);
    } catch (const std::bad_alloc&) {
      // Nothing can be said of a judge without memory; a new one has some.
      std::fprintf(stderr, "mtmc-worker: out of memory\n");
      ::_exit(worker_out_of_memory);
    } catch (const std::exception& error) {
      send_error(request,
                 {error_id::worker_judge, std::string("the judge threw: ") + error.what(),
                  "See the message; what cannot be done for one kernel is a verdict, not an exception"});
    } catch (...) {
      send_error(request, {error_id::worker_judge, "the judge threw something that is not a std::exception",
                           "Let it throw mtmc::Error"});
    }
    const std::scoped_lock lock(mutex_);
    current_ = -1;
  }

  [[nodiscard]] std::stop_token stop_token() {
    const std::scoped_lock lock(mutex_);
    return stop_.get_token();
  }

  [[nodiscard]] std::pair<std::string_view, Json> prepare(const Json& message) {
    Task task;
    if (!message.contains("task"))
      throw Error(error_id::worker_request, "the message has no task",
                  "See evaluator/worker/worker_protocol.hpp");
    read_value(message["task"], task, "task");
    attach_hooks(task, message);
    judge_->prepare(task, stop_token());
    tasks_.insert_or_assign(text_of(message, "task_id"), std::move(task));
    return {worker_message::prepared, Json::object()};
  }

  void attach_hooks(Task& task, const Json& message) const {
    const auto hooks = message.find("hooks");
    if (hooks == message.end() || !hooks->is_array() || hooks->empty()) return;
    if (backends_.attach_hooks) backends_.attach_hooks(task);
    for (const auto& hook : *hooks) {
      const bool attached =
          hook == "generate" ? bool(task.generate) : hook == "compare" && bool(task.compare);
      if (!attached)
        throw Error(error_id::worker_request,
                    "the worker has no hook " + hook.dump() + " for the task " + task.name,
                    "Let the function given to worker_backends or cpu_worker attach it by the task's name");
    }
  }

  [[nodiscard]] std::pair<std::string_view, Json> evaluate(const Json& message) {
    const auto asked = message.find("evaluation_request");
    const Json empty = Json::object();
    const auto& fields = asked != message.end() && asked->is_object() ? *asked : empty;
    const auto task = tasks_.find(text_of(fields, "task"));
    if (task == tasks_.end())
      throw Error(error_id::worker_request, "there is no task \"" + text_of(fields, "task") + '"',
                  "Prepare a task before candidates for it are evaluated");
    auto whole = fields;
    Task placeholder;
    write_value(whole["task"], placeholder);
    EvaluationRequest request;
    read_value(whole, request, "evaluation_request");
    request.task = task->second;
    const auto evaluation = judge_->evaluate(request, stop_token());
    validate_evaluation(evaluation);
    Json answer = Json::object();
    answer["evaluation"] = evaluation;
    return {worker_message::evaluation, std::move(answer)};
  }

  const WorkerBackends& backends_;
  /// The reader's own.
  LineReader input_;
  FileDescriptor output_;
  std::string token_;
  std::optional<AnyBackend> backend_;
  /// Uses the backend to its end.
  std::optional<AnyEvaluator> judge_;
  std::map<std::string, Task> tasks_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Json> messages_;
  /// The request that is being answered, -1 if none is, and the last one that was cancelled.
  std::int64_t current_ = -1;
  std::int64_t cancelled_ = -1;
  std::stop_source stop_;
  std::string own_folder_;
  bool ended_ = false;
  bool left_ = false;
};

/// Serves on standard input and output until the host has had enough. The exit code.
[[nodiscard]] inline int serve_as_worker(const WorkerBackends& backends) {
  // A host that is gone is an end like any other.
  (void)::signal(SIGPIPE, SIG_IGN);
  // What somebody prints must not get between the messages, and what somebody reads must not be one.
  FileDescriptor input{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)};
  FileDescriptor output{::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)};
  const FileDescriptor nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  if (nothing) (void)::dup2(nothing.get(), STDIN_FILENO);
  (void)::dup2(STDERR_FILENO, STDOUT_FILENO);
  // Never freed: the reader may use it until the process ends.
  static auto* const service = new WorkerService(backends, std::move(input), std::move(output));
  int code = worker_misspoken;
  try {
    code = service->run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mtmc-worker: %s\n", error.what());
  }
  service->leave();
  return code;
}

} // namespace mtmc::detail
