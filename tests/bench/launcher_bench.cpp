// Whether a launcher is as fast as its kernel was measured: compiled by the command in its own head, and for
// comparison by what somebody might take for the same. Judge and launchers take turns, each launcher in a
// process of its own with the environment that kernels are judged in. Exit code 1 if the launcher that was
// compiled by its head takes 10 % more or less than the judge says.
//
//   bench_launcher             about a minute

#include <mtmc/backend/cpu.hpp>
#include <mtmc/core/launch_lines.hpp>
#include <mtmc/loop/launcher.hpp>
#include <mtmc/loop/result.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int rounds = 9;
constexpr int calls = 61;

struct Example {
  const char* name;
  /// Value of N: so small that now and then a call is not interrupted, whatever else the machine does.
  std::int64_t extent;
  const char* text;
};

const Example examples[] = {{"a product of matrices", 256, R"(
//@ launch step(A, B, C, N)
extern "C" void step(const float* A, const float* B, float* C, int N) {
#pragma omp parallel for
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) C[i * N + j] = 0;
    for (int k = 0; k < N; ++k)
      for (int j = 0; j < N; ++j) C[i * N + j] += A[i * N + k] * B[k * N + j];
  }
}
)"},
                            {"two launches with 4 MB of scratch memory between them", 1024, R"(
//@ scratch T: f32[N, N]
//@ launch add(A, B, T, N)
//@ launch scale(T, C, N)
extern "C" void add(const float* A, const float* B, float* T, int N) {
#pragma omp parallel for
  for (int i = 0; i < N * N; ++i) T[i] = A[i] + B[i];
}
extern "C" void scale(const float* T, float* C, int N) {
#pragma omp parallel for
  for (int i = 0; i < N * N; ++i) C[i] = 2 * T[i];
}
)"}};

