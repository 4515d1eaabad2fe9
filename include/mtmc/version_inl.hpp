#pragma once
/// Definitions of version.hpp.

#include <mtmc/requirements.hpp>

#include <mtmc/version.hpp>

#ifdef MTMC_SEPARATE_COMPILATION
namespace mtmc::inline MTMC_ABI::detail {

extern const char exactly_one_source_file_includes_mtmc_implementation_hpp_or_link_mtmc_compiled = '\0';

} // namespace mtmc::detail
#endif
