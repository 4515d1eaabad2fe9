#pragma once
/// Definitions of coder/prompt.hpp.

#include <mtmc/coder/example_library.hpp>
#include <mtmc/coder/module_rules.hpp>
#include <mtmc/coder/prompt.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/observation/tried_before.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// What a fence is called in an answer of this language.
[[nodiscard]] inline std::string_view fence_tag(const Language& language) {
  return language.syntax == Syntax::python ? std::string_view("python") : std::string_view(language.name);
}

/// A text between fences that it does not contain itself.
[[nodiscard]] inline std::string fenced(std::string_view tag, std::string_view text) {
  std::string fence = "```";
  while (text.find(fence) != std::string_view::npos) fence += '`';
  std::string result = fence + std::string(tag) + '\n' + std::string(text);
  if (!result.ends_with('\n')) result += '\n';
  return result + fence + '\n';
}

[[nodiscard]] inline std::string_view marker_of(const Language& language) {
  return language.syntax == Syntax::python ? "#@" : "//@";
}

[[nodiscard]] inline std::string readable_name(const Language& language) {
  if (language == languages::cpp) return "C++";
  if (language == languages::cuda) return "CUDA C++";
  if (language == languages::opencl) return "OpenCL C";
  if (is_module_language(language)) return "PyTorch and Triton";
  return language.name;
}

[[nodiscard]] inline std::string role_text(const CodingRequest& request) {
  const auto role = "You are an expert in performance engineering of compute kernels in " +
                    readable_name(request.seen.kernel.language) + ". ";
  if (request.action.kind == Action::Kind::free_text)
    return role +
           "You get one kernel and what is to be done with it, and you write the kernel with that done, "
           "and nothing else changed.\n";
  if (request.action.optimization == "rewriting")
    return role +
           "You get one kernel, what is known of its speed, and what the device could do, and you write a "
           "kernel for the same task that is as fast as you can make it.\n";
  return role + "You get one kernel and one optimization, and you write the kernel with exactly that "
                "optimization applied, and nothing else changed.\n";
}

[[nodiscard]] inline std::string rules_text(const Language& language, const Task& task) {
  if (is_module_language(language)) return module_rules_text();
  const std::string marker(marker_of(language));
  std::string text =
      "Rules:\n"
      "- The result must be the same for every size, also where a size is no multiple of a tile or a vector, "
      "and for all sizes of the task.\n"
      "- Keep names, parameters and meaning of the buffers. Do not lower the precision. Do not assume "
      "anything about the values.\n"
      "- Lines that begin with \"" +
      marker + "\" say how the kernel is launched and belong to it: `" + marker + " launch entry" +
      (language == languages::cpp ? "(arguments)`, or `"
                                  : "<<<grid, block[, dynamic shared bytes]>>>(arguments)`, or `") +
      marker +
      " scratch name: type[extents]` for memory between launches, with ` zero` behind the extents if every "
      "call "
      "shall find zeros there (counters and sums of blocks that meet). They may use the task's symbols, "
      "integers, "
      "+ - * / %, ceil_div, min, max, round_up, next_pow2. Change them where your kernel needs it; keep at "
      "least one launch.\n"
      "- The text is judged by a compiler, by many inputs with fresh values, and by a clock. There is no "
      "host "
      "code, no input or output, no memory between calls.\n";
  // Of eight answers to one task all added atomically, and none was told that it may not.
  if (language != languages::cpp && !task.atomics)
    text += "- Two calls on the same inputs give the same bits: combine partial results in a fixed order, "
            "without atomic operations on floating-point numbers.\n";
  if (language == languages::cuda)
    text +=
        "- Dimensions are expressions or (x, y, z). Dynamic shared memory is declared `extern __shared__`.\n";
  if (language == languages::cpp)
    text += "- It is compiled with -O3 for the processor it runs on, with OpenMP; no inline assembly, no "
            "threads of your own, no writable globals.\n";
  return text;
}

[[nodiscard]] inline std::string format_text(const Language& language, bool edits) {
  const std::string tag(fence_tag(language));
  if (edits)
    return "Answer with one or two sentences on what you change, then with edits of this form, each of which "
           "must match the kernel's text exactly and once:\n"
           "<<<<<<< SEARCH\nlines as they are\n=======\nlines as they shall be\n>>>>>>> REPLACE\n";
  const std::string whole = is_module_language(language) ? "the whole new module, "
                                                         : "the whole new kernel, launch lines included, ";
  return "Answer with one or two sentences on what you change, then with " + whole +
         "in one block that begins with ```" + tag +
         " and ends with ```. Leave nothing out, and give no second version.\n";
}

