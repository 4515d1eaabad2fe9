#pragma once
/// Asking the four parts of a loop, or the journal in their place: every question once, every answer kept,
/// every exception given a name, and nothing begun after the end of the time.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/loop/journal_writer.hpp>
#include <mtmc/loop/options.hpp>
#include <mtmc/loop/parts.hpp>
#include <mtmc/loop/search_state.hpp>
#include <mtmc/observation/validate_evaluation.hpp>
#include <mtmc/support/deadline.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Calls a host's part. What it throws becomes an `Error` (`mtmc.loop.002`) that names the part; an `Error`
/// of its own stays what it is.
template <class Call> auto guarded(std::string_view part, Call&& call) {
  constexpr std::string_view remedy =
      "See the message; what cannot be done for one kernel is a verdict or a failed draft, not an exception";
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(error_id::loop_part, "the " + std::string(part) + " threw: " + error.what(), remedy);
  } catch (...) {
    throw Error(error_id::loop_part,
                "the " + std::string(part) + " threw something that is not a std::exception", remedy);
  }
}

/// The parts of a run with everything they were asked so far. May be used from several threads at once.
class PartCalls {
public:
  PartCalls(LoopParts& parts, const LoopOptions& options, const Task& task, std::stop_token host)
      : parts_{parts}, options_{options}, task_{task}, host_{std::move(host)},
        on_host_stop_{host_, Forward{this}} {}
  PartCalls(const PartCalls&) = delete;
  PartCalls& operator=(const PartCalls&) = delete;

  /// Opens the journal. Throws `Error` where that, or asking for the device, fails.
  void begin() {
    device_ = guarded("evaluator", [this] { return parts_.evaluator.device(); });
    if (!options_.output.empty())
      journal_.emplace(run_folder(options_.output, task_.name), options_.durable, options_.resume);
    else
      journal_.emplace();
    task_digest_ = task_digest(task_);
    device_digest_ = device_digest(device_);
    RunRecord header;
    header.task = task_;
    header.device = device_;
    header.max_steps = options_.max_steps;
    header.budget = options_.budget;
    auto& set_up = header.set_up;
    set_up.samples = options_.samples;
    set_up.repairs = options_.repairs;
    set_up.beam = options_.beam;
    set_up.selection = options_.selection;
    set_up.temperature = options_.temperature;
    set_up.seed = options_.seed;
    set_up.minimum_gain = options_.minimum_gain;
    set_up.mask_failed_actions = options_.mask_failed_actions;
    for (const auto& type : options_.action_space.types) set_up.optimizations.push_back(type.id);
    set_up.policy = parts_.policy.identity();
    set_up.coder = parts_.coder.identity();
    set_up.region_finder = parts_.finder.identity();
    set_up.evaluator = parts_.evaluator.identity();
    journal_->begin(std::move(header));
    // What is measured of a device is never twice the same; a request must be, or its answer is lost.
    if (journal_->resumed() && device_digest(journal_->device()) == device_digest_)
      device_ = journal_->device();
  }

  [[nodiscard]] Journal& journal() noexcept { return *journal_; }
  [[nodiscard]] bool has_journal() const noexcept { return journal_.has_value(); }
  [[nodiscard]] const Device& device() const noexcept { return device_; }
  [[nodiscard]] bool cancelled() const { return host_.stop_requested(); }
  /// Why work was cut short.
  [[nodiscard]] StopReason cut_reason() const {
    return cancelled() ? StopReason::cancelled : StopReason::time;
  }

  /// To be called before something new is asked. False if the host has cancelled or the time is over; the
  /// end of the time is then set to stop whatever goes on.
  [[nodiscard]] bool go_live() {
    journal_->go_live();
    if (options_.budget.seconds > 0) {
      const std::lock_guard lock{timer_mutex_};
      if (!timer_.joinable()) {
        const double rest = options_.budget.seconds - journal_->seconds();
        if (rest <= 0) {
          source_.request_stop();
        } else {
          timer_ = std::jthread([this, rest](const std::stop_token& stop) {
            if (wait_unless_stopped(rest, stop)) source_.request_stop();
          });
        }
      }
    }
    return !source_.stop_requested();
  }

  /// The structure of a kernel.
  [[nodiscard]] Structure structure(const Kernel& kernel, const std::string& id) {
    if (auto found = journal_->find_structure(id)) return std::move(*found);
    auto structure = guarded("region finder", [&] { return parts_.finder.find(task_, kernel); });
    return journal_->add(StructureRecord{id, std::move(structure)});
  }

  /// The actions that the policy has of its own, and `stop`; nothing if it was cut short.
  [[nodiscard]] std::optional<std::vector<Action>> proposals(const Observation& seen,
                                                             std::span<const Action> legal) {
    if (!go_live()) return std::nullopt;
    auto answer = cuttable<std::vector<Action>>(source_.get_token(), [&] {
      return guarded("policy", [&] { return parts_.policy.propose(seen, legal, source_.get_token()); });
    });
    if (!answer) return answer;
    std::erase_if(*answer, [](const Action& action) { return action.kind == Action::Kind::stop; });
    answer->push_back(Action::stop());
    return answer;
  }

  /// The policy's answer, checked; nothing if it was cut short.
  [[nodiscard]] std::optional<ActionDistribution> distribution(const Observation& seen,
                                                               std::span<const Action> legal) {
    if (!go_live()) return std::nullopt;
    auto answer = cuttable<ActionDistribution>(source_.get_token(), [&] {
      return guarded("policy", [&] { return parts_.policy.distribution(seen, legal, source_.get_token()); });
    });
    if (answer) check_distribution(*answer, legal.size());
    return answer;
  }

