#pragma once
// A GPU for machines without one: CUDA C++ compiled by g++, every thread of a block a fiber. Kernels share
// this process's address space, as on a GPU, so tests give it only kernels that stay near their buffers.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/shared_library.hpp>
#include <mtmc/support/stopwatch.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc_test {

/// ThreadSanitizer cannot follow fibers.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool can_emulate = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool can_emulate = false;
#else
inline constexpr bool can_emulate = true;
#endif
#else
inline constexpr bool can_emulate = true;
#endif

/// What stands in front of a kernel's text.
inline constexpr std::string_view emulated_device_support = R"cpp(
#include <math.h>
#include <setjmp.h>
#include <stdexcept>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <utility>
#include <vector>
#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
struct uint3 { unsigned x, y, z; };
struct uint4 { unsigned x, y, z, w; };
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static uint3 threadIdx, blockIdx, blockDim, gridDim;
template <class To, class From> static inline To emulated_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
static inline float __int_as_float(int x) { return emulated_bits<float>(x); }
static inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }
static inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline float __double2float_rn(double x) { return (float)x; }

namespace emulated {
struct Body {
  virtual void call() = 0;
};
static Body* body;
enum class Wait { block, warp };
struct Fiber {
  jmp_buf place;
  std::vector<char> stack = std::vector<char>(1 << 16);
  bool started = false;
  bool done = false;
  bool waits = false; // for the others of its block or warp
  Wait wait = Wait::block;
};
static jmp_buf scheduler;
static std::vector<Fiber> fibers;
static unsigned current;
static bool backwards;           // blocks and threads take turns from the last to the first
static void (*before_block)(); // may be null
static void yield() {
  if (_setjmp(fibers[current].place) == 0) _longjmp(scheduler, 1);
}
static void wait_for(Wait others) {
  fibers[current].waits = true;
  fibers[current].wait = others;
  yield();
}
static void live() {
  for (;;) {
    body->call();
    fibers[current].done = true;
    yield();
  }
}
static void resume() {
  auto& fiber = fibers[current];
  if (_setjmp(scheduler) != 0) return;
  if (fiber.started) _longjmp(fiber.place, 1);
  fiber.started = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack.data();
  context.uc_stack.ss_size = fiber.stack.size();
  makecontext(&context, live, 0);
  setcontext(&context);
}
static uint3 place_of(unsigned thread) {
  return {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}
static unsigned in_turn(unsigned turn, unsigned count) { return backwards ? count - 1 - turn : turn; }
// Whether all threads from `first` on that are not done wait for `others`.
static bool all_wait(unsigned first, unsigned end, Wait others) {
  for (unsigned i = first; i < end; ++i)
    if (!fibers[i].done && !(fibers[i].waits && fibers[i].wait == others)) return false;
  return true;
}
static void let_go(unsigned first, unsigned end) {
  for (unsigned i = first; i < end; ++i) fibers[i].waits = false;
}
static void run_block(bool barriers) {
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  if (!barriers) {
    for (unsigned turn = 0; turn < threads; ++turn) {
      current = in_turn(turn, threads);
      threadIdx = place_of(current);
      body->call();
    }
    return;
  }
  if (fibers.size() < threads) fibers = std::vector<Fiber>(threads);
  for (unsigned i = 0; i < threads; ++i) fibers[i].done = fibers[i].waits = false;
  for (bool any = true; any;) {
    any = false;
    bool moves = false;
    for (unsigned turn = 0; turn < threads; ++turn) {
      current = in_turn(turn, threads);
      if (fibers[current].done || fibers[current].waits) continue;
      moves = true;
      threadIdx = place_of(current);
      resume();
      any = any || !fibers[current].done;
    }
    if (all_wait(0, threads, Wait::block)) {
      let_go(0, threads);
    } else {
      for (unsigned first = 0; first < threads; first += 32) {
        const unsigned end = first + 32 < threads ? first + 32 : threads;
        if (all_wait(first, end, Wait::warp)) let_go(first, end);
      }
    }
    for (unsigned i = 0; i < threads; ++i) {
      any = any || !fibers[i].done;
      moves = moves || (!fibers[i].done && !fibers[i].waits);
    }
    if (any && !moves) {
      fibers.clear();
      throw std::runtime_error("threads wait for others that wait elsewhere");
    }
  }
}
struct Argument {
  long long integer;
  double real;
};
template <class P> P value(const Argument& argument) {
  if constexpr (std::is_pointer_v<P>) return (P)argument.integer;
  else if constexpr (std::is_floating_point_v<P>) return (P)argument.real;
  else return (P)argument.integer;
}
template <class... P, std::size_t... I>
void launch(void (*kernel)(P...), const Argument* arguments, bool barriers, std::index_sequence<I...>) {
  struct Call : Body {
    void (*kernel)(P...);
    const Argument* arguments;
    void call() override { kernel(value<P>(arguments[I])...); }
  };
  Call call;
  call.kernel = kernel;
  call.arguments = arguments;
  body = &call;
  for (unsigned z = 0; z < gridDim.z; ++z)
    for (unsigned y = 0; y < gridDim.y; ++y)
      for (unsigned x = 0; x < gridDim.x; ++x) {
        blockIdx = {in_turn(x, gridDim.x), in_turn(y, gridDim.y), in_turn(z, gridDim.z)};
        if (before_block != nullptr) before_block();
        run_block(barriers);
      }
}
template <class... P> void launch(void (*kernel)(P...), const Argument* arguments, bool barriers) {
  launch(kernel, arguments, barriers, std::index_sequence_for<P...>());
}
} // namespace emulated
static inline void __syncthreads() { emulated::wait_for(emulated::Wait::block); }
static inline void __syncwarp(unsigned = 0xffffffffu) { emulated::wait_for(emulated::Wait::warp); }
namespace emulated {
static double exchanged[1024];
template <class T> T exchange(T value, unsigned from) {
  static_assert(sizeof(T) <= sizeof(double));
  memcpy(&exchanged[current], &value, sizeof value);
  wait_for(Wait::warp);
  T other;
  memcpy(&other, &exchanged[from < blockDim.x * blockDim.y * blockDim.z ? from : current], sizeof other);
  wait_for(Wait::warp);
  return other;
}
} // namespace emulated
template <class T> T __shfl_xor_sync(unsigned, T value, int distance) {
  return emulated::exchange(value, emulated::current ^ (unsigned)distance);
}
template <class T> T __shfl_up_sync(unsigned, T value, int distance) {
  const bool inside = (int)(emulated::current % 32) >= distance;
  return emulated::exchange(value, emulated::current - (inside ? (unsigned)distance : 0));
}
template <class T> T __shfl_down_sync(unsigned, T value, int distance) {
  const bool inside = (int)(emulated::current % 32) + distance < 32;
  return emulated::exchange(value, emulated::current + (inside ? (unsigned)distance : 0));
}
template <class T> T __shfl_sync(unsigned, T value, int lane) {
  return emulated::exchange(value, emulated::current / 32 * 32 + (unsigned)lane % 32);
}
// <cuda_pipeline.h>: copies that have arrived as soon as they begin
static inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
  memcpy(to, from, bytes - zeros);
  memset((char*)to + (bytes - zeros), 0, zeros);
}
static inline void __pipeline_commit() {}
static inline void __pipeline_wait_prior(size_t) {}
#line 1 "kernel.cu"
)cpp";

