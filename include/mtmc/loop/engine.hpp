#pragma once
/// The search itself (paper: macro thinking and micro coding in turns), for parts without types.

#include <mtmc/loop/beam.hpp>
#include <mtmc/loop/part_calls.hpp>
#include <mtmc/loop/result.hpp>
#include <mtmc/loop/search_state.hpp>
#include <mtmc/support/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// One run on one task.
class LoopEngine {
public:
  LoopEngine(LoopParts& parts, const LoopOptions& options, const Task& task, std::stop_token host)
      : parts_{parts}, options_{options}, task_{task}, calls_{parts, options, task, std::move(host)} {
    result_.task = task;
    result_.best = task.kernel;
  }

  /// Throws `Error` for what goes wrong before the first step.
  [[nodiscard]] Result run() {
    std::optional<StopReason> reason;
    try {
      reason = begin();
    } catch (const Error& error) {
      calls_.notify(options_.observer.failed, error);
      throw;
    }
    try {
      if (!reason) reason = search();
    } catch (const Error& error) {
      fail(error);
    } catch (const std::exception& error) {
      fail(Error(error_id::loop_part, std::string("the loop failed: ") + error.what(),
                 "Report this together with the journal"));
    }
    close(reason.value_or(StopReason::failed));
    return std::move(result_);
  }

private:
  // ---- the start

  /// A reason if there is nothing to search.
  [[nodiscard]] std::optional<StopReason> begin() {
    calls_.notify(options_.observer.preparing, RunPreparing{task_, parts_.evaluator.start_seconds()});
    progress(Phase::preparing, 0, 1);
    calls_.begin();
    result_.device = calls_.device();
    result_.folder = calls_.journal().folder();
    auto node = std::make_unique<SearchNode>();
    node->kernel = task_.kernel;
    node->id = task_.kernel.id();
    best_ = start_ = node.get();
    beam_ = {start_};
    histories_[node->id];
    nodes_.emplace(node->id, std::move(node));

    auto judged = calls_.judge(EvaluationRole::start, start_->kernel, start_->id, nullptr, {});
    if (!judged) return calls_.cut_reason();
    if (!judged->evaluation.correct()) {
      const auto why = first_message(judged->evaluation);
      throw Error(error_id::task_start_kernel,
                  "the start kernel does not pass: " + std::string(to_string(judged->evaluation.verdict)) +
                      (why.empty() ? "" : ": " + why),
                  "Correct the task's kernel, sizes or reference", "task " + task_.name);
    }
    start_->evaluation = std::move(judged->evaluation);
    start_->evaluation_key = std::move(judged->key);
    result_.start = start_->evaluation;
    look_at(*start_);
    progress(Phase::preparing, 1, 1);
    calls_.notify(options_.observer.run_started,
                  RunStarted{task_, calls_.device(), start_->evaluation, options_.max_steps, options_.budget,
                             result_.folder, calls_.journal().resumed()});
    return std::nullopt;
  }

  /// Finds out what can be done with a kernel.
  void look_at(SearchNode& node) {
    node.structure = calls_.structure(node.kernel, node.id);
    CodingRequest about;
    about.seen.task = task_;
    about.seen.device = calls_.device();
    about.seen.kernel = node.kernel;
    node.legal = feasible_actions_of(parts_.coder, about,
                                     offered_actions(options_.action_space, node.structure, calls_.device(),
                                                     parts_.coder, node.kernel.language));
  }

  // ---- the steps

  [[nodiscard]] StopReason search() {
    for (;; ++step_) {
      if (calls_.cancelled()) return StopReason::cancelled;
      if (const auto reason = exhausted(options_.max_steps, options_.budget, spent())) return *reason;
      if (!calls_.journal().has_decision(step_) && !calls_.go_live()) return calls_.cut_reason();
      if (const auto reason = take_step()) return *reason;
    }
  }

  [[nodiscard]] Spent spent() {
    return {step_, calls_.journal().seconds(), result_.usage.tokens(), result_.usage.cost, idle_steps_};
  }

