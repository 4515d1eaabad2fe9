#pragma once
/// Definitions of coder/answer.hpp.

#include <mtmc/coder/answer.hpp>
#include <mtmc/coder/answer_choice.hpp>
#include <mtmc/coder/answer_code.hpp>
#include <mtmc/coder/answer_continuation.hpp>
#include <mtmc/coder/answer_edits.hpp>
#include <mtmc/coder/answer_elision.hpp>
#include <mtmc/coder/answer_fences.hpp>
#include <mtmc/coder/answer_repair.hpp>
#include <mtmc/coder/answer_text.hpp>
#include <mtmc/coder/module_rules.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/json_fields.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// What a model is asked for where nothing more exact can be said.
inline constexpr std::string_view send_whole_kernel = " Send the whole new kernel in one fenced code block.";

[[nodiscard]] inline ExtractedAnswer failed_answer(AnswerFailure failure, std::string message,
                                                   std::string_view prose) {
  return {.failure = failure, .message = well_formed(std::move(message)), .note = answer_note(prose)};
}

[[nodiscard]] inline ExtractedAnswer truncated_answer(std::string what, std::string_view prose) {
  return failed_answer(AnswerFailure::truncated,
                       std::move(what) + " Send the whole kernel again, with fewer words round it.", prose);
}

/// The kernel that a candidate is, or what is wrong with its bytes.
[[nodiscard]] inline ExtractedAnswer accepted_answer(const AnswerCandidate& candidate,
                                                     const AnswerContext& context, std::string_view prose) {
  const auto source = candidate.source(context);
  const bool malformed = find_malformed_utf8(source) != std::string_view::npos;
  if (malformed || source.find('\0') != std::string::npos)
    return failed_answer(AnswerFailure::not_text,
                         std::string("The code holds ") +
                             (malformed ? "bytes that are not UTF-8." : "NUL bytes.") +
                             std::string(send_whole_kernel),
                         prose);
  return {.kernel = Kernel{language_of_module(context.options.language, source), source},
          .note = answer_note(prose)};
}

/// Why none of the candidates is a kernel; there is one at least.
[[nodiscard]] inline ExtractedAnswer no_kernel_among(const std::vector<AnswerCandidate>& candidates,
                                                     const AnswerOptions& options, std::string_view prose) {
  const AnswerCandidate* elided = nullptr;
  const AnswerCandidate* unchanged = nullptr;
  const AnswerCandidate* partial = nullptr;
  std::set<std::string, std::less<>> together;
  for (const auto& candidate : candidates) {
    together.insert(candidate.defined.begin(), candidate.defined.end());
    if (candidate.elision) elided = &candidate;
    if (candidate.unchanged) unchanged = &candidate;
    if (!candidate.missing.empty() && (partial == nullptr || candidate.score >= partial->score))
      partial = &candidate;
  }
  if (elided != nullptr)
    return failed_answer(AnswerFailure::elided,
                         "\"" + elided->elision->substr(0, 100) +
                             "\" stands for code that is not there. Send the whole kernel with every line "
                             "written out.",
                         prose);
  if (unchanged != nullptr)
    return failed_answer(
        AnswerFailure::unchanged,
        "The kernel is the one that was there before. Make the change and send the whole new "
        "kernel.",
        prose);
  const bool split =
      candidates.size() > 1 && std::all_of(partial->missing.begin(), partial->missing.end(),
                                           [&](const std::string& name) { return together.contains(name); });
  if (split)
    return failed_answer(AnswerFailure::ambiguous,
                         "The kernel is spread over several blocks." + std::string(send_whole_kernel), prose);
  auto missing = partial->missing;
  constexpr std::size_t max_named = 6;
  if (missing.size() > max_named) missing.resize(max_named);
  std::string message = "The code does not define `" + joined(missing, "`, `") + "`";
  if (!partial->defined.empty() && partial->defined.size() <= max_named)
    message += " (it defines `" + joined(partial->defined, "`, `") + "`)";
  message += ", which the launch lines launch. Send the whole kernel and define it, or write a line `" +
             std::string(launch_marker(options.language)) + " launch NAME...` for its new name.";
  return failed_answer(AnswerFailure::entry_missing, std::move(message), prose);
}

