#pragma once
/// Recurrences of a row by all its threads: each takes neighbouring iterations, finds what they make of any
/// state, gets the state before them from the threads before, and goes through them again.

#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/reductions.hpp>
#include <mtmc/coder/transform/threads/row_loops.hpp>
#include <mtmc/coder/transform/threads/row_pairs.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A function by which each thread of a warp or a block gets the state in front of its own iterations.
struct ThreadScan {
  ReductionOperation operation = ReductionOperation::none; ///< none: `factor * state + offset`
  std::string type{};
  bool warp = false;
  bool compared = false; ///< extrema are chosen by a comparison
  std::string name{};    ///< of the function
  bool is_there = false; ///< the file has it already

  [[nodiscard]] bool same_as(const ThreadScan& other) const noexcept {
    return operation == other.operation && type == other.type && warp == other.warp &&
           compared == other.compared;
  }
  [[nodiscard]] bool is_affine() const noexcept { return operation == ReductionOperation::none; }

  /// An earlier value combined with a later one.
  [[nodiscard]] std::string combined(const std::string& earlier, const std::string& later) const {
    if (operation == ReductionOperation::minimum || operation == ReductionOperation::maximum) {
      const bool least = operation == ReductionOperation::minimum;
      if (compared) return later + (least ? " < " : " > ") + earlier + " ? " + later + " : " + earlier;
      const std::string function = type == "float"    ? (least ? "fminf" : "fmaxf")
                                   : type == "double" ? (least ? "fmin" : "fmax")
                                                      : (least ? "min" : "max");
      return function + '(' + earlier + ", " + later + ')';
    }
    return earlier + ' ' + std::string(to_string(operation)) + ' ' + later;
  }

  /// The definition.
  [[nodiscard]] std::string text() const { return is_affine() ? affine_text() : plain_text(); }

  /// A product of factors that stays finite: an infinity would make a state of zero no number, where the
  /// serial loop, which multiplies states alone, leaves it zero.
  [[nodiscard]] std::string bounded(const std::string& product) const {
    const bool wide = type == "double";
    const std::string end = wide ? "1.7976931348623157e308" : "3.402823466e+38f";
    return (wide ? "fmin(fmax(" : "fminf(fmaxf(") + product + ", -" + end + "), " + end + ')';
  }

private:
  [[nodiscard]] std::string comment() const {
    return std::string("// The state before this thread's own iterations: `carried` and those of all threads "
                       "of the ") +
           (warp ? "warp" : "block") + " before\n// it. `carried` moves on behind all of them.\n";
  }
  [[nodiscard]] std::string plain_text() const {
    std::string code =
        comment() + "__device__ " + type + ' ' + name + '(' + type + " own, " + type + "& carried) {\n";
    if (!warp) code += "  __shared__ " + type + " parts[32];\n";
    code += "  const int lane = threadIdx.x % 32;\n"
            "  for (int distance = 1; distance < 32; distance *= 2) {\n"
            "    const " +
            type +
            " earlier = __shfl_up_sync(0xffffffffu, own, distance);\n"
            "    if (lane >= distance) own = " +
            combined("earlier", "own") +
            ";\n  }\n"
            "  const " +
            type + " before = __shfl_up_sync(0xffffffffu, own, 1);\n";
    const std::string behind = combined("carried", "before");
    if (warp)
      return code + "  const " + type + " all = __shfl_sync(0xffffffffu, own, 31);\n  const " + type +
             " state = lane == 0 ? carried : (" + behind + ");\n  carried = " + combined("carried", "all") +
             ";\n  return state;\n}\n";
    return code +
           "  __syncthreads();\n"
           "  if (lane == 31) parts[threadIdx.x / 32] = own;\n"
           "  __syncthreads();\n  " +
           type +
           " state = carried;\n"
           "  for (int part = 0; part < blockDim.x / 32; ++part) {\n"
           "    if (part == threadIdx.x / 32) state = lane == 0 ? carried : (" +
           behind + ");\n    carried = " + combined("carried", "parts[part]") +
           ";\n  }\n"
           "  return state;\n}\n";
  }
  [[nodiscard]] std::string affine_text() const {
    std::string code =
        comment() + "// A thread's iterations make `factor * state + offset` of a state.\n__device__ " +
        type + ' ' + name + '(' + type + " factor, " + type + " offset, " + type + "& carried) {\n";
    if (!warp) code += "  __shared__ " + type + " factors[32], offsets[32];\n";
    code += "  const int lane = threadIdx.x % 32;\n"
            "  for (int distance = 1; distance < 32; distance *= 2) {\n"
            "    const " +
            type + " earlier_factor = __shfl_up_sync(0xffffffffu, factor, distance);\n    const " + type +
            " earlier_offset = __shfl_up_sync(0xffffffffu, offset, distance);\n"
            "    if (lane >= distance) {\n"
            "      offset = factor * earlier_offset + offset;\n"
            "      factor = " +
            bounded("factor * earlier_factor") +
            ";\n"
            "    }\n  }\n"
            "  const " +
            type + " factor_before = __shfl_up_sync(0xffffffffu, factor, 1);\n  const " + type +
            " offset_before = __shfl_up_sync(0xffffffffu, offset, 1);\n";
    if (warp)
      return code + "  const " + type + " all_factor = __shfl_sync(0xffffffffu, factor, 31);\n  const " +
             type + " all_offset = __shfl_sync(0xffffffffu, offset, 31);\n  const " + type +
             " state = lane == 0 ? carried : factor_before * carried + offset_before;\n"
             "  carried = all_factor * carried + all_offset;\n"
             "  return state;\n}\n";
    return code +
           "  __syncthreads();\n"
           "  if (lane == 31) {\n"
           "    factors[threadIdx.x / 32] = factor;\n"
           "    offsets[threadIdx.x / 32] = offset;\n"
           "  }\n"
           "  __syncthreads();\n  " +
           type +
           " state = carried;\n"
           "  for (int part = 0; part < blockDim.x / 32; ++part) {\n"
           "    if (part == threadIdx.x / 32) state = lane == 0 ? carried : factor_before * carried + "
           "offset_before;\n"
           "    carried = factors[part] * carried + offsets[part];\n"
           "  }\n"
           "  return state;\n}\n";
  }
};

