#pragma once
/// What others do on this machine's processors while a kernel is timed.

#include <mtmc/backend/cpu/device.hpp>
#include <mtmc/core/conditions.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <sched.h>
#include <string>
#include <string_view>
#include <time.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Processor seconds since the machine was started.
struct ProcessorUse {
  /// Spent on any work.
  double busy = 0;
  /// Given to others by the hypervisor.
  double stolen = 0;
};

/// Reads a text like /proc/stat, whose counts are in units of `tick` seconds: the sum over `processors`
/// (ascending), or the line for all where that is empty. Nothing if a line is missing or, as in some
/// sandboxes, nothing is counted at all.
[[nodiscard]] inline std::optional<ProcessorUse>
read_processor_use(std::string_view text, const std::vector<int>& processors, double tick) {
  // user nice system idle iowait irq softirq steal; what guests use is part of user and nice.
  std::array<std::int64_t, 8> sums{};
  std::size_t found = 0;
  while (text.starts_with("cpu")) {
    auto line = text.substr(3, text.find('\n') - 3);
    text.remove_prefix(std::min(text.size(), line.size() + 4));
    bool wanted = processors.empty();
    if (!line.starts_with(' '))
      wanted =
          std::binary_search(processors.begin(), processors.end(), static_cast<int>(leading_number(line)));
    else if (!wanted)
      continue;
    line.remove_prefix(std::min(line.size(), line.find(' ')));
    if (!wanted) continue;
    for (auto& sum : sums) {
      line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
      sum += leading_number(line);
      line.remove_prefix(std::min(line.size(), line.find(' ')));
    }
    ++found;
    if (processors.empty()) break;
  }
  const auto busy = sums[0] + sums[1] + sums[2] + sums[5] + sums[6];
  if (found != std::max<std::size_t>(1, processors.size()) || busy <= 0) return std::nullopt;
  return ProcessorUse{static_cast<double>(busy) * tick, static_cast<double>(sums[7]) * tick};
}

/// Files that count how often a processor was throttled, each package and each core once, by what is counted.
/// `folder` is like /sys/devices/system/cpu. None on most virtual machines.
[[nodiscard]] inline std::vector<std::pair<std::string, std::string>>
find_throttle_files(const std::string& folder, const std::vector<int>& processors) {
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> seen;
  for (const int processor : processors) {
    const auto of = folder + "/cpu" + std::to_string(processor);
    auto place = read_system_file(of + "/topology/physical_package_id");
    for (const std::string what : {"package", "core"}) {
      if (what == "core") place += ' ' + read_system_file(of + "/topology/core_id");
      if (std::find(seen.begin(), seen.end(), place) != seen.end()) continue;
      auto file = of + "/thermal_throttle/" + what + "_throttle_count";
      if (::access(file.c_str(), R_OK) != 0) continue;
      seen.push_back(place);
      files.emplace_back(what, std::move(file));
    }
  }
  return files;
}

/// Adds up what happens on the processors during some stretches of time. May be used from several threads.
///
/// `read` took 14 us on a virtual machine with two processors and 8 to 12 us on one with sixteen, of which
/// the system's text takes most; `conditions` takes some microseconds for each throttle count that there is.
class ConditionsWatch {
public:
  /// Where the system tells; another folder for tests.
  explicit ConditionsWatch(std::string statistics = "/proc/stat",
                           std::string folder = "/sys/devices/system/cpu")
      : statistics_(std::move(statistics)), folder_(std::move(folder)), usable_(usable_processors()),
        throttle_files_(find_throttle_files(folder_, usable_)) {
    if (const auto per_second = ::sysconf(_SC_CLK_TCK); per_second > 0)
      tick_ = 1 / static_cast<double>(per_second);
    const auto online = ::sysconf(_SC_NPROCESSORS_ONLN);
    // The line for all is truncated once, not once a processor.
    if (online > static_cast<long>(usable_.size())) counted_ = usable_;
    constexpr std::size_t longest_line = 256;
    const auto lines = counted_.empty() ? 1 : static_cast<std::size_t>(counted_.back()) + 2;
    text_bytes_ = lines * longest_line;
  }

