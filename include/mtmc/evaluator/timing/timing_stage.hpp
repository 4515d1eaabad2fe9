#pragma once
/// Timing a candidate against the incumbent, in pairs, on inputs neither has seen, with every output checked.

#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/protocol/amounts.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/shortage.hpp>
#include <mtmc/evaluator/timing/timing_statistics.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Times at one size, one entry a round; groups are divided by the number of their calls.
struct SizeTimes {
  /// Place in `Task::sizes`.
  std::size_t size = 0;
  /// The size's weight.
  double weight = 1;
  /// Calls in a group.
  std::size_t group = 1;
  std::vector<double> candidate; ///< seconds of one call of the candidate
  std::vector<double> incumbent; ///< seconds of one call of the incumbent

  /// Logarithms of incumbent / candidate.
  [[nodiscard]] std::vector<double> logarithms() const {
    std::vector<double> result;
    for (std::size_t i = 0; i < candidate.size() && i < incumbent.size(); ++i)
      result.push_back(std::log(std::max(incumbent[i], 1e-9) / std::max(candidate[i], 1e-9)));
    return result;
  }
};

/// The timing of one evaluation. A round takes one pair at every timed size; pairs alternate in who comes
/// first.
class TimingStage {
public:
  /// `incumbent` may be null: then the candidate's times are taken alone. `check_seconds` are those of the
  /// candidate's checked calls, by size.
  TimingStage(Judge& judge, PreparedTask& prepared, Contestant& candidate, Contestant* incumbent,
              std::span<const double> check_seconds)
      : judge_(judge), prepared_(prepared), candidate_(candidate), incumbent_(incumbent),
        candidate_seconds_(check_seconds.begin(), check_seconds.end()),
        incumbent_seconds_(prepared.layouts.size(), 0) {
    for (std::size_t size = 0; size < prepared.task.sizes.size(); ++size)
      if (prepared.task.sizes[size].weight > 0)
        times_.push_back({size, prepared.task.sizes[size].weight, 1, {}, {}});
    if (incumbent_ != nullptr && incumbent_ == prepared.reference.get())
      incumbent_seconds_ = prepared.seconds;
  }

  /// Times until the answer is clear or the time is over. A refusal if the candidate fails on the way.
  [[nodiscard]] std::optional<Refusal> run(Purpose purpose, Deadline until) {
    const auto start = std::chrono::steady_clock::now();
    choose_place();
    // Neither side is timed in what checks or earlier comparisons ran in; the warm-up calls both.
    load_anew();
    if (auto refusal = warm_up(until)) return refusal;
    const auto& options = judge_.options();
    const bool promote = promote_ = purpose == Purpose::promote;
    const double budget = promote ? options.promote_seconds : options.explore_seconds;
    const int most = promote ? options.promote_pairs : options.explore_pairs;
    StoppingRule rule;
    rule.confidence = options.confidence;
    rule.precision = options.precision;
    rule.stop_when_decided = !promote;
    if (!promote) rule.worthwhile = std::log1p(std::max(options.worthwhile_gain, 0.0));
    if (promote) rule.overwhelming_pairs = 0;
    const auto timing = std::chrono::steady_clock::now();
    kernel_seconds_ = 0;
    for (int rounds = 1; !times_.empty(); ++rounds) {
      if (rounds % rounds_in_one_place == 0) choose_place();
      if (rounds > 1)
        if (auto refusal = reload(until)) return refusal;
      if (auto refusal = round(until)) return refusal;
      const double spent = seconds_since(timing);
      const double beyond_kernels = spent - kernel_seconds_;
      const bool last =
          rounds >= most ||
          (over(rule, rounds, seconds_since(start), spent / rounds, budget) &&
           !(promote ? worth_an_answer(rounds, spent / rounds, rule.confidence, until)
                     : overwhelming_so_far(rounds, spent / rounds, rule, until))) ||
          (!promote && next_look_exceeds(rule.looks, rounds, beyond_kernels, beyond_kernels / rounds,
                                         options.explore_overhead_seconds));
      if (incumbent_ == nullptr) {
        if (rounds >= absolute_rounds || last) return std::nullopt;
        continue;
      }
      answer_ = assess(last ? last_samples() : samples(), rule, last);
      if (answer_.decision != TimingDecision::go_on) return std::nullopt;
    }
    return std::nullopt;
  }

