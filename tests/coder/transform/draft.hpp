#pragma once
/// Short ways to ask the offline coder for drafts.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_builder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/coder/transform.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::testing {

/// A processor with two units and usual caches.
[[nodiscard]] inline Device two_cores() {
  Device device;
  device.kind = "cpu";
  device.compute_units = 2;
  device.vector_bits = 256;
  device.caches = {{1, 32 * 1024}, {2, 512 * 1024}, {3, 32 * 1024 * 1024}};
  return device;
}

/// One of the repository's CPU tasks.
[[nodiscard]] inline Task cpu_task(std::string_view name) {
  return load_task(std::string(MTMC_REPOSITORY) + "/examples/tasks/cpu/" + std::string(name) + ".json");
}

/// Whether a text stands in a source.
[[nodiscard]] inline bool has(const std::string& source, std::string_view text) {
  return source.find(text) != std::string::npos;
}

/// Whether an action such as "tiling|gemm/i" is on offer for a kernel.
[[nodiscard]] inline bool is_offered(const Task& task, const Kernel& kernel, const std::string& key,
                                     const Device& device = two_cores()) {
  const Structure structure = AstRegionFinder{}.find(task, kernel);
  const auto actions = ActionSpace::extended().legal_actions(structure, device);
  return std::any_of(actions.begin(), actions.end(),
                     [&](const Action& action) { return action.key() == key; });
}

/// The draft for an action such as "tiling|gemm/i" on a kernel of a task.
[[nodiscard]] inline Draft draft_of(const Task& task, const Kernel& kernel, std::string_view key,
                                    int sample = 0, const Device& device = two_cores()) {
  CodingRequest request;
  request.seen.task = task;
  request.seen.device = device;
  request.seen.kernel = kernel;
  request.action.kind = Action::Kind::optimize;
  request.action.optimization = std::string(key.substr(0, key.find('|')));
  request.action.region = std::string(key.substr(key.find('|') + 1));
  request.sample = sample;
  return TransformCoder{}.implement(request, {});
}
[[nodiscard]] inline Draft draft_of(const Task& task, std::string_view key, int sample = 0) {
  return draft_of(task, task.kernel, key, sample);
}

/// The source after a sequence of actions, "key" or "key@sample". Throws std::runtime_error with the message
/// of the first that is declined.
[[nodiscard]] inline std::string source_after(const Task& task, const std::vector<std::string>& keys,
                                              const Device& device = two_cores()) {
  Kernel kernel = task.kernel;
  for (const std::string& key : keys) {
    const std::size_t at = key.rfind('@');
    const int sample = at == std::string::npos ? 0 : std::stoi(key.substr(at + 1));
    Draft draft = draft_of(task, kernel, key.substr(0, at), sample, device);
    if (!draft.kernel) throw std::runtime_error(key + ": " + draft.message);
    kernel = std::move(*draft.kernel);
  }
  return kernel.source;
}

/// A random sequence of up to `steps` actions that are on offer, each carried out; declined ones are left
/// out.
struct RandomSequence {
  std::vector<std::string> keys{};
  std::string source{};
};

[[nodiscard]] inline RandomSequence random_sequence(const Task& task, std::uint64_t seed, int steps,
                                                    const Device& device = two_cores()) {
  RandomSequence result;
  Kernel kernel = task.kernel;
  std::uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
  const auto below = [&state](std::size_t count) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<std::size_t>(state >> 11) % count;
  };
  for (int step = 0; step < steps; ++step) {
    const Structure structure = AstRegionFinder{}.find(task, kernel);
    const auto legal = ActionSpace::extended().legal_actions(structure, device);
    if (legal.size() < 2) break;
    // first the optimisation, then the region: otherwise the many regions of one type would crowd out the
    // rest
    std::vector<std::string> types;
    for (const Action& action : legal)
      if (action.kind == Action::Kind::optimize && (types.empty() || types.back() != action.optimization))
        types.push_back(action.optimization);
    const std::string type = types[below(types.size())];
    std::vector<std::string> keys;
    for (const Action& action : legal)
      if (action.optimization == type) keys.push_back(action.key());
    const std::string key = keys[below(keys.size())];
    const int sample = static_cast<int>(below(3));
    Draft draft = draft_of(task, kernel, key, sample, device);
    if (!draft.kernel) continue;
    kernel = std::move(*draft.kernel);
    result.keys.push_back(key + '@' + std::to_string(sample));
  }
  result.source = kernel.source;
  return result;
}

/// The keys of a sequence, for messages.
[[nodiscard]] inline std::string joined(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : "  ") + key;
  return text;
}

} // namespace mtmc::testing
