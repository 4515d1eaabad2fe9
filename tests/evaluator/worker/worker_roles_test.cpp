#include <mtmc/evaluator/worker/worker_server.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;

namespace {

WorkerBackends backends_with_roles() {
  const auto plays = [](int code) { return [code](const std::vector<std::string>&) { return code; }; };
  return {{{"first", {}, {{"--test-first", plays(1)}}},
           {"second", {}, {{"--test-second", plays(2)}, {"--test-third", plays(3)}}}}};
}

} // namespace

TEST_CASE("a program with workers plays the roles of all their backends, and the worker") {
  std::vector<std::string> arguments;
  for (const auto& role : worker_roles(backends_with_roles())) arguments.push_back(role.argument);
  CHECK(arguments == std::vector<std::string>{"--test-first", "--test-second", "--test-third",
                                              std::string(worker_argument)});
  const char* const argv[] = {"program", "--test-third"};
  CHECK(play_role(2, argv, backends_with_roles()) == 3);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("the old name does the same until 0.3") {
  const char* const argv[] = {"program", "--test-second"};
  CHECK(run_as_worker(2, argv, backends_with_roles()) == 2);
}
#pragma GCC diagnostic pop