  /// A reason if the search ends here.
  [[nodiscard]] std::optional<StopReason> take_step() {
    const auto standing = standing_nodes();
    if (standing.empty()) return StopReason::no_legal_action;
    decisions_.clear();
    chains_.clear();
    for (std::size_t i = 0; i < standing.size(); ++i) {
      if (decide(*standing[i], static_cast<int>(i))) continue;
      add_steps(result_.trajectory, decisions_, chains_, false);
      return calls_.cut_reason();
    }
    if (chains_.empty()) {
      add_steps(result_.trajectory, decisions_, chains_, false);
      return StopReason::stop_action;
    }
    for (int wave = 0; wave <= options_.repairs; ++wave) {
      std::vector<SearchChain*> open;
      for (auto& chain : chains_)
        if (!chain.cut && (wave == 0 || chain.needs_repair())) open.push_back(&chain);
      if (open.empty() || (wave > 0 && !may_repair())) break;
      draft_all(open, wave);
      for (const auto* chain : open)
        if (!chain->cut && !chain->last()->draft.pending.empty()) return StopReason::waiting_for_answers;
      judge_all(open);
    }
    return finish_step(standing);
  }

  /// The kernels of the beam from which something can still be tried. If there is none, the search goes back
  /// to the best kernel, which it may have left for a neutral step, or else to the fastest of those that it
  /// came by.
  [[nodiscard]] std::vector<SearchNode*> standing_nodes() const {
    std::vector<SearchNode*> standing;
    for (auto* node : beam_)
      if (can_go_on(*node)) standing.push_back(node);
    if (!standing.empty()) return standing;
    auto* back = can_go_on(*best_) ? best_ : nullptr;
    for (const auto& [id, node] : nodes_)
      if (can_go_on(*node) &&
          (back == nullptr || (back != best_ && node->speed_up.value > back->speed_up.value)))
        back = node.get();
    if (back != nullptr) standing.push_back(back);
    return standing;
  }

  /// A policy with actions of its own may have some where the action space has none left.
  [[nodiscard]] bool can_go_on(const SearchNode& node) const {
    return node.can_go_on() || (parts_.policy.proposes_actions() && !node.stopped);
  }

  [[nodiscard]] Observation observe(const SearchNode& node) const {
    Observation seen;
    seen.task = task_;
    seen.device = calls_.device();
    seen.kernel = node.kernel;
    seen.structure = node.structure;
    seen.evaluation = node.evaluation;
    seen.history = histories_.at(node.id);
    seen.step = step_;
    seen.step_limit = options_.max_steps;
    return seen;
  }

  /// Asks the policy what to do with a kernel and sets up the drafts. False if it was cut short.
  [[nodiscard]] bool decide(SearchNode& node, int parent_index) {
    auto legal = node.legal;
    const auto seen = observe(node);
    const bool proposes = parts_.policy.proposes_actions();
    auto decision = calls_.journal().find_decision(step_, parent_index, node.id, proposes ? nullptr : &legal);
    if (decision) legal = decision->legal;
    if (!decision) {
      progress(Phase::deciding, 0, 1);
      const auto asked = std::chrono::steady_clock::now();
      if (proposes) {
        auto proposed = calls_.proposals(seen, legal);
        if (!proposed) return false;
        legal = std::move(*proposed);
      }
      auto distribution = calls_.distribution(seen, legal);
      if (!distribution) return false;
      // A stream of its own for every choice: what one draws never moves another.
      PhiloxEngine random{options_.seed,
                          static_cast<std::uint64_t>(step_) << 32 | static_cast<std::uint32_t>(parent_index)};
      const auto choice = choose_actions(legal, *distribution, options_.beam, options_.selection,
                                         options_.temperature, random);
      DecisionRecord record;
      record.step = step_;
      record.step_limit = options_.max_steps;
      record.parent_index = parent_index;
      record.parent = node.id;
      record.legal = legal;
      record.distribution = std::move(*distribution);
      if (choice.stop) record.chosen.push_back(Action::stop().key());
      for (const auto index : choice.actions) record.chosen.push_back(legal[index].key());
      record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count();
      decision = calls_.journal().add(std::move(record), decisions_);
    }
    std::vector<Action> chosen;
    for (const auto& key : decision->chosen)
      for (const auto& action : legal)
        if (action.key() == key && action.kind != Action::Kind::stop) chosen.push_back(action);
    node.stopped = chosen.empty();
    result_.usage += decision->distribution.usage;
    calls_.notify(options_.observer.step_started,
                  StepStarted{step_, parent_index, seen, legal, decision->distribution, chosen});
    decisions_.push_back(std::move(*decision));
    for (const auto& action : chosen) {
      const auto* type = options_.action_space.find(action.optimization);
      int& used = node.samples[action.key()];
      const int samples = samples_of(options_, type);
      for (int sample = 0; sample < samples; ++sample) {
        auto& chain = chains_.emplace_back();
        chain.parent = &node;
        chain.parent_index = parent_index;
        chain.action = action;
        chain.request.seen = seen;
        chain.request.action = action;
        if (type != nullptr) {
          chain.request.intent = type->intent;
          chain.request.principle =
              type->principle_on(seen.structure.find_region(action.region), seen.structure);
        }
        chain.request.sample = used++;
      }
    }
    return true;
  }

