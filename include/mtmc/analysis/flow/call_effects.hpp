#pragma once

#include <mtmc/analysis/flow/access.hpp>
#include <mtmc/analysis/flow/type_facts.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

/// \file
/// What a call may do: nothing (mathematical functions), write through its arguments (functions of the same
/// text), or anything.

namespace mtmc::inline MTMC_ABI {

/// Which threads a call waits for or exchanges values with: nothing may be moved across it.
enum class Synchronization : std::uint8_t { none, warp, block };

/// What is known of a function's effects.
struct CallEffect {
  /// Nothing but what `writes` says happens; otherwise it may do anything.
  bool known = false;
  /// Per argument: the function may write through it (pointers and references).
  std::vector<bool> writes{};
  /// A mathematical function of the standard library or the language.
  bool mathematical = false;
  /// exp, log, tanh, ...: tens of operations.
  bool transcendental = false;
  /// The result is floating.
  bool floating = false;
  /// `min` and `max` in all spellings.
  ReductionOperation selects = ReductionOperation::none;
  /// Barriers and exchanges between the threads of a block.
  Synchronization synchronizes = Synchronization::none;
};

namespace detail {

/// The name without `std::` and template arguments.
[[nodiscard]] inline std::string_view plain_function_name(std::string_view name) noexcept {
  if (const std::size_t open = name.find('<'); open != std::string_view::npos) name = name.substr(0, open);
  if (name.starts_with("::")) name.remove_prefix(2);
  if (name.starts_with("std::")) name.remove_prefix(5);
  return name;
}

inline constexpr std::string_view transcendental_functions[] = {
    "acos",   "acosh",  "asin",   "asinh",  "atan",   "atan2",  "atanh",   "cbrt",    "cos",
    "cosh",   "erf",    "erfc",   "exp",    "exp10",  "exp2",   "expm1",   "hypot",   "lgamma",
    "log",    "log10",  "log1p",  "log2",   "pow",    "sin",    "sinh",    "tan",     "tanh",
    "tgamma", "__expf", "__logf", "__powf", "__sinf", "__cosf", "__tanhf", "sincospi"};
/// Barriers of a block and of a warp, exchanges within a warp, fences, and waits for asynchronous copies.
inline constexpr std::string_view block_barriers[] = {"__syncthreads", "__syncthreads_and",
                                                      "__syncthreads_count", "__syncthreads_or"};
inline constexpr std::string_view warp_exchanges[] = {
    "__activemask",      "__all_sync",       "__any_sync",        "__ballot_sync",
    "__match_all_sync",  "__match_any_sync", "__reduce_add_sync", "__reduce_max_sync",
    "__reduce_min_sync", "__shfl_down_sync", "__shfl_sync",       "__shfl_up_sync",
    "__shfl_xor_sync",   "__syncwarp",       "__threadfence",     "__threadfence_block"};
inline constexpr std::string_view copy_waits[] = {"__pipeline_commit", "__pipeline_wait_prior"};
/// Read and write what their first argument points to.
inline constexpr std::string_view atomic_functions[] = {
    "atomicAdd", "atomicAnd", "atomicCAS", "atomicDec", "atomicExch", "atomicInc",
    "atomicMax", "atomicMin", "atomicOr",  "atomicSub", "atomicXor",  "__pipeline_memcpy_async"};
/// Give what their argument points to, by another way through the caches.
inline constexpr std::string_view cached_loads[] = {"__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu"};

inline constexpr std::string_view simple_functions[] = {
    "abs",          "ceil",      "copysign",   "fabs",        "fdim",      "floor",
    "fma",          "fmod",      "isfinite",   "isinf",       "isnan",     "labs",
    "ldexp",        "llrint",    "lrint",      "lround",      "nearbyint", "remainder",
    "rint",         "round",     "rsqrt",      "sqrt",        "trunc",     "signbit",
    "clamp",        "mad",       "__fdividef", "__frsqrt_rn", "__fmaf_rn", "native_exp",
    "native_recip", "__frcp_rn", "__fsqrt_rn", "__hadd",      "__hmul",    "__hfma"};
/// Give their arguments in another form: no operations.
inline constexpr std::string_view conversions[] = {"__half2float",     "__float2half",     "__float2half_rn",
                                                   "__bfloat162float", "__float2bfloat16", "make_float2",
                                                   "make_float4"};

template <std::size_t Size>
[[nodiscard]] bool is_one_of(std::string_view name, const std::string_view (&list)[Size]) noexcept {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

[[nodiscard]] inline bool listed(std::string_view name, const std::string_view* first,
                                 const std::string_view* last) noexcept {
  if (std::find(first, last, name) != last) return true;
  if (name.size() < 2 || (name.back() != 'f' && name.back() != 'l')) return false;
  return std::find(first, last, name.substr(0, name.size() - 1)) != last;
}

/// The effect of a library function, `known` false if it is none we know.
[[nodiscard]] inline CallEffect library_effect(std::string_view full_name) {
  const std::string_view name = plain_function_name(full_name);
  CallEffect effect;
  effect.known = effect.mathematical = effect.floating = true;
  if (name == "min" || name == "fmin" || name == "fminf" || name == "fminl" || name == "MIN") {
    effect.selects = ReductionOperation::minimum;
    effect.floating = name.front() == 'f';
    return effect;
  }
  if (name == "max" || name == "fmax" || name == "fmaxf" || name == "fmaxl" || name == "MAX") {
    effect.selects = ReductionOperation::maximum;
    effect.floating = name.front() == 'f';
    return effect;
  }
  if (listed(name, std::begin(transcendental_functions), std::end(transcendental_functions))) {
    effect.transcendental = true;
    return effect;
  }
  if (listed(name, std::begin(simple_functions), std::end(simple_functions))) {
    effect.floating = name != "abs" && name != "labs";
    return effect;
  }
  if (is_one_of(name, conversions)) {
    effect.mathematical = false;
    return effect;
  }
  if (name == "bit_cast") { // the template argument is the result's type
    effect.floating = full_name.find("<float") != std::string_view::npos ||
                      full_name.find("<double") != std::string_view::npos;
    return effect;
  }
  effect.mathematical = effect.floating = false;
  if (name == "sincos" ||
      name == "sincosf") { // the sine goes to the second argument, the cosine to the third
    effect.transcendental = true;
    effect.writes = {false, true, true};
    return effect;
  }
  if (is_one_of(name, block_barriers) || is_one_of(name, copy_waits)) {
    effect.synchronizes = Synchronization::block;
    return effect;
  }
  if (is_one_of(name, warp_exchanges)) {
    effect.synchronizes = Synchronization::warp;
    effect.floating = name.starts_with("__shfl");
    return effect;
  }
  if (is_one_of(name, atomic_functions)) {
    effect.writes = {true};
    effect.synchronizes = name.starts_with("atomic") ? Synchronization::none : Synchronization::block;
    return effect;
  }
  effect.known = name == "sizeof" || name == "alignof" || name == "assert" || name == "__builtin_expect" ||
                 name == "__builtin_assume_aligned" || name == "assume_aligned" ||
                 full_name.find("numeric_limits<") != std::string_view::npos || name == "isless" ||
                 name.ends_with("this_thread_block") || name == "__builtin_unreachable";
  return effect;
}

/// The name a place ultimately belongs to: `a` in `a[i].x`, `*(a + 1)`, `a`; empty if there is none.
[[nodiscard]] inline std::string_view root_name(const SyntaxNode& place) noexcept {
  const SyntaxNode* node = &place;
  while (true) {
    switch (node->kind) {
    case NodeKind::name:
      return node->text;
    case NodeKind::subscript:
    case NodeKind::member:
    case NodeKind::unary:
    case NodeKind::postfix:
    case NodeKind::binary:
    case NodeKind::cast:
    case NodeKind::assignment:
      if (node->children.empty()) return {};
      node = &node->children.front();
      break;
    default:
      return {};
    }
  }
}

/// The place is memory behind a pointer or in an array, not a variable itself.
[[nodiscard]] inline bool is_memory_place(const SyntaxNode& place) noexcept {
  const SyntaxNode* node = &place;
  while (node->kind == NodeKind::member && !node->children.empty()) {
    if (node->text.starts_with("->")) return true;
    node = &node->children.front();
  }
  return node->kind == NodeKind::subscript || node->kind == NodeKind::unary;
}

/// Calls `use(place, rebased)` for each place that `node` itself (not what lies below it) assigns; `rebased`
/// = not by an operation on its old value.
template <class Use> void assigned_place(const SyntaxNode& node, const Use& use) {
  if (node.kind == NodeKind::assignment && node.children.size() == 2) {
    const bool relative = node.text != "=" || root_name(right_operand(node)) == root_name(left_operand(node));
    use(left_operand(node), !relative);
  } else if ((node.kind == NodeKind::unary && (node.text == "++" || node.text == "--")) ||
             node.kind == NodeKind::postfix) {
    if (!node.children.empty()) use(node.children.front(), false);
  } else if (node.kind == NodeKind::unary && node.text == "&") {
    if (!node.children.empty() && node.children.front().kind == NodeKind::name)
      use(node.children.front(), true);
  }
}

} // namespace detail

/// The effects of the functions that a file calls or defines.
class CallEffects {
public:
  /// Finds the functions of the file. The tree must outlive this object.
  explicit CallEffects(const SyntaxNode& tree) { collect(tree); }

