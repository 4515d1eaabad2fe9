// Your own policy, coder and evaluator as plain structs: no base class, no registration. A `static_assert`
// under each says in one sentence what is missing, if anything is. The parts here need no compiler and no
// device, so the program is also the shortest way to see how the loop thinks.

#include <mtmc/mtmc.hpp>

#include <cstdio>
#include <string>

namespace {

/// A policy: prefers what makes the innermost loop contiguous, then the rest in the order offered, `stop`
/// last.
struct LocalityFirst {
  mtmc::ActionDistribution distribution(const mtmc::Observation&, std::span<const mtmc::Action> legal,
                                        std::stop_token) {
    mtmc::ActionDistribution answer;
    double sum = 0;
    for (const auto& action : legal) {
      const double weight = action.optimization == "reordering"       ? 8
                            : action.optimization == "tiling"         ? 4
                            : action.kind == mtmc::Action::Kind::stop ? 0.01
                                                                      : 1;
      answer.probabilities.push_back(weight);
      sum += weight;
    }
    for (auto& probability : answer.probabilities) probability /= sum;
    answer.rationale = "locality first";
    return answer;
  }
};
static_assert(mtmc::check_policy<LocalityFirst>());

/// A coder: wraps another one and keeps a tally, as a host would that sends drafts through its own gateway.
struct CountingCoder {
  mtmc::TransformCoder inner{};
  int asked = 0;
  static constexpr int max_concurrency = 1; // `asked` is not guarded

  mtmc::Draft implement(const mtmc::CodingRequest& request, std::stop_token stop) {
    ++asked;
    auto draft = inner.implement(request, stop);
    std::printf("  %-70s %s\n", request.action.text().c_str(),
                draft.kernel ? "drafted" : ("declined: " + draft.message).c_str());
    return draft;
  }
};
static_assert(mtmc::check_coder<CountingCoder>());

/// An evaluator: believes every kernel right and guesses its speed from its text, as a host would that has a
/// cost model of a chip that is still being built. The verdict has to be given; of the rest, `seconds` is
/// enough for a loop to compare (mtmc::Evaluator says what it reads). A guess has no confidence interval, so
/// none is given. Real evaluators measure: see mtmc::KernelEvaluator and mtmc::Backend.
struct CostModel {
  mtmc::Device chip{"chip on paper", "cpu", "imagined", 8, 512};

  const mtmc::Device& device() const { return chip; }

  mtmc::Evaluation evaluate(const mtmc::EvaluationRequest& request, std::stop_token) const {
    mtmc::Evaluation evaluation;
    evaluation.verdict = mtmc::Verdict::correct;
    evaluation.seconds = guess(request.candidate);
    return evaluation;
  }

  static double guess(const mtmc::Kernel& kernel) {
    double seconds = 1;
    for (const char* sign : {"omp parallel", "omp simd", "std::min"})
      if (kernel.source.find(sign) != std::string::npos) seconds /= 2;
    return seconds;
  }
};
static_assert(mtmc::check_evaluator<CostModel>());

} // namespace

int main() try {
  const auto task = mtmc::TaskBuilder{"scale_rows"}
                        .kernel(mtmc::languages::cpp, R"(
void scale_rows(const float* x, const float* factor, float* y, int rows, int columns) {
  for (int c = 0; c < columns; ++c)
    for (int r = 0; r < rows; ++r)
      y[r * columns + c] = factor[r] * x[r * columns + c];
}
)")
                        .shape("x", {"rows", "columns"})
                        .shape("factor", {"rows"})
                        .shape("y", {"rows", "columns"})
                        .size({{"rows", 4096}, {"columns", 4096}})
                        .build();

  CountingCoder coder; // an lvalue: the loop keeps a reference, and the tally can be read afterwards
  mtmc::Loop loop{LocalityFirst{}, coder, mtmc::AstRegionFinder{}, CostModel{}, {.max_steps = 5}};
  const auto result = loop.optimize(task);

  std::printf("asked the coder %d times; the model believes in %s; stopped: %s\n%s", coder.asked,
              mtmc::speed_up_text(result.speed_up).c_str(),
              std::string(to_string(result.stop_reason)).c_str(), result.best.source.c_str());
  return 0;
} catch (const mtmc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
