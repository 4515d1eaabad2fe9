#pragma once
/// A kernel that a transformation wrote in CUDA's words becomes OpenCL C again. What stands as it was keeps
/// its text.

#include <mtmc/analysis/flow/updates.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/threads/opencl_shared.hpp>
#include <mtmc/analysis/threads/opencl_types.hpp>
#include <mtmc/analysis/threads/opencl_words.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/opencl_builtins.hpp>
#include <mtmc/coder/transform/threads/opencl_names.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// OpenCL C has shared memory only in the outermost block of a kernel. Moves the declarations of `__shared__`
/// memory there, and hands functions that have some a pointer to it.
class SharedMemoryMover {
public:
  explicit SharedMemoryMover(SyntaxNode& tree) : tree_(tree) {}

  /// Throws `TransformDeclined` where a declaration cannot be moved.
  void run() {
    // Functions stand behind those they call, and hand on what those need.
    for (SyntaxNode* function : functions(tree_))
      if (!is_entry(*function)) give_parameters(*function);
    for (SyntaxNode* function : functions(tree_))
      if (is_entry(*function))
        move_to_front(*function);
      else
        walk(function_body(*function), [&](const SyntaxNode& node) {
          if (is_shared(node)) decline(function->text + " is called before it is defined");
        });
  }

private:
  [[nodiscard]] static bool is_shared(const SyntaxNode& node) {
    return node.kind == NodeKind::declaration && has_any_word(node.type, "__shared__", "__shared__");
  }
  [[noreturn]] static void decline(const std::string& what) {
    throw TransformDeclined("OpenCL C has shared memory only in the outermost block of a kernel: " + what);
  }

  /// Takes the declarations out of all blocks below a node, but not out of itself where it is the outermost
  /// one.
  static void take(SyntaxNode& node, bool outermost, std::vector<SyntaxNode>& taken) {
    for (std::size_t i = 0; i < node.children.size();) {
      if (is_shared(node.children[i]) && has_any_word(node.children[i].type, "extern", "extern"))
        throw TransformDeclined("OpenCL C has no shared memory whose size the launch line gives");
      if (!outermost && is_shared(node.children[i])) {
        taken.push_back(std::move(node.children[i]));
        node.children.erase(node.children.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      take(node.children[i], false, taken);
      ++i;
    }
  }

  static void move_to_front(SyntaxNode& function) {
    std::vector<SyntaxNode> taken;
    SyntaxNode& body = function_body(function);
    take(body, true, taken);
    for (const SyntaxNode& declaration : taken)
      for (const SyntaxNode& declarator : declarators(declaration))
        walk(body, [&](const SyntaxNode& node) {
          if ((node.kind == NodeKind::declarator || node.kind == NodeKind::parameter) &&
              node.text == declarator.text)
            decline("two things in " + function.text + " are called " + declarator.text);
        });
    body.children.insert(body.children.begin(), std::make_move_iterator(taken.begin()),
                         std::make_move_iterator(taken.end()));
  }

  void give_parameters(SyntaxNode& function) {
    std::vector<SyntaxNode> taken;
    take(function_body(function), false, taken);
    for (const SyntaxNode& declaration : taken)
      for (const SyntaxNode& declarator : declarators(declaration))
        give_parameter(function, declaration, declarator);
  }
  void give_parameter(SyntaxNode& function, const SyntaxNode& declaration, const SyntaxNode& declarator) {
    const auto sizes = extents(declarator);
    if (sizes.size() > 1 || !declarator.type.empty())
      decline(declarator.text + " of " + function.text + " has two axes");
    const std::string element = value_type(declaration.type);
    if (sizes.empty())
      (void)substitute(function_body(function), declarator.text,
                       make_subscript(make_name(declarator.text), make_integer(0)));
    function.children.insert(function.children.end() - 1,
                             make_parameter("__shared__ " + element + '*', declarator.text));
    const std::string name = fresh_name(tree_, shared_array_name(function, declarator.text));
    for (SyntaxNode* caller : functions(tree_)) {
      const auto calls = calls_of(function_body(*caller), function.text);
      if (calls.empty()) continue;
      for (SyntaxNode* call : calls) call->children.push_back(make_name(name));
      SyntaxNode array = declaration;
      array.leading_trivia.clear();
      array.trailing_trivia.clear();
      array.children = {declarator};
      array.children.front().text = name;
      if (sizes.empty())
        array.children.front().children = {make_node(NodeKind::extent, {}, node_list(make_integer(1)))};
      auto& body = function_body(*caller).children;
      const auto place = std::find_if_not(body.begin(), body.end(), [](const SyntaxNode& node) {
        return node.kind == NodeKind::declaration && address_space(node.type) == "local";
      });
      body.insert(place, std::move(array));
    }
  }

  SyntaxNode& tree_;
};

/// Writes a changed tree in OpenCL C.
class OpenClWriter {
public:
  /// `tree` in CUDA's words is what became of the one that `words` has put into them.
  OpenClWriter(SyntaxNode tree, const OpenClWords& words, const Task& task)
      : tree_(std::move(tree)), words_(words) {
    for (const Token& token : words_of(words.source()))
      if (token.kind == TokenKind::identifier) known_.emplace(token.text(words.source()));
    plain_words_ = known_.contains("kernel") && !known_.contains("__kernel");
    fence_ = spelt_fence(task);
  }

  /// Throws `TransformDeclined` where OpenCL C lacks something.
  [[nodiscard]] SyntaxNode write() {
    words_.put_back(tree_);
    SharedMemoryMover(tree_).run();
    walk(tree_, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::declarator || node.kind == NodeKind::parameter ||
          node.kind == NodeKind::function)
        declared_.insert(node.text);
    });
    std::erase_if(tree_.children, [&](const SyntaxNode& node) { return is_new_include(node); });
    for (SyntaxNode* function : functions(tree_))
      if (is_entry(*function)) write_function(*function);
    // Functions stand behind those they call, whose parameters point where their arguments do.
    auto all = functions(tree_);
    for (auto function = all.rbegin(); function != all.rend(); ++function)
      if (!is_entry(**function)) write_function(**function);
    mend_group_sizes();
    walk(tree_, [&](const SyntaxNode& node) { require_known(node); });
    return std::move(tree_);
  }

private:
  [[noreturn]] static void lacks(const std::string& what) {
    throw TransformDeclined("OpenCL C has no " + what);
  }
  /// "kernel" as the text spells it: perhaps "__kernel".
  [[nodiscard]] std::string spelt(const std::string& word) const { return plain_words_ ? word : "__" + word; }

