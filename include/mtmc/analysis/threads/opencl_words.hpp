#pragma once

#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/threads/opencl_shared.hpp>
#include <mtmc/analysis/threads/opencl_types.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// \file
/// OpenCL C in the words of CUDA, which the analysis and the transformations of launches speak: work-items
/// are threads, work-groups blocks, local memory is shared memory. What stands as it was gets its own words
/// back.

namespace mtmc::inline MTMC_ABI::detail {

/// `threadIdx.y` and the like.
[[nodiscard]] inline SyntaxNode launch_name(const std::string& object, std::size_t axis) {
  SyntaxNode node = make_name(object);
  return make_node(NodeKind::member, '.' + std::string(axis_names[axis]), node_list(std::move(node)));
}

/// `blockIdx.y * blockDim.y + threadIdx.y`
[[nodiscard]] inline SyntaxNode number_of_thread(std::size_t axis) {
  return make_binary("+", make_binary("*", launch_name("blockIdx", axis), launch_name("blockDim", axis)),
                     launch_name("threadIdx", axis));
}

/// Puts trees of OpenCL C into CUDA's words, and nodes that are still the same back into their own.
class OpenClWords {
public:
  /// The words of the tree become CUDA's. The tree is one that `parse` gave.
  explicit OpenClWords(SyntaxNode& tree) : source_(tree.origin.source) {
    walk(tree, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::preprocessor)
        names_in_text(node.text, [&](std::string_view word) {
          if (is_thread_word(word) && hidden_.empty()) hidden_ = word;
        });
    });
    SharedParameters(tree).declare_inside();
    put(tree);
  }

  /// The text that the tree was parsed from.
  [[nodiscard]] const std::string& source() const noexcept { return *source_; }
  /// A word about threads in a macro, where the analysis does not see it; empty if there is none.
  [[nodiscard]] const std::string& hidden_word() const noexcept { return hidden_; }
  /// Whether the node is one of the text, changed perhaps.
  [[nodiscard]] bool knows(const SyntaxNode& node) const noexcept {
    return source_ != nullptr && node.origin.source == source_;
  }
  /// Puts the node and all below it that stands as it was back into the words of the text.
  void put_back(SyntaxNode& node) const {
    if (knows(node)) {
      if (const auto found = expressions_.find(place_of(node));
          found != expressions_.end() && structurally_equal(node, found->second.cuda)) {
        SyntaxNode own = found->second.own;
        own.leading_trivia = node.leading_trivia;
        own.trailing_trivia = node.trailing_trivia;
        node = std::move(own);
        return;
      }
      if (const auto found = types_.find(place_of(node));
          found != types_.end() && node.type == found->second.cuda)
        node.type = found->second.own;
    }
    for (SyntaxNode& child : node.children) put_back(child);
  }

private:
  /// Where a node stood.
  struct Place {
    NodeKind kind{};
    std::size_t begin = 0;
    std::size_t end = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  template <class Value> struct Both {
    Value own{};
    Value cuda{};
  };
  [[nodiscard]] static Place place_of(const SyntaxNode& node) {
    return {node.kind, node.range.begin, node.range.end};
  }

  [[nodiscard]] static bool is_thread_word(std::string_view word) {
    static constexpr std::array<std::string_view, 8> words{
        "barrier",  "work_group_barrier", "__local",   "__kernel",
        "__global", "__constant",         "mem_fence", "kernel"};
    return word.starts_with("get_") || word.starts_with("sub_group_") || word.starts_with("work_group_") ||
           std::find(words.begin(), words.end(), word) != words.end();
  }

  void put(SyntaxNode& node) {
    switch (node.kind) {
    case NodeKind::function:
      set_type(node, is_entry(node) ? with_words(node.type,
                                                 [](const std::string& word) {
                                                   return word == "__kernel" || word == "kernel"
                                                              ? std::string("__global__")
                                                              : word;
                                                 })
                                    : "__device__ " + node.type);
      break;
    case NodeKind::parameter:
    case NodeKind::cast:
      set_type(node, plain_type(node.type, node.type.find('*') != std::string::npos));
      break;
    case NodeKind::declaration:
      set_type(node, plain_type(node.type, std::all_of(node.children.begin(), node.children.end(),
                                                       [](const SyntaxNode& declarator) {
                                                         return declarator.type.find('*') !=
                                                                std::string::npos;
                                                       })));
      break;
    case NodeKind::call:
      put_call(node);
      break;
    default:
      break;
    }
    for (SyntaxNode& child : node.children) put(child);
  }

  /// A type without address spaces. Objects in local memory are shared; pointers into it remain what they
  /// are where nothing else says that they are (`pointer` as parameter).
  [[nodiscard]] static std::string plain_type(const std::string& type, bool pointer) {
    const bool constant = has_any_word(type, "const", "const");
    return with_words(type, [&](std::string word) -> std::string {
      if (word == "__global" || word == "global" || word == "__private" || word == "private") return {};
      if (word == "__constant" || word == "constant") return constant ? "" : "const";
      if (word == "__local" || word == "local") return pointer ? "" : "__shared__";
      return word;
    });
  }

  void set_type(SyntaxNode& node, std::string type) {
    if (type == node.type) return;
    types_.emplace(place_of(node), Both<std::string>{node.type, type});
    node.type = std::move(type);
  }

  void put_call(SyntaxNode& node) {
    auto meant = meaning_of(node);
    if (!meant) return;
    meant->range = node.range;
    meant->origin = node.origin;
    Both<SyntaxNode> both{node, *meant};
    node = std::move(*meant);
    expressions_.emplace(place_of(node), std::move(both));
  }

  /// What a call says in CUDA's words, if there are such.
  [[nodiscard]] static std::optional<SyntaxNode> meaning_of(const SyntaxNode& node) {
    if (callee(node).kind != NodeKind::name) return std::nullopt;
    const std::string& name = callee(node).text;
    if (name == "barrier" || name == "work_group_barrier") return make_call("__syncthreads", {});
    if (arguments(node).size() != 1 || arguments(node).front().kind != NodeKind::literal) return std::nullopt;
    const std::string& number = arguments(node).front().text;
    if (number != "0" && number != "1" && number != "2") return std::nullopt;
    const auto axis = static_cast<std::size_t>(number.front() - '0');
    if (name == "get_global_id") return number_of_thread(axis);
    if (name == "get_local_id") return launch_name("threadIdx", axis);
    if (name == "get_group_id") return launch_name("blockIdx", axis);
    if (name == "get_local_size") return launch_name("blockDim", axis);
    if (name == "get_num_groups") return launch_name("gridDim", axis);
    if (name == "get_global_size")
      return make_binary("*", launch_name("gridDim", axis), launch_name("blockDim", axis));
    return std::nullopt;
  }

  std::shared_ptr<const std::string> source_;
  std::string hidden_{};
  std::map<Place, Both<std::string>> types_{};
  std::map<Place, Both<SyntaxNode>> expressions_{};
};

} // namespace mtmc::detail