  /// Whether there are pairs to compare.
  [[nodiscard]] bool compared() const noexcept {
    return incumbent_ != nullptr && !times_.empty() && !times_.front().incumbent.empty();
  }
  /// The decision and the interval of the weighted geometric mean, in logarithms.
  [[nodiscard]] const TimingAnswer& answer() const noexcept { return answer_; }
  /// The times so far, by size.
  [[nodiscard]] const std::vector<SizeTimes>& times() const noexcept { return times_; }
  /// Elements compared at a size while it was timed.
  [[nodiscard]] ComparisonTally tally(std::size_t size) const {
    const auto found = tallies_.find(size);
    return found == tallies_.end() ? ComparisonTally{} : found->second;
  }
  /// Whether both sides were timed in each other's memory, too.
  [[nodiscard]] bool has_exchanged_memory() const noexcept { return has_exchanged_memory_; }
  /// Why the incumbent could not be timed; empty if it could.
  [[nodiscard]] const std::string& incumbent_failure() const noexcept { return incumbent_failure_; }

private:
  /// A place that has become busy is left after this many rounds. Not after each, because a first call in a
  /// new place varies more: half the width of an interval was 4.5 % then, instead of 3 %.
  static constexpr int rounds_in_one_place = 7;
  /// A call so long that what the first one does besides cannot be told. Seconds.
  static constexpr double long_call = 20e-3;
  /// Programs in address spaces of their own exchange their memory after this many rounds, if a group of
  /// calls needs so many bytes.
  [[nodiscard]] std::size_t rounds_in_one_memory() const noexcept { return promote_ ? 7 : 4; }
  static constexpr double large_memory = 0x1p20;
  /// Fewer samples cannot have an interval of 95 %.
  static constexpr std::size_t fewest_samples = 6;
  /// Rounds without an incumbent.
  static constexpr int absolute_rounds = 5;

  void choose_place() { choose_place_of(judge_.backend()); }

  /// Both programs, at the same point.
  void load_anew() {
    judge_.reload(candidate_);
    if (incumbent_ != nullptr && incumbent_ != &candidate_) judge_.reload(*incumbent_);
  }

  /// Loads both programs anew and calls each once without a clock, at the size that is cheapest: a first call
  /// loads code, which a long call does not notice.
  [[nodiscard]] std::optional<Refusal> reload(Deadline until) {
    if (!judge_.can_reload() || std::chrono::steady_clock::now() > until) return std::nullopt;
    load_anew();
    const auto cheapest =
        std::min_element(times_.begin(), times_.end(), [this](const SizeTimes& a, const SizeTimes& b) {
          return known_seconds(a.size) < known_seconds(b.size);
        });
    if (known_seconds(cheapest->size) >= long_call) return std::nullopt;
    std::optional<Refusal> refusal;
    const auto attempt = [&] { refusal = call_untimed(cheapest->size); };
    if (!shortage_in(attempt)) return refusal;
    judge_.make_room(prepared_, {&candidate_, incumbent_});
    attempt();
    return refusal;
  }

