#pragma once
/// Definitions of coder/transform.hpp.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/threads/opencl_words.hpp>
#include <mtmc/coder/transform.hpp>
#include <mtmc/coder/transform/loop_variables.hpp>
#include <mtmc/coder/transform/table.hpp>
#include <mtmc/coder/transform/threads/opencl_text.hpp>
#include <mtmc/coder/transform/threads/thread_numbers.hpp>
#include <mtmc/compiled.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

[[nodiscard]] inline const TransformationEntry*
find_transformation(const std::vector<TransformationEntry>& table, std::string_view optimization,
                    const Language& language) noexcept {
  for (const auto& entry : table)
    if (entry.optimization == optimization && (entry.language.empty() || entry.language == language.name))
      return &entry;
  return nullptr;
}

[[nodiscard]] inline Draft declined_draft(const std::string& reason) {
  return Draft::failed(DraftFailure::declined, reason);
}

} // namespace detail

MTMC_INLINE TransformCoder::TransformCoder() : TransformCoder(default_transformations()) {}

MTMC_INLINE TransformCoder::TransformCoder(std::vector<TransformationEntry> transformations)
    : transformations_(std::make_shared<const std::vector<TransformationEntry>>(std::move(transformations))) {
}

MTMC_INLINE Draft TransformCoder::implement(const CodingRequest& request, std::stop_token stop) const {
  if (stop.stop_requested()) return Draft::failed(DraftFailure::cancelled, "stopped before it began");
  const Action& action = request.action;
  const Kernel& kernel = request.seen.kernel;
  if (action.kind != Action::Kind::optimize)
    return detail::declined_draft(
        "it carries out optimisations of regions only, not " +
        (action.kind == Action::Kind::stop ? std::string("stop") : std::string("free text")));
  if (request.repair)
    return detail::declined_draft("it cannot mend a kernel that failed; another sample is another variant");
  if (kernel.language.syntax != Syntax::c_family)
    return detail::declined_draft("it does not know the language " + kernel.language.name);
  const TransformationEntry* const entry =
      detail::find_transformation(*transformations_, action.optimization, kernel.language);
  if (entry == nullptr)
    return detail::declined_draft("it has no transformation for \"" + action.optimization + "\" in " +
                                  kernel.language.name);
  try {
    SyntaxNode tree = parse(kernel.source);
    std::optional<detail::OpenClWords> words;
    if (kernel.language.name == languages::opencl.name) words.emplace(tree);
    if (words && !words->hidden_word().empty())
      return detail::declined_draft("a macro hides the word " + words->hidden_word());
    declare_loop_variables(tree);
    if (!entry->language.empty())
      detail::separate_thread_numbers(tree, action.region.substr(0, action.region.find('/')));
    const KernelAnalysis analysis{tree, &request.seen.task};
    SyntaxNode changed = entry->apply(
        {request.seen.task, kernel, request.seen.device, action, tree, analysis, request.sample});
    if (words) changed = detail::OpenClWriter(std::move(changed), *words, request.seen.task).write();
    Kernel result{kernel.language, print(changed)};
    if (result.id() == kernel.id())
      return Draft::failed(DraftFailure::unchanged, action.text() + " changes nothing");
    Draft draft;
    draft.kernel = std::move(result);
    draft.message = action.text();
    if (request.sample > 0) draft.message += ", variant " + std::to_string(request.sample);
    return draft;
  } catch (const TransformDeclined& reason) {
    return detail::declined_draft(reason.what());
  } catch (const Error& error) {
    if (error.id() != error_id::launch_malformed) throw;
    return detail::declined_draft("the kernel's launch lines cannot be read: " + error.message());
  }
}

MTMC_INLINE bool TransformCoder::writes(std::string_view optimization, const Language& language) const {
  return language.syntax == Syntax::c_family &&
         detail::find_transformation(*transformations_, optimization, language) != nullptr;
}

MTMC_INLINE std::string TransformCoder::identity() const {
  std::string text = "transform 3:";
  for (const auto& entry : *transformations_)
    text += ' ' + entry.optimization + (entry.language.empty() ? "" : '@' + entry.language);
  return text;
}

} // namespace mtmc
