#pragma once
// What mtmc-optimize and mtmc-evaluate share: a program from its command line to its exit code, evaluators,
// and Ctrl-C as a stop token.

#include <mtmc/backend/device_presets.hpp>
#include <mtmc/mtmc.hpp>
#include <mtmc/support/nearest_name.hpp>

#include <CLI/CLI.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "errors.hpp"

namespace command_line {

/// What kernels are judged with.
struct JudgeArguments {
  std::string compiler = "c++";
  int threads = 0;
  mtmc::KernelEvaluatorOptions options{};
};

inline void add_judge_options(CLI::App& app, JudgeArguments& arguments) {
  app.add_option("--threads", arguments.threads, "threads that kernels may use; 0 = all cores");
  app.add_option("--compiler", arguments.compiler, "compiler of the kernels")->capture_default_str();
  app.add_option("--start-seconds", arguments.options.start_seconds,
                 "seconds that one call of a task's own kernel may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--refuse-uncovered", arguments.options.refuse_uncovered_branches,
               "promote no kernel of which a branch went one way only in all calls of its audit");
}

/// CUDA kernels are judged on a GPU, in a worker that is this very program; all others on this processor.
inline mtmc::AnyEvaluator evaluator_for(const mtmc::Language& language, const JudgeArguments& arguments) {
  if (language == mtmc::languages::cuda) return mtmc::CudaEvaluator{{}, arguments.options};
  return mtmc::CpuEvaluator{{.compiler = arguments.compiler, .threads = arguments.threads},
                            arguments.options};
}

/// A text of several lines as a part of a list: none of them begins where a line of ours would.
inline std::string indented(std::string text) {
  for (auto at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
    text.insert(at + 1, "      ");
  return text;
}

/// For an option that names a GPU that need not be there.
inline CLI::Validator known_device() {
  const auto problem = [](const std::string& name) -> std::string {
    if (mtmc::find_device_preset(name)) return {};
    const auto near = mtmc::near_device_names(name);
    return "no device is known as \"" + name + "\". " +
           (near.empty() ? "" : "Did you mean " + mtmc::detail::joined(near) + "? ") + "Known are " +
           mtmc::detail::joined(mtmc::device_preset_names());
  };
  return {problem, "NAME"};
}

/// A finite number in those bounds.
inline CLI::Validator number(double low, double high = 1e12) {
  const auto problem = [low, high](const std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return {};
    char bounds[96];
    std::snprintf(bounds, sizeof bounds, " is no number from %g to %g", low, high);
    return text + bounds;
  };
  return {problem, "NUMBER"};
}

/// For options that name a file to be read: a missing one is bad usage, before anything is done.
inline CLI::Validator readable_file(bool folder = false) {
  const auto problem = [folder](const std::string& path) -> std::string {
    struct stat facts{};
    if (::stat(path.c_str(), &facts) != 0 || ::access(path.c_str(), R_OK) != 0)
      return path + " cannot be read: " + std::strerror(errno);
    if (S_ISDIR(facts.st_mode) == folder) return {};
    return path + (folder ? " is not a folder" : " is a folder: name a file in it");
  };
  return {problem, folder ? "FOLDER" : "FILE"};
}

/// What a program does: `run`, if the command line could be read, or else to say what is wrong with it, or
/// what was asked for (--help, --version). Answers the exit code.
template <class Run> int run_program(CLI::App& app, int argc, char** argv, const Run& run) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? done : bad_usage_or_task;
  }
  return exit_code_of(run);
}

/// The name that an option had before 0.2, which does the same with one warning. It goes with 0.3.
template <class Value>
void add_old_name(CLI::App& app, const std::string& old_name, CLI::Option* now, Value& value) {
  const auto take = [old_name, name = now->get_name(), &value](const Value& given) {
    std::fprintf(stderr, "%s is called %s now; the old name works until 0.3\n", old_name.c_str(),
                 name.c_str());
    value = given;
  };
  app.add_option_function<Value>(old_name, take)->group("")->excludes(now);
}

/// Turns the first Ctrl-C into a stop request, so that the best kernel so far is still reported; a second one
/// kills.
class StopOnInterrupt {
public:
  StopOnInterrupt() {
    std::signal(SIGINT, [](int) {
      interrupted = 1;
      std::signal(SIGINT, SIG_DFL);
    });
  }
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

private:
  inline static volatile std::sig_atomic_t interrupted = 0;
  std::stop_source source_;
  std::jthread watcher_{[source = source_](const std::stop_token& ended) mutable {
    while (!ended.stop_requested() && interrupted == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (interrupted != 0) source.request_stop();
  }};
};

} // namespace command_line
