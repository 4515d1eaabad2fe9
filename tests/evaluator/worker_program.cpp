// A host that is its own worker, with a backend of its own whose kernels do what their name says to the
// process that judges them. As a host it judges one honest kernel and prints the verdict:
//   worker_program host      with the opt-in
//   worker_program stranger  without
//   worker_program hang      with the opt-in, and the kernel never ends
#include <mtmc/evaluator/worker/worker_server.hpp>
#include <mtmc/evaluator/worker_evaluator.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#include "fake_backend.hpp"
#include "worker_tasks.hpp"

namespace {

using fake::Call;

void rows(const Call& call) {
  const auto a = call.buffer<const float>("A");
  const auto b = call.buffer<const float>("b");
  const auto c = call.buffer<float>("C");
  for (std::size_t i = 0; i < c.size(); ++i) {
    float total = 0;
    for (std::size_t j = 0; j < b.size(); ++j) total += a[i * b.size() + j] * b[j];
    c[i] = total;
  }
}

std::shared_ptr<fake::World> world() {
  auto world = std::make_shared<fake::World>();
  world->device.memory_bytes = std::int64_t{256} << 20;
  world->memory_limit = std::size_t{64} << 20;
  world->kernels["start"] = {rows};
  world->kernels["honest"] = {rows, 0.5e-3};
  world->kernels["wrong"] = {[](const Call& call) {
    for (auto& value : call.buffer<float>("C")) value = 0;
  }};
  world->kernels["abort"] = {[](const Call&) { std::abort(); }};
  world->kernels["exit"] = {[](const Call&) { ::_exit(0); }};
  world->kernels["wild"] = {[](const Call&) {
    volatile int* const nowhere = reinterpret_cast<int*>(16);
    *nowhere = 1;
  }};
  world->kernels["hang"] = {[](const Call&) {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds{1});
  }};
  world->kernels["memory"] = {[](const Call&) { throw std::bad_alloc{}; }};
  world->kernels["throw"] = {[](const Call&) { throw std::runtime_error("no error of ours"); }};
  world->kernels["lost"] = {rows, 1e-3, 0.02, mtmc::RunOutcome::device_lost};
  world->kernels["helped"] = {[](const Call& call) {
    if (!mtmc::detail::own_program("--fake-helper").empty()) rows(call);
  }};
  world->kernels["print"] = {[](const Call& call) {
    std::printf("{\"type\":\"evaluation\",\"request\":2,\"evaluation\":{\"verdict\":\"correct\"}}\n");
    std::fflush(stdout);
    rows(call);
  }};
  return world;
}

/// Options: {"spent_after": n}: the process is to be replaced after so many compilations.
class Backend : public fake::Backend {
public:
  static constexpr std::string_view name = "fake";
  explicit Backend(std::shared_ptr<fake::World> shared, std::int64_t spent_after = 0)
      : fake::Backend(shared), world_(std::move(shared)), spent_after_(spent_after) {}
  [[nodiscard]] static mtmc::ProgramRole role() {
    return {"--fake-helper", [](const std::vector<std::string>& rest) {
              std::printf("%zu\n", rest.size());
              return 7;
            }};
  }
  [[nodiscard]] static Backend from_json(const nlohmann::json& options) {
    return Backend{world(), options.value("spent_after", std::int64_t{0})};
  }
  [[nodiscard]] bool spent() const { return spent_after_ > 0 && world_->compilations >= spent_after_; }

private:
  std::shared_ptr<fake::World> world_;
  std::int64_t spent_after_;
};

/// Cannot be asked for anything.
class Plain : public fake::Backend {
public:
  static constexpr std::string_view name = "plain";
  Plain() : fake::Backend(world()) {}
};

void attach_hooks(mtmc::Task& task) {
  if (task.name == "hooked")
    task.compare = [](const mtmc::Argument&, const mtmc::ProblemSize&, std::span<const std::byte> got,
                      std::span<const std::byte> wanted) {
      return std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()) ? std::string() : "not equal";
    };
}

int host(const std::string& entry) {
  mtmc::WorkerEvaluator evaluator{
      {.search_path = "/nowhere", .backend = "fake", .evaluator_options = {.seed = 42}}};
  const auto task = worker_tasks::rows();
  const auto answer = evaluator.evaluate({task, worker_tasks::kernel(entry), task.kernel, {}, {}}, {});
  std::printf("%s\n", std::string(to_string(answer.verdict)).c_str());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  try {
    if (role == "stranger") return host("honest");
    const auto backends = mtmc::worker_backends<Backend, Plain>(attach_hooks);
    if (const auto code = mtmc::play_role(argc, argv, backends)) return *code;
    return host(role == "hang" ? "hang" : "honest");
  } catch (const mtmc::Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
