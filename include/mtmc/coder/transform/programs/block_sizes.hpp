#pragma once
/// The numbers in a text that are sizes of a kernel's blocks, each with all places that have to agree with
/// it.

#include <mtmc/coder/transform/programs/bindings.hpp>
#include <mtmc/coder/transform/programs/block_parameters.hpp>
#include <mtmc/coder/transform/programs/launch_sites.hpp>
#include <mtmc/coder/transform/programs/launch_values.hpp>
#include <mtmc/coder/transform/programs/program_transformation.hpp>
#include <mtmc/coder/transform/programs/source_edits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Numbers that are the size of one or more blocks, and change together.
struct BlockSize {
  std::set<std::pair<std::string, std::string>> parameters{}; ///< kernels and their parameters
  std::map<std::size_t, SourceRange> literals{};              ///< where it is written, by offset
  std::set<std::int64_t> present{};                           ///< what is written there
  bool larger = true;                                         ///< larger sizes are right, too
  bool in_loop = false;                                       ///< a loop goes from block to block
  std::set<char> roles{}; ///< of the extents of a product, in the kernel that was asked for
  std::string refused{};  ///< why it cannot be changed; empty: it can
  bool whole = false;     ///< that is because a block covers an axis whole

  /// The largest number that is written.
  [[nodiscard]] std::int64_t largest() const { return present.empty() ? 0 : *present.rbegin(); }
};

/// Finds the size of one parameter.
class BlockSizeFinder {
public:
  explicit BlockSizeFinder(const ProgramRequest& request) : request_(request), module_(request.tree) {}

  /// All that has to change with a kernel's parameter.
  [[nodiscard]] BlockSize find(const TritonKernel& kernel, const std::string& parameter) {
    result_ = {};
    kernel_ = kernel.name;
    waiting_ = {{kernel.name, parameter}};
    try {
      while (!waiting_.empty()) {
        const auto next = waiting_.back();
        waiting_.pop_back();
        if (result_.parameters.insert(next).second) add(next.first, next.second);
      }
    } catch (const TransformDeclined& reason) {
      result_.refused = reason.what();
    }
    return result_;
  }

private:
  [[noreturn]] static void refuse(const std::string& why) { throw TransformDeclined(why); }

