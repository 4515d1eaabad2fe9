#include "target.hpp"

namespace mtmc_fuzz {

std::span<const Target> targets() {
  static constexpr Target all[] = {
      {"answer", answer, 8192},
      {"compiler_output", compiler_output, 8192},
      {"elf", elf, 8192},
      {"examples", examples, 8192},
      {"expression", expression, 1024},
      {"http", http, 8192},
      {"journal", journal, 16384},
      {"kernel", kernel, 2048},
      {"launch_lines", launch_lines, 2048},
      {"nouns", nouns, 8192},
      {"npy", npy, 1024},
      {"ptx", ptx, 4096},
      {"python", python, 4096},
      {"recorded_plan", recorded_plan, 16384},
      {"scoring", scoring, 8192},
      {"task", task, 4096},
      {"tokens", tokens, 4096},
      {"worker", worker, 8192},
  };
  return all;
}

} // namespace mtmc_fuzz
