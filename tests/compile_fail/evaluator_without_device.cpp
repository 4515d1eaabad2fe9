// expect: mtmc: an evaluator needs `const mtmc::Device& device()`
#include <mtmc/core/concepts.hpp>

struct Mine {
  mtmc::Evaluation evaluate(const mtmc::EvaluationRequest&, std::stop_token);
};
static_assert(mtmc::check_evaluator<Mine>());
