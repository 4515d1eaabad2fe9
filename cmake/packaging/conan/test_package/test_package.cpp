#include <mtmc/mtmc.hpp>

#include <cstdio>

int main() { std::printf("mtmc %d.%d.%d\n", mtmc::version_major, mtmc::version_minor, mtmc::version_patch); }
