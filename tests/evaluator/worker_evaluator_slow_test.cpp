// Worker processes under fire: killed at any moment, and left alone by their host.
#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/worker_evaluator.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/process/child_process.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../support/processes.hpp"
#include "worker_tasks.hpp"

using namespace mtmc;

namespace {

const std::string program = std::string(MTMC_TEST_PROGRAMS) + "/worker_program";

} // namespace

TEST_CASE("kill -9 at any moment: every candidate has a verdict, and only its own worker's end counts") {
  const processes::Started started;
  const auto descriptors = processes::open_descriptors();
  {
    WorkerEvaluator evaluator{{.command = {program, "--mtmc-worker"},
                               .backend = "fake",
                               .evaluator_options = {.seed = 42},
                               .workers = 2}};
    const auto task = worker_tasks::rows();
    evaluator.prepare(task, {});
    std::atomic<bool> done = false;
    std::atomic<int> kills = 0;
    std::jthread killer([&] {
      PhiloxEngine random{7};
      while (!done) {
        std::this_thread::sleep_for(std::chrono::microseconds{static_cast<int>(20'000 * random.uniform())});
        const auto workers = started.now();
        if (workers.empty()) continue;
        ::kill(*std::next(workers.begin(), static_cast<std::ptrdiff_t>(random.below(workers.size()))),
               SIGKILL);
        ++kills;
      }
    });
    std::atomic<int> correct = 0;
    std::atomic<int> crashed = 0;
    std::atomic<int> lost = 0;
    std::atomic<int> other = 0;
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
          for (int i = 0; i < 400; ++i) {
            try {
              const auto answer =
                  evaluator.evaluate({task, worker_tasks::kernel("honest"), task.kernel, {}, {}}, {});
              if (answer.correct())
                ++correct;
              else if (answer.verdict == Verdict::crashed && answer.rule == "worker")
                ++crashed;
              else
                ++other;
            } catch (const Error& error) { // three in a row before they could do anything
              if (error.id() == "mtmc.worker.002")
                ++lost;
              else
                ++other;
            }
          }
        });
    }
    done = true;
    killer.join();
    CHECK(other == 0);
    CHECK(correct + crashed + lost == 1200);
    // How many get through depends on the machine. A candidate that lost its worker stands for a kill of its
    // own, and one that got none for three.
    CHECK(correct > 0);
    CHECK(crashed + 3 * lost <= kills);
    MESSAGE(kills.load() << " kills: " << correct.load() << " correct, " << crashed.load() << " crashed, "
                         << lost.load() << " without worker");
  }
  CHECK(processes::open_descriptors() == descriptors);
  CHECK(started.now().empty());
}

TEST_CASE("when a host is killed its workers end, also one whose judge hangs") {
  ChildProcess host{{.arguments = {program, "hang"}}};
  std::set<pid_t> workers;
  for (int i = 0; i < 1000 && workers.size() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    workers = processes::descendants(host.pid());
  }
  REQUIRE(workers.size() == 2);
  std::this_thread::sleep_for(std::chrono::milliseconds{500});
  for (const auto worker : workers) CHECK(processes::runs(worker));
  ::kill(host.pid(), SIGKILL);
  for (const auto worker : workers) CHECK(processes::ends(worker));
}
