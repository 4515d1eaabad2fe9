#pragma once
/// Definitions of coder/example_library.hpp.

#include <mtmc/coder/example_library.hpp>
#include <mtmc/coder/examples/finishing.hpp>
#include <mtmc/coder/examples/fission.hpp>
#include <mtmc/coder/examples/fusion.hpp>
#include <mtmc/coder/examples/hoisting.hpp>
#include <mtmc/coder/examples/online.hpp>
#include <mtmc/coder/examples/packing.hpp>
#include <mtmc/coder/examples/parallelization.hpp>
#include <mtmc/coder/examples/persistence.hpp>
#include <mtmc/coder/examples/pipeline.hpp>
#include <mtmc/coder/examples/recomputation.hpp>
#include <mtmc/coder/examples/reordering.hpp>
#include <mtmc/coder/examples/retention.hpp>
#include <mtmc/coder/examples/rewriting.hpp>
#include <mtmc/coder/examples/scalar_replacement.hpp>
#include <mtmc/coder/examples/scanning.hpp>
#include <mtmc/coder/examples/splitting.hpp>
#include <mtmc/coder/examples/strength_reduction.hpp>
#include <mtmc/coder/examples/tiling.hpp>
#include <mtmc/coder/examples/unrolling.hpp>
#include <mtmc/coder/examples/vectorization.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json_fields.hpp>
#include <mtmc/core/task_parts.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/nearest_name.hpp>
#include <mtmc/support/readable_bytes.hpp>
#include <mtmc/support/text.hpp>

#include <tinyxml2.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

[[nodiscard]] inline Error example_error(std::string_view what, std::string_view remedy,
                                         std::string_view place) {
  return {error_id::coder_examples, what, remedy, place};
}

/// "library.xml, line 12".
[[nodiscard]] inline std::string line_of(std::string_view file, int line) {
  return std::string(file) + ", line " + std::to_string(line);
}

/// What an example's `task` says; nothing if it is no JSON object.
[[nodiscard]] inline std::optional<Json> parse_example_task(const Example& example) {
  auto document = parse_text(example.task, false);
  if (!document.is_object()) return std::nullopt;
  return document;
}

/// What is wrong with an example, wherever it came from; empty if nothing.
[[nodiscard]] inline std::string example_fault(const Example& example) {
  if (example.optimization.empty()) return "the example names no optimisation type";
  if (example.language.name.empty()) return "the example names no language";
  if (example.before.empty()) return "the example has no kernel before the step";
  if (example.after.empty()) return "the example has no kernel after the step";
  if (example.before == example.after) return "the example's kernels are the same";
  if (!example.task.empty() && !parse_example_task(example)) return "the example's task is not a JSON object";
  for (const auto* text : {&example.optimization, &example.language.name, &example.title, &example.action,
                           &example.before, &example.after, &example.why})
    if (find_malformed_utf8(*text) != std::string_view::npos) return "the example's text is not UTF-8";
  return {};
}
inline constexpr std::string_view example_remedy =
    "An example needs an optimisation type, a language, two different kernels, `before` and `after`, and, if "
    "it has a task, a JSON object with `arguments` and `sizes`";

/// An unknown attribute or element, with what was probably meant.
[[nodiscard]] inline Error unknown_example_part(std::string_view kind, std::string_view name,
                                                std::span<const std::string_view> known,
                                                std::string_view place) {
  return example_error("unknown " + std::string(kind) + " \"" + std::string(name) + '"',
                       known_names(name, known, "There are: "), place);
}

/// The text within an element, of all its pieces: a kernel that contains the end of a CDATA section stands in
/// two. Anything else in it is refused.
[[nodiscard]] inline std::string text_within(const tinyxml2::XMLElement& element, std::string_view file) {
  const std::string_view name = element.Name();
  std::string text;
  if (const auto* attribute = element.FirstAttribute(); attribute != nullptr)
    throw example_error("<" + std::string(name) + "> has the unknown attribute \"" + attribute->Name() + '"',
                        "Remove it", line_of(file, attribute->GetLineNum()));
  for (const auto* node = element.FirstChild(); node != nullptr; node = node->NextSibling()) {
    if (const auto* piece = node->ToText(); piece != nullptr) {
      // Blanks between two sections are no part of a kernel.
      if (piece->CData() || !trim(piece->Value()).empty()) text += piece->Value();
    } else if (node->ToComment() == nullptr) {
      throw example_error("<" + std::string(name) + "> holds more than text",
                          "Put a text with `<` or `&` in it into <![CDATA[...]]>",
                          line_of(file, node->GetLineNum()));
    }
  }
  return text;
}