  /// A call of each side on inputs that neither has seen. Nobody compares the results, but all that a call
  /// must not touch is looked at.
  [[nodiscard]] std::optional<Refusal> call_untimed(std::size_t size) {
    const auto inputs = prepared_.shared_inputs(prepared_.book.next_timed(candidate_.id, size));
    const double limit = judge_.launch_limit(prepared_, size);
    const auto call = [&](Contestant& contestant) {
      return judge_.call(prepared_, contestant, size, *inputs, judge_.noise(), limit, Refill::all,
                         BufferGuard::red_zones, inputs);
    };
    if (auto mine = call(candidate_); mine.refusal) return std::move(mine.refusal);
    if (incumbent_ == nullptr || incumbent_ == &candidate_) return std::nullopt;
    auto theirs = call(*incumbent_);
    if (theirs.refusal) {
      drop_incumbent(*theirs.refusal);
      return std::nullopt;
    }
    // Where programs share an address space, no results lie there while the candidate runs.
    if (!isolates_programs(judge_.backend()))
      forget_results(judge_.backend(), theirs.results.slot(), prepared_.layouts[size]);
    return std::nullopt;
  }

  [[nodiscard]] std::vector<double> combined() const {
    std::vector<std::vector<double>> logarithms;
    std::vector<double> weights;
    for (const auto& times : times_) {
      logarithms.push_back(times.logarithms());
      weights.push_back(times.weight);
    }
    return combine_rounds(logarithms, weights);
  }

  /// What looks judge by. A promotion judges means over both memories, where they are exchanged; to explore,
  /// rounds are too few for that, and their interval is as wide as memories differ.
  [[nodiscard]] std::vector<double> samples() const {
    const auto rounds = combined();
    return promote_ && exchanges_memory() ? over_both_places(rounds, rounds_in_one_memory()) : rounds;
  }
  /// The same for the last look, which has to judge by what there is.
  [[nodiscard]] std::vector<double> last_samples() const {
    auto means = samples();
    return means.size() < fewest_samples ? combined() : means;
  }

  /// Whether each pair so far is overwhelmingly faster, and the few that are enough for an answer then are
  /// not there yet: a start kernel of half a second spends the time on one or two pairs, and a kernel that is
  /// a hundred times as fast would be left undecided.
  [[nodiscard]] bool overwhelming_so_far(int rounds, double each, const StoppingRule& rule,
                                         Deadline until) const {
    if (incumbent_ == nullptr || rounds >= rule.overwhelming_pairs || !has_time_for(each, until))
      return false;
    const auto logarithms = combined();
    const double bound = std::log(rule.overwhelming_ratio);
    return std::all_of(logarithms.begin(), logarithms.end(), [bound](double one) { return one >= bound; });
  }

  /// A difference for whose confirmation more time is spent, in logarithms.
  static constexpr double worth_waiting = 0.05;

  /// The difference seen so far, in logarithms.
  [[nodiscard]] double difference() const { return std::abs(median(combined())); }

  /// Whether a round of `each` seconds, or one that takes twice as long, ends before the deadline.
  [[nodiscard]] static bool has_time_for(double each, Deadline until) {
    const std::chrono::duration<double> left = until - std::chrono::steady_clock::now();
    return 2 * each < left.count();
  }

  /// Whether there is a difference but too few pairs yet for an interval of that confidence, with time for
  /// one more of `each` seconds: however slow two kernels are, what is clear is not to be lost for want of a
  /// pair.
  [[nodiscard]] bool worth_an_answer(int rounds, double each, double confidence, Deadline until) const {
    const int fewest = 1 + static_cast<int>(std::ceil(-std::log2(1 - confidence)));
    return incumbent_ != nullptr && rounds < fewest && difference() >= worth_waiting &&
           has_time_for(each, until);
  }

