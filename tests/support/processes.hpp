#pragma once

#include <chrono>
#include <cstdio>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string>
#include <sys/types.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

/// What the tests ask the system about this process and others.
namespace processes {

inline std::size_t open_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count - 3; // ".", ".." and the folder itself
}

inline bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/// Whether the process exists and is more than a zombie that its new parent has not reaped yet.
inline bool runs(pid_t pid) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  if (file == nullptr) return false;
  char state = '?';
  const int read = std::fscanf(file, "%*d (%*[^)]) %c", &state);
  std::fclose(file);
  return read == 1 && state != 'Z' && state != 'X';
}

/// Whether the process ends; SIGKILL takes effect a little after kill() returns.
inline bool ends(pid_t pid) {
  for (int i = 0; i < 2000; ++i) {
    if (!runs(pid)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return false;
}

} // namespace processes
