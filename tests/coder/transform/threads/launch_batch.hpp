#pragma once
/// Runs many kernels of one CUDA task on the emulated GPU, compiled together, in a process of their own, and
/// compares what they compute with what the task's own kernel does.
///
/// Stricter than `grid_runner.hpp`: pages that are not there stand in front of every buffer or behind it;
/// shared memory and registers begin with rubbish; subscripts of arrays whose extents are known and the
/// alignment of every access are checked; and each kernel runs twice, the second time with its blocks and
/// threads from the last to the first, which must give the same bits.

#include <mtmc/support/expression.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../emulated_examples.hpp"

namespace mtmc::testing {

/// What came of one kernel.
struct BatchOutcome {
  bool compiles = false;
  std::string trouble{};  ///< the compiler's words, or how the run ended; empty: it ran to its end
  double difference = 0;  ///< the largest, relative to the largest result of the buffer; infinity for a NaN
  bool same_bits = false; ///< in every order of blocks and threads

  /// Whether it did what the task's own kernel does.
  [[nodiscard]] bool right(double tolerance = 2e-5) const {
    return compiles && trouble.empty() && same_bits && difference <= tolerance;
  }
  /// What is wrong with it, for people.
  [[nodiscard]] std::string verdict() const {
    if (!compiles) return "does not compile: " + trouble;
    if (!trouble.empty()) return "stops: " + trouble;
    if (!same_bits) return "depends on the order of threads";
    return "differs by " + std::to_string(difference);
  }
};

namespace batch_text {

/// Memory, comparison and the order of runs, in front of the kernels.
inline constexpr std::string_view batch_support = R"cpp(
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#undef __shared__
namespace batch {
enum Role { input, output, inout, scratch };
enum Type { f32, integer, byte };
struct Buffer {
  Role role;
  Type type;
  size_t bytes;
  long long low, high; // of integers; low > high: a permutation
  char* at = nullptr;
  char* whole = nullptr;
  size_t length = 0;
};
static size_t padded(size_t bytes) { return (bytes + 15) / 16 * 16; }
// The pages before and behind are not there: the buffer ends at the one, or begins behind the other.
static void place(Buffer& b, bool at_the_end) {
  const size_t inside = (padded(b.bytes) + 4095) / 4096 * 4096;
  b.length = inside + 2 * 4096;
  b.whole = (char*)mmap(nullptr, b.length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(b.whole + 4096, inside, PROT_READ | PROT_WRITE);
  memset(b.whole + 4096, 0xff, inside);
  b.at = b.whole + 4096 + (at_the_end ? inside - padded(b.bytes) : 0);
}
static unsigned state;
static float next() {
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / 8388608.0f - 1.0f;
}
static void fill(Buffer& b) {
  if (b.role == output || b.role == scratch) return;
  if (b.type == f32)
    for (size_t i = 0; i < b.bytes / 4; ++i) ((float*)b.at)[i] = next();
  if (b.type == byte)
    for (size_t i = 0; i < b.bytes; ++i) b.at[i] = (char)(100 * next());
  const long long count = (long long)b.bytes / 4;
  if (b.type == integer)
    for (long long i = 0; i < count; ++i)
      ((int*)b.at)[i] = b.low > b.high ? (int)((2 * count - 1 - i - count / 3) % count)
                                       : (int)(b.low + (long long)((next() + 1) * 1e6f) % (b.high - b.low + 1));
}
// Largest difference relative to the largest wanted result.
static double difference(const Buffer& b, const std::vector<char>& wanted) {
  if (b.role != output && b.role != inout)
    return b.role == scratch || memcmp(b.at, wanted.data(), b.bytes) == 0 ? 0 : INFINITY;
  if (b.type != f32) return memcmp(b.at, wanted.data(), b.bytes) == 0 ? 0 : INFINITY;
  double scale = 1e-30, worst = 0;
  for (size_t i = 0; i < b.bytes / 4; ++i) {
    const float want = ((const float*)wanted.data())[i], got = ((const float*)b.at)[i];
    if (memcmp(&want, &got, 4) == 0) {
      if (want == want) scale = fmax(scale, fabs(want));
      continue;
    }
    scale = fmax(scale, fabs(want));
    const double distance = fabs((double)got - want);
    if (!(distance <= worst)) worst = distance == distance ? distance : INFINITY;
  }
  return worst / scale;
}
// What lies around a buffer within its pages.
static bool margins_changed(const Buffer& b) {
  const size_t inside = b.length - 2 * 4096;
  for (char* p = b.whole + 4096; p < b.whole + 4096 + inside; ++p)
    if ((p < b.at || p >= b.at + b.bytes) && *p != (char)0xff) return true;
  return false;
}
struct Kernel {
  void (*run)(int size, Buffer* buffers);
  std::vector<Buffer> (*buffers)(int size);
  char *shared_first, *shared_end;
};
static const Kernel* running;
static void spoil_shared() {
  if (running->shared_first) memset(running->shared_first, 0xff, running->shared_end - running->shared_first);
}
} // namespace batch
)cpp";

inline constexpr std::string_view batch_main = R"cpp(
int main(int, char** arguments) {
  emulated::before_block = batch::spoil_shared;
  const int first = atoi(arguments[1]);
  std::vector<std::vector<std::vector<char>>> wanted(sizes);
  for (int k = 0; k < kernels; k = k == 0 && first > 1 ? first : k + 1) {
    const batch::Kernel& kernel = all_kernels[k];
    if (kernel.run == nullptr) continue;
    batch::running = &kernel;
    if (k > 0 || first == 0) { printf("run %d\n", k); fflush(stdout); }
    double worst = 0;
    bool same = true;
    const char* trouble = "";
    for (int size = 0; size < sizes; ++size) {
      std::vector<std::vector<char>> before;
      for (int order = 0; order < 2; ++order) {
        emulated::backwards = order == 1;
        auto buffers = kernel.buffers(size);
        batch::state = 12345;
        for (auto& b : buffers) { batch::place(b, order == 0); batch::fill(b); }
        try {
          kernel.run(size, buffers.data());
        } catch (const std::exception& error) {
          trouble = "threads wait for others that wait elsewhere";
        }
        std::vector<std::vector<char>> contents;
        for (auto& b : buffers) {
          if (b.role != batch::scratch) contents.emplace_back(b.at, b.at + b.bytes);
          if (batch::margins_changed(b)) trouble = "it writes beside a buffer";
        }
        if (order == 0) before = contents;
        else same = same && before == contents;
        if (k == 0 && order == 0) wanted[size] = contents;
        for (size_t n = 0; n < contents.size(); ++n)
          worst = fmax(worst, batch::difference(buffers[n], wanted[size][n]));
        for (auto& b : buffers) munmap(b.whole, b.length);
      }
    }
    if (k > 0 || first == 0) { printf("done %d %g %d %s\n", k, worst, (int)same, trouble); fflush(stdout); }
  }
}
)cpp";

} // namespace batch_text