  [[nodiscard]] bool may_repair() {
    auto now = spent();
    now.steps = now.idle_steps = 0; // those limit steps only
    return !exhausted(1, options_.budget, now);
  }

  [[nodiscard]] int concurrency(int limit) const {
    constexpr int default_threads = 64;
    return std::max(1, std::min(limit, options_.threads > 0 ? options_.threads : default_threads));
  }

  void draft_all(const std::vector<SearchChain*>& open, int wave) {
    std::vector<std::optional<SearchTry>> answers(open.size());
    const int total = static_cast<int>(open.size());
    std::atomic<int> done{0};
    progress(Phase::drafting, 0, total);
    for_each_parallel(open.size(), concurrency(parts_.coder.concurrency_limit()), [&](std::size_t i) {
      auto& chain = *open[i];
      if (wave > 0) chain.request.repair = repair_context(chain);
      const DraftName name{chain.request.id(), chain.request.sample, wave};
      auto drafted = calls_.draft(chain.request, name, chain.parent->id);
      if (!drafted) return;
      calls_.notify(options_.observer.draft_ready,
                    DraftReady{step_, chain.action, name.sample, wave, drafted->draft, drafted->replayed});
      answers[i] = SearchTry{name, std::move(drafted->draft), std::move(drafted->kernel_id), std::nullopt};
      progress(Phase::drafting, ++done, total);
    });
    for (std::size_t i = 0; i < open.size(); ++i) {
      open[i]->cut = !answers[i];
      if (!answers[i]) continue;
      result_.usage += answers[i]->draft.usage;
      open[i]->tries.push_back(std::move(*answers[i]));
    }
  }

