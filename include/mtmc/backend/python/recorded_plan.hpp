#pragma once
/// What a PyTorch module does when it is called, as data: launches of Triton kernels, fills, and operators.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/unknown_fields.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Memory that tensors lie in. Its content is not part of a recording, unless the text itself says it.
struct RecordedStorage {
  /// Bytes of the whole.
  std::int64_t bytes = 0;
  /// What it holds from the start, in hexadecimal digits, where it is made of numbers that the text names or
  /// that follow from nothing else (`torch.arange`); else empty.
  std::string content{};

  friend bool operator==(const RecordedStorage&, const RecordedStorage&) = default; ///< member by member
};

/// A tensor: which part of a storage it is, in which order.
struct RecordedView {
  /// Index into `RecordedPlan::storages`.
  int storage = 0;
  /// Bytes from the start of the storage to the first element.
  std::int64_t offset = 0;
  /// Extents, outermost first; none for a scalar.
  std::vector<std::int64_t> sizes{};
  /// Distance of neighbours along each axis, in elements.
  std::vector<std::int64_t> strides{};
  /// "f32", "bf16", "i64", "bool", "f8e4m3", ...; see `recorded_type_bytes`.
  std::string type = "f32";

  friend bool operator==(const RecordedView&, const RecordedView&) = default; ///< member by member
};

/// Bytes of an element of that type; nothing if there is no such type.
[[nodiscard]] std::optional<int> recorded_type_bytes(std::string_view type) noexcept;

/// Something that is passed in Python.
struct RecordedValue {
  /// What it is.
  enum class Kind { none, boolean, integer, real, text, type, tensor, list };
  /// Which of the other members counts.
  Kind kind = Kind::none;
  /// Of `integer`; 0 or 1 of `boolean`.
  std::int64_t integer = 0;
  /// Of `real`, may be infinite or no number.
  double real = 0;
  /// Of `text`; the name of the type of `type`.
  std::string text{};
  /// Of `tensor`.
  RecordedView tensor{};
  /// Of `list`, which is a list or a tuple.
  std::vector<RecordedValue> list{};

  friend bool operator==(const RecordedValue&, const RecordedValue&) = default; ///< member by member
};

