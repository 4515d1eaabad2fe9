// A backend of your own: OpenCL, on the first device of the first platform that has one. `OpenClBackend` is a
// plain struct that models `mtmc::Backend`; the trust protocol, the conformance suite and the whole loop come
// with it. The library is opened at run time, so this builds without any OpenCL header; where library or
// device are missing, the program says what to install and ends with code 3.

#include <mtmc/evaluator/backend_conformance.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/mtmc.hpp>
#include <mtmc/policy/gpu_rules.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "opencl_interface.hpp"

namespace {

using namespace opencl;

/// A handle that is released with its last owner.
using Owned = std::shared_ptr<void>;
Owned owned(void* handle, OpenCl::Release* release) {
  return handle == nullptr ? Owned{} : Owned{handle, [release](void* held) { release(held); }};
}

/// For what no candidate can be blamed for.
void demand(Code code, const char* function) {
  if (code != 0)
    throw mtmc::Error(mtmc::error_id::backend_device,
                      std::string(function) + " gave OpenCL error " + std::to_string(code),
                      "CL/cl.h lists the codes; see whether the device still works");
}

[[noreturn]] void no_device(const std::string& tried) {
  throw mtmc::Error(mtmc::error_id::backend_device, "there is no OpenCL device: " + tried,
                    "Install the driver of yours; for the processor: apt install ocl-icd-libopencl1 "
                    "pocl-opencl-icd");
}

/// Reads "…:3:7: error: message" of Clang, on which most compilers of OpenCL are built, and PoCL's "error:
/// …:3:7: message". `failed`: there must be an error, if need be the whole log.
std::vector<mtmc::Diagnostic> read_log(const std::string& log, bool failed) {
  std::vector<mtmc::Diagnostic> found;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    for (auto at = line.find(':'); at != std::string::npos; at = line.find(':', at + 1)) {
      mtmc::Diagnostic diagnostic;
      int used = 0;
      (void)std::sscanf(line.c_str() + at, ":%6d:%6d: %n", &diagnostic.line, &diagnostic.column, &used);
      if (used == 0) continue;
      diagnostic.message = line.substr(at + static_cast<Size>(used));
      for (const std::string word : {"fatal ", "error: ", "warning: "})
        if (diagnostic.message.starts_with(word)) diagnostic.message.erase(0, word.size());
      const bool error = line.find("error: ") != std::string::npos;
      if (!error && line.find("warning: ") == std::string::npos) break; // a note
      diagnostic.severity = error ? mtmc::Severity::error : mtmc::Severity::warning;
      failed = failed && !error;
      found.push_back(std::move(diagnostic));
      break;
    }
  if (failed) found.push_back({mtmc::Severity::error, 0, 0, "the compiler failed: " + log, {}, {}});
  return found;
}

struct OpenClBuffer {
  Owned memory;
  Size bytes = 0;
  [[nodiscard]] std::uint64_t handle() const { return reinterpret_cast<std::uintptr_t>(memory.get()); }
};

struct OpenClProgram {
  Owned program;
};

/// OpenCL C on one device, in this process. A kernel that crashes takes the process with it where the device
/// is the processor (PoCL), and nothing in OpenCL ends a kernel that never does: it is reported as timed_out
/// and left running. Who judges kernels of unknown origin runs the evaluator in a worker process.
///
/// A launch line's grid counts work-groups, its block work-items of a group. With dynamic shared bytes the
/// kernel has one more parameter at the end, a `__local` pointer to them.
class OpenClBackend {
public:
  using Program = OpenClProgram;
  using Buffer = OpenClBuffer;
  // On PoCL the compiler runs on the cores that are being timed.
  static constexpr int max_concurrency = 1;

