#pragma once
/// Definitions of support/process/process_family.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/process/process_family.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dirent.h>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The numbers among the entries of a folder of /proc: processes, or threads.
[[nodiscard]] inline std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr)
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
      numbers.push_back(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
  return numbers;
}

/// The processes that one has started and that have not been reaped.
[[nodiscard]] inline std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const auto threads = "/proc/" + std::to_string(pid) + "/task/";
  for (const pid_t thread : numbers_in(threads)) {
    std::ifstream file(threads + std::to_string(thread) + "/children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

/// Whether there is such a process and it is more than a zombie.
[[nodiscard]] inline bool has_not_ended(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text, '\0')) return false;
  // The name in parentheses may contain anything, parentheses and blanks included.
  const auto after_name = text.rfind(") ");
  if (after_name == std::string::npos || after_name + 2 >= text.size()) return false;
  const char state = text[after_name + 2];
  return state != 'Z' && state != 'X';
}

MTMC_INLINE void visit_family(pid_t leader, const std::function<void(pid_t)>& visit) {
  std::vector<pid_t> family{leader};
  std::size_t visited = 0;
  const auto add = [&](pid_t pid) {
    if (std::find(family.begin(), family.end(), pid) == family.end()) family.push_back(pid);
  };
  const auto visit_new = [&] {
    for (; visited < family.size(); ++visited) {
      const pid_t pid = family[visited];
      visit(pid);
      for (const pid_t child : children_of(pid)) add(child);
    }
  };
  visit_new();
  if (::getsid(leader) != leader) return;
  for (const pid_t pid : numbers_in("/proc"))
    if (::getsid(pid) == leader) add(pid);
  visit_new();
}

MTMC_INLINE int limit_process(pid_t pid, __rlimit_resource resource, std::uint64_t value) noexcept {
  rlimit limit{};
  if (::prlimit(pid, resource, nullptr, &limit) != 0) return errno;
  if (value < limit.rlim_max) limit.rlim_max = value;
  limit.rlim_cur = limit.rlim_max;
  return ::prlimit(pid, resource, &limit, nullptr) == 0 ? 0 : errno;
}

MTMC_INLINE int limit_family(pid_t pid, __rlimit_resource resource, std::uint64_t value) {
  // A process that is limited starts none that is not.
  int error = 0;
  visit_family(pid, [&](pid_t member) {
    const int failed = limit_process(member, resource, value);
    if (member == pid) error = failed;
  });
  return error;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE void kill_family(pid_t leader) noexcept {
  if (leader <= 1) return;
  const pid_t self = ::getpid();
  // What was being started during one pass is found by the next.
  constexpr int max_passes = 20;
  try {
    bool found = true;
    for (int pass = 0; found && pass < max_passes; ++pass) {
      found = false;
      std::vector<pid_t> family;
      // All of them first: the children of one that has been killed are no longer known as its own.
      detail::visit_family(leader, [&](pid_t pid) { family.push_back(pid); });
      for (const pid_t pid : family)
        if (pid != self && detail::has_not_ended(pid)) found = ::kill(pid, SIGKILL) == 0 || found;
      if (found) ::usleep(500);
    }
  } catch (const std::exception&) { // no memory to look for them
    if (leader != self) ::kill(-leader, SIGKILL);
  }
  if (leader == self) ::kill(self, SIGKILL);
}

} // namespace mtmc