/// A kernel as it stands in a file, without the line end behind the opening mark.
[[nodiscard]] inline std::string kernel_within(const tinyxml2::XMLElement& element, std::string_view file) {
  auto text = normalize_text(text_within(element, file));
  if (text.starts_with('\n')) text.erase(0, 1);
  return text;
}

[[nodiscard]] inline Language example_language(const std::string& name, std::string_view syntax,
                                               const std::string& place) {
  Language language;
  try {
    language = language_named(name);
  } catch (const Error& error) {
    throw example_error(error.message(), error.remedy(), place);
  }
  if (syntax.empty()) return language;
  const auto stated = parse_enum<Syntax>(syntax);
  if (!stated)
    throw example_error("\"" + std::string(syntax) + "\" is not a syntax",
                        "Write \"c_family\" or \"python\", or leave it out", place);
  const std::array known{languages::cpp, languages::cuda, languages::opencl, languages::triton,
                         languages::pytorch};
  if (language.syntax != *stated && std::find(known.begin(), known.end(), language) != known.end())
    throw example_error("\"" + name + "\" has another syntax", "Leave out `syntax`", place);
  language.syntax = *stated;
  return language;
}

[[nodiscard]] inline Example read_example(const tinyxml2::XMLElement& element, std::string_view file) {
  constexpr std::array<std::string_view, 3> attributes{"optimization", "language", "syntax"};
  constexpr std::array<std::string_view, 6> elements{"title", "action", "why", "task", "before", "after"};
  Example example;
  std::string language;
  std::string syntax;
  for (const auto* attribute = element.FirstAttribute(); attribute != nullptr;
       attribute = attribute->Next()) {
    const std::string_view name = attribute->Name();
    if (name == "optimization")
      example.optimization = trim(attribute->Value());
    else if (name == "language")
      language = trim(attribute->Value());
    else if (name == "syntax")
      syntax = attribute->Value();
    else
      throw unknown_example_part("attribute", name, attributes, line_of(file, attribute->GetLineNum()));
  }
  example.language = example_language(language, syntax, line_of(file, element.GetLineNum()));

  std::vector<std::string_view> seen;
  for (const auto* node = element.FirstChild(); node != nullptr; node = node->NextSibling()) {
    const auto place = line_of(file, node->GetLineNum());
    const auto* part = node->ToElement();
    if (part == nullptr) {
      if (node->ToComment() != nullptr) continue;
      throw example_error("there is text between the parts of an example", "Put it into one of them", place);
    }
    const std::string_view name = part->Name();
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      throw example_error("the example has a second <" + std::string(name) + ">", "Leave one", place);
    seen.push_back(name);
    if (name == "title")
      example.title = trim(text_within(*part, file));
    else if (name == "action")
      example.action = trim(text_within(*part, file));
    else if (name == "why")
      example.why = trim(text_within(*part, file));
    else if (name == "task")
      example.task = trim(text_within(*part, file));
    else if (name == "before")
      example.before = kernel_within(*part, file);
    else if (name == "after")
      example.after = kernel_within(*part, file);
    else
      throw unknown_example_part("element", "<" + std::string(name) + ">", elements, place);
  }
  if (const auto fault = example_fault(example); !fault.empty())
    throw example_error(fault, example_remedy, line_of(file, element.GetLineNum()));
  return example;
}

