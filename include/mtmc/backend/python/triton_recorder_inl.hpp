#pragma once
/// Definitions of backend/python/triton_recorder.hpp.

#include <mtmc/backend/python/check_recorded_plan.hpp>
#include <mtmc/backend/python/python_failure.hpp>
#include <mtmc/backend/python/python_process.hpp>
#include <mtmc/backend/python/recorded_plan_json.hpp>
#include <mtmc/backend/python/triton_recorder.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/support/parallel.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::span<const std::pair<std::string_view, std::string_view>> known_triton_versions() noexcept {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> versions{
      {{"3.5", "2.9"}, {"3.6", "2.11"}, {"3.9", "2.15"}}};
  return versions;
}

namespace detail {

MTMC_INLINE void demand_known_triton(const std::string& version) {
  std::string known;
  for (const auto& [triton, torch] : known_triton_versions()) {
    if (version == triton || version.starts_with(std::string(triton) + '.')) return;
    known += (known.empty() ? "" : ", ") + std::string(triton) + " (torch " + std::string(torch) + ')';
  }
  throw Error(error_id::backend_compiler,
              "Triton " + version + " launches kernels in a way that is not known here",
              "Install one of these: " + known)
      .about("PythonOptions::interpreter");
}

[[nodiscard]] inline std::string question_of(const RecordingRequest& request) {
  using enum RecordingRequest::Role;
  const auto* const name = request.role == problem     ? "Model"
                           : request.role == candidate ? "ModelNew"
                           : request.role == script    ? "result_gold"
                                                       : "run";
  Json question{{"role", std::string(to_string(request.role))},
                {"text", request.text},
                {"class", request.class_name.empty() ? name : request.class_name},
                {"names", request.names},
                {"choices", request.choices}};
  write_value(question["constructor"], request.constructor);
  write_value(question["inputs"], request.inputs);
  write_value(question["target"], request.target);
  return question.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// What is known without the recording does not come from it, and texts for people are fit for a screen.
inline void set_straight(RecordedPlan& plan, const RecordingRequest& request,
                         const std::map<std::string, std::string>& versions) {
  const auto version = [&](const char* name) {
    const auto found = versions.find(name);
    return found == versions.end() ? std::string() : found->second;
  };
  plan.torch = version("torch");
  plan.triton = version("triton");
  plan.target = request.target;
  plan.unknown = {};
  if (request.role == RecordingRequest::Role::candidate) plan.constructor = request.constructor;
  constexpr std::size_t longest_choice = 200;
  for (auto& choice : plan.choices) choice.text = harmless(choice.text, longest_choice);
}

[[nodiscard]] inline bool are_called_alike(const RecordedPlan& plan, std::span<const RecordedValue> given,
                                           std::span<const RecordedValue> asked, std::set<int>& storages);

/// Whether an input is the one that was asked for. A tensor lies at the start of a memory of its own, which
/// ends with it.
[[nodiscard]] inline bool is_input_alike(const RecordedPlan& plan, const RecordedValue& given,
                                         const RecordedValue& asked, std::set<int>& storages) {
  if (given.kind != asked.kind) return false;
  if (given.kind == RecordedValue::Kind::list)
    return are_called_alike(plan, given.list, asked.list, storages);
  if (given.kind == RecordedValue::Kind::real && std::isnan(given.real) && std::isnan(asked.real))
    return true;
  if (given.kind != RecordedValue::Kind::tensor) return given == asked;
  const auto& view = given.tensor;
  const auto bytes = recorded_extent_bytes(view);
  return view.sizes == asked.tensor.sizes && view.strides == asked.tensor.strides &&
         view.type == asked.tensor.type && view.offset == 0 && storages.insert(view.storage).second &&
         bytes && plan.storages[static_cast<std::size_t>(view.storage)].bytes == *bytes;
}

[[nodiscard]] inline bool are_called_alike(const RecordedPlan& plan, std::span<const RecordedValue> given,
                                           std::span<const RecordedValue> asked, std::set<int>& storages) {
  if (given.size() != asked.size()) return false;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!is_input_alike(plan, given[i], asked[i], storages)) return false;
  return true;
}

/// Whether a candidate was called with something else than was asked for, or a call gave nothing.
[[nodiscard]] inline std::optional<Diagnostic> other_call(const RecordedPlan& plan,
                                                          const RecordingRequest& request) {
  const auto wrong = [](std::string message) {
    return Diagnostic{
        Severity::error, 0, 0, std::move(message), "A recording is made by the recorder alone", {}};
  };
  if (request.role == RecordingRequest::Role::script) return std::nullopt;
  if (plan.outputs.empty() && request.role != RecordingRequest::Role::function)
    return wrong("the recording has no outputs");
  if (request.role == RecordingRequest::Role::problem) return std::nullopt;
  std::set<int> storages;
  if (!are_called_alike(plan, plan.inputs, request.inputs, storages))
    return wrong("the recording is of a call with other inputs");
  return std::nullopt;
}

} // namespace detail

