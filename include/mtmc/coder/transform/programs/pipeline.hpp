#pragma once
/// Pipelining: loads of later iterations of a kernel's loop are under way while one is computed.

#include <mtmc/coder/transform/programs/launch_sites.hpp>
#include <mtmc/coder/transform/programs/program_transformation.hpp>
#include <mtmc/coder/transform/programs/source_edits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Whether a loop of a kernel makes products of tiles, itself or in a function of the text that the kernel
/// calls.
[[nodiscard]] inline bool loop_has_dot(const ProgramRequest& request, const TritonKernel& kernel,
                                       const SourceRange& loop) {
  const auto has = [](const TritonKernel& one, const SourceRange& within) {
    return std::any_of(one.operations.begin(), one.operations.end(), [&](const TritonOperation& operation) {
      return operation.kind == TritonOperationKind::dot && operation.range.begin >= within.begin &&
             operation.range.end <= within.end;
    });
  };
  return has(kernel, loop) ||
         std::any_of(kernel.calls.begin(), kernel.calls.end(), [&](const std::string& name) {
           return std::any_of(
               request.triton.kernels.begin(), request.triton.kernels.end(),
               [&](const TritonKernel& one) { return one.name == name && has(one, one.range); });
         });
}

/// Throws where an iteration may load what an earlier one stored, so that it must not begin to load before.
inline void require_independent_loads(const Region& region, const std::vector<LaunchSite>& sites,
                                      const TritonKernel& kernel) {
  const auto& facts = region.facts;
  if (facts.block_barriers > 0)
    throw TransformDeclined("the threads of a program wait for each other in the loop");
  for (const std::string& write : facts.writes)
    if (std::find(facts.reads.begin(), facts.reads.end(), write) != facts.reads.end())
      throw TransformDeclined("an iteration may load from " + write + " what an earlier one has stored");
  // The same tensor for two parameters.
  const auto passed = [&](const LaunchSite& site, const std::string& parameter) -> std::string {
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i)
      if (kernel.parameters[i].name == parameter && i < site.launch->arguments.size())
        return site.launch->arguments[i];
    for (const std::string& named : site.launch->named)
      if (named.starts_with(parameter + '=')) return named.substr(parameter.size() + 1);
    return {};
  };
  for (const LaunchSite& site : sites)
    for (const std::string& write : facts.writes)
      for (const std::string& read : facts.reads)
        if (const std::string tensor = passed(site, write); !tensor.empty() && tensor == passed(site, read))
          throw TransformDeclined(write + " and " + read + " are the same tensor in " + line_of(*site.call));
}

} // namespace detail

/// Gives a loop of a kernel stages. The compiler makes them of a loop with `dot` where a launch says
/// `num_stages`, and of any loop whose own range says it: so this is said at the launches of the kernel, or,
/// where the loop has no `dot`, or says it already, in its range. Variants are 2 to 5 stages.
[[nodiscard]] inline std::string pipeline_loads(const ProgramRequest& request) {
  const Region& region = detail::region_of(request);
  const TritonKernel& kernel = detail::kernel_of(request, region);
  if (region.kind != RegionKind::loop) throw TransformDeclined("\"" + region.path + "\" names no loop");
  const auto sites = detail::plain_launches(request, kernel);
  const auto found = std::find_if(kernel.loops.begin(), kernel.loops.end(), [&](const TritonLoop& loop) {
    return loop.range.first_line == region.first_line && loop.range.last_line == region.last_line;
  });
  const SyntaxNode* const loop = found == kernel.loops.end()
                                     ? nullptr
                                     : detail::node_of(request.tree, NodeKind::for_each_loop, found->range);
  if (loop == nullptr) throw TransformDeclined("only a loop over a range has stages");
  if (found->unrolled) throw TransformDeclined("the compiler writes the loop out");
  const SyntaxNode& range = loop->children[1];
  const std::string function =
      range.kind == NodeKind::call ? detail::dotted_name(callee(range)) : std::string();
  if (detail::last_part(function) != "range") throw TransformDeclined("only a loop over a range has stages");
  if (region.facts.reads.empty()) throw TransformDeclined("the loop loads nothing");
  detail::require_independent_loads(region, sites, kernel);

  const bool products = detail::loop_has_dot(request, kernel, found->range);
  const SyntaxNode* const own = detail::named_argument(range, "num_stages");
  const bool at_loop = own != nullptr || !products;
  std::int64_t present = 0;
  if (own != nullptr) {
    const auto number = detail::integer_of(*own);
    if (!number) throw TransformDeclined("num_stages is computed in " + detail::line_of(*own));
    present = *number;
  } else if (!at_loop) {
    present = detail::option_of(kernel, sites, "num_stages");
    const bool said_nowhere =
        present == 0 && std::none_of(sites.begin(), sites.end(), [](const detail::LaunchSite& site) {
          return detail::named_argument(*site.call, "num_stages") != nullptr;
        });
    if (said_nowhere) present = 3; // what the compiler takes
  }
  // A product hides more of the time that loads take; more stages than four seldom fit into shared memory.
  std::vector<std::int64_t> stages =
      products ? std::vector<std::int64_t>{4, 3, 2, 5} : std::vector<std::int64_t>{3, 4, 2, 5};
  std::erase(stages, present);
  const std::int64_t chosen = choose_variant(stages, request.variant);

  const std::string_view source = request.kernel.source;
  const detail::KeywordWriter writer(source);
  std::vector<detail::SourceEdit> edits;
  if (!at_loop) {
    detail::set_option(edits, writer, sites, "num_stages", chosen);
  } else {
    edits.push_back(writer.with(range, "num_stages", std::to_string(chosen)));
    if (function == "range") { // Python's own knows no stages
      const std::string prefix = detail::language_prefix(request, kernel);
      if (prefix.empty()) throw TransformDeclined("the text gives triton.language no name");
      edits.push_back({callee(range).range.begin, callee(range).range.begin, prefix});
    }
  }
  return detail::edited(source, std::move(edits));
}

} // namespace mtmc
