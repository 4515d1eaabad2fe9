#pragma once

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <signal.h>
#include <string>
#include <sys/types.h>
#include <unistd.h>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The session a process belongs to; -1 if it has ended (a zombie has, too) or cannot be looked at.
[[nodiscard]] inline pid_t session_of(const char* pid) noexcept {
  char path[64];
  if (std::snprintf(path, sizeof path, "/proc/%s/stat", pid) >= static_cast<int>(sizeof path)) return -1;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[512];
  const ssize_t size = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (size <= 0) return -1;
  text[size] = '\0';
  // The name in parentheses may contain anything, parentheses and blanks included.
  const char* const after_name = std::strrchr(text, ')');
  char state = '\0';
  int parent = 0;
  int group = 0;
  int session = 0;
  if (after_name == nullptr || std::sscanf(after_name + 1, " %c %d %d %d", &state, &parent, &group,
                                           &session) != 4) // NOLINT(cert-err34-c)
    return -1;
  return state == 'Z' || state == 'X' ? -1 : session;
}

} // namespace detail

/// Kills (SIGKILL) every process of a session, whatever process group it is in and whoever its parent has
/// become. The session's leader must not have been reaped yet, or its number may be another's. Processes that
/// made a session of their own escape. Does nothing where /proc cannot be read.
inline void kill_session(pid_t session) noexcept {
  if (session <= 1) return;
  // What was being started during one pass is found by the next.
  constexpr int max_passes = 20;
  bool found = true;
  for (int pass = 0; found && pass < max_passes; ++pass) {
    found = false;
    DIR* const processes = ::opendir("/proc");
    if (processes == nullptr) return;
    while (const dirent* entry = ::readdir(processes)) {
      if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
      if (detail::session_of(entry->d_name) != session) continue;
      found = ::kill(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)), SIGKILL) == 0 || found;
    }
    ::closedir(processes);
    if (found) ::usleep(500);
  }
}

} // namespace mtmc