  /// Whether it is time to end without a clear answer: at a look, if the next one lies beyond the budget, in
  /// a promotion beyond three budgets while there is a difference worth waiting for; before the first look,
  /// if the budget is spent on a difference too small to wait for, or three budgets on any.
  [[nodiscard]] bool over(const StoppingRule& rule, int rounds, double elapsed, double each,
                          double budget) const {
    const bool clear = incumbent_ != nullptr && difference() >= worth_waiting;
    // A gemm that was 1.4 times as fast was lost at [0.93, 1.77] after seven pairs on a busy machine.
    const double promised = promote_ && clear ? 3 * budget : budget;
    // Whatever there is of means over both memories is judged when the time is over.
    if (promote_ && exchanges_memory() && rounds > static_cast<int>(rounds_in_one_memory() + fewest_samples))
      return elapsed + each > promised;
    const auto& looks = rule.looks.pairs;
    if (!looks.empty() && rounds >= looks.front())
      return next_look_exceeds(rule.looks, rounds, elapsed, each, promised);
    return elapsed > (rounds >= 3 && !clear ? budget : 3 * budget);
  }

  /// Whether this is a look and the next one, with rounds of `each` seconds, comes after the budget; behind
  /// the last look, whether the budget is spent.
  [[nodiscard]] static bool next_look_exceeds(const TimingLooks& looks, int rounds, double elapsed,
                                              double each, double budget) {
    const auto& pairs = looks.pairs;
    const auto next = std::upper_bound(pairs.begin(), pairs.end(), rounds);
    if (next == pairs.end()) return elapsed > budget;
    const bool at_look = std::find(pairs.begin(), pairs.end(), rounds) != pairs.end();
    return at_look && elapsed + (*next - rounds) * each > budget;
  }

  /// Seconds of one call of the faster of the two, as far as is known; 0 if not known at all.
  [[nodiscard]] double known_seconds(std::size_t size) const {
    const double candidate = candidate_seconds_[size];
    return incumbent_ == nullptr ? candidate : std::min(candidate, incumbent_seconds_[size]);
  }

  /// A round that does not count where calls are short: it maps and touches all buffers, and tells how many
  /// calls make a group. Like all others on inputs of its own, and checked. Where each group runs in a
  /// process of its own, it is also the one in which many calls follow the first at every
  /// size.
  [[nodiscard]] std::optional<Refusal> warm_up(Deadline until) {
    for (auto& times : times_) {
      if (known_seconds(times.size) >= long_call) continue;
      times.group = std::min(calls_in_a_row(known_seconds(times.size)), largest_group(times.size));
      if (auto refusal = pair(times, true, until)) return refusal;
      const double fastest = std::min(
          times.candidate.back(), times.incumbent.empty() ? times.candidate.back() : times.incumbent.back());
      times.candidate.clear();
      times.incumbent.clear();
      times.group = group_size(times.size, fastest);
    }
    return std::nullopt;
  }

  /// Calls of a size of which some are checked in one process: what the first leaves there must not change
  /// the others.
  [[nodiscard]] static std::size_t calls_in_a_row(double seconds) {
    constexpr double all_seconds = 4e-3;
    return static_cast<std::size_t>(std::clamp(all_seconds / std::max(seconds, 1e-6), 3.0, 64.0));
  }

  [[nodiscard]] std::size_t group_size(std::size_t size, double seconds) const {
    const double wanted = std::ceil(judge_.options().shortest_timing / std::max(seconds, 1e-9));
    return static_cast<std::size_t>(std::clamp(wanted, 1.0, static_cast<double>(largest_group(size))));
  }

  /// As many calls as the options, and the memory for their buffers, allow in a group; at least one.
  [[nodiscard]] std::size_t largest_group(std::size_t size) const {
    const auto& options = judge_.options();
    const auto allowed = bytes_allowed(options.group_bytes, std::int64_t{16} << 20, judge_.backend(), 64);
    const double fitting = static_cast<double>(allowed) / std::max(bytes_of_a_call(size), 1.0);
    const auto buffers = std::max<std::size_t>(1, buffers_of_a_call(size) * times_.size());
    const double most = std::min({static_cast<double>(options.max_group_size), std::floor(fitting),
                                  std::floor(options.group_buffers / static_cast<double>(buffers))});
    return static_cast<std::size_t>(std::max(1.0, most));
  }

