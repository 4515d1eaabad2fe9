#include <mtmc/mtmc.hpp>

const int* version_seen_by_second();

// The address is the same in both translation units only if the header's definitions are inline.
int main() { return version_seen_by_second() == &mtmc::version_minor ? 0 : 1; }
