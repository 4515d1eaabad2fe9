#pragma once
/// The typed functions through which the runner calls a kernel's entries.
///
/// One is generated for each launch line and compiled together with the kernel's text, so that the compiler
/// compares the launch line with the parameter list of the function it names. What does not fit is reported
/// at the launch line, in a sentence.

#include <mtmc/core/launch_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::detail {

/// What a launch's trampoline depends on: everything of a launch but values, extents and places.
struct LaunchSignature {
  struct Argument {
    LaunchArgument::Kind kind = LaunchArgument::Kind::buffer;
    DataType type = DataType::f32;
    /// Name of the buffer, text of the expression; for messages.
    std::string name;

    /// Whether a trampoline for the one serves the other.
    [[nodiscard]] bool same_kind(const Argument& other) const noexcept {
      if (kind != other.kind) return false;
      return kind == LaunchArgument::Kind::buffer ? type == other.type
                                                  : is_floating(type) == is_floating(other.type);
    }
  };
  std::string entry;
  int line = 0;
  std::vector<Argument> arguments{};

  /// Whether a trampoline for the one serves the other.
  [[nodiscard]] bool same_call(const LaunchSignature& other) const noexcept {
    return entry == other.entry &&
           std::equal(arguments.begin(), arguments.end(), other.arguments.begin(), other.arguments.end(),
                      [](const Argument& a, const Argument& b) { return a.same_kind(b); });
  }
};

[[nodiscard]] inline LaunchSignature signature_of(const Launch& launch) {
  LaunchSignature signature{launch.entry, launch.line, {}};
  for (const auto& argument : launch.arguments)
    signature.arguments.push_back({argument.kind, argument.type, argument.name});
  return signature;
}

[[nodiscard]] inline std::vector<LaunchSignature> signatures_of(const LaunchPlan& plan) {
  std::vector<LaunchSignature> signatures;
  for (const auto& launch : plan.launches) signatures.push_back(signature_of(launch));
  return signatures;
}

/// Signatures as text, for content addresses.
[[nodiscard]] inline std::string describe(const std::vector<LaunchSignature>& signatures) {
  std::string text;
  for (const auto& signature : signatures) {
    text += std::to_string(signature.line) + ' ' + signature.entry;
    for (const auto& argument : signature.arguments)
      text += ' ' + std::to_string(static_cast<int>(argument.kind)) + ' ' +
              std::string(to_string(argument.type)) + ' ' + argument.name;
    text += '\n';
  }
  return text;
}

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