  /// A draft; nothing if it was cut short. `parent` is the id of the kernel the request starts from. The
  /// kernel is on the disk when this returns.
  [[nodiscard]] std::optional<Drafted> draft(const CodingRequest& request, const DraftName& name,
                                             const std::string& parent) {
    if (auto found = journal_->find_draft(name)) {
      auto id = found->kernel ? found->kernel->id() : std::string();
      return Drafted{std::move(*found), std::move(id), true};
    }
    if (!go_live()) return std::nullopt;
    auto answer = cuttable<Draft>(source_.get_token(), [&] {
      return guarded("coder", [&] { return parts_.coder.implement(request, source_.get_token()); });
    });
    if (!answer || (source_.stop_requested() && answer->failure == DraftFailure::cancelled))
      return std::nullopt;
    const auto id = settle(*answer, parent);
    if (answer->kernel) journal_->save(*answer->kernel, id);
    DraftRecord record{name.request, name.sample, name.repair, std::move(*answer), {}};
    return Drafted{journal_->add(std::move(record), id), id, false};
  }

  /// A judgement; nothing if it was cut short. Promotions and the closing comparison go on after the end of
  /// the time, but not after the host's stop.
  [[nodiscard]] std::optional<Judged> judge(EvaluationRole role, const Kernel& kernel, const std::string& id,
                                            const Kernel* incumbent, const std::string& incumbent_id) {
    Judged judged;
    judged.key =
        evaluation_key(role, id, incumbent_id, task_digest_, device_digest_, parts_.evaluator.identity());
    if (auto found = journal_->find_evaluation(judged.key)) {
      judged.evaluation = std::move(*found);
      judged.replayed = true;
      return judged;
    }
    const bool after_time = role == EvaluationRole::promotion || role == EvaluationRole::closing;
    const auto stop = after_time ? host_ : source_.get_token();
    if ((!go_live() && !after_time) || stop.stop_requested()) return std::nullopt;
    EvaluationRequest request;
    request.task = task_;
    request.candidate = kernel;
    if (incumbent != nullptr) request.incumbent = *incumbent;
    request.purpose = after_time ? Purpose::promote : Purpose::explore;
    std::optional<Evaluation> answer;
    try {
      answer = cuttable<Evaluation>(stop, [&] {
        prepare(stop);
        return guarded("evaluator", [&] {
          auto evaluation = parts_.evaluator.evaluate(request, stop);
          validate_evaluation(evaluation);
          return evaluation;
        });
      });
    } catch (...) {
      evaluator_failed_ = true;
      throw;
    }
    // What an evaluator says while it is being stopped may be about the stop.
    if (!answer || stop.stop_requested()) return std::nullopt;
    judged.evaluation =
        journal_->add(EvaluationRecord{judged.key, role, id, incumbent_id, std::move(*answer)});
    return judged;
  }

  /// Whether the evaluator has thrown.
  [[nodiscard]] bool evaluator_failed() const noexcept { return evaluator_failed_; }

  /// Calls an observer's function, one at a time, and drops what it throws.
  template <class Function, class Event> void notify(const Function& function, const Event& event) {
    if (!function) return;
    const std::lock_guard lock{observer_mutex_};
    try {
      function(event);
    } catch (...) { // an observer never changes the run
    }
  }

private:
  struct Forward {
    PartCalls* self;
    void operator()() const noexcept { self->source_.request_stop(); }
  };

  /// What a part throws while it is being stopped is about the stop.
  template <class Answer, class Call>
  [[nodiscard]] static std::optional<Answer> cuttable(const std::stop_token& stop, Call&& call) {
    try {
      return call();
    } catch (const Error&) {
      if (stop.stop_requested()) return std::nullopt;
      throw;
    }
  }

  void prepare(const std::stop_token& stop) {
    const std::lock_guard lock{prepare_mutex_};
    if (prepared_) return;
    guarded("evaluator", [&] { parts_.evaluator.prepare(task_, stop); });
    prepared_ = true;
  }

  /// Makes a coder's answer say exactly one thing. Answers the id of its kernel, if there is one.
  static std::string settle(Draft& draft, const std::string& parent) {
    if (!draft.pending.empty() || draft.failure != DraftFailure::none) {
      draft.kernel.reset();
    } else if (!draft.kernel) {
      draft.failure = DraftFailure::no_kernel;
      if (draft.message.empty()) draft.message = "the coder gave neither a kernel nor a reason";
    } else {
      draft.kernel->source = normalize_text(draft.kernel->source);
      auto id = draft.kernel->id();
      if (id != parent) return id;
      draft.kernel.reset();
      draft.failure = DraftFailure::unchanged;
      draft.message = "the answer is the kernel it started from";
    }
    return {};
  }

  LoopParts& parts_;
  const LoopOptions& options_;
  const Task& task_;
  std::stop_token host_;
  std::stop_source source_;
  std::stop_callback<Forward> on_host_stop_;
  Device device_;
  std::string task_digest_;
  std::string device_digest_;
  std::optional<Journal> journal_;
  std::mutex prepare_mutex_;
  bool prepared_ = false;
  std::atomic<bool> evaluator_failed_{false};
  std::mutex observer_mutex_;
  std::mutex timer_mutex_;
  std::jthread timer_;
};

} // namespace mtmc::detail
