// expect: constraints not satisfied
#include <mtmc/core/any.hpp>

struct NoEvaluator {
  mtmc::Device device();
  mtmc::Evaluation evaluate(const mtmc::EvaluationRequest&, std::stop_token);
};
mtmc::AnyEvaluator evaluator{NoEvaluator{}};