// Prints the least seconds of a call. The buffers lie in shared memory, as the judge's do: pages of other
// sizes would make a difference that no compiler makes.
const std::string caller = R"(#include "launcher.hpp"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <vector>
float* buffer(int elements, float value) {
  auto* const memory = static_cast<float*>(mmap(nullptr, elements * sizeof(float), PROT_READ | PROT_WRITE,
                                                MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  std::fill_n(memory, elements, value);
  return memory;
}
int main(int, char** arguments) {
  const int N = std::atoi(arguments[1]);
  const float* A = buffer(N * N, 0.5f);
  const float* B = buffer(N * N, 0.25f);
  float* C = buffer(N * N, 0);
  std::vector<double> seconds(std::atoi(arguments[2]));
  launch_matrix(A, B, C, N);
  for (auto& one : seconds) {
    const auto begin = std::chrono::steady_clock::now();
    launch_matrix(A, B, C, N);
    one = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::printf("%.9f\n", *std::min_element(seconds.begin(), seconds.end()));
}
)";

mtmc::Task matrix_task(const char* text) {
  mtmc::Task task;
  task.name = "matrix";
  task.kernel = {mtmc::languages::cpp, text, {}};
  for (const char* name : {"A", "B"})
    task.arguments.push_back({.name = name, .role = mtmc::ArgumentRole::input, .shape = {"N", "N"}});
  task.arguments.push_back({.name = "C", .role = mtmc::ArgumentRole::output, .shape = {"N", "N"}});
  task.arguments.push_back(
      {.name = "N", .role = mtmc::ArgumentRole::scalar, .type = mtmc::DataType::i32, .value = "N"});
  return task;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

[[noreturn]] void stop(const std::string& why) {
  std::printf("%s\n", why.c_str());
  std::exit(2);
}

/// The judge's own times of the kernel.
class Judged {
public:
  Judged(mtmc::CpuBackend& backend, const mtmc::Task& task, std::int64_t extent)
      : backend_(backend), plan_(mtmc::plan_launches(task.kernel, task, {.symbols = {{"N", extent}}},
                                                     backend.device().compute_units)) {
    auto compiled = backend.compile(task.kernel, {.plan = plan_}, {});
    if (!compiled.program) stop("the kernel does not compile");
    program_ = std::move(compiled.program);
    const auto bytes = extent * extent * static_cast<std::int64_t>(sizeof(float));
    for (auto& launch : plan_.launches)
      for (auto& argument : launch.arguments) {
        if (argument.kind != mtmc::LaunchArgument::Kind::buffer) continue;
        auto found = buffers_.find(argument.name);
        if (found == buffers_.end())
          found = buffers_.emplace(argument.name, backend.allocate(static_cast<std::size_t>(bytes))).first;
        argument.bound = {found->second.handle(), 0, bytes};
      }
    (void)least_seconds();
  }

  double least_seconds() {
    std::vector<double> seconds;
    for (int i = 0; i < calls; ++i) {
      const auto timed = backend_.time(*program_, {&plan_, 1}, false,
                                       std::chrono::steady_clock::now() + std::chrono::seconds{60});
      if (!timed.status.finished()) stop(timed.status.message);
      seconds.push_back(timed.seconds);
    }
    return *std::min_element(seconds.begin(), seconds.end());
  }

private:
  mtmc::CpuBackend& backend_;
  mtmc::LaunchPlan plan_;
  std::shared_ptr<mtmc::CpuProgram> program_;
  std::map<std::string, mtmc::CpuBuffer> buffers_;
};

/// A launcher compiled in some way.
struct Way {
  std::string name;
  std::string command;
  std::string program{};
  std::vector<double> ratios{};
};

/// "c++ ... -c launcher.cpp" of the head.
std::string command_of(std::string_view launcher) {
  constexpr std::string_view title = "// Compile:";
  const auto at = launcher.find(title);
  if (at == std::string_view::npos) stop("the launcher does not say how to compile it");
  return std::string(launcher.substr(at + title.size(), launcher.find('\n', at) - at - title.size()));
}

void compile(const mtmc::TemporaryFolder& folder, Way& way, std::size_t number) {
  way.program = folder.path() + "/program-" + std::to_string(number);
  for (const auto& command : {way.command, "c++ -O1 -fopenmp main.cpp launcher.o -o " + way.program})
    if (const auto done =
            mtmc::run_process({.arguments = {"sh", "-c", command}, .working_folder = folder.path()});
        !done.succeeded())
      stop(done.error);
}

double seconds_of(const Way& way, std::int64_t extent, int threads) {
  const auto ran =
      mtmc::run_process({.arguments = {way.program, std::to_string(extent), std::to_string(calls)},
                         .environment = {{"OMP_DYNAMIC=false", "OMP_PROC_BIND=spread", "OMP_PLACES=cores",
                                          "OMP_NUM_THREADS=" + std::to_string(threads)}}});
  if (!ran.succeeded()) stop(ran.error);
  return std::atof(ran.output.c_str());
}

/// Whether the launcher of a kernel takes the time that the judge says.
bool compare(mtmc::CpuBackend& backend, const Example& example) {
  mtmc::Result result;
  result.task = matrix_task(example.text);
  result.best = result.task.kernel;
  result.device = backend.device();
  const auto source = result.launcher_source();

  const mtmc::TemporaryFolder folder;
  mtmc::write_file_atomic(folder.path() + "/launcher.cpp", source);
  mtmc::write_file_atomic(folder.path() + "/launcher.hpp", result.launcher_header());
  mtmc::write_file_atomic(folder.path() + "/main.cpp", caller);
  std::vector<Way> ways{{"as its head says", command_of(source)},
                        {"with optimisation and OpenMP", "c++ -O2 -fopenmp -c launcher.cpp"}};
  for (std::size_t i = 0; i < ways.size(); ++i) compile(folder, ways[i], i);

  Judged judged(backend, result.task, example.extent);
  std::vector<double> proven;
  for (int round = 0; round < rounds; ++round) {
    // Between two readings of the judge, so that a machine that gets faster or slower does it no favour.
    double before = judged.least_seconds();
    for (auto& way : ways) {
      const double own = seconds_of(way, example.extent, backend.device().compute_units);
      const double after = judged.least_seconds();
      way.ratios.push_back(2 * own / (before + after));
      proven.push_back(before = after);
    }
  }
  std::printf("%s, in the judge %.3f ms; the head says%s\n", example.name, 1e3 * median(proven),
              ways.front().command.c_str());
  for (const auto& way : ways) {
    const auto [least, most] = std::minmax_element(way.ratios.begin(), way.ratios.end());
    std::printf("  launcher compiled %-30s %.3f of the judge's time (%.3f to %.3f in %d rounds)\n",
                way.name.c_str(), median(way.ratios), *least, *most, rounds);
  }
  return std::abs(median(ways.front().ratios) - 1) < 0.1;
}

} // namespace

int main() {
  // With one thread: how long others take to wake up depends on who woke them last.
  mtmc::CpuBackend backend({.threads = 1});
  bool as_proved = true;
  for (const auto& example : examples) as_proved = compare(backend, example) && as_proved;
  return as_proved ? 0 : 1;
}