  /// The effect of calling the function of that name. Calls within calls are followed 64 deep, so that no
  /// chain of functions is too long for the stack; a function that needs more may do anything.
  [[nodiscard]] const CallEffect& of(const std::string& name) const {
    constexpr int deepest = 64;
    static const CallEffect anything;
    const auto found = effects_.find(name);
    if (found != effects_.end()) return found->second;
    if (depth_ == deepest) return anything;
    CallEffect effect = definitions_.contains(name) ? CallEffect{} : detail::library_effect(name);
    // Entered as unknown first, so that a recursive function is one that may do anything.
    effects_.emplace(name, effect);
    if (const auto definition = definitions_.find(name);
        definition != definitions_.end() && definition->second != nullptr) {
      ++depth_;
      effect = effect_of_definition(*definition->second);
      --depth_;
      effects_[name] = effect;
    }
    return effects_.find(name)->second;
  }
  /// The function is called somewhere in the file.
  [[nodiscard]] bool called(const std::string& name) const { return called_.contains(name); }
  /// A variable of the file itself that is not const: its value may change between calls.
  [[nodiscard]] bool is_mutable_global(const std::string& name) const { return mutable_.contains(name); }

private:
  void collect(const SyntaxNode& node) {
    for (const SyntaxNode& child : node.children) {
      if (child.kind == NodeKind::scope) collect(child);
      if (child.kind == NodeKind::declaration && !type_facts(child.type).constant)
        for (const SyntaxNode& declarator : child.children) mutable_.insert(declarator.text);
      if (child.kind != NodeKind::function) continue;
      const auto [entry, fresh] = definitions_.emplace(child.text, &child);
      if (!fresh) entry->second = nullptr; // overloaded: which one is called is not known
      collect_calls(child);
    }
  }
  void collect_calls(const SyntaxNode& node) {
    if (node.kind == NodeKind::call && node.children.front().kind == NodeKind::name)
      called_.insert(node.children.front().text);
    for (const SyntaxNode& child : node.children) collect_calls(child);
  }

