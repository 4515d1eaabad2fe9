// A language model's answer, alone or behind the kernel that it was asked to change.
#include <mtmc/coder/answer.hpp>
#include <mtmc/support/text.hpp>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

void check(std::string_view text, const mtmc::AnswerOptions& options) {
  const auto answer = mtmc::extract_kernel(text, options);
  const bool found = answer.failure == mtmc::AnswerFailure::none;
  require(answer.kernel.has_value() == found, "an answer has a kernel or says why not");
  require(answer.message.empty() == found, "a failure has words, and nothing else has");
  if (!found) return;
  const auto& source = answer.kernel->source;
  require(source == mtmc::normalize_text(source), "a kernel's text is normalised");
  require(source.find('\0') == std::string::npos, "a kernel's text has no NUL");
  require(mtmc::find_malformed_utf8(source) == std::string_view::npos, "a kernel's text is UTF-8");
  if (options.parent != nullptr)
    require(answer.kernel->id() != options.parent->id(), "the parent is no new kernel");
}

} // namespace

void answer(std::string_view input) {
  auto rest = input;
  const auto first = take_part(rest);
  const auto& text = rest.empty() ? first : rest;
  for (const auto& language : {mtmc::languages::cpp, mtmc::languages::cuda, mtmc::languages::triton}) {
    const mtmc::Kernel parent{language, std::string(first)};
    check(text, {.language = language});
    check(text, {.language = language, .edits = true, .parent = &parent});
    check(text, {.language = language, .entries = {"scale"}, .parent = &parent, .cut = true});
  }
  const auto joined = mtmc::join_continuation(first, rest);
  require(joined.size() <= first.size() + rest.size() + 1, "joining adds nothing");
}

} // namespace mtmc_fuzz