  OpenClBackend() {
    std::array<void*, 16> platforms{};
    Word count = 0;
    if (cl_->platforms(platforms.size(), platforms.data(), &count) != 0 || count == 0)
      no_device("libOpenCL.so.1 knows no platform");
    constexpr std::uint64_t any_type = 0xffffffff;
    for (Word i = 0; i < count && i < platforms.size() && id_ == nullptr; ++i)
      if (Word found = 0; cl_->devices(platforms[i], any_type, 1, &id_, &found) != 0) id_ = nullptr;
    if (id_ == nullptr) no_device("none of " + std::to_string(count) + " platforms has one");
    Code code = 0;
    context_ = owned(cl_->context(nullptr, 1, &id_, nullptr, nullptr, &code), cl_->release_context);
    demand(code, "clCreateContext");
    renew_queue();
    constexpr Word processor = 2;
    device_.name = text_of(device_name);
    device_.kind = (number_of(device_type) & processor) != 0 ? "cpu" : "gpu";
    device_.arch = text_of(device_version);
    device_.compute_units = static_cast<int>(number_of(device_compute_units));
    device_.memory_bytes = static_cast<std::int64_t>(number_of(device_memory_bytes));
    device_.shared_memory_bytes = static_cast<std::int64_t>(number_of(device_local_bytes));
    device_.clock_hz = static_cast<double>(number_of(device_clock_mhz)) * 1e6;
    device_.software["driver"] = text_of(device_driver);
    if (text_of(device_extensions).find("cl_khr_fp64") != std::string::npos) device_.features = {"fp64"};
    // Twice the last cache, of which every work-item of `touch` changes a word.
    swept_ = allocate(std::max<Size>(2 * number_of(device_cache_bytes), Size{32} << 20));
    const mtmc::Kernel touch{
        mtmc::languages::opencl, "__kernel void touch(__global uint* w) { ++w[get_global_id(0)]; }", {}};
    sweeper_ = compile(touch, {}, {}).program;
    if (!sweeper_) no_device("the compiler of " + device_.name + " does not work");
  }

  [[nodiscard]] const mtmc::Device& device() const { return device_; }
  [[nodiscard]] std::string identity() const {
    return "opencl: " + device_.name + "; " + device_.arch + "; " + device_.software.at("driver");
  }

  [[nodiscard]] std::vector<mtmc::Diagnostic> screen(const mtmc::Kernel&) const { return {}; }

