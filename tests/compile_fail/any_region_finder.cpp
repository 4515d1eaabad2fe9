// expect: constraints not satisfied
#include <mtmc/core/any.hpp>

struct NoFinder {
  mtmc::Structure find(const mtmc::Task&, const mtmc::Kernel&);
};
mtmc::AnyRegionFinder finder{NoFinder{}};
