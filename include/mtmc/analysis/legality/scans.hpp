#pragma once

#include <mtmc/analysis/dependence/dependence.hpp>
#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/flow/updates.hpp>
#include <mtmc/analysis/legality/loop_legality.hpp>
#include <mtmc/analysis/legality/scalar_values.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Recurrences through associative operations, whose every state is used: cumulative sums and the like.

namespace mtmc::inline MTMC_ABI {

/// One scalar that an iteration takes from the one before and hands on.
struct ScannedScalar {
  /// The scalar.
  const Variable* variable = nullptr;
  /// What it is combined with the iterations' values by; none: `factor * state + value`.
  ReductionOperation operation = ReductionOperation::none;
  /// Its value behind an iteration, in terms of that before it and of nothing else that the loop assigns.
  SyntaxNode value{};
  /// Of `factor * state + value`: the factor.
  SyntaxNode factor{};
  /// Of extrema: chosen by a comparison, which a first value that is no number never loses; else by a
  /// function.
  bool compared = false;
};

/// What a loop hands on.
struct LoopScan {
  /// All of it is understood; else the reason.
  Legality legality{};
  /// In the order of the text.
  std::vector<ScannedScalar> scalars{};
};

namespace detail {

/// `factor * state + offset`.
struct AffineValue {
  SyntaxNode factor = make_integer(0);
  SyntaxNode offset = make_integer(0);
};

/// Whether a value may have a fraction, for all that is known of the variables in it: an integer that it is
/// combined with is rounded each time.
[[nodiscard]] inline bool may_have_fraction(const SyntaxNode& value, const FunctionAnalysis& function) {
  const auto any = [&](std::span<const SyntaxNode> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const SyntaxNode& part) { return may_have_fraction(part, function); });
  };
  switch (value.kind) {
  case NodeKind::literal: {
    const bool hexadecimal = value.text.starts_with("0x") || value.text.starts_with("0X");
    return !hexadecimal && value.text.find_first_of(".eEfF") != std::string::npos;
  }
  case NodeKind::name:
    return std::any_of(function.variables.begin(), function.variables.end(), [&](const Variable& variable) {
      return variable.name == value.text && !type_facts(variable.type).integer;
    });
  case NodeKind::cast:
    return !type_facts(value.type).integer;
  case NodeKind::subscript:
    return may_have_fraction(subscript_base(value), function);
  case NodeKind::conditional:
    return any(std::span(value.children).subspan(1));
  case NodeKind::binary: {
    static constexpr std::array<std::string_view, 8> truths{"<", ">", "<=", ">=", "==", "!=", "&&", "||"};
    return std::find(truths.begin(), truths.end(), value.text) == truths.end() && any(value.children);
  }
  case NodeKind::unary:
    return value.text != "!" && any(value.children);
  case NodeKind::call:
    return (!is_call_of(value, "min") && !is_call_of(value, "max")) || any(arguments(value));
  default:
    return true;
  }
}

/// Reads how a value depends on one scalar.
class ScanReader {
public:
  ScanReader(std::string name, bool real) : name_(std::move(name)), real_(real) {}

  /// The operation, if the value is the scalar combined with others by one, or the scalar alone.
  [[nodiscard]] bool is_update(const SyntaxNode& value, ScannedScalar& scanned) const {
    if (is_name(value, name_)) return true;
    if (value.kind == NodeKind::conditional) {
      const ReductionOperation chosen = selection(value.children[0], value.children[1], value.children[2]);
      if (chosen != ReductionOperation::none && uses_name(value.children[0], name_)) {
        // `state > x ? state : x` would take an x that is no number
        const bool keeps = is_name(value.children[2], name_) && !uses_name(value.children[1], name_);
        const bool other = is_name(value.children[1], name_) && !uses_name(value.children[2], name_);
        scanned.compared = true;
        return (keeps || (other && !real_)) && set(chosen, scanned);
      }
      return !uses_name(value.children[0], name_) && is_update(value.children[1], scanned) &&
             is_update(value.children[2], scanned);
    }
    const Update found = find_update(make_name(name_), value, [](const SyntaxNode& call) {
      return callee(call).kind == NodeKind::name ? library_effect(callee(call).text).selects
                                                 : ReductionOperation::none;
    });
    if (found.operation == ReductionOperation::none || count_uses(value) != 1) return false;
    return set(found.operation, scanned);
  }