/// Names the function: as one of the file that does the same, or as no other.
inline void give_name(const SyntaxNode& tree, ThreadScan& scan) {
  std::string base = scan.is_affine() ? "state" : std::string(name_of_operation(scan.operation));
  if (scan.compared) base = "kept_" + base;
  base += scan.warp ? "_before_in_warp" : "_before_in_block";
  if (scan.type != "float") base += '_' + scan.type;
  std::replace(base.begin(), base.end(), ' ', '_');
  scan.name = base;
  if (const SyntaxNode* const there = find_function(tree, base)) {
    const SyntaxNode wanted = parse(scan.text());
    const SyntaxNode* const function = find_function(wanted, base);
    if (function != nullptr && structurally_equal(*there, *function)) {
      scan.is_there = true;
      return;
    }
  }
  scan.name = fresh_name(tree, base);
}

/// Neighbouring iterations that a thread takes at a time, the number expected to be best first.
[[nodiscard]] inline std::vector<std::int64_t> scan_widths() { return {4, 1}; }

/// How threads share a recurrence.
struct ScanShape {
  std::int64_t threads = 256; ///< of a row
  std::int64_t each = 1;      ///< neighbouring iterations of a thread
  bool warp = false;
};

/// Writes the loop of a scan.
class ScanSharing {
public:
  ScanSharing(const LoopInfo& loop, const LoopScan& scan, const RowNames& names,
              std::function<std::string(ThreadScan)> function, std::string lane, ScanShape shape)
      : loop_(loop), scan_(scan), names_(names), function_(std::move(function)), lane_(std::move(lane)),
        shape_(shape) {}

  /// The loop over pieces of the row.
  [[nodiscard]] SyntaxNode share(const SyntaxNode& statement) {
    read_head();
    SyntaxNode body = loop_body(statement);
    std::string text = begin_piece();
    std::string states;
    for (const ScannedScalar& one : scan_.scalars) {
      const std::string state = names_.fresh(one.variable->name + "_here");
      text += own_part(one);
      states += one.variable->type + ' ' + state + " = " + before_ + ";\n";
      substitute(body, one.variable->name, make_name(state));
    }
    std::vector<SyntaxNode> inside = parse_statements(text + states);
    inside.push_back(over_piece(std::move(body)));
    const std::string over = "for (" + loop_.variable_type + ' ' + first_ + " = " + start_ + "; " + first_ +
                             ' ' + comparison_ + ' ' + bound_ + "; " + first_ + (up_ ? " += " : " -= ") +
                             std::to_string(distance_ * shape_.threads * shape_.each) + ") {}\n";
    SyntaxNode made = parse_statements(over).front();
    loop_body(made) = make_block(std::move(inside));
    made.leading_trivia = statement.leading_trivia;
    made.trailing_trivia = statement.trailing_trivia;
    return made;
  }

private:
  void read_head() {
    up_ = loop_.step > 0;
    distance_ = up_ ? loop_.step : -loop_.step;
    if (loop_.variable_type.empty())
      throw TransformDeclined("the variable of " + loop_name(loop_) +
                              " is declared outside: its value may be used after the loop");
    if (loop_.comparison.empty() || (loop_.comparison == "!=" && distance_ != 1))
      throw TransformDeclined(loop_name(loop_) + " does not count to a bound");
    if (!up_ && is_unsigned_type(loop_.variable_type))
      throw TransformDeclined(loop_name(loop_) + " counts down without a sign");
    comparison_ = loop_.comparison != "!=" ? loop_.comparison : up_ ? "<" : ">";
    start_ = print(*loop_.start_expression);
    bound_ = print(make_binary(comparison_, make_name("x"), *loop_.bound_expression))
                 .substr(3 + comparison_.size());
    first_ = names_.fresh(loop_.variable + "_first");
  }