[[nodiscard]] inline std::string example_text(const Example& example) {
  const auto tag = fence_tag(example.language);
  return "Example of " + example.action + ".\nBefore:\n" + fenced(tag, example.before) + "After:\n" +
         fenced(tag, example.after) + "Why: " + example.why + '\n';
}

/// Lines `first` to `last` of a text, counted from 1.
[[nodiscard]] inline std::string lines_of(std::string_view source, int first, int last) {
  std::string text;
  for (int line = 1; !source.empty() && line <= last; ++line) {
    const auto end = source.find('\n');
    if (line >= first) text.append(source.substr(0, end)).push_back('\n');
    source = end == std::string_view::npos ? std::string_view{} : source.substr(end + 1);
  }
  return text;
}

[[nodiscard]] inline std::string region_text(const CodingRequest& request) {
  const auto& action = request.action;
  if (action.kind != Action::Kind::optimize || action.first_line <= 0) return {};
  std::string text = "# The region\nLine " + std::to_string(action.first_line) + " to " +
                     std::to_string(action.last_line) + " (" + action.label + "):\n" +
                     fenced(fence_tag(request.seen.kernel.language),
                            lines_of(request.seen.kernel.source, action.first_line, action.last_line));
  if (const auto* const region = request.seen.structure.find_region(action.region))
    text += "What is known of it: " + describe(*region) + '\n';
  return text;
}

[[nodiscard]] inline std::string action_text(const CodingRequest& request) {
  const auto& action = request.action;
  std::string text = "# What to do now\n";
  if (action.kind == Action::Kind::free_text) return text + action.free_text + '\n';
  text += "Apply: " + action.text() + ".\n";
  if (!request.intent.empty()) text += "What it is for: " + request.intent + '\n';
  if (!request.principle.empty()) text += "How it is done: " + request.principle + '\n';
  if (request.sample > 0)
    text +=
        "This is attempt " + std::to_string(request.sample + 1) +
        (action.optimization == "rewriting"
             ? ": take another way than would come to mind first (another algorithm, another division of the "
               "work).\n"
             : ": choose other parameters (tile sizes, factors, mapping) than would come to mind first.\n");
  return text;
}

/// A failed attempt and why, in at most so many diagnostics.
[[nodiscard]] inline std::string failure_text(const RepairContext& repair) {
  constexpr std::size_t max_diagnostics = 8;
  const auto& evaluation = repair.evaluation;
  std::string text = "# Your last attempt failed: " + std::string(to_string(evaluation.verdict)) + '\n' +
                     fenced(fence_tag(repair.kernel.language), repair.kernel.source);
  std::size_t shown = 0;
  for (const auto& diagnostic : evaluation.diagnostics) {
    if (diagnostic.severity != Severity::error && shown > 0) continue;
    if (++shown > max_diagnostics) break;
    text += "- ";
    if (diagnostic.line > 0) text += "line " + std::to_string(diagnostic.line) + ": ";
    text += diagnostic.message + '\n';
    if (!diagnostic.remedy.empty()) text += "  " + diagnostic.remedy + '\n';
  }
  return text + "Mend it, and keep the optimization.\n";
}

/// What was tried, divided into steps on other launches, of which the newest `most` are listed, and those on
/// the launches of the action, all of them, so that none is done again in other words.
[[nodiscard]] inline std::string tried_text(const CodingRequest& request, std::size_t most) {
  auto elsewhere = request.seen;
  std::string here;
  const auto functions = functions_of(request.action.region);
  std::erase_if(elsewhere.history, [&](const HistoryEntry& entry) {
    if (!is_about(entry, functions)) return false;
    here += "- " + describe(entry) + '\n';
    return true;
  });
  std::string text;
  if (!elsewhere.history.empty()) text = "# What was tried so far\n" + describe_history(elsewhere, most);
  if (here.empty()) return text;
  if (!text.empty()) text += '\n';
  return text + "# What was tried on this launch\n" + here +
         "What was not kept gained nothing, or failed: do something else, or the same in a way that avoids "
         "what is said there.\n";
}

