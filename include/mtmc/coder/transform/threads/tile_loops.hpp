#pragma once
/// Loops in which the threads of a block fill tiles in shared memory, wait, compute on them, and wait again:
/// what may be done to their tiles and barriers.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The name at the root of a subscript: `a` of `a[i][j]`; empty for others.
[[nodiscard]] inline std::string root_of(const SyntaxNode& subscript) {
  const SyntaxNode* node = &subscript;
  while (node->kind == NodeKind::subscript) node = &subscript_base(*node);
  return node->kind == NodeKind::name ? node->text : std::string{};
}

/// Whether something happens within a span of orders.
[[nodiscard]] inline bool is_in(const LoopInfo::Span& span, std::size_t order) noexcept {
  return span.first <= order && order < span.last;
}

/// Such a loop.
struct TileLoop {
  LoopTarget target;
  std::vector<SyntaxNode> fill{};        ///< the statements that fill the tiles
  std::vector<SyntaxNode> compute{};     ///< the statements that compute on them
  std::vector<const Array*> tiles{};     ///< what is filled
  LoopInfo::Span filling{}, computing{}; ///< orders of what happens in either part

  [[nodiscard]] const LoopInfo& loop() const noexcept { return *target.loop; }
  [[nodiscard]] const FunctionAnalysis& function() const noexcept { return *target.loop->function; }
  /// Whether the name is that of a tile.
  [[nodiscard]] bool is_tile(const std::string& name) const {
    return std::any_of(tiles.begin(), tiles.end(),
                       [&](const Array* tile) { return tile->variable->name == name; });
  }
};