MTMC_INLINE TritonRecorder::TritonRecorder(const PythonOptions& options)
    : options_(options), python_(std::make_unique<detail::PythonProcess>(options, "recording")) {
  const auto found = python_->versions().find("triton");
  detail::demand_known_triton(found == python_->versions().end() ? "of no version" : found->second);
}
MTMC_INLINE TritonRecorder::TritonRecorder(TritonRecorder&&) noexcept = default;
MTMC_INLINE TritonRecorder& TritonRecorder::operator=(TritonRecorder&&) noexcept = default;
MTMC_INLINE TritonRecorder::~TritonRecorder() = default;

MTMC_INLINE const std::map<std::string, std::string>& TritonRecorder::versions() const noexcept {
  return python_->versions();
}

MTMC_INLINE Recording TritonRecorder::record(const RecordingRequest& request, std::stop_token stop) const {
  const auto begin = std::chrono::steady_clock::now();
  Recording recording;
  const auto question = detail::question_of(request);
  const auto refuse = [&](Diagnostic diagnostic) { recording.diagnostics = {std::move(diagnostic)}; };
  detail::PythonAnswer answers[2];
  detail::for_each_parallel(
      2, 2, [&](std::size_t i) { answers[i] = python_->ask(question, options_.record_timeout, stop); });
  recording.timed_out = answers[0].timed_out || answers[1].timed_out;
  for (const auto& answer : answers)
    if (answer.failure) refuse(*answer.failure);
  if (!answers[0].result.empty() && !answers[1].result.empty()) {
    if (answers[0].result != answers[1].result) {
      refuse({Severity::error,
              0,
              0,
              "two recordings of this module in fresh processes differ",
              "Let nothing but shapes and numbers decide: no counters, clocks, random numbers of Python, "
              "addresses or "
              "orders of sets",
              {}});
    } else {
      try {
        auto plan = detail::parse_text(answers[0].result, true).at("result").get<RecordedPlan>();
        detail::set_straight(plan, request, versions());
        if (auto wrong = check_recorded_plan(plan))
          refuse(std::move(*wrong));
        else if (auto differs = detail::other_call(plan, request))
          refuse(std::move(*differs));
        else
          recording.plan = std::move(plan);
      } catch (const std::exception& error) {
        refuse({Severity::error,
                0,
                0,
                detail::harmless(std::string("the recording is unsound: ") + error.what(), 500),
                "A recording is made by the recorder alone",
                {}});
      }
    }
  }
  recording.seconds = seconds_since(begin);
  return recording;
}

MTMC_INLINE RecordedTarget recorded_target(const Device& device) {
  RecordedTarget target;
  target.name = device.name;
  target.multiprocessors = device.compute_units;
  int capability = 0;
  for (const char c : device.arch)
    if (c >= '0' && c <= '9' && capability < 1000) capability = 10 * capability + (c - '0');
  if (capability > 0) target.capability = capability;
  for (const auto& level : device.caches)
    if (level.level == 2) target.cache_bytes = level.bytes;
  constexpr std::int64_t kept_for_a_block = 1024; // by the driver
  if (device.shared_memory_bytes > kept_for_a_block)
    target.shared_bytes = device.shared_memory_bytes - kept_for_a_block;
  if (device.memory_bytes > 0) target.memory_bytes = device.memory_bytes;
  return target;
}

} // namespace mtmc
