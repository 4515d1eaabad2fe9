#pragma once
/// What the system tells about its processor.

#include <mtmc/core/device.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <sched.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#if defined(__aarch64__)
#include <sys/prctl.h>
#endif

namespace mtmc::inline MTMC_ABI::detail {

/// Content of a small file of the system without blanks at its end; empty if it cannot be read.
[[nodiscard]] inline std::string read_system_file(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const std::exception&) {
    return {};
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\0')) text.pop_back();
  return text;
}

/// The number at the front of `text`; 0 if there is none.
[[nodiscard]] inline std::int64_t leading_number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Number of processors in a list such as "0-3,8,10-11".
[[nodiscard]] inline int count_processors(std::string_view list) {
  std::int64_t count = 0;
  while (!list.empty()) {
    const auto part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    const auto dash = part.find('-');
    count += dash == std::string_view::npos
                 ? 1
                 : leading_number(part.substr(dash + 1)) - leading_number(part.substr(0, dash)) + 1;
  }
  return static_cast<int>(std::clamp<std::int64_t>(count, 1, 1 << 20));
}

/// Value of the first "key : value" line of a text like /proc/cpuinfo; empty if there is none.
[[nodiscard]] inline std::string_view cpuinfo_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto line = take_line(text);
    if (!line.starts_with(key)) continue;
    const auto colon = line.find_first_not_of(" \t", key.size());
    if (colon == std::string_view::npos || line[colon] != ':') continue;
    const auto value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string_view::npos ? std::string_view{} : line.substr(value);
  }
  return {};
}

/// Data and unified caches as sysfs describes them below `folder` (/sys/devices/system/cpu/cpu0/cache),
/// nearest first; none if the folder is missing, as in some containers. At most `cores` share a cache.
[[nodiscard]] inline std::vector<CacheLevel> read_caches(const std::string& folder, int cores) {
  std::vector<CacheLevel> caches;
  for (int index = 0; index < 16; ++index) {
    const auto entry = folder + "/index" + std::to_string(index) + '/';
    const auto type = read_system_file(entry + "type");
    if (type.empty()) break;
    if (type == "Instruction") continue;
    CacheLevel cache;
    cache.level = static_cast<int>(leading_number(read_system_file(entry + "level")));
    const auto size = read_system_file(entry + "size");
    cache.bytes = leading_number(size);
    if (size.ends_with('K')) cache.bytes <<= 10;
    if (size.ends_with('M')) cache.bytes <<= 20;
    if (const auto line = leading_number(read_system_file(entry + "coherency_line_size")); line > 0)
      cache.line_bytes = static_cast<int>(line);
    cache.shared_by = std::min(count_processors(read_system_file(entry + "shared_cpu_list")), cores);
    if (cache.level > 0 && cache.bytes > 0) caches.push_back(std::move(cache));
  }
  std::sort(caches.begin(), caches.end(),
            [](const CacheLevel& a, const CacheLevel& b) { return a.level < b.level; });
  return caches;
}

/// The caches by the C library, which asks the processor itself. It does not know who shares them: the last
/// level is taken to be shared by all, the others by nobody.
[[nodiscard]] inline std::vector<CacheLevel> ask_for_caches(int cores) {
  constexpr std::array<std::pair<int, int>, 3> names{{{_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL1_DCACHE_LINESIZE},
                                                      {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL2_CACHE_LINESIZE},
                                                      {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL3_CACHE_LINESIZE}}};
  std::vector<CacheLevel> caches;
  int level = 0;
  for (const auto& [size, line] : names) {
    ++level;
    const auto bytes = ::sysconf(size);
    if (bytes <= 0) continue;
    CacheLevel cache;
    cache.level = level;
    cache.bytes = bytes;
    if (const auto line_bytes = ::sysconf(line); line_bytes > 0)
      cache.line_bytes = static_cast<int>(line_bytes);
    caches.push_back(std::move(cache));
  }
  if (!caches.empty() && caches.back().level > 2) caches.back().shared_by = cores;
  return caches;
}

/// Processors a container's quota is worth, rounded up; 0 without a quota. `quota` and `period` are in the
/// same unit.
[[nodiscard]] inline int quota_in_processors(std::int64_t quota, std::int64_t period) {
  return quota > 0 && period > 0 ? static_cast<int>((quota + period - 1) / period) : 0;
}

/// Numbers of the processors this process may use by its affinity, ascending; none if the system does not
/// tell.
[[nodiscard]] inline std::vector<int> usable_processors() {
  std::vector<int> numbers;
  for (std::size_t most = 1024; numbers.empty() && most <= (std::size_t{1} << 18); most *= 2) {
    cpu_set_t* const set = CPU_ALLOC(most);
    if (set == nullptr) break;
    const auto bytes = CPU_ALLOC_SIZE(most);
    if (::sched_getaffinity(0, bytes, set) == 0)
      for (std::size_t number = 0; number < most; ++number)
        if (CPU_ISSET_S(number, bytes, set)) numbers.push_back(static_cast<int>(number));
    CPU_FREE(set);
  }
  return numbers;
}

