#pragma once
/// The typed functions through which the runner calls a kernel's entries: one for each launch line, compiled
/// together with the kernel's text and the assertions of backend/launch_check.hpp.

#include <mtmc/backend/launch_check.hpp>
#include <mtmc/core/launch_plan.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// How a parameter that takes a buffer of that element type is written.
[[nodiscard]] constexpr std::string_view element_spelling(DataType type) noexcept {
  switch (type) {
  case DataType::f64:
    return "double";
  case DataType::f32:
    return "float";
  case DataType::f16:
    return "_Float16";
  case DataType::bf16:
  case DataType::u16:
    return "std::uint16_t";
  case DataType::i64:
    return "std::int64_t";
  case DataType::i32:
    return "std::int32_t";
  case DataType::i16:
    return "std::int16_t";
  case DataType::i8:
    return "std::int8_t";
  case DataType::u64:
    return "std::uint64_t";
  case DataType::u32:
    return "std::uint32_t";
  case DataType::u8:
    return "std::uint8_t";
  }
  return "void";
}

/// How arguments reach their parameters. Comes behind `launch_check_support`.
inline constexpr std::string_view trampoline_support = R"support(
namespace mtmc_generated {
struct mtmc_buffer {
  template <class P> static bool mtmc_fits(mtmc_word) { return true; }
  template <class P> static P mtmc_get(mtmc_word slot) { return reinterpret_cast<P>(slot); }
};
struct mtmc_whole_number {
  template <class P> static bool mtmc_fits(mtmc_word slot) {
    using T = typename Value<P>::Type;
    const auto value = static_cast<long long>(slot);
    if constexpr (floating<T>) return true;
    else return static_cast<long long>(static_cast<T>(value)) == value && (value >= 0 || (integer<T> & 1) != 0);
  }
  template <class P> static typename Value<P>::Type mtmc_get(mtmc_word slot) {
    return static_cast<typename Value<P>::Type>(static_cast<long long>(slot));
  }
};
struct mtmc_real_number {
  template <class P> static bool mtmc_fits(mtmc_word) { return true; }
  template <class P> static typename Value<P>::Type mtmc_get(mtmc_word slot) {
    return static_cast<typename Value<P>::Type>(__builtin_bit_cast(double, slot));
  }
};
} // namespace mtmc_generated
)support";

/// What the runner knows a trampoline by, up to its number.
inline constexpr std::string_view trampoline_prefix = "mtmc_launch_";

/// What the runner knows a trampoline by.
[[nodiscard]] inline std::string trampoline_name(std::size_t number) {
  return std::string(trampoline_prefix) + std::to_string(number);
}

/// The text of one trampoline: `int mtmc_launch_<number>(slots)`, on one line that the compiler takes for
/// the launch line itself. It calls the entry and returns 0, or only returns the number (from 1) of the first
/// argument whose value does not fit its parameter.
[[nodiscard]] inline std::string trampoline_text(const LaunchSignature& signature, std::size_t number) {
  const std::string function = "mtmc_entry";
  std::string checks;
  std::string values;
  for (std::size_t i = 0; i < signature.arguments.size(); ++i) {
    const auto& argument = signature.arguments[i];
    const bool buffer = argument.kind == LaunchArgument::Kind::buffer;
    const std::string kind = buffer                       ? "mtmc_buffer"
                             : is_floating(argument.type) ? "mtmc_real_number"
                                                          : "mtmc_whole_number";
    const auto parameter = function + "::mtmc_parameter<" + std::to_string(i) + '>';
    const auto slot = "(mtmc_slots[" + std::to_string(i) + "])";
    checks.append("if (!mtmc_generated::").append(kind).append("::mtmc_fits<").append(parameter).append(">");
    checks.append(slot).append(") return ").append(std::to_string(i + 1)).append("; ");
    values.append(i == 0 ? "" : ", ").append("mtmc_generated::").append(kind).append("::mtmc_get<");
    values.append(parameter).append(">").append(slot);
  }
  return "#line " + std::to_string(signature.line) + " \"kernel.cpp\"\n" +
         "extern \"C\" __attribute__((visibility(\"default\"))) int " + trampoline_name(number) +
         "(const mtmc_generated::mtmc_word* mtmc_slots) { " + launch_assertions(signature, element_spelling) +
         checks + "(void)mtmc_slots; " + signature.entry + '(' + values + "); return 0; }\n";
}

/// The text that is compiled: it includes the kernel's text from the file `kernel.cpp` beside it.
[[nodiscard]] inline std::string program_text(const std::vector<LaunchSignature>& signatures) {
  std::string text = "#line 1 \"mtmc-trampolines\"\n";
  text.append(launch_check_support).append(trampoline_support);
  text.append("#line 1 \"program.cpp\"\n#include \"kernel.cpp\"\n");
  // Fails if the kernel's text ends inside an open brace or statement, before anything stranger does.
  text.append("#line 1 \"").append(end_of_kernel_file).append("\"\nnamespace mtmc_generated {}\n");
  for (std::size_t i = 0; i < signatures.size(); ++i) text += trampoline_text(signatures[i], i);
  return text;
}

} // namespace mtmc::detail