  /// What barriers order: global memory only where threads of some function may exchange through it.
  [[nodiscard]] std::string spelt_fence(const Task& task) const {
    bool barrier = false;
    walk(tree_, [&](const SyntaxNode& node) { barrier = barrier || is_call_of(node, "__syncthreads"); });
    if (!barrier) return "CLK_LOCAL_MEM_FENCE";
    const KernelAnalysis analysis{tree_, &task};
    for (const auto& function : analysis.functions()) {
      if (!is_entry(*function->node)) continue;
      if (!function->opaque.empty()) return "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE";
      std::set<const Array*> read, written;
      for (const Access& access : function->accesses) {
        if (access.array->unknown) return "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE";
        if (access.array->place == ArrayPlace::common) (access.write ? written : read).insert(access.array);
      }
      for (const Array* array : written)
        if (read.contains(array)) return "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE";
    }
    return "CLK_LOCAL_MEM_FENCE";
  }

  [[nodiscard]] bool is_new_include(const SyntaxNode& node) const {
    return node.kind == NodeKind::preprocessor && !words_.knows(node) && node.text.starts_with("#include");
  }

  // --- functions and declarations

  void write_function(SyntaxNode& function) {
    names_ = {};
    const bool entry = is_entry(function);
    function.type = in_opencl(function.type);
    std::size_t number = 0;
    for (SyntaxNode& parameter : parameters(function)) {
      std::string space = address_space(parameter.type);
      const bool pointer = parameter.type.find('*') != std::string::npos;
      if (pointer && space.empty() && entry) space = "global";
      if (pointer && space.empty() && !words_.knows(parameter)) {
        const auto found = argument_spaces_.find({function.text, number});
        if (found == argument_spaces_.end() || !found->second)
          throw TransformDeclined("it is not known what memory " + parameter.text + " of " + function.text +
                                  " points into");
        space = *found->second;
      }
      if (initializer(parameter) != nullptr) lacks("values of parameters that are not given");
      parameter.type = with_space(in_opencl(parameter.type), space);
      names_.declare(parameter.text, value_type(parameter.type), space);
      ++number;
    }
    write(function_body(function));
  }