/// Reads blocks; nothing if none of them can be code of the language.
[[nodiscard]] inline std::optional<ExtractedAnswer> answer_of_blocks(const BlockedAnswer& answer,
                                                                     const AnswerOptions& options) {
  struct Code {
    const AnswerBlock* block;
    TagFit fit;
    std::string text;
  };
  std::vector<Code> codes;
  AnswerContext context(options);
  // Launch lines alone are short.
  constexpr std::size_t max_launch_bytes = 4096;
  for (const auto& block : answer.blocks) {
    const auto fit = fit_of_tag(block.tag, options.language);
    if (!block.closed || fit == TagFit::foreign || trim(block.body).empty()) continue;
    if (has_edit_marks(block.body) || reads_as_diff(block.body)) continue;
    // JSON in a block without a tag.
    if (fit == TagFit::neutral && trim(block.body).starts_with('{')) continue;
    auto text = repaired_code(block.body);
    const auto split = split_launch_lines(text, options.language);
    if (text.size() < max_launch_bytes && !split.launches.empty() &&
        trim(read_code(split.rest, options.language.syntax).plain).empty())
      context.use_launch_lines(text);
    else
      codes.push_back({&block, fit, std::move(text)});
  }
  if (codes.empty()) return std::nullopt;
  std::vector<AnswerCandidate> candidates;
  for (const auto& code : codes) {
    auto candidate = read_candidate(code.text, context);
    candidate.block = code.block;
    candidate.score += code.fit == TagFit::matching ? 2 : 0;
    candidates.push_back(std::move(candidate));
  }
  const auto is_kernel = [](const AnswerCandidate& candidate) { return candidate.is_kernel(); };
  if (std::none_of(candidates.begin(), candidates.end(), is_kernel))
    return no_kernel_among(candidates, options, answer.prose);
  const auto* chosen = choose_kernel(candidates, answer.prose);
  if (chosen == nullptr)
    return failed_answer(
        AnswerFailure::ambiguous,
        "The answer offers several kernels as alternatives. Send the one that you recommend, "
        "and only that one, whole.",
        answer.prose);
  if (needs_file(*chosen, answer.blocks, answer.prose, options.language.syntax))
    return failed_answer(AnswerFailure::ambiguous,
                         "The kernel includes another block of the answer as a file, but it is one text." +
                             std::string(send_whole_kernel),
                         answer.prose);
  return accepted_answer(*chosen, context, answer.prose);
}

/// The code and the words of a JSON object, such as `{"code": "...", "explanation": "..."}`.
struct JsonWithCode {
  std::string code;
  std::string words;
};

[[nodiscard]] inline std::optional<JsonWithCode> read_json_answer(std::string_view text) {
  const auto document = parse_text(text, false);
  if (!document.is_object()) return std::nullopt;
  JsonWithCode answer;
  std::string taken;
  for (const auto* key : {"code", "kernel", "kernel_code", "new_kernel", "optimized_code", "source", "answer",
                          "content", "text"})
    if (const auto found = document.find(key);
        taken.empty() && found != document.end() && found->is_string()) {
      answer.code = found->get<std::string>();
      taken = key;
    }
  if (taken.empty()) return std::nullopt;
  for (const auto& [key, value] : document.items())
    if (key != taken && value.is_string()) answer.words += value.get<std::string>() + '\n';
  return answer;
}

/// The text of a JSON object is a block of its own, or has fenced blocks.
[[nodiscard]] inline ExtractedAnswer answer_of_json(const JsonWithCode& json, const AnswerOptions& options) {
  auto inner = fenced_blocks(json.code);
  if (inner.open_end) return truncated_answer("The code block in the JSON object has no end.", json.words);
  if (inner.blocks.empty()) {
    inner.prose.clear();
    inner.blocks.push_back({.body = json.code, .closed = true});
  }
  inner.prose += json.words;
  if (auto answer = answer_of_blocks(inner, options)) return *std::move(answer);
  return failed_answer(AnswerFailure::no_code,
                       "The JSON object holds no code." + std::string(send_whole_kernel), inner.prose);
}

