#pragma once
// What a generated task computes, before it is written in somebody's style.
//
// Texts are C++ with plain names. `@x(i, j)` is an element of the buffer x, whose layout decides what is
// written for it, and `Int` is the type of indices. Names are replaced by others when the text is styled.

#include <mtmc/core/error.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draw.hpp"

namespace generated {

/// How the values of a symbol are chosen for sizes that are only checked.
enum class Extent {
  large, ///< odd and prime, and 1
  small, ///< at most 13, and 1
  fixed, ///< the same as in the timed size
};

/// An integer that sizes give a value.
struct Symbol {
  std::string name;                  ///< as in the texts
  std::vector<std::int64_t> timed{}; ///< values for the timed size, of which one is drawn
  Extent extent = Extent::large;     ///< how the other sizes are chosen
};

/// What a buffer is for.
enum class Role { input, output, inout, scratch };

/// Memory with one or more dimensions.
struct Buffer {
  std::string name;                   ///< as in the texts
  std::vector<std::string> extents{}; ///< of each subscript, in the order of `@name(...)`
  Role role = Role::input;            ///< whether it is an argument, and of what kind
  std::string type = "float";         ///< of its elements
  std::string low{}, high{};          ///< domain; both empty: none
  std::vector<std::size_t>
      order{};     ///< subscripts from the slowest to the fastest in memory; empty: as they are
  int padding = 0; ///< elements behind each run of the fastest subscript
};

/// A loop, or an axis of a launch's threads.
struct Axis {
  std::string index;       ///< name of its variable
  std::string extent;      ///< one past the last value
  std::string first = "0"; ///< the first value
};

/// One step of the operator: what is done for every point of some axes, independently of all other points.
struct Nest {
  std::string name;         ///< of the function, where it gets one of its own
  std::vector<Axis> axes{}; ///< outermost first
  std::string body{};       ///< statements, one a line, without indentation
  bool ordered = false;     ///< whether later axes depend on earlier ones, or the last ones carry a value
};

/// A floating-point argument.
struct Scalar {
  std::string name;  ///< as in the texts
  std::string value; ///< a decimal number
};

/// An integer that follows from the symbols.
struct Derived {
  std::string name;       ///< as in the texts
  std::string expression; ///< over the symbols
};

/// An operator: everything that its text and its task file are made of.
struct Operator {
  std::string kind;               ///< short name, as in the task's name
  std::string summary;            ///< one line
  std::vector<Symbol> symbols{};  ///< all that the other members use
  std::vector<Buffer> buffers{};  ///< arguments and scratch memory
  std::vector<Nest> nests{};      ///< in the order of their execution
  std::vector<Scalar> scalars{};  ///< floating-point arguments
  std::vector<Derived> derived{}; ///< other integers
  std::string helpers{}; ///< functions that the bodies call; `HELPER` stands for how a function is declared
  std::string flops{};   ///< expression; empty: none are counted
  std::string bytes{};   ///< expression; empty: each buffer once
  std::string cost{};    ///< rough nanoseconds of one naive call on one core; empty: `flops`
  bool signed_indices = false;        ///< whether indices become negative
  bool launches_of_their_own = false; ///< whether each nest has to be a launch, also in C++
};

/// All texts of an operator that names stand in.
[[nodiscard]] inline std::string all_texts(const Operator& made) {
  std::string text = made.helpers;
  const auto add = [&text](const std::string& more) { text += ' ' + more; };
  for (const Symbol& symbol : made.symbols) add(symbol.name);
  for (const Buffer& buffer : made.buffers) add(buffer.name);
  for (const Scalar& scalar : made.scalars) add(scalar.name);
  for (const Derived& derived : made.derived) add(derived.name);
  for (const Nest& nest : made.nests) {
    add(nest.body);
    for (const Axis& axis : nest.axes) add(axis.index + ' ' + axis.extent);
  }
  return text;
}

/// Replaces every `name` that stands in `text` as a whole word.
[[nodiscard]] inline std::string with_word(std::string_view text, std::string_view name,
                                           std::string_view value) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto found = text.find(name, at);
    result += text.substr(at, found - at);
    if (found == std::string_view::npos) break;
    const auto end = found + name.size();
    const bool whole = (found == 0 || !mtmc::is_name_character(text[found - 1])) &&
                       (end == text.size() || !mtmc::is_name_character(text[end]));
    result += whole ? value : name;
    at = end;
  }
  return result;
}

