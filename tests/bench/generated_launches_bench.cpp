// Whether what the offline coder makes of CUDA kernels computes on a GPU what they compute: all drafts for
// generated kernels, in one step, and random sequences of steps on the tasks of the repository. Small sizes,
// no times. tests/coder/transform/threads/generated_launches_slow_test.cpp does the same on the emulated
// device, with known dependences.
//
//   bench_generated_launches --kernels 400 --first 1 --sequences 91
//
// --show FOLDER keeps the texts that are wrong.

#include <mtmc/backend/cuda.hpp>
#include <mtmc/support/file_io.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../coder/transform/threads/generated_launches.hpp"
#include "../coder/transform/threads/grid_runner.hpp"
#include "../coder/transform/threads/launch_attempts.hpp"

namespace {

using namespace mtmc;
using namespace mtmc::testing;

struct Arguments {
  std::size_t kernels = 20;
  std::uint64_t first = 1;
  std::uint64_t sequences = 1;
  std::string show;
};

/// What came of the texts of one kind.
struct Tally {
  int right = 0, wrong = 0, do_not_compile = 0;
};

/// The buffers of a task: inputs that depend on the size alone; integers lie in their domains, and where they
/// have none they are a permutation of the places of their buffer.
[[nodiscard]] std::vector<GridMemory> buffers_of(const Task& task, const ProblemSize& size) {
  std::uint32_t state = 12345;
  const auto next = [&state] {
    state = state * 1664525U + 1013904223U;
    return static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  };
  std::vector<GridMemory> memory;
  for (const Argument& argument : task.arguments) {
    if (argument.role == ArgumentRole::scalar) continue;
    std::int64_t count = 1;
    for (const std::string& extent : argument.shape) count *= evaluate_expression(extent, size.symbols);
    GridMemory one{argument.name, argument.type, argument.role};
    one.content.assign(static_cast<std::size_t>(count) * size_of(argument.type), std::byte{0xff});
    const auto write = [&](std::int64_t at, auto value) {
      std::memcpy(one.content.data() + static_cast<std::size_t>(at) * sizeof value, &value, sizeof value);
    };
    std::int64_t low = 1, high = 0;
    if (argument.domain) {
      low = evaluate_expression(argument.domain->low, size.symbols);
      high = evaluate_expression(argument.domain->high, size.symbols);
    }
    for (std::int64_t i = 0; argument.role != ArgumentRole::output && i < count; ++i) switch (argument.type) {
      case DataType::f32:
        write(i, next());
        break;
      case DataType::i8:
        write(i, static_cast<std::int8_t>(100 * next()));
        break;
      case DataType::i32:
      case DataType::u32: {
        const std::int64_t drawn =
            low + static_cast<std::int64_t>((next() + 1) * 1e6F) % (high - low + 1 == 0 ? 1 : high - low + 1);
        write(i, static_cast<std::int32_t>(low > high ? (2 * count - 1 - i - count / 3) % count : drawn));
        break;
      }
      default:
        throw std::runtime_error("no values for " + argument.name);
      }
    memory.push_back(std::move(one));
  }
  return memory;
}

/// Compiles on all cores and runs one after the other.
class GpuRunner {
public:
  explicit GpuRunner(std::string show) : show_(std::move(show)) {}

  /// Judges texts against the task's own kernel.
  void judge(const std::string& name, const Task& task, const std::vector<std::string>& sources,
             Tally& tally) {
    const auto wanted = results(task, task.kernel.source);
    for (const std::string& source : sources) {
      const auto got = results(task, source);
      const std::scoped_lock lock(mutex_);
      if (wanted && got && difference(*wanted, *got) < 1e-4) {
        ++tally.right;
        continue;
      }
      ++(got ? tally.wrong : tally.do_not_compile);
      std::printf("%s: %s\n", name.c_str(),
                  !wanted ? "its own kernel does not run"
                  : !got  ? "does not compile"
                          : "wrong");
      if (!show_.empty())
        write_file_atomic(show_ + '/' + name + '_' + std::to_string(shown_++) + ".cu",
                          task.kernel.source + "\n// ------------\n" + source);
    }
  }
  [[nodiscard]] const Device& device() const { return backend_.device(); }

private:
  using Contents = std::vector<std::vector<GridMemory>>;

  /// The buffers of the small sizes after a run; nothing where it does not compile.
  [[nodiscard]] std::optional<Contents> results(const Task& task, const std::string& source) {
    const Kernel kernel{task.kernel.language, source};
    std::optional<CompileResult<CudaBackend::Program>> compiled;
    Contents contents;
    for (const ProblemSize& size : task.sizes) {
      if (size.weight > 0) continue;
      LaunchPlan plan = plan_launches(kernel, task, size, backend_.device().compute_units);
      if (!compiled) compiled.emplace(backend_.compile(kernel, {.plan = plan}, {}));
      if (!compiled->program) return std::nullopt;
      const std::scoped_lock lock(mutex_);
      contents.push_back(run(task, *compiled->program, plan, size));
    }
    return contents;
  }