  /// Bytes of all buffers of one call, those of scratch lines included, of whoever needs more.
  [[nodiscard]] double bytes_of_a_call(std::size_t size) const {
    const double scratch = std::max(scratch_bytes(candidate_.plans[size]),
                                    incumbent_ == nullptr ? 0 : scratch_bytes(incumbent_->plans[size]));
    return prepared_.layouts[size].bytes() + scratch;
  }
  [[nodiscard]] std::size_t buffers_of_a_call(std::size_t size) const {
    const auto scratch = std::max(candidate_.plans[size].scratch.size(),
                                  incumbent_ == nullptr ? 0 : incumbent_->plans[size].scratch.size());
    return prepared_.layouts[size].buffers.size() + scratch;
  }

  [[nodiscard]] bool incumbent_needs_more(std::size_t size) const {
    return incumbent_ != nullptr &&
           scratch_bytes(incumbent_->plans[size]) > scratch_bytes(candidate_.plans[size]);
  }
  [[nodiscard]] static Refusal refusal_of_incumbent(const std::exception_ptr& shortage) {
    return refusal(Verdict::launch_error, refusal_rule::memory,
                   "there is no memory for it beside the candidate: " + reason_of(shortage).message,
                   "Compare with a kernel that needs less scratch memory");
  }

  [[nodiscard]] std::optional<Refusal> round(Deadline until) {
    ++rounds_;
    if (isolates_programs(judge_.backend())) {
      if (auto refusal = exchange_memory()) return refusal;
    } else if (rounds_ % 2 == 0) {
      exchange_buffers();
    }
    for (std::size_t i = 0; i < times_.size(); ++i)
      if (auto refusal = pair(times_[i], (rounds_ + i) % 2 == 0, until)) return refusal;
    return std::nullopt;
  }

  /// Where memory lies makes a difference of some percent to short kernels: every other two rounds, candidate
  /// and incumbent take each other's buffers.
  void exchange_buffers() {
    if (incumbent_ == nullptr || incumbent_ == &candidate_) return;
    for (const auto& times : times_)
      for (std::size_t i = 0; i < times.group; ++i) {
        auto* const mine = judge_.known_slot(candidate_, times.size, i);
        auto* const theirs = judge_.known_slot(*incumbent_, times.size, i);
        // One that has been freed is new when it is needed again.
        if (mine != nullptr && theirs != nullptr) swap_buffers(*mine, *theirs, prepared_.layouts[times.size]);
      }
    has_exchanged_memory_ = true;
  }

  /// Whether programs with address spaces of their own exchange memory. Where its pages lie makes large
  /// calls differ by up to 10 %, always in the same direction: what was allocated first has more of them next
  /// to each other (a chain of four launches on 64 MiB was 1.10x of itself in every one of twelve
  /// promotions).
  [[nodiscard]] bool exchanges_memory() const {
    return isolates_programs(judge_.backend()) && judge_.defences().fresh_process && incumbent_ != nullptr &&
           incumbent_ != &candidate_ &&
           std::any_of(times_.begin(), times_.end(), [&](const SizeTimes& times) {
             return bytes_of_a_call(times.size) * static_cast<double>(times.group) >= large_memory;
           });
  }

  /// For those: both processes end, so that nobody has the memory any more, and the next ones get each
  /// other's. A call without a clock finds what is touched first.
  [[nodiscard]] std::optional<Refusal> exchange_memory() {
    if (rounds_ == 1 || (rounds_ - 1) % rounds_in_one_memory() != 0 || !exchanges_memory())
      return std::nullopt;
    judge_.start_afresh(candidate_);
    judge_.start_afresh(*incumbent_);
    exchange_buffers();
    for (const auto& times : times_)
      if (auto refusal = call_untimed(times.size)) return refusal;
    return std::nullopt;
  }

