#pragma once
/// An evaluator that judges each kernel once, for collections of many searches on the same task: most of
/// their kernels are known.

#include <mtmc/core/any.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/loop/journal.hpp>
#include <mtmc/loop/journal_file.hpp>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How the identity of every `RememberingEvaluator` begins: whoever weighs repeated measurements must know
/// that its answers repeat one.
inline constexpr std::string_view remembering_identity = "remembers, against the start kernel";

/// Options of a `RememberingEvaluator`.
struct RememberingOptions {
  /// The file of the memory, which is created with its folder if need be; empty: what is remembered is gone
  /// with the object.
  std::string path{};
  /// With which purpose kernels are really judged. `Purpose::promote` takes all pairs that precision needs,
  /// `Purpose::explore` ends as soon as it is clear which of two kernels is faster.
  Purpose purpose = Purpose::promote;
};

namespace detail {

/// a over the start kernel and b over the start kernel make a over b. The interval's ends come from the
/// relative half-widths, added in quadrature in the logarithm. Without an interval of both there is none.
[[nodiscard]] inline SpeedUp quotient(const SpeedUp& first, const SpeedUp& second) {
  const double ratio = first.value / second.value;
  if (!(first.confidence > 0) || !(second.confidence > 0)) return SpeedUp::without_interval(ratio);
  const auto width = [](double high, double low) { return std::max(std::log(high / low), 0.0); };
  SpeedUp result;
  result.value = ratio;
  result.low = ratio / std::exp(std::hypot(width(first.value, first.low), width(second.high, second.value)));
  result.high = ratio * std::exp(std::hypot(width(first.high, first.value), width(second.value, second.low)));
  result.confidence = std::min(first.confidence, second.confidence);
  return result;
}

/// Whether an evaluator left undecided what its interval would decide: there were too few pairs.
[[nodiscard]] inline bool is_doubtful(const Evaluation& evaluation) {
  return evaluation.comparison == Comparison::undecided && evaluation.speed_up &&
         (evaluation.speed_up->low > 1 || evaluation.speed_up->high < 1);
}

/// What an evaluation says of its kernel over the start kernel, at a size or as a whole; the start kernel,
/// judged alone, is exactly as fast as itself.
template <class Measured>
[[nodiscard]] std::optional<SpeedUp> over_start(const Measured& measured, bool is_start) {
  return is_start ? SpeedUp{} : measured.speed_up;
}

/// Takes out what an evaluation says of the kernel that it was compared with.
inline void forget_incumbent(Evaluation& evaluation) {
  evaluation.speed_up.reset();
  evaluation.comparison = Comparison::not_timed;
  evaluation.incumbent_binary_hash.clear();
  for (SizeEvaluation& size : evaluation.sizes) {
    size.speed_up.reset();
    size.incumbent_seconds = 0;
  }
}

/// A kernel that was judged against the start kernel, as if it had been judged against another such kernel.
[[nodiscard]] inline Evaluation compared_with(Evaluation candidate, bool candidate_is_start,
                                              const Evaluation& incumbent, bool incumbent_is_start) {
  const auto first = over_start(candidate, candidate_is_start);
  const auto second = over_start(incumbent, incumbent_is_start);
  const bool doubtful = is_doubtful(candidate) || is_doubtful(incumbent);
  for (SizeEvaluation& size : candidate.sizes) {
    const auto other = std::find_if(incumbent.sizes.begin(), incumbent.sizes.end(),
                                    [&](const SizeEvaluation& one) { return one.size == size.size; });
    const auto here = over_start(size, candidate_is_start);
    const auto there = other == incumbent.sizes.end() ? std::nullopt : over_start(*other, incumbent_is_start);
    size.speed_up.reset();
    size.incumbent_seconds = 0;
    if (!here || !there || !(size.seconds > 0)) continue;
    size.speed_up = quotient(*here, *there);
    size.incumbent_seconds = size.seconds * size.speed_up->value;
  }
  candidate.incumbent_binary_hash = incumbent.binary_hash;
  candidate.comparison = Comparison::not_timed;
  candidate.speed_up.reset();
  if (!first || !second) return candidate;
  const SpeedUp ratio = quotient(*first, *second);
  candidate.speed_up = ratio;
  if (ratio.confidence > 0)
    candidate.comparison = doubtful         ? Comparison::undecided
                           : ratio.low > 1  ? Comparison::faster
                           : ratio.high < 1 ? Comparison::slower
                                            : Comparison::undecided;
  return candidate;
}

} // namespace detail

