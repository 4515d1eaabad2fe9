#pragma once
/// What is left of a kernel's text where it is compared with variants of the same idea.

#include <mtmc/core/kernel.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Reads a text from left to right and writes its shape.
class ShapeWriter {
public:
  explicit ShapeWriter(const Kernel& kernel)
      : text_{kernel.source}, python_{kernel.language.syntax == Syntax::python} {}

  [[nodiscard]] std::string write() {
    while (at_ < text_.size())
      if (!skip_comment() && !copy_literal() && !copy_word()) copy_sign();
    return std::move(shape_);
  }

private:
  [[nodiscard]] static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
  [[nodiscard]] static bool is_word(char c) noexcept {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  }
  [[nodiscard]] bool follows(std::string_view what) const noexcept {
    return text_.substr(at_).starts_with(what);
  }

  /// Lines of launches and scratch memory begin as comments do, and are none.
  [[nodiscard]] bool skip_comment() {
    const bool line = python_ ? follows("#") && !follows("#@") : follows("//") && !follows("//@");
    if (!line && (python_ || !follows("/*"))) return false;
    const auto end = text_.find(line ? "\n" : "*/", at_ + (line ? 0 : 2));
    at_ = end == std::string_view::npos ? text_.size() : end + (line ? 0 : 2);
    return true;
  }

  bool copy_literal() {
    const char quote = text_[at_];
    if (quote != '"' && quote != '\'') return false;
    auto end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    end = end < text_.size() ? end + 1 : text_.size();
    shape_.append(text_.substr(at_, end - at_));
    at_ = end;
    return true;
  }

  /// A name stays as it is; a number, with its suffix and exponent, becomes 0.
  bool copy_word() {
    const bool fraction = text_[at_] == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
    if (!is_word(text_[at_]) && !fraction) return false;
    const bool number = fraction || is_digit(text_[at_]);
    auto end = at_;
    for (; end < text_.size(); ++end) {
      const char c = text_[end];
      const bool separator =
          number && (c == '.' || (c == '\'' && end + 1 < text_.size() && is_word(text_[end + 1])));
      const bool sign = number && (c == '+' || c == '-') && end > at_ && (text_[end - 1] | 0x20) == 'e' &&
                        !text_.substr(at_).starts_with("0x");
      if (!is_word(c) && !separator && !sign) break;
    }
    if (!shape_.empty() && is_word(shape_.back())) shape_ += ' ';
    shape_.append(number ? std::string_view("0") : text_.substr(at_, end - at_));
    at_ = end;
    return true;
  }

  void copy_sign() {
    const char c = text_[at_++];
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') shape_ += c;
  }

  std::string_view text_;
  bool python_;
  std::size_t at_ = 0;
  std::string shape_{};
};

/// The text without comments and blanks, and with 0 for every number: two kernels of one shape differ in
/// tile sizes, factors and block shapes, and in nothing else.
[[nodiscard]] inline std::string shape_of(const Kernel& kernel) { return ShapeWriter(kernel).write(); }

} // namespace mtmc::detail
