#pragma once
/// A kernel's text as it stands in a launcher: nothing of it can be seen from outside, so that it clashes
/// with no function, type or template of the program that it is linked into.

#include <mtmc/backend/defined_functions.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The namespace of the kernel's text, within one without a name.
inline constexpr std::string_view launcher_kernel_namespace = "mtmc_kernel";

/// Takes a kernel's text apart into what stands in front of its namespace and what stands in it.
class LauncherKernel {
public:
  /// `entries`: the functions that launch lines name.
  LauncherKernel(std::string_view text, const std::set<std::string, std::less<>>& entries)
      : text_(text), tokens_(all_tokens(text)), heads_(tokens_), defined_(defined_functions(tokens_)),
        in_directive_(tokens_.size(), false) {
    read_directives();
    read_scopes(entries);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      read_linkage(i);
      read_qualification(i);
      const auto& token = tokens_[i];
      uses_openmp_ = uses_openmp_ ||
                     (token.kind == SourceToken::Kind::name && token.spelling.starts_with("omp_")) ||
                     (token.kind == SourceToken::Kind::text && token.spelling.starts_with("omp "));
    }
  }

  /// Whether the text has directives or calls of OpenMP.
  [[nodiscard]] bool uses_openmp() const noexcept { return uses_openmp_; }

  /// For the file's own scope: the directives that include headers, under the conditions that the text has
  /// for them. No name that they define is left behind.
  [[nodiscard]] const std::string& includes() const noexcept { return includes_; }

  /// Both namespaces with the text in them.
  [[nodiscard]] std::string namespaces() const {
    std::string text = "namespace {\n";
    // A function in a namespace hides the libraries' functions of its name, which it overloaded where the
    // kernel was judged.
    if (!overloads_.empty() && !includes_.empty()) {
      text += "struct mtmc_nothing;\n";
      for (const auto& name : overloads_) text += "void " + name + "(mtmc_nothing);\n";
    }
    text.append("namespace ").append(launcher_kernel_namespace).append(" {\n");
    if (!includes_.empty())
      for (const auto& name : overloads_) text += "using ::" + name + ";\n";
    text += edited();
    if (text.back() != '\n') text += '\n';
    return text.append("} // namespace ").append(launcher_kernel_namespace).append("\n} // namespace\n");
  }

