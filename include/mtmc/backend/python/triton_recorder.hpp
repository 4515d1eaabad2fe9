#pragma once
/// Runs the host side of a PyTorch module once, on tensors without content, and gives what it did as data.

#include <mtmc/backend/python/python_options.hpp>
#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/enum_names.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {
class PythonProcess;

/// Throws `Error` (`mtmc.backend.001`) where that version of Triton is not one of `known_triton_versions`.
void demand_known_triton(const std::string& version);
} // namespace detail

/// What a module is recorded for.
struct RecordingRequest {
  /// Which contract the text is in.
  enum class Role {
    /// Defines `Model`, `get_inputs()` and `get_init_inputs()`, as a problem of KernelBench does.
    problem,
    /// Defines `ModelNew`; how it is made and called is `constructor` and `inputs`.
    candidate,
    /// Does everything when it is run, and leaves what it gave in the variable that `class_name` names, as
    /// the tests of TritonBench do. All of it is the plan's `forward`, random inputs included.
    script,
    /// Defines `run`, which is called with `inputs` by the names `names`, tensors for its results among them,
    /// and gives nothing: a kernel of a task whose arguments these are.
    function,
  };
  Role role = Role::candidate; ///< which contract the text is in
  std::string text;            ///< the module
  /// Class that is made and called; empty: `Model` or `ModelNew`. Of a script the variable; empty:
  /// `result_gold`. Of a function its name; empty: `run`.
  std::string class_name{};
  /// What a candidate is made with, as the problem's recording has it. No tensors.
  std::vector<RecordedValue> constructor{};
  /// What a candidate is called with: of tensors, sizes, strides and type count.
  std::vector<RecordedValue> inputs{};
  /// Of a function: what its parameters are called, as many as `inputs`.
  std::vector<std::string> names{};
  /// What the module is told of the device.
  RecordedTarget target{};
  /// Which configuration of an autotuned kernel is taken, by the function's name; 0 where there is none.
  std::map<std::string, int> choices{};
};

namespace detail {
inline constexpr EnumName<RecordingRequest::Role> recording_role_names[] = {
    {RecordingRequest::Role::problem, "problem"},
    {RecordingRequest::Role::candidate, "candidate"},
    {RecordingRequest::Role::script, "script"},
    {RecordingRequest::Role::function, "function"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<RecordingRequest::Role>>
enum_names(RecordingRequest::Role) noexcept {
  return detail::recording_role_names;
}

/// What came of it: a plan, or the reason why there is none.
struct Recording {
  /// A plan that `check_recorded_plan` has passed.
  std::optional<RecordedPlan> plan{};
  /// At least one error where there is no plan, unless it was timed out.
  std::vector<Diagnostic> diagnostics{};
  /// The deadline or a stop request came first.
  bool timed_out = false;
  /// Wall-clock time.
  double seconds = 0;
};

/// The versions of Triton whose launches this library knows, and the release of PyTorch that comes with each.
[[nodiscard]] std::span<const std::pair<std::string_view, std::string_view>> known_triton_versions() noexcept;

/// Records modules: Python with torch and triton in a process without device, network and files.
class TritonRecorder {
public:
  /// Starts Python, which takes seconds. Throws `Error` (`mtmc.backend.001`) where it is missing, lacks torch
  /// or triton, or has a version of Triton that is not one of `known_triton_versions`.
  explicit TritonRecorder(const PythonOptions& options = {});
  TritonRecorder(TritonRecorder&&) noexcept;            ///< takes over the process
  TritonRecorder& operator=(TritonRecorder&&) noexcept; ///< takes over the process
  ~TritonRecorder();

  /// Of "python", "torch" and "triton".
  [[nodiscard]] const std::map<std::string, std::string>& versions() const noexcept;

  /// Runs the module's text twice, in fresh processes: what differs from one to the other is refused, because
  /// nobody could say which of the two is judged. May be called from several threads. Throws `Error`
  /// (`mtmc.backend.001`) where Python is lost.
  [[nodiscard]] Recording record(const RecordingRequest& request, std::stop_token stop = {}) const;

private:
  PythonOptions options_;
  std::unique_ptr<detail::PythonProcess> python_;
};

/// What a module is told of a device of the CUDA backend.
[[nodiscard]] RecordedTarget recorded_target(const Device& device);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/triton_recorder_inl.hpp>
#endif