  /// The type with an address space in front, if it has none.
  [[nodiscard]] std::string with_space(const std::string& type, const std::string& space) const {
    if (space.empty() || space == "private" || !address_space(type).empty()) return type;
    return spelt(space) + ' ' + type;
  }

  /// The text of a type, or of all that stands before a function's name.
  [[nodiscard]] std::string in_opencl(const std::string& type) const {
    if (type.find("template") != std::string::npos) lacks("templates");
    std::string text = type;
    replace_group(text, "__launch_bounds__", "");
    replace_group(text, "__align__", "aligned");
    replace_group(text, "alignas", "aligned");
    constexpr std::string_view twice = "long long";
    for (std::size_t at = text.find(twice); at != std::string::npos; at = text.find(twice))
      text.replace(at, twice.size(), "long");
    return with_words(text, [&](std::string word) -> std::string {
      const bool says_something =
          is_name_start(word.front()) || word == "*" || word == "&" || word == "::" || word.front() == '"';
      const bool own_word = known_.contains(word) || word == "__attribute__" || word == "aligned" ||
                            word == "static" || (word != "__shared__" && !address_space(word).empty());
      if (!says_something || own_word) return word;
      const auto own = opencl_type_word(word);
      if (!own) lacks(word == "&" ? "references" : "type " + word);
      return *own == "__kernel" ? spelt("kernel") : *own == "__local" ? spelt("local") : *own;
    });
  }
  /// `word(arguments)` becomes `__attribute__((with(arguments)))`, or nothing.
  static void replace_group(std::string& text, std::string_view word, std::string_view with) {
    const std::size_t at = text.find(word);
    if (at == std::string::npos) return;
    const std::size_t open = text.find('(', at), close = text.find(')', at);
    if (open == std::string::npos || close == std::string::npos) return;
    std::string own;
    if (!with.empty())
      own = "__attribute__((" + std::string(with) + text.substr(open, close + 1 - open) + "))";
    text.replace(at, close + 1 - at, own);
  }

  void write_declaration(SyntaxNode& node) {
    const bool known = words_.knows(node);
    if (!known && has_any_word(node.type, "auto", "constexpr"))
      lacks(has_any_word(node.type, "auto", "auto") ? "auto" : "constexpr");
    if (!known && has_any_word(node.type, "static", "static")) lacks("static variables");
    const std::string space = address_space(node.type);
    node.type = in_opencl(node.type);
    std::optional<std::string> pointed;
    for (SyntaxNode& declarator : node.children) {
      if (declarator.type.find('&') != std::string::npos) lacks("references");
      declarator.type = in_opencl(declarator.type);
      std::string own = space;
      if (declarator.type.find('*') != std::string::npos && space.empty() && !known) {
        const SyntaxNode* const value = initial_value(declarator);
        const auto found = value == nullptr ? std::nullopt : names_.space_of(*value);
        if (!found || (pointed && *pointed != *found))
          throw TransformDeclined("it is not known what memory " + declarator.text + " points into");
        pointed = own = *found;
      }
      names_.declare(declarator.text, value_type(node.type), own);
      if (!known) write_initializer(declarator);
      for (const SyntaxNode& extent : extents(declarator))
        for (const std::string& name : names_used(extent))
          if (!known && declared_.contains(name)) lacks("arrays whose size is a variable, " + name);
    }
    if (pointed) node.type = with_space(node.type, *pointed);
  }
  /// `float x(1)`, `float x{1}` and `float x[4] = {}`.
  static void write_initializer(SyntaxNode& declarator) {
    SyntaxNode* const start = initializer(declarator);
    if (start == nullptr) return;
    if (start->text == "{}" && (!extents(declarator).empty() || start->children.size() > 1)) {
      SyntaxNode list = make_node(NodeKind::initializer_list, {}, std::move(start->children));
      start->children = node_list(std::move(list));
    }
    if (start->children.empty()) start->children.push_back(make_integer(0));
    start->text = "=";
    SyntaxNode& value = start->children.front();
    if (value.kind == NodeKind::initializer_list && value.children.empty())
      value.children.push_back(make_integer(0));
  }

  // --- statements and expressions

