#pragma once
/// Definitions of analysis/structure_builder.hpp.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/grid_fusion.hpp>
#include <mtmc/analysis/legality/launch_merge.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/region_facts.hpp>
#include <mtmc/analysis/structure_builder.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/threads/thread_language.hpp>
#include <mtmc/analysis/threads/thread_regions.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/expression.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE StructureBuilder::StructureBuilder(const Task& task, const Kernel& kernel, const SyntaxNode& tree,
                                               WorkBudget budget)
    : task_(task), kernel_(kernel), tree_(tree), analysis_(tree, &task, budget) {}

MTMC_INLINE Structure StructureBuilder::run() {
  structure_.kernel_id = kernel_.id();
  read_sizes();
  for (const auto& function : analysis_.functions()) add_function(*function);
  add_launches();
  add_notes();
  add_totals();
  return std::move(structure_);
}

MTMC_INLINE void StructureBuilder::read_sizes() {
  if (const ProblemSize* size = task_.main_size(); size != nullptr) symbols_ = size->symbols;
  symbols_.emplace("compute_units", nominal_compute_units);
  for (const Argument& argument : task_.arguments)
    if (argument.role != ArgumentRole::scalar) note_buffer(argument.name, argument.shape);
  for (const ScratchText& scratch : analysis_.lines().scratch) note_buffer(scratch.name, scratch.extents);
}

MTMC_INLINE std::optional<std::int64_t> StructureBuilder::evaluate(const std::string& text) const {
  try {
    return evaluate_expression(text, symbols_);
  } catch (const std::exception&) { // what cannot be evaluated is not known
    return std::nullopt;
  }
}

MTMC_INLINE void StructureBuilder::note_buffer(const std::string& name,
                                               const std::vector<std::string>& shape) {
  double elements = 1;
  for (const std::string& extent : shape) {
    const auto value = evaluate(extent);
    if (!value) return;
    elements *= static_cast<double>(*value);
  }
  elements_[name] = elements;
}

MTMC_INLINE std::optional<std::int64_t> StructureBuilder::value_of_argument(const std::string& text) const {
  if (const Argument* argument = task_.find_argument(text);
      argument != nullptr && argument->role == ArgumentRole::scalar && !argument->value.empty())
    return evaluate(argument->value);
  return evaluate(text);
}

MTMC_INLINE std::optional<LaunchGeometry> StructureBuilder::geometry(const LaunchText& launch) const {
  if (!has_thread_grid(kernel_.language)) return std::nullopt;
  return geometry_of(launch, [this](const std::string& text) { return evaluate(text); });
}

MTMC_INLINE CallContext StructureBuilder::context_of(const FunctionAnalysis& function,
                                                     const LaunchText* launch) const {
  CallContext context;
  context.values = symbols_;
  if (launch == nullptr) return context;
  context.geometry = geometry(*launch);
  if (context.geometry) add_launch_values(*context.geometry, context.values);
  const auto given = parameters(*function.node);
  for (std::size_t i = 0; i < given.size() && i < launch->arguments.size(); ++i) {
    const TypeFacts type = type_facts(given[i].type);
    if (type.pointer || !extents(given[i]).empty()) {
      context.buffers[given[i].text] = launch->arguments[i];
      if (const auto known = elements_.find(launch->arguments[i]); known != elements_.end())
        context.elements[given[i].text] = known->second;
    } else if (!type.floating) {
      context.values.erase(given[i].text);
      if (const auto value = value_of_argument(launch->arguments[i])) context.values[given[i].text] = *value;
    }
  }
  return context;
}

MTMC_INLINE const LaunchText* StructureBuilder::first_launch(const FunctionAnalysis& function) const {
  const auto launches = analysis_.launches_of(function.name);
  return launches.empty() ? nullptr : &launches.front();
}

MTMC_INLINE void StructureBuilder::add_function(const FunctionAnalysis& function) {
  const LaunchText* launch = first_launch(function);
  CallContext context = context_of(function, launch);
  context.buffers.clear(); // inside a function, arrays are named as its text names them
  const auto calls = static_cast<double>(analysis_.launches_of(function.name).size());
  const FunctionAtSize at_size(function, context);
  Region whole;
  whole.kind = RegionKind::function;
  whole.label = "the function " + function.name;
  whole.path = function.path;
  whole.first_line = function.node->range.first_line;
  whole.last_line = function.node->range.last_line;
  whole.facts = region_facts(function, {}, context, at_size);
  const RegionFacts facts = whole.facts;
  add(std::move(whole), calls);
  if (!facts.threads.empty()) {
    add(thread_nest_region(function, facts), calls);
    for (Region& store : store_regions(function, at_size)) add(std::move(store), calls);
  }
  for (const LoopInfo& loop : function.loops) add_loop(loop, context, at_size, calls);
  add_sequences(function, function_body(*function.node), context, at_size, calls);
}

