#pragma once
/// Definitions of coder/transform.hpp.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/python/python_parser.hpp>
#include <mtmc/analysis/python/python_region_finder.hpp>
#include <mtmc/analysis/python/triton_kernels.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/threads/opencl_words.hpp>
#include <mtmc/analysis/threads/thread_language.hpp>
#include <mtmc/coder/transform.hpp>
#include <mtmc/coder/transform/loop_variables.hpp>
#include <mtmc/coder/transform/programs/table.hpp>
#include <mtmc/coder/transform/table.hpp>
#include <mtmc/coder/transform/threads/number_names.hpp>
#include <mtmc/coder/transform/threads/opencl_text.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <memory>
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
  if (language.syntax != Syntax::c_family) return nullptr;
  for (const auto& entry : table)
    if (entry.optimization == optimization && (entry.language.empty() || entry.language == language.name))
      return &entry;
  return nullptr;
}

[[nodiscard]] inline const ProgramTransformationEntry*
find_transformation(const std::vector<ProgramTransformationEntry>& table, std::string_view optimization,
                    const Language& language) noexcept {
  if (language.syntax != Syntax::python) return nullptr;
  for (const auto& entry : table)
    if (entry.optimization == optimization && entry.language == language.name) return &entry;
  return nullptr;
}

/// Whether texts in a language can be read at all: those of the C family, and those that a table names.
[[nodiscard]] inline bool knows(const std::vector<ProgramTransformationEntry>& table,
                                const Language& language) noexcept {
  return language.syntax == Syntax::c_family ||
         (language.syntax == Syntax::python &&
          std::any_of(table.begin(), table.end(),
                      [&](const auto& entry) { return entry.language == language.name; }));
}

/// A kernel's text behind a step, or why it is declined.
struct TransformOutcome {
  std::string source{};
  std::string declined{};
};

[[nodiscard]] inline Draft declined_draft(const std::string& reason) {
  return Draft::failed(DraftFailure::declined, reason);
}

/// A kernel in the way of writing that transformations know, and what they make of it.
class PreparedKernel {
public:
  /// `seen` must outlive it.
  explicit PreparedKernel(const Observation& seen) : seen_(seen), tree_(parse(seen.kernel.source)) {
    unusable_ = in_readable_lines([this] {
      if (seen_.kernel.language.name == languages::opencl.name) words_.emplace(tree_);
      declare_loop_variables(tree_);
      if (has_thread_grid(seen_.kernel.language)) declare_thread_numbers(tree_);
      analysis_.emplace(tree_, &seen_.task);
      const std::string hidden = words_ ? words_->hidden_word() : std::string{};
      if (!hidden.empty()) throw TransformDeclined("a macro hides the word " + hidden);
    });
  }
  PreparedKernel(const PreparedKernel&) = delete;
  PreparedKernel& operator=(const PreparedKernel&) = delete;

  /// Why nothing can be done for the kernel; empty: something may.
  [[nodiscard]] const std::string& unusable() const noexcept { return unusable_; }

  [[nodiscard]] TransformOutcome apply(const TransformationEntry& entry, const Action& action,
                                       int variant) const {
    TransformOutcome outcome;
    outcome.declined = in_readable_lines([&] {
      SyntaxNode changed =
          entry.apply({seen_.task, seen_.kernel, seen_.device, action, tree_, *analysis_, variant});
      if (words_) changed = OpenClWriter(std::move(changed), *words_, seen_.task).write();
      outcome.source = print(changed);
    });
    return outcome;
  }

private:
  /// Does something, and tells why it was declined; empty: it was not.
  template <class Work> [[nodiscard]] static std::string in_readable_lines(const Work& work) {
    try {
      work();
      return {};
    } catch (const TransformDeclined& reason) {
      return reason.what();
    } catch (const Error& error) {
      if (error.id() != error_id::launch_malformed) throw;
      return "the kernel's launch lines cannot be read: " + error.message();
    }
  }

  const Observation& seen_;
  SyntaxNode tree_;
  std::optional<OpenClWords> words_{}; ///< those of OpenCL C, which the tree says in the words of CUDA
  std::optional<KernelAnalysis> analysis_{};
  std::string unusable_{};
};

/// A text with Triton kernels, and what its transformations know of it.
class PreparedProgram {
public:
  /// `seen` must outlive it.
  explicit PreparedProgram(const Observation& seen)
      : seen_(seen), tree_(parse_python(seen.kernel.source)), triton_(triton_text(tree_, seen.kernel.source)),
        structure_(PythonRegionFinder{}.find(seen.task, seen.kernel)) {
    walk(tree_, [this](const SyntaxNode& node) {
      if (node.kind == NodeKind::opaque && unusable_.empty())
        unusable_ = "the text in line " + std::to_string(node.range.first_line) + " was not understood";
    });
  }
  PreparedProgram(const PreparedProgram&) = delete;
  PreparedProgram& operator=(const PreparedProgram&) = delete;