  void add(const std::string& name, const std::string& parameter) {
    const auto kernel = std::find_if(request_.triton.kernels.begin(), request_.triton.kernels.end(),
                                     [&](const TritonKernel& one) { return one.name == name; });
    if (kernel == request_.triton.kernels.end()) refuse(name + " is not a kernel");
    const auto sites = plain_launches(request_, *kernel);
    if (!known_.contains(name)) known_[name] = block_parameters(request_, *kernel);
    const auto& all = known_[name];
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const BlockParameter& one) { return one.name == parameter; });
    if (found == all.end()) refuse(parameter + " is not the size of a block of " + name);
    if (!found->refused.empty()) {
      result_.whole = found->whole && name == kernel_;
      refuse(found->refused);
    }
    result_.larger = result_.larger && found->larger;
    result_.in_loop = result_.in_loop || found->in_loop;
    if (name == kernel_) result_.roles.insert(found->roles.begin(), found->roles.end());
    const SyntaxNode& definition = definition_of(request_, *kernel);
    for (const LaunchSite& site : sites) {
      const Bindings own = bindings_around(request_, site);
      const SyntaxNode* const value = value_given(site, definition, parameter);
      if (value == nullptr) refuse(parameter + " is not given in " + line_of(*site.call));
      const SyntaxNode& literal = followed(*value, own, site, parameter);
      add_literal(literal);
      if (!found->axes.empty()) add_grid(site, own, *found, definition, literal);
    }
  }
  void add_literal(const SyntaxNode& literal) {
    result_.literals[literal.range.begin] = literal.range;
    result_.present.insert(*integer_of(literal));
  }

  /// The literal that a value is, names looked up; all that uses those names is to be changed, too.
  [[nodiscard]] const SyntaxNode& followed(const SyntaxNode& value, const Bindings& own,
                                           const LaunchSite& site, const std::string& parameter) {
    const SyntaxNode* here = &value;
    for (int step = 0; step < 8 && here->kind == NodeKind::name; ++step) {
      const bool local = own.count(here->text) > 0;
      const SyntaxNode* const next = local ? own.only_value(here->text) : module_.only_value(here->text);
      if (next == nullptr) break;
      if (integer_of(looked_up(*next, own, module_)))
        take_uses(here->text, local && site.function != nullptr ? *site.function : request_.tree, local);
      here = next;
    }
    const auto number = integer_of(*here);
    if (number && *number > 0 && (*number & (*number - 1)) == 0) return *here;
    bool covers = false;
    walk(*here, [&](const SyntaxNode& node) {
      covers = covers || (node.kind == NodeKind::call && function_of_call(node) == "next_power_of_2");
    });
    result_.whole = covers;
    refuse(
        parameter +
        (covers ? " covers an axis whole, as it is computed in " : " is no number that the text says in ") +
        line_of(*here));
  }
  /// Everything that uses a name: launches, whose parameters are then of the same size, and divisions that
  /// are rounded up. Throws for anything else.
  void take_uses(const std::string& name, const SyntaxNode& scope, bool local) {
    uses_in(scope, name, scope, local);
  }
  void uses_in(const SyntaxNode& node, const std::string& name, const SyntaxNode& scope, bool local) {
    if (node.kind == NodeKind::function && &node != &scope && Bindings(node).count(name) > 0) {
      if (local) refuse(name + " is bound several times");
      return;
    }
    if (const auto division = rounded_up(node);
        division.divisor != nullptr && is_name(*division.divisor, name))
      return uses_in(*division.dividend, name, scope, local);
    if (node.kind == NodeKind::assignment && is_name(left_operand(node), name))
      return uses_in(right_operand(node), name, scope, local);
    if (node.kind == NodeKind::call && callee(node).kind == NodeKind::subscript) {
      const auto launch = std::find_if(request_.triton.launches.begin(), request_.triton.launches.end(),
                                       [&](const TritonLaunch& one) { return one.range == node.range; });
      if (launch != request_.triton.launches.end()) {
        uses_in(subscript_index(callee(node)), name, scope, local);
        std::size_t place = 0;
        for (const SyntaxNode& argument : arguments(node)) {
          const bool named = argument.kind == NodeKind::keyword_argument;
          const SyntaxNode& value = named ? argument.children.front() : argument;
          if (is_name(value, name))
            waiting_.emplace_back(launch->kernel,
                                  named ? argument.text : parameter_at(launch->kernel, place));
          else
            uses_in(value, name, scope, local);
          ++place;
        }
        return;
      }
    }
    if (is_name(node, name)) refuse(name + " is also used in " + line_of(node));
    for (const SyntaxNode& child : node.children) uses_in(child, name, scope, local);
  }
  [[nodiscard]] std::string parameter_at(const std::string& kernel, std::size_t place) const {
    for (const TritonKernel& one : request_.triton.kernels)
      if (one.name == kernel && place < one.parameters.size()) return one.parameters[place].name;
    return {};
  }

  // --- grids

  /// A division of a grid, and the names that led to it.
  struct Division {
    RoundedUpDivision parts{};
    std::vector<std::string> names{};
  };
  void divisions_in(const SyntaxNode& node, const Bindings& own, std::vector<std::string> names,
                    std::vector<Division>& to) const {
    constexpr std::size_t most_names = 5, most_divisions = 32; // no grid goes through more
    if (names.size() > most_names || to.size() > most_divisions) return;
    if (const auto division = rounded_up(node); division.divisor != nullptr) to.push_back({division, names});
    if (node.kind == NodeKind::name) {
      const SyntaxNode* value = own.only_value(node.text);
      if (value == nullptr && own.count(node.text) == 0) value = module_.only_value(node.text);
      if (value == nullptr) return;
      names.push_back(node.text);
      return divisions_in(*value, own, std::move(names), to);
    }
    for (const SyntaxNode& child : node.children) divisions_in(child, own, names, to);
  }

  /// The axes of a grid whose numbers say which block have to be divided by the size, one of them at least.
  void add_grid(const LaunchSite& site, const Bindings& own, const BlockParameter& parameter,
                const SyntaxNode& definition, const SyntaxNode& literal) {
    std::vector<std::string> names;
    const SyntaxNode* grid = site.grid;
    while (grid->kind == NodeKind::name && names.size() < 8 && own.only_value(grid->text) != nullptr) {
      names.push_back(grid->text);
      grid = own.only_value(grid->text);
    }
    const std::string meta = grid->kind == NodeKind::lambda ? grid->children.front().text : std::string();
    const auto axes = grid_axes(site, own, module_);
    std::vector<Division> all;
    for (const int axis : parameter.axes) {
      if (axis < 0 || static_cast<std::size_t>(axis) >= axes.size())
        refuse("the grid in " + line_of(*site.call) + " was not recognised");
      divisions_in(*axes[static_cast<std::size_t>(axis)], own, names, all);
    }
    bool divided = false;
    std::vector<const Division*> written;
    for (const Division& division : all) {
      const SyntaxNode& divisor = *division.parts.divisor;
      if (divisor.kind == NodeKind::subscript && !meta.empty() && is_name(subscript_base(divisor), meta)) {
        const std::string& key = subscript_index(divisor).text;
        divided = divided || (key.size() > 2 && key.substr(1, key.size() - 2) == parameter.name);
      } else if (divisor.kind == NodeKind::name) {
        divided = divided || looked_up(divisor, own, module_).range == literal.range;
      } else if (integer_of(divisor) && integer_of(divisor) == integer_of(literal)) {
        written.push_back(&division);
      }
    }
    if (divided) return;
    if (written.empty())
      refuse("the grid in " + line_of(*site.call) + " is not divided by " + parameter.name);
    // Where the same number is the size of several blocks: the one whose axis has that end.
    CanonicalText host(own, module_);
    const Bindings kernel(definition);
    CanonicalText inside(kernel, module_, texts_given(site, definition, host));
    std::set<std::string> ends;
    for (const SyntaxNode* const end : parameter.ends) ends.insert(inside.of(*end));
    auto chosen = written;
    std::erase_if(chosen, [&](const Division* one) { return !ends.contains(host.of(*one->parts.dividend)); });
    for (const Division* const one : chosen.empty() ? written : chosen) {
      for (const std::string& name : one->names) require_only_grids(name, site, one->names);
      add_literal(*one->parts.divisor);
      if (one->parts.again != nullptr) add_literal(*one->parts.again);
    }
  }
  /// Throws where a name through which a grid goes is used for anything but grids of the same kernel.
  void require_only_grids(const std::string& name, const LaunchSite& site,
                          const std::vector<std::string>& way) const {
    const SyntaxNode& scope = site.function == nullptr ? request_.tree : *site.function;
    const Bindings own(scope);
    if (own.only_value(name) == nullptr) refuse(name + " is bound outside of the function that launches");
    const auto allowed = [&](const SyntaxNode& use) {
      for (const LaunchSite& other : sites_of(request_, site.launch->kernel))
        if (use.range.begin >= other.grid->range.begin && use.range.end <= other.grid->range.end) return true;
      for (const std::string& other : way)
        if (const SyntaxNode* const value = own.only_value(other);
            value != nullptr && use.range.begin >= value->range.begin && use.range.end <= value->range.end)
          return true;
      return false;
    };
    bool target = true;
    walk(scope, [&](const SyntaxNode& node) {
      if (!is_name(node, name) || std::exchange(target, false)) return;
      if (!allowed(node)) refuse(name + " is also used in " + line_of(node));
    });
  }

  const ProgramRequest& request_;
  Bindings module_;
  std::map<std::string, std::vector<BlockParameter>> known_{};
  std::string kernel_{}; ///< the kernel that was asked for
  std::vector<std::pair<std::string, std::string>> waiting_{};
  BlockSize result_{};
};

