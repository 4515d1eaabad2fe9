// The real program, killed at random moments of a real run, and resumed.

#include <mtmc/support/philox.hpp>

#include <doctest/doctest.h>

#include <set>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "programs.hpp"

namespace {

/// Starts mtmc-optimize in a process group of its own, silent.
pid_t start(const std::vector<std::string>& arguments) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  std::vector<char*> words;
  for (const auto& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(127);
  ::execv(words.front(), words.data());
  ::_exit(127);
}

/// The lines of a journal that record something paid for.
std::vector<std::string> paid(const std::string& path) {
  std::vector<std::string> lines;
  std::string text;
  try {
    text = mtmc::read_file(path);
  } catch (const std::system_error&) {
    return lines;
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    if (end == std::string::npos) break; // torn
    const auto line = text.substr(begin, end - begin);
    if (line.find("{\"record\":\"draft\"") == 0 || line.find("{\"record\":\"evaluation\"") == 0)
      lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

} // namespace

TEST_CASE("mtmc-optimize killed with SIGKILL at random moments goes on where it was") {
  programs::Tasks tasks;
  const std::string task = std::string(MTMC_REPOSITORY) + "/examples/tasks/cpu/stencil2d.json";
  const auto journal = tasks.path("runs/stencil2d/journal.jsonl");
  const std::vector<std::string> arguments{std::string(MTMC_EXAMPLES) + "/mtmc-optimize",
                                           task,
                                           "--quiet",
                                           "--steps",
                                           "10",
                                           "--patience",
                                           "0",
                                           "--policy",
                                           "random",
                                           "--sample",
                                           "--output",
                                           tasks.path("runs"),
                                           "--resume"};
  mtmc::PhiloxEngine random{7};
  std::vector<std::string> before;
  int kills = 0;
  for (;; ++kills) {
    REQUIRE(kills < 200);
    const pid_t child = start(arguments);
    REQUIRE(child > 0);
    // Later and later, or a slow machine never ends.
    const auto wait = std::chrono::milliseconds(500 + 200 * kills + static_cast<int>(random() % 3000));
    int status = 0;
    pid_t ended = 0;
    for (const auto until = std::chrono::steady_clock::now() + wait;
         ended == 0 && std::chrono::steady_clock::now() < until;
         std::this_thread::sleep_for(std::chrono::milliseconds(5)))
      ended = ::waitpid(child, &status, WNOHANG);
    if (ended == 0) {
      ::kill(child, SIGKILL);
      REQUIRE(::waitpid(child, &status, 0) == child);
    }
    // What was journalled stays, word for word, and nothing of it is paid for again.
    const auto after = paid(journal);
    REQUIRE(after.size() >= before.size());
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i] == before[i]);
    before = after;
    if (ended == child) {
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 0);
      break;
    }
  }
  CHECK(kills > 0);
  CHECK(before.size() > 6);
  CHECK(std::set<std::string>(before.begin(), before.end()).size() == before.size());
  const auto result = nlohmann::json::parse(mtmc::read_file(tasks.path("runs/stencil2d/result.json")));
  CHECK(result["verdict"] == "correct");
  MESSAGE("killed " << kills << " times");
}
