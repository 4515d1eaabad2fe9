#pragma once
/// A world in which optimising is a game with known rules, so that the loop can be tested without compilers
/// and clocks. A kernel's text is the list of what was done to it; its time and its correctness follow from
/// that list, the seed of the world and nothing else.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/loop/loop.hpp>
#include <mtmc/support/philox.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace toy {

/// A number from [0, 1) that follows from a seed and a text.
inline double chance(std::uint64_t seed, const std::string& text) {
  const auto digest = mtmc::sha256_hex(text);
  return mtmc::PhiloxEngine(seed, std::stoull(digest.substr(0, 15), nullptr, 16)).uniform();
}

inline mtmc::Task task(std::string name = "toy") {
  mtmc::Task task;
  task.name = std::move(name);
  task.summary = "a game";
  task.kernel = {mtmc::languages::cpp, "//@ launch play(A)\nvoid play(float* A) { A[0] = 1; }\n"};
  mtmc::Argument argument;
  argument.name = "A";
  argument.role = mtmc::ArgumentRole::output;
  argument.shape = {"N"};
  task.arguments = {argument};
  mtmc::ProblemSize size;
  size.symbols = {{"N", 16}};
  task.sizes = {size};
  return task;
}

/// Types alpha, beta, ... that apply everywhere.
inline mtmc::ActionSpace space(int types = 4) {
  mtmc::ActionSpace result;
  for (const char* name : {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"})
    if (static_cast<int>(result.types.size()) < types)
      result.types.push_back(
          {name, std::string(name) + "ing", "try it", "do it",
           [](const mtmc::Region&, const mtmc::Structure&, const mtmc::Device&) { return true; }});
  return result;
}

/// What was done to a kernel: the lines "#pragma did KEY#SAMPLE" of its text.
inline std::vector<std::string> deeds(const mtmc::Kernel& kernel) {
  constexpr std::string_view mark = "#pragma did ";
  std::vector<std::string> result;
  for (std::size_t at = kernel.source.find(mark); at != std::string::npos;
       at = kernel.source.find(mark, at + 1)) {
    const auto start = at + mark.size();
    result.push_back(kernel.source.substr(start, kernel.source.find('\n', start) - start));
  }
  return result;
}

struct Finder {
  int regions = 2;
  std::function<void(const mtmc::Kernel&)> before{};

  [[nodiscard]] mtmc::Structure find(const mtmc::Task&, const mtmc::Kernel& kernel) const {
    if (before) before(kernel);
    mtmc::Structure structure;
    structure.kernel_id = kernel.id();
    for (int i = 0; i < regions; ++i) {
      mtmc::Region region;
      region.label = "loop " + std::to_string(i);
      region.path = "play/" + std::to_string(i);
      region.first_line = region.last_line = i + 1;
      structure.regions.push_back(region);
    }
    return structure;
  }
};

/// Likes actions by chance, and stopping little.
struct Policy {
  std::uint64_t seed = 1;
  double stop = 0.01;
  std::atomic<int>* calls = nullptr;
  std::vector<mtmc::Observation>* seen = nullptr;
  std::function<void(const mtmc::Observation&)> before{};

  [[nodiscard]] mtmc::ActionDistribution distribution(const mtmc::Observation& observation,
                                                      std::span<const mtmc::Action> legal,
                                                      std::stop_token) const {
    if (calls != nullptr) ++*calls;
    if (seen != nullptr) seen->push_back(observation);
    if (before) before(observation);
    mtmc::ActionDistribution answer;
    answer.exact = true;
    answer.value = 0.5;
    double sum = 0;
    for (const auto& action : legal) {
      const bool stops = action.kind == mtmc::Action::Kind::stop;
      answer.probabilities.push_back(stops ? stop
                                           : 0.05 + chance(seed, observation.kernel.id() + action.key()));
      sum += answer.probabilities.back();
    }
    for (auto& probability : answer.probabilities) probability /= sum;
    return answer;
  }
  [[nodiscard]] std::string identity() const { return "toy policy " + std::to_string(seed); }
};

/// Appends the deed. Now and then it declines, answers nothing, or makes a mistake that a repair takes back.
struct Coder {
  std::uint64_t seed = 1;
  double mistakes = 0.3;
  double refusals = 0.15;
  std::atomic<int>* calls = nullptr;
  /// Longest time an answer takes: answers arrive in any order.
  std::chrono::microseconds delay{0};
  std::function<void(const mtmc::CodingRequest&)> before{};

  [[nodiscard]] mtmc::Draft implement(const mtmc::CodingRequest& request, std::stop_token) const {
    if (calls != nullptr) ++*calls;
    if (before) before(request);
    const auto name = request.action.key() + '#' + std::to_string(request.sample);
    const auto luck = chance(seed, request.seen.kernel.id() + name + (request.repair ? "repair" : ""));
    if (delay.count() > 0)
      std::this_thread::sleep_for(
          std::chrono::microseconds(static_cast<int>(luck * static_cast<double>(delay.count()))));
    mtmc::Draft draft;
    if (luck < refusals)
      draft = mtmc::Draft::failed(
          luck < refusals / 2 ? mtmc::DraftFailure::declined : mtmc::DraftFailure::no_kernel, "not today");
    else
      draft.kernel = mtmc::Kernel{request.seen.kernel.language,
                                  request.seen.kernel.source + "#pragma did " + name +
                                      (luck < refusals + mistakes ? " wrongly" : "") + "\n"};
    draft.raw_text = "I thought about " + name;
    draft.usage.prompt_tokens = 100;
    draft.usage.completion_tokens = static_cast<std::int64_t>(luck * 100);
    draft.usage.cost = 0.001 * luck;
    return draft;
  }
  [[nodiscard]] std::string identity() const { return "toy coder " + std::to_string(seed); }
};

/// Judges by the rules of the world.
struct Evaluator {
  std::uint64_t seed = 1;
  std::atomic<int>* calls = nullptr;
  /// Every question, as text.
  std::multiset<std::string>* asked = nullptr;
  std::mutex* mutex = nullptr;
  std::chrono::microseconds delay{0};
  std::function<void(const mtmc::EvaluationRequest&)> before{};
  mtmc::Device machine = [] {
    mtmc::Device device;
    device.name = "toy machine";
    device.kind = "cpu";
    device.compute_units = 2;
    device.software["compiler"] = "toy 1.0";
    return device;
  }();

  /// Seconds of a correct kernel; each deed has its factor, each pair a small one.
  [[nodiscard]] double seconds(const mtmc::Kernel& kernel) const {
    double result = 1;
    const auto list = deeds(kernel);
    for (std::size_t i = 0; i < list.size(); ++i) {
      result *= 0.5 + 0.7 * chance(seed, "time" + list[i]);
      for (std::size_t k = 0; k < i; ++k) result *= 0.95 + 0.1 * chance(seed, list[k] + list[i]);
    }
    return result;
  }
  [[nodiscard]] const mtmc::Device& device() const { return machine; }

  [[nodiscard]] mtmc::Evaluation evaluate(const mtmc::EvaluationRequest& request, std::stop_token) const {
    if (calls != nullptr) ++*calls;
    if (before) before(request);
    if (asked != nullptr) {
      const std::lock_guard lock{*mutex};
      asked->insert(request.candidate.id() + ' ' + (request.incumbent ? request.incumbent->id() : "none") +
                    ' ' + std::string(to_string(request.purpose)));
    }
    const auto luck = chance(seed, "judge" + request.candidate.source);
    if (delay.count() > 0)
      std::this_thread::sleep_for(
          std::chrono::microseconds(static_cast<int>(luck * static_cast<double>(delay.count()))));
    mtmc::Evaluation evaluation{mtmc::Verdict::correct};
    if (request.candidate.source.find("wrongly") != std::string::npos) {
      evaluation.verdict = luck < 0.5 ? mtmc::Verdict::compile_error : mtmc::Verdict::wrong_result;
      evaluation.rule = "toy";
      mtmc::Diagnostic diagnostic;
      diagnostic.line = 3;
      diagnostic.message = "a mistake";
      evaluation.diagnostics = {diagnostic};
      return evaluation;
    }
    evaluation.seconds = seconds(request.candidate);
    mtmc::SizeEvaluation size;
    size.size = request.task.sizes.front();
    size.seconds = evaluation.seconds;
    size.samples = 10;
    if (request.incumbent) {
      // The second look is not quite what the first was.
      const double noise = request.purpose == mtmc::Purpose::promote
                               ? 0.98 + 0.04 * chance(seed, "noise" + request.candidate.source)
                               : 1;
      const double ratio = seconds(*request.incumbent) / evaluation.seconds * noise;
      mtmc::SpeedUp speed_up;
      speed_up.value = ratio;
      speed_up.low = ratio * 0.99;
      speed_up.high = ratio * 1.01;
      size.speed_up = evaluation.speed_up = speed_up;
      evaluation.comparison = speed_up.low > 1    ? mtmc::Comparison::faster
                              : speed_up.high < 1 ? mtmc::Comparison::slower
                                                  : mtmc::Comparison::undecided;
    }
    evaluation.sizes = {size};
    evaluation.environment["clock"] = "toy";
    return evaluation;
  }
  [[nodiscard]] std::string identity() const { return "toy evaluator " + std::to_string(seed); }
};

/// All that a result says but the time it took and where it was kept.
inline std::string text_of(const mtmc::Result& result) {
  nlohmann::json json;
  json["best"] = result.best;
  json["speed_up"] = result.speed_up;
  json["measured"] = result.measured;
  json["evaluation"] = result.evaluation;
  json["start"] = result.start;
  json["history"] = nlohmann::json::array();
  for (const auto& entry : result.history) json["history"].push_back(entry);
  json["trajectory"] = nlohmann::json::array();
  for (const auto& step : result.trajectory) json["trajectory"].push_back(step);
  json["steps"] = result.steps;
  json["usage"] = result.usage;
  json["stop_reason"] = std::string(to_string(result.stop_reason));
  json["error"] = result.error ? result.error->what() : "";
  return json.dump(1);
}

} // namespace toy
