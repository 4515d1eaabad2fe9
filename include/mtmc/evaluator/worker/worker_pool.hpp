#pragma once
/// The workers of one evaluator: started ahead, given one request at a time, replaced when they are lost.

#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/kernel_evaluator_options_json.hpp>
#include <mtmc/evaluator/protocol/environment_record.hpp>
#include <mtmc/evaluator/worker/worker_process.hpp>
#include <mtmc/evaluator/worker/worker_protocol.hpp>
#include <mtmc/evaluator/worker/worker_verdicts.hpp>
#include <mtmc/evaluator/worker_options.hpp>
#include <mtmc/observation/validate_evaluation.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/version.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A task as workers know it.
struct WorkerTask {
  std::string id;
  Task task;
  Json json;
};

/// Each worker has a thread (a slot) that starts it, waits with it for something to do, and replaces it. All
/// slots are alike: a spare is a slot that has nothing to do because enough others are busy.
class WorkerPool {
public:
  WorkerPool(WorkerOptions options, std::vector<std::string> command)
      : options_(std::move(options)), closing_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    setup_.command = std::move(command);
    setup_.memory_limit = options_.memory_limit;
    setup_.temporary_folder = options_.temporary_folder;
    setup_.cancel_patience = milliseconds_of(options_.cancel_seconds);
    if (options_.log)
      setup_.log = [this](std::string_view line) {
        const std::scoped_lock lock(log_mutex_);
        options_.log(line);
      };
    backend_options_ = read_backend_options(options_.backend_options);
    slots_.resize(static_cast<std::size_t>(options_.workers) + static_cast<std::size_t>(options_.spares));
    for (auto& slot : slots_) {
      slot = std::make_unique<Slot>();
      slot->wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (!slot->wake || !closing_)
        throw Error(error_id::worker_lost, "there are no more file descriptors",
                    "Raise the limit (ulimit -n)");
    }
  }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool() {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    ::eventfd_write(closing_.get(), 1);
    for (auto& slot : slots_)
      if (slot->thread.joinable()) slot->thread.join();
  }

  [[nodiscard]] int workers() const noexcept { return options_.workers; }
  /// Seconds that one call of a task's own kernel may take in a worker.
  [[nodiscard]] double start_seconds() const noexcept { return options_.evaluator_options.start_seconds; }

  /// What the first worker says of itself.
  struct Greeting {
    Device device;
    std::string identity;
  };
  [[nodiscard]] const Greeting& greeting() {
    {
      const std::scoped_lock lock(mutex_);
      if (greeting_) return *greeting_;
    }
    Job job{.kind = Job::Kind::greet};
    run(job, {});
    return *greeting_;
  }

  void prepare(const Task& task, std::stop_token stop) {
    Job job{.kind = Job::Kind::prepare, .task = known(task)};
    run(job, std::move(stop));
  }

  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop) {
    auto answer = refuse_text(request.candidate);
    if (!answer) {
      Job job{.kind = Job::Kind::evaluate, .task = known(request.task), .request = &request};
      run(job, std::move(stop));
      answer = std::move(job.answer);
    }
    if (answer->environment.empty()) answer->environment = known_environment();
    return std::move(*answer);
  }