/// Processors this process may use: its affinity, and no more than its container's quota.
[[nodiscard]] inline int usable_cores() {
  auto cores = static_cast<int>(usable_processors().size());
  if (cores == 0) cores = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  int quota = 0;
  if (const auto version2 = read_system_file("/sys/fs/cgroup/cpu.max"); !version2.empty()) {
    const auto blank = version2.find(' ');
    if (blank != std::string::npos)
      quota = quota_in_processors(leading_number(version2),
                                  leading_number(std::string_view(version2).substr(blank + 1)));
  } else {
    quota = quota_in_processors(leading_number(read_system_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")),
                                leading_number(read_system_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us")));
  }
  return quota > 0 ? std::min(cores, quota) : cores;
}

/// Bytes of memory this process may use: the machine's, and no more than its container's limit.
[[nodiscard]] inline std::int64_t usable_memory() {
  std::int64_t bytes = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  for (const char* const file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (const auto limit = leading_number(read_system_file(file)); limit > 0) bytes = std::min(bytes, limit);
  return bytes;
}

/// Marketing name of an Arm core by its implementer and part numbers; empty if unknown.
[[nodiscard]] inline std::string_view arm_core_name(std::string_view implementer, std::string_view part) {
  struct Core {
    std::string_view implementer;
    std::string_view part;
    std::string_view name;
  };
  constexpr std::array<Core, 12> cores{{{"0x41", "0xd08", "Arm Cortex-A72"},
                                        {"0x41", "0xd0b", "Arm Cortex-A76"},
                                        {"0x41", "0xd0c", "Arm Neoverse N1"},
                                        {"0x41", "0xd40", "Arm Neoverse V1"},
                                        {"0x41", "0xd49", "Arm Neoverse N2"},
                                        {"0x41", "0xd4f", "Arm Neoverse V2"},
                                        {"0x41", "0xd83", "Arm Neoverse V3"},
                                        {"0x41", "0xd8e", "Arm Neoverse N3"},
                                        {"0x46", "0x001", "Fujitsu A64FX"},
                                        {"0x48", "0xd01", "HiSilicon TaiShan v110"},
                                        {"0xc0", "0xac3", "Ampere-1"},
                                        {"0xc0", "0xac4", "Ampere-1A"}}};
  for (const auto& core : cores)
    if (core.implementer == implementer && core.part == part) return core.name;
  return {};
}

/// Fills in what a text like /proc/cpuinfo tells: name, clock, instruction set extensions, vector width.
inline void read_cpuinfo(std::string_view text, Device& device) {
  // The kernel's word, and the compiler's (and coders') word for the same extension.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 24> extensions{
      {{"sse4_2", "sse4.2"},
       {"avx", "avx"},
       {"avx2", "avx2"},
       {"fma", "fma"},
       {"f16c", "f16c"},
       {"avx_vnni", "avxvnni"},
       {"avx512f", "avx512f"},
       {"avx512bw", "avx512bw"},
       {"avx512dq", "avx512dq"},
       {"avx512vl", "avx512vl"},
       {"avx512_vnni", "avx512vnni"},
       {"avx512_bf16", "avx512bf16"},
       {"avx512_fp16", "avx512fp16"},
       {"amx_tile", "amx-tile"},
       {"amx_bf16", "amx-bf16"},
       {"amx_int8", "amx-int8"},
       {"asimd", "neon"},
       {"asimdhp", "fp16"},
       {"asimddp", "dotprod"},
       {"bf16", "bf16"},
       {"i8mm", "i8mm"},
       {"sve", "sve"},
       {"sve2", "sve2"},
       {"sme", "sme"}}};
  device.name = cpuinfo_value(text, "model name");
  if (device.name.empty())
    device.name = arm_core_name(cpuinfo_value(text, "CPU implementer"), cpuinfo_value(text, "CPU part"));
  const auto flags = std::string(cpuinfo_value(text, "flags")) + std::string(cpuinfo_value(text, "Features"));
  for (const auto& [word, name] : extensions)
    if (has_word(flags, word)) device.features.emplace_back(name);
  const auto has = [&](std::string_view word) { return has_word(flags, word); };
  if (!flags.empty()) device.vector_bits = has("avx512f") ? 512 : has("avx") ? 256 : 128;
  const auto megahertz = cpuinfo_value(text, "cpu MHz");
  double value = 0;
  std::from_chars(megahertz.data(), megahertz.data() + megahertz.size(), value);
  device.clock_hz = 1e6 * value;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

/// The processor this process runs on, with as many compute units as it may use. What the system does not
/// tell (in a container, say) stays 0 or empty. Measures nothing.
[[nodiscard]] inline Device discover_cpu_device() {
  Device device;
  device.kind = "cpu";
  device.compute_units = detail::usable_cores();
  device.memory_bytes = detail::usable_memory();
  detail::read_cpuinfo(detail::read_system_file("/proc/cpuinfo"), device);
#if defined(__x86_64__)
  device.arch = "x86-64";
#elif defined(__aarch64__)
  device.arch = "aarch64";
  // Bits 0 to 15 of the answer are the vector length in bytes.
  if (const int length = ::prctl(PR_SVE_GET_VL); length > 0) device.vector_bits = 8 * (length & 0xffff);
#endif
  if (device.name.empty()) device.name = device.arch + " processor";
  for (const auto& feature : device.features) device.arch += ' ' + feature;
  if (const auto hertz = 1000 * detail::leading_number(detail::read_system_file(
                                    "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"));
      hertz > 0)
    device.clock_hz = static_cast<double>(hertz);
  device.caches = detail::read_caches("/sys/devices/system/cpu/cpu0/cache", device.compute_units);
  if (device.caches.empty()) device.caches = detail::ask_for_caches(device.compute_units);
  const auto release = detail::read_system_file("/proc/sys/kernel/osrelease");
  if (!release.empty()) device.software["linux"] = release;
  return device;
}

} // namespace mtmc
