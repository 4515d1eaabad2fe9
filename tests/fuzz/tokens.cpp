// Texts of kernels as the screens of both backends take them apart, and as a twin in double precision.
#include <mtmc/backend/cpu/own_functions.hpp>
#include <mtmc/backend/cpu/text_screen.hpp>
#include <mtmc/backend/cuda/text_rules.hpp>
#include <mtmc/backend/defined_functions.hpp>
#include <mtmc/backend/directive_screen.hpp>
#include <mtmc/backend/double_precision.hpp>
#include <mtmc/backend/source_tokens.hpp>

#include <algorithm>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

void check_tokens(std::string_view text, mtmc::detail::LineSplices splices) {
  using mtmc::detail::SourceToken;
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  mtmc::detail::SourceTokens tokens(text, splices);
  std::size_t before = 0;
  for (auto token = tokens.next(); token.kind != SourceToken::Kind::end; token = tokens.next()) {
    require(before <= token.begin && token.begin < token.end && token.end <= text.size(),
            "tokens follow each other and are not empty");
    require(token.line >= 1 && token.line <= lines, "a token's line is a line of the text");
    before = token.end;
  }
  require(tokens.next().kind == SourceToken::Kind::end, "the end is the end");
}

void check_findings(const std::vector<mtmc::Diagnostic>& findings) {
  for (const auto& finding : findings)
    require(finding.severity == mtmc::Severity::error && !finding.message.empty() && !finding.remedy.empty(),
            "what is refused is an error with a remedy");
}

} // namespace

void tokens(std::string_view input) {
  using namespace mtmc::detail;
  check_tokens(input, LineSplices::behind_blanks);
  check_tokens(input, LineSplices::bare);
  check_findings(screen_text(input));
  check_findings(DirectiveScreen(cuda_text_rules).screen(input));
  check_findings(PreprocessedScreen("kernel.cpp", "end.cpp").screen(input));
  check_findings(
      PreprocessedScreen("kernel.cpp", "end.cpp").screen("# 1 \"kernel.cpp\"\n" + std::string(input)));
  (void)leading_cuda_includes(input);
  (void)OwnFunctions(input, {}).flags();
  (void)DoubleTwinWriter().write(input);
}

} // namespace mtmc_fuzz