/// Kernels of one task, compiled together: the first is the task's own.
class LaunchBatch {
public:
  LaunchBatch(const Task& task, std::vector<std::string> sources)
      : task_(task), sources_(std::move(sources)) {
    sources_.insert(sources_.begin(), task.kernel.source);
    outcomes_.resize(sources_.size());
    for (const ProblemSize& size : task.sizes)
      if (size.weight <= 0) sizes_.push_back(size);
    plans_.resize(sources_.size());
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      outcomes_[k].compiles = true;
      const std::string alone = mtmc_test::without_pipeline_header(sources_[k]);
      for (const char* text : {"#include", "std::"})
        if (k > 0 && alone.find(text) != std::string::npos)
          refuse(k, "it has \"" + std::string(text) + "\", which compilers at run time do not know");
      try {
        for (const ProblemSize& size : sizes_)
          plans_[k].push_back(plan_launches({task.kernel.language, sources_[k]}, task, size, 132));
      } catch (const std::exception& error) {
        refuse(k, error.what());
      }
    }
  }

  /// What came of each, the task's own first.
  [[nodiscard]] const std::vector<BatchOutcome>& run() {
    while (!compile()) {
    }
    for (std::size_t first = 0; first < sources_.size();) first = run_from(first);
    return outcomes_;
  }

