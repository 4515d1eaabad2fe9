#pragma once
// How the command line tools tell errors: exit codes, and options by the names they have as flags.

#include <mtmc/core/error.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace command_line {

// The contract with scripts.
inline constexpr int done = 0;
inline constexpr int bad_usage_or_task = 2;
inline constexpr int surroundings_broken = 3;
inline constexpr int waiting_for_answers = 75;
/// As a shell reports a program that Ctrl-C ended.
inline constexpr int interrupted_by_user = 130;

/// The exit code that an error stands for: what the user gave is the user's to correct, and a defect is told
/// apart from it as broken surroundings are.
inline int exit_code(const mtmc::Error& error) {
  return error.category() == mtmc::ErrorCategory::input ? bad_usage_or_task : surroundings_broken;
}

/// An option of the library and the flag that sets it.
struct OptionFlag {
  std::string_view option;
  std::string_view flag;
};
inline constexpr OptionFlag option_flags[] = {{"BatchOptions", "--batch"},
                                              {"ChatClientOptions::prices", "--prices"},
                                              {"CpuBackendOptions::compiler", "--compiler"},
                                              {"CurlOptions::ca_file", "--ca-file"},
                                              {"EndpointOptions::base_url", "--endpoint"},
                                              {"KernelEvaluatorOptions::start_seconds", "--start-seconds"},
                                              {"LoopOptions::beam", "--beam"},
                                              {"LoopOptions::budget.cost", "--cost"},
                                              {"LoopOptions::budget.patience", "--patience"},
                                              {"LoopOptions::budget.seconds", "--seconds"},
                                              {"LoopOptions::budget.tokens", "--tokens"},
                                              {"LoopOptions::max_steps", "--steps"},
                                              {"LoopOptions::minimum_gain", "--minimum-gain"},
                                              {"LoopOptions::output", "--output"},
                                              {"LoopOptions::repairs", "--repairs"},
                                              {"LoopOptions::resume", "--resume"},
                                              {"LoopOptions::samples", "--samples"},
                                              {"LoopOptions::temperature", "--temperature"}};

/// An error as somebody at a terminal reads it: its option by the name of the flag, where there is one.
inline std::string readable(const mtmc::Error& error) {
  for (const auto& [option, flag] : option_flags)
    if (error.option() == option) return error.about(flag).what();
  return error.what();
}

inline void print_error(const mtmc::Error& error) {
  std::fprintf(stderr, "error: %s\n", readable(error).c_str());
}

/// What `run` answers, as the whole of a program; what it throws is printed and becomes an exit code.
template <class Run> int exit_code_of(const Run& run) {
  try {
    return run();
  } catch (const mtmc::Error& error) {
    print_error(error);
    return exit_code(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return surroundings_broken;
  }
}

/// Exit codes of several tasks as one: the worst, where broken surroundings outweigh a bad task.
inline int worse(int a, int b) {
  const auto rank = [](int code) {
    return code == surroundings_broken   ? 4
           : code == waiting_for_answers ? 3 // the same command goes on, and tells of a bad task again
           : code == bad_usage_or_task   ? 2
           : code == interrupted_by_user ? 1
                                         : 0;
  };
  return rank(a) >= rank(b) ? a : b;
}

} // namespace command_line
