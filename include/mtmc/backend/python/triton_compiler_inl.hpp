#pragma once
/// Definitions of backend/python/triton_compiler.hpp.

#include <mtmc/backend/cuda/cubin_screen.hpp>
#include <mtmc/backend/python/python_failure.hpp>
#include <mtmc/backend/python/python_process.hpp>
#include <mtmc/backend/python/triton_compiler.hpp>
#include <mtmc/backend/python/triton_recorder.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/support/base64.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

inline void visit_fields(JsonFields& visit, LoweredKernel& noun) {
  std::int64_t warps = noun.threads / 32;
  visit.required("entry", noun.entry);
  visit.required("ptx", noun.ptx);
  visit.required("cubin", noun.cubin);
  visit.required("warps", warps);
  visit.required("cluster", noun.cluster);
  visit.required("shared_bytes", noun.shared_bytes);
  visit.required("global_scratch_bytes", noun.global_scratch_bytes);
  visit.required("profile_scratch_bytes", noun.profile_scratch_bytes);
  noun.threads = 32 * warps;
}

/// Bytes of the parameters of the one kernel of a PTX text, in order; nothing where it has none or several,
/// or a parameter is no number.
[[nodiscard]] inline std::optional<std::vector<int>> parameter_bytes_of(std::string_view ptx) {
  constexpr std::string_view entry = ".entry ";
  const auto at = ptx.find(entry);
  if (at == std::string_view::npos || ptx.find(entry, at + 1) != std::string_view::npos) return std::nullopt;
  const auto open = ptx.find('(', at);
  const auto close = ptx.find(')', at);
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  std::vector<int> bytes;
  auto rest = ptx.substr(open, close - open);
  constexpr std::string_view parameter = ".param .";
  for (auto next = rest.find(parameter); next != std::string_view::npos; next = rest.find(parameter)) {
    rest = rest.substr(next + parameter.size());
    int bits = 0;
    for (const char c : rest.substr(1, 2))
      if (c >= '0' && c <= '9') bits = 10 * bits + (c - '0');
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return std::nullopt;
    bytes.push_back(bits / 8);
  }
  return bytes;
}

/// The same of a recorded kernel, with the two pointers to scratch memory that its launcher passes behind
/// them.
[[nodiscard]] inline std::optional<std::vector<int>> parameter_bytes_of(const RecordedKernel& kernel) {
  std::vector<int> bytes;
  for (const auto& parameter : kernel.parameters) {
    if (parameter.type == "constexpr") continue;
    int bits = 0;
    for (const char c : parameter.type)
      if (c >= '0' && c <= '9') bits = 10 * bits + (c - '0');
    bytes.push_back(parameter.type.starts_with('*') ? 8 : bits == 1 ? 1 : bits / 8);
  }
  bytes.insert(bytes.end(), {8, 8});
  return bytes;
}

} // namespace detail

struct TritonCompiler::State {
  explicit State(const PythonOptions& given) : options(given), python(given, "lowering") {}

  PythonOptions options;
  detail::PythonProcess python;
  std::mutex mutex;
  std::map<std::string, Lowering> known;
};

MTMC_INLINE TritonCompiler::TritonCompiler(const PythonOptions& options)
    : state_(std::make_unique<State>(options)) {
  const auto found = versions().find("triton");
  detail::demand_known_triton(found == versions().end() ? "of no version" : found->second);
}
MTMC_INLINE TritonCompiler::TritonCompiler(TritonCompiler&&) noexcept = default;
MTMC_INLINE TritonCompiler& TritonCompiler::operator=(TritonCompiler&&) noexcept = default;
MTMC_INLINE TritonCompiler::~TritonCompiler() = default;

MTMC_INLINE const std::map<std::string, std::string>& TritonCompiler::versions() const noexcept {
  return state_->python.versions();
}

MTMC_INLINE Lowering TritonCompiler::lower(const RecordedKernel& kernel, const RecordedTarget& target,
                                           std::stop_token stop) const {
  const auto begin = std::chrono::steady_clock::now();
  const auto key =
      kernel.id() + ' ' + std::to_string(target.capability) + ' ' + std::to_string(target.shared_bytes);
  {
    const std::scoped_lock lock(state_->mutex);
    if (const auto found = state_->known.find(key); found != state_->known.end()) {
      auto known = found->second;
      known.seconds = seconds_since(begin);
      return known;
    }
  }
  Lowering lowering;
  const auto fail = [&](std::string message, std::string remedy) {
    lowering.diagnostics = {{Severity::error, kernel.line, 0, std::move(message), std::move(remedy), {}}};
  };
  const detail::Json question{
      {"ir", kernel.ir}, {"options", kernel.options}, {"capability", target.capability}};
  const auto answer =
      state_->python.ask(question.dump(-1, ' ', false, detail::Json::error_handler_t::replace),
                         state_->options.lower_timeout, stop);
  lowering.timed_out = answer.timed_out;
  if (answer.timed_out && !stop.stop_requested())
    fail("the kernel " + kernel.name + " takes longer than " +
             detail::duration_text(state_->options.lower_timeout) + " to compile",
         "Use smaller blocks and fewer stages");
  if (answer.failure)
    fail("the kernel " + kernel.name + " does not compile: " + answer.failure->message,
         answer.failure->remedy);
  if (!answer.result.empty()) {
    auto lowered = std::make_shared<LoweredKernel>();
    try {
      detail::read_value(detail::parse_text(answer.result, true).at("result"), *lowered, "a lowered kernel");
      const auto bytes = from_base64(lowered->cubin).value();
      lowered->cubin.assign(bytes.begin(), bytes.end());
    } catch (const std::exception& error) {
      fail("the compiler's answer cannot be read: " + std::string(error.what()), "Report this");
    }
    if (lowering.diagnostics.empty())
      lowering.diagnostics = detail::screen_cubin(lowered->cubin, lowered->ptx, {});
    lowering.refused = !lowering.diagnostics.empty();
    if (const auto found = detail::parameter_bytes_of(lowered->ptx);
        lowering.diagnostics.empty() && found != detail::parameter_bytes_of(kernel))
      fail("the IR of " + kernel.name + " takes other parameters than its launches pass",
           "A recording is made by the recorder alone");
    if (lowering.diagnostics.empty() && lowered->shared_bytes > target.shared_bytes)
      fail("the kernel " + kernel.name + " needs " + std::to_string(lowered->shared_bytes) +
               " bytes of shared memory, and a block of this device has " +
               std::to_string(target.shared_bytes),
           "Use smaller blocks or fewer stages (num_stages)");
    if (lowering.diagnostics.empty() && lowered->profile_scratch_bytes > 0)
      fail("the kernel " + kernel.name + " was made to be profiled", "Launch it without a profiler");
    if (lowering.diagnostics.empty()) lowering.kernel = std::move(lowered);
  }
  for (auto& diagnostic : lowering.diagnostics) diagnostic.message = detail::harmless(diagnostic.message);
  lowering.seconds = seconds_since(begin);
  if (!lowering.timed_out) {
    const std::scoped_lock lock(state_->mutex);
    state_->known.emplace(key, lowering);
  }
  return lowering;
}

} // namespace mtmc
