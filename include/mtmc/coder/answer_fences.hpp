#pragma once
/// The blocks of an answer: fenced ones, and those in `<code>` or `<kernel>` tags.

#include <mtmc/coder/answer_text.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A block of an answer.
struct AnswerBlock {
  /// First word of the info string, lower case: "cuda", "c++"; empty = none.
  std::string tag{};
  /// The file that the info string names.
  std::string path{};
  /// Without the fence's indentation.
  std::string body{};
  bool closed = false;
  /// Where in the prose the words between the block before and this one begin and end.
  std::size_t words_begin = 0;
  std::size_t words_end = 0;
};

/// An answer taken apart.
struct BlockedAnswer {
  std::vector<AnswerBlock> blocks{};
  /// All that stands outside of blocks.
  std::string prose{};
  /// The last block has no end.
  bool open_end = false;
};

/// A line that opens or closes a block.
struct FenceLine {
  char mark = '`';
  std::size_t length = 0;
  std::size_t indent = 0;
  std::string_view info{};
};

/// Columns of blanks at the start; a tab counts as 4.
[[nodiscard]] inline std::size_t indent_of(std::string_view line) noexcept {
  std::size_t columns = 0;
  for (const char c : line) {
    if (c != ' ' && c != '\t') break;
    columns += c == '\t' ? 4 : 1;
  }
  return columns;
}

[[nodiscard]] inline std::string_view without_indent(std::string_view line, std::size_t columns) noexcept {
  while (columns > 0 && !line.empty() && (line.front() == ' ' || line.front() == '\t')) {
    columns -= std::min<std::size_t>(columns, line.front() == '\t' ? 4 : 1);
    line.remove_prefix(1);
  }
  return line;
}

/// The line as a fence of three marks or more, whatever its indentation.
[[nodiscard]] inline std::optional<FenceLine> read_fence(std::string_view line) {
  FenceLine fence;
  fence.indent = indent_of(line);
  line = trim(line);
  if (line.size() < 3 || (line[0] != '`' && line[0] != '~')) return std::nullopt;
  fence.mark = line[0];
  fence.length = std::min(line.find_first_not_of(fence.mark), line.size());
  if (fence.length < 3) return std::nullopt;
  fence.info = trim(line.substr(fence.length));
  // Code within a line: ```like this```.
  if (fence.mark == '`' && fence.info.find('`') != std::string_view::npos) return std::nullopt;
  return fence;
}

/// The text of a list item on the line that starts it, and its column.
struct ListItem {
  std::size_t column = 0;
  std::string_view text{};
};

[[nodiscard]] inline std::optional<ListItem> read_list_item(std::string_view line) {
  const std::size_t indent = indent_of(line);
  const auto rest = without_indent(line, indent);
  std::size_t mark = 0;
  while (mark < rest.size() && mark < 9 && rest[mark] >= '0' && rest[mark] <= '9') ++mark;
  const bool numbered = mark > 0 && mark < rest.size() && (rest[mark] == '.' || rest[mark] == ')');
  const bool dotted = mark == 0 && !rest.empty() && (rest[0] == '-' || rest[0] == '*' || rest[0] == '+');
  if (!numbered && !dotted) return std::nullopt;
  ++mark;
  if (mark >= rest.size() || rest[mark] != ' ') return std::nullopt;
  return ListItem{indent + mark + std::min<std::size_t>(4, indent_of(rest.substr(mark))),
                  trim(rest.substr(mark))};
}

/// Splits an info string into tag and path: `cpp`, `c++ title="gemm.cpp"`, `cuda:src/gemm.cu`, `{.cpp}`.
inline void read_info(std::string_view info, AnswerBlock& block) {
  std::string word = lower_text(info.substr(0, info.find_first_of(" \t")));
  while (!word.empty() && (word.front() == '{' || word.front() == '.')) word.erase(0, 1);
  for (const std::string_view prefix : {"language-", "lang-"})
    if (word.starts_with(prefix)) word.erase(0, prefix.size());
  const auto end = word.find_first_of(":,{}=");
  block.tag = word.substr(0, end);
  for (const std::string_view key : {"title=", "file=", "filename=", ":"})
    if (const auto at = info.find(key); at != std::string_view::npos && block.path.empty()) {
      auto path = info.substr(at + key.size());
      path = path.substr(0, path.find_first_of(" \t}"));
      while (!path.empty() && (path.front() == '"' || path.front() == '\'')) path.remove_prefix(1);
      while (!path.empty() && (path.back() == '"' || path.back() == '\'')) path.remove_suffix(1);
      block.path = path;
    }
  // A file's name in place of the language.
  if (const auto dot = block.tag.rfind('.'); dot != std::string::npos) {
    if (block.path.empty()) block.path = block.tag;
    block.tag = block.tag.substr(dot + 1);
  }
}

