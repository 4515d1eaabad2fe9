// expect: mtmc: a coder needs `mtmc::Draft implement(const mtmc::CodingRequest&, std::stop_token)`
#include <mtmc/core/concepts.hpp>

struct Mine {};
static_assert(mtmc::check_coder<Mine>());