  /// One end of a stretch.
  struct Reading {
    std::chrono::steady_clock::time_point at{};
    std::optional<ProcessorUse> use{};
    /// Processor seconds of those who are not others.
    std::optional<double> own{};
  };
  /// `timed_seconds` is the processor time so far of the process that is timed; its change and that of the
  /// calling thread are not others' use.
  [[nodiscard]] Reading read(std::optional<double> timed_seconds) const {
    Reading reading;
    reading.at = std::chrono::steady_clock::now();
    timespec own{};
    if (timed_seconds && ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own) == 0)
      reading.own =
          *timed_seconds + static_cast<double>(own.tv_sec) + 1e-9 * static_cast<double>(own.tv_nsec);
    reading.use = read_processor_use(front_of_statistics(), counted_, tick_);
    return reading;
  }

  /// Counts a stretch whose ends were read by the same thread.
  void add(const Reading& begin, const Reading& end) {
    if (!begin.use || !end.use || !begin.own || !end.own) return;
    const std::scoped_lock lock(mutex_);
    watched_ += std::chrono::duration<double>(end.at - begin.at).count();
    others_ += end.use->busy - begin.use->busy - (*end.own - *begin.own);
    stolen_ += end.use->stolen - begin.use->stolen;
    variance_ += variance_of_stretch();
  }

  /// The sums, and what the system says now.
  [[nodiscard]] Conditions conditions() const {
    Conditions result;
    result.processors = static_cast<int>(usable_.size());
    {
      const std::scoped_lock lock(mutex_);
      result.watched_seconds = watched_;
      result.counter_variance = variance_;
      if (watched_ > 0) {
        result.others_seconds = others_;
        result.stolen_seconds = stolen_;
      }
    }
    for (const auto& [what, file] : throttle_files_)
      result.throttle_events[what] += leading_number(read_system_file(file));
    const auto clock = folder_ + "/cpu" + std::to_string(std::max(0, ::sched_getcpu()));
    if (const auto kilohertz = leading_number(read_system_file(clock + "/cpufreq/scaling_cur_freq"));
        kilohertz > 0)
      result.clock_hz = 1e3 * static_cast<double>(kilohertz);
    return result;
  }

private:
  // The first bytes of the statistics, in which the processors stand.
  [[nodiscard]] std::string front_of_statistics() const {
    std::string text(text_bytes_, '\0');
    const int file = ::open(statistics_.c_str(), O_RDONLY | O_CLOEXEC);
    const auto size = file < 0 ? 0 : ::read(file, text.data(), text.size());
    if (file >= 0) ::close(file);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
  }

  // Of the difference of two truncated counts: each line is cut to whole ticks, and each processor counts
  // whole ticks of its timer (4 ms with the usual 250 Hz). Two cuts, each uniform over its width, make a
  // sixth of the width squared.
  [[nodiscard]] double variance_of_stretch() const noexcept {
    constexpr double timer_tick = 4e-3;
    const auto lines = static_cast<double>(std::max<std::size_t>(1, counted_.size()));
    return (lines * tick_ * tick_ + static_cast<double>(usable_.size()) * timer_tick * timer_tick) / 6;
  }

  std::string statistics_;
  std::string folder_;
  std::vector<int> usable_;
  // Whose lines are added up; none: the line for all.
  std::vector<int> counted_;
  std::vector<std::pair<std::string, std::string>> throttle_files_;
  double tick_ = 0.01;
  std::size_t text_bytes_ = 0;
  mutable std::mutex mutex_;
  double watched_ = 0;
  double others_ = 0;
  double stolen_ = 0;
  double variance_ = 0;
};

} // namespace mtmc::detail
