#pragma once
/// CUDA kernels whose dependences are known from how they were made, written as different people would write
/// them. The same seed gives the same kernel everywhere.

#include <mtmc/analysis/task_builder.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../../analysis/random_kernels.hpp"

namespace mtmc::testing {

using random_kernels::Random;

/// What is true of an optimisation of a region. What is neither is not stated: results must be right then,
/// too, but nobody expects it to be found.
enum class Truth { legal, illegal };

/// One thing that is known of a case.
struct KnownTruth {
  std::string kind{};         ///< as tables name it: "rows shared by threads"
  std::string optimization{}; ///< "parallelization"
  std::string region{};       ///< the regions meant: those whose path begins so, "rows/"
  Truth truth = Truth::legal;

  /// Whether it is about an action "optimization|region".
  [[nodiscard]] bool is_about(std::string_view key) const {
    const std::string beginning = optimization + '|' + region;
    const bool whole = region.find("launch:") == 0; // "launch:a+launch:b" is not "launch:a+launch:b+launch:c"
    return whole ? key == beginning : key.substr(0, beginning.size()) == beginning;
  }
};

/// One kernel with what is known of it.
struct GeneratedLaunches {
  std::string family{}; ///< "row: prefix sum"
  Task task{};
  std::vector<KnownTruth> truths{};
};

namespace generated {

using Words = std::map<std::string, std::string, std::less<>>;

/// The text with `$word` replaced by what the word stands for.
[[nodiscard]] inline std::string filled(std::string_view text, const Words& words) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '$') {
      result += text[at];
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    const auto word = words.find(text.substr(at + 1, end - at - 1));
    if (word == words.end())
      throw std::runtime_error("no word for " + std::string(text.substr(at, end - at)));
    result += word->second;
    at = end - 1;
  }
  return result;
}

/// Lines with two blanks for each brace that is open.
[[nodiscard]] inline std::string indented(const std::string& text) {
  std::string result, line;
  int depth = 0;
  for (const char c : text) {
    if (c != '\n') {
      line += c;
      continue;
    }
    const int shown = depth - (line.starts_with('}') ? 1 : 0);
    if (!line.empty()) result += std::string(static_cast<std::size_t>(2 * shown), ' ') + line;
    result += '\n';
    for (const char one : line) depth += one == '{' ? 1 : one == '}' ? -1 : 0;
    line.clear();
  }
  return result;
}

/// Somebody who writes kernels, with habits.
class Author {
public:
  explicit Author(Random& random) : random_(random) {
    index_type_ = pick({"int", "int", "int", "int", "int", "int", "const int", "const int", "unsigned",
                        "unsigned int", "const unsigned", "size_t", "long long"});
    loop_type_ = index_type_.starts_with("const ") ? index_type_.substr(6) : index_type_;
    if (random.chance(50)) loop_type_ = "int";
    extent_type_ = pick({"int", "int", "int", "int", "int", "int", "const int", "unsigned"});
    restrict_ = random.chance(40);
    returns_ = random.chance(45);
    row_pointers_ = random.chance(8);
    casts_ = random.chance(8);
    number_form_ = random.chance(55) ? 0 : random.number(1, 5);
    element_form_ = random.chance(60) ? 0 : random.number(1, 3);
    step_form_ = random.chance(60) ? 0 : random.number(1, 2);
    block_ = random.number(0, 9);
    const int names = random.number(0, 3);
    words_ = {{"i", one_of(names, {"i", "row", "r", "y_index"})},
              {"j", one_of(names, {"j", "col", "c", "x_index"})},
              {"k", pick({"k", "l", "p", "d"})},
              {"f", one_of(names, {"i", "at", "idx", "t"})},
              {"M", one_of(names, {"M", "rows", "m", "height"})},
              {"N", one_of(names, {"N", "cols", "n", "width"})},
              {"K", one_of(names, {"K", "depth", "len", "inner"})},
              {"s", pick({"sum", "acc", "total", "s"})},
              {"v", pick({"v", "value", "e"})},
              {"x", pick({"x", "in", "src", "a"})},
              {"y", pick({"y", "out", "dst", "result"})},
              {"w", pick({"w", "b", "weights", "factor"})},
              {"z", pick({"z", "extra", "second"})},
              {"n", pick({"count", "size", "length"})}};
  }

  [[nodiscard]] std::string pick(const std::vector<std::string>& choices) {
    return choices[static_cast<std::size_t>(random_.number(0, static_cast<int>(choices.size()) - 1))];
  }
  [[nodiscard]] Words& words() noexcept { return words_; }
  [[nodiscard]] const std::string& word(const std::string& name) { return words_[name]; }
  [[nodiscard]] std::string text(std::string_view pattern) const { return filled(pattern, words_); }

  // --- parameters

  [[nodiscard]] std::string input(const std::string& name, const std::string& type = "float") const {
    return "const " + type + "* " + (restrict_ ? "__restrict__ " : "") + text('$' + name);
  }
  [[nodiscard]] std::string output(const std::string& name, const std::string& type = "float") const {
    return type + "* " + (restrict_ ? "__restrict__ " : "") + text('$' + name);
  }
  [[nodiscard]] std::string extent(const std::string& name) const {
    return extent_type_ + ' ' + text('$' + name);
  }

  // --- threads

  /// The number of a thread along an axis of blocks of so many.
  [[nodiscard]] std::string number(char axis, const std::string& block) const {
    const std::string a(1, axis);
    switch (number_form_) {
    case 1:
      return "threadIdx." + a + " + blockIdx." + a + " * blockDim." + a;
    case 2:
      return "blockDim." + a + " * blockIdx." + a + " + threadIdx." + a;
    case 3:
      return "blockIdx." + a + " * " + block + " + threadIdx." + a;
    case 4:
      return "threadIdx." + a + " + blockDim." + a + " * blockIdx." + a;
    case 5:
      return '(' + loop_or_int(index_type_) + ")(blockIdx." + a + " * blockDim." + a + " + threadIdx." + a +
             ')';
    default:
      return "blockIdx." + a + " * blockDim." + a + " + threadIdx." + a;
    }
  }
  [[nodiscard]] std::string declared(const std::string& index, const std::string& value) const {
    return index_type_ + ' ' + text('$' + index) + " = " + value + ";\n";
  }
  [[nodiscard]] std::string block_along_x() const {
    static const std::vector<std::string> sizes{"128", "256", "64", "32",  "512",
                                                "128", "256", "96", "192", "100"};
    return sizes[static_cast<std::size_t>(block_)];
  }
  [[nodiscard]] std::pair<std::string, std::string> block_in_plane() const {
    static const std::vector<std::pair<std::string, std::string>> sizes{
        {"16", "16"}, {"32", "8"}, {"32", "32"}, {"8", "8"},  {"16", "16"},
        {"32", "4"},  {"64", "2"}, {"128", "1"}, {"16", "8"}, {"12", "10"}};
    return sizes[static_cast<std::size_t>(block_)];
  }

  /// The work behind or inside what leaves out threads beyond the last result: `limits` are pairs of an index
  /// and its limit.
  [[nodiscard]] std::string guarded(const std::vector<std::pair<std::string, std::string>>& limits,
                                    const std::string& work) {
    std::string condition;
    if (returns_) {
      if (random_.chance(20)) {
        for (const auto& [index, limit] : limits)
          condition += text("if (" + index + " >= " + limit + ") return;\n");
        return condition + work;
      }
      for (const auto& [index, limit] : limits)
        condition += text((condition.empty() ? "" : " || ") + index + " >= " + limit);
      return "if (" + condition + ") return;\n" + work;
    }
    for (const auto& [index, limit] : limits)
      condition += text((condition.empty() ? "" : " && ") +
                        (random_.chance(8) ? limit + " > " + index : index + " < " + limit));
    return "if (" + condition + ") {\n" + work + "}\n";
  }

