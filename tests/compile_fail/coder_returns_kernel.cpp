// expect: mtmc: `implement` of a coder must return `mtmc::Draft` by value
#include <mtmc/core/concepts.hpp>

struct Mine {
  mtmc::Kernel implement(const mtmc::CodingRequest&, std::stop_token);
};
static_assert(mtmc::check_coder<Mine>());