  /// What a name inside a function stands for: a parameter, or something derived from one.
  struct Origin {
    std::size_t parameter = 0;
    /// Assigning the name itself (not memory behind it) changes the caller's object.
    bool reference = false;
    bool pointer = false;
  };
  /// Names and what is allowed to happen to them inside one function.
  struct Scan {
    std::unordered_map<std::string, Origin> parameters;
    std::unordered_set<std::string> locals;
    CallEffect effect;
  };

  [[nodiscard]] CallEffect effect_of_definition(const SyntaxNode& function) const {
    Scan scan;
    scan.effect.known = true;
    for (const SyntaxNode& parameter : parameters(function)) {
      const TypeFacts facts = type_facts(parameter.type);
      scan.parameters[parameter.text] = {scan.effect.writes.size(), facts.reference,
                                         facts.pointer || !extents(parameter).empty()};
      scan.effect.writes.push_back(false);
    }
    scan.effect.floating = type_facts(function.type).floating;
    inspect(function_body(function), scan);
    return scan.effect;
  }

  void inspect(const SyntaxNode& node, Scan& scan) const {
    if (!scan.effect.known) return;
    if (node.kind == NodeKind::opaque || node.kind == NodeKind::preprocessor) scan.effect.known = false;
    if (node.kind == NodeKind::declaration) declare(node, scan);
    if (node.kind == NodeKind::name && mutable_.contains(node.text) && !scan.locals.contains(node.text) &&
        !scan.parameters.contains(node.text))
      scan.effect.known = false;
    detail::assigned_place(
        node, [&](const SyntaxNode& place, bool) { write(place, detail::is_memory_place(place), scan); });
    if (node.kind == NodeKind::assignment && node.text == "=" && left_operand(node).kind == NodeKind::name &&
        !detail::is_memory_place(right_operand(node))) {
      // A local pointer that is made to point into a parameter later on is not followed.
      const auto origin = scan.parameters.find(std::string(detail::root_name(right_operand(node))));
      if (origin != scan.parameters.end() && origin->second.pointer &&
          !scan.parameters.contains(left_operand(node).text))
        scan.effect.known = false;
    }
    if (node.kind == NodeKind::call) call(node, scan);
    for (const SyntaxNode& child : node.children) inspect(child, scan);
  }