  // --- elements and loops

  /// Element (row, column) of rows of a length.
  [[nodiscard]] std::string at(const std::string& row, const std::string& length,
                               const std::string& column) const {
    const std::string r = text(row), n = text(length), c = text(column);
    const bool plain = c.find_first_of("+-/%") == std::string::npos;
    const std::string in_brackets = plain ? c : '(' + c + ')';
    if (casts_) return "(size_t)" + r + " * " + n + " + " + c;
    switch (element_form_) {
    case 1:
      return in_brackets + " + " + r + " * " + n;
    case 2:
      return n + " * " + r + " + " + c;
    case 3:
      return in_brackets + " + " + n + " * " + r;
    default:
      return r + " * " + n + " + " + c;
    }
  }
  /// `for (int j = 0; j < N; ++j)`.
  [[nodiscard]] std::string loop(const std::string& variable, const std::string& first,
                                 const std::string& bound) const {
    const std::string v = text(variable);
    const std::string step = step_form_ == 0 ? "++" + v : step_form_ == 1 ? v + "++" : v + " += 1";
    return "for (" + loop_type_ + ' ' + v + " = " + first + "; " + v + " < " + text(bound) + "; " + step +
           ')';
  }
  /// The element of a row: `x[i * N + j]`, or `x_row[j]` where the author likes pointers to rows.
  [[nodiscard]] std::string of_row(const std::string& array, const std::string& column) const {
    if (row_pointers_) return text('$' + array) + "_row[" + text(column) + ']';
    return text('$' + array) + '[' + at("$i", "$N", column) + ']';
  }
  /// Declarations of pointers to rows; empty for most authors.
  [[nodiscard]] std::string row_pointer(const std::string& array, bool written) const {
    if (!row_pointers_) return {};
    const std::string name = text('$' + array);
    return (written ? "float* " : "const float* ") + name + "_row = " + name + " + " + text("$i * $N;\n");
  }

private:
  [[nodiscard]] static std::string one_of(int which, const std::vector<std::string>& choices) {
    return choices[static_cast<std::size_t>(which)];
  }
  [[nodiscard]] static std::string loop_or_int(const std::string& type) {
    return type.starts_with("const ") ? type.substr(6) : type;
  }

  Random& random_;
  std::string index_type_{}, loop_type_{}, extent_type_{};
  bool restrict_ = false, returns_ = false, row_pointers_ = false, casts_ = false;
  int number_form_ = 0, element_form_ = 0, step_form_ = 0, block_ = 0;
  Words words_{};
};

/// A definition with this body.
[[nodiscard]] inline std::string
function_text(const std::string& name, const std::vector<std::string>& parameters, const std::string& body) {
  std::string list;
  for (const std::string& parameter : parameters) list += (list.empty() ? "" : ", ") + parameter;
  return "__global__ void " + name + '(' + list + ") {\n" + body + "}\n";
}

/// A row of a table of what a thread does with its row. `$X`, `$Y`, `$Z`: elements `j` of rows; `$J`: the
/// loop over `j`.
struct RowRecipe {
  std::string_view name;
  Truth truth;
  std::string_view body;
  bool changes_x = false;   ///< x is read and written
  bool writes_rows = false; ///< y has whole rows, not one element a row
  std::string_view more =
      ""; ///< other parameters, by letter: w, z, g (i32 of the shape of x), h, l (i32 a row)
};