/// A text without fences and tags, if it reads as code from beginning to end.
[[nodiscard]] inline std::optional<ExtractedAnswer> answer_of_whole_text(std::string_view text,
                                                                         const AnswerOptions& options) {
  const auto syntax = options.language.syntax;
  const auto repaired = repaired_code(text);
  const auto code = read_code(repaired, syntax);
  const bool only_comment = code.open_end && trim(std::string_view(code.plain)).empty();
  if (!only_comment && !starts_like_code(code, repaired, syntax)) return std::nullopt;
  const AnswerContext context(options);
  const auto candidate = read_candidate(repaired, context);
  const bool is_python = syntax == Syntax::python;
  const auto last = trim(std::string_view(code.plain));
  const bool ends_as_c = last.empty() || last.back() == '}' || last.back() == ';' ||
                         trim(last.substr(last.rfind('\n') + 1)).starts_with('#');
  if (code.open_end || !pair_brackets(code.plain).balanced)
    return truncated_answer("The code ends within brackets or a comment.", {});
  if (is_python ? !margin_is_python(code.plain) : !ends_as_c) return std::nullopt;
  if (!candidate.is_kernel()) return no_kernel_among({candidate}, options, {});
  return accepted_answer(candidate, context, {});
}

/// The parent with the edits of the answer, all or none.
[[nodiscard]] inline ExtractedAnswer answer_of_edits(std::string_view text, const AnswerOptions& options) {
  const auto read = read_edits(text);
  if (read.open_end || fenced_blocks(text).open_end)
    return truncated_answer("The last edit or its code block has no end.", read.prose);
  // Each edit goes over the whole kernel.
  constexpr std::size_t max_edits = 200;
  if (read.edits.size() > max_edits)
    return failed_answer(AnswerFailure::edit_no_match,
                         "The answer has more than 200 edits." + std::string(send_whole_kernel), read.prose);
  auto source = normalize_text(options.parent->source);
  auto failure = AnswerFailure::none;
  std::string problems;
  std::size_t failed = 0;
  bool applied = false;
  // Enough for a model to see what it did; more would only be long.
  constexpr std::size_t max_explained = 5;
  for (std::size_t i = 0; i < read.edits.size(); ++i) {
    const auto& edit = read.edits[i];
    if (const auto elision = find_elision(read_code(edit.replace, options.language.syntax), edit.replace))
      return failed_answer(AnswerFailure::elided,
                           "In edit " + std::to_string(i + 1) + " \"" + std::string(elision->substr(0, 100)) +
                               "\" stands for code that is not there. Send all edits again with every line "
                               "written out.",
                           read.prose);
    EditOutcome outcome{EditOutcome::Kind::no_match};
    if (edit.problem.empty()) outcome = apply_edit(source, edit);
    if (outcome.kind == EditOutcome::Kind::applied) {
      source = std::move(outcome.text);
      applied = true;
      continue;
    }
    const bool ambiguous = outcome.kind == EditOutcome::Kind::ambiguous;
    if (failure == AnswerFailure::none)
      failure = ambiguous ? AnswerFailure::edit_ambiguous : AnswerFailure::edit_no_match;
    if (++failed > max_explained) continue;
    problems += "Edit " + std::to_string(i + 1) + ' ';
    if (!edit.problem.empty()) {
      problems += edit.problem + ".\n";
    } else if (ambiguous) {
      problems += "fits in several places: give more lines round it in its SEARCH part.\n";
    } else {
      problems += "has a SEARCH part that is not in the kernel.";
      const auto near = nearest_lines(source, edit.search);
      problems += near.empty() ? std::string("\n") : " Did you mean these lines?\n" + near;
    }
  }
  if (failure != AnswerFailure::none) {
    const auto others = applied ? "Send only " + std::string(failed == 1 ? "that edit" : "those edits") +
                                      " again; the others fit."
                                : std::string("Send them again, copied exactly from the kernel.");
    auto answer = failed_answer(failure, problems + others, read.prose);
    if (applied) answer.partly_edited = Kernel{language_of_module(options.language, source), source};
    return answer;
  }
  const AnswerContext context(options);
  auto candidate = read_candidate(bare_code(source), context);
  // Comments of the parent are not the answer's.
  candidate.elision.reset();
  if (!candidate.is_kernel()) return no_kernel_among({candidate}, options, read.prose);
  return accepted_answer(candidate, context, read.prose);
}