/// A text of kernels without the lines that include what is part of that already.
inline std::string without_pipeline_header(std::string text) {
  constexpr std::string_view line = "#include <cuda_pipeline.h>";
  for (std::size_t at; (at = text.find(line)) != std::string::npos;) text.erase(at, line.size());
  return text;
}

struct EmulatedBuffer {
  explicit EmulatedBuffer(std::size_t size)
      : memory(new(std::align_val_t{256}) std::byte[size > 0 ? size : 1], Free{}), bytes(size) {}
  [[nodiscard]] std::uint64_t handle() const { return reinterpret_cast<std::uint64_t>(memory.get()); }

  struct Free {
    void operator()(std::byte* at) const { ::operator delete[](at, std::align_val_t{256}); }
  };
  std::unique_ptr<std::byte[], Free> memory;
  std::size_t bytes;
};

struct EmulatedProgram {
  struct Argument {
    std::int64_t integer = 0;
    double real = 0;
  };
  using Run = void(int, const unsigned*, const unsigned*, const Argument*);

  mtmc::SharedLibrary library;
  Run* run = nullptr;
  std::vector<std::string> entries; // a plan may hold one launch of several, to be timed alone
};

class EmulatedDevice {
public:
  using Program = EmulatedProgram;
  using Buffer = EmulatedBuffer;
  static constexpr bool runs_judge_kernels = true;

  EmulatedDevice() {
    if (!can_emulate)
      throw mtmc::Error(mtmc::error_id::backend_device, "fibers cannot be followed by this sanitizer",
                        "Run this test in another build");
    device_.name = "emulated GPU";
    device_.kind = "gpu";
    device_.compute_units = 2;
  }

  [[nodiscard]] const mtmc::Device& device() const { return device_; }

  [[nodiscard]] std::vector<mtmc::Diagnostic> screen(const mtmc::Kernel&) const { return {}; }