  [[nodiscard]] mtmc::CompileResult<Program>
  compile(const mtmc::Kernel& kernel, const mtmc::CompileOptions& options, std::stop_token stop) {
    const auto begin = std::chrono::steady_clock::now();
    const auto over = [&] {
      return stop.stop_requested() || std::chrono::steady_clock::now() > options.deadline;
    };
    mtmc::CompileResult<Program> result;
    // OpenCL cannot interrupt a compiler: the deadline is looked at before and after.
    if (result.timed_out = over(); result.timed_out) return result;
    const char* text = kernel.source.c_str();
    Code code = 0;
    const auto program = owned(cl_->program(context_.get(), 1, &text, nullptr, &code), cl_->release_program);
    demand(code, "clCreateProgramWithSource");
    const auto built =
        cl_->build(program.get(), 1, &id_, "-cl-std=CL1.2 -cl-kernel-arg-info", nullptr, nullptr);
    if (built != build_failed) demand(built, "clBuildProgram");
    Size bytes = 0;
    demand(cl_->build_info(program.get(), id_, build_log, 0, nullptr, &bytes), "clGetProgramBuildInfo");
    std::string log(bytes, '\0');
    demand(cl_->build_info(program.get(), id_, build_log, bytes, log.data(), nullptr),
           "clGetProgramBuildInfo");
    result.diagnostics = read_log(log.c_str(), built == build_failed);
    bool missing = false;
    for (const auto& launch : options.plan.launches) {
      if (built == build_failed || new_kernel(program.get(), launch.entry)) continue;
      missing = true;
      result.diagnostics.push_back(
          {mtmc::Severity::error,
           launch.line,
           0,
           "the launch line calls `" + launch.entry + "`, which is not a kernel of the text",
           "Define a `__kernel void " + launch.entry + "`, or correct the launch line",
           {}});
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (result.timed_out = over(); result.timed_out)
      result.diagnostics.clear();
    else if (built == 0 && !missing)
      result.program = std::make_shared<Program>(Program{program});
    return result;
  }

  [[nodiscard]] Buffer allocate(Size bytes) {
    Code code = 0;
    constexpr std::uint64_t read_write = 1;
    // OpenCL has no empty buffers.
    auto memory = owned(cl_->memory(context_.get(), read_write, std::max<Size>(bytes, 1), nullptr, &code),
                        cl_->release_memory);
    if (code == 0) return {std::move(memory), bytes};
    throw mtmc::Error(mtmc::error_id::backend_memory,
                      std::to_string(bytes) + " bytes could not be allocated: OpenCL error " +
                          std::to_string(code),
                      "Choose smaller sizes");
  }
  void upload(Buffer& buffer, Size offset, std::span<const std::byte> content) {
    require_range(buffer, offset, content.size());
    if (content.empty()) return;
    demand(cl_->write(queue_.get(), buffer.memory.get(), 1, offset, content.size(), content.data(), 0,
                      nullptr, nullptr),
           "clEnqueueWriteBuffer");
  }
  void download(Buffer& buffer, Size offset, std::span<std::byte> target) {
    require_range(buffer, offset, target.size());
    if (target.empty()) return;
    demand(cl_->read(queue_.get(), buffer.memory.get(), 1, offset, target.size(), target.data(), 0, nullptr,
                     nullptr),
           "clEnqueueReadBuffer");
  }

  [[nodiscard]] mtmc::RunStatus run(Program& program, const mtmc::LaunchPlan& plan, mtmc::Deadline deadline) {
    return time(program, {&plan, 1}, false, deadline).status;
  }

  [[nodiscard]] mtmc::TimedRun time(Program& program, std::span<const mtmc::LaunchPlan> group, bool cold,
                                    mtmc::Deadline deadline) {
    // All that can be done before the clock starts is done there.
    std::vector<Ready> launches;
    for (const auto& plan : group)
      for (const auto& launch : plan.launches)
        if (auto refused = prepare(program, launch, launches.emplace_back()); !refused.empty())
          return {{mtmc::RunOutcome::launch_failed,
                   "launch of " + launch.entry + ", line " + std::to_string(launch.line) + ": " + refused},
                  0};
    if (cold) sweep();
    demand(cl_->finish(queue_.get()), "clFinish");
    mtmc::TimedRun result;
    if (launches.empty()) return result;
    const auto begin = std::chrono::steady_clock::now();
    Owned last;
    for (const auto& ready : launches) {
      void* event = nullptr;
      const unsigned char zero = 0;
      for (const auto& [part, bytes] : ready.zeroed)
        demand(cl_->fill(queue_.get(), part, &zero, 1, 0, bytes, 0, nullptr, nullptr), "clEnqueueFillBuffer");
      const auto code = cl_->launch(queue_.get(), ready.kernel.get(), 3, nullptr, ready.global.data(),
                                    ready.local.data(), 0, nullptr, &event);
      last = owned(event, cl_->release_event);
      if (code == 0) continue;
      (void)cl_->finish(queue_.get());
      result.status = {mtmc::RunOutcome::launch_failed,
                       "the launch was refused with OpenCL error " + std::to_string(code)};
      return result;
    }
    const auto done = wait(last.get(), deadline);
    if (!done) {
      renew_queue(); // the old one is busy for good
      result.status = {mtmc::RunOutcome::timed_out, "the kernel was still running at its deadline"};
    } else if (done->code < 0) {
      result.status = {done->code == device_not_available ? mtmc::RunOutcome::device_lost
                                                          : mtmc::RunOutcome::faulted,
                       "the kernel ended with OpenCL error " + std::to_string(done->code)};
    } else {
      result.seconds = std::chrono::duration<double>(done->when - begin).count();
    }
    return result;
  }

private:
  /// A launch with its arguments set.
  struct Ready {
    Owned kernel;
    std::vector<Owned> parts;
    std::vector<std::pair<void*, Size>> zeroed; // of those, and their bytes
    std::array<Size, 3> global{};
    std::array<Size, 3> local{};
  };
  struct Done {
    Code code = 0;
    std::chrono::steady_clock::time_point when{};
  };

  static void require_range(const Buffer& buffer, Size offset, Size bytes) {
    if (offset > buffer.bytes || bytes > buffer.bytes - offset)
      throw std::out_of_range(std::to_string(bytes) + " bytes at " + std::to_string(offset) +
                              " of an OpenClBuffer of " + std::to_string(buffer.bytes));
  }
  [[nodiscard]] std::uint64_t number_of(Word what) const {
    std::uint64_t value = 0; // little-endian, so that a shorter answer is right too
    demand(cl_->device_info(id_, what, sizeof(value), &value, nullptr), "clGetDeviceInfo");
    return value;
  }
  [[nodiscard]] std::string text_of(Word what) const {
    Size bytes = 0;
    demand(cl_->device_info(id_, what, 0, nullptr, &bytes), "clGetDeviceInfo");
    std::string text(bytes, '\0');
    demand(cl_->device_info(id_, what, bytes, text.data(), nullptr), "clGetDeviceInfo");
    return text.c_str();
  }
  void renew_queue() {
    Code code = 0;
    queue_ = owned(cl_->queue(context_.get(), id_, 0, &code), cl_->release_queue);
    demand(code, "clCreateCommandQueue");
  }
  [[nodiscard]] Owned new_kernel(void* program, const std::string& entry) const {
    Code code = 0;
    return owned(cl_->kernel(program, entry.c_str(), &code), cl_->release_kernel);
  }

  /// Changes more memory than the caches hold.
  void sweep() {
    const auto kernel = new_kernel(sweeper_->program.get(), "touch");
    void* const memory = swept_.memory.get();
    demand(cl_->argument(kernel.get(), 0, sizeof(memory), &memory), "clSetKernelArg");
    const Size words = swept_.bytes / 4 / 64 * 64;
    const Size local = 64;
    demand(cl_->launch(queue_.get(), kernel.get(), 1, nullptr, &words, &local, 0, nullptr, nullptr),
           "clEnqueueNDRangeKernel");
  }

  /// Sets all arguments. Gives the reason if the launch is impossible; empty if it is not.
  [[nodiscard]] std::string prepare(Program& program, const mtmc::Launch& launch, Ready& ready) {
    ready.kernel = new_kernel(program.program.get(), launch.entry);
    if (!ready.kernel) return "the program has no such kernel";
    if (launch.cluster != std::array<std::int64_t, 3>{1, 1, 1}) return "OpenCL has no clusters";
    for (Size i = 0; i < 3; ++i) {
      ready.local[i] = static_cast<Size>(launch.block[i]);
      ready.global[i] = static_cast<Size>(launch.grid[i]) * ready.local[i];
    }
    Word index = 0;
    for (const auto& argument : launch.arguments) {
      const auto refused =
          argument.kind == mtmc::LaunchArgument::Kind::buffer   ? set_buffer(ready, index, argument)
          : argument.kind == mtmc::LaunchArgument::Kind::scalar ? set_scalar(ready, index, argument)
                                                                : "OpenCL has no tensor maps";
      ++index;
      if (!refused.empty())
        return "argument " + std::to_string(index) + " (" + argument.name + "): " + refused;
    }
    if (launch.shared_bytes > 0 &&
        cl_->argument(ready.kernel.get(), index, static_cast<Size>(launch.shared_bytes), nullptr) != 0)
      return "for dynamic shared bytes the kernel needs a __local pointer as its last parameter";
    return {};
  }

  [[nodiscard]] std::string set_buffer(Ready& ready, Word index, const mtmc::LaunchArgument& argument) {
    const auto& bound = argument.bound;
    const auto refuse = [&](const std::string& reason) {
      throw mtmc::Error(mtmc::error_id::backend_memory, "argument " + argument.name + " " + reason,
                        "Bind every buffer to memory of this backend, at offsets that are multiples of " +
                            std::to_string(number_of(device_alignment_bits) / 8));
    };
    if (bound.handle == 0) refuse("is bound to no buffer");
    // A part of a buffer is a buffer of its own, since OpenCL 1.2 knows no pointers on the host.
    const std::array<Size, 2> region{static_cast<Size>(bound.offset), static_cast<Size>(bound.bytes)};
    Code code = 0;
    ready.parts.push_back(owned(cl_->part(reinterpret_cast<void*>(static_cast<std::uintptr_t>(bound.handle)),
                                          0, part_is_region, region.data(), &code),
                                cl_->release_memory));
    if (code != 0) refuse("cannot be bound: OpenCL error " + std::to_string(code));
    void* const part = ready.parts.back().get();
    if (!parameter_type(ready, index).ends_with('*')) return "the parameter is not a pointer";
    if (argument.zeroed) ready.zeroed.emplace_back(part, region[1]);
    code = cl_->argument(ready.kernel.get(), index, sizeof(part), &part);
    return code == 0 ? std::string{} : "refused with OpenCL error " + std::to_string(code);
  }

  /// A launch line's expressions are i64; the parameter says what it wants.
  [[nodiscard]] std::string set_scalar(Ready& ready, Word index, const mtmc::LaunchArgument& argument) {
    const auto type = parameter_type(ready, index);
    const bool floating = mtmc::is_floating(argument.type);
    Code code = 0;
    const auto hand_on = [&](auto value) {
      code = cl_->argument(ready.kernel.get(), index, sizeof(value), &value);
    };
    const auto real = [&]<class T>(T) {
      hand_on(floating ? static_cast<T>(argument.real) : static_cast<T>(argument.integer));
      return true;
    };
    const auto integer = [&]<class T>(T) {
      if (floating || !std::in_range<T>(argument.integer)) return false;
      hand_on(static_cast<T>(argument.integer));
      return true;
    };
    const bool fits = type == "float"    ? real(float{})
                      : type == "double" ? real(double{})
                      : type == "long"   ? integer(std::int64_t{})
                      : type == "int"    ? integer(std::int32_t{})
                      : type == "short"  ? integer(std::int16_t{})
                      : type == "char"   ? integer(std::int8_t{})
                      : type == "ulong"  ? integer(std::uint64_t{})
                      : type == "uint"   ? integer(std::uint32_t{})
                      : type == "ushort" ? integer(std::uint16_t{})
                      : type == "uchar"  ? integer(std::uint8_t{})
                                         : false;
    if (!fits)
      return "the value does not fit the parameter's type " + (type.empty() ? "(there is none)" : type);
    return code == 0 ? std::string{} : "refused with OpenCL error " + std::to_string(code);
  }
  [[nodiscard]] std::string parameter_type(const Ready& ready, Word index) const {
    std::array<char, 128> name{};
    (void)cl_->argument_info(ready.kernel.get(), index, argument_type_name, name.size() - 1, name.data(),
                             nullptr);
    return name.data();
  }

  /// How and when the event ended; nothing if the deadline came first.
  [[nodiscard]] std::optional<Done> wait(void* event, mtmc::Deadline deadline) {
    struct Shared {
      std::mutex mutex;
      std::condition_variable changed;
      std::optional<Done> done;
    };
    const auto shared = std::make_shared<Shared>();
    // The driver's own copy, since it may call after we have given up.
    auto copy = std::make_unique<std::shared_ptr<Shared>>(shared);
    const auto called = [](void*, Code status, void* data) {
      const std::unique_ptr<std::shared_ptr<Shared>> mine(static_cast<std::shared_ptr<Shared>*>(data));
      const Done done{status, std::chrono::steady_clock::now()};
      const std::scoped_lock lock((*mine)->mutex);
      (*mine)->done = done;
      (*mine)->changed.notify_all();
    };
    demand(cl_->when_done(event, 0, called, copy.get()), "clSetEventCallback");
    (void)copy.release();
    demand(cl_->flush(queue_.get()), "clFlush");
    std::unique_lock lock(shared->mutex);
    const auto ended = [&] { return shared->done.has_value(); };
    // Waiting until the end of time overflows in some standard libraries.
    if (deadline == mtmc::Deadline::max())
      shared->changed.wait(lock, ended);
    else
      (void)shared->changed.wait_until(lock, deadline, ended);
    return shared->done;
  }

  [[nodiscard]] static std::shared_ptr<const OpenCl> opened() {
    try {
      return std::make_shared<const OpenCl>();
    } catch (const mtmc::SharedLibraryError& error) {
      no_device(error.what());
    }
  }

  std::shared_ptr<const OpenCl> cl_ = opened();
  void* id_ = nullptr;
  Owned context_;
  Owned queue_;
  mtmc::Device device_;
  Buffer swept_;
  std::shared_ptr<Program> sweeper_;
};
static_assert(mtmc::check_backend<OpenClBackend>());

/// C = A B, an element for each work-item.
const mtmc::Kernel naive{mtmc::languages::opencl,
                         R"(
//@ launch product<<<(ceil_div(N, 8), ceil_div(N, 8)), (8, 8)>>>(A, B, C, N)
__kernel void product(__global const float* A, __global const float* B, __global float* C, int N) {
  int j = get_global_id(0), i = get_global_id(1);
  if (i < N && j < N) {
    float sum = 0;
    for (int k = 0; k < N; ++k) sum += A[i * N + k] * B[k * N + j];
    C[i * N + j] = sum;
  }
}
)",
                         {}};

} // namespace