private:
  void refuse(std::size_t kernel, std::string reason) {
    outcomes_[kernel].compiles = false;
    outcomes_[kernel].trouble = std::move(reason);
  }

  /// False if some kernels did not compile and the others are to be tried without them.
  [[nodiscard]] bool compile() {
    write_file_atomic(folder_.path() + "/batch.cpp", text());
    ProcessOptions options;
    options.deadline = std::chrono::minutes{5};
    // Jumps from stack to stack are what a fortified library takes for an attack.
    options.arguments = {"g++",
                         "-std=gnu++20",
                         "-O1",
                         "-w",
                         "-fmax-errors=50",
                         "-U_FORTIFY_SOURCE",
                         "-ffp-contract=off",
                         "-ftrivial-auto-var-init=pattern",
                         "-fsanitize=bounds,alignment",
                         "-fsanitize-undefined-trap-on-error",
                         folder_.path() + "/batch.cpp",
                         "-o",
                         folder_.path() + "/batch"};
    const ProcessResult built = run_process(options);
    if (built.succeeded()) return true;
    bool found = false;
    std::istringstream lines(built.error);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t at = line.find("kernel_"), error = line.find(": error: ");
      if (at != 0 || error == std::string::npos) continue;
      const auto kernel = static_cast<std::size_t>(std::atoi(line.c_str() + 7));
      if (kernel >= sources_.size() || !outcomes_[kernel].compiles) continue;
      refuse(kernel, line.substr(line.find(':') + 1));
      found = true;
    }
    if (!found || !outcomes_.front().compiles)
      throw std::runtime_error("a batch does not compile: " + built.error.substr(0, 2000) + built.message);
    return false;
  }

  /// Runs kernels until one takes the process with it, and says which is next.
  [[nodiscard]] std::size_t run_from(std::size_t first) {
    ProcessOptions options;
    options.arguments = {folder_.path() + "/batch", std::to_string(first)};
    options.deadline = std::chrono::minutes{2};
    const ProcessResult result = run_process(options);
    std::istringstream words(result.output);
    std::size_t begun = first, ended = first;
    for (std::string word; words >> word;) {
      std::size_t kernel = 0;
      words >> kernel;
      if (word == "run") begun = kernel + 1;
      if (word != "done") continue;
      ended = kernel + 1;
      std::string difference;
      int same = 0;
      words >> difference >> same;
      outcomes_[kernel].difference = std::strtod(difference.c_str(), nullptr);
      outcomes_[kernel].same_bits = same == 1;
      std::getline(words, outcomes_[kernel].trouble);
      outcomes_[kernel].trouble.erase(0, outcomes_[kernel].trouble.find_first_not_of(' '));
    }
    if (result.succeeded()) return sources_.size();
    if (begun == ended) throw std::runtime_error("a batch does not run: " + result.message);
    outcomes_[begun - 1].trouble = result.message;
    return begun;
  }

  [[nodiscard]] std::string text() const {
    std::string code{mtmc_test::emulated_device_support};
    code += std::string(mtmc_test::ExampleDevice::more) + std::string(batch_text::batch_support);
    std::string table;
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      if (!outcomes_[k].compiles) {
        table += "  {},\n";
        continue;
      }
      const std::string n = std::to_string(k);
      code += "#define __shared__ static __attribute__((section(\"shared_" + n + "\")))\nnamespace kernel_" +
              n + " {\n#line 1 \"kernel_" + n + ".cu\"\n" + mtmc_test::without_pipeline_header(sources_[k]) +
              "\n}\n#line 1 \"after_" + n + ".cu\"\n#undef __shared__\nextern char __start_shared_" + n +
              "[] __attribute__((weak));\nextern char __stop_shared_" + n + "[] __attribute__((weak));\n";
      code += "static void run_" + n + "(int size, batch::Buffer* buffers) {\n" + launches_of(k) + "}\n";
      code += "static std::vector<batch::Buffer> buffers_" + n + "(int size) {\n" + buffers_of(k) +
              "  return {};\n}\n";
      table += "  {run_" + n + ", buffers_" + n + ", __start_shared_" + n + ", __stop_shared_" + n + "},\n";
    }
    code += "static const batch::Kernel all_kernels[] = {\n" + table +
            "};\nstatic const int kernels = " + std::to_string(sources_.size()) +
            ", sizes = " + std::to_string(sizes_.size()) + ";\n";
    return code + std::string(batch_text::batch_main);
  }

  /// Places of the buffers in a run's list: the task's arguments, then the scratch buffers.
  [[nodiscard]] std::string place_of(const LaunchPlan& plan, const std::string& name) const {
    std::size_t at = 0;
    for (const Argument& argument : task_.arguments) {
      if (argument.role == ArgumentRole::scalar) continue;
      if (argument.name == name) return "buffers[" + std::to_string(at) + ']';
      ++at;
    }
    for (const ScratchBuffer& scratch : plan.scratch) {
      if (scratch.name == name) return "buffers[" + std::to_string(at) + ']';
      ++at;
    }
    throw std::runtime_error("no buffer " + name);
  }

  [[nodiscard]] std::string launches_of(std::size_t kernel) const {
    const std::string& source = sources_[kernel];
    const bool barriers =
        source.find("__sync") != std::string::npos || source.find("__shfl") != std::string::npos;
    std::string code;
    for (std::size_t size = 0; size < sizes_.size(); ++size) {
      const LaunchPlan& plan = plans_[kernel][size];
      code += "  if (size == " + std::to_string(size) + ") {\n";
      for (const Launch& launch : plan.launches) {
        std::string arguments;
        for (const LaunchArgument& argument : launch.arguments) {
          if (argument.kind == LaunchArgument::Kind::buffer) {
            const std::string place = place_of(plan, argument.name);
            if (argument.zeroed) code += "    memset(" + place + ".at, 0, " + place + ".bytes);\n";
            arguments += "{(long long)" + place + ".at, 0.0}, ";
          } else if (is_floating(argument.type)) {
            std::ostringstream number;
            number.precision(17);
            number << argument.real;
            arguments += "{0, " + number.str() + "}, ";
          } else {
            arguments += "{" + std::to_string(argument.integer) + "LL, 0.0}, ";
          }
        }
        const auto extents = [](const auto& values) {
          return '{' + std::to_string(values[0]) + "u, " + std::to_string(values[1]) + "u, " +
                 std::to_string(values[2]) + "u}";
        };
        code += "    {\n      emulated::Argument arguments[] = {" + arguments +
                "};\n      gridDim = " + extents(launch.grid) +
                ";\n      blockDim = " + extents(launch.block) + ";\n      emulated::launch(kernel_" +
                std::to_string(kernel) + "::" + launch.entry + ", arguments, " +
                (barriers ? "true" : "false") + ");\n    }\n";
      }
      code += "  }\n";
    }
    return code;
  }

  [[nodiscard]] std::string buffers_of(std::size_t kernel) const {
    std::string code;
    const auto type_of = [](DataType type) {
      if (type == DataType::f32) return "f32";
      if (type == DataType::i32 || type == DataType::u32) return "integer";
      if (type == DataType::i8) return "byte";
      throw std::runtime_error("no values of such a type");
    };
    for (std::size_t size = 0; size < sizes_.size(); ++size) {
      const Symbols& symbols = sizes_[size].symbols;
      std::string list;
      for (const Argument& argument : task_.arguments) {
        if (argument.role == ArgumentRole::scalar) continue;
        std::size_t bytes = size_of(argument.type);
        for (const std::string& extent : argument.shape)
          bytes *= static_cast<std::size_t>(evaluate_expression(extent, symbols));
        const std::string role = argument.role == ArgumentRole::input    ? "input"
                                 : argument.role == ArgumentRole::output ? "output"
                                                                         : "inout";
        const std::int64_t low = argument.domain ? evaluate_expression(argument.domain->low, symbols) : 1;
        const std::int64_t high = argument.domain ? evaluate_expression(argument.domain->high, symbols) : 0;
        list += "{batch::" + role + ", batch::" + type_of(argument.type) + ", " + std::to_string(bytes) +
                ", " + std::to_string(low) + ", " + std::to_string(high) + "}, ";
      }
      for (const ScratchBuffer& scratch : plans_[kernel][size].scratch)
        list += "{batch::scratch, batch::byte, " + std::to_string(scratch.bytes()) + ", 1, 0}, ";
      code += "  if (size == " + std::to_string(size) + ") return {" + list + "};\n";
    }
    return code;
  }

  const Task& task_;
  std::vector<std::string> sources_;
  std::vector<ProblemSize> sizes_{};
  std::vector<std::vector<LaunchPlan>> plans_{};
  std::vector<BatchOutcome> outcomes_{};
  TemporaryFolder folder_{};
};

/// What came of kernels of a task; the first outcome is the task's own kernel's.
[[nodiscard]] inline std::vector<BatchOutcome> run_together(const Task& task,
                                                            std::vector<std::string> sources) {
  return LaunchBatch(task, std::move(sources)).run();
}

} // namespace mtmc::testing