[[nodiscard]] inline const std::vector<RowRecipe>& row_recipes() {
  static const std::vector<RowRecipe> recipes{
      // --- legal
      {"sum", Truth::legal, "float $s = 0.0f;\n$J {\n$s += $X;\n}\n$y[$i] = $s;\n"},
      {"sum, written out", Truth::legal, "float $s = 0;\n$J {\n$s = $s + $X;\n}\n$y[$i] = $s * 0.5f;\n"},
      {"sum of squares", Truth::legal,
       "float $s = 0.f;\n$J {\nfloat $v = $X;\n$s += $v * $v;\n}\n$y[$i] = sqrtf($s / $N);\n"},
      {"sum from a value", Truth::legal, "float $s = $w[$i];\n$J {\n$s += $X;\n}\n$y[$i] = $s;\n", false,
       false, "w"},
      {"sum under a condition", Truth::legal,
       "float $s = 0.0f;\n$J {\nif ($X > 0.0f) $s += $X;\n}\n$y[$i] = $s;\n"},
      {"sum of choices", Truth::legal,
       "float $s = 0.0f;\n$J {\n$s += $X > 0.25f ? $X : 0.0f;\n}\n$y[$i] = $s;\n"},
      {"count", Truth::legal,
       "int found = 0;\n$J {\nif ($X > 0.5f) found += 1;\n}\n$y[$i] = (float)found;\n"},
      {"two sums", Truth::legal,
       "float $s = 0.0f;\nfloat squares = 0.0f;\n$J {\n$s += $X;\nsquares += $X * $X;\n}\n$y[$i] = squares - "
       "$s * "
       "$s / $N;\n"},
      {"two sums in one declaration", Truth::legal,
       "float $s = 0.0f, squares = 0.0f;\n$J {\nconst float $v = $X;\n$s += $v;\nsquares += $v * "
       "$v;\n}\n$y[$i] = "
       "squares - $s * $s / $N;\n"},
      {"product", Truth::legal, "float $s = 1.0f;\n$J {\n$s *= 1.0f + 0.01f * $X;\n}\n$y[$i] = $s;\n"},
      {"largest", Truth::legal, "float $s = -INFINITY;\n$J {\n$s = fmaxf($s, $X);\n}\n$y[$i] = $s;\n"},
      {"largest by a branch", Truth::legal,
       "float $s = $Xfirst;\n$Jfrom1 {\nif ($X > $s) $s = $X;\n}\n$y[$i] = $s;\n"},
      {"largest by a choice", Truth::legal,
       "float $s = $Xfirst;\n$Jfrom1 {\n$s = $X > $s ? $X : $s;\n}\n$y[$i] = $s;\n"},
      {"smallest", Truth::legal, "float $s = 1e30f;\n$J {\n$s = fminf($s, $X);\n}\n$y[$i] = $s;\n"},
      {"largest magnitude", Truth::legal,
       "float $s = 0.0f;\n$J {\n$s = fmaxf($s, fabsf($X));\n}\n$y[$i] = $s;\n"},
      {"product of rows", Truth::legal, "float $s = 0.0f;\n$J {\n$s += $X * $W;\n}\n$y[$i] = $s;\n", false,
       false, "r"},
      {"product with a vector", Truth::legal, "float $s = 0.0f;\n$J {\n$s += $X * $w[$j];\n}\n$y[$i] = $s;\n",
       false, false, "v"},
      {"map", Truth::legal, "$J {\n$Y = 2.0f * $X + 1.0f;\n}\n", false, true},
      {"map in place", Truth::legal, "$J {\n$X = 2.0f * $X + 1.0f;\n}\n$y[$i] = 1.0f;\n", true},
      {"normalise", Truth::legal,
       "float $s = 0.0f;\n$J {\n$s += $X * $X;\n}\nfloat scale = 1.0f / sqrtf($s / $N + 0.01f);\n$J {\n$Y = "
       "$X * "
       "scale;\n}\n",
       false, true},
      {"normalise in place", Truth::legal,
       "float $s = 0.0f;\n$J {\n$s += $X * $X;\n}\n$J {\n$X = $X / ($s + 1.0f);\n}\n$y[$i] = $s;\n", true},
      {"centre", Truth::legal,
       "float $s = 0.0f;\n$J {\n$s += $X;\n}\n$s /= $N;\nfloat squares = 0.0f;\n$J {\nfloat $v = $X - "
       "$s;\nsquares "
       "+= $v * $v;\n}\n$J {\n$Y = ($X - $s) * squares * $w[$j];\n}\n",
       false, true, "v"},
      {"soften", Truth::legal,
       "float largest = $Xfirst;\n$Jfrom1 {\nlargest = fmaxf(largest, $X);\n}\nfloat $s = 0.0f;\n$J {\n$s += "
       "expf($X - largest);\n}\n$J {\n$Y = expf($X - largest) / $s;\n}\n",
       false, true},
      {"soften with stored powers", Truth::legal,
       "float largest = -1e30f;\n$J {\nlargest = fmaxf(largest, $X);\n}\nfloat $s = 0.0f;\n$J {\n$Y = "
       "expf($X - "
       "largest);\n$s += $Y;\n}\n$J {\n$Y = $Y / $s;\n}\n",
       false, true},
      {"rows read backwards behind a loop", Truth::legal,
       "$J {\n$Y = $X * 3.0f;\n}\n$J {\n$Z = $Yback + $X;\n}\n", false, true, "z"},
      {"loops in loops", Truth::legal,
       "$J {\nfloat $s = 0.0f;\nfor (int $k = 0; $k < 4; ++$k) {\n$s += $X * (float)$k;\n}\n$Y = $s;\n}\n",
       false, true},
      {"rows of their own lengths", Truth::legal,
       "float $s = 0.0f;\nconst int end = lengths[$i];\nfor (int $j = 0; $j < end; ++$j) {\n$s += "
       "$X;\n}\n$y[$i] = "
       "$s;\n",
       false, false, "l"},
      {"a value in front and behind", Truth::legal,
       "float first = $Xfirst;\nfloat $s = 0.0f;\n$J {\n$s += ($X - first) * ($X - first);\n}\nif ($s > "
       "1.0f) {\n$s = "
       "1.0f + logf($s);\n}\n$y[$i] = $s;\n"},
      // --- illegal
      {"recurrence in memory", Truth::illegal,
       "$Yfirst = $Xfirst;\n$Jfrom1 {\n$Y = 0.5f * $Ybefore + $X;\n}\n", false, true},
      {"recurrence in a scalar", Truth::illegal,
       "float $s = 0.0f;\n$J {\n$s = 0.5f * $s + $X;\n$Y = $s;\n}\n", false, true},
      {"recurrence of which the end is kept", Truth::illegal,
       "float $s = 1.0f;\n$J {\n$s = 0.75f * $s + $X;\n}\n$y[$i] = $s;\n"},
      {"prefix sum", Truth::illegal, "float $s = 0.0f;\n$J {\n$s += $X;\n$Y = $s;\n}\n", false, true},
      {"prefix sum, the element left out", Truth::illegal, "float $s = 0.0f;\n$J {\n$Y = $s;\n$s += $X;\n}\n",
       false, true},
      {"largest so far", Truth::illegal, "float $s = -1e30f;\n$J {\n$s = fmaxf($s, $X);\n$Y = $s;\n}\n",
       false, true},
      {"sum until", Truth::illegal,
       "float $s = 0.0f;\n$J {\nif ($X > 0.9f) break;\n$s += $X;\n}\n$y[$i] = $s;\n"},
      {"sum while", Truth::illegal,
       "float $s = 0.0f;\nint $j = 0;\nwhile ($j < $N && $X < 0.9f) {\n$s += $X;\n++$j;\n}\n$y[$i] = $s;\n"},
      {"shift to the left in place", Truth::illegal,
       "for (int $j = 0; $j + $D < $N; ++$j) {\n$X = $Xahead + 1.0f;\n}\n$y[$i] = 1.0f;\n", true},
      {"shift to the right in place", Truth::illegal,
       "for (int $j = $D; $j < $N; ++$j) {\n$X = $Xbehind * 0.5f + 1.0f;\n}\n$y[$i] = 1.0f;\n", true},
      {"reversal in place", Truth::illegal, "$J {\n$X = $Xback;\n}\n$y[$i] = 1.0f;\n", true},
      {"last of some", Truth::illegal,
       "float last = 0.0f;\n$J {\nif ($X > 0.0f) last = $X;\n}\n$y[$i] = last;\n"},
      {"difference of differences", Truth::illegal,
       "float $s = 0.0f;\n$J {\n$s = $X - $s;\n}\n$y[$i] = $s;\n"},
      {"selection", Truth::illegal,
       "int kept = 0;\n$J {\n$Y = 0.0f;\nif ($X > 0.0f) {\n$y[$i * $N + kept] = $X;\n++kept;\n}\n}\n", false,
       true},
      {"steps of a walk", Truth::illegal,
       "int place = 0;\n$J {\nplace = links[$i * $N + place];\n$Y = $x[$i * $N + place];\n}\n", false, true,
       "k"},
      {"histogram of a row", Truth::illegal,
       "for (int bin = 0; bin < 8; ++bin) {\nbins[$i * 8 + bin] = 0.0f;\n}\n$J {\nbins[$i * 8 + links[$ij] % "
       "8] += "
       "$X;\n}\n$y[$i] = 1.0f;\n",
       false, false, "kh"},
      {"numbers in turn", Truth::illegal,
       "unsigned state = 7u;\n$J {\nstate = state * 1664525u + 1013904223u;\n$Y = $X * (float)(state >> "
       "24);\n}\n",
       false, true},
      {"sum with its error", Truth::illegal,
       "float $s = 0.0f;\nfloat error = 0.0f;\n$J {\nfloat $v = $X - error;\nfloat next = $s + $v;\nerror = "
       "(next - $s) "
       "- $v;\n$s = next;\n}\n$y[$i] = $s - error;\n"},
      {"mean as it goes", Truth::legal,
       "float mean = 0.0f;\n$J {\nmean += ($X - mean) / (float)($j + 1);\n}\n$y[$i] = mean;\n"},
      {"sum of neighbours in place", Truth::illegal,
       "for (int $j = 1; $j + 1 < $N; ++$j) {\n$X = ($Xbefore + $Xnext) * 0.5f;\n}\n$y[$i] = 1.0f;\n", true},
      {"sum that decides what is added", Truth::illegal,
       "float $s = 0.0f;\n$J {\nif ($s < 2.0f) $s += fabsf($X);\n}\n$y[$i] = $s;\n"},
      {"what the loop before left", Truth::illegal,
       "float before = 0.0f;\n$J {\n$Y = $X - before;\nbefore = $X;\n}\n", false, true},
  };
  return recipes;
}

