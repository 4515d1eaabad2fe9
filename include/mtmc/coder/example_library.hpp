#pragma once
/// Examples of one optimisation step, before and after, for a coder's prompt (paper: in-context examples).

#include <mtmc/actions/action_space.hpp>
#include <mtmc/core/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One step of one optimisation type, shown on a kernel.
struct Example {
  /// Id of the optimisation type: "tiling".
  std::string optimization;
  /// Language of both kernels.
  Language language;
  /// What the kernel computes, in a few words.
  std::string title{};
  /// The action as a policy says it: "tiling the k loop of relax in line 8 to 14", lines of `before`.
  std::string action{};
  /// The kernel as it was and after that step, with their launch lines; normalised (`normalize_text`).
  std::string before{};
  /// The kernel after the step.
  std::string after{};
  /// What changed, why it is faster, and why it is still right, in two or three sentences.
  std::string why{};
  /// What it takes to judge the pair: the members `arguments`, `sizes`, ... of a task file, as a JSON object;
  /// of modules in Triton `constructor`, what they are made with, and `calls`, lists of the shapes of inputs.
  /// Empty = it cannot be judged.
  std::string task{};

  friend bool operator==(const Example&, const Example&) = default; ///< member by member
};

/// The JSON text of the task whose start kernel is `before`, which `parse_task` reads; `after` must be right
/// for it. Throws `Error` (`mtmc.coder.001`) if the example's `task` is empty or no JSON object.
[[nodiscard]] std::string task_text(const Example& example);

/// Largest example file, in bytes. All of a file's text may end up in prompts.
inline constexpr std::int64_t largest_example_file = std::int64_t{4} << 20;

/// Examples for every optimisation type and language there are some for.
///
/// A file is XML; a kernel stands in CDATA, so that nothing in it needs escaping:
///
///     <examples>
///       <example optimization="tiling" language="cuda">
///         <title>Potential of point charges</title>
///         <action>tiling the j loop of potential in line 8 to 12</action>
///         <why>A block brings 128 charges ...</why>
///         <task><![CDATA[{"arguments": [...], "sizes": [...]}]]></task>
///         <before><![CDATA[
///     __global__ void potential(...) { ... }
///     ]]></before>
///         <after><![CDATA[ ... ]]></after>
///       </example>
///     </examples>
///
/// `optimization`, `language`, `before` and `after` are required. A language that this library does not know
/// is the host's own, of C-like syntax unless `syntax="python"` says otherwise. Other attributes and
/// elements, a document type (and with it entities of its own) and larger files than `largest_example_file`
/// are refused.
class ExampleLibrary {
public:
  /// No examples.
  ExampleLibrary() = default;

  /// The library's own: each optimisation type of `ActionSpace::extended()` in C++ and in CUDA, the paper's
  /// four in Triton, some in OpenCL. Parses them at each call, which takes less than a millisecond.
  [[nodiscard]] static ExampleLibrary built_in();
  /// Only what the files of a folder hold. Throws as `add_folder`.
  [[nodiscard]] static ExampleLibrary from_folder(const std::string& path);

  /// Takes all `*.xml` of a folder, in the order of their names, and puts their examples before those that
  /// are there. On an `Error` (`mtmc.coder.001`, with file, line and what is wrong) nothing is added.
  void add_folder(const std::string& path);
  /// The same for the text of one file, which messages call `place`.
  void add_text(std::string_view xml, std::string_view place);
  /// Puts one example before those that are there. Throws `Error` (`mtmc.coder.001`) if it has no
  /// optimisation type, no language, or one of its kernels is empty.
  void add(Example example);

  /// At most `most` examples of an optimisation type for a language, what was added last first; empty if
  /// there are none.
  ///
  /// A language without any of that type borrows those of its syntax: from CUDA, then OpenCL, then
  /// others of C-like syntax; from Triton, then others of Python's. "cpp" neither lends nor borrows, since
  /// its texts have no grid of threads; "pytorch" lends nothing, and borrows from Triton alone.
  /// `Example::language` says whose it is. The pointers hold until the library is changed or ends.
  [[nodiscard]] std::vector<const Example*> find(std::string_view optimization, const Language& language,
                                                 std::size_t most = 1) const&;

  /// All examples, in the order in which `find` prefers them.
  [[nodiscard]] std::span<const Example> all() const& noexcept { return examples_; }

  /// Not of a library that ends with the statement.
  std::vector<const Example*> find(std::string_view, const Language&, std::size_t = 1) const&& = delete;
  std::span<const Example> all() const&& = delete;

private:
  /// Puts them, in their order, before those that are there.
  void put_first(std::vector<Example> examples);

  std::vector<Example> examples_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/coder/example_library_inl.hpp>
#endif