/// Comes before the kernel's text. It includes nothing, so that it hides no missing #include of the kernel
/// and costs the compiler nothing. The names that trampolines use behind the kernel's text begin with
/// `mtmc_`, so that no macro of the kernel (`f32`, say) changes them.
inline constexpr std::string_view trampoline_support = R"support(
namespace mtmc_generated {
using mtmc_word = unsigned long long;
static_assert(sizeof(mtmc_word) == 8 && sizeof(long long) == 8 && sizeof(double) == 8);

template <class A, class B> inline constexpr bool same = false;
template <class A> inline constexpr bool same<A, A> = true;
template <class T> struct Plain { using Type = T; };
template <class T> struct Plain<const T> : Plain<T> {};
template <class T> struct Plain<volatile T> : Plain<T> {};
template <class T> struct Plain<const volatile T> : Plain<T> {};
template <class T> struct Element { using Type = typename Plain<T>::Type; };
template <class T> struct Element<T[]> : Element<T> {};
template <class T, decltype(sizeof(0)) n> struct Element<T[n]> : Element<T> {};

// 1 signed, 2 unsigned, 3 either
template <class T> inline constexpr int integer = 0;
template <> inline constexpr int integer<bool> = 2;
template <> inline constexpr int integer<char> = 3;
template <> inline constexpr int integer<signed char> = 1;
template <> inline constexpr int integer<unsigned char> = 2;
template <> inline constexpr int integer<short> = 1;
template <> inline constexpr int integer<unsigned short> = 2;
template <> inline constexpr int integer<int> = 1;
template <> inline constexpr int integer<unsigned> = 2;
template <> inline constexpr int integer<long> = 1;
template <> inline constexpr int integer<unsigned long> = 2;
template <> inline constexpr int integer<long long> = 1;
template <> inline constexpr int integer<unsigned long long> = 2;

template <class T> inline constexpr bool floating = false;
template <> inline constexpr bool floating<float> = true;
template <> inline constexpr bool floating<double> = true;
template <> inline constexpr bool floating<long double> = true;
#if defined(__FLT16_MAX__) && (defined(__clang__) || defined(__x86_64__) || __GNUC__ >= 13)
template <> inline constexpr bool floating<_Float16> = true;
template <class T> inline constexpr bool half = same<T, _Float16>;
#else
template <class T> inline constexpr bool half = false;
#endif

struct mtmc_f64 { template <class T> static constexpr bool is = same<T, double>; };
struct mtmc_f32 { template <class T> static constexpr bool is = same<T, float>; };
// Sixteen-bit floats come as the compiler's own type, as a class of the kernel's, or as bare bits.
template <class T> inline constexpr bool sixteen_bits = sizeof(T) == 2 && integer<T> != 1;
struct mtmc_f16 { template <class T> static constexpr bool is = sixteen_bits<T>; };
struct mtmc_bf16 { template <class T> static constexpr bool is = sixteen_bits<T> && !half<T>; };
template <int bytes, int sign> struct Integer {
  template <class T> static constexpr bool is = sizeof(T) == bytes && (integer<T> & sign) != 0 && !same<T, bool>;
};
using mtmc_i64 = Integer<8, 1>;
using mtmc_i32 = Integer<4, 1>;
using mtmc_i16 = Integer<2, 1>;
using mtmc_i8 = Integer<1, 1>;
using mtmc_u64 = Integer<8, 2>;
using mtmc_u32 = Integer<4, 2>;
using mtmc_u16 = Integer<2, 2>;
using mtmc_u8 = Integer<1, 2>;

// Stands for a parameter that is not there; the arity is complained about instead.
struct Missing {};

template <int i, class... P> struct Pick { using Type = Missing; };
template <class First, class... Rest> struct Pick<0, First, Rest...> { using Type = First; };
template <int i, class First, class... Rest> struct Pick<i, First, Rest...> : Pick<i - 1, Rest...> {};

template <class F> struct mtmc_function {
  static constexpr bool mtmc_ordinary = false;
  static constexpr int mtmc_parameters = -1;
  template <int i> using mtmc_parameter = Missing;
};
template <class R, class... P> struct mtmc_function<R (*)(P...)> {
  static constexpr bool mtmc_ordinary = true;
  static constexpr int mtmc_parameters = sizeof...(P);
  template <int i> using mtmc_parameter = typename Pick<i, P...>::Type;
};
template <class R, class... P> struct mtmc_function<R (*)(P...) noexcept> : mtmc_function<R (*)(P...)> {};

template <class P> struct Value { using Type = typename Plain<P>::Type; };
template <class T> struct Value<const T&> { using Type = typename Plain<T>::Type; };
template <class T> struct Value<T&&> { using Type = typename Plain<T>::Type; };

// Which parameters P a launch's arguments can go to.
template <class P, class ElementType> inline constexpr bool mtmc_takes_buffer = false;
template <class T, class ElementType> inline constexpr bool mtmc_takes_buffer<T*, ElementType> =
    ElementType::template is<typename Element<T>::Type>;
template <class ElementType> inline constexpr bool mtmc_takes_buffer<Missing, ElementType> = true;
template <class P> inline constexpr bool mtmc_takes_integer =
    integer<typename Value<P>::Type> != 0 || floating<typename Value<P>::Type> || same<P, Missing>;
template <class P> inline constexpr bool mtmc_takes_real = floating<typename Value<P>::Type> || same<P, Missing>;

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

namespace detail_trampolines {

/// "argument 2 (`B`)"
[[nodiscard]] inline std::string argument_title(const LaunchSignature::Argument& argument,
                                                std::size_t index) {
  return "argument " + std::to_string(index + 1) + " (`" + argument.name + "`)";
}

[[nodiscard]] inline std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

/// What the parameter must be, as a sentence for the case that it is not.
[[nodiscard]] inline std::string complaint(const LaunchSignature& signature, std::size_t index) {
  const auto& argument = signature.arguments[index];
  const auto title = argument_title(argument, index);
  const auto parameter = "parameter " + std::to_string(index + 1) + " of `" + signature.entry + "` must be ";
  const auto spelling = std::string(element_spelling(argument.type));
  if (argument.kind == LaunchArgument::Kind::buffer)
    return title + " is a buffer of " + std::string(to_string(argument.type)) + ", so " + parameter +
           "`const " + spelling + "*` or `" + spelling + "*`";
  if (is_floating(argument.type))
    return title + " is a floating-point number, so " + parameter + "`float` or `double`";
  return title + " is an integer, so " + parameter + "an integer or a floating-point number, by value";
}

} // namespace detail_trampolines

/// Stands before the sentences of generated assertions, so that they are recognised in what the compiler
/// says.
inline constexpr std::string_view assertion_marker = "mtmc: ";
/// The name under which the compiler knows the place just behind the kernel's text.
inline constexpr std::string_view end_of_kernel_file = "end-of-kernel";

/// The text of one trampoline: `int mtmc_launch_<number>(slots)`, on one line that the compiler takes for
/// the launch line itself. It calls the entry and returns 0, or only returns the number (from 1) of the first
/// argument whose value does not fit its parameter.
[[nodiscard]] inline std::string trampoline_text(const LaunchSignature& signature, std::size_t number) {
  namespace helper = detail_trampolines;
  const std::string function = "mtmc_entry";
  const auto passed = signature.arguments.size();
  std::string asserts = "using mtmc_entry = mtmc_generated::mtmc_function<decltype(&" + signature.entry +
                        ")>; static_assert(mtmc_entry::mtmc_ordinary, \"" + std::string(assertion_marker) +
                        '`' + signature.entry + "` is not an ordinary function\"); ";
  // A static_assert cannot print a number, so there is one for each that is likely.
  constexpr std::size_t likely_parameters = 24;
  for (std::size_t count = 0; count <= likely_parameters; ++count)
    if (count != passed)
      asserts += "static_assert(" + function + "::mtmc_parameters != " + std::to_string(count) + ", \"" +
                 std::string(assertion_marker) + "this launch line passes " +
                 helper::counted(passed, "argument") + ", but `" + signature.entry + "` has " +
                 helper::counted(count, "parameter") + "\"); ";
  asserts += "static_assert(" + function + "::mtmc_parameters == " + std::to_string(passed) + " || " +
             function + "::mtmc_parameters <= " + std::to_string(likely_parameters) + ", \"" +
             std::string(assertion_marker) + "this launch line passes " +
             helper::counted(passed, "argument") + ", but `" + signature.entry +
             "` has another number of parameters\"); ";
  std::string checks;
  std::string values;
  for (std::size_t i = 0; i < passed; ++i) {
    const auto& argument = signature.arguments[i];
    const bool buffer = argument.kind == LaunchArgument::Kind::buffer;
    const std::string kind = buffer                       ? "mtmc_buffer"
                             : is_floating(argument.type) ? "mtmc_real_number"
                                                          : "mtmc_whole_number";
    const auto parameter = function + "::mtmc_parameter<" + std::to_string(i) + '>';
    const auto slot = "(mtmc_slots[" + std::to_string(i) + "])";
    const auto accepts =
        buffer ? "mtmc_takes_buffer<" + parameter + ", mtmc_generated::mtmc_" +
                     std::string(to_string(argument.type)) + '>'
               : (is_floating(argument.type) ? "mtmc_takes_real<" : "mtmc_takes_integer<") + parameter + '>';
    asserts.append("static_assert(mtmc_generated::").append(accepts).append(", \"").append(assertion_marker);
    asserts.append(helper::complaint(signature, i)).append("\"); ");
    checks.append("if (!mtmc_generated::").append(kind).append("::mtmc_fits<").append(parameter).append(">");
    checks.append(slot).append(") return ").append(std::to_string(i + 1)).append("; ");
    values.append(i == 0 ? "" : ", ").append("mtmc_generated::").append(kind).append("::mtmc_get<");
    values.append(parameter).append(">").append(slot);
  }
  return "#line " + std::to_string(signature.line) + " \"kernel.cpp\"\n" +
         "extern \"C\" __attribute__((visibility(\"default\"))) int mtmc_launch_" + std::to_string(number) +
         "(const mtmc_generated::mtmc_word* mtmc_slots) { " + asserts + checks + "(void)mtmc_slots; " +
         signature.entry + '(' + values + "); return 0; }\n";
}

/// The text that is compiled: it includes the kernel's text from the file `kernel.cpp` beside it.
[[nodiscard]] inline std::string program_text(const std::vector<LaunchSignature>& signatures) {
  std::string text = "#line 1 \"mtmc-trampolines\"\n";
  text.append(trampoline_support);
  text.append("#line 1 \"program.cpp\"\n#include \"kernel.cpp\"\n");
  // Fails if the kernel's text ends inside an open brace or statement, before anything stranger does.
  text.append("#line 1 \"").append(end_of_kernel_file).append("\"\nnamespace mtmc_generated {}\n");
  for (std::size_t i = 0; i < signatures.size(); ++i) text += trampoline_text(signatures[i], i);
  return text;
}

} // namespace mtmc::detail
