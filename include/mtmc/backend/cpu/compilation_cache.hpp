#pragma once

#include <mtmc/backend/cpu/cpu_program.hpp>
#include <mtmc/core/diagnostic.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What a compiler made of a text: an object or the reasons why not.
struct Compilation {
  std::shared_ptr<const CompiledObject> object{};
  /// A screen refused the text or the object.
  bool refused = false;
  /// The compiler was kept from its work, twice: another time it may get through, so this is not kept.
  bool disturbed = false;
  std::vector<Diagnostic> diagnostics{};
  std::map<std::string, double> resources{};
};

/// Compilations by content address, the latest used ones up to a number. Holds objects on disk but no
/// processes: of a program that nobody uses any more the runner is gone. May be used from several threads.
class CompilationCache {
public:
  explicit CompilationCache(std::size_t most) : most_(std::max<std::size_t>(most, 1)) {}

  /// The compilation of that key. Nothing: the caller has to compile it and then call `finish` or `abandon`.
  /// Waits while another thread compiles it; `gave_up` is set if the deadline or a stop request came first.
  [[nodiscard]] std::optional<Compilation> find_or_claim(const std::string& key, Deadline deadline,
                                                         const std::stop_token& stop, bool& gave_up) {
    std::unique_lock lock(mutex_);
    const auto ready = [&] {
      const auto found = entries_.find(key);
      return found == entries_.end() || found->second.compilation.has_value();
    };
    gave_up = !changed_.wait_until(lock, stop, deadline, ready);
    if (gave_up) return std::nullopt;
    auto& entry = entries_[key];
    entry.last_use = ++uses_;
    return entry.compilation;
  }
  void finish(const std::string& key, Compilation compilation) {
    const std::scoped_lock lock(mutex_);
    entries_[key].compilation = std::move(compilation);
    drop_oldest();
    changed_.notify_all();
  }
  void abandon(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    entries_.erase(key);
    changed_.notify_all();
  }

  /// The live program of that key, or a new one made of `object`.
  [[nodiscard]] std::shared_ptr<CpuProgram> program(const std::string& key,
                                                    const std::shared_ptr<const CompiledObject>& object,
                                                    const std::shared_ptr<const void>& backend) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(programs_, [](const auto& entry) { return entry.second.expired(); });
    auto& live = programs_[key];
    auto program = live.lock();
    if (program == nullptr) live = program = std::make_shared<CpuProgram>(object, backend);
    return program;
  }

private:
  struct Entry {
    // Nothing while somebody compiles it.
    std::optional<Compilation> compilation;
    std::uint64_t last_use = 0;
  };

  void drop_oldest() {
    while (entries_.size() > most_) {
      auto oldest = entries_.end();
      for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
        if (entry->second.compilation &&
            (oldest == entries_.end() || entry->second.last_use < oldest->second.last_use))
          oldest = entry;
      if (oldest == entries_.end()) return;
      entries_.erase(oldest);
    }
  }

  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::weak_ptr<CpuProgram>> programs_;
  std::uint64_t uses_ = 0;
};

} // namespace mtmc::detail