  /// Why nothing can be done for the text; empty: something may.
  [[nodiscard]] const std::string& unusable() const noexcept { return unusable_; }

  [[nodiscard]] TransformOutcome apply(const ProgramTransformationEntry& entry, const Action& action,
                                       int variant) const {
    try {
      return {.source = entry.apply(
                  {seen_.task, seen_.kernel, seen_.device, action, tree_, triton_, structure_, variant})};
    } catch (const TransformDeclined& reason) {
      return {.declined = reason.what()};
    }
  }

private:
  const Observation& seen_;
  SyntaxNode tree_;
  TritonText triton_;
  Structure structure_;
  std::string unusable_{};
};

/// What a kernel becomes by an entry of a table, or why it is declined.
template <class Prepared, class Entry>
[[nodiscard]] TransformOutcome transformed(const CodingRequest& request, const Entry& entry) {
  const Prepared prepared(request.seen);
  if (!prepared.unusable().empty()) return {.declined = prepared.unusable()};
  return prepared.apply(entry, request.action, request.sample);
}

/// The actions whose first variant changes the kernel, and `stop`.
template <class Prepared, class Entry>
[[nodiscard]] std::vector<Action> feasible_of(const std::vector<Entry>& table, const Observation& seen,
                                              std::vector<Action> actions) {
  const Prepared prepared(seen);
  if (!prepared.unusable().empty()) return {Action::stop()};
  std::erase_if(actions, [&](const Action& action) {
    if (action.kind != Action::Kind::optimize) return action.kind != Action::Kind::stop;
    const Entry* const entry = find_transformation(table, action.optimization, seen.kernel.language);
    if (entry == nullptr) return true;
    const auto outcome = prepared.apply(*entry, action, 0);
    return !outcome.declined.empty() || outcome.source == seen.kernel.source;
  });
  return actions;
}

} // namespace detail

MTMC_INLINE TransformCoder::TransformCoder()
    : TransformCoder(default_transformations(), default_program_transformations()) {}

MTMC_INLINE TransformCoder::TransformCoder(std::vector<TransformationEntry> transformations)
    : TransformCoder(std::move(transformations), {}) {}

MTMC_INLINE TransformCoder::TransformCoder(std::vector<TransformationEntry> transformations,
                                           std::vector<ProgramTransformationEntry> programs)
    : transformations_(std::make_shared<const std::vector<TransformationEntry>>(std::move(transformations))),
      programs_(std::make_shared<const std::vector<ProgramTransformationEntry>>(std::move(programs))) {}

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
  const auto* const entry =
      detail::find_transformation(*transformations_, action.optimization, kernel.language);
  const auto* const program = detail::find_transformation(*programs_, action.optimization, kernel.language);
  if (!detail::knows(*programs_, kernel.language))
    return detail::declined_draft("it does not know the language " + kernel.language.name);
  if (entry == nullptr && program == nullptr)
    return detail::declined_draft("it has no transformation for \"" + action.optimization + "\" in " +
                                  kernel.language.name);
  auto outcome = program != nullptr ? detail::transformed<detail::PreparedProgram>(request, *program)
                                    : detail::transformed<detail::PreparedKernel>(request, *entry);
  if (!outcome.declined.empty()) return detail::declined_draft(outcome.declined);
  Kernel result{kernel.language, std::move(outcome.source)};
  if (result.id() == kernel.id())
    return Draft::failed(DraftFailure::unchanged, action.text() + " changes nothing");
  Draft draft;
  draft.kernel = std::move(result);
  draft.message = action.text();
  if (request.sample > 0) draft.message += ", variant " + std::to_string(request.sample);
  return draft;
}

MTMC_INLINE std::vector<Action> TransformCoder::feasible_actions(const CodingRequest& about,
                                                                 std::vector<Action> actions) const {
  const Language& language = about.seen.kernel.language;
  if (!detail::knows(*programs_, language)) return actions;
  if (language.syntax == Syntax::python)
    return detail::feasible_of<detail::PreparedProgram>(*programs_, about.seen, std::move(actions));
  return detail::feasible_of<detail::PreparedKernel>(*transformations_, about.seen, std::move(actions));
}

MTMC_INLINE bool TransformCoder::writes(std::string_view optimization, const Language& language) const {
  return detail::find_transformation(*transformations_, optimization, language) != nullptr ||
         detail::find_transformation(*programs_, optimization, language) != nullptr;
}

MTMC_INLINE std::string TransformCoder::identity() const {
  std::string text = "transform 3:";
  for (const auto& entry : *transformations_)
    text += ' ' + entry.optimization + (entry.language.empty() ? "" : '@' + entry.language);
  for (const auto& entry : *programs_) text += ' ' + entry.optimization + '@' + entry.language;
  return text;
}

} // namespace mtmc
