#pragma once
// collection.json: what a collection was made with. All processes that add to it agree on that.

#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/kernel_evaluator_options_json.hpp>
#include <mtmc/loop/journal.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/version.hpp>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <unistd.h>

#include "collect_arguments.hpp"
#include "collect_coder.hpp"

namespace command_line {

/// Version of the file's form.
inline constexpr int collection_schema = 1;

/// All but what depends on the language of a task.
inline nlohmann::json collection_record(const CollectArguments& arguments) {
  auto types = nlohmann::json::array();
  for (const auto& type : arguments.action_space().types) types.push_back(type.id);
  return {{"schema", collection_schema},
          {"version", mtmc::version_string},
          {"coder", ShortKernels{arguments.largest_kernel}.identity()},
          {"region_finder", mtmc::AstRegionFinder{}.identity()},
          {"optimizations", types},
          {"steps", arguments.steps},
          {"samples", arguments.samples},
          {"minimum_gain", arguments.minimum_gain},
          {"languages", nlohmann::json::object()}};
}

/// What kernels of a language are judged with.
inline nlohmann::json language_record(const mtmc::KernelEvaluatorOptions& judging,
                                      mtmc::AnyEvaluator& evaluator) {
  const mtmc::Device& device = evaluator.device();
  return {{"device", device.name},
          {"arch", device.arch},
          {"compute_units", device.compute_units},
          {"software", device.software},
          {"device_digest", mtmc::device_digest(device)},
          {"evaluator", evaluator.identity()},
          {"judging", judging}};
}

/// What differs of two objects, field by field: "steps was 8 and is 6".
inline std::string record_differences(const nlohmann::json& was, const nlohmann::json& is,
                                      const std::string& before = {}) {
  std::string text;
  for (const auto& [name, value] : is.items()) {
    const auto old = was.contains(name) ? was[name] : nlohmann::json();
    if (old == value) continue;
    if (!text.empty()) text += "; ";
    text += old.is_object() && value.is_object()
                ? record_differences(old, value, before + name + '.')
                : before + name + " was " + old.dump() + " and is " + value.dump();
  }
  return text;
}

/// Enters what this process collects with into the collection's record, which is made if there is none.
/// `served_policy`: the identity of a served policy, empty where none is asked for. `languages`: by name,
/// what kernels of a language are judged with. Throws `mtmc::Error` (`mtmc.journal.003`) where the folder was
/// made with something else, and says with what.
inline void agree_on_collection(const CollectArguments& arguments, const std::string& served_policy,
                                const nlohmann::json& languages = nlohmann::json::object()) {
  auto mine = collection_record(arguments);
  if (arguments.asks_weights()) mine["weights"] = mtmc::sha256_hex(mtmc::read_file(arguments.weights));
  if (!served_policy.empty()) mine["served_policy"] = served_policy;
  mine["languages"] = languages;
  mtmc::create_folders(arguments.output);
  // Shards begin together: one at a time reads and adds.
  const std::string lock_path = arguments.output + "/collection.lock";
  const mtmc::FileDescriptor lock{::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)};
  int locked = lock ? ::flock(lock.get(), LOCK_EX) : -1;
  while (lock && locked != 0 && errno == EINTR) locked = ::flock(lock.get(), LOCK_EX);
  if (locked != 0) mtmc::detail::throw_file_error("cannot lock", lock_path, errno);

  const std::string path = arguments.output + "/collection.json";
  auto recorded = mine;
  if (::access(path.c_str(), F_OK) == 0) {
    recorded = mtmc::parse_json(mtmc::read_file(path), path);
    if (!recorded.is_object() || !recorded.value("languages", nlohmann::json::object()).is_object())
      throw mtmc::Error(mtmc::error_id::journal_other_run, "this is no record of a collection",
                        "Restore the file, or choose another output folder", path);
    // Policies may come later.
    for (const char* const name : {"weights", "served_policy"})
      if (mine.contains(name) && !recorded.contains(name)) recorded[name] = mine[name];
    // Each process knows the languages of its own tasks.
    for (const auto& [name, value] : languages.items())
      if (!recorded["languages"].contains(name)) recorded["languages"][name] = value;
    for (const auto& [name, value] : recorded["languages"].items())
      if (!languages.contains(name)) mine["languages"][name] = value;
    if (const auto different = record_differences(recorded, mine); !different.empty())
      throw mtmc::Error(mtmc::error_id::journal_other_run,
                        "the collection was begun with something else: " + different,
                        "Go on with the same, or choose another output folder", path);
  }
  mtmc::write_file_atomic(path, recorded.dump(2) + '\n');
}

} // namespace command_line