  [[nodiscard]] std::vector<GridMemory> run(const Task& task, CudaBackend::Program& program, LaunchPlan& plan,
                                            const ProblemSize& size) {
    std::vector<GridMemory> memory = buffers_of(task, size);
    std::map<std::string, CudaBackend::Buffer> buffers;
    for (const GridMemory& one : memory) {
      const auto place =
          buffers.emplace(one.name, backend_.allocate(std::max<std::size_t>(one.content.size(), 1)));
      backend_.upload(place.first->second, 0, one.content);
    }
    for (const ScratchBuffer& scratch : plan.scratch) {
      const auto bytes = static_cast<std::size_t>(scratch.bytes());
      const auto place = buffers.emplace(scratch.name, backend_.allocate(bytes));
      backend_.fill(place.first->second, 0, bytes, std::byte{0xff});
    }
    for (Launch& launch : plan.launches)
      for (LaunchArgument& argument : launch.arguments)
        if (argument.kind == LaunchArgument::Kind::buffer)
          argument.bound.handle = static_cast<std::uint64_t>(buffers.at(argument.name).handle());
    const RunStatus status =
        backend_.run(program, plan, Deadline(std::chrono::steady_clock::now() + std::chrono::seconds(10)));
    for (GridMemory& one : memory) {
      if (!status.finished())
        std::fill(one.content.begin(), one.content.end(), std::byte{0xff}); // nowhere right
      else
        backend_.download(buffers.at(one.name), 0, one.content);
    }
    return memory;
  }

  /// The largest difference of results, relative to the largest one; infinity where one is no number.
  [[nodiscard]] static double difference(const Contents& wanted, const Contents& got) {
    double all = 0;
    for (std::size_t size = 0; size < wanted.size(); ++size)
      for (std::size_t n = 0; n < wanted[size].size(); ++n) {
        const GridMemory &want = wanted[size][n], &have = got[size][n];
        double scale = 1e-30, worst = 0;
        if (want.type != DataType::f32 && want.content != have.content) return HUGE_VAL;
        for (std::size_t i = 0; want.type == DataType::f32 && i < want.count(); ++i) {
          const double a = want.get(i), b = have.get(i);
          if (std::isnan(a) && std::isnan(b)) continue;
          scale = std::max(scale, std::abs(a));
          const double distance = std::abs(a - b);
          if (!(distance <= worst)) worst = std::isnan(distance) ? HUGE_VAL : distance;
        }
        all = std::max(all, worst / scale);
      }
    return all;
  }

  CudaBackend backend_{};
  std::mutex mutex_{};
  std::string show_;
  int shown_ = 0;
};

[[nodiscard]] std::vector<std::string> different(const std::vector<Attempt>& attempts) {
  std::set<std::string> sources;
  for (const Attempt& attempt : attempts) sources.insert(attempt.sources.begin(), attempt.sources.end());
  return {sources.begin(), sources.end()};
}

void print(const std::string& what, std::size_t count, const Tally& tally) {
  std::printf("%zu %s: %d right, %d wrong, %d do not compile\n", count, what.c_str(), tally.right,
              tally.wrong, tally.do_not_compile);
}

void run(const Arguments& arguments) {
  GpuRunner runner(arguments.show);
  std::printf("%s\n", runner.device().name.c_str());
  Tally drafts;
  std::atomic<std::size_t> done{0};
  in_parallel(arguments.kernels, [&](std::size_t at) {
    const std::uint64_t seed = arguments.first + at;
    const GeneratedLaunches made = generated_launches(seed);
    runner.judge("generated_" + std::to_string(seed), made.task, different(all_attempts(made.task)), drafts);
    constexpr std::size_t often = 25;
    if (const std::size_t count = ++done; count % often == 0) {
      std::printf("%zu kernels so far\n", count);
      std::fflush(stdout);
    }
  });
  print("generated kernels, all drafts of one step", arguments.kernels, drafts);
  Tally sequences;
  const std::vector<std::string> names{
      "softmax", "layer_norm", "rms_norm", "row_sum",        "attention",       "dequantize_gemv",
      "gemm",    "transpose",  "conv2d",   "gemm_bias_gelu", "rotary_embedding"};
  in_parallel(names.size() * arguments.sequences, [&](std::size_t at) {
    const std::string& name = names[at % names.size()];
    const Task task = cuda_task(name);
    const auto sequence = random_sequence(task, arguments.first + 1000 + at / names.size(), 6, h100());
    runner.judge(name + ' ' + joined(sequence.keys), task, {sequence.source}, sequences);
  });
  print("sequences of up to six steps", names.size() * arguments.sequences, sequences);
}

} // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"What the offline coder makes of CUDA kernels, run on a GPU"};
  app.add_option("--kernels", arguments.kernels, "generated kernels");
  app.add_option("--first", arguments.first, "seed of the first one");
  app.add_option("--sequences", arguments.sequences, "random sequences of steps for each task");
  app.add_option("--show", arguments.show, "folder for texts that are wrong");
  CLI11_PARSE(app, argc, argv);
  try {
    run(arguments);
    return 0;
  } catch (const Error& error) {
    const bool absent = error.id() == error_id::backend_device || error.id() == error_id::backend_compiler;
    std::fprintf(stderr, "%s%s\n",
                 absent ? "SKIPPED: " : "bench_generated_launches: ", error.message().c_str());
    return absent ? 77 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_generated_launches: %s\n", error.what());
    return 2;
  }
}
