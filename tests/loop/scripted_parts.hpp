#pragma once
/// Parts whose answers a test writes down, for exact statements about the loop.

#include <mtmc/loop/gain.hpp>

#include <map>
#include <memory>

#include "toy_world.hpp"

namespace scripted {

/// Wants actions in the order of a list of keys (those on offer, each once on the way to a kernel), then
/// `stop`.
struct Policy {
  std::vector<std::string> wishes{};
  bool once = true;
  std::vector<std::vector<std::string>> offered{};
  std::vector<mtmc::Observation> seen{};
  std::string rationale{};

  [[nodiscard]] static bool was_kept(const mtmc::Observation& observation, const std::string& key) {
    for (const auto& entry : observation.history)
      if (entry.kept && entry.action_key == key) return true;
    return false;
  }
  [[nodiscard]] mtmc::ActionDistribution distribution(const mtmc::Observation& observation,
                                                      std::span<const mtmc::Action> legal, std::stop_token) {
    seen.push_back(observation);
    offered.emplace_back();
    mtmc::ActionDistribution answer;
    double sum = 0;
    for (const auto& action : legal) {
      offered.back().push_back(action.key());
      double wish = action.kind == mtmc::Action::Kind::stop ? 1 : 0;
      for (std::size_t i = 0; i < wishes.size(); ++i)
        if (wishes[i] == action.key() && !(once && was_kept(observation, wishes[i])))
          wish = std::max(wish, std::pow(2, static_cast<double>(wishes.size() - i)));
      sum += wish;
      answer.probabilities.push_back(wish);
    }
    for (auto& probability : answer.probabilities) probability /= sum;
    answer.rationale = rationale;
    return answer;
  }
};

/// Answers by a function; the default appends "#pragma did KEY#SAMPLE".
struct Coder {
  std::function<mtmc::Draft(const mtmc::CodingRequest&, std::stop_token)> answer{};
  std::vector<mtmc::CodingRequest> requests{};
  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();

  [[nodiscard]] static mtmc::Draft did(const mtmc::CodingRequest& request, const std::string& what) {
    mtmc::Draft draft;
    draft.kernel =
        mtmc::Kernel{request.seen.kernel.language, request.seen.kernel.source + "#pragma did " + what + "\n"};
    draft.usage.prompt_tokens = 10;
    draft.usage.completion_tokens = 5;
    draft.usage.cost = 0.25;
    return draft;
  }
  [[nodiscard]] static std::string name_of(const mtmc::CodingRequest& request) {
    return request.action.optimization + '#' + std::to_string(request.sample);
  }
  [[nodiscard]] mtmc::Draft implement(const mtmc::CodingRequest& request, std::stop_token stop) {
    {
      const std::lock_guard lock{*mutex};
      requests.push_back(request);
    }
    return answer ? answer(request, std::move(stop)) : did(request, name_of(request));
  }
};

/// Kernels are judged by their deeds: `speed` multiplies up, `verdicts` condemn. What is not listed is
/// neutral.
struct Evaluator {
  std::map<std::string, double> speed{};
  std::map<std::string, mtmc::Verdict> verdicts{};
  /// Says the last word before an evaluation is handed out.
  std::function<void(const mtmc::EvaluationRequest&, mtmc::Evaluation&)> twist{};
  std::vector<mtmc::EvaluationRequest> requests{};
  mtmc::Device machine = toy::Evaluator{}.machine;
  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();

  [[nodiscard]] double seconds(const mtmc::Kernel& kernel) const {
    double result = 1;
    for (const auto& deed : toy::deeds(kernel))
      if (const auto found = speed.find(deed); found != speed.end()) result /= found->second;
    return result;
  }
  [[nodiscard]] const mtmc::Device& device() const { return machine; }
  [[nodiscard]] mtmc::Evaluation evaluate(const mtmc::EvaluationRequest& request, std::stop_token) {
    {
      const std::lock_guard lock{*mutex};
      requests.push_back(request);
    }
    mtmc::Evaluation evaluation{mtmc::Verdict::correct};
    for (const auto& deed : toy::deeds(request.candidate))
      if (const auto found = verdicts.find(deed); found != verdicts.end()) evaluation.verdict = found->second;
    if (!evaluation.correct()) {
      mtmc::Diagnostic diagnostic;
      diagnostic.message = "it is " + std::string(to_string(evaluation.verdict));
      evaluation.diagnostics = {diagnostic};
    } else {
      evaluation.seconds = seconds(request.candidate);
      mtmc::SizeEvaluation size;
      size.size = request.task.sizes.front();
      evaluation.sizes = {size};
      if (request.incumbent) {
        const double ratio = seconds(*request.incumbent) / evaluation.seconds;
        mtmc::SpeedUp speed_up;
        speed_up.value = ratio;
        speed_up.low = ratio * 0.99;
        speed_up.high = ratio * 1.01;
        evaluation.speed_up = speed_up;
        evaluation.comparison = mtmc::detail::compare(speed_up);
      }
    }
    if (twist) twist(request, evaluation);
    return evaluation;
  }
  /// How often a kernel with exactly these deeds was judged for a purpose.
  [[nodiscard]] int asked(const std::vector<std::string>& done,
                          mtmc::Purpose purpose = mtmc::Purpose::explore) const {
    int count = 0;
    for (const auto& request : requests)
      count += toy::deeds(request.candidate) == done && request.purpose == purpose ? 1 : 0;
    return count;
  }
};

/// The three parts round one region ("play/0"), types alpha to zeta.
struct Stage {
  Policy policy{};
  Coder coder{};
  Evaluator evaluator{};
  toy::Finder finder{1, {}};
  mtmc::LoopOptions options{};

  Stage() { options.action_space = toy::space(6); }

  [[nodiscard]] static std::string key(const std::string& type) { return type + "|play/0"; }
  void wants(const std::vector<std::string>& types) {
    policy.wishes.clear();
    for (const auto& type : types) policy.wishes.push_back(type == "stop" ? type : key(type));
  }
  [[nodiscard]] mtmc::Result run(std::stop_token stop = {}) {
    mtmc::Loop loop{policy, coder, finder, evaluator, options};
    return loop.optimize(toy::task(), std::move(stop));
  }
};

} // namespace scripted
