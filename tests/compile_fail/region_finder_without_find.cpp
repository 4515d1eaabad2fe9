// expect: mtmc: a region finder needs `mtmc::Structure find(const mtmc::Task&, const mtmc::Kernel&) const`
#include <mtmc/core/concepts.hpp>

struct Mine {};
static_assert(mtmc::check_region_finder<Mine>());