  void write(SyntaxNode& node) {
    switch (node.kind) {
    case NodeKind::declaration:
      for (SyntaxNode& declarator : node.children)
        for (SyntaxNode& part : declarator.children) write(part);
      write_declaration(node);
      return;
    case NodeKind::member:
      if (write_launch_name(node)) return;
      break;
    case NodeKind::binary:
      for (std::size_t axis = 0; axis < 3; ++axis)
        if (is_number_of_thread(node, "", axis)) {
          node = make_call("get_global_id", node_list(make_integer(static_cast<std::int64_t>(axis))));
          return;
        }
      break;
    case NodeKind::cast:
      write_cast(node);
      break;
    case NodeKind::call:
      write_call(node);
      return;
    case NodeKind::unary:
      if (node.text == "&" && operand(node).kind == NodeKind::member && !words_.knows(node))
        lacks("addresses of a vector's elements");
      break;
    case NodeKind::initializer_list:
      if (!node.type.empty()) {
        node = make_vector(node.type, std::move(node.children));
        write(node);
        return;
      }
      break;
    case NodeKind::if_statement:
      if (!node.text.empty()) lacks("if constexpr");
      break;
    case NodeKind::pragma:
      if (!words_.knows(node) && !node.text.starts_with("unroll")) lacks("#pragma " + node.text);
      break;
    default:
      break;
    }
    for (SyntaxNode& child : node.children) write(child);
  }

  /// `threadIdx.x`
  static bool write_launch_name(SyntaxNode& node) {
    static constexpr std::pair<std::string_view, std::string_view> functions[] = {
        {"threadIdx", "get_local_id"},
        {"blockIdx", "get_group_id"},
        {"blockDim", "get_local_size"},
        {"gridDim", "get_num_groups"}};
    for (const auto& [object, function] : functions)
      for (std::size_t axis = 0; axis < 3; ++axis)
        if (is_name(operand(node), object) && node.text == '.' + std::string(axis_names[axis])) {
          node = make_call(std::string(function), node_list(make_integer(static_cast<std::int64_t>(axis))));
          return true;
        }
    return false;
  }

  void write_cast(SyntaxNode& node) {
    if (node.text != "c_style") node.text = "c_style";
    const bool pointer = node.type.find('*') != std::string::npos;
    node.type = in_opencl(node.type);
    if (!pointer || words_.knows(node) || !address_space(node.type).empty()) return;
    const auto space = names_.space_of(operand(node));
    if (!space)
      throw TransformDeclined("it is not known what memory " + print(operand(node)) + " points into");
    node.type = with_space(node.type, *space);
  }

