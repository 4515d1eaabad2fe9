#pragma once
// From an operator to the text that somebody writes for it first.

#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elements.hpp"
#include "names.hpp"
#include "operator.hpp"
#include "sizes.hpp"
#include "text_style.hpp"

namespace generated {

/// How somebody writes kernels.
struct Style {
  std::string index_type = "int";        ///< of loops and extents
  IndexStyle index = IndexStyle::nested; ///< how elements are addressed
  bool one_function = false;             ///< all steps in one, in C++
  bool early_return = false;             ///< threads beyond the end return, rather than skip a block
  bool outputs_first = false;            ///< order of parameters
  bool derived_as_arguments = false;     ///< integers that follow from others are passed
  bool double_precision = false;         ///< double for float
  bool standard_names = false;           ///< std::exp rather than expf
  bool static_casts = false;             ///< static_cast<float>(i) rather than (float)i
  bool row_pointers = false;             ///< rows have pointers of their own
  bool commented = true;                 ///< a line says what it is
  bool launches_last = false;            ///< launch lines stand behind the functions
  std::string restricted{};              ///< qualifier of pointers
  std::string function_prefix{};         ///< in front of `void`
  std::string helper_prefix{};           ///< of helper functions, with their type
  std::string name_suffix{};             ///< behind names of functions
  bool camel_case = false;               ///< of names of functions
  TextStyle text{};                      ///< outside
};

/// A style in which somebody may write this operator.
[[nodiscard]] inline Style drawn_style(Draw& draw, const Operator& made) {
  Style style;
  if (draw.cuda())
    style.index_type = made.signed_indices
                           ? draw.pick({"int", "int", "int", "long long"})
                           : draw.pick({"int", "int", "int", "int", "unsigned", "size_t", "long long"});
  else
    style.index_type = made.signed_indices
                           ? draw.pick({"int", "int", "int", "long"})
                           : draw.pick({"int", "int", "int", "int", "long", "std::size_t", "long long"});
  style.index = draw.chance(0.65) ? IndexStyle::nested : IndexStyle::products;
  style.one_function = !draw.cuda() && !made.launches_of_their_own && draw.chance(0.5);
  style.early_return = draw.chance(0.4);
  style.outputs_first = draw.chance(0.15);
  style.derived_as_arguments = draw.chance(0.4);
  style.double_precision = draw.chance(0.06);
  style.standard_names = !draw.cuda() && draw.chance(0.7);
  style.static_casts = !draw.cuda() && draw.chance(0.5);
  style.row_pointers = draw.chance(0.2);
  style.commented = draw.chance(0.85);
  style.launches_last = draw.chance(draw.cuda() ? 0.2 : 0.7);
  style.restricted = draw.chance(0.15) ? "__restrict__ " : "";
  style.function_prefix = !draw.cuda() ? "" : draw.chance(0.15) ? "extern \"C\" __global__ " : "__global__ ";
  style.helper_prefix =
      draw.cuda() ? draw.pick({"__device__ float", "__device__ inline float", "static __device__ float"})
                  : draw.pick({"static float", "static inline float", "inline float"});
  style.name_suffix = draw.chance(draw.cuda() ? 0.3 : 0.05) ? "_kernel" : "";
  style.camel_case = draw.chance(0.12);
  style.text = drawn_text_style(draw);
  return style;
}

/// A function and how it is launched.
struct Function {
  std::string name;                ///< unique
  std::string body;                ///< statements, one a line
  std::set<std::string> written{}; ///< buffers that it assigns to
  std::string grid{}, block{};     ///< of CUDA
};

/// Writes one operator in one style.
class SourceWriter {
public:
  /// A writer for the operator; `timed` says how large launches become.
  SourceWriter(Draw& draw, const Operator& made, const mtmc::Symbols& timed)
      : draw_(draw), made_(made), timed_(timed), style_(drawn_style(draw, made)) {
    const auto taken = identifiers_of(all_texts(made));
    for (flat_ = draw.pick({"at", "idx", "index", "tid", "n", "e"}); taken.contains(flat_);) flat_ += '_';
    names_ = taken;
  }

