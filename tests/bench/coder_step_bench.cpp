// What a step of the offline coder costs on CUDA kernels: every action on offer for the start kernels of the
// repository's tasks and for what each first step makes of them; and what it costs to know which of them are
// feasible.
#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/coder/transform.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace mtmc;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Times in order, in milliseconds.
struct Times {
  std::vector<double> all{};
  double longest = 0;
  std::string slowest{}; ///< what took longest

  void add(double milliseconds, const std::string& what) {
    all.push_back(milliseconds);
    if (milliseconds <= longest) return;
    longest = milliseconds;
    slowest = what;
  }
  void print(const char* what) {
    std::sort(all.begin(), all.end());
    const auto at = [&](double part) {
      return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
    };
    std::printf("  %-28s %5zu   median %6.2f ms   95 %% %6.2f ms   longest %6.2f ms (%s)\n", what, all.size(),
                at(0.5), at(0.95), longest, slowest.c_str());
  }
};

CodingRequest request_for(const Task& task, const Kernel& kernel, const Action& action) {
  CodingRequest request;
  request.seen.task = task;
  request.seen.kernel = kernel;
  request.seen.device = find_device_preset("H100")->device;
  request.action = action;
  return request;
}

/// The kernels that single steps make of one; notes how long each took.
std::vector<Kernel> step(const Task& task, const Kernel& kernel, Times& steps, Times& feasible) {
  const TransformCoder coder;
  const auto actions = ActionSpace::extended().legal_actions(AstRegionFinder{}.find(task, kernel),
                                                             find_device_preset("H100")->device);
  const auto start = Clock::now();
  (void)coder.feasible_actions(request_for(task, kernel, Action::stop()), actions);
  feasible.add(milliseconds_since(start), task.name);
  std::vector<Kernel> made;
  for (const Action& action : actions) {
    if (action.kind != Action::Kind::optimize) continue;
    const auto request = request_for(task, kernel, action);
    const auto begun = Clock::now();
    Draft draft = coder.implement(request, {});
    steps.add(milliseconds_since(begun), task.name + ' ' + action.key());
    if (draft.kernel) made.push_back(std::move(*draft.kernel));
  }
  return made;
}

} // namespace

int main() {
  Times steps, feasible;
  for (const auto& file : find_task_files(std::string(MTMC_REPOSITORY) + "/examples/tasks/cuda")) {
    const Task task = load_task(file);
    for (const Kernel& kernel : step(task, task.kernel, steps, feasible))
      (void)step(task, kernel, steps, feasible);
  }
  std::printf("offline coder, kernels of examples/tasks/cuda and their first steps:\n");
  steps.print("a step, declined or not");
  feasible.print("feasible actions of a kernel");
}
