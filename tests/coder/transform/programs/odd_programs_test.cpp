// Texts with something missing, twice there or put in: every action is carried out or declined, nothing else.
#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/python/python_parser.hpp>
#include <mtmc/analysis/python/python_region_finder.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/support/text.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "program_draft.hpp"
#include "program_texts.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

bool is_understood(const std::string& text) {
  bool understood = true;
  const SyntaxNode tree = parse_python(text);
  walk(tree, [&](const SyntaxNode& node) { understood = understood && node.kind != NodeKind::opaque; });
  return understood;
}

/// Tries the first variants of all legal actions, feasible or not.
void try_all(const std::string& text) {
  CAPTURE(text);
  const CodingRequest about = program_request(text, "tiling|");
  const Structure structure = PythonRegionFinder{}.find(about.seen.task, about.seen.kernel);
  const bool understood = is_understood(text);
  for (const Action& action : ActionSpace::extended().legal_actions(structure, about.seen.device)) {
    if (!TransformCoder{}.writes(action.optimization, languages::triton)) continue;
    for (int sample = 0; sample < 2; ++sample) {
      const Draft draft = draft_of_text(text, action.optimization + '|' + action.region, sample);
      REQUIRE((draft.kernel || !draft.message.empty()));
      if (!draft.kernel) continue;
      REQUIRE(understood);
      REQUIRE(is_understood(draft.kernel->source));
    }
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at + 1));
    at = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

} // namespace

TEST_CASE("a line is missing, or there twice, or last") {
  for (const auto& program : program_texts::all()) {
    const auto lines = lines_of(program.text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      auto other = lines;
      other.erase(other.begin() + static_cast<std::ptrdiff_t>(i));
      try_all(joined(other));
      other = lines;
      other.insert(other.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
      try_all(joined(other));
      other = lines;
      std::swap(other[i], other.back());
      try_all(joined(other));
    }
  }
}

TEST_CASE("a word is another one") {
  const std::vector<std::string> words{"None", "x",     "*x", "x[0]", "(1, 2)", "lambda: 1",
                                       "0",    "BLOCK", "tl", "-1",   ""};
  for (const auto& program : program_texts::all()) {
    std::size_t number = 0;
    for (std::size_t at = program.text.find("@triton"); at < program.text.size(); ++at) {
      const auto is_letter = [&](std::size_t place) {
        return place < program.text.size() && is_name_character(program.text[place]);
      };
      if (!is_letter(at) || is_letter(at - 1)) continue;
      std::size_t end = at;
      while (is_letter(end)) ++end;
      std::string other = program.text;
      other.replace(at, end - at, words[number++ % words.size()]);
      try_all(other);
    }
  }
}

TEST_CASE("the text ends early, or lines end otherwise") {
  for (const auto& program : program_texts::all()) {
    for (std::size_t end = 0; end < program.text.size(); end += 13) try_all(program.text.substr(0, end));
    try_all(with(program.text, "\n", "\r\n"));
    try_all(with(program.text, "    ", "\t"));
    try_all("\xEF\xBB\xBF" + program.text);
    try_all(program.text.substr(0, program.text.size() - 1));
  }
}

TEST_CASE("names that stand for each other, and for more and more") {
  std::string chain = "        n0 = x.numel()\n";
  for (int i = 1; i < 60; ++i)
    chain += "        n" + std::to_string(i) + " = n" + std::to_string(i - 1) + " + n" +
             std::to_string(i - 1) + " + n" + std::to_string(i - 1) + '\n';
  const auto text =
      with(with(program_texts::elementwise, "        total = x.numel()\n", chain + "        total = n59\n"),
           "(triton.cdiv(total, 256),)", "(total + total + total,)");
  try_all(text);
  std::string masks = "    m0 = at < total\n";
  for (int i = 1; i < 60; ++i)
    masks +=
        "    m" + std::to_string(i) + " = m" + std::to_string(i - 1) + " & m" + std::to_string(i - 1) + '\n';
  try_all(
      with(with(program_texts::elementwise, "    v =", masks + "    v ="), "mask=at < total", "mask=m59"));
  try_all(with(program_texts::elementwise, "        out = torch.empty_like(x)",
               "        out = torch.empty_like(out)"));
  try_all(with(program_texts::pair, "        hidden = torch.empty_like(x)",
               "        hidden = torch.empty_like(out)"));
}
