#pragma once
// `@x(i, j)` to `x[i * N + j]`: how an element of a buffer is written depends on its layout.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator.hpp"

namespace generated {

/// How subscripts are written.
enum class IndexStyle {
  nested,  ///< (i * N + j) * K + k
  products ///< i * N * K + j * K + k
};

/// Name of the integer that holds a padded buffer's distance between rows.
[[nodiscard]] inline std::string stride_name(const Buffer& buffer) { return "ld" + buffer.name; }

/// Order of a buffer's subscripts in memory, slowest first.
[[nodiscard]] inline std::vector<std::size_t> memory_order(const Buffer& buffer) {
  if (!buffer.order.empty()) return buffer.order;
  std::vector<std::size_t> order(buffer.extents.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  return order;
}

/// The text in parentheses where a product needs them.
[[nodiscard]] inline std::string as_factor(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '[' ? 1 : text[i] == ')' || text[i] == ']' ? -1 : 0;
    const bool sum = text[i] == '+' || text[i] == '-' || text[i] == '/' || text[i] == '%' || text[i] == '?';
    if (depth == 0 && sum && i > 0) return '(' + text + ')';
  }
  return text;
}

/// The parts of a list, divided at commas outside of brackets.
[[nodiscard]] inline std::vector<std::string> list_parts(std::string_view list) {
  std::vector<std::string> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && (list[i] == '(' || list[i] == '[')) ++depth;
    if (i < list.size() && (list[i] == ')' || list[i] == ']')) --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    parts.emplace_back(mtmc::trim(list.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

/// What stands in the brackets behind a buffer's name.
[[nodiscard]] inline std::string offset_of(const Buffer& buffer, const std::vector<std::string>& subscripts,
                                           IndexStyle style) {
  const auto order = memory_order(buffer);
  std::vector<std::string> extents;
  for (const auto d : order) extents.push_back(as_factor(buffer.extents[d]));
  if (buffer.padding > 0) extents.back() = stride_name(buffer);
  std::string offset;
  const auto add = [&offset](const std::string& more) {
    if (more != "0") offset += (offset.empty() ? "" : " + ") + more;
  };
  for (std::size_t n = 0; n < order.size(); ++n) {
    const std::string& subscript = subscripts[order[n]];
    if (style == IndexStyle::nested) {
      if (!offset.empty()) offset = (offset == "1" ? "" : as_factor(offset) + " * ") + extents[n];
      add(subscript);
    } else {
      std::string product = n + 1 < order.size() && subscript != "0" ? as_factor(subscript) : subscript;
      for (std::size_t later = n + 1; product != "0" && later < order.size(); ++later)
        product += " * " + extents[later];
      add(product);
    }
  }
  return offset.empty() ? "0" : offset;
}

/// A text with its elements written out, and what it does with buffers.
struct Expanded {
  std::string text;                ///< without `@`
  std::set<std::string> written{}; ///< names of buffers that it assigns to
};

/// Whether an assignment follows.
[[nodiscard]] inline bool assigns(std::string_view rest) {
  rest = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
  if (rest.starts_with("=")) return !rest.starts_with("==");
  return rest.size() > 1 && rest[1] == '=' &&
         std::string_view("+-*/").find(rest[0]) != std::string_view::npos;
}

/// Writes the elements of buffers out. Throws std::out_of_range where the number of subscripts is wrong, and
/// std::logic_error for a buffer that does not exist.
[[nodiscard]] inline Expanded expanded(std::string_view text, const std::vector<Buffer>& buffers,
                                       IndexStyle style) {
  Expanded result;
  while (!text.empty()) {
    const auto at = text.find('@');
    result.text += text.substr(0, at);
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
    const std::string name = mtmc::take_identifier(text);
    std::size_t end = 1;
    for (int depth = 1; depth > 0 && end < text.size(); ++end)
      depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    const auto buffer =
        std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& one) { return one.name == name; });
    if (buffer == buffers.end()) throw std::logic_error("there is no buffer " + name);
    auto subscripts = list_parts(text.substr(1, end - 2));
    if (subscripts.size() != buffer->extents.size())
      throw std::out_of_range(name + " has another number of subscripts");
    for (auto& subscript : subscripts) subscript = expanded(subscript, buffers, style).text;
    result.text += name + '[' + offset_of(*buffer, subscripts, style) + ']';
    text.remove_prefix(end);
    if (assigns(text)) result.written.insert(name);
  }
  return result;
}

/// An element that a text names.
struct Element {
  std::size_t begin = 0, end = 0;        ///< where it stands: `@x(i, j)`
  std::vector<std::string> subscripts{}; ///< as they are written
  bool assigned = false;                 ///< whether the text assigns to it
};

/// All elements of one buffer in a text, from left to right.
[[nodiscard]] inline std::vector<Element> elements_of(std::string_view text, const std::string& buffer) {
  std::vector<Element> elements;
  const std::string start = '@' + buffer + '(';
  for (auto at = text.find(start); at != std::string_view::npos; at = text.find(start, at + 1)) {
    const std::size_t begin = at + start.size();
    std::size_t end = begin;
    for (int depth = 1; depth > 0; ++end) depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    elements.push_back({at, end, list_parts(text.substr(begin, end - 1 - begin)), assigns(text.substr(end))});
  }
  return elements;
}

/// A body that addresses each row by a pointer, where all elements of a buffer lie in the row that the axes
/// name.
[[nodiscard]] inline Expanded with_row_pointers(const Nest& nest, const std::vector<Buffer>& buffers,
                                                IndexStyle style) {
  Expanded result{nest.body};
  std::string pointers;
  for (const Buffer& buffer : buffers) {
    const auto elements = elements_of(result.text, buffer.name);
    const auto order = memory_order(buffer);
    if (elements.size() < 2 || order.size() != nest.axes.size() + 1) continue;
    std::vector<std::string> first(order.size(), "0");
    bool alike = true, assigned = false;
    for (std::size_t n = 0; n + 1 < order.size(); ++n) first[order[n]] = nest.axes[n].index;
    for (const Element& element : elements) {
      assigned |= element.assigned;
      for (std::size_t n = 0; n + 1 < order.size(); ++n)
        alike &= element.subscripts[order[n]] == first[order[n]];
    }
    if (!alike) continue;
    const std::string row = buffer.name + "_row";
    for (auto element = elements.rbegin(); element != elements.rend(); ++element)
      result.text.replace(element->begin, element->end - element->begin,
                          row + '[' + element->subscripts[order.back()] + ']');
    pointers += (assigned ? "" : "const ") + buffer.type + "* " + row + " = " + buffer.name + " + " +
                offset_of(buffer, first, style) + ";\n";
    if (assigned) result.written.insert(buffer.name);
  }
  result.text = pointers + result.text;
  return result;
}

} // namespace generated