private:
  struct Edit {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string_view spelling;
  };

  [[nodiscard]] bool token_is(std::size_t i, std::string_view spelling) const {
    return i < tokens_.size() && tokens_[i].is(spelling);
  }
  [[nodiscard]] std::string_view between(std::size_t first, std::size_t last) const {
    return text_.substr(tokens_[first].begin, tokens_[last].end - tokens_[first].begin);
  }

  // What a directive is called; empty where none begins.
  [[nodiscard]] std::string_view directive_at(std::size_t i) const {
    if (!tokens_[i].starts_line || !tokens_[i].is("#")) return {};
    return i + 1 < tokens_.size() && !tokens_[i + 1].starts_line ? std::string_view(tokens_[i + 1].spelling)
                                                                 : std::string_view{};
  }

  // Headers belong to the file's scope. The conditions round them and what those ask for come along, up to
  // the last header; the text then finds everything as it was.
  void read_directives() {
    std::string pending, undefined;
    int depth = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const auto kind = directive_at(i);
      if (kind.empty()) continue;
      auto last = i + 1;
      while (last + 1 < tokens_.size() && !tokens_[last + 1].starts_line) ++last;
      std::fill(in_directive_.begin() + static_cast<std::ptrdiff_t>(i),
                in_directive_.begin() + static_cast<std::ptrdiff_t>(last) + 1, true);
      if (kind == "pragma") {
        uses_openmp_ = uses_openmp_ || token_is(i + 2, "omp");
        if (token_is(i + 2, "once")) edits_.push_back({tokens_[i].begin, tokens_[last].end, ""});
        continue;
      }
      if (kind != "error" && kind != "warning" && kind != "line")
        pending.append(between(i, last)).append("\n");
      if (kind == "define" && i + 2 <= last) undefined += "#undef " + tokens_[i + 2].spelling + '\n';
      if (kind.starts_with("if")) ++depth;
      if (kind == "endif") --depth;
      if (kind != "include") continue;
      edits_.push_back({tokens_[i].begin, tokens_[last].end, ""});
      includes_ += std::exchange(pending, {});
      open_ = depth;
      undefined_ = undefined;
    }
    for (; open_ > 0; --open_) includes_ += "#endif\n";
    includes_ += undefined_;
  }

  // Which functions other than entries are defined at the scope of the file.
  void read_scopes(const std::set<std::string, std::less<>>& entries) {
    std::vector<bool> braces; // whether each open one is a block of a linkage, which is no scope
    std::size_t scopes = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].is("{")) {
        const bool linkage =
            i >= 2 && tokens_[i - 1].kind == SourceToken::Kind::text && token_is(i - 2, "extern");
        braces.push_back(linkage);
        scopes += linkage ? 0 : 1;
      } else if (tokens_[i].is("}") && !braces.empty()) {
        scopes -= braces.back() ? 0 : 1;
        braces.pop_back();
      } else if (scopes == 0 && heads_.defines(i)) {
        if (!entries.contains(tokens_[i].spelling)) overloads_.insert(tokens_[i].spelling);
        global_.insert(tokens_[i].spelling);
      }
    }
  }

  // `extern "C"` would take a function that the text defines out of every namespace; one that it only
  // declares is the C library's.
  void read_linkage(std::size_t i) {
    if (!token_is(i, "extern") || i + 2 >= tokens_.size() || tokens_[i + 1].kind != SourceToken::Kind::text ||
        tokens_[i + 1].spelling != "C")
      return;
    bool own = in_directive_[i]; // a macro, for functions of this text
    const bool block = token_is(i + 2, "{");
    int depth = 0;
    for (auto at = i + 2; at < tokens_.size() && !own; ++at) {
      if (tokens_[at].is("{")) ++depth;
      if (tokens_[at].is("}")) --depth;
      own = heads_.names(at) && defined_.contains(tokens_[at].spelling);
      if (block ? depth == 0 : depth > 0 || tokens_[at].is(";")) break;
    }
    if (own) edits_.push_back({tokens_[i + 1].begin, tokens_[i + 1].end, "\"C++\""});
  }

  // `::f(x)` means the text's own function.
  void read_qualification(std::size_t i) {
    if (!token_is(i, "::") || i + 1 >= tokens_.size() || !global_.contains(tokens_[i + 1].spelling)) return;
    if (i > 0 && !tokens_[i - 1].is("return") &&
        (tokens_[i - 1].kind == SourceToken::Kind::name || tokens_[i - 1].is(">")))
      return;
    edits_.push_back({tokens_[i].begin, tokens_[i].end, ""});
  }

  [[nodiscard]] std::string edited() const {
    auto edits = edits_;
    std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
    std::string result;
    std::size_t done = 0;
    for (const auto& edit : edits) {
      if (edit.begin < done) continue;
      result.append(text_.substr(done, edit.begin - done)).append(edit.spelling);
      done = edit.end;
    }
    return result.append(text_.substr(done));
  }

  std::string_view text_;
  std::vector<SourceToken> tokens_;
  FunctionHeads heads_;
  std::set<std::string, std::less<>> defined_;
  std::vector<bool> in_directive_;
  /// Of those, the ones at the scope of the file, and of these, the ones that are no entries.
  std::set<std::string, std::less<>> global_;
  std::set<std::string, std::less<>> overloads_;
  std::string includes_;
  std::string undefined_;
  int open_ = 0;
  bool uses_openmp_ = false;
  std::vector<Edit> edits_;
};

} // namespace mtmc::detail
