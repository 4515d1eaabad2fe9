// expect: mtmc: `distribution` of a policy must return `mtmc::ActionDistribution` by value
#include <mtmc/core/concepts.hpp>

struct Mine {
  std::vector<double> distribution(const mtmc::Observation&, std::span<const mtmc::Action>, std::stop_token);
};
static_assert(mtmc::check_policy<Mine>());
