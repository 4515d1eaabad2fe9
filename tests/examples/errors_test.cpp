/// How the command line tools tell errors.

#include <mtmc/core/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "../../examples/tools/errors.hpp"
#include "programs.hpp"

using programs::shown;
using Contains = doctest::Contains;

TEST_CASE("an error of what the user gave ends a tool with 2, any other with 3") {
  for (const auto& kind : mtmc::error_kinds) {
    CAPTURE(kind.id);
    const std::string id(kind.id);
    // The contract with scripts, as it has been from the first version on.
    const char* const of_input[] = {
        "mtmc.task.",         "mtmc.json.",     "mtmc.launch.",    "mtmc.loop.001",   "mtmc.journal.003",
        "mtmc.evaluator.001", "mtmc.net.001",   "mtmc.policy.001", "mtmc.policy.002", "mtmc.train.001",
        "mtmc.train.002",     "mtmc.train.003", "mtmc.bench.001"};
    const bool input = std::any_of(std::begin(of_input), std::end(of_input),
                                   [&id](const char* area) { return id.starts_with(area); });
    CHECK(command_line::exit_code({kind.id, "it broke", "Mend it"}) == (input ? 2 : 3));
  }
  const mtmc::Error own("host.gateway.001", "no answer", "Ask again");
  CHECK(command_line::exit_code(own) == 3);
  CHECK(command_line::exit_code(own.as(mtmc::ErrorCategory::input)) == 2);
}

TEST_CASE("what a tool throws becomes its exit code") {
  CHECK(command_line::exit_code_of([] { return 75; }) == 75);
  CHECK(command_line::exit_code_of(
            []() -> int { throw mtmc::Error(mtmc::error_id::task_malformed, "no sizes", "Add one"); }) == 2);
  CHECK(command_line::exit_code_of([]() -> int { throw std::runtime_error("disk full"); }) == 3);
}

TEST_CASE("somebody at a terminal reads the flag in the place of the option") {
  const mtmc::Error error(mtmc::error_id::loop_options, "the number of steps is negative", "Use 0 or more");
  CHECK(command_line::readable(error.about("LoopOptions::max_steps")) ==
        "[mtmc.loop.001] the number of steps is negative. Use 0 or more (--steps)");
  CHECK(command_line::readable(error.about("LoopOptions::threads")) ==
        "[mtmc.loop.001] the number of steps is negative. Use 0 or more (LoopOptions::threads)");
  CHECK(command_line::readable(error) == error.what());
}

TEST_CASE("every flag that an error may name is one of the tools'") {
  const auto help = programs::run("mtmc-optimize", {"--help"}).output;
  for (const auto& [option, flag] : command_line::option_flags) {
    const auto& named = option;
    CAPTURE(named);
    CHECK(shown(help) == Contains((' ' + std::string(flag)).c_str()));
  }
}

TEST_CASE("errors of the tools name flags, and end with the code of their category") {
  programs::Tasks tasks;
  const auto task = tasks.add("columns", programs::columns_task("columns"));
  const auto wrong = programs::run("mtmc-optimize", {task, "--minimum-gain", "-1"});
  CHECK(wrong.code == 2);
  CHECK(shown(wrong.error) == Contains("[mtmc.loop.001] the minimum gain is not a ratio"));
  CHECK(shown(wrong.error) == Contains("(--minimum-gain)"));
  const auto broken = programs::run("mtmc-optimize", {task, "--compiler", "no-such-compiler"});
  CHECK(broken.code == 3);
  CHECK(shown(broken.error) == Contains("there is no C++ compiler (tried no-such-compiler"));
  CHECK(shown(broken.error) == Contains("(--compiler)"));
  CHECK(shown(broken.error + wrong.error) != Contains("Options::"));
}