/// Whether a block without a tag is a diff all the same: its heads are there.
[[nodiscard]] inline bool reads_as_diff(std::string_view body) {
  bool old_file = false;
  for (const auto line : answer_lines(body)) {
    if (line.starts_with("@@ ") || (old_file && line.starts_with("+++ "))) return true;
    old_file = line.starts_with("--- ");
  }
  return false;
}

/// What a tag says of a block.
enum class TagFit { foreign, neutral, matching };

[[nodiscard]] inline bool is_c_tag(std::string_view tag) {
  return tag == "c" || tag == "h" || tag == "hpp" || tag == "cc" || tag == "cxx" || tag.starts_with("cpp") ||
         tag.starts_with("c++");
}

[[nodiscard]] inline TagFit fit_of_tag(std::string_view tag, const Language& language) {
  constexpr auto silent =
      std::to_array<std::string_view>({"", "text", "txt", "plaintext", "plain", "code", "kernel"});
  constexpr auto python =
      std::to_array<std::string_view>({"python", "python3", "py", "triton", "pytorch", "torch"});
  constexpr auto others = std::to_array<std::string_view>({"diff",         "patch",      "bash",
                                                           "sh",           "shell",      "zsh",
                                                           "console",      "terminal",   "shell-session",
                                                           "shellsession", "powershell", "ps1",
                                                           "bat",          "cmd",        "json",
                                                           "json5",        "jsonc",      "yaml",
                                                           "yml",          "toml",       "xml",
                                                           "html",         "css",        "markdown",
                                                           "md",           "mdx",        "output",
                                                           "log",          "stdout",     "stderr",
                                                           "ini",          "cfg",        "cmake",
                                                           "make",         "makefile",   "dockerfile",
                                                           "ptx",          "sass",       "asm",
                                                           "nasm",         "assembly",   "llvm",
                                                           "mlir",         "mermaid",    "latex",
                                                           "tex",          "math",       "sql",
                                                           "csv",          "rust",       "go",
                                                           "java",         "javascript", "js",
                                                           "typescript",   "ts",         "julia",
                                                           "fortran",      "f90",        "matlab",
                                                           "metal",        "hlsl",       "glsl",
                                                           "wgsl",         "hip",        "sycl",
                                                           "ruby",         "r",          "swift",
                                                           "kotlin",       "csharp",     "cs",
                                                           "lua",          "perl",       "objc",
                                                           "pseudocode",   "pseudo"});
  const auto listed = [tag](const auto& list) {
    return std::find(list.begin(), list.end(), tag) != list.end();
  };
  if (listed(silent)) return TagFit::neutral;
  const bool is_cuda = tag.starts_with("cuda") || tag == "cu" || tag == "cuh";
  const bool is_opencl = tag.starts_with("opencl") || tag == "cl" || tag == "ocl" || tag == "clc";
  if (tag == lower_text(language.name)) return TagFit::matching;
  if (language.syntax == Syntax::python) {
    if (listed(python)) return TagFit::matching;
    return listed(others) || is_c_tag(tag) || is_cuda || is_opencl ? TagFit::foreign : TagFit::neutral;
  }
  if (is_c_tag(tag)) return TagFit::matching;
  if (is_cuda) return language.name == "cuda" ? TagFit::matching : TagFit::foreign;
  if (is_opencl) return language.name == "opencl" ? TagFit::matching : TagFit::foreign;
  return listed(others) || listed(python) ? TagFit::foreign : TagFit::neutral;
}

/// Reads an answer line by line: what is open, and what a line does to it.
class FenceScanner {
public:
  [[nodiscard]] BlockedAnswer run(std::string_view text) {
    const auto lines = answer_lines(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto fence = read_fence(lines[i]);
      if (open_)
        inside(lines[i], fence);
      else
        outside(lines, i, fence);
    }
    result_.open_end = open_.has_value();
    if (open_) finish(false);
    return std::move(result_);
  }

private:
  void inside(std::string_view line, const std::optional<FenceLine>& fence) {
    const bool fits = fence && fence->mark == open_->mark && fence->length >= open_->length &&
                      fence->indent <= open_->indent + 3;
    if (fits && fence->info.empty()) {
      finish(true);
    } else if (fits && opens_code(fence->info)) {
      // The end of the block before was forgotten: that block is not whole.
      finish(false);
      begin(*fence);
    } else {
      block_.body.append(without_indent(line, open_->indent)) += '\n';
    }
  }