MTMC_INLINE void StructureBuilder::add(Region region, double calls) {
  if (calls > 1) {
    region.facts.flops *= calls;
    region.facts.bytes *= calls;
  }
  structure_.regions.push_back(std::move(region));
}

MTMC_INLINE void StructureBuilder::add_loop(const LoopInfo& loop, const CallContext& context,
                                            const FunctionAtSize& at_size, double calls) {
  Region region;
  region.kind = RegionKind::loop;
  region.path = loop.path;
  region.first_line = loop.first_line;
  region.last_line = loop.last_line;
  region.facts = region_facts(*loop.function, {&loop}, context, at_size);
  const auto& nest = region.facts.loops;
  region.label = "the ";
  for (std::size_t i = 0; i < nest.size(); ++i) region.label += (i > 0 ? ", " : "") + nest[i].variable;
  region.label += (nest.size() > 1 ? " loop nest of " : " loop of ") + loop.function->name;
  add(std::move(region), calls);
}

MTMC_INLINE void StructureBuilder::add_sequences(const FunctionAnalysis& function, const SyntaxNode& node,
                                                 const CallContext& context, const FunctionAtSize& at_size,
                                                 double calls) {
  if (is_expression(node.kind)) return;
  if (node.kind == NodeKind::block) {
    std::vector<const LoopInfo*> run;
    std::vector<std::size_t> positions;
    const auto close = [&] {
      add_run(node, run, positions, context, at_size, calls);
      run.clear();
      positions.clear();
    };
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const SyntaxNode& child = node.children[i];
      if (is_loop(child.kind)) {
        const LoopInfo* loop = function.find_loop(child);
        if (loop == nullptr) continue;
        run.push_back(loop);
        positions.push_back(i);
      } else if (child.kind != NodeKind::declaration && child.kind != NodeKind::expression_statement &&
                 child.kind != NodeKind::comment && child.kind != NodeKind::pragma &&
                 child.kind != NodeKind::empty) {
        close();
      }
    }
    close();
  }
  for (const SyntaxNode& child : node.children) add_sequences(function, child, context, at_size, calls);
}

