#pragma once
/// The compiler compares a launch line with the parameter list of the function it names.
///
/// Assertions are generated for each launch line and compiled together with the kernel's text. What does not
/// fit is reported at the launch line, in a sentence.

#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What the call of a launch depends on: everything of a launch but values, extents and places.
struct LaunchSignature {
  struct Argument {
    LaunchArgument::Kind kind = LaunchArgument::Kind::buffer;
    DataType type = DataType::f32;
    /// Name of the buffer, text of the expression; for messages.
    std::string name;

    /// Whether the code that makes the one call can make the other.
    [[nodiscard]] bool same_kind(const Argument& other) const noexcept {
      if (kind != other.kind) return false;
      if (kind == LaunchArgument::Kind::tensor_map) return true;
      return kind == LaunchArgument::Kind::buffer ? type == other.type
                                                  : is_floating(type) == is_floating(other.type);
    }
  };
  std::string entry;
  int line = 0;
  std::vector<Argument> arguments{};

  /// Whether the code that makes the one call can make the other.
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

/// The place, `from` or behind it, of the call that a launch makes among those that a program was compiled
/// for; their number if it is none of them. A plan may leave calls out.
[[nodiscard]] inline std::size_t
place_of_call(const Launch& launch, std::span<const LaunchSignature> signatures, std::size_t from) {
  const auto wanted = signature_of(launch);
  while (from < signatures.size() && !signatures[from].same_call(wanted)) ++from;
  return from;
}

[[nodiscard]] inline std::vector<LaunchSignature> signatures_of(const LaunchPlan& plan) {
  std::vector<LaunchSignature> signatures;
  for (const auto& launch : plan.launches) signatures.push_back(signature_of(launch));
  return signatures;
}

/// Errors for launches of `main`, which no compiler takes for a function like others; none if all is well.
[[nodiscard]] inline std::vector<Diagnostic> check_entry_names(const LaunchPlan& plan) {
  std::vector<Diagnostic> errors;
  for (const auto& launch : plan.launches)
    if (launch.entry == "main")
      errors.push_back({Severity::error,
                        launch.line,
                        0,
                        "a kernel cannot be called `main`: to a compiler that is where a program begins",
                        "Give the function another name, here and in its definition",
                        {}});
  return errors;
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

/// How a language writes the element type of a parameter that takes a buffer.
using ElementSpelling = std::string_view (*)(DataType);

/// Stands before the sentences of generated assertions, so that they are recognised in what the compiler
/// says.
inline constexpr std::string_view assertion_marker = "mtmc: ";
/// The name under which the compiler knows the place just behind the kernel's text.
inline constexpr std::string_view end_of_kernel_file = "end-of-kernel";

/// Comes before the kernel's text. It includes nothing, so that it hides no missing #include of the kernel
/// and costs the compiler nothing. The names that are used behind the kernel's text begin with `mtmc_`, so
/// that no macro of the kernel (`f32`, say) changes them.
inline constexpr std::string_view launch_check_support = R"support(
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
template <class P> inline constexpr bool mtmc_takes_tensor_map =
    same<P, Missing> || (sizeof(typename Value<P>::Type) == 128 && alignof(typename Value<P>::Type) >= 64);
template <class P> inline constexpr bool mtmc_takes_real = floating<typename Value<P>::Type> || same<P, Missing>;
} // namespace mtmc_generated
)support";

namespace detail_launch_check {

/// "argument 2 (`B`)"
[[nodiscard]] inline std::string argument_title(const LaunchSignature::Argument& argument,
                                                std::size_t index) {
  return "argument " + std::to_string(index + 1) + " (`" + argument.name + "`)";
}

/// What the parameter must be, as a sentence for the case that it is not.
[[nodiscard]] inline std::string complaint(const LaunchSignature& signature, std::size_t index,
                                           ElementSpelling spelled) {
  const auto& argument = signature.arguments[index];
  const auto title = argument_title(argument, index);
  const auto parameter = "parameter " + std::to_string(index + 1) + " of `" + signature.entry + "` must be ";
  const auto spelling = std::string(spelled(argument.type));
  if (argument.kind == LaunchArgument::Kind::buffer)
    return title + " is a buffer of " + std::string(to_string(argument.type)) + ", so " + parameter +
           "`const " + spelling + "*` or `" + spelling + "*`";
  if (argument.kind == LaunchArgument::Kind::tensor_map)
    return title + " is a tensor map, so " + parameter +
           "`const __grid_constant__ CUtensorMap` (#include <cuda.h>)";
  if (is_floating(argument.type))
    return title + " is a floating-point number, so " + parameter + "`float` or `double`";
  return title + " is an integer, so " + parameter + "an integer or a floating-point number, by value";
}

} // namespace detail_launch_check

/// Assertions about one launch, on one line: `mtmc_entry` becomes what is known of the function, of which
/// `mtmc_entry::mtmc_parameter<0>` is the first parameter's type. They may stand wherever a static_assert
/// may.
[[nodiscard]] inline std::string launch_assertions(const LaunchSignature& signature,
                                                   ElementSpelling spelled) {
  namespace helper = detail_launch_check;
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
                 std::string(assertion_marker) + "this launch line passes " + counted(passed, "argument") +
                 ", but `" + signature.entry + "` has " + counted(count, "parameter") + "\"); ";
  asserts += "static_assert(" + function + "::mtmc_parameters == " + std::to_string(passed) + " || " +
             function + "::mtmc_parameters <= " + std::to_string(likely_parameters) + ", \"" +
             std::string(assertion_marker) + "this launch line passes " + counted(passed, "argument") +
             ", but `" + signature.entry + "` has another number of parameters\"); ";
  for (std::size_t i = 0; i < passed; ++i) {
    const auto& argument = signature.arguments[i];
    const auto parameter = function + "::mtmc_parameter<" + std::to_string(i) + '>';
    const auto accepts =
        argument.kind == LaunchArgument::Kind::buffer
            ? "mtmc_takes_buffer<" + parameter + ", mtmc_generated::mtmc_" +
                  std::string(to_string(argument.type)) + '>'
        : argument.kind == LaunchArgument::Kind::tensor_map
            ? "mtmc_takes_tensor_map<" + parameter + '>'
            : (is_floating(argument.type) ? "mtmc_takes_real<" : "mtmc_takes_integer<") + parameter + '>';
    asserts.append("static_assert(mtmc_generated::").append(accepts).append(", \"").append(assertion_marker);
    asserts.append(helper::complaint(signature, i, spelled)).append("\"); ");
  }
  return asserts;
}

} // namespace mtmc::detail