  void outside(const std::vector<std::string_view>& lines, std::size_t at,
               const std::optional<FenceLine>& found) {
    auto fence = found;
    if (const auto item = read_list_item(lines[at])) {
      list_text_ = item->column;
      if (auto inner = read_fence(item->text)) {
        inner->indent = item->column;
        fence = inner;
      }
    } else if (!trim(lines[at]).empty()) {
      list_text_ = std::min(list_text_, indent_of(lines[at]));
    }
    if (!fence || fence->indent > list_text_ + 3) {
      result_.prose.append(lines[at]) += '\n';
      return;
    }
    if (fence->info.empty() && !wrappers_.empty() && wrappers_.back().mark == fence->mark &&
        fence->length >= wrappers_.back().length) {
      wrappers_.pop_back();
    } else if (wraps_blocks(lines, at, *fence)) {
      wrappers_.push_back(*fence);
    } else {
      begin(*fence);
    }
  }

  /// A whole answer in a Markdown block, with blocks of its own.
  [[nodiscard]] static bool wraps_blocks(const std::vector<std::string_view>& lines, std::size_t at,
                                         const FenceLine& fence) {
    AnswerBlock block;
    read_info(fence.info, block);
    if (block.tag != "markdown" && block.tag != "md") return false;
    for (++at; at < lines.size(); ++at)
      if (const auto next = read_fence(lines[at])) return !next->info.empty();
    return false;
  }

  [[nodiscard]] static bool opens_code(std::string_view info) {
    AnswerBlock block;
    read_info(info, block);
    return fit_of_tag(block.tag, languages::cuda) == TagFit::matching ||
           fit_of_tag(block.tag, languages::opencl) == TagFit::matching ||
           fit_of_tag(block.tag, languages::triton) == TagFit::matching;
  }

  void begin(const FenceLine& fence) {
    open_ = fence;
    block_ = {};
    block_.words_begin = words_begin_;
    block_.words_end = result_.prose.size();
    read_info(fence.info, block_);
  }

  void finish(bool closed) {
    block_.closed = closed;
    words_begin_ = result_.prose.size();
    result_.blocks.push_back(std::move(block_));
    open_.reset();
  }

  BlockedAnswer result_;
  std::optional<FenceLine> open_;
  AnswerBlock block_;
  std::vector<FenceLine> wrappers_;
  std::size_t list_text_ = 0;
  std::size_t words_begin_ = 0;
};

/// The fenced blocks of an answer: fences of three or more backticks or tildes, at most 3 columns deeper than
/// the text round them, closed by as many of the same mark with nothing else on the line.
[[nodiscard]] inline BlockedAnswer fenced_blocks(std::string_view text) { return FenceScanner{}.run(text); }

/// What stands in `<code ...>` and `<kernel ...>` tags.
[[nodiscard]] inline BlockedAnswer tagged_blocks(std::string_view text) {
  constexpr auto names = std::to_array<std::string_view>({"code", "kernel"});
  BlockedAnswer result;
  std::size_t words = 0;
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const auto rest = text.substr(at + 1);
    const auto name = std::find_if(names.begin(), names.end(), [rest](std::string_view candidate) {
      return rest.starts_with(candidate) && rest.size() > candidate.size() &&
             (rest[candidate.size()] == '>' || rest[candidate.size()] == ' ');
    });
    if (name == names.end()) continue;
    const auto head = rest.substr(0, 200).find('>');
    if (head == std::string_view::npos) continue;
    result.prose += text.substr(words, at - words);
    AnswerBlock block;
    block.words_end = result.prose.size();
    const auto body = rest.substr(head + 1);
    const auto end = body.find("</" + std::string(*name) + '>');
    block.closed = end != std::string_view::npos;
    result.open_end = !block.closed;
    auto inner = trim(body.substr(0, end));
    if (inner.starts_with("<![CDATA[") && inner.ends_with("]]>"))
      inner = inner.substr(9, inner.size() - 12);
    else
      inner = body.substr(0, end);
    block.body = inner;
    result.blocks.push_back(std::move(block));
    if (result.open_end) return result;
    at += 1 + head + 1 + end + name->size() + 2;
    words = at + 1;
  }
  result.prose += text.substr(std::min(words, text.size()));
  return result;
}

} // namespace mtmc::detail
