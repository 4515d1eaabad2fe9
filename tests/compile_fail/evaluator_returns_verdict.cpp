// expect: mtmc: `evaluate` of an evaluator must return `mtmc::Evaluation` by value
#include <mtmc/core/concepts.hpp>

struct Mine {
  const mtmc::Device& device();
  mtmc::Verdict evaluate(const mtmc::EvaluationRequest&, std::stop_token);
};
static_assert(mtmc::check_evaluator<Mine>());