  [[nodiscard]] mtmc::CompileResult<Program> compile(const mtmc::Kernel& kernel,
                                                     const mtmc::CompileOptions& options, std::stop_token) {
    const mtmc::TemporaryFolder folder;
    const bool barriers = kernel.source.find("__sync") != std::string::npos ||
                          kernel.source.find("__shfl") != std::string::npos;
    std::string text = std::string(emulated_device_support) + without_pipeline_header(kernel.source) +
                       "\nextern \"C\" void run_launch("
                       "int which, const unsigned* grid, const unsigned* block, "
                       "const emulated::Argument* arguments) {\n"
                       "  gridDim = {grid[0], grid[1], grid[2]};\n"
                       "  blockDim = {block[0], block[1], block[2]};\n";
    std::vector<std::string> entries;
    for (std::size_t i = 0; i < options.plan.launches.size(); ++i) {
      entries.push_back(options.plan.launches[i].entry);
      text += "  if (which == " + std::to_string(i) + ") emulated::launch(" + options.plan.launches[i].entry +
              ", arguments, " + (barriers ? "true" : "false") + ");\n";
    }
    text += "}\n";
    mtmc::write_file_atomic(folder.path() + "/kernel.cpp", text);
    mtmc::ProcessOptions process;
    // Jumps from stack to stack are what a fortified library takes for an attack.
    process.arguments = {"g++",
                         "-std=gnu++20",
                         "-O1",
                         "-w",
                         "-U_FORTIFY_SOURCE",
                         "-ffp-contract=off",
                         "-fPIC",
                         "-shared",
                         folder.path() + "/kernel.cpp",
                         "-o",
                         folder.path() + "/kernel.so"};
#ifdef __SANITIZE_ADDRESS__
    // What kernels do to buffers; its checks of the stack cannot follow fibers.
    process.arguments.insert(process.arguments.end(), {"-fsanitize=address", "--param=asan-stack=0"});
#endif
    const auto built = mtmc::run_process(process);
    mtmc::CompileResult<Program> result;
    result.seconds = built.seconds;
    if (!built.succeeded()) {
      result.diagnostics.emplace_back().message = built.error.substr(0, 2000);
      return result;
    }
    const std::array<std::string, 1> names{folder.path() + "/kernel.so"};
    auto library = mtmc::SharedLibrary::open(names);
    auto* const run = library.symbol<EmulatedProgram::Run>("run_launch");
    result.program = std::make_shared<Program>(Program{std::move(library), run, std::move(entries)});
    return result;
  }

  [[nodiscard]] Buffer allocate(std::size_t bytes) { return Buffer(bytes); }
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
    check(buffer, offset, content.size());
    if (!content.empty()) std::memcpy(buffer.memory.get() + offset, content.data(), content.size());
  }
  void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
    check(buffer, offset, target.size());
    if (!target.empty()) std::memcpy(target.data(), buffer.memory.get() + offset, target.size());
  }

  [[nodiscard]] mtmc::RunStatus run(Program& program, const mtmc::LaunchPlan& plan, mtmc::Deadline) {
    for (const auto& launch : plan.launches) {
      std::vector<EmulatedProgram::Argument> arguments;
      for (const auto& argument : launch.arguments) {
        auto& value = arguments.emplace_back();
        const bool scalar = argument.kind == mtmc::LaunchArgument::Kind::scalar;
        value.integer = scalar ? argument.integer
                               : static_cast<std::int64_t>(argument.bound.handle) + argument.bound.offset;
        value.real = mtmc::is_floating(argument.type) ? argument.real : static_cast<double>(value.integer);
        if (argument.zeroed)
          std::memset(reinterpret_cast<void*>(value.integer), 0,
                      static_cast<std::size_t>(argument.bound.bytes));
      }
      std::array<unsigned, 3> grid{};
      std::array<unsigned, 3> block{};
      for (std::size_t axis = 0; axis < 3; ++axis) {
        grid[axis] = static_cast<unsigned>(launch.grid[axis]);
        block[axis] = static_cast<unsigned>(launch.block[axis]);
      }
      const auto entry = std::find(program.entries.begin(), program.entries.end(), launch.entry);
      if (entry == program.entries.end()) throw std::out_of_range("no kernel " + launch.entry);
      program.run(static_cast<int>(entry - program.entries.begin()), grid.data(), block.data(),
                  arguments.data());
    }
    return {};
  }
  [[nodiscard]] mtmc::TimedRun time(Program& program, std::span<const mtmc::LaunchPlan> group, bool,
                                    mtmc::Deadline deadline) {
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& plan : group) (void)run(program, plan, deadline);
    return {{}, mtmc::seconds_since(begin)};
  }

private:
  static void check(const Buffer& buffer, std::size_t offset, std::size_t bytes) {
    if (offset > buffer.bytes || bytes > buffer.bytes - offset)
      throw std::out_of_range("outside of an emulated buffer");
  }

  mtmc::Device device_;
};

static_assert(mtmc::check_backend<EmulatedDevice>());

} // namespace mtmc_test
