#pragma once
/// The functions of a kernel's text as they declare their parameters.

#include <mtmc/analysis/element_type.hpp>
#include <mtmc/core/kernel.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A parameter as its function declares it.
struct SignatureParameter {
  /// Empty for a parameter without a name.
  std::string name;
  /// The element type of a pointer or array, the type of a scalar; nothing if it is not one of the library's
  /// data types.
  std::optional<DataType> type;
  /// A pointer or an array.
  bool pointer = false;
  /// What it points to may not be written.
  bool points_to_const = false;
  /// The element type or type is `char`, whose sign the processor decides.
  bool plain_char = false;
  /// As written: "const long long* x".
  std::string declaration{};
  /// Where it is declared; 1-based.
  int line = 0;
  /// Line of a statement of the function that certainly writes what it points to; 0 = none was found.
  int written_line = 0;
};

/// A function a launch line may name.
struct Signature {
  std::string name;                           ///< the function's name
  std::vector<SignatureParameter> parameters; ///< in the order of the declaration
  int line = 0;                               ///< 1-based line of the definition
};

namespace detail {

/// Elements that a function's own statements write by their parameter's name: where each is written first.
/// Names that are declared once more in the body, and functions whose text depends on the preprocessor, are
/// left out.
class WrittenParameters {
public:
  explicit WrittenParameters(const SyntaxNode& body) { visit(body); }

  [[nodiscard]] int line_of(std::string_view name) const;

private:
  void visit(const SyntaxNode& node);

  void note(const SyntaxNode& target, const SyntaxNode& where);

  std::map<std::string, int, std::less<>> lines_;
  std::set<std::string, std::less<>> hidden_;
  bool conditional_ = false;
};

} // namespace detail

/// The functions defined in C-family text, in order. Other languages give none.
[[nodiscard]] std::vector<Signature> read_signatures(const Kernel& kernel);

/// The function of that name, or null.
[[nodiscard]] const Signature* find_signature(const std::vector<Signature>& signatures,
                                              std::string_view name) noexcept;

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/signature_inl.hpp>
#endif
