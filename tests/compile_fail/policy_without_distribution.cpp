// expect: mtmc: a policy needs `mtmc::ActionDistribution distribution(const mtmc::Observation&,
#include <mtmc/core/concepts.hpp>

struct Mine {};
static_assert(mtmc::check_policy<Mine>());
