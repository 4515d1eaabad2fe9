// What is read of Python files, how fast, and how it compares with Python's own parser:
//
//   bench_python_texts FOLDER...      every .py below, KernelBench or TritonBench in a checkout of yours
//
// Without folders, of the files of this repository. Prints milliseconds per 1,000 lines, how many trees agree
// with ast's, what the forwards of `Model` are made of, and what Triton kernels do.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/python.hpp>
#include <mtmc/support/file_io.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../analysis/python/ast_comparison.hpp"

namespace {

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".py") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::size_t opaque_nodes(const mtmc::SyntaxNode& node) {
  std::size_t count = node.kind == mtmc::NodeKind::opaque ? 1 : 0;
  for (const mtmc::SyntaxNode& child : node.children) count += opaque_nodes(child);
  return count;
}

template <class Key> std::string told(const std::map<Key, std::size_t>& counts) {
  std::vector<std::pair<std::size_t, std::string>> sorted;
  for (const auto& [key, count] : counts) {
    if constexpr (std::is_same_v<Key, std::string>)
      sorted.emplace_back(count, key);
    else
      sorted.emplace_back(count, std::to_string(key));
  }
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text;
  for (const auto& [count, key] : sorted)
    text += (text.empty() ? "" : ", ") + key + ' ' + std::to_string(count);
  return text;
}

bool report(const std::string& folder) {
  const auto files = files_of(folder);
  std::size_t lines = 0, opaque = 0, kernels = 0, loops = 0, launches = 0;
  std::size_t regions = 0, actions = 0, without_action = 0;
  double seconds = 0, region_seconds = 0;
  const auto space = mtmc::ActionSpace::extended();
  mtmc::Device gpu;
  gpu.kind = "gpu";
  std::map<std::string, std::size_t> chains, operations;
  std::map<std::size_t, std::size_t> sizes;
  for (const std::string& file : files) {
    const std::string text = mtmc::read_file(file);
    const auto begin = std::chrono::steady_clock::now();
    const mtmc::SyntaxNode tree = mtmc::parse_python(text);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    lines += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    opaque += opaque_nodes(tree);
    for (const mtmc::ForwardGraph& graph : mtmc::forward_graphs(tree)) {
      if (graph.module != "Model") continue;
      ++chains[mtmc::operator_chain(graph)];
      ++sizes[static_cast<std::size_t>(
          std::count_if(graph.operators.begin(), graph.operators.end(), [](const mtmc::ForwardOperator& one) {
            return one.kind != mtmc::OperatorClass::view && one.kind != mtmc::OperatorClass::creation &&
                   one.kind != mtmc::OperatorClass::gather;
          }))];
    }
    const auto before = std::chrono::steady_clock::now();
    const auto structure = mtmc::PythonRegionFinder{}.find({}, {mtmc::languages::triton, text, {}});
    const auto legal = space.legal_actions(structure, gpu);
    region_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    regions += structure.regions.size();
    actions += legal.size() - 1; // without the one that stops
    without_action += legal.size() == 1 ? 1 : 0;
    const auto triton = mtmc::triton_text(tree, text);
    kernels += triton.kernels.size();
    launches += triton.launches.size();
    for (const mtmc::TritonKernel& kernel : triton.kernels) {
      loops += kernel.loops.size();
      for (const mtmc::TritonOperation& one : kernel.operations) ++operations[one.name];
    }
  }
  std::printf("%s: %zu files, %zu lines, %.2f ms per 1,000 lines, %zu statements not understood\n",
              folder.c_str(), files.size(), lines,
              lines == 0 ? 0.0 : 1e6 * seconds / static_cast<double>(lines), opaque);
  std::printf("  regions and actions in %.2f ms per 1,000 lines: %zu and %zu; %zu files without an action\n",
              lines == 0 ? 0.0 : 1e6 * region_seconds / static_cast<double>(lines), regions, actions,
              without_action);
  const auto compared = mtmc_test::compare_with_ast(files);
  if (compared.have_python)
    std::printf("  of %zu trees %zu differ from ast's\n", compared.files, compared.differences.size());
  for (const std::string& difference : compared.differences) std::printf("  %s\n", difference.c_str());
  if (!chains.empty())
    std::printf("  forwards of Model: %s\n  operators but views, gathers and what is created: %s\n",
                told(chains).c_str(), told(sizes).c_str());
  if (kernels > 0)
    std::printf("  %zu Triton functions with %zu loops, %zu launches: %s\n", kernels, loops, launches,
                told(operations).c_str());
  return compared.differences.empty();
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::string> folders(argv + 1, argv + argc);
  if (folders.empty())
    folders = {std::string(MTMC_REPOSITORY) + "/examples", std::string(MTMC_REPOSITORY) + "/tests"};
  bool same = true;
  for (const std::string& folder : folders) same = report(folder) && same;
  return same ? 0 : 1;
}