  /// One group of calls of each side on the same fresh inputs; a smaller one from now on where memory is
  /// short. What was timed of a group that did not fit counts for nothing.
  [[nodiscard]] std::optional<Refusal> pair(SizeTimes& times, bool candidate_first, Deadline until) {
    const auto pairs = times.candidate.size();
    const auto tally = tallies_[times.size];
    for (bool has_room = false;; has_room = true) {
      std::optional<Refusal> refusal;
      const auto shortage = shortage_in([&] { refusal = try_pair(times, candidate_first, until); });
      if (!shortage) return refusal;
      if (has_room && times.group == 1) {
        if (!incumbent_needs_more(times.size)) std::rethrow_exception(shortage);
        drop_incumbent(refusal_of_incumbent(shortage));
      }
      times.group = std::max<std::size_t>(1, times.group / 2);
      times.candidate.resize(pairs);
      if (incumbent_ != nullptr) times.incumbent.resize(pairs);
      tallies_[times.size] = tally;
      judge_.make_room(prepared_, {&candidate_, incumbent_});
    }
  }

  [[nodiscard]] std::optional<Refusal> try_pair(SizeTimes& times, bool candidate_first, Deadline until) {
    judge_.heed_stop();
    if (std::chrono::steady_clock::now() > until)
      return refusal(Verdict::timeout, refusal_rule::evaluation_deadline,
                     "the time limit of the evaluation passed while the kernel was timed",
                     "Make the kernel faster; it is far slower than the kernel it started from");
    std::vector<CaseId> cases;
    GroupInputs inputs;
    wanted_.assign(times.group, nullptr);
    for (std::size_t i = 0; i < times.group; ++i) {
      cases.push_back(prepared_.book.next_timed(candidate_.id, times.size));
      inputs.push_back(prepared_.shared_inputs(cases.back()));
    }
    const auto poison = rounds_ % 2 == 0 ? Poison{} : judge_.noise_or_zeros();
    const double limit = judge_.launch_limit(prepared_, times.size) * static_cast<double>(times.group);
    std::optional<Refusal> refusal;
    if (candidate_first) refusal = time_candidate(times, inputs, poison, limit);
    if (incumbent_ != nullptr && !refusal) time_incumbent(times, cases, inputs, poison, limit);
    if (!candidate_first && !refusal) refusal = time_candidate(times, inputs, poison, limit);
    if (!refusal) refusal = check_candidate(times, cases, inputs, poison);
    return refusal;
  }

  /// One for each call of a group.
  using GroupInputs = std::vector<std::shared_ptr<const CaseInputs>>;

  [[nodiscard]] TimedRun time(Contestant& contestant, const SizeTimes& times, const GroupInputs& inputs,
                              const Poison& poison, double limit) {
    std::vector<LaunchPlan> group;
    for (std::size_t i = 0; i < times.group; ++i) {
      auto& slot = judge_.slot(prepared_, contestant, times.size, i);
      judge_.begin_loading(slot, prepared_.layouts[times.size], *inputs[i], poison, Refill::all, inputs[i]);
      group.push_back(slot.plan);
    }
    judge_.finish_loading();
    judge_.overwrite_residue(contestant);
    auto timed =
        judge_.backend().time(*contestant.program, group, judge_.options().cold, detail::deadline_in(limit));
    kernel_seconds_ += timed.seconds;
    return timed;
  }

  [[nodiscard]] std::optional<Refusal> time_candidate(SizeTimes& times, const GroupInputs& inputs,
                                                      const Poison& poison, double limit) {
    const auto timed = time(candidate_, times, inputs, poison, limit);
    if (!timed.status.finished()) return run_refusal(timed.status, prepared_.layouts[times.size].size, limit);
    times.candidate.push_back(timed.seconds / static_cast<double>(times.group));
    candidate_seconds_[times.size] = times.candidate.back();
    return judge_.changed_state(candidate_, prepared_.layouts[times.size]);
  }

