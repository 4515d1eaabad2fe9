// A kernel's text, from its launch lines to the offline coder's drafts, as C++ or, where it says so, CUDA.
#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/complete_arguments.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/coder/transform.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <set>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

/// A task whose arguments are those of the kernel's signature, as far as it has any, and square.
mtmc::Task task_of(const mtmc::Kernel& kernel) {
  mtmc::Task task;
  task.name = "fuzzed";
  task.kernel = kernel;
  accepts([&] { mtmc::complete_arguments(task, {}); });
  for (auto& argument : task.arguments)
    if (argument.role != mtmc::ArgumentRole::scalar) argument.shape = {"M", "N"};
  task.sizes = {{{{"M", 64}, {"N", 48}, {"K", 32}}}};
  return task;
}

void check_structure(const mtmc::Structure& structure, const mtmc::Kernel& kernel) {
  require(structure.kernel_id == kernel.id(), "a structure says whose it is");
  const auto lines = 1 + std::count(kernel.source.begin(), kernel.source.end(), '\n');
  std::set<std::string_view> paths;
  for (const auto& region : structure.regions) {
    require(1 <= region.first_line && region.first_line <= region.last_line && region.last_line <= lines,
            "a region's lines are lines of the text");
    require(paths.insert(region.path).second, "no two regions have the same path");
  }
  const auto document = mtmc::to_document(structure);
  require(mtmc::to_document(mtmc::from_document<mtmc::Structure>(document)) == document,
          "a structure's JSON form is read as the same structure");
}

void check_actions(const std::vector<mtmc::Action>& actions, const mtmc::Structure& structure) {
  require(!actions.empty() && actions.back() == mtmc::Action::stop(), "one may always stop");
  for (std::size_t i = 0; i + 1 < actions.size(); ++i) {
    require(structure.find_region(actions[i].region) != nullptr, "an action's region is there");
    require(i == 0 || actions[i - 1].key() < actions[i].key(), "actions are ordered by their keys");
  }
}

/// What the offline coder makes of an action; what it made is a kernel that can be looked at again.
void check_draft(const mtmc::CodingRequest& request) {
  static const mtmc::TransformCoder coder;
  const auto draft = coder.implement(request, {});
  require(draft.kernel.has_value() == (draft.failure == mtmc::DraftFailure::none),
          "a draft has a kernel or says why not");
  require(draft == coder.implement(request, {}), "the same request gives the same draft");
  if (!draft.kernel) return;
  require(draft.kernel->id() != request.seen.kernel.id(), "a draft is not its parent");
  (void)mtmc::AstRegionFinder().find(request.seen.task, *draft.kernel);
}

void check(const mtmc::Kernel& kernel, const mtmc::Device& device) {
  mtmc::ParserOptions options;
  options.cuda_launches = kernel.language == mtmc::languages::cuda;
  require(mtmc::print(mtmc::parse(kernel.source, options)) == kernel.source,
          "an unchanged tree prints as the text it was read from");

  mtmc::CodingRequest request;
  auto& seen = request.seen;
  seen.task = task_of(kernel);
  seen.device = device;
  seen.kernel = kernel;
  seen.structure = mtmc::AstRegionFinder().find(seen.task, kernel);
  check_structure(seen.structure, kernel);
  const auto space = mtmc::ActionSpace::extended();
  const auto actions = space.legal_actions(seen.structure, device);
  check_actions(actions, seen.structure);
  // More drafts take time and show little that is new; which ones they are depends on the text.
  constexpr std::size_t max_drafts = 3;
  for (std::size_t i = 0; i < std::min(actions.size(), max_drafts); ++i) {
    request.action = actions[(kernel.source.size() + i) % actions.size()];
    check_draft(request);
  }
}

} // namespace

void kernel(std::string_view input) {
  static const mtmc::Device processor{
      .name = "processor", .kind = "cpu", .compute_units = 4, .vector_bits = 256};
  static const mtmc::Device gpu{.name = "GPU",
                                .kind = "gpu",
                                .arch = "sm_90a",
                                .compute_units = 132,
                                .vector_bits = 1024,
                                .shared_memory_bytes = 232448};
  const std::string source(input);
  const bool is_cuda =
      source.find("__global__") != std::string::npos || source.find("<<<") != std::string::npos;
  if (is_cuda)
    check({mtmc::languages::cuda, source}, gpu);
  else
    check({mtmc::languages::cpp, source}, processor);
}

} // namespace mtmc_fuzz
