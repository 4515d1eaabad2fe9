// expect: constraints not satisfied
#include <mtmc/core/any.hpp>

struct NoPolicy {
  double distribution(const mtmc::Observation&, std::span<const mtmc::Action>, std::stop_token);
};
mtmc::AnyPolicy policy{NoPolicy{}};
