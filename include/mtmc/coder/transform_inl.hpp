#pragma once
/// Definitions of coder/transform.hpp.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/threads/opencl_words.hpp>
#include <mtmc/coder/transform.hpp>
#include <mtmc/coder/transform/loop_variables.hpp>
#include <mtmc/coder/transform/table.hpp>
#include <mtmc/coder/transform/threads/number_names.hpp>
#include <mtmc/coder/transform/threads/opencl_text.hpp>
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

/// A kernel's tree in the way of writing that transformations know.
struct PreparedKernel {
  SyntaxNode tree{};
  std::optional<OpenClWords> words{}; ///< those of OpenCL C, which the tree says in the words of CUDA

  explicit PreparedKernel(const Kernel& kernel) : tree(parse(kernel.source)) {
    const bool opencl = kernel.language.name == languages::opencl.name;
    if (opencl) words.emplace(tree);
    declare_loop_variables(tree);
    if (opencl || kernel.language.name == languages::cuda.name) declare_thread_numbers(tree);
  }
  /// A word about threads that a macro hides, for which nothing can be done; empty: none.
  [[nodiscard]] std::string hidden_word() const { return words ? words->hidden_word() : std::string{}; }
};

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
    const detail::PreparedKernel prepared(kernel);
    if (const std::string word = prepared.hidden_word(); !word.empty())
      return detail::declined_draft("a macro hides the word " + word);
    const SyntaxNode& tree = prepared.tree;
    const KernelAnalysis analysis{tree, &request.seen.task};
    SyntaxNode changed = entry->apply(
        {request.seen.task, kernel, request.seen.device, action, tree, analysis, request.sample});
    if (prepared.words)
      changed = detail::OpenClWriter(std::move(changed), *prepared.words, request.seen.task).write();
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

MTMC_INLINE std::vector<Action> TransformCoder::feasible_actions(const CodingRequest& about,
                                                                 std::vector<Action> actions) const {
  const Kernel& kernel = about.seen.kernel;
  if (kernel.language.syntax != Syntax::c_family) return actions;
  const detail::PreparedKernel prepared(kernel);
  if (!prepared.hidden_word().empty()) return {Action::stop()};
  const SyntaxNode& tree = prepared.tree;
  const KernelAnalysis analysis{tree, &about.seen.task};
  std::erase_if(actions, [&](const Action& action) {
    if (action.kind != Action::Kind::optimize) return action.kind != Action::Kind::stop;
    const TransformationEntry* const entry =
        detail::find_transformation(*transformations_, action.optimization, kernel.language);
    if (entry == nullptr) return true;
    try {
      SyntaxNode changed =
          entry->apply({about.seen.task, kernel, about.seen.device, action, tree, analysis, 0});
      if (prepared.words)
        changed = detail::OpenClWriter(std::move(changed), *prepared.words, about.seen.task).write();
      return print(changed) == kernel.source;
    } catch (const TransformDeclined&) {
      return true;
    } catch (const Error& error) {
      if (error.id() != error_id::launch_malformed) throw;
      return true;
    }
  });
  return actions;
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
