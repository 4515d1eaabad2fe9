#pragma once
// Names that several people give the same things.

#include <mtmc/analysis/syntax/lexer.hpp>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draw.hpp"

namespace generated {

/// What else a plain name may be called.
[[nodiscard]] inline const std::vector<std::pair<std::string, std::vector<std::string>>>& other_names() {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> names{
      {"x", {"in", "input", "src", "data", "X", "source", "values"}},
      {"y", {"out", "output", "dst", "result", "Y", "target", "dest"}},
      {"z", {"extra", "residual", "skip", "Z", "side"}},
      {"A", {"a", "lhs", "left", "mat", "mat_a"}},
      {"B", {"b", "rhs", "right", "mat_b"}},
      {"C", {"c", "prod", "res", "mat_c"}},
      {"w", {"weights", "filter", "kern", "coef", "taps"}},
      {"bias", {"b0", "shift", "offset", "bias_"}},
      {"gamma", {"scale", "g", "weight_", "alpha_"}},
      {"beta", {"shift", "b1", "bias"}},
      {"M", {"rows", "m", "n_rows", "R", "height", "num_rows"}},
      {"N", {"cols", "n", "n_cols", "L", "width", "len", "size"}},
      {"K", {"depth", "inner", "D", "kdim"}},
      {"P", {"batch", "nb", "batches", "B_", "count"}},
      {"H", {"height", "h_", "ny", "rows"}},
      {"W", {"width", "w_", "nx", "cols"}},
      {"Z", {"nz", "planes", "layers"}},
      {"Q", {"channels", "ch", "CH", "features"}},
      {"F", {"filters", "out_channels", "OC"}},
      {"i", {"row", "r", "m_", "ii", "idx"}},
      {"j", {"col", "c", "n_", "jj"}},
      {"k", {"l", "p", "kk", "t", "d"}},
      {"b", {"batch_index", "n0", "img", "bb"}},
      {"q", {"ch", "channel", "c0"}},
      {"h", {"row", "yy", "iy", "oh"}},
      {"u", {"col", "xx", "ix", "ow"}},
      {"f", {"oc", "filter_index", "o"}},
      {"v", {"val", "value", "e", "cur"}},
      {"sum", {"acc", "s", "total", "dot", "accum"}},
      {"largest", {"max_value", "mx", "m0", "highest", "peak"}},
      {"total", {"denom", "norm", "sum_exp", "s"}},
      {"mean", {"mu", "avg", "average"}},
      {"variance", {"var", "sq", "sigma2"}},
      {"tmp", {"temp", "buffer", "scratch_", "t0"}},
  };
  return names;
}

/// The identifiers of a text, members aside.
[[nodiscard]] inline std::set<std::string> identifiers_of(std::string_view text) {
  std::set<std::string> names;
  bool member = false;
  for (const auto& token : mtmc::lex(text)) {
    if (token.kind == mtmc::TokenKind::identifier && !member) names.emplace(token.text(text));
    member = token.text(text) == ".";
  }
  return names;
}

/// New names for some of the plain ones, none of which stands in the text already.
[[nodiscard]] inline std::map<std::string, std::string> drawn_names(Draw& draw, std::string_view text) {
  std::map<std::string, std::string> names;
  const double changed = draw.pick(std::vector<double>{0.0, 0.3, 0.6, 0.9});
  auto taken = identifiers_of(text);
  for (const auto& [plain, others] : other_names()) {
    const auto other = draw.pick(others);
    if (draw.chance(changed) && taken.contains(plain) && taken.insert(other).second) names[plain] = other;
  }
  return names;
}

/// A text with its names replaced.
[[nodiscard]] inline std::string renamed(std::string_view text,
                                         const std::map<std::string, std::string>& names) {
  std::string result;
  for (const auto& token : mtmc::lex(text)) {
    const std::string word(token.text(text));
    const auto name = token.kind == mtmc::TokenKind::identifier ? names.find(word) : names.end();
    result += name == names.end() ? word : name->second;
  }
  return result;
}

} // namespace generated
