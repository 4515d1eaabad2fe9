// expect: mtmc: an evaluator needs `mtmc::Evaluation evaluate(const mtmc::EvaluationRequest&,
#include <mtmc/core/concepts.hpp>

struct Mine {
  const mtmc::Device& device();
};
static_assert(mtmc::check_evaluator<Mine>());
