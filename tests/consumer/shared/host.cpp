#include <cstdio>
#include <string>

#include "engine.hpp"

extern "C" engine::Optimize engine_optimize;

int main() {
  std::string why;
  const bool done = engine_optimize(why);
  std::printf("%s: %s\n", done ? "optimized" : "not optimized", why.c_str());
  return done ? 0 : 1;
}