  void write_call(SyntaxNode& node) {
    SyntaxNode& function = callee(node);
    if (is_call_of(node, "__syncthreads") && arguments(node).empty()) {
      function.text = "barrier";
      node.children.push_back(parse_expression(fence_));
      return;
    }
    if (function.kind != NodeKind::name) lacks("calls of values");
    for (SyntaxNode& argument : arguments(node)) write(argument);
    if (known_.contains(function.text) && !is_extremum(function.text)) return;
    if (find_function(tree_, function.text) != nullptr) {
      note_arguments(node);
      return;
    }
    if (function.text.starts_with("make_") && is_vector_type(std::string_view(function.text).substr(5))) {
      const std::string type = function.text.substr(5);
      node = make_vector(type, {node.children.begin() + 1, node.children.end()});
      return;
    }
    if (function.text == "__ldg" && arguments(node).size() == 1) {
      SyntaxNode pointer = arguments(node).front();
      const bool address = pointer.kind == NodeKind::unary && pointer.text == "&";
      node = address ? SyntaxNode(operand(pointer)) : make_unary("*", std::move(pointer));
      return;
    }
    const std::string text = function.text;
    const auto own = opencl_function(text);
    if (!own) lacks("function " + text);
    function.text = *own;
    if (is_extremum(*own)) write_extremum(node, text);
  }
  [[nodiscard]] static bool is_extremum(std::string_view name) {
    const std::string_view plain = plain_function_name(name);
    return plain == "min" || plain == "max";
  }
  /// `min` of two types is ambiguous in OpenCL C: it is said with `?:` where they may differ.
  void write_extremum(SyntaxNode& node, const std::string& text) {
    if (words_.knows(node) || arguments(node).size() != 2) return;
    SyntaxNode left = arguments(node)[0], right = arguments(node)[1];
    if (const std::size_t open = text.find('<'); open != std::string::npos && text.ends_with('>')) {
      const std::string type = in_opencl(text.substr(open + 1, text.size() - open - 2));
      for (SyntaxNode& argument : arguments(node))
        if (names_.type_of(argument) != type) argument = make_cast(type, std::move(argument));
      return;
    }
    if (const auto type = names_.type_of(left); type && type == names_.type_of(right)) return;
    if (words_.source().find(print(node)) != std::string::npos) return;
    for (const SyntaxNode* one : {&left, &right})
      walk(*one, [&](const SyntaxNode& part) {
        if (part.kind == NodeKind::assignment || part.kind == NodeKind::postfix ||
            (part.kind == NodeKind::unary && (part.text == "++" || part.text == "--")))
          lacks("function " + text + " of different types");
      });
    const std::string relation = callee(node).text == "min" ? "<" : ">";
    node = make_conditional(make_binary(relation, left, right), left, right);
  }
  void note_arguments(const SyntaxNode& node) {
    const auto given = arguments(node);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const auto space = names_.space_of(given[i]);
      const auto [entry, fresh] = argument_spaces_.emplace(std::pair{callee(node).text, i}, space);
      if (!fresh && entry->second != space) entry->second = std::nullopt;
    }
  }
  /// `(float4)(a, b, c, d)`
  [[nodiscard]] static SyntaxNode make_vector(const std::string& type, std::vector<SyntaxNode> parts) {
    if (parts.empty()) parts.push_back(make_integer(0));
    SyntaxNode all = std::move(parts.front());
    for (std::size_t i = 1; i < parts.size(); ++i)
      all = make_binary(",", std::move(all), std::move(parts[i]));
    return make_cast(type, std::move(all));
  }

  // --- the whole

  /// `reqd_work_group_size` says what the launch line says.
  void mend_group_sizes() {
    for (SyntaxNode* function : functions(tree_))
      for (std::string* text : {&function->type, &function->suffix}) {
        const std::size_t word = text->find("reqd_work_group_size");
        if (word == std::string::npos) continue;
        const std::size_t open = text->find('(', word), close = text->find(')', word);
        if (open == std::string::npos || close == std::string::npos) continue;
        for (const LaunchNode& launch : launches_of(tree_)) {
          if (launch.line.entry != function->text) continue;
          auto block = launch.line.block;
          block.resize(3, "1");
          auto stated = parts_at_commas(std::string_view(*text).substr(open + 1, close - open - 1));
          const bool numbers = std::all_of(block.begin(), block.end(), [](const std::string& extent) {
            return integer_literal(extent).has_value();
          });
          if (numbers && stated != block) text->replace(open + 1, close - open - 1, joined(block, ", "));
          break;
        }
      }
  }

  /// Throws `TransformDeclined` for what a step brought that OpenCL C does not have.
  void require_known(const SyntaxNode& node) const {
    if (words_.knows(node) && node.kind != NodeKind::name) return;
    if (node.kind == NodeKind::opaque) lacks("such text: " + node.text.substr(0, 40));
    if (node.kind == NodeKind::preprocessor) lacks("use for " + node.text);
    if (node.kind == NodeKind::declarator && classify_word(node.text) != Word::plain &&
        !known_.contains(node.text))
      throw TransformDeclined(node.text + " is a word of OpenCL C");
    if (node.kind != NodeKind::name || known_.contains(node.text) || declared_.contains(node.text)) return;
    static const std::set<std::string, std::less<>> constants{"INFINITY",
                                                              "NAN",
                                                              "MAXFLOAT",
                                                              "FLT_MAX",
                                                              "INT_MAX",
                                                              "INT_MIN",
                                                              "UINT_MAX",
                                                              "CLK_LOCAL_MEM_FENCE",
                                                              "CLK_GLOBAL_MEM_FENCE"};
    if (!constants.contains(node.text) && !opencl_function(node.text)) lacks(node.text);
  }

  SyntaxNode tree_;
  const OpenClWords& words_;
  std::set<std::string, std::less<>> known_{};    ///< words of the text
  std::set<std::string, std::less<>> declared_{}; ///< names that the new text declares
  bool plain_words_ = false;                      ///< `kernel`, not `__kernel`
  std::string fence_{};
  OpenClNames names_{}; ///< of the function that is being written
  std::map<std::pair<std::string, std::size_t>, std::optional<std::string>> argument_spaces_{};
};

} // namespace mtmc::detail
