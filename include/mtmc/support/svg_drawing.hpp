#pragma once
/// Pictures as text: SVG that stands alone and follows the reader's light or dark theme.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// A text as SVG shows it.
[[nodiscard]] inline std::string svg_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (static_cast<unsigned char>(c) < ' ')
      safe += ' ';
    else
      safe += c;
  }
  return safe;
}

/// A number with at most so many digits behind the point, without zeros at its end.
[[nodiscard]] inline std::string short_number(double value, int digits) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  std::string number(text.data(), static_cast<std::size_t>(std::clamp(length, 0, 63)));
  if (number.find('.') == std::string::npos) return number;
  while (number.back() == '0') number.pop_back();
  if (number.back() == '.') number.pop_back();
  return number == "-0" ? "0" : number;
}

/// A picture as it grows. Classes of the style: of texts "title" and "name"; of lines "grid", "axis" and
/// "best"; of curves "curve", "raw", and "first" to "fourth", which differ in colour; "band" of areas.
class SvgDrawing {
public:
  SvgDrawing() = default;
  /// Of that size; `label` is read out in place of the picture.
  SvgDrawing(double width, double height, std::string_view label) {
    text_ =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + short_number(width, 0) + ' ' +
        short_number(height, 0) + "\" role=\"img\" aria-label=\"" + attribute(label) +
        "\">\n<style>\n"
        "text{font:12px system-ui,sans-serif;fill:#52514e}\n"
        ".title{font-size:16px;font-weight:600;fill:#0b0b0b}\n.name{font-weight:600;fill:#0b0b0b}\n"
        ".paper{fill:#fcfcfb}\n.grid{stroke:#e1e0d9;stroke-width:1}\n.axis{stroke:#a3a299;stroke-width:1}\n"
        ".raw{fill:none;stroke:#2a78d6;stroke-opacity:.45;stroke-width:1}\n"
        ".band{fill:#2a78d6;fill-opacity:.18}\n"
        ".curve,.first,.second,.third,.fourth{fill:none;stroke:#2a78d6;stroke-width:2;stroke-linejoin:round}"
        "\n"
        ".second{stroke:#1baf7a}\n.third{stroke:#eda100}\n.fourth{stroke:#4a3aa7}\n"
        ".dashed{stroke-dasharray:6 4}\n"
        ".best{stroke:#52514e;stroke-width:1.5;stroke-dasharray:6 4}\n"
        "@media (prefers-color-scheme:dark){\ntext{fill:#c3c2b7}\n.title,.name{fill:#fff}\n"
        ".paper{fill:#1a1a19}\n.grid{stroke:#2c2c2a}\n.axis{stroke:#5f5e58}\n"
        ".raw,.curve,.first{stroke:#3987e5}\n.second{stroke:#199e70}\n.third{stroke:#c98500}\n"
        ".fourth{stroke:#9085e9}\n.band{fill:#3987e5}\n.best{stroke:#c3c2b7}\n}\n</style>\n"
        "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
  }

  /// `anchor`: "start", "middle" or "end" of the text stands at x.
  void write(double x, double y, std::string_view kind, std::string_view anchor, std::string_view text) {
    text_ += "<text x=\"" + short_number(x, 1) + "\" y=\"" + short_number(y, 1) + "\" text-anchor=\"";
    text_.append(anchor) += '"';
    if (!kind.empty()) (text_ += " class=\"").append(kind) += '"';
    text_ += '>' + svg_text(text) + "</text>\n";
  }
  void line(std::string_view kind, double x, double y, double to_x, double to_y) {
    (text_ += "<line class=\"").append(kind) += "\" x1=\"" + short_number(x, 1) + "\" y1=\"" +
                                                short_number(y, 1) + "\" x2=\"" + short_number(to_x, 1) +
                                                "\" y2=\"" + short_number(to_y, 1) + "\"/>\n";
  }
  /// `places`: moves and lines, "M1,2L3,4".
  void path(std::string_view kind, std::string_view places) {
    ((text_ += "<path class=\"").append(kind) += "\" d=\"").append(places) += "\"/>\n";
  }
  /// `places`: corners, "1,2 3,4".
  void polygon(std::string_view kind, std::string_view places) {
    ((text_ += "<polygon class=\"").append(kind) += "\" points=\"").append(places) += "\"/>\n";
  }

  [[nodiscard]] std::string finished() const { return text_ + "</svg>\n"; }

private:
  [[nodiscard]] static std::string attribute(std::string_view text) {
    std::string safe = svg_text(text);
    for (std::size_t at = safe.find('"'); at != std::string::npos; at = safe.find('"', at))
      safe.replace(at, 1, "&quot;");
    return safe;
  }

  std::string text_{};
};

} // namespace mtmc::detail
