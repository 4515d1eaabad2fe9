#pragma once

#include <mtmc/analysis/flow/loop_nest.hpp>
#include <mtmc/analysis/flow/polynomial.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Variables, arrays, and where they are read and written.

namespace mtmc::inline MTMC_ABI {

/// How values are combined by an update `x = x op value` whose order does not matter (but for rounding).
enum class ReductionOperation : std::uint8_t {
  none,
  sum,
  product,
  minimum,
  maximum,
  bits_or,
  bits_and,
  bits_xor,
  any, ///< `a = a || condition`
  all  ///< `a = a && condition`
};

/// The name of the operation as in an OpenMP reduction clause: `+`, `*`, `min`, `max`, `|`, `&`,
/// `^`, `||`, `&&`; empty for none.
[[nodiscard]] constexpr std::string_view to_string(ReductionOperation operation) noexcept {
  switch (operation) {
  case ReductionOperation::none:
    return "";
  case ReductionOperation::sum:
    return "+";
  case ReductionOperation::product:
    return "*";
  case ReductionOperation::minimum:
    return "min";
  case ReductionOperation::maximum:
    return "max";
  case ReductionOperation::bits_or:
    return "|";
  case ReductionOperation::bits_and:
    return "&";
  case ReductionOperation::bits_xor:
    return "^";
  case ReductionOperation::any:
    return "||";
  case ReductionOperation::all:
    return "&&";
  }
  return "";
}

/// The operation that an operator on bits or truth values stands for (`|`, `&&`); none for any other text.
[[nodiscard]] constexpr ReductionOperation truth_operation(std::string_view symbol) noexcept {
  for (const ReductionOperation operation :
       {ReductionOperation::bits_or, ReductionOperation::bits_and, ReductionOperation::bits_xor,
        ReductionOperation::any, ReductionOperation::all})
    if (to_string(operation) == symbol) return operation;
  return ReductionOperation::none;
}

/// A variable of a function: a parameter, a local, or a global it mentions.
struct Variable {
  /// Where it comes from.
  enum class Kind : std::uint8_t { parameter, local, global };
  /// Where it comes from.
  Kind kind = Kind::local;
  /// As the text names it.
  std::string name;
  /// Type with pointers, as written: `const float*`.
  std::string type{};
  /// The innermost loop in whose body (or head) it is declared; null: outside all loops.
  const LoopInfo* loop = nullptr;
  /// The declarator or parameter; null for globals.
  const SyntaxNode* declaration = nullptr;
  /// Declared as a pointer.
  bool pointer = false;
  /// Declared as an array.
  bool array = false;
  /// Of a floating-point type, or pointing to one.
  bool floating = false;
  /// A static local or a global: it outlives the call.
  bool persistent = false;
  /// Its address is taken, or a reference to it exists: uses may be hidden.
  bool address_taken = false;
  /// Its uses as a scalar, in order: positions in `FunctionAnalysis::scalar_uses`.
  std::vector<std::size_t> uses{};
};

/// Where an array of a kernel lies.
enum class ArrayPlace : std::uint8_t {
  /// Memory that all threads see: parameters, globals, everything on a CPU.
  common,
  /// On-chip memory of one block of threads (`__shared__`).
  block,
  /// Declared in the function: one for each thread.
  own
};

/// A piece of memory that subscripts select from. Distinct arrays never overlap: the judge allocates every
/// buffer of a task and every scratch buffer by itself, and local arrays are objects of their own. Parameters
/// that some launch line gives the same buffer are one array here.
struct Array {
  /// The parameter, local array or global behind it.
  const Variable* variable = nullptr;
  /// The buffer's name, or the variable's.
  std::string name{};
  /// Type of an element, as written.
  std::string element_type{};
  /// Bytes of an element; 4 where the type is not known.
  int element_size = 4;
  /// Extents of a declared array, outermost first (the first one undefined for `a[]`); empty for pointers.
  std::vector<Polynomial> extents{};
  /// Strides of the dimensions that the flattened subscripts have in common, innermost first, the first one
  /// being 1: `{1, W, H*W}`. Empty for declared arrays and where no such strides exist.
  std::vector<Polynomial::Term> strides{};
  /// Declared in the function: nobody else sees it, and each iteration of the loop it is declared in has its
  /// own.
  bool local = false;
  /// Which threads see it.
  ArrayPlace place = ArrayPlace::common;
  /// Nobody writes it while the function runs: all that refer to it do so through `const`.
  bool constant = false;
  /// May be the same memory as any other array that is not local (a pointer whose origin is not understood).
  bool unknown = false;
};

/// One read or write of an element of an array.
struct Access {
  /// The array that is accessed.
  const Array* array = nullptr;
  /// A write; else a read.
  bool write = false;
  /// The expression and the statement it stands in.
  const SyntaxNode* node = nullptr;
  /// The statement that `node` stands in.
  const SyntaxNode* statement = nullptr;
  /// Innermost loop around it, or null.
  const LoopInfo* loop = nullptr;
  /// One polynomial per dimension: those of a declared array, or a single flattened one for a pointer.
  /// Undefined where the subscript is not understood; it is then any element.
  std::vector<Polynomial> subscripts{};
  /// The same, delinearised: one per dimension, outermost first, each provably within its dimension, so that
  /// two elements are the same exactly if all dimensions are equal. Equal to `subscripts` for declared
  /// arrays; empty where a flattened subscript cannot be taken apart.
  std::vector<Polynomial> dimensions{};
  /// Stands in a branch.
  bool conditional = false;
  /// A subscript depends on a value that was loaded from memory.
  bool indirect = false;
  /// The operation if it is the read or the write of an update `a[i] = a[i] op value`, `a[i] op= value`.
  ReductionOperation update = ReductionOperation::none;
  /// Position in the order of execution of one pass through the text.
  std::size_t order = 0;
};

/// One read or write of a scalar variable.
struct ScalarUse {
  /// The variable that is used.
  const Variable* variable = nullptr;
  /// A write; else a read.
  bool write = false;
  /// The expression.
  const SyntaxNode* node = nullptr;
  /// The statement it stands in.
  const SyntaxNode* statement = nullptr;
  /// The innermost loop around it, or null.
  const LoopInfo* loop = nullptr;
  /// The operation if it is the read or the write of an update `s = s op value`.
  ReductionOperation update = ReductionOperation::none;
  /// The innermost branch or loop that decides whether it happens at all; an index into
  /// `FunctionAnalysis::guards`.
  std::size_t guard = 0;
  /// Position among all accesses and uses in the order of execution, as `Access::order`.
  std::size_t order = 0;
};

} // namespace mtmc