/// Why an answer without code has none.
[[nodiscard]] inline ExtractedAnswer answer_without_code(std::string_view text, const BlockedAnswer& fenced,
                                                         const AnswerOptions& options) {
  const auto no_code = [&](std::string_view what) {
    return failed_answer(AnswerFailure::no_code, std::string(what) + std::string(send_whole_kernel),
                         fenced.prose);
  };
  if (has_edit_marks(text)) return no_code("The answer is edits, which are not asked for here.");
  for (const auto& block : fenced.blocks)
    if (block.tag == "diff" || block.tag == "patch" || reads_as_diff(block.body))
      return no_code("The answer is a diff.");
  if (!fenced.blocks.empty())
    return no_code("No code block of the answer is " + options.language.name + " code.");
  if (reads_as_refusal(text))
    return failed_answer(AnswerFailure::refusal, "The answer is a refusal." + std::string(send_whole_kernel),
                         text);
  return no_code("The answer holds no code.");
}

} // namespace detail

MTMC_INLINE ExtractedAnswer extract_kernel(std::string_view answer, const AnswerOptions& options) {
  const auto plain = detail::plain_line_ends(answer);
  const auto stripped = detail::strip_reasoning(plain);
  if (stripped.open)
    return detail::failed_answer(
        AnswerFailure::truncated,
        "The reasoning has no end, and no answer follows it. Think less, and send the "
        "whole new kernel in one fenced code block.",
        {});
  const auto text = detail::without_end_markers(stripped.text);
  const auto fenced = detail::fenced_blocks(text);
  if (options.cut) return detail::truncated_answer("The answer was cut at its largest length.", fenced.prose);
  if (trim(text).empty())
    return detail::failed_answer(AnswerFailure::no_code,
                                 "The answer is empty." + std::string(detail::send_whole_kernel), {});
  if (options.edits && options.parent != nullptr && detail::has_edit_marks(text))
    return detail::answer_of_edits(text, options);
  if (fenced.open_end) return detail::truncated_answer("The last code block has no end.", fenced.prose);
  if (auto found = detail::answer_of_blocks(fenced, options)) return *std::move(found);

  if (trim(text).starts_with('{')) {
    if (const auto json = detail::read_json_answer(trim(text))) return detail::answer_of_json(*json, options);
    if (!trim(text).ends_with('}')) return detail::truncated_answer("The JSON object has no end.", {});
  }
  for (auto block = fenced.blocks.rbegin(); block != fenced.blocks.rend(); ++block)
    if (trim(block->body).starts_with('{'))
      if (auto json = detail::read_json_answer(trim(block->body))) {
        json->words.insert(0, fenced.prose);
        return detail::answer_of_json(*json, options);
      }

  const auto tagged = detail::tagged_blocks(text);
  if (tagged.open_end) return detail::truncated_answer("A <code> or <kernel> tag has no end.", tagged.prose);
  if (auto found = detail::answer_of_blocks(tagged, options)) return *std::move(found);
  if (fenced.blocks.empty() && tagged.blocks.empty())
    if (auto found = detail::answer_of_whole_text(text, options)) return *std::move(found);
  return detail::answer_without_code(text, fenced, options);
}

MTMC_INLINE std::string join_continuation(std::string_view first, std::string_view rest) {
  auto joined = detail::plain_line_ends(first);
  const auto continuation = detail::plain_line_ends(rest);
  const auto stripped = detail::strip_reasoning(continuation);
  if (stripped.open) return joined;
  std::string_view more = stripped.text;
  if (const auto repeated = detail::repeated_bytes(joined, more); repeated > 0)
    return joined.append(more.substr(repeated));
  const auto before = detail::strip_reasoning(joined);
  const auto blocks = detail::fenced_blocks(before.text);
  // A Markdown block may go on with a block in it.
  const bool wraps =
      blocks.open_end && (blocks.blocks.back().tag == "markdown" || blocks.blocks.back().tag == "md");
  if (!blocks.open_end || wraps) return joined.append(more);

  const auto inside = detail::after_repeated_fence(more);
  // The open block as it stands in the text, without the line end that the reader adds.
  std::string_view body = blocks.blocks.back().body;
  if (body.empty() && !joined.ends_with('\n') && inside.size() < more.size()) {
    // Cut within the fence's line, which is there again.
    joined.resize(joined.rfind('\n') + 1);
    return joined.append(more);
  }
  if (!joined.ends_with('\n') && !body.empty()) body.remove_suffix(1);
  if (std::string_view(joined).ends_with(body) && detail::starts_over(body, inside)) {
    joined.resize(joined.size() - body.size());
    return joined.append(inside);
  }
  return joined.append(inside.substr(detail::repeated_bytes(joined, inside)));
}

} // namespace mtmc