/// The examples of a file's text. `file` is its name for messages.
[[nodiscard]] inline std::vector<Example> read_examples(std::string_view text, std::string_view file) {
  if (static_cast<std::int64_t>(text.size()) > largest_example_file)
    throw example_error("the file is larger than " +
                            readable_bytes(static_cast<double>(largest_example_file)),
                        "Divide it, and leave in it what a prompt can hold", file);
  if (text.find('\0') != std::string_view::npos)
    throw example_error("the file is not UTF-8 text", "Save it as UTF-8", file);
  tinyxml2::XMLDocument document;
  if (document.Parse(text.data(), text.size()) != tinyxml2::XML_SUCCESS)
    throw example_error(std::string("the file is not XML: ") + document.ErrorName(),
                        "Close every element, and put kernels into <![CDATA[...]]>",
                        line_of(file, document.ErrorLineNum()));
  std::vector<Example> examples;
  const auto* const root = document.RootElement();
  for (const auto* node = document.FirstChild(); node != nullptr; node = node->NextSibling())
    if (node != root && node->ToDeclaration() == nullptr && node->ToComment() == nullptr)
      throw example_error("there is something besides <examples>, such as a document type",
                          "Remove it; entities of a file's own are not read",
                          line_of(file, node->GetLineNum()));
  if (root == nullptr || std::string_view(root->Name()) != "examples")
    throw example_error("the file's outermost element is not <examples>", "Put all examples into <examples>",
                        line_of(file, root == nullptr ? 1 : root->GetLineNum()));
  if (const auto* attribute = root->FirstAttribute(); attribute != nullptr)
    throw unknown_example_part("attribute", attribute->Name(), {}, line_of(file, attribute->GetLineNum()));
  for (const auto* node = root->FirstChild(); node != nullptr; node = node->NextSibling()) {
    if (node->ToComment() != nullptr) continue;
    const auto* const element = node->ToElement();
    if (element == nullptr || std::string_view(element->Name()) != "example")
      throw example_error("<examples> holds something else than <example>", "Remove or rename it",
                          line_of(file, node->GetLineNum()));
    examples.push_back(read_example(*element, file));
  }
  return examples;
}

/// The content of an example file, of which no more is read than may be there.
[[nodiscard]] inline std::string read_example_file(const std::string& path) {
  std::error_code failure;
  const auto bytes = std::filesystem::file_size(path, failure);
  if (failure)
    throw example_error("the file cannot be read: " + failure.message(),
                        "Check its permissions, and that it is a file", path);
  if (bytes > static_cast<std::uintmax_t>(largest_example_file))
    throw example_error("the file has " + readable_bytes(static_cast<double>(bytes)) + ", more than the " +
                            readable_bytes(static_cast<double>(largest_example_file)) + " that are read",
                        "Divide it, and leave in it what a prompt can hold", path);
  try {
    return read_file(path);
  } catch (const std::system_error& error) {
    throw example_error("the file cannot be read: " + error.code().message(), "Check its permissions", path);
  }
}

/// How gladly a language without examples of its own takes those of another: 0 = at once, 3 = never.
[[nodiscard]] inline int borrowing_rank(const Language& borrower, const Language& owner) {
  const auto alone = [](const Language& language) {
    return language.name == languages::cpp.name || language.name == languages::pytorch.name;
  };
  // A module in PyTorch becomes one with Triton kernels.
  if (borrower.name == languages::pytorch.name) return owner.name == languages::triton.name ? 0 : 3;
  if (borrower.syntax != owner.syntax || alone(borrower) || alone(owner)) return 3;
  if (owner.name == languages::cuda.name || owner.name == languages::triton.name) return 0;
  return owner.name == languages::opencl.name ? 1 : 2;
}

} // namespace detail

MTMC_INLINE std::string task_text(const Example& example) {
  auto document = detail::parse_example_task(example);
  if (!document)
    throw detail::example_error(example.task.empty() ? "the example has no task"
                                                     : "the example's task is not a JSON object",
                                "Give it `arguments` and `sizes`, as a task file has them",
                                example.optimization + ", " + example.language.name);
  (*document)["name"] = example.optimization + "_" + example.language.name;
  (*document)["summary"] = example.title;
  (*document)["kernel"] = {
      {"language",
       {{"name", example.language.name}, {"syntax", std::string(to_string(example.language.syntax))}}},
      {"source", example.before}};
  return document->dump();
}