MTMC_INLINE void StructureBuilder::add_run(const SyntaxNode& block, const std::vector<const LoopInfo*>& run,
                                           const std::vector<std::size_t>& positions,
                                           const CallContext& context, const FunctionAtSize& at_size,
                                           double calls) {
  if (run.size() < 2) return;
  const auto between = [&](std::size_t i) {
    return std::span(block.children).subspan(positions[i] + 1, positions[i + 1] - positions[i] - 1);
  };
  std::vector<bool> fusable; // each with the next one
  for (std::size_t i = 0; i + 1 < run.size(); ++i) {
    fusable.push_back(fusion_legal_between(*run[i], *run[i + 1], between(i)).legal);
    add_loop_sequence({run[i], run[i + 1]}, fusable.back(), context, at_size, calls);
  }
  for_longer_runs(run.size(), fusable, [&](std::size_t first, std::size_t last, bool together) {
    const std::vector<const LoopInfo*> members(run.begin() + static_cast<std::ptrdiff_t>(first),
                                               run.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    for (std::size_t a = 0; together && a < members.size(); ++a)
      for (std::size_t b = a + 2; together && b < members.size(); ++b)
        together = accesses_allow_fusion(*members[a], *members[b]).legal;
    add_loop_sequence(members, together, context, at_size, calls);
  });
}

MTMC_INLINE void StructureBuilder::add_loop_sequence(const std::vector<const LoopInfo*>& members,
                                                     bool fusable, const CallContext& context,
                                                     const FunctionAtSize& at_size, double calls) {
  Region region;
  region.kind = RegionKind::loop_sequence;
  region.first_line = members.front()->first_line;
  region.last_line = members.back()->last_line;
  region.path = members.front()->path;
  std::vector<std::string> names;
  for (const LoopInfo* member : members) {
    names.push_back(member->canonical ? member->variable : loop_component(*member->node));
    if (member != members.front()) region.path += '+' + member->path.substr(member->path.rfind('/') + 1);
  }
  region.label = "the neighbouring " + listed(names) + " loops of " + members.front()->function->name;
  region.facts = region_facts(*members.front()->function, members, context, at_size);
  region.facts.intermediates = handed_on(members);
  region.facts.fusable = fusable && !region.facts.opaque;
  for (std::size_t i = 0; members.size() == 2 && i < region.facts.intermediates.size(); ++i)
    structure_.edges.push_back({members[0]->path, members[1]->path, region.facts.intermediates[i]});
  add(std::move(region), calls);
}

MTMC_INLINE std::vector<std::string>
StructureBuilder::handed_on(const std::vector<const LoopInfo*>& members) {
  std::vector<const Array*> written;
  std::vector<std::string> result;
  const auto& accesses = members.front()->function->accesses;
  for (const LoopInfo* member : members) {
    for (std::size_t i = member->accesses.first; i < member->accesses.last; ++i) {
      const Access& access = accesses[i];
      const bool before = std::find(written.begin(), written.end(), access.array) != written.end();
      if (!access.write && before &&
          std::find(result.begin(), result.end(), access.array->name) == result.end())
        result.push_back(access.array->name);
    }
    for (std::size_t i = member->accesses.first; i < member->accesses.last; ++i)
      if (accesses[i].write) written.push_back(accesses[i].array);
  }
  return result;
}

MTMC_INLINE std::int64_t StructureBuilder::cost_of_facts(const FunctionAnalysis& function) noexcept {
  constexpr std::int64_t each = 20;
  return each * static_cast<std::int64_t>(function.accesses.size() + function.scalar_uses.size() +
                                          function.symbols.size() + function.loops.size());
}

MTMC_INLINE std::string StructureBuilder::listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

MTMC_INLINE void StructureBuilder::add_launches() {
  const auto& launches = analysis_.lines().launches;
  std::vector<RegionFacts> facts;
  for (const LaunchText& launch : launches) {
    Region region;
    region.kind = RegionKind::launch;
    region.label = "the launch of " + launch.entry;
    region.path = launch.path;
    region.first_line = region.last_line = launch.node->range.first_line;
    const FunctionAnalysis* function = analysis_.find_function(launch.entry);
    if (function != nullptr && !analysis_.budget().spend(cost_of_facts(*function))) {
      region.facts.opaque = true;
    } else if (function != nullptr) {
      const CallContext context = context_of(*function, &launch);
      const FunctionAtSize at_size(*function, context);
      region.facts = region_facts(*function, {}, context, at_size);
    } else {
      region.facts.opaque = true;
      note(region.first_line, "the function " + launch.entry + " is launched but not defined in the text");
    }
    facts.push_back(region.facts);
    structure_.flops += region.facts.flops;
    structure_.bytes += region.facts.bytes;
    structure_.regions.push_back(std::move(region));
  }
  add_edges(facts);
  std::vector<bool> fusable;
  for (std::size_t i = 0; i + 1 < launches.size(); ++i)
    fusable.push_back(add_launch_sequence(i, i + 1, facts, true));
  for_longer_runs(launches.size(), fusable, [&](std::size_t first, std::size_t last, bool together) {
    add_launch_sequence(first, last, facts, together);
  });
}

MTMC_INLINE void StructureBuilder::judge_launch_fusion(std::span<const LaunchText> launches,
                                                       RegionFacts& facts) const {
  const bool grids = std::all_of(launches.begin(), launches.end(),
                                 [](const LaunchText& launch) { return !launch.grid.empty(); });
  if (grids)
    facts.fusion_scope = grid_fusion_scope(analysis_, launches, &task_,
                                           [this](const LaunchText& launch) { return geometry(launch); });
  facts.fusable = grids ? facts.fusion_scope != FusionScope::none
                        : launch_fusion_legal(analysis_, launches, &task_).legal;
}

MTMC_INLINE void StructureBuilder::add_edges(const std::vector<RegionFacts>& facts) {
  const auto& launches = analysis_.lines().launches;
  std::map<std::string, std::size_t> writer;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    for (const std::string& buffer : facts[i].reads)
      if (const auto found = writer.find(buffer); found != writer.end())
        structure_.edges.push_back({launches[found->second].path, launches[i].path, buffer});
    for (const std::string& buffer : facts[i].writes) writer[buffer] = i;
  }
}

