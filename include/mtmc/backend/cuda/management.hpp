#pragma once
/// NVIDIA's management library (NVML), opened at run time: clocks, why they are lowered, heat and power. It
/// comes with the driver. Where it is missing, or does not tell something, that is not known, and no error.

#include <mtmc/core/conditions.hpp>
#include <mtmc/support/shared_library.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A device as the management library sees it. All of its answers may be absent. Not thread-safe.
class CudaManagement {
public:
  /// `uuid`: "GPU-" and 32 hexadecimal digits, with hyphens or without. Never throws for a library that is
  /// missing or a device that it does not know.
  explicit CudaManagement(const std::string& uuid, const std::string& library = "libnvidia-ml.so.1") {
    try {
      const std::vector<std::string> names{library};
      opened_.emplace(SharedLibrary::open(names, {.keep_loaded = true}));
    } catch (const SharedLibraryError&) {
      return;
    }
    const auto start = opened_->find<Code()>("nvmlInit_v2");
    const auto device_of = opened_->find<Code(const char*, Handle*)>("nvmlDeviceGetHandleByUUID");
    if (start == nullptr || device_of == nullptr || start() != success) return;
    if (device_of(with_hyphens(uuid).c_str(), &device_) != success) device_ = nullptr;
    if (device_ == nullptr) return;
    find(clock_, "nvmlDeviceGetClockInfo");
    // Its name before CUDA 12.2 comes second.
    if (!find(reasons_, "nvmlDeviceGetCurrentClocksEventReasons"))
      find(reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons");
    find(violation_, "nvmlDeviceGetViolationStatus");
    find(temperature_, "nvmlDeviceGetTemperature");
    find(power_, "nvmlDeviceGetPowerUsage");
    find(processes_, "nvmlDeviceGetComputeRunningProcesses_v3");
    find(utilisation_, "nvmlDeviceGetProcessUtilization");
  }

  /// Whether the library knows the device.
  [[nodiscard]] bool available() const noexcept { return device_ != nullptr; }

  /// The clock of the multiprocessors, and that of the memory, at this moment.
  [[nodiscard]] std::optional<double> clock_hz() const { return megahertz(1); }
  [[nodiscard]] std::optional<double> memory_clock_hz() const { return megahertz(2); }
  /// Bits of `NVML_CLOCKS_EVENT_REASON_*` that hold at this moment.
  [[nodiscard]] std::optional<std::uint64_t> clock_event_reasons() const {
    unsigned long long bits = 0;
    return ask(reasons_, &bits) ? std::optional<std::uint64_t>(bits) : std::nullopt;
  }
  /// Seconds, since some moment before, in which the clock was lowered for power, or for heat.
  [[nodiscard]] std::optional<double> seconds_short_of_power() const { return violation(0); }
  [[nodiscard]] std::optional<double> seconds_too_hot() const { return violation(1); }
  [[nodiscard]] std::optional<double> celsius() const {
    unsigned degrees = 0;
    return ask(temperature_, 0, &degrees) ? std::optional<double>(degrees) : std::nullopt;
  }
  [[nodiscard]] std::optional<double> watts() const {
    unsigned milliwatts = 0;
    return ask(power_, &milliwatts) ? std::optional<double>(milliwatts * 1e-3) : std::nullopt;
  }
  /// How many processes but this one computed since the last call, or within the last second; only where the
  /// library shows this process, too: in a container it may count by other numbers.
  [[nodiscard]] std::optional<int> other_processes() {
    if (!own_shown_) own_shown_ = shows_this_process();
    if (!*own_shown_) return std::nullopt;
    constexpr unsigned room = 64;
    constexpr unsigned computing = 5;
    std::array<Utilisation, room> samples{};
    unsigned count = room;
    const auto now = static_cast<unsigned long long>(std::chrono::duration_cast<std::chrono::microseconds>(
                                                         std::chrono::system_clock::now().time_since_epoch())
                                                         .count());
    const auto since = std::max(last_sample_, now - 1'000'000);
    constexpr Code none_found = 6;
    if (utilisation_ == nullptr) return std::nullopt;
    const Code code = utilisation_(device_, samples.data(), &count, since);
    if (code == none_found) return 0;
    if (code != success) return std::nullopt;
    std::vector<unsigned> others;
    for (unsigned i = 0; i < std::min(count, room); ++i) {
      last_sample_ = std::max(last_sample_, samples[i].time);
      if (samples[i].process == static_cast<unsigned>(::getpid()) || samples[i].percent < computing) continue;
      if (std::find(others.begin(), others.end(), samples[i].process) == others.end())
        others.push_back(samples[i].process);
    }
    return static_cast<int>(others.size());
  }

private:
  using Code = int;
  using Handle = void*;
  static constexpr Code success = 0;
  struct ViolationTime {
    unsigned long long reference = 0;
    unsigned long long nanoseconds = 0;
  };
  struct Process {
    unsigned id = 0;
    unsigned long long memory = 0;
    unsigned gpu_instance = 0;
    unsigned compute_instance = 0;
  };
  struct Utilisation {
    unsigned process = 0;
    unsigned long long time = 0;
    /// Of the multiprocessors' time, memory's, encoder's and decoder's.
    unsigned percent = 0;
    unsigned memory = 0;
    unsigned encoder = 0;
    unsigned decoder = 0;
  };

  /// As the library writes them: groups of 8, 4, 4, 4 and 12 digits.
  [[nodiscard]] static std::string with_hyphens(std::string uuid) {
    constexpr std::size_t prefix = 4;
    std::erase(uuid, '-');
    for (const std::size_t place : {prefix - 1, prefix + 8, prefix + 13, prefix + 18, prefix + 23})
      if (place < uuid.size()) uuid.insert(place, "-");
    return uuid;
  }
  template <class F> bool find(F*& function, const char* name) {
    function = opened_->template find<F>(name);
    return function != nullptr;
  }
  template <class F, class... Arguments> [[nodiscard]] bool ask(F* function, Arguments... arguments) const {
    return function != nullptr && function(device_, arguments...) == success;
  }
  [[nodiscard]] std::optional<double> megahertz(int of) const {
    unsigned value = 0;
    return ask(clock_, of, &value) ? std::optional<double>(1e6 * value) : std::nullopt;
  }
  [[nodiscard]] std::optional<double> violation(int policy) const {
    ViolationTime time;
    return ask(violation_, policy, &time)
               ? std::optional<double>(1e-9 * static_cast<double>(time.nanoseconds))
               : std::nullopt;
  }
  [[nodiscard]] bool shows_this_process() const {
    constexpr unsigned room = 64;
    std::array<Process, room> processes{};
    unsigned count = room;
    if (!ask(processes_, &count, processes.data())) return false;
    for (unsigned i = 0; i < std::min(count, room); ++i)
      if (processes[i].id == static_cast<unsigned>(::getpid())) return true;
    return false;
  }

  std::optional<SharedLibrary> opened_;
  Handle device_ = nullptr;
  Code (*clock_)(Handle, int, unsigned*) = nullptr;
  Code (*reasons_)(Handle, unsigned long long*) = nullptr;
  Code (*violation_)(Handle, int, ViolationTime*) = nullptr;
  Code (*temperature_)(Handle, int, unsigned*) = nullptr;
  Code (*power_)(Handle, unsigned*) = nullptr;
  Code (*processes_)(Handle, unsigned*, Process*) = nullptr;
  Code (*utilisation_)(Handle, Utilisation*, unsigned*, unsigned long long) = nullptr;
  std::optional<bool> own_shown_{};
  unsigned long long last_sample_ = 0;
};

/// The reasons of heat and power, as bits and by the names that the management library gives them. The last
/// is set together with others that say why, where they are known.
inline constexpr std::array<std::pair<std::uint64_t, const char*>, 5> throttle_reasons{
    {{0x4, "sw_power_cap"},
     {0x20, "sw_thermal_slowdown"},
     {0x40, "hw_thermal_slowdown"},
     {0x80, "hw_power_brake_slowdown"},
     {0x8, "hw_slowdown"}}};

/// Names of those among `bits`.
[[nodiscard]] inline std::vector<std::string> throttle_reasons_of(std::uint64_t bits) {
  constexpr std::uint64_t slowdown = 0x8;
  constexpr std::uint64_t says_why = 0x40 | 0x80;
  if ((bits & says_why) != 0) bits &= ~slowdown;
  std::vector<std::string> reasons;
  for (const auto& [bit, name] : throttle_reasons)
    if ((bits & bit) != 0) reasons.emplace_back(name);
  return reasons;
}

/// Reads a GPU's conditions. The library is opened when first asked, which takes it some milliseconds. May be
/// used from several threads.
class CudaConditionsWatch {
public:
  /// As for `CudaManagement`.
  explicit CudaConditionsWatch(std::string uuid, std::string library = "libnvidia-ml.so.1")
      : uuid_(std::move(uuid)), library_(std::move(library)) {}