/// One thread a row.
[[nodiscard]] inline GeneratedLaunches generated_rows(Random& random) {
  const auto& recipes = row_recipes();
  const RowRecipe& recipe =
      recipes[static_cast<std::size_t>(random.number(0, static_cast<int>(recipes.size()) - 1))];
  Author author(random);
  const std::string distance = std::to_string(random.number(1, 3));
  Words& words = author.words();
  words["D"] = distance;
  words["ij"] = author.at("$i", "$N", "$j");
  words["J"] = author.loop("$j", "0", "$N");
  words["Jfrom1"] = author.loop("$j", "1", "$N");
  for (const auto& [upper, array] : {std::pair{"X", "x"}, {"Y", "y"}, {"Z", "z"}, {"W", "w"}}) {
    const auto element = [&](const std::string& column) { return author.of_row(array, column); };
    words[upper] = element("$j");
    words[std::string(upper) + "first"] = element("0");
    words[std::string(upper) + "before"] = element("$j - 1");
    words[std::string(upper) + "next"] = element("$j + 1");
    words[std::string(upper) + "ahead"] = element("$j + " + distance);
    words[std::string(upper) + "behind"] = element("$j - " + distance);
    words[std::string(upper) + "back"] = element("$N - 1 - $j");
  }
  const bool more_w = recipe.more.find('w') != std::string_view::npos;
  const bool more_r = recipe.more.find('r') != std::string_view::npos;
  const bool more_v = recipe.more.find('v') != std::string_view::npos;
  const bool more_z = recipe.more.find('z') != std::string_view::npos;
  const bool more_k = recipe.more.find('k') != std::string_view::npos;
  const bool more_h = recipe.more.find('h') != std::string_view::npos;
  const bool more_l = recipe.more.find('l') != std::string_view::npos;

  const std::string name = author.pick({"rows", "reduce", "work", "each_row"}),
                    block = author.block_along_x();
  std::vector<std::string> parameters{recipe.changes_x ? author.output("x") : author.input("x")};
  std::string arguments = "x", pointers = author.row_pointer("x", recipe.changes_x);
  if (more_w || more_r || more_v) {
    parameters.push_back(author.input("w"));
    arguments += ", w";
    if (more_r) pointers += author.row_pointer("w", false);
  }
  if (more_k) {
    parameters.emplace_back("const int* links");
    arguments += ", links";
  }
  if (more_l) {
    parameters.emplace_back("const int* lengths");
    arguments += ", lengths";
  }
  parameters.push_back(author.output("y"));
  arguments += ", y";
  if (recipe.writes_rows) pointers += author.row_pointer("y", true);
  if (more_z) {
    parameters.push_back(author.output("z"));
    arguments += ", z";
    pointers += author.row_pointer("z", true);
  }
  if (more_h) {
    parameters.emplace_back("float* bins");
    arguments += ", bins";
  }
  parameters.push_back(author.extent("M"));
  parameters.push_back(author.extent("N"));
  std::string source =
      "//@ launch " + name + "<<<ceil_div(M, " + block + "), " + block + ">>>(" + arguments + ", M, N)\n";
  const bool followed = recipe.writes_rows && random.chance(15);
  if (followed) source += "//@ launch follow<<<ceil_div(M * N, 256), 256>>>(y, last, M * N)\n";
  source += function_text(name, parameters,
                          author.declared("i", author.number('x', block)) +
                              author.guarded({{"$i", "$M"}}, pointers + author.text(recipe.body)));
  if (followed)
    source += "__global__ void follow(const float* before, float* after, int count) {\n"
              "int p = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "if (p < count) {\nafter[p] = before[p] * 0.5f + 1.0f;\n}\n}\n";

  TaskBuilder builder{"generated"};
  builder.kernel(languages::cuda, indented(source)).shape("x", {"M", "N"});
  if (recipe.changes_x) builder.role("x", ArgumentRole::inout);
  if (more_w) builder.shape("w", {"M"});
  if (more_r) builder.shape("w", {"M", "N"});
  if (more_v) builder.shape("w", {"N"});
  if (more_k) builder.shape("links", {"M", "N"}).domain("links", "0", "N - 1");
  if (more_l) builder.shape("lengths", {"M"}).domain("lengths", "0", "N");
  if (recipe.writes_rows)
    builder.shape("y", {"M", "N"});
  else
    builder.shape("y", {"M"});
  if (more_z) builder.shape("z", {"M", "N"});
  if (more_h) builder.shape("bins", {"M", "8"});
  if (followed) builder.shape("last", {"M", "N"});
  const bool few_rows = random.chance(30);
  builder.size({{"M", few_rows ? 64 : 4096},
                {"N", few_rows            ? 65536
                      : random.chance(50) ? 1024
                                          : 3000}})
      .check({{"M", random.number(2, 37)}, {"N", random.number(2, 301)}})
      .check({{"M", 1}, {"N", 1}})
      .check({{"M", 6}, {"N", 64}});
  GeneratedLaunches made{"rows: " + std::string(recipe.name), builder.build(), {}};
  made.truths.push_back({recipe.truth == Truth::legal ? "rows shared" : "rows with carried values shared",
                         "parallelization", name + '/', recipe.truth});
  return made;
}

/// What a launch over elements computes of its own and others' values.
[[nodiscard]] inline std::string pointwise_value(Random& random, const std::string& value) {
  switch (random.number(0, 6)) {
  case 0:
    return "2.0f * " + value;
  case 1:
    return value + " * " + value + " + 0.5f";
  case 2:
    return "fmaxf(" + value + ", 0.0f)";
  case 3:
    return "0.5f * " + value + " * (1.0f + tanhf(" + value + "))";
  case 4:
    return value + " > 0.0f ? " + value + " : 0.1f * " + value;
  case 5:
    return "1.0f / (1.0f + expf(-(" + value + ")))";
  default:
    return value + " - 1.0f";
  }
}

/// How the second of two launches touches what the first made.
struct HandOver {
  std::string_view name;
  Truth truth;
  std::string_view condition; ///< of the second launch's work, besides its limit; may be empty
  std::string_view element;   ///< of the buffer that is read
};

