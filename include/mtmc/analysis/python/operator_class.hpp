#pragma once
/// Classes of PyTorch's operators.

#include <mtmc/core/enum_names.hpp>

#include <span>

namespace mtmc::inline MTMC_ABI {

/// What kind of work an operator is, as far as it matters to what it could be fused with.
enum class OperatorClass {
  contraction,   ///< sums of products over a shared axis: matrix products, linear layers, einsum
  convolution,   ///< sums of products over a window
  pointwise,     ///< each element of the result needs one element of each operand (with broadcasting)
  reduction,     ///< folds an axis: sum, max, argmax, a loss
  normalization, ///< folds an axis and goes over it once more: softmax, layer norm
  pooling,       ///< folds a window
  scan,          ///< partial results along an axis: cumsum
  gather,        ///< elements by index, or moved about: embedding, roll
  view,          ///< the same elements in another shape or order; copies such as `cat` count as views
  creation,      ///< needs no operand: zeros, arange
  random,        ///< draws numbers: dropout
  library,       ///< whole networks that no single kernel replaces: LSTM
  unknown        ///< not in the table
};

namespace detail {
inline constexpr EnumName<OperatorClass> operator_class_names[] = {
    {OperatorClass::contraction, "contraction"},
    {OperatorClass::convolution, "convolution"},
    {OperatorClass::pointwise, "pointwise"},
    {OperatorClass::reduction, "reduction"},
    {OperatorClass::normalization, "normalization"},
    {OperatorClass::pooling, "pooling"},
    {OperatorClass::scan, "scan"},
    {OperatorClass::gather, "gather"},
    {OperatorClass::view, "view"},
    {OperatorClass::creation, "creation"},
    {OperatorClass::random, "random"},
    {OperatorClass::library, "library"},
    {OperatorClass::unknown, "unknown"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<OperatorClass>> enum_names(OperatorClass) noexcept {
  return detail::operator_class_names;
}

} // namespace mtmc
