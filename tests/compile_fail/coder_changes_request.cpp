// expect: mtmc: a coder needs `mtmc::Draft implement(const mtmc::CodingRequest&, std::stop_token)`
#include <mtmc/core/concepts.hpp>

struct Mine {
  mtmc::Draft implement(mtmc::CodingRequest&, std::stop_token);
};
static_assert(mtmc::check_coder<Mine>());