  /// The whole source, in plain names.
  [[nodiscard]] std::string write() {
    make_functions();
    std::string functions, launches;
    for (const Function& function : functions_) {
      functions += '\n' + text_of(function);
      launches += launch_of(function) + '\n';
    }
    std::string scratch;
    for (const Buffer& buffer : made_.buffers)
      if (buffer.role == Role::scratch)
        scratch += "//@ scratch " + buffer.name + ": " + element_name(buffer) + '[' +
                   mtmc::detail::joined(shape_of(made_, buffer)) + "]\n";
    launches = scratch + launches;
    if (style_.launches_last) launches = '\n' + launches;
    std::string helpers =
        made_.helpers.empty() ? "" : '\n' + with_word(made_.helpers, "HELPER", style_.helper_prefix);
    std::string code = helpers + functions;
    code = with_word(code, "Int", style_.index_type);
    if (style_.static_casts) code = with_static_casts(code);
    code = with_functions(code);
    if (style_.double_precision) code = in_double(code);
    std::string text = style_.commented ? "// " + comment() + '\n' : "";
    text += includes(code);
    if (!style_.launches_last) text += (text.empty() ? "" : "\n") + launches;
    text += laid_out(code, style_.text);
    text += style_.launches_last ? launches : "";
    if (style_.text.postfix_increment) text = with_postfix(std::move(text));
    if (style_.text.star_at_name) text = with_stars(std::move(text));
    return std::string(mtmc::trim(text)) + '\n';
  }

private:
  [[nodiscard]] std::string element_name(const Buffer& buffer) const {
    if (buffer.type == "int") return "i32";
    if (buffer.type != "float") return "i8";
    return style_.double_precision ? "f64" : "f32";
  }

  [[nodiscard]] std::string comment() const { return made_.summary; }

  // Functions -----------------------------------------------------------------------------------------------

  void make_functions() {
    std::vector<Nest> nests = made_.nests;
    if (style_.one_function) {
      Function all{function_name(made_.kind), {}, {}, {}, {}};
      for (const Nest& nest : nests) {
        const auto body = body_of(nest);
        all.body += (all.body.empty() ? "" : "\n") + loops_of(nest, body.text);
        all.written.insert(body.written.begin(), body.written.end());
      }
      functions_.push_back(std::move(all));
    } else {
      for (const Nest& nest : nests) functions_.push_back(function_of(nest));
    }
    for (Function& function : functions_) function.body = preludes(function.body) + function.body;
  }

  /// The statements of a nest with its elements written out.
  [[nodiscard]] Expanded body_of(const Nest& nest) const {
    if (!style_.row_pointers) return expanded(nest.body, made_.buffers, style_.index);
    const auto rows = with_row_pointers(nest, made_.buffers, style_.index);
    auto body = expanded(rows.text, made_.buffers, style_.index);
    body.written.insert(rows.written.begin(), rows.written.end());
    return body;
  }

  [[nodiscard]] Function function_of(const Nest& nest) {
    const auto body = body_of(nest);
    Function function{function_name(nest.name), {}, body.written, {}, {}};
    if (draw_.cuda())
      write_threads(nest, body.text, function);
    else
      function.body = loops_of(nest, body.text);
    return function;
  }

  /// The name in the drawn fashion, which no other function and no variable has.
  [[nodiscard]] std::string function_name(std::string name) {
    name += style_.name_suffix;
    if (style_.camel_case)
      for (auto bar = name.find('_'); bar != std::string::npos && bar + 1 < name.size();
           bar = name.find('_')) {
        name.erase(bar, 1);
        name[bar] =
            static_cast<char>(name[bar] >= 'a' && name[bar] <= 'z' ? name[bar] - 'a' + 'A' : name[bar]);
      }
    std::string unique = name;
    for (int number = 2; !names_.insert(unique).second; ++number) unique = name + std::to_string(number);
    return unique;
  }

  /// Declarations of the derived integers that a body needs, or nothing where they are parameters.
  [[nodiscard]] std::string preludes(const std::string& body) const {
    std::string text;
    if (style_.derived_as_arguments) return text;
    for (const Derived& one : made_.derived)
      if (mtmc::has_word(body, one.name)) text += "const Int " + one.name + " = " + one.expression + ";\n";
    return text;
  }

  /// Whether there is a single point.
  [[nodiscard]] static bool is_single(const Nest& nest) {
    return nest.axes.size() == 1 && nest.axes[0].extent == "1";
  }

  // C++ -----------------------------------------------------------------------------------------------------