  void declare(const SyntaxNode& declaration, Scan& scan) const {
    const TypeFacts base = type_facts(declaration.type);
    if (base.shared) // nobody but the threads of the block sees it, and only in this function
      scan.effect.synchronizes = Synchronization::block;
    else if (base.persistent)
      scan.effect.known = false;
    for (const SyntaxNode& declarator : declaration.children) {
      const TypeFacts own = type_facts(declarator.type);
      const bool reference = own.reference || base.reference;
      scan.parameters.erase(declarator.text);
      if (!reference && !own.pointer && !base.pointer) {
        scan.locals.insert(declarator.text);
        continue;
      }
      // A pointer or reference into a parameter stands for that parameter; one whose origin is set elsewhere
      // may point anywhere.
      const SyntaxNode* value = initial_value(declarator);
      const std::string root(value != nullptr ? detail::root_name(*value) : std::string_view{});
      if (const auto origin = scan.parameters.find(root); origin != scan.parameters.end())
        scan.parameters[declarator.text] = {origin->second.parameter, reference, !reference};
      else if (scan.locals.contains(root))
        scan.locals.insert(declarator.text);
      else
        scan.effect.known = false;
    }
  }

  /// `through`: the write goes to memory behind the place, not to the place's variable.
  void write(const SyntaxNode& place, bool through, Scan& scan) const {
    const std::string root(detail::root_name(place));
    const auto origin = scan.parameters.find(root);
    if (origin != scan.parameters.end()) {
      if (through || origin->second.reference) scan.effect.writes[origin->second.parameter] = true;
    } else if (!scan.locals.contains(root)) {
      scan.effect.known = false;
    }
  }

  void call(const SyntaxNode& node, Scan& scan) const {
    const SyntaxNode& function = callee(node);
    if (function.kind != NodeKind::name) {
      scan.effect.known = false;
      return;
    }
    const CallEffect effect = of(function.text);
    if (!effect.known) scan.effect.known = false;
    const auto given = arguments(node);
    for (std::size_t i = 0; i < given.size() && i < effect.writes.size(); ++i)
      if (effect.writes[i]) write(given[i], true, scan);
    scan.effect.transcendental = scan.effect.transcendental || effect.transcendental;
    scan.effect.synchronizes = std::max(scan.effect.synchronizes, effect.synchronizes);
  }

  std::unordered_map<std::string, const SyntaxNode*> definitions_;
  std::unordered_set<std::string> called_;
  std::unordered_set<std::string> mutable_;
  mutable std::unordered_map<std::string, CallEffect> effects_;
  /// Definitions that are being looked at.
  mutable int depth_ = 0;
};

} // namespace mtmc