  /// A reason counts one event with each reading at which it holds, or before which the clock was lowered for
  /// longer than a millisecond since the reading before.
  [[nodiscard]] Conditions conditions() {
    const std::scoped_lock lock(mutex_);
    if (!management_) management_.emplace(uuid_, library_);
    Conditions result;
    if (!management_->available()) return result;
    count_events();
    result.throttle_events = events_;
    result.clock_hz = management_->clock_hz();
    const auto note = [&](const char* key, std::optional<double> value) {
      if (value) result.readings[key] = *value;
    };
    if (const auto hertz = management_->memory_clock_hz()) note(environment_key::memory_clock, *hertz * 1e-6);
    note(environment_key::temperature, management_->celsius());
    note(environment_key::power, management_->watts());
    if (const auto others = management_->other_processes()) note(environment_key::other_processes, *others);
    return result;
  }

private:
  void count_events() {
    const auto bits = management_->clock_event_reasons();
    const auto power = management_->seconds_short_of_power();
    const auto heat = management_->seconds_too_hot();
    // What was counted and never happened is told, too: its first event would else not be seen to be new.
    if (bits || power || heat)
      for (const auto& [bit, name] : throttle_reasons) events_.try_emplace(name, 0);
    bool for_power = false;
    bool for_heat = false;
    for (const auto& reason : throttle_reasons_of(bits.value_or(0))) {
      ++events_[reason];
      (reason.find("thermal") != std::string::npos ? for_heat : for_power) = true;
    }
    constexpr double noticeable = 1e-3;
    if (power && power_before_ && *power - *power_before_ > noticeable && !for_power)
      ++events_["sw_power_cap"];
    if (heat && heat_before_ && *heat - *heat_before_ > noticeable && !for_heat)
      ++events_["sw_thermal_slowdown"];
    power_before_ = power;
    heat_before_ = heat;
  }

  std::string uuid_;
  std::string library_;
  std::mutex mutex_;
  std::optional<CudaManagement> management_;
  std::map<std::string, std::int64_t> events_;
  std::optional<double> power_before_;
  std::optional<double> heat_before_;
};

} // namespace mtmc::detail