  /// Judges the newest drafts, each text once.
  void judge_all(const std::vector<SearchChain*>& open) {
    std::vector<std::vector<SearchChain*>> groups;
    std::map<std::string, std::size_t> places;
    std::vector<std::string> ids;
    for (auto* chain : open) {
      if (chain->cut || !chain->last()->draft.kernel) continue;
      const auto& id = chain->last()->kernel_id;
      const auto [place, fresh] = places.emplace(id, groups.size());
      if (fresh) {
        groups.emplace_back();
        ids.push_back(id);
      }
      groups[place->second].push_back(chain);
    }
    if (groups.empty()) return;
    std::vector<std::optional<Judged>> answers(groups.size());
    const int total = static_cast<int>(groups.size());
    std::atomic<int> done{0};
    progress(Phase::evaluating, 0, total);
    for_each_parallel(groups.size(), concurrency(parts_.evaluator.concurrency_limit()), [&](std::size_t i) {
      const auto& kernel = *groups[i].front()->last()->draft.kernel;
      // A failure does not depend on what the candidate was to be compared with, and nothing comes of a
      // kernel that the search has been at.
      if (const auto failed = failed_.find(ids[i]); failed != failed_.end())
        answers[i] = failed->second;
      else if (const auto node = nodes_.find(ids[i]); node != nodes_.end())
        answers[i] = Judged{node->second->evaluation, node->second->evaluation_key, true};
      else
        answers[i] = calls_.judge(EvaluationRole::candidate, kernel, ids[i], &best_->kernel, best_->id);
      if (!answers[i]) return;
      for (const auto* chain : groups[i])
        calls_.notify(options_.observer.evaluated,
                      CandidateEvaluated{step_, chain->action, chain->request.sample,
                                         chain->last()->name.repair, kernel, answers[i]->evaluation,
                                         answers[i]->replayed || chain != groups[i].front()});
      progress(Phase::evaluating, ++done, total);
    });
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (auto* chain : groups[i]) {
        chain->cut = !answers[i];
        chain->tries.back().judged = answers[i];
      }
      if (answers[i] && !answers[i]->evaluation.correct()) remember_failure(ids[i], *answers[i]);
    }
  }

  void remember_failure(const std::string& id, Judged judged) {
    judged.replayed = true;
    failed_.insert_or_assign(id, std::move(judged));
  }

  // ---- the end of a step

  [[nodiscard]] std::optional<StopReason> finish_step(const std::vector<SearchNode*>& standing) {
    const bool cut =
        std::any_of(chains_.begin(), chains_.end(), [](const SearchChain& chain) { return chain.cut; });
    auto children =
        cut && calls_.cancelled() ? std::vector<SearchChild>{} : correct_children(chains_, nodes_, *best_);
    RoundRecord round;
    round.step = step_;
    const double best_before = best_->speed_up.value;
    auto promoted = promote(children, round);
    if (calls_.cancelled() && (cut || !promoted)) {
      add_steps(result_.trajectory, decisions_, chains_, false);
      return StopReason::cancelled;
    }
    accept(children, options_.minimum_gain);
    auto beam = next_beam(children, standing, static_cast<std::size_t>(options_.beam));
    const auto outcomes = outcomes_of(chains_, children, step_);
    for (const auto& outcome : outcomes) {
      auto& parent = *outcome.chain->parent;
      result_.history.push_back(outcome.record.entry);
      round.outcomes.push_back(outcome.record);
      if (options_.mask_failed_actions && is_settled(chains_, *outcome.chain))
        parent.mask(outcome.chain->action);
    }
    move_to(beam);
    for (const auto* node : beam_)
      round.beam.push_back({node->id, node->parent, node->evaluation_key, node->speed_up, {}});
    round.best = best_->id;
    add_round(histories_, round);
    if (cut) {
      add_steps(result_.trajectory, decisions_, chains_, false);
      return calls_.cut_reason();
    }
    for (auto& account : accounts_of(outcomes, best_before, best_->speed_up.value))
      result_.account.push_back(std::move(account));
    calls_.journal().commit(decisions_, step_records(chains_, step_), round);
    add_steps(result_.trajectory, decisions_, chains_, true);
    result_.steps = step_ + 1;
    idle_steps_ = *promoted ? 0 : idle_steps_ + 1;
    report(outcomes);
    for (auto* node : beam_)
      if (node->legal.empty()) look_at(*node);
    const bool no_money = std::all_of(chains_.begin(), chains_.end(), [](const SearchChain& chain) {
      return chain.last()->draft.failure == DraftFailure::budget;
    });
    return no_money ? std::optional(StopReason::cost) : std::nullopt;
  }

  /// Gives candidates that were faster than the best a second look, the fastest first, until one is
  /// confirmed. Whether one was; nothing if the host cancelled.
  [[nodiscard]] std::optional<bool> promote(std::vector<SearchChild>& children, RoundRecord& round) {
    const auto ordered = hopeful(children, options_.minimum_gain);
    int done = 0;
    for (auto* const candidate : ordered) {
      auto& child = *candidate;
      progress(Phase::promoting, done++, static_cast<int>(ordered.size()));
      auto judged = calls_.judge(EvaluationRole::promotion, *child.chain->last()->draft.kernel, child.id,
                                 &best_->kernel, best_->id);
      if (!judged) return std::nullopt;
      child.evaluation = judged->evaluation;
      child.evaluation_key = judged->key;
      child.refuted = !judged->evaluation.correct();
      if (child.refuted) remember_failure(child.id, *judged);
      weigh(child, *best_);
      child.new_best = child.gain.faster() && child.gain.ratio.value > 1;
      round.promotions.push_back({child.id, child.evaluation_key, child.new_best, {}});
      if (child.new_best) return true;
    }
    return false;
  }

  /// Stands on the kernels of the new beam.
  void move_to(const std::vector<BeamPlace>& beam) {
    beam_.clear();
    for (const auto& place : beam) {
      if (place.node != nullptr) {
        beam_.push_back(place.node);
        continue;
      }
      const auto& child = *place.child;
      const auto& parent = *child.chain->parent;
      auto node = std::make_unique<SearchNode>();
      node->kernel = *child.chain->last()->draft.kernel;
      node->id = child.id;
      node->parent = parent.id;
      node->evaluation = child.evaluation;
      node->evaluation_key = child.evaluation_key;
      node->speed_up = child.speed_up;
      node->anchor = child.proven ? child.speed_up.value : parent.anchor;
      if (child.new_best) {
        best_ = node.get();
        promoted_.push_back(best_);
      }
      beam_.push_back(node.get());
      nodes_.emplace(child.id, std::move(node));
    }
  }

  void report(const std::vector<SearchOutcome>& outcomes) {
    if (!options_.observer.step_finished) return;
    std::vector<StepOutcome> shown;
    for (const auto& outcome : outcomes)
      shown.push_back({outcome.chain->action, outcome.record.parent_index, outcome.record.entry,
                       outcome.evaluation ? &*outcome.evaluation : nullptr, outcome.new_best, outcome.drafts,
                       outcome.usage});
    calls_.notify(options_.observer.step_finished,
                  StepFinished{step_, options_.max_steps, shown, best_->speed_up, result_.usage,
                               calls_.journal().seconds()});
  }

  void progress(Phase phase, int done, int total) {
    calls_.notify(options_.observer.progress, Progress{phase, done, total, step_, options_.max_steps});
  }

  // ---- the end

  void fail(const Error& error) {
    if (!result_.error) result_.error = error;
    if (error.id() == error_id::journal_write) calls_.journal().close();
  }

  void close(StopReason reason) {
    result_.evaluation = start_->evaluation;
    if (!promoted_.empty()) {
      const auto& best = *promoted_.back();
      result_.best = best.kernel;
      result_.speed_up = best.speed_up;
      result_.evaluation = best.evaluation;
      const bool goes_on = reason == StopReason::cancelled || reason == StopReason::waiting_for_answers;
      try {
        if (!goes_on && !calls_.evaluator_failed() && !compare_with_start()) reason = StopReason::cancelled;
      } catch (const Error& error) {
        fail(error);
      }
    }
    FinishRecord record;
    record.steps = result_.steps;
    record.best = result_.best.id();
    record.speed_up = result_.speed_up;
    record.measured = result_.measured;
    record.usage = result_.usage;
    record.seconds = result_.seconds = calls_.journal().seconds();
    record.stop_reason = result_.error ? StopReason::failed : reason;
    if (result_.error) {
      record.error_id = result_.error->id();
      record.error = result_.error->what();
    }
    try {
      calls_.journal().add(record);
    } catch (const Error& error) {
      fail(error);
    }
    result_.stop_reason = result_.error ? StopReason::failed : reason;
    calls_.notify(options_.observer.finished, result_);
  }

  /// Compares the best with the start kernel once more; if it does not hold its ground, the one before it,
  /// and so on. False if the host cancelled.
  [[nodiscard]] bool compare_with_start() {
    for (auto node = promoted_.rbegin(); node != promoted_.rend(); ++node) {
      const auto& best = **node;
      progress(Phase::closing, 0, 1);
      auto judged = calls_.judge(EvaluationRole::closing, best.kernel, best.id, &start_->kernel, start_->id);
      if (!judged) return false;
      const auto gain = gain_of(judged->evaluation, start_->evaluation.seconds);
      if (!gain.faster()) continue;
      result_.best = best.kernel;
      result_.speed_up = gain.ratio;
      result_.measured = true;
      result_.evaluation = std::move(judged->evaluation);
      return true;
    }
    result_.best = start_->kernel;
    result_.speed_up = {};
    result_.evaluation = start_->evaluation;
    return true;
  }

  LoopParts& parts_;
  const LoopOptions& options_;
  const Task& task_;
  PartCalls calls_;
  Result result_;
  SearchNodes nodes_;
  Histories histories_;
  SearchNode* start_ = nullptr;
  SearchNode* best_ = nullptr;
  std::vector<SearchNode*> beam_;
  /// All that became the best, in order.
  std::vector<SearchNode*> promoted_;
  /// Candidates that failed, by the kernel's id.
  std::map<std::string, Judged> failed_;
  int step_ = 0;
  int idle_steps_ = 0;
  /// Of the present step.
  std::vector<DecisionRecord> decisions_;
  std::vector<SearchChain> chains_;
};

} // namespace mtmc::detail