namespace detail {
inline constexpr EnumName<RecordedValue::Kind> recorded_value_kind_names[] = {
    {RecordedValue::Kind::none, "none"},       {RecordedValue::Kind::boolean, "boolean"},
    {RecordedValue::Kind::integer, "integer"}, {RecordedValue::Kind::real, "real"},
    {RecordedValue::Kind::text, "text"},       {RecordedValue::Kind::type, "type"},
    {RecordedValue::Kind::tensor, "tensor"},   {RecordedValue::Kind::list, "list"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<RecordedValue::Kind>>
enum_names(RecordedValue::Kind) noexcept {
  return detail::recorded_value_kind_names;
}

/// A parameter of a kernel, in Triton's words.
struct KernelParameter {
  /// As the text calls it.
  std::string name;
  /// "*fp32", "i32", "fp32", ...; "constexpr" if the value is part of the kernel and nothing is passed.
  std::string type;

  friend bool operator==(const KernelParameter&, const KernelParameter&) = default; ///< member by member
};

/// A Triton kernel for certain constants, types and alignments, before any pass of the compiler.
struct RecordedKernel {
  /// Name of the function.
  std::string name;
  /// Its module in Triton's IR, as text without places.
  std::string ir;
  /// num_warps, num_stages, num_ctas, maxnreg, enable_fp_fusion, ...: what the launch asked for, booleans as
  /// 1.
  std::map<std::string, std::int64_t> options{};
  /// In the order of the function's parameters.
  std::vector<KernelParameter> parameters{};
  /// 1-based line of the function in the module's text.
  int line = 0;

  /// SHA-256, in hex, of everything but the line: two kernels with one id lower to the same binary.
  [[nodiscard]] std::string id() const;

  friend bool operator==(const RecordedKernel&, const RecordedKernel&) = default; ///< member by member
};

/// What a launch passes for one parameter.
struct RecordedArgument {
  /// What it is.
  enum class Kind { pointer, integer, real };
  /// Which of the other members count.
  Kind kind = Kind::pointer;
  /// Index into `RecordedPlan::storages`.
  int storage = 0;
  /// Bytes from the start of the storage.
  std::int64_t offset = 0;
  /// Of `integer`, booleans as 0 and 1; a pointer that is null is the integer 0.
  std::int64_t integer = 0;
  /// Of `real`.
  double real = 0;

  friend bool operator==(const RecordedArgument&, const RecordedArgument&) = default; ///< member by member
};

namespace detail {
inline constexpr EnumName<RecordedArgument::Kind> recorded_argument_kind_names[] = {
    {RecordedArgument::Kind::pointer, "pointer"},
    {RecordedArgument::Kind::integer, "integer"},
    {RecordedArgument::Kind::real, "real"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<RecordedArgument::Kind>>
enum_names(RecordedArgument::Kind) noexcept {
  return detail::recorded_argument_kind_names;
}

/// A launch of a Triton kernel.
struct RecordedLaunch {
  /// Index into `RecordedPlan::kernels`.
  int kernel = 0;
  /// Programs along x, y and z; where one of them is 0, nothing runs.
  std::array<std::int64_t, 3> grid{1, 1, 1};
  /// One for each parameter that is no constant.
  std::vector<RecordedArgument> arguments{};
  /// The storage that its launcher lends the kernel (`with_launcher_memory`), by number; -1: none. No
  /// recording names one.
  int memory = -1;

  friend bool operator==(const RecordedLaunch&, const RecordedLaunch&) = default; ///< member by member
};

/// One value in all elements of a tensor.
struct RecordedFill {
  RecordedView view{};   ///< the tensor
  RecordedValue value{}; ///< a boolean, an integer or a real

  friend bool operator==(const RecordedFill&, const RecordedFill&) = default; ///< member by member
};

/// An operator of PyTorch that remains: what it reads are the tensors among its arguments, what it writes its
/// outputs.
struct RecordedOperation {
  /// With its overload: "aten.addmm.default".
  std::string name;
  /// Whether it draws random numbers.
  bool draws = false;
  /// Passed by position.
  std::vector<RecordedValue> arguments{};
  /// Passed by name.
  std::map<std::string, RecordedValue> named{};
  /// Tensors it gives, those it has changed in place among them.
  std::vector<RecordedView> outputs{};

  friend bool operator==(const RecordedOperation&, const RecordedOperation&) = default; ///< member by member
};

/// One thing that is done: exactly one of the three.
struct RecordedStep {
  std::optional<RecordedLaunch> launch{};       ///< a launch
  std::optional<RecordedFill> fill{};           ///< a fill
  std::optional<RecordedOperation> operation{}; ///< an operator
  /// 1-based line of the module's text that asks for it, the innermost one; 0 if there is none.
  int line = 0;

  friend bool operator==(const RecordedStep&, const RecordedStep&) = default; ///< member by member
};

/// A parameter or buffer of a module.
struct RecordedWeight {
  std::string name;       ///< "linear.weight"
  bool parameter = false; ///< a parameter, not a buffer
  RecordedView view{};    ///< where it lies

  friend bool operator==(const RecordedWeight&, const RecordedWeight&) = default; ///< member by member
};

/// What an autotuned kernel chose from.
struct RecordedChoice {
  std::string kernel;     ///< name of the function
  int configurations = 1; ///< how many there are
  int chosen = 0;         ///< which one was recorded, counted from 0
  std::string text{};     ///< what it says

  friend bool operator==(const RecordedChoice&, const RecordedChoice&) = default; ///< member by member
};

/// The steps of a module's life, in order.
struct RecordedPhases {
  std::vector<RecordedStep> inputs{};  ///< what makes its inputs; of a problem only
  std::vector<RecordedStep> setup{};   ///< its constructor
  std::vector<RecordedStep> forward{}; ///< one call

  friend bool operator==(const RecordedPhases&, const RecordedPhases&) = default; ///< member by member
};

/// The device a recording was made for.
struct RecordedTarget {
  std::string name = "NVIDIA H100";   ///< what PyTorch calls it
  int capability = 90;                ///< ten times the major version and the minor one: 90 for sm_90
  int multiprocessors = 132;          ///< what kernels that stay resident ask for
  std::int64_t shared_bytes = 232448; ///< most shared memory of a block
  std::int64_t cache_bytes = std::int64_t{50} << 20;  ///< second-level cache
  std::int64_t memory_bytes = std::int64_t{80} << 30; ///< of the device

  friend bool operator==(const RecordedTarget&, const RecordedTarget&) = default; ///< member by member
};

/// What a module did when it was made and called once, for one set of sizes. It was written by a process that
/// ran the module's text: nothing of it can be believed before `check_recorded_plan` has looked at it, and
/// nothing of it says what a kernel computes.
struct RecordedPlan {
  std::string torch;                        ///< version of PyTorch
  std::string triton;                       ///< version of Triton, which decides how its kernels are launched
  RecordedTarget target{};                  ///< what it was recorded for
  std::vector<RecordedStorage> storages{};  ///< all memory that any step touches
  std::vector<RecordedKernel> kernels{};    ///< each once
  std::vector<RecordedValue> constructor{}; ///< what the module was made with
  std::vector<RecordedValue> inputs{};      ///< what it was called with
  std::vector<RecordedWeight> weights{};    ///< its parameters and buffers
  RecordedPhases phases{};                  ///< what it did
  std::vector<RecordedView> outputs{};      ///< what the call gave
  std::vector<RecordedChoice> choices{};    ///< of its autotuned kernels
  UnknownFields unknown{};                  ///< fields of a newer form

  friend bool operator==(const RecordedPlan&, const RecordedPlan&) = default; ///< member by member
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/recorded_plan_inl.hpp>
#endif
