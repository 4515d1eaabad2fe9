#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <errno.h>
#include <filesystem>
#include <map>
#include <set>
#include <signal.h>
#include <string>
#include <sys/types.h>
#include <sys/wait.h>
#include <system_error>
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

/// State of a process or thread by its folder in /proc ('R', 'S', 'T', 'Z', ...); '?' if it is not there.
inline char state_in(const std::string& folder) {
  std::FILE* file = std::fopen((folder + "/stat").c_str(), "r");
  if (file == nullptr) return '?';
  char state = '?';
  const int read = std::fscanf(file, "%*d (%*[^)]) %c", &state);
  std::fclose(file);
  return read == 1 ? state : '?';
}

/// Whether the process exists and is more than a zombie that its new parent has not reaped yet.
inline bool runs(pid_t pid) {
  const char state = state_in("/proc/" + std::to_string(pid));
  return state != '?' && state != 'Z' && state != 'X';
}

/// Stops a process. A thread that waits in a read stops only when it is next given a core, and may take in
/// what has come until then: this returns when each has stopped, or ended.
inline void stop(pid_t pid) {
  ::kill(pid, SIGSTOP);
  const auto threads = std::filesystem::path("/proc") / std::to_string(pid) / "task";
  const auto stopped = [&] {
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator(threads, gone))
      if (const char state = state_in(thread.path().string());
          state != 'T' && state != '?' && state != 'Z' && state != 'X')
        return false;
    return true;
  };
  while (!stopped()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

/// Parents of all processes, zombies included.
inline std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> result;
  DIR* folder = ::opendir("/proc");
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    std::FILE* file = std::fopen(("/proc/" + std::string(entry->d_name) + "/stat").c_str(), "r");
    if (file == nullptr) continue; // it has ended meanwhile
    char text[512];
    const auto size = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    text[size] = '\0';
    // "pid (name) state parent ...", where the name may hold anything.
    const char* const behind_name = std::strrchr(text, ')');
    int parent = 0;
    if (behind_name != nullptr && std::sscanf(behind_name + 1, " %*c %d", &parent) == 1)
      result[static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10))] = parent;
  }
  ::closedir(folder);
  return result;
}

/// Children of a process, their children and so on, zombies included.
inline std::set<pid_t> descendants(pid_t of) {
  const auto known = parents();
  std::set<pid_t> result;
  for (const auto& [process, parent] : known)
    for (auto ancestor = known.find(process); ancestor != known.end();
         ancestor = known.find(ancestor->second))
      if (ancestor->second == of) {
        result.insert(process);
        break;
      }
  return result;
}

/// What a test has started: the descendants of this process but for those that it had when this was made,
/// which belong to other tests.
class Started {
public:
  [[nodiscard]] std::set<pid_t> now() const {
    auto all = descendants(::getpid());
    std::erase_if(all, [this](pid_t pid) { return before_.contains(pid); });
    return all;
  }

private:
  std::set<pid_t> before_ = descendants(::getpid());
};

/// Whether the process ends; SIGKILL takes effect a little after kill() returns.
inline bool ends(pid_t pid) {
  for (int i = 0; i < 2000; ++i) {
    if (!runs(pid)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return false;
}

} // namespace processes
