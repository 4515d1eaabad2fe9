#pragma once
/// Definitions of loop/journal_writer.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/loop/journal.hpp>
#include <mtmc/loop/journal_file.hpp>
#include <mtmc/loop/journal_writer.hpp>
#include <mtmc/support/os_random.hpp>
#include <mtmc/version.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

[[nodiscard]] inline std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

[[nodiscard]] inline std::string host_name() {
  char text[256] = {};
  return ::gethostname(text, sizeof text - 1) == 0 ? text : "";
}

[[nodiscard]] inline std::string version_text() {
  return std::to_string(version_major) + '.' + std::to_string(version_minor) + '.' +
         std::to_string(version_patch);
}

[[nodiscard]] inline std::string random_run_id() {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(random_key_from_os()));
  return text;
}

MTMC_INLINE std::string differences(const SetUp& recorded, const SetUp& now) {
  const Json was = recorded, is = now;
  std::string text;
  for (const auto& item : is.items()) {
    const auto& old = was.contains(item.key()) ? was[item.key()] : Json();
    if (old == item.value()) continue;
    text += (text.empty() ? "" : "; ") + item.key() + " was " + dump(old) + " and is " + dump(item.value());
  }
  for (const auto& item : was.items())
    if (!is.contains(item.key()))
      text += (text.empty() ? "" : "; ") + item.key() + " was " + dump(item.value()) + " and is not set";
  return text;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE Journal::Journal(const std::string& folder, bool durable, bool resume) : folder_{folder} {
  file_ = std::make_unique<JournalFile>(journal_path(folder), durable);
  store_ = std::make_unique<KernelStore>(folder, durable);
  const auto content = file_->take_content();
  const auto lines = detail::complete_lines(content);
  if (!lines.empty() && !resume)
    throw Error(error_id::journal_other_run, "the folder already holds a run",
                "Choose another output folder, or resume the run", file_->path())
        .about("LoopOptions::resume");
  auto runs = detail::read_runs(lines, file_->path(), *store_);
  if (runs.size() > 1)
    throw Error(error_id::journal_other_run, "the journal holds several runs: it was merged",
                "Resume a run in its own folder", file_->path());
  std::size_t complete = 0;
  for (const auto line : lines) complete += line.size() + 1;
  file_->truncate(complete);
  if (runs.empty()) return;
  run_ = std::move(runs.front());
  resumed_ = true;
  live_ = false;
  forget_unanswered_drafts();
}

MTMC_INLINE void Journal::begin(RunRecord header) {
  header.version = detail::version_text();
  header.started = detail::utc_now();
  header.pid = ::getpid();
  header.host = detail::host_name();
  if (!resumed_) {
    run_.id = file_ ? detail::random_run_id() : std::string(16, '0');
    write("run", header);
    run_.header = std::move(header);
    return;
  }
  const auto refuse = [this](const std::string& why) {
    throw Error(error_id::journal_other_run, why,
                "Resume with the same task, device and options, or choose another output folder",
                file_->path());
  };
  const auto& was = run_.header;
  if (was.task.name != header.task.name)
    refuse("the journal belongs to the task " + was.task.name + ", not to " + header.task.name);
  if (task_digest(was.task) != task_digest(header.task))
    refuse("the journal belongs to another version of the task " + was.task.name +
           ": its kernel, arguments or sizes have changed");
  if (was.device.name != header.device.name || was.device.kind != header.device.kind ||
      was.device.arch != header.device.arch)
    refuse("the journal belongs to the device " + was.device.name + " (" + was.device.arch + "), not to " +
           header.device.name + " (" + header.device.arch + ')');
  if (const auto text = detail::differences(was.set_up, header.set_up); !text.empty())
    refuse("the run was started with another set-up: " + text);
  write("resume", ResumeRecord{header.version, header.started, header.pid, header.host, header.max_steps,
                               header.budget});
  if (const auto step = detail::first_unanswered_step(run_)) {
    rewind(*step, {});
    forget_unanswered_drafts();
  }
}

MTMC_INLINE double Journal::seconds() const {
  const std::lock_guard lock{mutex_};
  return clock();
}

MTMC_INLINE bool Journal::live() const {
  const std::lock_guard lock{mutex_};
  return live_;
}

MTMC_INLINE void Journal::go_live() {
  const std::lock_guard lock{mutex_};
  if (live_) return;
  live_ = true;
  earlier_ = run_.seconds;
  start_ = std::chrono::steady_clock::now();
}

MTMC_INLINE void Journal::close() noexcept {
  const std::lock_guard lock{mutex_};
  file_.reset();
  store_.reset();
}

MTMC_INLINE void Journal::save(const Kernel& kernel, const std::string& id) {
  if (store_) store_->save(kernel, id);
}

MTMC_INLINE std::optional<Structure> Journal::find_structure(const std::string& kernel) const {
  const std::lock_guard lock{mutex_};
  const auto found = run_.structures.find(kernel);
  if (found == run_.structures.end()) return std::nullopt;
  return found->second;
}

MTMC_INLINE Structure Journal::add(StructureRecord record) {
  record = write("structure", std::move(record));
  const std::lock_guard lock{mutex_};
  return run_.structures[record.kernel] = std::move(record.structure);
}

MTMC_INLINE std::optional<DecisionRecord> Journal::find_decision(int step, int parent_index,
                                                                 const std::string& parent,
                                                                 const std::vector<Action>* legal) {
  const std::lock_guard lock{mutex_};
  for (std::size_t i = run_.decisions.size(); i-- > 0;) {
    const auto& decision = run_.decisions[i];
    if (decision.step != step || decision.parent_index != parent_index) continue;
    if (decision.parent != parent || (legal != nullptr && decision.legal != *legal)) break;
    heard(run_.decision_times[i]);
    return decision;
  }
  return std::nullopt;
}

MTMC_INLINE bool Journal::has_decision(int step) const {
  const std::lock_guard lock{mutex_};
  for (const auto& decision : run_.decisions)
    if (decision.step == step) return true;
  return false;
}

MTMC_INLINE DecisionRecord Journal::add(DecisionRecord record, const std::vector<DecisionRecord>& earlier) {
  bool stale = false;
  {
    const std::lock_guard lock{mutex_};
    for (const auto& other : run_.decisions)
      stale = stale || other.step > record.step ||
              (other.step == record.step && other.parent_index >= record.parent_index);
  }
  if (stale) rewind(record.step, earlier);
  return append_decision(std::move(record));
}

MTMC_INLINE std::optional<Draft> Journal::find_draft(const DraftName& name) {
  const std::lock_guard lock{mutex_};
  const auto found = run_.drafts.find(name);
  if (found == run_.drafts.end()) return std::nullopt;
  if (const auto time = run_.draft_times.find(name); time != run_.draft_times.end()) heard(time->second);
  return found->second.draft;
}

MTMC_INLINE Draft Journal::add(DraftRecord record, const std::string& kernel_id) {
  record = write("draft", std::move(record), kernel_id);
  const std::lock_guard lock{mutex_};
  const DraftName name{record.request, record.sample, record.repair};
  auto draft = record.draft;
  if (detail::is_answer(draft)) run_.drafts[name] = std::move(record);
  return draft;
}

MTMC_INLINE std::optional<Evaluation> Journal::find_evaluation(const std::string& key) {
  const std::lock_guard lock{mutex_};
  const auto found = run_.evaluations.find(key);
  if (found == run_.evaluations.end()) return std::nullopt;
  if (const auto time = run_.evaluation_times.find(key); time != run_.evaluation_times.end())
    heard(time->second);
  return found->second.evaluation;
}

MTMC_INLINE Evaluation Journal::add(EvaluationRecord record) {
  record = write("evaluation", std::move(record));
  const std::lock_guard lock{mutex_};
  auto& place = run_.evaluations[record.key];
  place = std::move(record);
  return place.evaluation;
}

MTMC_INLINE void Journal::commit(const std::vector<DecisionRecord>& decisions,
                                 const std::vector<StepRecord>& steps, const RoundRecord& round) {
  if (!file_) {
    run_.steps.insert(run_.steps.end(), steps.begin(), steps.end());
    run_.rounds.push_back(round);
    return;
  }
  std::vector<std::string> told, now;
  for (const auto& record : run_.steps)
    if (record.step == round.step) told.push_back(detail::dump(record));
  for (const auto& record : run_.rounds)
    if (record.step == round.step) told.push_back(detail::dump(record));
  if (!told.empty()) {
    for (const auto& record : steps) now.push_back(detail::dump(record));
    now.push_back(detail::dump(round));
  }
  bool same = told.size() <= now.size();
  for (std::size_t i = 0; same && i < told.size(); ++i) same = told[i] == now[i];
  if (!same) {
    rewind(round.step, decisions);
    told.clear();
  }
  for (std::size_t i = told.size(); i < steps.size(); ++i) {
    write("step", steps[i]);
    run_.steps.push_back(steps[i]);
  }
  if (told.size() <= steps.size()) {
    write("round", round);
    run_.rounds.push_back(round);
  }
}

MTMC_INLINE void Journal::add(const FinishRecord& record) {
  write("finish", record);
  run_.finish = record;
}

MTMC_INLINE double Journal::clock() const {
  if (!live_) return heard_;
  return earlier_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

MTMC_INLINE void Journal::heard(double time) {
  if (time > heard_) heard_ = time;
}

MTMC_INLINE DecisionRecord Journal::append_decision(DecisionRecord record) {
  record = write("decision", std::move(record));
  const std::lock_guard lock{mutex_};
  run_.decisions.push_back(record);
  run_.decision_times.push_back(clock());
  return record;
}

MTMC_INLINE void Journal::forget_unanswered_drafts() {
  const auto used = detail::drafts_of_steps(run_);
  std::erase_if(run_.drafts, [&used](const auto& entry) {
    return !detail::is_answer(entry.second.draft) &&
           (!entry.second.draft.pending.empty() || !used.contains(entry.first));
  });
}

MTMC_INLINE void Journal::rewind(int step, const std::vector<DecisionRecord>& decisions) {
  write("rewind", RewindRecord{step});
  {
    const std::lock_guard lock{mutex_};
    detail::rewind(run_, step);
  }
  for (const auto& decision : decisions) append_decision(decision);
}

MTMC_INLINE void Journal::append(std::string_view kind, std::string_view body) {
  const std::lock_guard lock{mutex_};
  // No %f: the host's locale may write a decimal comma.
  const auto micros = static_cast<long long>(clock() * 1e6);
  char start[64];
  std::snprintf(start, sizeof start, "\",\"time\":%lld.%06lld,", micros / 1000000, micros % 1000000);
  std::string line;
  line.reserve(body.size() + 100);
  line.append("{\"record\":\"").append(kind).append("\",\"run\":\"").append(run_.id).append(start);
  file_->append(line.append(body.substr(1)));
}

} // namespace mtmc