  [[nodiscard]] std::string loops_of(const Nest& nest, std::string body) {
    auto axes = nest.axes;
    if (is_single(nest)) return with_word(body, axes[0].index, "0");
    const bool from_zero =
        std::all_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.first == "0"; });
    if (!nest.ordered && from_zero && axes.size() >= 2 && draw_.chance(0.1))
      return looped({{flat_, flat_count(axes)}}, flat_indices(axes, flat_, "const Int ") + body);
    if (!nest.ordered && draw_.chance(0.3)) draw_.shuffle(axes);
    return looped(axes, body);
  }

  [[nodiscard]] static std::string flat_count(const std::vector<Axis>& axes) {
    std::string count;
    for (const Axis& axis : axes) count += (count.empty() ? "" : " * ") + as_factor(axis.extent);
    return count;
  }

  /// Declares the index of each axis from one number.
  [[nodiscard]] static std::string flat_indices(const std::vector<Axis>& axes, const std::string& from,
                                                const std::string& type) {
    std::string text;
    for (std::size_t n = 0; n < axes.size(); ++n) {
      const std::vector<Axis> inner(axes.begin() + static_cast<std::ptrdiff_t>(n) + 1, axes.end());
      const auto divisor = inner.size() > 1 ? '(' + flat_count(inner) + ')' : flat_count(inner);
      text += type + axes[n].index + " = " + from + (inner.empty() ? "" : " / " + divisor) +
              (n == 0 ? "" : " % " + as_factor(axes[n].extent)) + ";\n";
    }
    return text;
  }

  // CUDA ----------------------------------------------------------------------------------------------------

  /// Where a thread stands along one dimension of the launch.
  [[nodiscard]] std::string thread_number(char dimension) const {
    const std::string d(1, dimension);
    const bool wide = style_.index_type == "size_t" || style_.index_type == "long long";
    return filled(wide ? "({0})blockIdx.{1} * blockDim.{1} + threadIdx.{1}"
                       : "blockIdx.{1} * blockDim.{1} + threadIdx.{1}",
                  {style_.index_type, d});
  }

  [[nodiscard]] std::string guarded(const std::string& inside, const std::string& outside,
                                    const std::string& body) const {
    const std::string statements = body + (body.ends_with('\n') ? "" : "\n");
    if (style_.early_return) return "if (" + outside + ") return;\n" + statements;
    return "if (" + inside + ") {\n" + statements + "}\n";
  }

  [[nodiscard]] std::int64_t value_of(const std::string& extent) const {
    return mtmc::evaluate_expression(over_symbols(made_, extent), timed_);
  }

  /// All axes as one number of threads.
  void write_flat(const std::vector<Axis>& axes, const std::string& body, Function& function) {
    const auto block = draw_.pick({"128", "256", "256", "512", "64"});
    const auto count = over_symbols(made_, flat_count(axes));
    const bool one = axes.size() == 1;
    const std::string index = one ? axes[0].index : flat_;
    const std::string inner =
        (one ? "" : flat_indices(axes, index, draw_.chance(0.5) ? "const Int " : "Int ")) + body;
    function.block = block;
    if (draw_.chance(0.1)) {
      function.grid = draw_.pick({"256", "1024", "2 * compute_units", "8 * compute_units"});
      function.body = filled("for (Int {0} = {1}; {0} < {2}; {0} += gridDim.x * blockDim.x) {\n",
                             {index, thread_number('x'), flat_count(axes)}) +
                      inner + (inner.ends_with('\n') ? "" : "\n") + "}\n";
      return;
    }
    function.grid = "ceil_div(" + count + ", " + block + ")";
    function.body = "Int " + index + " = " + thread_number('x') + ";\n" +
                    guarded(index + " < " + flat_count(axes), index + " >= " + flat_count(axes), inner);
  }

  /// Two or three axes along x, y and z of the launch; `axes` has the one along x first. False if a launch
  /// cannot be so large.
  [[nodiscard]] bool write_grid(const std::vector<Axis>& axes, const std::string& body, Function& function) {
    const std::vector<std::pair<int, int>> blocks{{16, 16}, {32, 8}, {8, 8},   {32, 4},
                                                  {64, 4},  {16, 8}, {32, 32}, {128, 1}};
    const auto [width, height] = draw_.pick(blocks);
    constexpr std::int64_t most = 65535;
    if (value_of(axes[1].extent) > most * height || (axes.size() > 2 && value_of(axes[2].extent) > most))
      return false;
    const auto blocks_for = [&](const Axis& axis, int threads) {
      const auto extent = over_symbols(made_, axis.extent);
      return threads == 1 ? extent : "ceil_div(" + extent + ", " + std::to_string(threads) + ')';
    };
    function.grid = '(' + blocks_for(axes[0], width) + ", " + blocks_for(axes[1], height);
    function.block = height == 1 ? std::to_string(width)
                                 : '(' + std::to_string(width) + ", " + std::to_string(height) + ')';
    std::string indices, inside, outside;
    for (std::size_t n = 0; n < axes.size(); ++n) {
      const bool block_alone = n == 2 || (n == 1 && height == 1);
      const char dimension = "xyz"[n];
      indices += "Int " + axes[n].index + " = " +
                 (block_alone ? "blockIdx." + std::string(1, dimension) : thread_number(dimension)) + ";\n";
      if (block_alone) continue;
      inside += (inside.empty() ? "" : " && ") + axes[n].index + " < " + axes[n].extent;
      outside += (outside.empty() ? "" : " || ") + axes[n].index + " >= " + axes[n].extent;
    }
    if (axes.size() > 2) function.grid += ", " + blocks_for(axes[2], 1);
    function.grid += ')';
    function.body = indices + guarded(inside, outside, body);
    return true;
  }

  /// Threads for some of the axes, loops for the others.
  void write_threads(const Nest& nest, std::string body, Function& function) {
    auto axes = nest.axes;
    if (is_single(nest)) {
      function.grid = function.block = "1";
      function.body = with_word(body, axes[0].index, "0");
      return;
    }
    std::vector<Axis> loops;
    if (axes.size() > 1 && draw_.chance(0.15)) { // one thread for a row, or for a column
      const auto at = static_cast<std::ptrdiff_t>(draw_.chance(0.7) ? axes.size() - 1 : 0);
      std::vector<Axis> rest = axes;
      rest.erase(rest.begin() + at);
      if (value_of(flat_count(rest)) >= 256 && value_of(axes[static_cast<std::size_t>(at)].extent) <= 16384) {
        loops.push_back(axes[static_cast<std::size_t>(at)]);
        axes = rest;
      }
    }
    if (!loops.empty()) body = looped(loops, body);
    if (axes.size() >= 2 && axes.size() <= 3 && draw_.chance(0.6)) {
      std::vector<Axis> along(axes.rbegin(), axes.rend());
      if (draw_.chance(0.2)) std::swap(along[0], along[1]);
      if (write_grid(along, body, function)) return;
    }
    write_flat(axes, body, function);
  }

  // Parameters and launches
  // -----------------------------------------------------------------------------------

  /// What a function takes: its declaration and what the launch passes.
  struct Parameter {
    std::string declaration; ///< with its type
    std::string argument;    ///< a name or an expression
  };

  [[nodiscard]] std::vector<Parameter> parameters_of(const Function& function) const {
    std::vector<Parameter> inputs, outputs, numbers;
    const auto used = identifiers_of(function.body);
    for (const Buffer& buffer : made_.buffers) {
      if (!used.contains(buffer.name)) continue;
      const bool written = function.written.contains(buffer.name);
      (written ? outputs : inputs)
          .push_back({(written ? "" : "const ") + buffer.type + "* " + style_.restricted + buffer.name,
                      buffer.name});
    }
    for (const Scalar& scalar : made_.scalars)
      if (used.contains(scalar.name)) numbers.push_back({"float " + scalar.name, scalar.name});
    const auto add_integer = [&](const std::string& name, const std::string& argument) {
      if (used.contains(name)) numbers.push_back({"Int " + name, argument});
    };
    for (const Symbol& symbol : made_.symbols) add_integer(symbol.name, symbol.name);
    for (const Buffer& buffer : made_.buffers)
      if (buffer.padding > 0) add_integer(stride_name(buffer), shape_of(made_, buffer).back());
    if (style_.derived_as_arguments)
      for (const Derived& one : made_.derived) add_integer(one.name, over_symbols(made_, one.expression));
    auto all = style_.outputs_first ? outputs : inputs;
    const auto& later = style_.outputs_first ? inputs : outputs;
    all.insert(all.end(), later.begin(), later.end());
    all.insert(all.end(), numbers.begin(), numbers.end());
    return all;
  }

  [[nodiscard]] std::string text_of(const Function& function) const {
    std::vector<std::string> declarations;
    for (const auto& one : parameters_of(function)) declarations.push_back(one.declaration);
    return style_.function_prefix + "void " + function.name + '(' + mtmc::detail::joined(declarations) +
           ") {\n" + function.body + "}\n";
  }

  [[nodiscard]] std::string launch_of(const Function& function) const {
    std::vector<std::string> arguments;
    for (const auto& one : parameters_of(function)) arguments.push_back(one.argument);
    const auto shape = draw_.cuda() ? "<<<" + function.grid + ", " + function.block + ">>>" : "";
    return "//@ launch " + function.name + shape + '(' + mtmc::detail::joined(arguments) + ')';
  }

  // Spelling
  // --------------------------------------------------------------------------------------------------

  /// `(float)x[i]` as `static_cast<float>(x[i])`.
  [[nodiscard]] static std::string with_static_casts(std::string_view text) {
    constexpr std::string_view cast = "(float)";
    std::string result;
    for (auto at = text.find(cast); at != std::string_view::npos; at = text.find(cast)) {
      result += text.substr(0, at);
      text.remove_prefix(at + cast.size());
      std::size_t end = 0;
      while (end < text.size() && mtmc::is_name_character(text[end])) ++end;
      if (end < text.size() && (text[end] == '[' || (text[end] == '(' && end == 0))) {
        int depth = 0;
        do {
          depth += text[end] == '[' || text[end] == '(' ? 1 : text[end] == ']' || text[end] == ')' ? -1 : 0;
          ++end;
        } while (depth > 0);
      }
      const bool parenthesised = text[0] == '(';
      result += "static_cast<float>" + (parenthesised ? std::string(text.substr(0, end))
                                                      : '(' + std::string(text.substr(0, end)) + ')');
      text.remove_prefix(end);
    }
    return result + std::string(text);
  }

  /// Mathematical functions by the names that the style gives them.
  [[nodiscard]] std::string with_functions(std::string text) const {
    if (!style_.standard_names && !style_.double_precision) return text;
    for (const char* name : {"exp", "log", "sqrt", "fabs", "tanh", "pow", "erf", "sin", "cos", "fmax", "fmin",
                             "log1p", "atan", "floor"}) {
      const std::string plain = name;
      text = with_word(text, plain + 'f', draw_.cuda() ? plain : "std::" + plain);
    }
    return text;
  }

  /// Everything in double precision.
  [[nodiscard]] static std::string in_double(std::string_view text) {
    const auto doubled = with_word(text, "float", "double");
    std::string result;
    for (const auto& token : mtmc::lex(doubled)) {
      auto word = token.text(doubled);
      if (token.kind == mtmc::TokenKind::number && word.ends_with('f')) word.remove_suffix(1);
      result += word;
    }
    return result;
  }

  [[nodiscard]] std::string includes(std::string_view code) const {
    if (draw_.cuda()) return {};
    std::string text;
    for (const char* name :
         {"expf",  "logf",   "sqrtf", "fabsf",  "tanhf", "powf",  "erff", "sinf", "cosf", "fmaxf",
          "fminf", "log1pf", "atanf", "floorf", "exp",   "log",   "sqrt", "fabs", "tanh", "pow",
          "erf",   "sin",    "cos",   "fmax",   "fmin",  "log1p", "atan", "floor"})
      if (text.empty() && mtmc::has_word(code, name)) text = "#include <cmath>\n";
    if (code.find("std::size_t") != std::string_view::npos) text += "#include <cstddef>\n";
    return text.empty() ? text : '\n' + text;
  }

  [[nodiscard]] static std::string with_postfix(std::string text) {
    for (auto at = text.find("; ++"); at != std::string::npos; at = text.find("; ++", at + 1)) {
      const auto close = text.find(')', at);
      const auto name = text.substr(at + 4, close - at - 4);
      text.replace(at + 2, close - at - 2, name + "++");
    }
    return text;
  }

  [[nodiscard]] static std::string with_stars(std::string text) {
    for (const char* type : {"float", "double", "int", "char"}) {
      const auto plain = std::string(type) + "* ";
      for (auto at = text.find(plain); at != std::string::npos; at = text.find(plain, at + 1))
        if (text.substr(at + plain.size(), 1) != " ")
          text.replace(at, plain.size(), std::string(type) + " *");
    }
    return text;
  }

  Draw& draw_;
  const Operator& made_;
  const mtmc::Symbols& timed_;
  Style style_;
  std::vector<Function> functions_{};
  std::set<std::string> names_{}; // taken
  std::string flat_{};            // index of all axes in one
};

} // namespace generated