MTMC_INLINE ExampleLibrary ExampleLibrary::built_in() {
  struct BuiltIn {
    std::string_view place;
    std::string_view xml;
  };
  constexpr BuiltIn documents[] = {
      {"built-in examples of tiling", detail::tiling_examples},
      {"built-in examples of fusion", detail::fusion_examples},
      {"built-in examples of pipeline", detail::pipeline_examples},
      {"built-in examples of reordering", detail::reordering_examples},
      {"built-in examples of unrolling", detail::unrolling_examples},
      {"built-in examples of vectorization", detail::vectorization_examples},
      {"built-in examples of parallelization", detail::parallelization_examples},
      {"built-in examples of retention", detail::retention_examples},
      {"built-in examples of online algorithms", detail::online_examples},
      {"built-in examples of scanning", detail::scanning_examples},
      {"built-in examples of splitting", detail::splitting_examples},
      {"built-in examples of strength reduction", detail::strength_reduction_examples},
      {"built-in examples of packing", detail::packing_examples},
      {"built-in examples of hoisting", detail::hoisting_examples},
      {"built-in examples of scalar replacement", detail::scalar_replacement_examples},
      {"built-in examples of fission", detail::fission_examples},
      {"built-in examples of recomputation", detail::recomputation_examples},
      {"built-in examples of persistent blocks", detail::persistence_examples},
      {"built-in examples of finishing", detail::finishing_examples},
      {"built-in examples of rewriting", detail::rewriting_examples}};
  ExampleLibrary library;
  for (const auto& document : documents)
    for (auto& example : detail::read_examples(document.xml, document.place))
      library.examples_.push_back(std::move(example));
  return library;
}

MTMC_INLINE ExampleLibrary ExampleLibrary::from_folder(const std::string& path) {
  ExampleLibrary library;
  library.add_folder(path);
  return library;
}

MTMC_INLINE void ExampleLibrary::add_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  std::vector<std::string> files;
  for (fs::directory_iterator entry{path, failure}, end; !failure && entry != end; entry.increment(failure))
    if (auto file = entry->path().string(); file.ends_with(".xml")) files.push_back(std::move(file));
  if (failure)
    throw detail::example_error("the folder cannot be listed: " + failure.message(),
                                "Check that it is a folder and may be read", path);
  if (files.empty())
    throw detail::example_error("the folder holds no example file (*.xml)",
                                "Name a folder with files of examples", path);
  std::sort(files.begin(), files.end());
  std::vector<Example> read;
  for (const auto& file : files)
    for (auto& example : detail::read_examples(detail::read_example_file(file), file))
      read.push_back(std::move(example));
  put_first(std::move(read));
}

MTMC_INLINE void ExampleLibrary::add_text(std::string_view xml, std::string_view place) {
  put_first(detail::read_examples(xml, place));
}

MTMC_INLINE void ExampleLibrary::add(Example example) {
  example.before = normalize_text(example.before);
  example.after = normalize_text(example.after);
  if (const auto fault = detail::example_fault(example); !fault.empty())
    throw detail::example_error(fault, detail::example_remedy, "example " + example.title);
  std::vector<Example> one;
  one.push_back(std::move(example));
  put_first(std::move(one));
}

MTMC_INLINE std::vector<const Example*>
ExampleLibrary::find(std::string_view optimization, const Language& language, std::size_t most) const& {
  std::vector<const Example*> own;
  std::vector<const Example*> others;
  for (const auto& example : examples_) {
    if (example.optimization != optimization) continue;
    if (example.language.name == language.name)
      own.push_back(&example);
    else if (detail::borrowing_rank(language, example.language) < 3)
      others.push_back(&example);
  }
  std::stable_sort(others.begin(), others.end(), [&](const Example* a, const Example* b) {
    return detail::borrowing_rank(language, a->language) < detail::borrowing_rank(language, b->language);
  });
  auto& found = own.empty() ? others : own;
  if (found.size() > most) found.resize(most);
  return std::move(found);
}

MTMC_INLINE void ExampleLibrary::put_first(std::vector<Example> examples) {
  examples_.insert(examples_.begin(), std::make_move_iterator(examples.begin()),
                   std::make_move_iterator(examples.end()));
}

} // namespace mtmc