/// The sizes of all blocks of a kernel; those that are written in the same places are one.
[[nodiscard]] inline std::vector<BlockSize> block_sizes(const ProgramRequest& request,
                                                        const TritonKernel& kernel) {
  BlockSizeFinder finder(request);
  std::vector<BlockSize> all;
  for (const BlockParameter& parameter : block_parameters(request, kernel)) {
    BlockSize size = finder.find(kernel, parameter.name);
    const auto same = [&](const BlockSize& other) {
      return std::any_of(size.literals.begin(), size.literals.end(),
                         [&](const auto& literal) { return other.literals.contains(literal.first); });
    };
    for (auto other = all.begin(); other != all.end();) {
      if (!same(*other)) {
        ++other;
        continue;
      }
      size.parameters.insert(other->parameters.begin(), other->parameters.end());
      size.literals.insert(other->literals.begin(), other->literals.end());
      size.present.insert(other->present.begin(), other->present.end());
      size.roles.insert(other->roles.begin(), other->roles.end());
      size.larger = size.larger && other->larger;
      size.in_loop = size.in_loop || other->in_loop;
      if (size.refused.empty()) size.refused = other->refused;
      size.whole = size.whole && other->whole;
      other = all.erase(other);
    }
    all.push_back(std::move(size));
  }
  return all;
}

} // namespace mtmc::detail