/// An evaluator around another that compiles, verifies and times each distinct kernel of a task once, against
/// the task's own kernel, whatever incumbent is asked for. The answer for another incumbent is made of the
/// two remembered speed-ups: their ratio, with an interval from both. What is remembered costs nothing
/// (`Evaluation::cost` is 0), whichever search asks.
///
/// What that gives up: there is no second look. `Purpose::promote` and closing comparisons are answered from
/// the memory, too, so that a kernel that was lucky once stays lucky. For collecting data, never for handing
/// kernels out.
///
/// **The memory** is a file of JSON Lines, one `EvaluationRecord` each (loop/journal_records.hpp), only ever
/// appended to, by one writer at a time. Its keys hold kernel, task, device and evaluator, so that answers of
/// others stay unused. An unfinished last line is dropped, a damaged one skipped and reported. Verdicts are
/// remembered whatever they are, but a timeout, which may be a busy machine's, by this object alone; what was
/// cut short by a stop, and what threw, is not.
///
/// May be called from several threads at once: who asks for a kernel that is being judged waits.
class RememberingEvaluator {
public:
  /// Takes the evaluator over. Throws `Error` (`mtmc.journal.001`) where the file cannot be written or
  /// another process does so.
  explicit RememberingEvaluator(AnyEvaluator evaluator, const RememberingOptions& options = {})
      : evaluator_(std::move(evaluator)), purpose_(options.purpose) {
    if (!options.path.empty()) read(options.path);
  }

  /// The device of the evaluator within.
  [[nodiscard]] const Device& device() {
    const std::lock_guard lock{part_mutex_};
    return evaluator_.device();
  }

  /// The answer of the memory, after asking the evaluator within for what it lacks: the candidate, the
  /// incumbent, or both. Throws what that throws, and `Error` (`mtmc.evaluator.004`) where the incumbent is
  /// not correct.
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop) {
    const std::string start = request.task.kernel.id(), id = request.candidate.id();
    const std::string task = task_digest(request.task);
    bool from_memory = true;
    Evaluation answer = judged(request.task, task, request.candidate, id, start, from_memory, stop);
    const std::string other = request.incumbent ? request.incumbent->id() : std::string{};
    if (answer.correct() && other.empty()) {
      detail::forget_incumbent(answer);
    } else if (answer.correct() && other == id) {
      const Evaluation itself = answer;
      answer = detail::compared_with(std::move(answer), true, itself, true);
    } else if (answer.correct() && other != start) {
      const Evaluation incumbent =
          judged(request.task, task, *request.incumbent, other, start, from_memory, stop);
      if (!incumbent.correct())
        throw Error(error_id::evaluator_incumbent, "the incumbent does not pass",
                    "Compare with a correct kernel", "task " + request.task.name);
      answer = detail::compared_with(std::move(answer), id == start, incumbent, false);
    }
    const std::lock_guard lock{mutex_};
    if (from_memory) ++remembered_;
    return answer;
  }

  /// That of the evaluator within.
  [[nodiscard]] double start_seconds() const { return evaluator_.start_seconds(); }
  /// Says that it remembers, and who judges.
  [[nodiscard]] std::string identity() const {
    return std::string(remembering_identity) +
           (purpose_ == Purpose::promote ? "" : ", as soon as it is clear") + ": " + evaluator_.identity();
  }
  /// That of the evaluator within.
  [[nodiscard]] int concurrency_limit() const { return evaluator_.concurrency_limit(); }

  /// How often the evaluator within was asked by this object.
  [[nodiscard]] std::size_t judgements() const {
    const std::lock_guard lock{mutex_};
    return judgements_;
  }
  /// How many answers needed no judgement.
  [[nodiscard]] std::size_t remembered() const {
    const std::lock_guard lock{mutex_};
    return remembered_;
  }
  /// Evaluations in the memory, those of other tasks, devices and evaluators among them.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock{mutex_};
    return memory_.size();
  }
  /// Lines of the file that could not be read, a sentence each.
  [[nodiscard]] const std::vector<std::string>& damaged() const noexcept { return damaged_; }

