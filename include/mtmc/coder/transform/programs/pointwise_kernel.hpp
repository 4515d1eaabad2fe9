#pragma once
/// Kernels of programs that load, compute each element on its own, and store, one statement after the other.

#include <mtmc/analysis/python/triton_kernels.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/coder/transform/programs/bindings.hpp>
#include <mtmc/coder/transform/programs/block_values.hpp>
#include <mtmc/coder/transform/programs/launch_sites.hpp>
#include <mtmc/coder/transform/programs/launch_values.hpp>
#include <mtmc/coder/transform/programs/program_transformation.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A load or store of such a kernel at one of its launches.
struct StraightAccess {
  const SyntaxNode* call = nullptr;
  bool store = false;      ///< else a load
  std::string parameter{}; ///< the pointer that it goes by
  std::string buffer{};    ///< what the launch gives for it, as text
  std::string place{};     ///< canonical: where
  std::string mask{};      ///< canonical: which lanes; empty: all
};

/// One launch of a pointwise kernel, read. Throws where the kernel is none.
class StraightLaunch {
public:
  /// `mark` keeps its names apart from those of the other launch ("1:").
  StraightLaunch(const ProgramRequest& request, const TritonKernel& kernel, const LaunchSite& site,
                 const std::string& mark)
      : request_(request), kernel_(kernel), site_(site), definition_(definition_of(request, kernel)),
        names_(definition_), own_(bindings_around(request, site)), module_(request.tree),
        host_(own_, module_),
        inside_(CanonicalText(names_, module_, texts_given(site, definition_, host_)).in_kernel(mark)) {
    require_pointwise();
    for (const TritonOperation& operation : kernel.operations) add(operation);
  }
  StraightLaunch(const StraightLaunch&) = delete;
  StraightLaunch& operator=(const StraightLaunch&) = delete;

  [[nodiscard]] const TritonKernel& kernel() const noexcept { return kernel_; }
  [[nodiscard]] const LaunchSite& site() const noexcept { return site_; }
  [[nodiscard]] const SyntaxNode& definition() const noexcept { return definition_; }
  [[nodiscard]] const Bindings& names() const noexcept { return names_; }
  [[nodiscard]] const Bindings& host_names() const noexcept { return own_; }
  [[nodiscard]] CanonicalText& inside() noexcept { return inside_; }
  [[nodiscard]] CanonicalText& host() noexcept { return host_; }
  [[nodiscard]] const CanonicalText& host() const noexcept { return host_; }
  [[nodiscard]] const std::vector<StraightAccess>& accesses() const noexcept { return accesses_; }

  /// What the launch gives for a parameter. Throws where it gives nothing.
  [[nodiscard]] const SyntaxNode& given(const std::string& parameter) const {
    const SyntaxNode* const value = value_given(site_, definition_, parameter);
    if (value == nullptr) throw TransformDeclined(parameter + " is not given in " + line_of(*site_.call));
    return *value;
  }
  /// The grid, with what the launch gives for `meta["NAME"]`.
  [[nodiscard]] std::string grid() {
    std::map<std::string, std::string> for_grid;
    for (const auto& [name, text] : texts_given(site_, definition_, host_)) for_grid['[' + name + ']'] = text;
    return CanonicalText(own_, module_, for_grid).of(*site_.grid);
  }

private:
  void require_pointwise() const {
    using enum TritonOperationKind;
    for (const TritonOperation& operation : kernel_.operations)
      if (operation.kind != load && operation.kind != store && operation.kind != program_id)
        throw TransformDeclined(kernel_.name + " does more than load, compute each element and store, in " +
                                line_of(operation.range));
    for (const SyntaxNode& statement : statements(function_body(definition_))) {
      const SyntaxNode* const expression =
          statement.kind == NodeKind::expression_statement ? &operand(statement) : nullptr;
      const bool described = expression != nullptr && expression->kind == NodeKind::literal;
      const bool assigned = expression != nullptr && expression->kind == NodeKind::assignment &&
                            left_operand(*expression).kind == NodeKind::name &&
                            right_operand(*expression).kind != NodeKind::empty &&
                            right_operand(*expression).kind != NodeKind::assignment;
      const bool stored = expression != nullptr && expression->kind == NodeKind::call &&
                          function_of_call(*expression) == "store";
      if (!described && !assigned && !stored)
        throw TransformDeclined(kernel_.name +
                                " is no straight line of loads, values and stores: " + line_of(statement));
    }
  }
  void add(const TritonOperation& operation) {
    if (operation.kind == TritonOperationKind::program_id) return;
    const SyntaxNode* const call = node_of(definition_, NodeKind::call, operation.range);
    const SyntaxNode* const pointer = call == nullptr ? nullptr : argument_of(*call, 0, "pointer");
    if (pointer == nullptr || (operation.name != "load" && operation.name != "store"))
      throw TransformDeclined("an access was not recognised in " + line_of(operation.range));
    StraightAccess access{.call = call, .store = operation.kind == TritonOperationKind::store};
    access.parameter = root_of(*pointer, 16);
    if (access.parameter.empty())
      throw TransformDeclined("the pointer was not recognised in " + line_of(operation.range));
    access.buffer = std::string(text_in(request_.kernel.source, given(access.parameter).range));
    access.place = inside_.of(*pointer);
    const SyntaxNode* const mask = argument_of(*call, access.store ? 2 : 1, "mask");
    if (mask != nullptr && mask->text != "None") access.mask = inside_.of(*mask);
    accesses_.push_back(std::move(access));
  }
  /// The parameter that a pointer begins at, names looked up; empty: none.
  [[nodiscard]] std::string root_of(const SyntaxNode& pointer, int depth) const {
    if (depth == 0) return {};
    if (pointer.kind == NodeKind::name) {
      for (const TritonParameter& parameter : kernel_.parameters)
        if (parameter.name == pointer.text && names_.count(pointer.text) == 1) return pointer.text;
      const SyntaxNode* const value = names_.only_value(pointer.text);
      return value == nullptr ? std::string() : root_of(*value, depth - 1);
    }
    if (pointer.kind == NodeKind::binary && (pointer.text == "+" || pointer.text == "-"))
      return root_of(left_operand(pointer), depth - 1);
    return {};
  }

  const ProgramRequest& request_;
  const TritonKernel& kernel_;
  LaunchSite site_;
  const SyntaxNode& definition_;
  Bindings names_;
  Bindings own_;
  Bindings module_;
  CanonicalText host_;
  CanonicalText inside_;
  std::vector<StraightAccess> accesses_{};
};

} // namespace mtmc::detail