/// Launches over the same elements, one after the other.
[[nodiscard]] inline GeneratedLaunches generated_chain(Random& random) {
  static const std::vector<HandOver> ways{
      {"its own", Truth::legal, "", "$f"},
      {"its own", Truth::legal, "", "$f"},
      {"its own", Truth::legal, "", "$f"},
      {"its own", Truth::legal, "", "$f"},
      {"its own", Truth::legal, "", "$f"},
      {"the next one", Truth::illegal, "$f + 1 < $n", "$f + 1"},
      {"the one before", Truth::illegal, "$f > 0", "$f - 1"},
      {"the opposite one", Truth::illegal, "", "$n - 1 - $f"},
      {"around the end", Truth::illegal, "", "($f + 1) % $n"},
      {"the first one", Truth::illegal, "", "0"},
      {"half as far", Truth::illegal, "", "$f / 2"},
      {"through another array", Truth::illegal, "", "places[$f]"},
      {"its neighbour in a pair", Truth::illegal, "($f ^ 1) < $n", "$f ^ 1"},
  };
  const auto way = [&]() -> const HandOver& {
    return ways[static_cast<std::size_t>(random.number(0, static_cast<int>(ways.size()) - 1))];
  };
  const int launches = random.number(1, 3);
  const bool plane = random.chance(30); // the elements are M * N
  const std::string count = plane ? "M * N" : "N";
  std::vector<std::string> buffers{"x"};
  std::string lines, functions;
  std::vector<std::string> names;
  std::vector<Truth> between; // a launch and the next one
  std::vector<bool> branches; // a launch stores in two places
  bool places = false;
  const bool read_afterwards = random.chance(20);
  std::string way_names;
  const bool in_place = launches > 1 && random.chance(18); // the second changes the buffer it reads
  const bool changes_source =
      !in_place && launches > 1 && random.chance(14); // the second writes the first's input
  const bool first_looks_around = changes_source && random.chance(60);
  for (int launch = 0; launch < launches; ++launch) {
    Author author(random);
    const std::string name =
        author.pick({"scale", "shift", "squash", "bend", "blend"}) + '_' + std::to_string(launch);
    const std::string block = author.block_along_x();
    const bool own_in_place = in_place && launch == 1;
    const HandOver how = launch == 0 || own_in_place ? ways.front() : way();
    const std::string from = buffers.back();
    const bool last = launch + 1 == launches;
    const std::string to = own_in_place                    ? from
                           : changes_source && launch == 1 ? "x"
                           : last                          ? "y"
                                                           : "t" + std::to_string(launch);
    const bool also_x = launch > 0 && !changes_source && random.chance(25);
    const bool uses_places = how.element.find("places") != std::string_view::npos;
    places = places || uses_places;
    std::vector<std::string> parameters;
    std::string arguments;
    const auto pass = [&](const std::string& parameter, const std::string& argument) {
      parameters.push_back(parameter);
      arguments += (arguments.empty() ? "" : ", ") + argument;
    };
    if (own_in_place)
      pass(author.output("x"), from);
    else
      pass(author.input("x"), from);
    if (uses_places) pass("const int* places", "places");
    if (also_x) pass(author.input("w"), "x");
    if (!own_in_place) pass(author.output("y"), to);
    pass(author.extent("n"), count);

    std::string element = author.text("$x[" + author.text(how.element) + ']');
    if (launch == 0 && first_looks_around) element = author.text("($f + 1 < $n ? $x[$f + 1] : $x[$f])");
    std::string work, value;
    if (random.chance(35)) {
      work = author.text("float $v = ") + element + ";\n";
      value = pointwise_value(random, author.word("v"));
    } else {
      value = pointwise_value(random, element);
    }
    if (also_x) value = '(' + value + ')' + author.text(" * $w[$f]");
    const std::string target = author.text((own_in_place ? "$x[$f]" : "$y[$f]"));
    work += target + " = " + value + ";\n";
    if (!how.condition.empty())
      work = author.text("if (" + std::string(how.condition) + ") {\n") + work + "} else {\n" + target +
             " = 0.0f;\n}\n";
    branches.push_back(!how.condition.empty());
    functions +=
        function_text(name, parameters,
                      author.declared("f", author.number('x', block)) + author.guarded({{"$f", "$n"}}, work));
    lines += "//@ launch " + name + "<<<ceil_div(" + count + ", " + block + "), " + block + ">>>(" +
             arguments + ")\n";
    if (launch > 0) {
      between.push_back(changes_source && launch == 1 && first_looks_around ? Truth::illegal : how.truth);
      way_names +=
          (way_names.empty() ? "" : ", ") + std::string(own_in_place                    ? "in place"
                                                        : changes_source && launch == 1 ? "into the source"
                                                                                        : how.name);
    }
    names.push_back(name);
    buffers.push_back(to);
  }
  std::string scratch;
  std::vector<std::string> shape = plane ? std::vector<std::string>{"M", "N"} : std::vector<std::string>{"N"};
  std::vector<std::string> made_buffers;
  for (std::size_t b = 1; b < buffers.size(); ++b) {
    const bool seen = std::find(made_buffers.begin(), made_buffers.end(), buffers[b]) != made_buffers.end();
    if (buffers[b] == "x" || buffers[b] == "y" || seen) continue;
    made_buffers.push_back(buffers[b]);
  }
  // the result of the last launch is a result of the task
  const std::string result = buffers.back();
  for (const std::string& buffer : made_buffers)
    if (buffer != result && !(read_afterwards && buffer == "t0"))
      scratch += "//@ scratch " + buffer + ": f32[" + (plane ? "M, N" : "N") + "]\n";
  TaskBuilder builder{"generated"};
  builder.kernel(languages::cuda, indented(scratch + lines + functions)).shape("x", shape);
  if (changes_source) builder.role("x", ArgumentRole::inout);
  for (const std::string& buffer : made_buffers)
    if (buffer == result || (read_afterwards && buffer == "t0"))
      builder.shape(buffer, shape).role(buffer, ArgumentRole::output);
  if (std::find(buffers.begin(), buffers.end(), "y") != buffers.end()) builder.shape("y", shape);
  if (places) builder.shape("places", shape);
  if (plane)
    builder.size({{"M", 2048}, {"N", 1024}})
        .check({{"M", 7}, {"N", 99}})
        .check({{"M", 1}, {"N", 1}})
        .check({{"M", 8}, {"N", 64}});
  else
    builder.size({{"N", 1 << 22}}).check({{"N", 1003}}).check({{"N", 1}}).check({{"N", 512}});

  GeneratedLaunches made{"chain: " + (way_names.empty() ? "one launch" : way_names), builder.build(), {}};
  Truth all = Truth::legal;
  std::string sequence = "launch:" + names.front();
  for (std::size_t b = 0; b < between.size(); ++b) {
    const bool in_place_here = in_place || (changes_source && b == 0);
    const std::string kind = between[b] == Truth::illegal ? "launches that read other elements fused"
                             : in_place_here              ? "launches in place fused"
                             : branches[b]                ? "launches that store in two places fused"
                                                          : "launches over elements fused";
    made.truths.push_back({kind, "fusion", "launch:" + names[b] + "+launch:" + names[b + 1], between[b]});
    if (between[b] == Truth::illegal) all = Truth::illegal;
    sequence += "+launch:" + names[b + 1];
  }
  if (between.size() > 1)
    made.truths.push_back({all == Truth::illegal ? "three launches with one that reads other elements fused"
                           : in_place || changes_source ? "launches in place fused"
                           : branches[0] || branches[1] ? "launches that store in two places fused"
                                                        : "three launches over elements fused",
                           "fusion", sequence, all});
  for (std::size_t launch = 0; launch < names.size(); ++launch) {
    const bool own = launch == 0 ? !first_looks_around : between[launch - 1] == Truth::legal;
    if (!own) continue;
    made.truths.push_back(
        {"elements vectorised", "vectorization", names[launch] + "/threads:", Truth::legal});
    made.truths.push_back({"elements coarsened", "unrolling", names[launch] + "/threads:", Truth::legal});
  }
  return made;
}

/// What threads that each add up a product do.
struct SumRecipe {
  std::string_view name;
  bool tiled;             ///< tiling its sum is expected
  bool coarsened;         ///< threads with several results are expected
  std::string_view start; ///< of the sum
  std::string_view term;  ///< a statement in the loop; $A, $B: the operands
  std::string_view end;   ///< behind it; $C: the result's element
  std::string_view more = "";
};

[[nodiscard]] inline const std::vector<SumRecipe>& sum_recipes() {
  static const std::string_view plain = "$s += $A * $B;\n", store = "$C = $s;\n";
  static const std::vector<SumRecipe> recipes{
      {"product", true, true, "0.0f", plain, store},
      {"product", true, true, "0.0f", "$s += $B * $A;\n", store},
      {"product, written out", true, true, "0.f", "$s = $s + $A * $B;\n", store},
      {"product in one instruction", true, true, "0.0f", "$s = fmaf($A, $B, $s);\n", store},
      {"product of loaded values", true, true, "0.0f",
       "const float left = $A;\nconst float right = $B;\n$s += left * right;\n", store},
      {"scaled product", true, true, "0.0f", plain, "$C = 0.25f * $s;\n"},
      {"product with a bias", true, true, "0.0f", plain, "$C = $s + bias[$j];\n", "b"},
      {"product that starts with a bias", true, true, "bias[$j]", plain, store, "b"},
      {"product on top of the result", true, true, "0.0f", plain, "$C = 0.5f * $C + $s;\n", "c"},
      {"product added to the result", true, true, "0.0f", plain, "$C += $s;\n", "c"},
      {"product with an epilogue", true, true, "0.0f", plain,
       "float $v = $s + bias[$j];\n$C = $v > 0.0f ? $v : 0.0f;\n", "b"},
      {"product with a branch behind", true, true, "0.0f", plain,
       "if ($s > 0.0f) {\n$C = $s;\n} else {\n$C = 0.1f * $s;\n}\n"},
      {"product with two results", true, true, "0.0f", plain, "$C = $s;\n$C2 = $s * $s;\n", "2"},
      {"product with a residue", true, true, "0.0f", plain, "$C = $s + other[$ij];\n", "o"},
      {"product with a scaled operand", true, true, "0.0f", "$s += $A * ($B - 0.5f);\n", store},
      // --- nothing is expected of these
      {"distances", false, true, "0.0f", "$s += ($A - $B) * ($A - $B);\n", store},
      {"operand that moves with both axes", false, false, "0.0f", "$s += $A * cube[$cube];\n", store, "3"},
      {"triangle", false, false, "0.0f", plain, store, "t"},
      {"condition in the loop", false, false, "0.0f", "if ($A > 0.0f) {\n$s += $A * $B;\n}\n", store},
      {"condition on the place", false, false, "0.0f", "if ($k != $i) $s += $A * $B;\n", store},
      {"mask of places", false, false, "0.0f", "if (mask[$k] > 2) $s += $A * $B;\n", store, "m"},
      {"operand through another array", false, false, "0.0f", "$s += $A * $Bthrough;\n", store, "i"},
      {"sum until", false, false, "0.0f", "if ($A > 0.95f) break;\n$s += $A * $B;\n", store},
      {"sum that fades", false, false, "0.0f", "$s = 0.9f * $s + $A * $B;\n", store},
      {"sum in memory", false, false, "0.0f", "$C += $A * $B;\n", "", "c"},
      {"largest product", false, false, "-1e30f", "$s = fmaxf($s, $A * $B);\n", store},
      {"result through another array", false, false, "0.0f", plain, "$c[$i * $N + places[$j]] = $s;\n", "p"},
      {"result where data say", false, false, "0.0f", plain, "if (other[$ij] > 0.0f) $C = $s;\n", "oc"},
  };
  return recipes;
}