  /// The first iteration of the thread's piece.
  [[nodiscard]] std::string begin_piece() {
    const std::int64_t width = distance_ * shape_.each;
    const std::string begin =
        first_ + (up_ ? " + " : " - ") + (width == 1 ? lane_ : std::to_string(width) + " * " + lane_);
    begin_ = shape_.each == 1 ? loop_.variable : names_.fresh(loop_.variable + "_begin");
    return "const " + loop_.variable_type + ' ' + begin_ + " = " + begin + ";\n";
  }
  /// The statement for each iteration of the thread's piece.
  [[nodiscard]] SyntaxNode over_piece(SyntaxNode body) const {
    const std::string& j = loop_.variable;
    if (shape_.each == 1) {
      SyntaxNode branch = parse_statements("if (" + j + ' ' + comparison_ + ' ' + bound_ + ") {}\n").front();
      then_branch(branch) = as_block(std::move(body));
      return branch;
    }
    const std::string end = begin_ + (up_ ? " + " : " - ") + std::to_string(distance_ * shape_.each);
    const std::string move =
        distance_ == 1 ? (up_ ? "++" : "--") + j : j + (up_ ? " += " : " -= ") + std::to_string(distance_);
    SyntaxNode made = parse_statements("for (" + loop_.variable_type + ' ' + j + " = " + begin_ + "; " + j +
                                       (up_ ? " < " : " > ") + end + " && " + j + ' ' + comparison_ + ' ' +
                                       bound_ + "; " + move + ") {}\n")
                          .front();
    loop_body(made) = as_block(std::move(body));
    return made;
  }

  /// What the thread's piece makes of the scalar, and the call that gives the state before it.
  [[nodiscard]] std::string own_part(const ScannedScalar& one) {
    const std::string& type = one.variable->type;
    ThreadScan kind{one.operation, type, shape_.warp, one.compared};
    Reduction reduction;
    reduction.operation = kind.is_affine() ? ReductionOperation::sum : one.operation;
    reduction.type = type;
    if (!thread_reduction(reduction, shape_.warp))
      throw TransformDeclined("threads cannot combine values of the type " + type);
    const std::string function = function_(kind);
    const std::string own = names_.fresh(one.variable->name + "_own");
    SyntaxNode value = one.value;
    substitute(value, one.variable->name, make_name(own));
    std::vector<SyntaxNode> steps;
    std::string text;
    if (kind.is_affine()) {
      const std::string factor = names_.fresh(one.variable->name + "_factor");
      text += type + ' ' + factor + (type == "double" ? " = 1.0;\n" : " = 1.0f;\n");
      text += type + ' ' + own + (type == "double" ? " = 0.0;\n" : " = 0.0f;\n");
      steps.push_back(make_assignment(
          make_name(factor), "=",
          parse_expression(kind.bounded(print(make_binary("*", make_name(factor), one.factor))))));
      before_ = function + '(' + factor + ", " + own + ", " + one.variable->name + ')';
    } else {
      text += type + ' ' + own + " = " + identity(reduction) + ";\n";
      before_ = function + '(' + own + ", " + one.variable->name + ')';
    }
    steps.push_back(short_assignment(own, std::move(value)));
    return text +
           print(over_piece(steps.size() == 1 ? std::move(steps.front()) : make_block(std::move(steps)))) +
           '\n';
  }
  /// `own += x` for `own = own + x`.
  [[nodiscard]] static SyntaxNode short_assignment(const std::string& own, SyntaxNode value) {
    if (value.kind == NodeKind::binary && (value.text == "+" || value.text == "*") &&
        is_name(left_operand(value), own))
      return make_assignment(make_name(own), value.text + '=', SyntaxNode(right_operand(value)));
    return make_assignment(make_name(own), "=", std::move(value));
  }
  /// The value that changes no other.
  [[nodiscard]] static std::string identity(const Reduction& reduction) {
    std::string known = identity_of_reduction(reduction);
    if (!known.empty()) return known;
    const bool least = reduction.operation == ReductionOperation::minimum;
    const TypeFacts type = type_facts(reduction.type);
    if (type.floating) return least ? "INFINITY" : "-INFINITY";
    if (type.is_unsigned) return least ? (type.size == 8 ? "18446744073709551615ull" : "4294967295u") : "0";
    if (type.size == 8) return least ? "9223372036854775807ll" : "-9223372036854775807ll - 1";
    return least ? "2147483647" : "-2147483647 - 1";
  }

  const LoopInfo& loop_;
  const LoopScan& scan_;
  const RowNames& names_;
  const std::function<std::string(ThreadScan)> function_;
  const std::string lane_;
  const ScanShape shape_;
  bool up_ = true;
  std::int64_t distance_ = 1;
  std::string comparison_{};
  std::string start_{};
  std::string bound_{};
  std::string first_{};
  std::string begin_{};
  std::string before_{};
};

} // namespace mtmc::detail