int main() try {
  using mtmc::ArgumentRole;
  OpenClBackend backend;
  auto probe = mtmc::test::opencl_probe(!backend.device().features.empty());
  // What would end this process, or never end in it: see OpenClBackend.
  probe.never_ends.clear();
  probe.crashes.clear();
  const auto report = mtmc::test::check_conformance(backend, probe);
  std::printf("%s\n", report.to_text().c_str());

  const mtmc::Task task{
      .name = "product",
      .kernel = naive,
      .arguments = {{.name = "A", .role = ArgumentRole::input, .shape = {"N", "N"}},
                    {.name = "B", .role = ArgumentRole::input, .shape = {"N", "N"}},
                    {.name = "C", .role = ArgumentRole::output, .shape = {"N", "N"}},
                    {.name = "N", .role = ArgumentRole::scalar, .type = mtmc::DataType::i32}},
      .sizes = {{.symbols = {{"N", 512}}}, {.symbols = {{"N", 61}}, .weight = 0}},
      .flops = "2*N*N*N"};
  // What to do is chosen by the rules for GPUs, whatever the device is: work-items are their threads.
  mtmc::TerminalReport steps{stdout};
  mtmc::Loop loop{mtmc::RulesPolicy{{}, mtmc::default_gpu_rules()},
                  mtmc::TransformCoder{},
                  mtmc::AstRegionFinder{},
                  mtmc::KernelEvaluator<OpenClBackend>(std::move(backend)),
                  {.max_steps = 3, .repairs = 0, .observer = steps.observer()}};
  const mtmc::Result result = loop.optimize(task);
  std::printf("%s\nproduct of matrices: speed-up %s over an element for each work-item\n",
              result.best.source.c_str(), mtmc::speed_up_text(result.speed_up).c_str());
  // Gaps are expected: two kernels were left out.
  const bool conforms = report.result() != mtmc::test::ConformanceResult::failed;
  return conforms && !result.error ? 0 : 1;
} catch (const mtmc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
