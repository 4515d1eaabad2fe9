#pragma once
/// Where what is stated about an argument contradicts how a kernel's functions declare it.

#include <mtmc/analysis/signature.hpp>
#include <mtmc/analysis/stated_argument.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A kernel's text with what was read from it.
struct ReadKernel {
  /// "kernel" or "reference", for messages.
  std::string_view which;
  const std::vector<Signature>& signatures; ///< its functions
  const LaunchLines& lines;                 ///< its launch and scratch lines
};

namespace detail {

/// Whether a buffer of the stated type may be passed to the parameter, as the compiler sees it: floats of
/// sixteen bits may come as bare bits.
[[nodiscard]] inline bool is_element_of(DataType stated, const SignatureParameter& parameter) {
  if (!parameter.type || stated == *parameter.type) return true;
  if (parameter.plain_char) return stated == DataType::i8 || stated == DataType::u8;
  return *parameter.type == DataType::u16 && is_floating(stated) && size_of(stated) == 2;
}

/// Whether a value of the stated type may be passed to the parameter. Integers become what it is declared as.
[[nodiscard]] inline bool is_value_of(DataType stated, const SignatureParameter& parameter) {
  return !parameter.type || !is_floating(stated) || is_floating(*parameter.type);
}

/// Compares the statements about one argument with one parameter it is passed to.
class StatementCheck {
public:
  StatementCheck(const StatedArgument& stated, const SignatureParameter& parameter, std::string_view which)
      : stated_(stated), argument_(stated.argument), parameter_(parameter), which_(which) {}

  /// Throws `Error` for all but what has to hold for every parameter.
  void run() const {
    const bool called_scalar = stated_.has_role && argument_.role == ArgumentRole::scalar;
    const bool called_buffer = stated_.has_role && !called_scalar;
    if (parameter_.pointer) {
      if (called_scalar)
        refuse("role", "is called a scalar", "a buffer", "Leave \"role\" out, or pass the value itself");
      if (!argument_.value.empty())
        refuse("value", "has a value", "a buffer",
               "Give the buffer a shape instead, or pass the value itself");
      if (stated_.has_type && !is_element_of(argument_.type, parameter_)) refuse_type();
      if (called_buffer && argument_.role == ArgumentRole::input && parameter_.written_line > 0)
        refuse("role", "is called an input",
               "a buffer, and line " + std::to_string(parameter_.written_line) + " writes it",
               "Give it the role inout (or output, if its content before the call does not matter)");
    } else if (parameter_.type && parameter_.declaration.find('&') == std::string::npos) {
      if (called_buffer)
        refuse("role", "is called an " + std::string(to_string(argument_.role)), "a scalar",
               "Leave \"role\" out, or take it as a pointer");
      if (!argument_.shape.empty())
        refuse("shape", "has a shape", "a scalar", "Remove the shape, or take it as a pointer");
      if (stated_.has_type && !is_value_of(argument_.type, parameter_)) refuse_type();
    }
  }

  /// For an output that every kernel takes as const.
  [[noreturn]] void refuse_const() const {
    refuse("role", "is called an " + std::string(to_string(argument_.role)),
           "a buffer that it may not write, as does every other launch that is passed it",
           "Give it the role input, or take the const away");
  }

private:
  [[noreturn]] void refuse(std::string_view field, const std::string& stated, const std::string& declared,
                           std::string_view remedy) const {
    throw Error(error_id::task_signature,
                '"' + argument_.name + "\" " + stated + ", but line " + std::to_string(parameter_.line) +
                    " of the " + std::string(which_) + " declares `" + parameter_.declaration + "`, " +
                    declared,
                remedy, "argument " + argument_.name + ", " + std::string(field));
  }
  [[noreturn]] void refuse_type() const {
    const std::string declared(to_string(*parameter_.type));
    refuse("dtype", "is called " + std::string(to_string(argument_.type)),
           parameter_.pointer ? "elements of " + declared : "a value of " + declared,
           "Write \"" + declared + "\", leave \"dtype\" out, or correct the parameter");
  }

  const StatedArgument& stated_;
  const Argument& argument_;
  const SignatureParameter& parameter_;
  std::string_view which_;
};

/// The function that a launch names; null if it is not in the text, or more than once, as in two branches of
/// an `#if`.
[[nodiscard]] inline const Signature* certain_signature(const std::vector<Signature>& signatures,
                                                        std::string_view entry) {
  const Signature* found = nullptr;
  for (const auto& signature : signatures) {
    if (signature.name != entry) continue;
    if (found != nullptr) return nullptr;
    found = &signature;
  }
  return found;
}

inline void check_argument_counts(const ReadKernel& kernel) {
  for (const auto& launch : kernel.lines.launches) {
    const auto* const signature = certain_signature(kernel.signatures, launch.entry);
    if (signature == nullptr || signature->parameters.size() == launch.arguments.size()) continue;
    const auto passed = launch.arguments.size();
    throw Error(error_id::task_signature,
                "the launch line passes " + std::to_string(passed) +
                    (passed == 1 ? " argument" : " arguments") + ", but `" + launch.entry + "` of line " +
                    std::to_string(signature->line) + " takes " +
                    std::to_string(signature->parameters.size()),
                "Pass one argument for each parameter",
                std::string(kernel.which) + ", line " + std::to_string(launch.line));
  }
}

/// Whether a launch's argument is a tensor map of the buffer, through which kernels may write.
[[nodiscard]] inline bool is_tensor_map_of(std::string_view text, std::string_view name) {
  constexpr std::string_view opening = "tensor_map(";
  if (!text.starts_with(opening)) return false;
  text.remove_prefix(opening.size());
  return take_identifier(text) == name;
}

inline void check_statement(const StatedArgument& stated, const std::vector<ReadKernel>& kernels) {
  const auto& name = stated.argument.name;
  const SignatureParameter* unwritable = nullptr;
  std::string_view which;
  bool may_be_written = false;
  for (const auto& kernel : kernels)
    for (const auto& launch : kernel.lines.launches)
      for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
        if (is_tensor_map_of(launch.arguments[i], name)) may_be_written = true;
        if (launch.arguments[i] != name) continue;
        const auto* const signature = certain_signature(kernel.signatures, launch.entry);
        const auto* const parameter = signature == nullptr ? nullptr : &signature->parameters[i];
        if (parameter != nullptr) StatementCheck(stated, *parameter, kernel.which).run();
        if (parameter == nullptr || !parameter->points_to_const) {
          may_be_written = true;
        } else if (unwritable == nullptr) {
          unwritable = parameter;
          which = kernel.which;
        }
      }
  const bool result = stated.has_role && (stated.argument.role == ArgumentRole::output ||
                                          stated.argument.role == ArgumentRole::inout);
  if (result && unwritable != nullptr && !may_be_written)
    StatementCheck(stated, *unwritable, which).refuse_const();
}

} // namespace detail

/// Throws `Error` (`mtmc.task.004`), with the field and the line of the kernel, for the first statement that
/// no reading of the kernels bears out: a data type other than the parameter's, a buffer called a scalar or a
/// scalar a buffer, a shape of a scalar, a value of a buffer, an output that every kernel takes as const, an
/// input that a statement of a kernel writes; and for launch lines that pass another number of arguments than
/// the function takes. Types that this library does not know contradict nothing.
inline void refuse_contradictions(const std::vector<StatedArgument>& stated,
                                  const std::vector<ReadKernel>& kernels) {
  for (const auto& kernel : kernels) detail::check_argument_counts(kernel);
  for (const auto& entry : stated) detail::check_statement(entry, kernels);
}

} // namespace mtmc
