#pragma once
/// The journal of a run in progress: what the loop has asked and been answered, kept in memory and, with a
/// folder, on disk. Asked again, also by a later session, it answers itself.

#include <mtmc/loop/journal.hpp>
#include <mtmc/loop/journal_file.hpp>

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

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Names of the settings in which two set-ups differ, with both values; empty if they agree.
[[nodiscard]] std::string differences(const SetUp& recorded, const SetUp& now);

} // namespace detail

/// The journal the loop writes and looks answers up in. Functions may be called from several threads at once,
/// except `begin`.
class Journal {
public:
  /// In memory only: a cache for one run.
  Journal() = default;

  /// In `folder`, which is created if need be. With `resume`, a run found there is taken up; without, finding
  /// one is an error, so that nothing is ever overwritten.
  /// Throws `Error` (`mtmc.journal.001` to `003`).
  Journal(const std::string& folder, bool durable, bool resume);

  /// Writes the first record of a run, or of a session that takes one up; version, time, process and host are
  /// filled in. Throws `Error` (`mtmc.journal.003`) if the journal belongs to another task, device or set-up.
  void begin(RunRecord header);

  /// Whether the run was begun by an earlier session.
  [[nodiscard]] bool resumed() const noexcept { return resumed_; }
  /// The device as the first session of the run found it. To be called after `begin`.
  [[nodiscard]] const Device& device() const noexcept { return run_.header.device; }
  /// The run's folder; empty if it is in memory only.
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

  /// Wall-clock seconds of the run over all sessions. As long as a resumed run only hears again what it was
  /// told, its clock shows the time at which it was told.
  [[nodiscard]] double seconds() const;
  /// Whether something new was asked in this session.
  [[nodiscard]] bool live() const;
  /// To be called before something new is asked: from here on the clock runs.
  void go_live();

  /// Nothing is written to the disk any more, nothing fails any more: for a run that has to end because its
  /// journal cannot be written.
  void close() noexcept;

  /// Stores a kernel's text on the disk, before anything is done with it. `id` is the kernel's.
  void save(const Kernel& kernel, const std::string& id);

  /// The structure of a kernel, if the journal has it.
  [[nodiscard]] std::optional<Structure> find_structure(const std::string& kernel) const;
  /// Answers the structure as a later session will read it.
  Structure add(StructureRecord record);

  /// The policy's recorded answer, if the question is the same.
  [[nodiscard]] std::optional<DecisionRecord>
  find_decision(int step, int parent_index, const std::string& parent, const std::vector<Action>* legal);
  /// Whether there is any recorded answer for this step.
  [[nodiscard]] bool has_decision(int step) const;
  /// Adds a decision; `earlier` are those of the same step. Where the journal tells the step differently, it
  /// is rewound first. Answers the decision as a later session will read it.
  DecisionRecord add(DecisionRecord record, const std::vector<DecisionRecord>& earlier);

  /// A draft, if the journal has it.
  [[nodiscard]] std::optional<Draft> find_draft(const DraftName& name);
  /// Answers the draft as a later session will read it. `kernel_id` is the id of its kernel, which must have
  /// been stored; empty if it has none.
  Draft add(DraftRecord record, const std::string& kernel_id);

  /// An evaluation, if the journal has it.
  [[nodiscard]] std::optional<Evaluation> find_evaluation(const std::string& key);
  /// Answers the evaluation as a later session will read it.
  Evaluation add(EvaluationRecord record);

  /// Writes what a finished step came to, unless the journal says so already.
  void commit(const std::vector<DecisionRecord>& decisions, const std::vector<StepRecord>& steps,
              const RoundRecord& round);

  /// Writes how the run ended.
  void add(const FinishRecord& record);

private:
  [[nodiscard]] double clock() const;
  void heard(double time);

  DecisionRecord append_decision(DecisionRecord record);

  /// Broken endpoints and the like are answers only where a finished step stands on them.
  void forget_unanswered_drafts();

  void rewind(int step, const std::vector<DecisionRecord>& decisions);

  /// Appends a record and answers it as a later session will read it: with bytes that are no UTF-8 replaced
  /// and infinities as NaN. So a resumed run sees exactly what the first one saw.
  template <class Record>
  Record write(std::string_view kind, Record record, const std::string& kernel_id = {}) {
    if (!file_) return record;
    detail::Json body = record;
    detail::detach_texts(kind, body, *store_, kernel_id);
    bool exact = detail::is_finite(body);
    std::string text;
    try {
      text = body.dump();
    } catch (const detail::Json::type_error&) { // some text is not UTF-8
      text = detail::dump(body);
      exact = false;
    }
    append(kind, text);
    if (exact) return record;
    body = detail::parse_text(text, true);
    if constexpr (std::same_as<Record, RunRecord>) {
      return record; // the host's own task and device
    } else {
      if constexpr (std::same_as<Record, DraftRecord>) {
        auto& draft = body["draft"];
        if (record.draft.kernel) draft["kernel"]["source"] = record.draft.kernel->source;
        if (record.draft.kernel) draft["kernel"].erase("id");
        if (!record.draft.raw_text.empty()) draft["raw_text"] = record.draft.raw_text;
        draft.erase("raw_text_id");
      }
      return body.template get<Record>();
    }
  }

  void append(std::string_view kind, std::string_view body);

  std::string folder_;
  std::unique_ptr<JournalFile> file_;
  std::unique_ptr<KernelStore> store_;
  JournalRun run_;
  bool resumed_ = false;
  bool live_ = true;
  double earlier_ = 0;
  double heard_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/loop/journal_writer_inl.hpp>
#endif