  /// The value as `factor * state + offset`, if it is that.
  [[nodiscard]] std::optional<AffineValue> affine(const SyntaxNode& value) const {
    if (is_name(value, name_)) return AffineValue{make_integer(1), make_integer(0)};
    if (!uses_name(value, name_)) return AffineValue{make_integer(0), value};
    if (value.kind == NodeKind::conditional && !uses_name(value.children[0], name_)) {
      const auto a = affine(value.children[1]), b = affine(value.children[2]);
      if (!a || !b) return std::nullopt;
      return AffineValue{make_conditional(value.children[0], a->factor, b->factor), {}};
    }
    if (is_call_of(value, "fmaf") || is_call_of(value, "fma")) {
      if (value.children.size() != 4) return std::nullopt;
      return affine(
          make_binary("+", make_binary("*", value.children[1], value.children[2]), value.children[3]));
    }
    if (value.kind != NodeKind::binary) return std::nullopt;
    const SyntaxNode &left = left_operand(value), &right = right_operand(value);
    if (value.text == "+" || value.text == "-") {
      const auto a = affine(left), b = affine(right);
      if (!a || !b) return std::nullopt;
      const bool from_right = uses_name(right, name_);
      if (from_right && (uses_name(left, name_) || value.text == "-")) return std::nullopt;
      return AffineValue{from_right ? b->factor : a->factor, {}};
    }
    if (value.text != "*" || (uses_name(left, name_) && uses_name(right, name_))) return std::nullopt;
    const bool from_left = uses_name(left, name_);
    const auto inner = affine(from_left ? left : right);
    if (!inner) return std::nullopt;
    const SyntaxNode& other = from_left ? right : left;
    const bool plain = inner->factor.kind == NodeKind::literal && inner->factor.text == "1";
    return AffineValue{plain ? other : make_binary("*", other, inner->factor), {}};
  }

private:
  [[nodiscard]] static bool set(ReductionOperation operation, ScannedScalar& scanned) {
    if (scanned.operation != ReductionOperation::none && scanned.operation != operation) return false;
    scanned.operation = operation;
    return true;
  }
  [[nodiscard]] std::size_t count_uses(const SyntaxNode& value) const {
    std::size_t count = 0;
    walk(value, [&](const SyntaxNode& node) { count += is_name(node, name_) ? 1 : 0; });
    return count;
  }

  const std::string name_;
  const bool real_;
};

/// A literal factor that makes a state grow.
[[nodiscard]] inline bool is_growing(const SyntaxNode& factor) {
  if (factor.kind != NodeKind::literal) return false;
  double value = 0;
  try {
    value = std::stod(factor.text);
  } catch (const std::exception&) {
    return true;
  }
  return value > 1;
}

/// The value needs a variable that only the loop's body declares.
[[nodiscard]] inline bool uses_locals(const SyntaxNode& value, const LoopInfo& loop) {
  bool found = false;
  walk(loop_body(*loop.node), [&](const SyntaxNode& node) {
    found = found || (node.kind == NodeKind::declarator && uses_name(value, node.text));
  });
  return found;
}

/// An element is read behind the place where the iteration writes it.
[[nodiscard]] inline bool reads_back(const LoopInfo& loop) {
  const auto all = loop.function->accesses.begin();
  for (std::size_t w = loop.accesses.first; w < loop.accesses.last; ++w)
    for (std::size_t r = loop.accesses.first; r < loop.accesses.last; ++r) {
      const Access& write = all[static_cast<std::ptrdiff_t>(w)];
      const Access& read = all[static_cast<std::ptrdiff_t>(r)];
      if (write.write && !read.write && read.order > write.order &&
          (read.array == write.array || read.array->unknown || write.array->unknown))
        return true;
    }
  return false;
}

} // namespace detail

/// What a loop hands on from iteration to iteration, where it is scans and nothing else.
[[nodiscard]] inline LoopScan loop_scan(const LoopInfo& loop) {
  LoopScan scan;
  const auto refused = [&](std::string reason) {
    scan.legality = detail::declined(std::move(reason));
    return scan;
  };
  if (Legality known = detail::analysable(loop); !known) return refused(known.reason);
  for (const Dependence& dependence : dependences_in(loop))
    if (carries(loop, dependence)) return refused(detail::depends(loop, dependence));
  if (detail::reads_back(loop)) return refused(detail::shown(loop) + " reads what its iteration wrote");
  std::vector<const Variable*> variables;
  std::vector<std::string> names;
  for (const ScalarFacts& scalar : classify_scalars(loop)) {
    if (scalar.role == ScalarRole::invariant || scalar.declared_inside) continue;
    if (scalar.role == ScalarRole::privatizable && !scalar.live_out) continue;
    const auto& all = loop.function->variables;
    const bool one = std::count_if(all.begin(), all.end(), [&](const Variable& other) {
                       return other.name == scalar.variable->name;
                     }) == 1;
    if (!one || scalar.variable->address_taken || scalar.variable->persistent || scalar.variable->pointer)
      return refused(detail::depends(loop, *scalar.variable));
    variables.push_back(scalar.variable);
    names.push_back(scalar.variable->name);
  }
  if (variables.empty()) return refused("iterations of " + detail::shown(loop) + " hand nothing on");
  const auto values = detail::values_after_iteration(loop, names, true);
  for (const Variable* variable : variables) {
    const SyntaxNode* const value = values ? values->find(variable->name) : nullptr;
    if (value == nullptr || values->nested()) return refused(detail::depends(loop, *variable));
    for (const std::string& name : names)
      if (name != variable->name && uses_name(*value, name)) return refused(detail::depends(loop, *variable));
    if (detail::uses_locals(*value, loop)) return refused(detail::depends(loop, *variable));
    ScannedScalar scanned;
    scanned.variable = variable;
    scanned.value = *value;
    const bool real = type_facts(variable->type).floating;
    if (!real && detail::may_have_fraction(*value, *loop.function))
      return refused(detail::depends(loop, *variable));
    const detail::ScanReader reader(variable->name, real);
    if (!reader.is_update(*value, scanned) || scanned.operation == ReductionOperation::none) {
      const auto affine = uses_name(*value, variable->name) ? reader.affine(*value) : std::nullopt;
      if (!affine || !real || detail::is_growing(affine->factor))
        return refused(detail::depends(loop, *variable));
      scanned.operation = ReductionOperation::none;
      scanned.factor = affine->factor;
    }
    scan.scalars.push_back(std::move(scanned));
  }
  scan.legality = detail::allowed();
  return scan;
}

} // namespace mtmc