  [[nodiscard]] std::optional<Refusal> check_candidate(const SizeTimes& times,
                                                       const std::vector<CaseId>& cases,
                                                       const GroupInputs& inputs, const Poison& poison) {
    std::vector<FinishedCall> calls;
    for (std::size_t i = 0; i < times.group; ++i) {
      if (wanted_[i] == nullptr && judge_.defences().timed_results)
        wanted_[i] = judge_.reference(prepared_, cases[i], *inputs[i]);
      calls.push_back({cases[i], &judge_.slot(prepared_, candidate_, times.size, i), inputs[i].get(),
                       inputs[i].get(), judge_.defences().timed_results ? wanted_[i].get() : nullptr});
    }
    auto refusal = judge_.look_at(prepared_, calls, poison, tallies_[times.size]);
    if (refusal && compares(*refusal)) refusal->diagnostics.front().message += " in a timed run";
    return refusal;
  }
  /// Whether a refusal comes from a comparison of results.
  [[nodiscard]] static bool compares(const Refusal& refusal) noexcept {
    return refusal.rule == refusal_rule::reference || refusal.rule == refusal_rule::precision;
  }

  void time_incumbent(SizeTimes& times, const std::vector<CaseId>& cases, const GroupInputs& inputs,
                      const Poison& poison, double limit) {
    const auto timed = time(*incumbent_, times, inputs, poison, limit);
    const auto& layout = prepared_.layouts[times.size];
    if (!timed.status.finished()) {
      // Throws if the device was lost.
      drop_incumbent(run_refusal(timed.status, layout.size, limit));
      return;
    }
    times.incumbent.push_back(timed.seconds / static_cast<double>(times.group));
    incumbent_seconds_[times.size] = times.incumbent.back();
    std::vector<FinishedCall> calls;
    const bool is_reference = incumbent_ == prepared_.reference.get();
    for (std::size_t i = 0; i < times.group; ++i) {
      // Of the reference itself, results may be known from an earlier candidate.
      wanted_[i] =
          is_reference ? prepared_.book.find(cases[i]) : judge_.reference(prepared_, cases[i], *inputs[i]);
      // The incumbent has been judged: its inputs are not looked at.
      calls.push_back({cases[i], &judge_.slot(prepared_, *incumbent_, times.size, i), inputs[i].get(),
                       nullptr, is_reference ? nullptr : wanted_[i].get()});
    }
    ComparisonTally unused;
    const auto problem = judge_.look_at(prepared_, calls, poison, unused);
    for (std::size_t i = 0; i < times.group; ++i) {
      if (!problem && wanted_[i] == nullptr) {
        CallResults results(judge_.backend(), *calls[i].slot, layout);
        wanted_[i] = judge_.keep_reference(prepared_, cases[i], results);
      }
      // Where programs share an address space, the answer must not lie there while the candidate runs.
      if (!isolates_programs(judge_.backend())) forget_results(judge_.backend(), *calls[i].slot, layout);
    }
    if (problem) drop_incumbent(*problem);
  }

  /// Goes on without an incumbent that fails: no fault of the candidate.
  void drop_incumbent(const Refusal& reason) {
    incumbent_failure_ = reason.diagnostics.front().message;
    incumbent_ = nullptr;
    for (auto& times : times_) times.incumbent.clear();
  }

  Judge& judge_;
  PreparedTask& prepared_;
  Contestant& candidate_;
  Contestant* incumbent_;
  std::vector<double> candidate_seconds_;
  std::vector<double> incumbent_seconds_;
  std::vector<SizeTimes> times_;
  std::map<std::size_t, ComparisonTally> tallies_;
  /// Of the pair under way, as far as they are known; the book may not have room for all.
  std::vector<std::shared_ptr<const ReferenceResult>> wanted_;
  TimingAnswer answer_;
  std::size_t rounds_ = 0;
  bool promote_ = false;
  bool has_exchanged_memory_ = false;
  /// Of all timed groups since the warm-up.
  double kernel_seconds_ = 0;
  std::string incumbent_failure_;
};

} // namespace mtmc
