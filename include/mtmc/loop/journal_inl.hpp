#pragma once
/// Definitions of loop/journal.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/loop/journal.hpp>
#include <mtmc/loop/journal_records.hpp>
#include <mtmc/loop/kernel_store.hpp>
#include <mtmc/loop/run_folder.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string evaluation_key(EvaluationRole role, std::string_view kernel,
                                       std::string_view incumbent, std::string_view task,
                                       std::string_view device, std::string_view evaluator) {
  std::string text = "protocol " + std::to_string(protocol_version);
  for (const std::string_view part : {to_string(role), kernel, incumbent, task, device, evaluator})
    text.append("\n").append(part);
  return sha256_hex(text);
}

MTMC_INLINE std::string task_digest(const Task& task) {
  return sha256_hex(nlohmann::json(task).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

MTMC_INLINE std::string device_digest(const Device& device) {
  std::string text =
      device.name + '\n' + device.kind + '\n' + device.arch + '\n' + std::to_string(device.compute_units);
  for (const auto& [name, version] : device.software) text += '\n' + name + '=' + version;
  return sha256_hex(text);
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

MTMC_INLINE bool is_finite(const Json& value) {
  if (value.is_number_float()) return std::isfinite(value.get_ref<const double&>());
  if (!value.is_structured()) return true;
  for (const auto& part : value)
    if (!is_finite(part)) return false;
  return true;
}

MTMC_INLINE void detach_texts(std::string_view kind, Json& body, KernelStore& store,
                              std::string_view kernel_id) {
  for_each_kernel(kind, body, [&](Json& kernel) {
    if (kernel_id.empty())
      kernel["id"] = store.save(kernel.get<Kernel>());
    else
      kernel["id"] = std::string(kernel_id);
    kernel.erase("source");
  });
  if (kind == "draft" && body["draft"].contains("raw_text")) {
    body["draft"]["raw_text_id"] = store.save_text(body["draft"]["raw_text"].get_ref<const std::string&>());
    body["draft"].erase("raw_text");
  }
}

/// Puts them back.
inline void attach_texts(std::string_view kind, Json& body, const KernelStore& store) {
  for_each_kernel(kind, body, [&store](Json& kernel) {
    if (!kernel.contains("id") || !kernel.contains("language")) return;
    std::string id;
    read_value(kernel["id"], id, "id");
    kernel["source"] = store.load(id, kernel["language"].get<Language>()).source;
    kernel.erase("id");
  });
  if (kind == "draft" && body.contains("draft") && body["draft"].is_object() &&
      body["draft"].contains("raw_text_id")) {
    std::string id;
    read_value(body["draft"]["raw_text_id"], id, "raw_text_id");
    body["draft"]["raw_text"] = store.load_text(id);
    body["draft"].erase("raw_text_id");
  }
}

MTMC_INLINE void rewind(JournalRun& run, int step) {
  for (std::size_t i = run.decisions.size(); i-- > 0;) {
    if (run.decisions[i].step < step) continue;
    run.decisions.erase(run.decisions.begin() + static_cast<std::ptrdiff_t>(i));
    run.decision_times.erase(run.decision_times.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::erase_if(run.steps, [step](const StepRecord& record) { return record.step >= step; });
  std::erase_if(run.rounds, [step](const RoundRecord& record) { return record.step >= step; });
}

/// Takes one record, texts attached, into what is known of its run.
inline void apply_record(JournalRun& run, std::string_view kind, double time, const Json& body) {
  run.seconds = time > run.seconds ? time : run.seconds;
  if (kind == "run") {
    run.header = body.get<RunRecord>();
    run.kernels.emplace(run.header.task.kernel.id(), run.header.task.kernel);
  } else if (kind == "resume") {
    run.resumes.push_back(body.get<ResumeRecord>());
  } else if (kind == "structure") {
    auto record = body.get<StructureRecord>();
    run.structures[record.kernel] = std::move(record.structure);
  } else if (kind == "decision") {
    run.decisions.push_back(body.get<DecisionRecord>());
    run.decision_times.push_back(time);
  } else if (kind == "draft") {
    auto record = body.get<DraftRecord>();
    if (record.draft.kernel) run.kernels.emplace(record.draft.kernel->id(), *record.draft.kernel);
    const DraftName name{record.request, record.sample, record.repair};
    run.draft_times[name] = time;
    run.drafts[name] = std::move(record);
  } else if (kind == "evaluation") {
    auto record = body.get<EvaluationRecord>();
    run.evaluation_times[record.key] = time;
    run.evaluations[record.key] = std::move(record);
  } else if (kind == "step") {
    run.steps.push_back(body.get<StepRecord>());
  } else if (kind == "round") {
    run.rounds.push_back(body.get<RoundRecord>());
  } else if (kind == "rewind") {
    rewind(run, body.get<RewindRecord>().step);
  } else if (kind == "finish") {
    run.finish = body.get<FinishRecord>();
  }
}

MTMC_INLINE std::string line_place(const std::string& path, int number) {
  return path + ", line " + std::to_string(number);
}

MTMC_INLINE JournalLine parse_line(std::string_view text, const std::string& path, int number) {
  JournalLine line;
  line.body = parse_text(text, false);
  const auto refuse = [&](const std::string& why) {
    throw Error(error_id::journal_read, "this is not a record of a journal: " + why,
                "Remove the line, or start a new run in another folder", line_place(path, number));
  };
  if (!line.body.is_object()) refuse("it is not a JSON object");
  for (const auto& [name, target] : {std::pair{"record", &line.kind}, std::pair{"run", &line.run}}) {
    if (!line.body.contains(name) || !line.body[name].is_string())
      refuse(std::string("it has no text \"") + name + '"');
    *target = line.body[name].get<std::string>();
    line.body.erase(name);
  }
  if (line.body.contains("time")) {
    if (line.body["time"].is_number()) line.time = line.body["time"].get<double>();
    line.body.erase("time");
  }
  return line;
}

MTMC_INLINE std::vector<std::string_view> complete_lines(std::string_view content) {
  std::vector<std::string_view> lines;
  while (!content.empty()) {
    const auto end = content.find('\n');
    if (end == std::string_view::npos) break;
    lines.push_back(content.substr(0, end));
    content.remove_prefix(end + 1);
  }
  if (content.empty() && !lines.empty() && !Json::accept(lines.back())) lines.pop_back();
  return lines;
}

MTMC_INLINE std::vector<JournalRun> read_runs(const std::vector<std::string_view>& lines,
                                              const std::string& path, const KernelStore& store) {
  std::vector<JournalRun> runs;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const int number = static_cast<int>(i) + 1;
    auto line = parse_line(lines[i], path, number);
    const auto place = places.find(line.run);
    if (place == places.end()) {
      if (line.kind != "run")
        throw Error(error_id::journal_read, "the run " + line.run + " has no first record",
                    "Restore the start of the journal, or start a new run in another folder",
                    line_place(path, number));
      places.emplace(line.run, runs.size());
      runs.emplace_back().id = line.run;
      if (line.body.value("schema", Json()).is_number_integer() &&
          line.body["schema"].get<std::int64_t>() > journal_schema_version)
        throw Error(error_id::json_schema,
                    "the journal has schema " + line.body["schema"].dump() + ", this version reads up to " +
                        std::to_string(journal_schema_version),
                    "Use the version of mtmc that wrote it, or a newer one", path);
    }
    auto& run = place == places.end() ? runs.back() : runs[place->second];
    try {
      attach_texts(line.kind, line.body, store);
      apply_record(run, line.kind, line.time, line.body);
    } catch (const Error& error) {
      if (error.id() == error_id::journal_read) throw;
      throw Error(error_id::journal_read,
                  "the record \"" + line.kind + "\" is malformed: " + error.message() +
                      (error.place().empty() ? "" : ", " + error.place()),
                  "Correct or remove the line, or start a new run in another folder",
                  line_place(path, number));
    }
  }
  return runs;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::vector<JournalRun> read_journal(const std::string& path) {
  const auto content = detail::read_run_file(path);
  const auto slash = path.rfind('/');
  const KernelStore store{slash == std::string::npos ? "." : path.substr(0, slash)};
  return detail::read_runs(detail::complete_lines(content), path, store);
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE bool stops(const DecisionRecord& decision) {
  return decision.chosen.size() == 1 && decision.chosen.front() == Action::stop().key();
}

MTMC_INLINE Step step_of(const DecisionRecord& decision) {
  Step step;
  step.step = decision.step;
  step.parent_index = decision.parent_index;
  step.parent = decision.parent;
  for (const auto& action : decision.legal) step.legal_actions.push_back(action.key());
  step.distribution = decision.distribution;
  return step;
}

MTMC_INLINE bool is_answer(const Draft& draft) noexcept {
  if (!draft.pending.empty()) return false;
  switch (draft.failure) {
  case DraftFailure::endpoint:
  case DraftFailure::budget:
  case DraftFailure::cancelled:
  case DraftFailure::internal:
    return false;
  default:
    return true;
  }
}

MTMC_INLINE std::set<DraftName> drafts_of_steps(const JournalRun& run) {
  std::set<DraftName> names;
  for (const auto& step : run.steps) names.insert({step.draft, step.sample, step.repair});
  return names;
}

MTMC_INLINE std::optional<int> first_unanswered_step(const JournalRun& run) {
  if (!run.finish || run.finish->stop_reason != StopReason::failed || run.steps.empty()) return std::nullopt;
  const auto finished = drafts_of_steps(run);
  for (const auto& [name, record] : run.drafts)
    if (is_answer(record.draft) && !finished.contains(name)) return std::nullopt;
  int answered = -1;
  int last = -1;
  for (const auto& step : run.steps) {
    last = std::max(last, step.step);
    const auto draft = run.drafts.find({step.draft, step.sample, step.repair});
    if (draft != run.drafts.end() && is_answer(draft->second.draft)) answered = std::max(answered, step.step);
  }
  return last > answered ? std::optional(answered + 1) : std::nullopt;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::vector<Step> steps_of(const JournalRun& run) {
  std::vector<Step> steps;
  std::size_t next = 0;
  for (const auto& decision : run.decisions) {
    if (detail::stops(decision)) steps.push_back(detail::step_of(decision));
    // Step records stand in the order of their decisions.
    for (; next < run.steps.size() && run.steps[next].step == decision.step &&
           run.steps[next].parent_index == decision.parent_index;
         ++next) {
      const auto& record = run.steps[next];
      auto step = detail::step_of(decision);
      step.sample = record.sample;
      step.repair = record.repair;
      for (const auto& action : decision.legal)
        if (action.key() == record.action) step.action = action;
      if (const auto draft = run.drafts.find({record.draft, record.sample, record.repair});
          draft != run.drafts.end())
        step.draft = draft->second.draft;
      if (const auto evaluation = run.evaluations.find(record.evaluation);
          evaluation != run.evaluations.end())
        step.evaluation = evaluation->second.evaluation;
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

MTMC_INLINE void add_round(Histories& histories, const RoundRecord& round) {
  std::map<std::string, std::vector<HistoryEntry>> news;
  for (const auto& outcome : round.outcomes) {
    news[outcome.parent].push_back(outcome.entry);
    news[outcome.parent].back().kept = false;
  }
  for (const auto& place : round.beam) {
    if (histories.contains(place.kernel)) continue;
    auto history = histories[place.parent];
    for (const auto& outcome : round.outcomes) {
      if (outcome.parent != place.parent) continue;
      history.push_back(outcome.entry);
      history.back().kept = outcome.kernel == place.kernel;
    }
    histories[place.kernel] = std::move(history);
  }
  for (const auto& [kernel, entries] : news)
    histories[kernel].insert(histories[kernel].end(), entries.begin(), entries.end());
}

MTMC_INLINE Observation observation_of(const JournalRun& run, const DecisionRecord& decision) {
  const auto start = run.header.task.kernel.id();
  Histories histories{{start, {}}};
  std::map<std::string, std::string> evaluations;
  for (const auto& [key, record] : run.evaluations)
    if (record.role == EvaluationRole::start) evaluations[start] = key;
  for (const auto& round : run.rounds) {
    if (round.step >= decision.step) break;
    add_round(histories, round);
    for (const auto& place : round.beam) evaluations[place.kernel] = place.evaluation;
  }
  Observation seen;
  seen.task = run.header.task;
  seen.device = run.header.device;
  if (const auto kernel = run.kernels.find(decision.parent); kernel != run.kernels.end())
    seen.kernel = kernel->second;
  if (const auto structure = run.structures.find(decision.parent); structure != run.structures.end())
    seen.structure = structure->second;
  if (const auto evaluation = run.evaluations.find(evaluations[decision.parent]);
      evaluation != run.evaluations.end())
    seen.evaluation = evaluation->second.evaluation;
  seen.history = histories[decision.parent];
  seen.step = decision.step;
  seen.step_limit = decision.step_limit;
  return seen;
}

} // namespace mtmc
