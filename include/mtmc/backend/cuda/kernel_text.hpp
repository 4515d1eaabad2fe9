#pragma once
/// The text that NVRTC is given for a kernel, and what of its answer concerns launch lines.

#include <mtmc/backend/launch_check.hpp>
#include <mtmc/core/data_type.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What NVRTC calls a kernel's own text.
inline constexpr std::string_view cuda_kernel_file = "kernel.cu";

/// How CUDA C++ writes the element type of a buffer.
[[nodiscard]] constexpr std::string_view cuda_element_spelling(DataType type) noexcept {
  switch (type) {
  case DataType::f64:
    return "double";
  case DataType::f32:
    return "float";
  case DataType::f16:
    return "__half";
  case DataType::bf16:
    return "__nv_bfloat16";
  case DataType::i64:
    return "long long";
  case DataType::i32:
    return "int";
  case DataType::i16:
    return "short";
  case DataType::i8:
    return "signed char";
  case DataType::u64:
    return "unsigned long long";
  case DataType::u32:
    return "unsigned";
  case DataType::u16:
    return "unsigned short";
  case DataType::u8:
    return "unsigned char";
  }
  return "void";
}

/// What a parameter of a kernel takes. The number is what the compiler answers, as the size of a table.
enum class CudaParameter : std::uint64_t {
  pointer = 1,
  f32 = 2,
  f64 = 3,
  u8 = 4,
  i8 = 5,
  u16 = 6,
  i16 = 7,
  u32 = 8,
  i32 = 9,
  u64 = 10,
  i64 = 11,
  tensor_map = 12
};

/// How the compiler is asked for it. Behind `launch_check_support`.
inline constexpr std::string_view cuda_parameter_support = R"support(
namespace mtmc_generated {
template <class U> inline constexpr int mtmc_value_kind =
    floating<U> ? (sizeof(U) == 4 ? 2 : 3)
    : integer<U> == 0 ? (sizeof(U) == 128 ? 12 : 1)
                      : (sizeof(U) == 1 ? 4 : sizeof(U) == 2 ? 6 : sizeof(U) == 4 ? 8 : 10) + (integer<U> & 1);
template <class T> inline constexpr int mtmc_parameter_kind = mtmc_value_kind<typename Value<T>::Type>;
} // namespace mtmc_generated
)support";

/// Name of the table whose size is the kind of a parameter.
[[nodiscard]] inline std::string cuda_parameter_table(std::size_t launch, std::size_t parameter) {
  return "mtmc_parameter_" + std::to_string(launch) + '_' + std::to_string(parameter);
}

/// The text that is compiled: it includes the kernel's own from a header named `cuda_kernel_file`.
[[nodiscard]] inline std::string cuda_program_text(const std::vector<LaunchSignature>& signatures) {
  const auto file = std::string(cuda_kernel_file);
  std::string text = "#line 1 \"mtmc-launch-check\"\n";
  text.append(launch_check_support).append(cuda_parameter_support);
  text.append("#line 1 \"program.cu\"\n#include \"").append(file).append("\"\n");
  // Fails if the kernel's text ends inside an open brace or statement, before anything stranger does.
  text.append("#line 1 \"").append(end_of_kernel_file).append("\"\nnamespace mtmc_generated {}\n");
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    const auto check = "mtmc_launch_" + std::to_string(i);
    text.append("#line ")
        .append(std::to_string(signatures[i].line))
        .append(" \"")
        .append(file)
        .append("\"\n");
    text.append("struct ").append(check).append(" { ");
    auto assertions = launch_assertions(signatures[i], cuda_element_spelling);
    // NVRTC writes a question mark for what is not in the basic character set.
    std::replace(assertions.begin(), assertions.end(), '`', '\'');
    text.append(assertions).append("}; ");
    for (std::size_t k = 0; k < signatures[i].arguments.size(); ++k)
      text.append("extern \"C\" __device__ const char ")
          .append(cuda_parameter_table(i, k))
          .append("[mtmc_generated::mtmc_parameter_kind<")
          .append(check)
          .append("::mtmc_entry::mtmc_parameter<")
          .append(std::to_string(k))
          .append(">>] = {}; ");
    text += '\n';
  }
  return text;
}

/// A launch argument as the bytes of a parameter; nothing if the value does not fit.
[[nodiscard]] inline std::optional<std::uint64_t> cuda_parameter_bits(const LaunchArgument& argument,
                                                                      CudaParameter parameter) {
  const bool floating = is_floating(argument.type);
  const auto real = floating ? argument.real : static_cast<double>(argument.integer);
  const auto word = [](auto value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  };
  const auto integer = [&]<class T>(T) -> std::optional<std::uint64_t> {
    if (floating || !std::in_range<T>(argument.integer)) return std::nullopt;
    return word(static_cast<T>(argument.integer));
  };
  switch (parameter) {
  case CudaParameter::pointer:
  case CudaParameter::tensor_map:
    return std::nullopt;
  case CudaParameter::f32:
    return word(static_cast<float>(real));
  case CudaParameter::f64:
    return word(real);
  case CudaParameter::u8:
    return integer(std::uint8_t{});
  case CudaParameter::i8:
    return integer(std::int8_t{});
  case CudaParameter::u16:
    return integer(std::uint16_t{});
  case CudaParameter::i16:
    return integer(std::int16_t{});
  case CudaParameter::u32:
    return integer(std::uint32_t{});
  case CudaParameter::i32:
    return integer(std::int32_t{});
  case CudaParameter::u64:
    return integer(std::uint64_t{});
  case CudaParameter::i64:
    return integer(std::int64_t{});
  }
  return std::nullopt;
}

} // namespace mtmc::detail
