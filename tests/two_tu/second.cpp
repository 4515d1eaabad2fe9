#include <mtmc/mtmc.hpp>

const int* version_seen_by_second();

const int* version_seen_by_second() { return &mtmc::version_minor; }