/// A request without what differs from machine to machine: see `PromptOptions::plain`.
[[nodiscard]] inline CodingRequest plain_request(CodingRequest request) {
  request.seen.evaluation.reset();
  for (auto& entry : request.seen.history) {
    entry.speed_up.reset();
    entry.message.clear();
  }
  // What is wrong with an answer's form is the same everywhere. Compilers have their own words, and a wrong
  // result is told with values that no other run has.
  if (request.repair && request.repair->evaluation.rule != "answer")
    request.repair->evaluation.diagnostics.clear();
  return request;
}

[[nodiscard]] inline Prompt common_prompt(const CodingRequest& request, const PromptOptions& options) {
  const auto& seen = request.seen;
  const auto& language = seen.kernel.language;
  const auto part = [](std::string_view id, std::string text, int drop = 0, bool system = false) {
    return PromptPart{std::string(id), std::move(text), system, drop};
  };
  Prompt prompt;
  prompt.parts = {
      part(prompt_part::role, role_text(request), 0, true),
      part(prompt_part::rules, rules_text(language, seen.task), 0, true),
      part(prompt_part::format, format_text(language, options.edits), 0, true),
      part(prompt_part::hardware, options.plain ? std::string() : "# Hardware\n" + describe(seen.device), 5),
      part(prompt_part::task, "# Task\n" + describe(seen.task)),
      part(prompt_part::history, tried_text(request, options.history), 3),
      part(prompt_part::kernel, "# The kernel\n" + fenced(fence_tag(language), seen.kernel.source)),
      part(prompt_part::speed, seen.evaluation ? "# Its speed\n" + describe_speed(seen) : std::string(), 4),
  };
  return prompt;
}

inline void insert_before(Prompt& prompt, std::string_view id, PromptPart part) {
  const auto at = std::find_if(prompt.parts.begin(), prompt.parts.end(),
                               [&](const PromptPart& one) { return one.id == id; });
  prompt.parts.insert(at, std::move(part));
}

} // namespace detail

MTMC_INLINE std::vector<std::string> Prompt::fit(std::size_t most) {
  std::vector<std::string> dropped;
  while (bytes() > most) {
    PromptPart* next = nullptr;
    for (auto& part : parts)
      if (part.drop > 0 && !part.text.empty() && (next == nullptr || part.drop <= next->drop)) next = &part;
    if (next == nullptr) break;
    dropped.push_back(next->id);
    next->text.clear();
  }
  return dropped;
}

MTMC_INLINE std::vector<ChatMessage> Prompt::messages() const {
  std::string system;
  std::string user;
  for (const auto& part : parts) {
    if (part.text.empty()) continue;
    auto& message = part.system ? system : user;
    if (!message.empty()) message += '\n';
    message += part.text;
  }
  std::vector<ChatMessage> result;
  if (!system.empty()) result.push_back({"system", std::move(system)});
  result.push_back({"user", std::move(user)});
  return result;
}

MTMC_INLINE std::string Prompt::text() const {
  std::string text;
  for (const auto& message : messages())
    text += "----- " + message.role + " -----\n" + message.content + '\n';
  return text;
}

MTMC_INLINE Prompt build_prompt(const CodingRequest& asked, std::span<const Example* const> examples,
                                const PromptOptions& options) {
  std::optional<CodingRequest> plain;
  if (options.plain) plain = detail::plain_request(asked);
  const auto& request = plain ? *plain : asked;
  auto prompt = detail::common_prompt(request, options);
  // The later ones are the first to be dropped.
  constexpr int first_to_go = 1;
  for (std::size_t i = 0; i < examples.size(); ++i)
    detail::insert_before(prompt, prompt_part::history,
                          {std::string(prompt_part::examples), detail::example_text(*examples[i]), false,
                           i == 0 ? first_to_go + 1 : first_to_go});
  const auto add = [&prompt](std::string_view id, std::string text) {
    prompt.parts.push_back({std::string(id), std::move(text), false, 0});
  };
  add(prompt_part::region, detail::region_text(request));
  add(prompt_part::action, detail::action_text(request));
  if (request.repair) add(prompt_part::failure, detail::failure_text(*request.repair));
  (void)prompt.fit(options.max_bytes);
  return prompt;
}

} // namespace mtmc