/// Reads the action's loop as one whose tiles may have two buffers, so that one barrier an iteration is
/// enough: the tiles are this loop's alone, nothing else in shared memory or written to memory meets in it.
/// Throws `TransformDeclined` with the reason where it is another kind of loop.
class TileLoopReader {
public:
  explicit TileLoopReader(const TransformRequest& request) : tree_(request.tree), loop_{find_loop(request)} {
    // Of another function's calls the second would fill what the first still reads.
    (void)thread_launch(request);
    if (loop_.loop().variable_type.empty()) decline(name() + " counts a variable that others may use");
    take_parts();
    find_tiles();
    require_alone();
  }
  [[nodiscard]] TileLoop take() && { return std::move(loop_); }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }
  [[nodiscard]] std::string name() const { return loop_name(loop_.loop()); }

  /// Cuts the body at its two barriers, one of which begins or ends it.
  void take_parts() {
    const auto body = statements(loop_body(*loop_.loop().node));
    std::vector<std::size_t> barriers;
    for (std::size_t i = 0; i < body.size(); ++i)
      if (is_block_barrier(body[i])) barriers.push_back(i);
    const LoopInfo::Span all = loop_.loop().barriers;
    if (barriers.size() != 2 || all.last - all.first != 2)
      decline(name() + " has not two barriers, one behind what fills a tile and one behind its use");
    begins_ = barriers[0] == 0;
    if (!begins_ && barriers[1] + 1 != body.size())
      decline("something stands around the barriers of " + name());
    if (loop_.loop().has_continue) decline("iterations of " + name() + " may end early");
    const std::size_t first = begins_ ? 1 : 0, middle = barriers[begins_ ? 1 : 0];
    const std::size_t last = begins_ ? body.size() : barriers[1];
    const auto part = [&](std::size_t from, std::size_t to) {
      return std::vector<SyntaxNode>(body.begin() + static_cast<std::ptrdiff_t>(from),
                                     body.begin() + static_cast<std::ptrdiff_t>(to));
    };
    loop_.fill = part(first, middle);
    loop_.compute = part(middle + 1, last);
    const std::size_t wait = loop_.function().barriers[all.first + (begins_ ? 1 : 0)].order;
    loop_.filling = {loop_.loop().order.first, wait};
    loop_.computing = {wait, loop_.loop().order.last};
  }

  void find_tiles() {
    for (const Access& access : loop_.function().accesses) {
      if (!access.write || access.array->place != ArrayPlace::block || !is_in(loop_.filling, access.order))
        continue;
      const auto& known = loop_.tiles;
      if (std::find(known.begin(), known.end(), access.array) == known.end())
        loop_.tiles.push_back(access.array);
    }
    if (loop_.tiles.empty()) decline("nothing in shared memory is filled in " + name());
    for (const Array* tile : loop_.tiles) {
      if (tile->extents.empty() || tile->variable->declaration == nullptr)
        decline("it is not known how large " + tile->name + " is");
      const auto& variables = loop_.function().variables;
      const auto same = std::count_if(variables.begin(), variables.end(), [&](const Variable& other) {
        return other.name == tile->variable->name;
      });
      if (same != 1 || tile->variable->loop != nullptr)
        decline(tile->name + " is declared in a loop or several times");
    }
  }
  [[nodiscard]] bool is_tile(const Access& access) const {
    return std::find(loop_.tiles.begin(), loop_.tiles.end(), access.array) != loop_.tiles.end();
  }

  /// Throws unless all that threads do to each other in the loop is to fill tiles and to read them.
  void require_alone() const {
    std::set<const Array*> read_in_doubt;
    for (const Access& access : loop_.function().accesses) {
      const bool fills = is_in(loop_.filling, access.order), computes = is_in(loop_.computing, access.order);
      const std::string& array = access.array->name;
      if (is_tile(access)) {
        if (!fills && !computes) decline(array + " is used outside of " + name(), access);
        if (fills != access.write) decline(array + " is read and written in turns", access);
      } else if (access.array->place == ArrayPlace::block && (fills || computes)) {
        decline(array + " is in shared memory and no tile of " + name(), access);
      } else if (access.array->place == ArrayPlace::common && access.write && (fills || computes)) {
        decline(name() + " writes " + array, access);
      }
      // The barrier in front of the first iteration is about what was written before, too.
      if ((computes || (fills && begins_)) && access.array->place == ArrayPlace::common)
        read_in_doubt.insert(access.array);
    }
    for (const Access& access : loop_.function().accesses)
      if (access.write && read_in_doubt.contains(access.array))
        decline("threads may write " + access.array->name + " while others still read it in " + name(),
                access);
    walk(*loop_.function().node, [&](const SyntaxNode& node) { return only_elements(node); });
    walk(tree_, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::preprocessor) require_unnamed(node, "a macro names ");
    });
  }
  [[noreturn]] static void decline(const std::string& reason, const Access& access) {
    const int line = access.node->range.first_line;
    throw TransformDeclined(reason + (line > 0 ? " (line " + std::to_string(line) + ')' : ""));
  }
  /// Throws where a tile is named in what is not understood.
  void require_unnamed(const SyntaxNode& node, const std::string& what) const {
    for (const Array* tile : loop_.tiles)
      if (uses_name(node, tile->variable->name)) decline(what + tile->name);
  }
  /// Throws where a tile is named but for one of its elements, which is read or assigned.
  bool only_elements(const SyntaxNode& node) const {
    if (node.kind == NodeKind::opaque) require_unnamed(node, "something that was not understood uses ");
    if (node.kind == NodeKind::unary && node.text == "&" && loop_.is_tile(root_of(operand(node))))
      decline("the address of an element of " + root_of(operand(node)) + " is taken");
    if (node.kind == NodeKind::declaration && is_reference(node))
      require_unnamed(node, "a reference may be to an element of ");
    if (node.kind == NodeKind::name && loop_.is_tile(node.text)) decline(node.text + " is used as a whole");
    if (node.kind != NodeKind::subscript || !loop_.is_tile(root_of(node))) return true;
    const SyntaxNode* at = &node;
    std::size_t depth = 0;
    for (; at->kind == NodeKind::subscript; at = &subscript_base(*at), ++depth)
      walk(subscript_index(*at), [&](const SyntaxNode& inner) { return only_elements(inner); });
    for (const Array* tile : loop_.tiles)
      if (tile->variable->name == at->text && tile->extents.size() != depth)
        decline(at->text + " is used as a whole");
    return false;
  }
  [[nodiscard]] static bool is_reference(const SyntaxNode& declaration) {
    const auto all = declarators(declaration);
    return declaration.type.find('&') != std::string::npos ||
           std::any_of(all.begin(), all.end(), [](const SyntaxNode& declarator) {
             return declarator.type.find('&') != std::string::npos;
           });
  }

  const SyntaxNode& tree_;
  TileLoop loop_;
  bool begins_ = false; ///< one of the barriers stands in front of what fills the tiles
};

} // namespace mtmc::detail