private:
  /// The environment record of an answer that no worker gave.
  [[nodiscard]] std::map<std::string, std::string> known_environment() {
    const std::scoped_lock lock(mutex_);
    if (greeting_) return device_record(greeting_->device);
    return {{"protocol", std::to_string(protocol_version)}};
  }

  struct Job {
    enum class Kind { greet, prepare, evaluate };
    Kind kind = Kind::greet;
    std::shared_ptr<const WorkerTask> task{};
    const EvaluationRequest* request = nullptr;
    int stop = -1;
    bool taken = false;
    bool done = false;
    std::optional<Evaluation> answer{};
    std::exception_ptr error{};
  };

  struct Slot {
    FileDescriptor wake;
    std::thread thread;
    std::unique_ptr<WorkerProcess> worker;
    /// Tasks the worker is ready for, the one used last at the end, and those it refused.
    std::vector<std::shared_ptr<const WorkerTask>> prepared;
    std::shared_ptr<const WorkerTask> refused;
    bool attaches_hooks = false;
    /// Whether it is free for a job, if its thread looks for one.
    bool idle = false;
    /// Whether there is a worker that has started.
    bool usable = false;
  };

  static constexpr int max_failures = 3;

  [[nodiscard]] static std::chrono::milliseconds milliseconds_of(double seconds) {
    constexpr double longest = 1e9;
    return std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * std::clamp(seconds, 0.0, longest)));
  }

  // The callers' side.

  /// The task by the name that workers know it by.
  [[nodiscard]] std::shared_ptr<const WorkerTask> known(const Task& task) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& entry) {
      return entry->task == task && bool(entry->task.generate) == bool(task.generate) &&
             bool(entry->task.compare) == bool(task.compare);
    });
    if (found != tasks_.end()) {
      std::rotate(found, found + 1, tasks_.end());
      return tasks_.back();
    }
    Json json;
    write_value(json, task);
    check_text(json, task.name);
    tasks_.push_back(std::make_shared<const WorkerTask>(
        WorkerTask{"t" + std::to_string(++tasks_seen_), task, std::move(json)}));
    if (tasks_.size() > std::max<std::size_t>(1, options_.prepared_tasks)) tasks_.erase(tasks_.begin());
    return tasks_.back();
  }

  /// Lets a slot do the job, and waits for it. Throws what became of it.
  void run(Job& job, std::stop_token stop) {
    const StopSignal stop_signal(stop);
    job.stop = stop_signal.descriptor();
    std::unique_lock lock(mutex_);
    for (auto& slot : slots_)
      if (!slot->thread.joinable()) slot->thread = std::thread([this, &here = *slot] { serve(here); });
    if (failures_ < max_failures || usable() < options_.workers) {
      awake_ = true;
      if (failures_ >= max_failures) failures_ = 0;
    }
    queue_.push_back(&job);
    wake_all();
    while (!job.done) {
      done_.wait(lock, stop, [&] { return job.done || job.taken; });
      if (!job.done && !job.taken && stop.stop_requested()) {
        std::erase(queue_, &job);
        throw_cancelled();
      }
      // Whoever took it hears of the stop himself.
      done_.wait(lock, [&] { return job.done || !job.taken; });
    }
    if (job.error) std::rethrow_exception(job.error);
  }

  [[nodiscard]] static Json read_backend_options(const std::string& text) {
    try {
      return parse_json(text, "the backend's options");
    } catch (const Error& error) {
      throw error.about("WorkerOptions::backend_options");
    }
  }

  [[noreturn]] static void throw_cancelled() {
    throw Error(error_id::evaluator_cancelled, "the evaluation was cancelled",
                "Nothing is wrong; ask again without requesting a stop");
  }

  void wake_all() const {
    for (const auto& slot : slots_) ::eventfd_write(slot->wake.get(), 1);
  }

  // The slots' side.

  void serve(Slot& slot) {
    // Signals are for the host's own threads; and a worker that is gone must not end the host.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    while (!has_ended()) {
      if (!slot.worker && (!wait_for_demand(slot) || !start(slot))) continue;
      if (Job* const job = take_job(slot))
        work(slot, *job);
      else if (const auto task = task_to_prepare(slot))
        prepare_ahead(slot, task);
      else
        rest(slot);
    }
    if (slot.worker) slot.worker->finish(std::chrono::milliseconds{1000});
    slot.worker.reset();
  }

  [[nodiscard]] bool has_ended() {
    const std::scoped_lock lock(mutex_);
    return ended_;
  }

  /// Waits until somebody has asked for something since workers failed for good. False at the end.
  [[nodiscard]] bool wait_for_demand(Slot& slot) {
    for (;;) {
      {
        const std::scoped_lock lock(mutex_);
        if (ended_) return false;
        if (awake_) return true;
      }
      std::array<pollfd, 2> watched{{{slot.wake.get(), POLLIN, 0}, {closing_.get(), POLLIN, 0}}};
      ::poll(watched.data(), watched.size(), -1);
      eventfd_t ignored = 0;
      ::eventfd_read(slot.wake.get(), &ignored);
    }
  }

  /// With nothing to do, waits for something to do; notices if the worker ends meanwhile.
  void rest(Slot& slot) {
    const auto broken = slot.worker->idle(slot.wake.get(), closing_.get());
    eventfd_t ignored = 0;
    ::eventfd_read(slot.wake.get(), &ignored);
    if (!broken) return;
    if (!slot.worker->leaving()) note_failure(slot, ", while it had nothing to do, " + *broken);
    lose(slot);
  }

  /// Something this slot may do now.
  [[nodiscard]] Job* take_job(Slot& slot) {
    const std::scoped_lock lock(mutex_);
    for (Job* const job : queue_) {
      if (job->kind != Job::Kind::greet) {
        if (busy_ >= options_.workers) continue;
        // Better somebody who has prepared it.
        if (!has_prepared(slot, job->task) && somebody_else_has(slot, job->task)) continue;
      }
      std::erase(queue_, job);
      job->taken = true;
      slot.idle = false;
      ++busy_;
      return job;
    }
    return nullptr;
  }
  [[nodiscard]] static bool has_prepared(const Slot& slot, const std::shared_ptr<const WorkerTask>& task) {
    return std::find(slot.prepared.begin(), slot.prepared.end(), task) != slot.prepared.end();
  }
  [[nodiscard]] bool somebody_else_has(const Slot& slot,
                                       const std::shared_ptr<const WorkerTask>& task) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const auto& other) {
      return other.get() != &slot && other->idle && has_prepared(*other, task);
    });
  }
  [[nodiscard]] int usable() const {
    return static_cast<int>(
        std::count_if(slots_.begin(), slots_.end(), [](const auto& slot) { return slot->usable; }));
  }

  /// The last task that some worker could prepare, if this one has not tried yet.
  [[nodiscard]] std::shared_ptr<const WorkerTask> task_to_prepare(Slot& slot) {
    const std::scoped_lock lock(mutex_);
    if (!recent_ || slot.refused == recent_ || has_prepared(slot, recent_)) return nullptr;
    slot.idle = false;
    return recent_;
  }
  /// So that the next candidate need not wait for it, should it come here.
  void prepare_ahead(Slot& slot, const std::shared_ptr<const WorkerTask>& task) {
    try {
      (void)prepare(slot, task, -1);
    } catch (const std::exception&) { // whoever asks for it will be told
      slot.refused = task;
    }
    const std::scoped_lock lock(mutex_);
    slot.idle = slot.usable;
    wake_all();
  }

  void work(Slot& slot, Job& job) {
    bool done = false;
    try {
      done = job.kind == Job::Kind::greet || prepare(slot, job.task, job.stop);
      if (done && job.kind == Job::Kind::evaluate) done = evaluate(slot, job);
    } catch (...) {
      job.error = std::current_exception();
      done = true;
    }
    const std::scoped_lock lock(mutex_);
    --busy_;
    slot.idle = slot.usable;
    if (!done && failures_ >= max_failures) {
      job.error = std::make_exception_ptr(*failure_);
      done = true;
    }
    job.done = done;
    if (!done) {
      job.taken = false;
      queue_.push_front(&job);
      fail_waiting();
    }
    done_.notify_all();
    wake_all();
  }

  /// Starts a worker and waits until its device is ready. False if that failed.
  [[nodiscard]] bool start(Slot& slot) {
    const auto deadline = time_after(milliseconds_of(options_.start_seconds));
    try {
      slot.worker = std::make_unique<WorkerProcess>(setup_);
    } catch (const std::exception& error) {
      // Trying again would be no better.
      fail(Error(error_id::worker_lost, std::string("a worker cannot be started: ") + error.what(),
                 "Check the worker's command, and the folder for temporary files")
               .about("WorkerOptions::command"));
      return false;
    }
    Json hello{{"protocol", worker_protocol_version},
               {"version", version_string},
               {"backend", options_.backend},
               {"backend_options", backend_options_},
               {"temporary_folder", slot.worker->folder()},
               {"device_lock_folder", options_.device_lock_folder},
               {"memory_limit", options_.memory_limit}};
    write_value(hello["evaluator_options"], options_.evaluator_options);
    auto reply = slot.worker->ask(worker_message::hello, std::move(hello), worker_message::ready, deadline,
                                  {-1, closing_.get()});
    if (reply.kind == WorkerReply::Kind::answered) {
      try {
        greet(slot, reply.message);
        return true;
      } catch (const Error& error) {
        fail(error);
      }
    } else if (reply.kind != WorkerReply::Kind::closing) {
      note_failure(slot, ", while it started, " + reply.reason);
    }
    lose(slot);
    return false;
  }

  /// Throws `Error` if the worker cannot be used.
  void greet(Slot& slot, const Json& message) {
    const bool refused = text_of(message, "type") == worker_message::error;
    const auto version =
        refused && !message.contains("protocol") ? worker_protocol_version : integer_of(message, "protocol");
    if (version != worker_protocol_version)
      throw Error(error_id::worker_protocol,
                  "the worker speaks version " + std::to_string(version) +
                      " of the worker protocol, this program version " +
                      std::to_string(worker_protocol_version),
                  "Use a host and a worker of the same version of mtmc", setup_.command.front());
    if (refused) throw worker_error(message.contains("error") ? message["error"] : Json());
    Greeting greeting{{}, text_of(message, "identity")};
    if (!message.contains("device"))
      throw Error(error_id::worker_lost, "the worker does not say which device it has",
                  "Correct the worker: see evaluator/worker/worker_protocol.hpp", setup_.command.front());
    read_value(message["device"], greeting.device, "device");
    const auto hooks = message.find("attaches_hooks");
    slot.attaches_hooks = hooks != message.end() && *hooks == true;
    const std::scoped_lock lock(mutex_);
    slot.usable = slot.idle = true;
    if (!greeting_) greeting_ = std::move(greeting);
  }

  /// Gets a task ready in a worker, if it is not. False if the worker was lost. Throws the worker's `Error`.
  [[nodiscard]] bool prepare(Slot& slot, const std::shared_ptr<const WorkerTask>& task, int stop) {
    if (note_use(slot, task)) return true;
    check_hooks(task->task, slot.attaches_hooks);
    Json message{{"task_id", task->id}, {"task", task->json}, {"hooks", Json::array()}};
    if (task->task.generate) message["hooks"].push_back("generate");
    if (task->task.compare) message["hooks"].push_back("compare");
    const auto reply =
        slot.worker->ask(worker_message::prepare, std::move(message), worker_message::prepared,
                         time_after(milliseconds_of(options_.prepare_seconds)), {stop, closing_.get()});
    switch (reply.kind) {
    case WorkerReply::Kind::answered: {
      if (text_of(reply.message, "type") == worker_message::error) {
        auto error = error_in(reply.message);
        if (error.id() != error_id::backend_device) {
          note_success();
          throw error;
        }
        // Another worker may have more luck: a device that is lost stays lost for this one.
        return lose_while_preparing(slot, *task, "lost its device: " + error.message());
      }
      note_success();
      const std::scoped_lock lock(mutex_);
      slot.prepared.push_back(task);
      recent_ = task;
      if (slot.prepared.size() <= std::max<std::size_t>(1, options_.prepared_tasks)) return true;
      slot.worker->send({{"type", worker_message::forget}, {"task_id", slot.prepared.front()->id}});
      slot.prepared.erase(slot.prepared.begin());
      return true;
    }
    case WorkerReply::Kind::cancelled:
    case WorkerReply::Kind::closing:
      lose(slot);
      throw_cancelled();
    default:
      return lose_while_preparing(slot, *task, reply.reason);
    }
  }
  /// False: the worker is gone, and the task is not prepared.
  [[nodiscard]] bool lose_while_preparing(Slot& slot, const WorkerTask& task, const std::string& why) {
    note_failure(slot, ", while it prepared the task " + task.task.name + ", " + why);
    lose(slot);
    return false;
  }
  /// Whether the task is prepared; it is then the one used last.
  [[nodiscard]] bool note_use(Slot& slot, const std::shared_ptr<const WorkerTask>& task) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find(slot.prepared.begin(), slot.prepared.end(), task);
    if (found == slot.prepared.end()) return false;
    std::rotate(found, found + 1, slot.prepared.end());
    recent_ = task;
    return true;
  }
  [[nodiscard]] static Error error_in(const Json& message) {
    return worker_error(message.contains("error") ? message["error"] : Json());
  }

  /// Judges a candidate. False if the worker ended before it took the request in, or said that it would.
  /// Throws the worker's `Error`.
  [[nodiscard]] bool evaluate(Slot& slot, Job& job) {
    // The task is known by its name.
    EvaluationRequest request{
        {}, job.request->candidate, job.request->incumbent, job.request->purpose, job.request->unknown};
    Json message;
    write_value(message["evaluation_request"], request);
    message["evaluation_request"]["task"] = job.task->id;
    if (!can_be_sent(message))
      throw Error(error_id::worker_request, "the text of the incumbent is not UTF-8",
                  "Compare with a kernel that was found correct", "task " + job.task->task.name);
    // One that ended before it was asked did not end because of this candidate.
    if (!slot.worker->alive()) {
      note_failure(slot, " ended while it had nothing to do");
      lose(slot);
      return false;
    }
    const auto limit = milliseconds_of(options_.compile_seconds + options_.evaluation_seconds);
    const auto reply =
        slot.worker->ask(worker_message::evaluate, std::move(message), worker_message::evaluation,
                         time_after(limit), {job.stop, closing_.get()});
    const std::string output = slot.worker->error_output();
    const bool left = slot.worker->leaving();
    const bool innocent = left || !slot.worker->has_read_request();
    switch (reply.kind) {
    case WorkerReply::Kind::answered:
      note_success();
      if (left) lose(slot);
      read_answer(slot, reply.message, job);
      return true;
    case WorkerReply::Kind::late:
      lose(slot);
      job.answer = late_worker_verdict(duration_text(limit), output);
      return true;
    case WorkerReply::Kind::broken:
      if (innocent)
        note_failure(slot, (left ? " said goodbye and " : ", before it took a request, ") + reply.reason);
      lose(slot);
      if (!innocent) job.answer = lost_worker_verdict(reply.reason, output);
      return !innocent;
    default:
      lose(slot);
      throw_cancelled();
    }
  }
  void read_answer(Slot& slot, const Json& message, Job& job) {
    if (text_of(message, "type") == worker_message::error) {
      auto error = error_in(message);
      if (error.id() != error_id::backend_device) throw error;
      // If the device is lost for good, the next workers will not start.
      lose(slot);
      job.answer = lost_worker_verdict("lost its device: " + error.message(), {});
      return;
    }
    try {
      Evaluation evaluation;
      const Json nothing;
      read_value(message.contains("evaluation") ? message["evaluation"] : nothing, evaluation, "evaluation");
      validate_evaluation(evaluation);
      job.answer = std::move(evaluation);
    } catch (const Error& error) {
      lose(slot);
      job.answer = lost_worker_verdict(
          "wrote something that is not an evaluation: " + error.message() + " (" + error.place() + ')', {});
    }
  }

  /// The worker is gone or of no use.
  void lose(Slot& slot) {
    const std::unique_ptr<WorkerProcess> lost = std::move(slot.worker);
    const std::scoped_lock lock(mutex_);
    slot.prepared.clear();
    slot.refused = nullptr;
    slot.idle = false;
    slot.usable = false;
    fail_waiting();
    wake_all();
  }

  void note_success() {
    const std::scoped_lock lock(mutex_);
    failures_ = 0;
  }
  /// A worker is about to be lost, and no candidate is at fault.
  void note_failure(const Slot& slot, const std::string& what) {
    const std::scoped_lock lock(mutex_);
    if (++failures_ < max_failures) return;
    failure_ = Error(error_id::worker_lost,
                     std::to_string(failures_) + " workers in a row were lost; the last one" + what +
                         error_output_text(slot.worker->error_output()),
                     "Start the worker by hand to see what it lacks, or allow it more time and memory",
                     setup_.command.front())
                   .about("WorkerOptions::memory_limit");
    awake_ = false;
  }
  /// Further workers are of no use until the next request.
  void fail(const Error& error) {
    const std::scoped_lock lock(mutex_);
    failures_ = max_failures;
    failure_ = error;
    awake_ = false;
    fail_waiting();
  }
  /// Jobs that no worker is left for, and none will come, fail. To be called under the lock.
  void fail_waiting() {
    if (awake_ || !failure_ || usable() > 0) return;
    for (Job* const job : queue_) {
      job->error = std::make_exception_ptr(*failure_);
      job->done = true;
    }
    queue_.clear();
    done_.notify_all();
  }

  WorkerOptions options_;
  WorkerSetup setup_;
  Json backend_options_;
  FileDescriptor closing_;
  std::mutex log_mutex_;

  std::mutex mutex_;
  std::condition_variable_any done_;
  std::deque<Job*> queue_;
  std::vector<std::shared_ptr<const WorkerTask>> tasks_;
  std::uint64_t tasks_seen_ = 0;
  std::optional<Greeting> greeting_;
  std::shared_ptr<const WorkerTask> recent_;
  int busy_ = 0;
  /// Workers lost in a row while no candidate was at fault, and what became of it.
  int failures_ = 0;
  std::optional<Error> failure_;
  bool awake_ = false;
  bool ended_ = false;
  std::vector<std::unique_ptr<Slot>> slots_;
};

} // namespace mtmc::detail