/// `pattern` with `values` in the place of `{0}`, `{1}`, ...
[[nodiscard]] inline std::string filled(std::string_view pattern, const std::vector<std::string>& values) {
  std::string result;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const bool place = pattern[at] == '{' && at + 2 < pattern.size() && pattern[at + 2] == '}' &&
                       pattern[at + 1] >= '0' && pattern[at + 1] <= '9';
    if (!place) {
      result += pattern[at];
      continue;
    }
    result += values.at(static_cast<std::size_t>(pattern[at + 1] - '0'));
    at += 2;
  }
  return result;
}

/// Loops around `body`, outermost first.
[[nodiscard]] inline std::string looped(const std::vector<Axis>& loops, const std::string& body) {
  std::string text, end;
  for (const Axis& loop : loops) {
    text += filled("for (Int {0} = {1}; {0} < {2}; ++{0}) {\n", {loop.index, loop.first, loop.extent});
    end += "}\n";
  }
  return text + body + (body.ends_with('\n') ? "" : "\n") + end;
}

/// What sums are made of.
struct Sum {
  std::string name;           ///< of the function
  std::vector<Axis> axes{};   ///< a sum for every point of these
  std::vector<Axis> loops{};  ///< what is summed over
  std::string target;         ///< the element that gets the sum
  std::string term;           ///< what is added
  std::string result = "sum"; ///< what is stored, of `sum`
  bool ordered = false;       ///< whether the loops depend on each other or on the axes
};

/// Sums as people write them: in a register, in the result itself, or, in C++, in loops of another order over
/// results that were cleared before.
[[nodiscard]] inline std::vector<Nest> sums(Draw& draw, const Sum& sum) {
  const auto style = draw.below(draw.cuda() ? 4 : 6);
  const bool plain = sum.result == "sum";
  if (style == 3 && plain)
    return {{sum.name, sum.axes,
             sum.target + " = 0.0f;\n" + looped(sum.loops, sum.target + " += " + sum.term + ";")}};
  if (style >= 4 && !sum.ordered) {
    auto all = sum.axes;
    all.insert(all.end(), sum.loops.begin(), sum.loops.end());
    draw.shuffle(all);
    std::vector<Nest> nests{{"clear", sum.axes, sum.target + " = 0.0f;"},
                            {sum.name, all, sum.target + " += " + sum.term + ";", true}};
    if (!plain)
      nests.push_back(
          {"finish", sum.axes, sum.target + " = " + with_word(sum.result, "sum", sum.target) + ";"});
    return nests;
  }
  return {{sum.name, sum.axes,
           "float sum = 0.0f;\n" + looped(sum.loops, "sum += " + sum.term + ";") + sum.target + " = " +
               sum.result + ";"}};
}

/// Sizes for the one language or for the other.
[[nodiscard]] inline std::vector<std::int64_t> by_language(const Draw& draw, std::vector<std::int64_t> cpp,
                                                           std::vector<std::int64_t> cuda) {
  return draw.cuda() ? std::move(cuda) : std::move(cpp);
}

/// Both sequences, one after the other.
[[nodiscard]] inline std::vector<Nest> followed(std::vector<Nest> first, const std::vector<Nest>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The subscripts of a buffer in an order that is drawn: mostly as they are.
[[nodiscard]] inline std::vector<std::size_t> drawn_order(Draw& draw, std::size_t rank, double other = 0.35) {
  std::vector<std::size_t> order(rank);
  for (std::size_t i = 0; i < rank; ++i) order[i] = i;
  if (draw.chance(other)) draw.shuffle(order);
  return order;
}

/// Elements of padding behind each row of an input: mostly none.
[[nodiscard]] inline int drawn_padding(Draw& draw) {
  return draw.chance(0.15) ? static_cast<int>(1 + draw.below(16)) : 0;
}

} // namespace generated