MTMC_INLINE bool StructureBuilder::add_launch_sequence(std::size_t first, std::size_t last,
                                                       const std::vector<RegionFacts>& facts, bool may_be) {
  const auto& launches = analysis_.lines().launches;
  Region region;
  region.kind = RegionKind::launch_sequence;
  region.first_line = launches[first].node->range.first_line;
  region.last_line = launches[last].node->range.last_line;
  std::vector<std::string> names;
  std::vector<std::string> written;
  RegionFacts& all = region.facts;
  const auto merge = [](std::vector<std::string>& list, const std::vector<std::string>& more) {
    for (const std::string& name : more)
      if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  };
  for (std::size_t i = first; i <= last; ++i) {
    region.path += (i > first ? "+" : "") + launches[i].path;
    names.push_back(launches[i].entry);
    // An access moves with the loops of its own launch only.
    for (AccessFacts access : facts[i].accesses) {
      access.strides.insert(access.strides.begin(), all.loops.size(), std::nullopt);
      all.accesses.push_back(std::move(access));
    }
    all.loops.insert(all.loops.end(), facts[i].loops.begin(), facts[i].loops.end());
    for (const std::string& buffer : facts[i].reads)
      if (std::find(written.begin(), written.end(), buffer) != written.end())
        merge(all.intermediates, {buffer});
    merge(written, facts[i].writes);
    merge(all.reads, facts[i].reads);
    merge(all.writes, facts[i].writes);
    merge(all.calls, facts[i].calls);
    merge(all.directives, facts[i].directives);
    all.flops += facts[i].flops;
    all.bytes += facts[i].bytes;
    all.reuse = std::max(all.reuse, facts[i].reuse);
    all.transcendental = all.transcendental || facts[i].transcendental;
    all.branches = all.branches || facts[i].branches;
    all.indirect = all.indirect || facts[i].indirect;
    all.opaque = all.opaque || facts[i].opaque;
  }
  for (AccessFacts& access : all.accesses) access.strides.resize(all.loops.size());
  region.label = "the launches of " + listed(names);
  if (may_be) judge_launch_fusion(std::span(launches).subspan(first, last - first + 1), all);
  const bool legal = all.fusable;
  all.fusable = legal && !all.intermediates.empty() && !all.opaque;
  structure_.regions.push_back(std::move(region));
  return legal;
}

MTMC_INLINE void StructureBuilder::note(int line, std::string message, std::string remedy) {
  Diagnostic diagnostic;
  diagnostic.severity = Severity::note;
  diagnostic.line = line;
  diagnostic.message = std::move(message);
  diagnostic.remedy = std::move(remedy);
  structure_.notes.push_back(std::move(diagnostic));
}

MTMC_INLINE void StructureBuilder::add_notes() {
  for (const auto& function : analysis_.functions())
    for (const OpaqueEffect& effect : function->opaque) {
      ++structure_.opaque_statements;
      note(effect.line, "line " + std::to_string(effect.line) + " contains " + effect.reason +
                            "; nothing is claimed of what is around it");
    }
  add_opaque_items(tree_);
  if (!analysis_.complete())
    note(0, "the text takes too long to analyse in full; what was not proved in time counts as not legal",
         "Give large functions fewer accesses to one array, or spread them over several functions");
  try {
    (void)parse_launch_lines(kernel_);
  } catch (const Error& error) {
    note(0, error.what());
  }
}

MTMC_INLINE void StructureBuilder::add_opaque_items(const SyntaxNode& node) {
  constexpr std::string_view harmless[] = {"using", "typedef",  "struct",        "class",  "enum",
                                           "union", "template", "static_assert", "extern", "union"};
  for (const SyntaxNode& child : node.children) {
    if (child.kind == NodeKind::scope) add_opaque_items(child);
    if (child.kind != NodeKind::opaque) continue;
    const bool known = std::any_of(std::begin(harmless), std::end(harmless), [&](std::string_view word) {
      return std::string_view(child.text).starts_with(word);
    });
    if (known) continue;
    ++structure_.opaque_statements;
    note(child.range.first_line,
         "line " + std::to_string(child.range.first_line) + " contains text that is not understood");
  }
}

MTMC_INLINE void StructureBuilder::add_totals() {
  if (!task_.flops.empty())
    if (const auto stated = evaluate(task_.flops)) structure_.flops = static_cast<double>(*stated);
}

} // namespace mtmc::detail