private:
  void read(const std::string& path) {
    file_ = std::make_unique<JournalFile>(path);
    const std::string content = file_->take_content();
    std::size_t complete = 0;
    int number = 0;
    for (const std::string_view line : detail::complete_lines(content)) {
      complete += line.size() + 1;
      const std::string place = detail::line_place(path, ++number);
      try {
        auto record = parse_json(line, place).get<EvaluationRecord>();
        memory_[std::move(record.key)] = std::move(record.evaluation);
      } catch (const Error& error) {
        damaged_.push_back(place + ": " + error.message());
      }
    }
    file_->truncate(complete);
  }

  /// What is known of a kernel: judged alone if it is the start kernel, else against that.
  [[nodiscard]] Evaluation judged(const Task& task, const std::string& task_key, const Kernel& kernel,
                                  const std::string& id, const std::string& start, bool& from_memory,
                                  const std::stop_token& stop) {
    const bool alone = id == start;
    const EvaluationRole role = alone ? EvaluationRole::start : EvaluationRole::candidate;
    const std::string key = evaluation_key(role, id, alone ? std::string_view{} : std::string_view(start),
                                           task_key, device_key(), identity());
    std::unique_lock lock{mutex_};
    while (!memory_.contains(key) && !under_way_.insert(key).second)
      if (!answered_.wait(lock, stop, [&] { return !under_way_.contains(key); }))
        throw Error(error_id::evaluator_cancelled, "waiting for another judgement of the kernel was stopped",
                    "Ask again");
    if (const auto known = memory_.find(key); known != memory_.end()) {
      Evaluation answer = known->second;
      answer.cost = {};
      return answer;
    }
    ++judgements_;
    from_memory = false;
    lock.unlock();
    const Arrival arrival{*this, key};
    prepare(task, task_key, stop);
    EvaluationRequest request{task, kernel};
    if (!alone) request.incumbent = task.kernel;
    request.purpose = purpose_;
    EvaluationRecord record{key, role, id, alone ? std::string{} : start, evaluator_.evaluate(request, stop)};
    // What is said while it is being stopped may be about the stop.
    if (record.evaluation.verdict == Verdict::not_given || stop.stop_requested()) return record.evaluation;
    return remember(record);
  }

  /// Ends the waiting of others, with an answer or without.
  struct Arrival {
    RememberingEvaluator& self;
    const std::string& key;
    Arrival(RememberingEvaluator& evaluator, const std::string& of) : self(evaluator), key(of) {}
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;
    ~Arrival() {
      const std::lock_guard lock{self.mutex_};
      self.under_way_.erase(key);
      self.answered_.notify_all();
    }
  };

  /// The evaluation as a later process will read it: infinities are NaN there.
  [[nodiscard]] Evaluation remember(const EvaluationRecord& record) {
    const std::string line = detail::dump(nlohmann::json(record));
    const std::lock_guard lock{mutex_};
    const Verdict verdict = record.evaluation.verdict;
    const bool timed_out = verdict == Verdict::timeout || verdict == Verdict::compile_timeout;
    if (file_ && !timed_out) file_->append(line);
    Evaluation& place = memory_[record.key];
    place = detail::parse_text(line, true).get<EvaluationRecord>().evaluation;
    return place;
  }

  /// Getting a task ready takes seconds, so it waits for a kernel that nobody has judged.
  void prepare(const Task& task, const std::string& task_key, const std::stop_token& stop) {
    const std::lock_guard lock{part_mutex_};
    if (prepared_.contains(task_key)) return;
    evaluator_.prepare(task, stop);
    prepared_.insert(task_key);
  }

  [[nodiscard]] const std::string& device_key() {
    const std::lock_guard lock{part_mutex_};
    if (device_key_.empty()) device_key_ = device_digest(evaluator_.device());
    return device_key_;
  }

  AnyEvaluator evaluator_;
  Purpose purpose_;
  std::mutex part_mutex_;
  std::string device_key_{};
  std::set<std::string> prepared_{}; ///< digests of tasks

  mutable std::mutex mutex_;
  std::condition_variable_any answered_{};
  std::unique_ptr<JournalFile> file_{};
  std::map<std::string, Evaluation> memory_{}; ///< by `evaluation_key`
  std::set<std::string> under_way_{};
  std::vector<std::string> damaged_{};
  std::size_t judgements_ = 0;
  std::size_t remembered_ = 0;
};

static_assert(check_evaluator<RememberingEvaluator>());

} // namespace mtmc
