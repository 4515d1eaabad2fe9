// Whether a launcher is as fast as its kernel was measured: compiled by the command in its own head, and for
// comparison by what somebody might take for the same. The program that the judge ran and the launcher take
// turns, call by call, in one process, so that whatever else the machine does falls on both. Exit code 1 if
// the launcher that was compiled by its head takes 10 % more or less.
//
//   bench_launcher             a few seconds

#include <mtmc/backend/cpu.hpp>
#include <mtmc/launcher/launcher.hpp>
#include <mtmc/loop/result.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace {

constexpr int calls = 201;

struct Example {
  const char* name;
  std::int64_t extent;
  /// How the judge's program is called: numbers of launches with their arguments.
  const char* judged;
  const char* text;
};

const Example examples[] = {{"a product of matrices", 128, "judge(0, A, B, C, N);", R"(
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
                            {"two launches with 4 MB of scratch memory between them", 1024,
                             "judge(0, A, B, T, N), judge(1, T, C, N);", R"(
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

// Prints the median ratio of the launcher's time to that of the judge's program, the quartiles, and the
// latter's least milliseconds.
const std::string caller = R"(#include "launcher.hpp"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
#include <vector>
using Word = unsigned long long;
void* program = nullptr;
float* buffer(std::size_t elements) {
  auto* const memory = static_cast<float*>(mmap(nullptr, elements * sizeof(float), PROT_READ | PROT_WRITE,
                                                MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  std::fill_n(memory, elements, 0.5f);
  return memory;
}
Word word(const float* memory) { return reinterpret_cast<Word>(memory); }
Word word(int value) { return static_cast<Word>(value); }
template <class... Arguments> void judge(int number, Arguments... arguments) {
  const Word slots[] = {word(arguments)...};
  const auto name = "mtmc_launch_" + std::to_string(number);
  reinterpret_cast<int (*)(const Word*)>(dlsym(program, name.c_str()))(slots);
}
template <class Call> double seconds_of(Call call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
int main(int, char** arguments) {
  program = dlopen(arguments[1], RTLD_NOW);
  const int N = std::atoi(arguments[2]);
  const auto size = static_cast<std::size_t>(N) * static_cast<std::size_t>(N);
  [[maybe_unused]] float *A = buffer(size), *B = buffer(size), *C = buffer(size), *T = buffer(size);
  std::vector<double> ratios;
  double least = 1e9;
  for (int i = std::atoi(arguments[3]); i > 0; --i) {
    const double judged = seconds_of([&] { JUDGED });
    ratios.push_back(seconds_of([&] { launch_matrix(A, B, C, N); }) / judged);
    least = std::min(least, judged);
  }
  std::sort(ratios.begin(), ratios.end());
  const auto n = ratios.size();
  std::printf("%.3f %.3f %.3f %.3f\n", ratios[n / 2], ratios[n / 4], ratios[3 * n / 4], 1e3 * least);
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

[[noreturn]] void stop(const std::string& why) {
  std::printf("%s\n", why.c_str());
  std::exit(2);
}

/// The file that the judge made of a kernel; `folder` is the backend's.
std::string judged_program(mtmc::CpuBackend& backend, const mtmc::Task& task, std::int64_t extent,
                           const std::string& folder, std::shared_ptr<mtmc::CpuProgram>& kept) {
  const auto plan =
      mtmc::plan_launches(task.kernel, task, {.symbols = {{"N", extent}}}, backend.device().compute_units);
  kept = backend.compile(task.kernel, {.plan = plan}, {}).program;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
    if (kept && file.path().filename() == "program.so") return file.path().string();
  stop("the kernel does not compile");
}

/// "c++ ... -c launcher.cpp" of the head.
std::string command_of(std::string_view launcher) {
  constexpr std::string_view title = "// Compile:";
  const auto at = launcher.find(title);
  if (at == std::string_view::npos) stop("the launcher does not say how to compile it");
  return std::string(launcher.substr(at + title.size(), launcher.find('\n', at) - at - title.size()));
}

/// Runs a command in a folder; what it prints.
std::string run(const std::string& command, const mtmc::TemporaryFolder& folder) {
  auto done = mtmc::run_process({.arguments = {"sh", "-c", command},
                                 .working_folder = folder.path(),
                                 .deadline = std::chrono::minutes{5}});
  if (!done.succeeded()) stop(command + ": " + done.error);
  return done.output;
}

/// Whether the launcher of a kernel takes the time of the judge's program.
bool compare(const Example& example) {
  const mtmc::TemporaryFolder judged_folder, folder;
  mtmc::CpuBackend backend({.temporary_folder = judged_folder.path()});
  mtmc::Result result;
  result.task = matrix_task(example.text);
  result.best = result.task.kernel;
  result.device = backend.device();
  std::shared_ptr<mtmc::CpuProgram> kept;
  const auto program = judged_program(backend, result.task, example.extent, judged_folder.path(), kept);

  const auto source = result.launcher_source();
  auto main_text = caller;
  main_text.replace(main_text.find("JUDGED"), 6, example.judged);
  mtmc::write_file_atomic(folder.path() + "/launcher.cpp", source);
  mtmc::write_file_atomic(folder.path() + "/launcher.hpp", result.launcher_header());
  mtmc::write_file_atomic(folder.path() + "/main.cpp", main_text);
  const auto command = command_of(source);
  std::printf("%s; the head says%s\n", example.name, command.c_str());
  double first = 0;
  for (const auto& [name, way] :
       {std::pair{"as its head says", command},
        std::pair{"with -O2 -fopenmp", std::string("c++ -O2 -fopenmp -c launcher.cpp")}}) {
    run(way, folder);
    run("c++ -std=c++17 -O1 -fopenmp main.cpp launcher.o -o program -ldl", folder);
    // One thread: how long others take to wake up depends on who else is running.
    const auto answer = run("OMP_NUM_THREADS=1 ./program " + program + ' ' + std::to_string(example.extent) +
                                ' ' + std::to_string(calls),
                            folder);
    double ratio = 0, low = 0, high = 0, least = 0;
    if (std::sscanf(answer.c_str(), "%lf %lf %lf %lf", &ratio, &low, &high, &least) != 4) stop(answer);
    std::printf(
        "  launcher compiled %-18s %.3f of the judge's program (quartiles %.3f, %.3f; least time of the "
        "latter %.3f ms)\n",
        name, ratio, low, high, least);
    if (first == 0) first = ratio;
  }
  return std::abs(first - 1) < 0.1;
}

} // namespace

int main() {
  bool as_proved = true;
  for (const auto& example : examples) as_proved = compare(example) && as_proved;
  return as_proved ? 0 : 1;
}