/// One thread a result, each a sum over `k`.
[[nodiscard]] inline GeneratedLaunches generated_sums(Random& random) {
  const auto& recipes = sum_recipes();
  // the plain ones are what people write most
  const bool expected = random.chance(72);
  std::vector<const SumRecipe*> eligible;
  for (const SumRecipe& recipe : recipes)
    if (recipe.tiled == expected) eligible.push_back(&recipe);
  const SumRecipe& recipe =
      *eligible[static_cast<std::size_t>(random.number(0, static_cast<int>(eligible.size()) - 1))];
  const auto more = [&](char letter) { return recipe.more.find(letter) != std::string_view::npos; };
  Author author(random);
  Words& words = author.words();
  words["c"] = words["y"];
  words["ij"] = author.at("$i", "$N", "$j");
  const bool layers = random.chance(15) && !more('p'); // else all layers would store in one
  const bool left_turned = random.chance(20), right_turned = random.chance(30);
  const bool result_turned = random.chance(10) && !more('c') && !more('p');
  const std::string layer = layers ? "layer * " : "";
  const auto in_layer = [&](const std::string& extents, const std::string& element) {
    return layers ? author.text("layer * " + extents + " + ") + element : element;
  };
  words["A"] = author.text("$x[") +
               in_layer("$M * $K", left_turned ? author.at("$k", "$M", "$i") : author.at("$i", "$K", "$k")) +
               ']';
  words["B"] = author.text("$w[") +
               in_layer("$K * $N", right_turned ? author.at("$j", "$K", "$k") : author.at("$k", "$N", "$j")) +
               ']';
  words["Bthrough"] = author.text("$w[places[$k] * $N + $j]");
  words["C"] =
      author.text("$y[") +
      in_layer("$M * $N", result_turned ? author.at("$j", "$M", "$i") : author.at("$i", "$N", "$j")) + ']';
  words["C2"] = author.text("$z[") + in_layer("$M * $N", author.at("$i", "$N", "$j")) + ']';
  words["cube"] = author.text("($i * $N + $j) * $K + $k");

  const std::string name = author.pick({"product", "multiply", "contract", "combine"});
  const auto [wide, high] = author.block_in_plane();
  std::vector<std::string> parameters;
  std::string arguments;
  const auto pass = [&](const std::string& parameter, const std::string& argument) {
    parameters.push_back(parameter);
    arguments += (arguments.empty() ? "" : ", ") + argument;
  };
  pass(author.input("x"), "x");
  if (more('3'))
    pass("const float* cube", "cube");
  else
    pass(author.input("w"), "w");
  if (more('b')) pass("const float* bias", "bias");
  if (more('o')) pass("const float* other", "other");
  if (more('m')) pass("const int* mask", "mask");
  if (more('i') || more('p')) pass("const int* places", "places");
  pass(author.output("y"), "y");
  if (more('2')) pass(author.output("z"), "z");
  for (const char* extent : {"M", "N", "K"}) pass(author.extent(extent), extent);

  std::string numbers;
  const std::string rows = author.declared("i", author.number('y', high)),
                    columns = author.declared("j", author.number('x', wide));
  numbers = random.chance(50) ? rows + columns : columns + rows;
  if (layers) numbers += "int layer = blockIdx.z;\n";
  const std::string bound = more('t') ? "$i + 1" : "$K";
  std::string work = author.text("float $s = ") + author.text(recipe.start) + ";\n" +
                     author.loop("$k", "0", bound) + " {\n" + author.text(recipe.term) + "}\n" +
                     author.text(recipe.end);
  std::vector<std::pair<std::string, std::string>> limits{{"$i", "$M"}, {"$j", "$N"}};
  if (random.chance(50)) std::swap(limits[0], limits[1]);
  std::string source = "//@ launch " + name + "<<<(ceil_div(N, " + wide + "), ceil_div(M, " + high + ")" +
                       (layers ? ", L" : "") + "), (" + wide + ", " + high + ")>>>(" + arguments + ")\n";
  // what is done to each result in a launch of its own
  const bool followed = !layers && random.chance(25);
  const std::string after = author.pick({"bend", "finish"});
  const bool follow_own = random.chance(75);
  if (followed) source += "//@ launch " + after + "<<<ceil_div(M * N, 256), 256>>>(y, last, M * N)\n";
  source += function_text(name, parameters, numbers + author.guarded(limits, work));
  if (followed)
    source +=
        "__global__ void " + after +
        "(const float* before, float* after, int count) {\nint p = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "if (p < count) {\nafter[p] = fmaxf(before[" +
        std::string(follow_own ? "p" : "count - 1 - p") + "], 0.0f) + 1.0f;\n}\n}\n";
  const auto shaped = [&](std::vector<std::string> extents) {
    if (layers) extents.insert(extents.begin(), "L");
    return extents;
  };
  TaskBuilder builder{"generated"};
  builder.kernel(languages::cuda, indented(source))
      .shape("x",
             shaped(left_turned ? std::vector<std::string>{"K", "M"} : std::vector<std::string>{"M", "K"}));
  if (more('3'))
    builder.shape("cube", {"M", "N", "K"});
  else
    builder.shape(
        "w", shaped(right_turned ? std::vector<std::string>{"N", "K"} : std::vector<std::string>{"K", "N"}));
  if (more('b')) builder.shape("bias", {"N"});
  if (more('o')) builder.shape("other", {"M", "N"});
  if (more('m')) builder.shape("mask", {"K"}).domain("mask", "0", "9");
  if (more('i')) builder.shape("places", {"K"}).domain("places", "0", "K - 1");
  if (more('p')) builder.shape("places", {"N"});
  builder.shape("y", shaped({"M", "N"}));
  if (more('c')) builder.role("y", ArgumentRole::inout);
  if (more('2')) builder.shape("z", shaped({"M", "N"}));
  if (followed) builder.shape("last", {"M", "N"});
  const auto size = [&](int m, int n, int k) {
    Symbols symbols{{"M", m}, {"N", n}, {"K", k}};
    if (layers) symbols["L"] = 3;
    return symbols;
  };
  // rows of a triangle must not be longer than the sum
  builder.size(size(1024, random.chance(50) ? 1024 : 4096, more('t') ? 1024 : 512))
      .check(size(random.number(17, 40), random.number(33, 75), more('t') ? 41 : random.number(5, 40)))
      .check(size(1, 1, 1))
      .check(more('t') ? size(32, 64, 32) : size(131, 66, 16));
  GeneratedLaunches made{"sums: " + std::string(recipe.name), builder.build(), {}};
  if (recipe.tiled)
    made.truths.push_back({"sums tiled", "tiling", name + '/' + author.word("k"), Truth::legal});
  if (recipe.coarsened)
    made.truths.push_back({"sums coarsened", "unrolling", name + "/threads:", Truth::legal});
  if (followed && !result_turned && !more('p') && recipe.end.find("if (other") == std::string_view::npos &&
      recipe.name != "sum in memory")
    made.truths.push_back(
        {follow_own ? "epilogues fused into sums" : "launches that read other elements fused", "fusion",
         "launch:" + name + "+launch:" + after, follow_own ? Truth::legal : Truth::illegal});
  return made;
}

/// What threads in a plane do with one element each.
struct PlaneRecipe {
  std::string_view name;
  std::string_view transposed; ///< "legal", "illegal" or nothing: tiling of the threads
  std::string_view work;
  std::string_view more = ""; ///< q: square; c: y is read and written; p: places
};

[[nodiscard]] inline const std::vector<PlaneRecipe>& plane_recipes() {
  static const std::vector<PlaneRecipe> recipes{
      {"transposition", "legal", "$y[$ji] = $x[$ij];\n"},
      {"transposition", "legal", "$y[$ji] = $x[$ij];\n"},
      {"transposition, written the other way round", "legal", "$y[$back] = $x[$turned];\n", "t"},
      {"transposition with a scale", "legal", "$y[$ji] = 2.0f * $x[$ij] + 1.0f;\n"},
      {"transposition of a loaded value", "legal", "float $v = $x[$ij];\n$y[$ji] = $v * $v;\n"},
      {"transposition and sum", "legal", "$y[$ji] = $x[$ij] + $w[$ij];\n", "w"},
      {"transposition with a bias", "legal", "$y[$ji] = $x[$ij] + bias[$j];\n", "b"},
      {"copy", "", "$y[$ij] = $x[$ij];\n"},
      {"copy of a sum", "", "$y[$ij] = $x[$ij] + $w[$ij];\n", "w"},
      {"stencil", "",
       "float $v = $x[$ij];\nif ($i > 0) $v += $x[($i - 1) * $N + $j];\nif ($j > 0) $v += $x[$i * $N + $j - "
       "1];\nif ($j + "
       "1 < $N) $v += $x[$i * $N + $j + 1];\n$y[$ij] = 0.25f * $v;\n"},
      {"square turned in place", "illegal",
       "if ($i < $j) {\nconst float $v = $y[$ij];\n$y[$ij] = $y[$ji];\n$y[$ji] = $v;\n}\n", "qc"},
      {"upper triangle mirrored in place", "illegal", "if ($i < $j) $y[$ji] = $y[$ij];\n", "qc"},
      {"transposition added to what is there", "", "$y[$ji] += $x[$ij];\n", "c"},
      {"scatter of columns", "", "$y[$i * $N + places[$j]] = $x[$ij];\n", "p"},
      {"gather of columns", "", "$y[$ij] = $x[$i * $N + places[$j]];\n", "p"},
      {"transposition of two results", "", "$y[$ji] = $x[$ij];\n$z[$ij] = $x[$ij];\n", "2"},
      {"transposition under a condition", "", "if ($x[$ij] > 0.0f) $y[$ji] = $x[$ij];\n", "c"},
  };
  return recipes;
}

/// One thread an element of a plane.
[[nodiscard]] inline GeneratedLaunches generated_planes(Random& random) {
  const auto& recipes = plane_recipes();
  const PlaneRecipe& recipe =
      recipes[static_cast<std::size_t>(random.number(0, static_cast<int>(recipes.size()) - 1))];
  const auto more = [&](char letter) { return recipe.more.find(letter) != std::string_view::npos; };
  Author author(random);
  Words& words = author.words();
  const bool square = more('q');
  if (square) words["M"] = words["N"];
  words["ij"] = author.at("$i", "$N", "$j");
  words["ji"] = author.at("$j", "$M", "$i");
  words["turned"] = author.at("$j", "$M", "$i");
  words["back"] = author.at("$i", "$N", "$j");
  const std::string name = author.pick({"turn", "transpose_it", "move", "plane"});
  const auto [wide, high] = author.block_in_plane();
  std::vector<std::string> parameters;
  std::string arguments;
  const auto pass = [&](const std::string& parameter, const std::string& argument) {
    parameters.push_back(parameter);
    arguments += (arguments.empty() ? "" : ", ") + argument;
  };
  if (!square) pass(author.input("x"), "x");
  if (more('w')) pass(author.input("w"), "w");
  if (more('b')) pass("const float* bias", "bias");
  if (more('p')) pass("const int* places", "places");
  pass(author.output("y"), "y");
  if (more('2')) pass(author.output("z"), "z");
  if (!square) pass(author.extent("M"), "M");
  pass(author.extent("N"), "N");
  const std::string rows = author.declared("i", author.number('y', high)),
                    columns = author.declared("j", author.number('x', wide));
  std::vector<std::pair<std::string, std::string>> limits{{"$i", "$M"}, {"$j", "$N"}};
  if (random.chance(50)) std::swap(limits[0], limits[1]);
  const std::string count = square ? "N" : "M";
  std::string source = "//@ launch " + name + "<<<(ceil_div(N, " + wide + "), ceil_div(" + count + ", " +
                       high + ")), (" + wide + ", " + high + ")>>>(" + arguments + ")\n";
  source += function_text(name, parameters,
                          (random.chance(50) ? rows + columns : columns + rows) +
                              author.guarded(limits, author.text(recipe.work)));
  const bool turned = recipe.name.find("transposition") == 0 && !more('t');
  const std::vector<std::string> lying{"M", "N"}, standing{"N", "M"};
  TaskBuilder builder{"generated"};
  builder.kernel(languages::cuda, indented(source));
  if (square) {
    builder.shape("y", {"N", "N"}).role("y", ArgumentRole::inout);
    builder.size({{"N", 2048}}).check({{"N", random.number(33, 70)}}).check({{"N", 1}}).check({{"N", 64}});
  } else {
    builder.shape("x", more('t') ? standing : lying).shape("y", turned ? standing : lying);
    if (more('w')) builder.shape("w", lying);
    if (more('b')) builder.shape("bias", {"N"});
    if (more('p')) builder.shape("places", {"N"});
    if (more('2')) builder.shape("z", lying);
    if (more('c')) builder.role("y", ArgumentRole::inout);
    builder.size({{"M", 2048}, {"N", 4096}})
        .check({{"M", random.number(33, 70)}, {"N", random.number(3, 75)}})
        .check({{"M", 1}, {"N", 1}})
        .check({{"M", 32}, {"N", 64}});
  }
  GeneratedLaunches made{"planes: " + std::string(recipe.name), builder.build(), {}};
  if (!recipe.transposed.empty())
    made.truths.push_back(
        {recipe.transposed == "legal" ? "planes turned by tiles" : "planes turned in place by tiles",
         "tiling", name + "/threads:", recipe.transposed == "legal" ? Truth::legal : Truth::illegal});
  if (recipe.name == "copy" || recipe.name == "copy of a sum")
    made.truths.push_back(
        {"elements of planes vectorised", "vectorization", name + "/threads:", Truth::legal});
  return made;
}

/// Kernels whose threads know of each other, or that are not understood: whose threads must stay what they
/// are.
struct ClosedRecipe {
  std::string_view name;
  bool illegal;          ///< all that changes who does what is illegal; else results are checked
  std::string_view grid; ///< of the launch line; $B: threads of a block
  std::string_view body;
  std::string_view more = ""; ///< o: counts, u32; p: places; a: atomics
};

[[nodiscard]] inline const std::vector<ClosedRecipe>& closed_recipes() {
  static const std::vector<ClosedRecipe> recipes{
      {"a block turned around in shared memory", true, "ceil_div(N, $B), $B",
       "__shared__ float tile[512];\nint $f = blockIdx.x * blockDim.x + threadIdx.x;\ntile[threadIdx.x] = $f "
       "< $n ? "
       "$x[$f] : 0.0f;\n__syncthreads();\nif ($f < $n) {\n$y[$f] = tile[blockDim.x - 1 - threadIdx.x];\n}\n"},
      {"the neighbour's value in shared memory", true, "ceil_div(N, $B), $B",
       "__shared__ float tile[512];\nint $f = blockIdx.x * blockDim.x + threadIdx.x;\nif ($f < $n) "
       "tile[threadIdx.x] = $x[$f];\n__syncthreads();\nif ($f < $n) {\nfloat $v = threadIdx.x > 0 ? "
       "tile[threadIdx.x - 1] : "
       "0.0f;\n$y[$f] = tile[threadIdx.x] + $v;\n}\n"},
      {"a sum of a block in shared memory", true, "ceil_div(N, 128), 128",
       "__shared__ float tile[128];\nint $f = blockIdx.x * blockDim.x + threadIdx.x;\ntile[threadIdx.x] = $f "
       "< $n ? "
       "$x[$f] : 0.0f;\n__syncthreads();\nfor (int half = 64; half > 0; half /= 2) {\nif (threadIdx.x < "
       "half) "
       "tile[threadIdx.x] += tile[threadIdx.x + half];\n__syncthreads();\n}\nif ($f < $n) {\n$y[$f] = $x[$f] "
       "/ "
       "(tile[0] * tile[0] + 1.0f);\n}\n"},
      {"values from the warp", true, "ceil_div(N, 128), 128",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nfloat $v = $f < $n ? $x[$f] : 0.0f;\nfor (int far = "
       "16; far > 0; "
       "far /= 2) {\n$v += __shfl_xor_sync(0xffffffffu, $v, far);\n}\nif ($f < $n) {\n$y[$f] = $v;\n}\n"},
      {"rows of blocks", true, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nif ($f < $n) {\n$y[$f] = $x[$f] * "
       "(float)(threadIdx.x + "
       "1);\n}\n"},
      {"a loop shared by a block already", true, "ceil_div(N, 256), $B",
       "int last = min($n, (int)(blockIdx.x + 1) * 256);\nfor (int $f = blockIdx.x * 256 + threadIdx.x; $f < "
       "last; $f "
       "+= blockDim.x) {\n$y[$f] = 2.0f * $x[$f];\n}\n"},
      {"assembly", true, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nif ($f < $n) {\n$y[$f] = $x[$f];\nasm "
       "volatile(\"\");\n}\n"},
      {"an address that escapes", false, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nif ($f < $n) {\nconst float* place = "
       "&$x[$f];\n$y[$f] = *place * "
       "2.0f;\n}\n"},
      {"a number that changes", false, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\n$f = $n - 1 - $f;\nif ($f >= 0) {\n$y[$f] = $x[$f] "
       "+ 1.0f;\n}\n"},
      {"two numbers of one axis", false, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nint again = blockIdx.x * blockDim.x + "
       "threadIdx.x;\nif ($f < "
       "$n) {\n$y[again] = $x[$f] + 1.0f;\n}\n"},
      {"a stride of the grid", false, "64, $B",
       "for (int $f = blockIdx.x * blockDim.x + threadIdx.x; $f < $n; $f += blockDim.x * gridDim.x) "
       "{\n$y[$f] = 2.0f * "
       "$x[$f];\n}\n"},
      {"scatter", false, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nif ($f < $n) {\n$y[places[$f]] = $x[$f];\n}\n", "p"},
      {"gather", false, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nif ($f >= $n) return;\n$y[$f] = $x[places[$f]];\n",
       "p"},
      {"counts by atomics", false, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nif ($f < $n) {\natomicAdd(&counts[places[$f] % 8], "
       "1u);\n$y[$f] "
       "= $x[$f];\n}\n",
       "pa"},
      {"every second element", false, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nif ($f < $n) {\nif ($f % 2 == 0) {\n$y[$f] = "
       "$x[$f];\n} else "
       "{\n$y[$f] = 0.5f;\n}\n}\n"},
      {"a stencil", false, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nif ($f < $n) {\nfloat left = $f > 0 ? $x[$f - 1] : "
       "0.0f;\nfloat "
       "right = $f + 1 < $n ? $x[$f + 1] : 0.0f;\n$y[$f] = (left + $x[$f] + right) / 3.0f;\n}\n"},
      {"two elements a thread", false, "ceil_div(N, 2 * $B), $B",
       "int $f = (blockIdx.x * blockDim.x + threadIdx.x) * 2;\nif ($f < $n) $y[$f] = 2.0f * $x[$f];\nif ($f "
       "+ 1 < $n) $y[$f "
       "+ 1] = 2.0f * $x[$f + 1];\n"},
      {"another number in a branch", false, "ceil_div(N, $B), $B",
       "int $f = blockIdx.x * blockDim.x + threadIdx.x;\nif ($f < $n) {\nint other = $f + 1;\nif (other >= "
       "$n) other = "
       "0;\n$y[$f] = $x[other];\n}\n"},
      {"a thread for all", false, "1, 1",
       "float $s = 0.0f;\nfor (int $f = 0; $f < $n; ++$f) {\n$s += $x[$f];\n}\nfor (int $f = 0; $f < $n; "
       "++$f) {\n$y[$f] "
       "= $x[$f] - $s / $n;\n}\n"},
  };
  return recipes;
}

[[nodiscard]] inline GeneratedLaunches generated_closed(Random& random) {
  const auto& recipes = closed_recipes();
  const ClosedRecipe& recipe =
      recipes[static_cast<std::size_t>(random.number(0, static_cast<int>(recipes.size()) - 1))];
  const auto more = [&](char letter) { return recipe.more.find(letter) != std::string_view::npos; };
  Author author(random);
  author.words()["B"] = author.block_along_x();
  const std::string name = author.pick({"closed", "work", "turn", "local"});
  std::vector<std::string> parameters{author.input("x")};
  std::string arguments = "x";
  if (more('p')) {
    parameters.emplace_back("const int* places");
    arguments += ", places";
  }
  if (more('a')) {
    parameters.emplace_back("unsigned* counts");
    arguments += ", counts";
  }
  parameters.push_back(author.output("y"));
  parameters.push_back("int " + author.word("n"));
  std::string source =
      "//@ launch " + name + "<<<" + author.text(recipe.grid) + ">>>(" + arguments + ", y, N)\n";
  const bool followed = random.chance(40);
  if (followed) source += "//@ launch follow<<<ceil_div(N, 128), 128>>>(y, last, N)\n";
  source += function_text(name, parameters, author.text(recipe.body));
  if (followed)
    source += "__global__ void follow(const float* before, float* after, int count) {\nint p = blockIdx.x * "
              "blockDim.x + threadIdx.x;\nif (p < count) {\nafter[p] = before[p] * before[p] + 1.0f;\n}\n}\n";
  TaskBuilder builder{"generated"};
  builder.kernel(languages::cuda, indented(source)).shape("x", {"N"}).shape("y", {"N"});
  if (more('p')) builder.shape("places", {"N"});
  if (more('a'))
    builder.shape("counts", {"8"}).role("counts", ArgumentRole::inout).domain("counts", "0", "9");
  if (followed) builder.shape("last", {"N"});
  builder.size({{"N", 1 << 20}}).check({{"N", 1003}}).check({{"N", 1}}).check({{"N", 256}});
  GeneratedLaunches made{"closed: " + std::string(recipe.name), builder.build(), {}};
  if (recipe.illegal)
    for (const char* optimization : {"parallelization", "tiling", "unrolling", "vectorization"})
      made.truths.push_back(
          {"threads that know their place changed", optimization, name + "/threads:", Truth::illegal});
  return made;
}

} // namespace generated

/// The kernel of a seed: rows, chains, sums over k, planes, and kernels whose threads must stay what they
/// are.
[[nodiscard]] inline GeneratedLaunches generated_launches(std::uint64_t seed) {
  Random random{seed};
  const int family = random.number(1, 100);
  if (family <= 32) return generated::generated_rows(random);
  if (family <= 56) return generated::generated_chain(random);
  if (family <= 78) return generated::generated_sums(random);
  if (family <= 90) return generated::generated_planes(random);
  return generated::generated_closed(random);
}

} // namespace mtmc::testing
