// expect: mtmc: `find` of a region finder must return `mtmc::Structure` by value
#include <mtmc/core/concepts.hpp>

struct Mine {
  std::vector<mtmc::Region> find(const mtmc::Task&, const mtmc::Kernel&) const;
};
static_assert(mtmc::check_region_finder<Mine>());
