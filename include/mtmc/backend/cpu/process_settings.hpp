#pragma once
/// What others can change about a process from outside: its limits, its priorities, where it may run.

#include <mtmc/requirements.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <dirent.h>
#include <map>
#include <memory>
#include <optional>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// How much of the machine a thread gets beside others.
struct ThreadPriority {
  int policy = 0;
  int realtime = 0;
  int nice = 0;
  long io = 0;

  friend bool operator==(const ThreadPriority&, const ThreadPriority&) = default;
};

/// Who an io priority belongs to: one thread.
inline constexpr int io_priority_of_thread = 1;

/// Nothing if there is no such thread.
[[nodiscard]] inline std::optional<ThreadPriority> read_priority(pid_t thread) noexcept {
  ThreadPriority priority;
  priority.policy = ::sched_getscheduler(thread);
  sched_param realtime{};
  if (priority.policy < 0 || ::sched_getparam(thread, &realtime) != 0) return std::nullopt;
  priority.realtime = realtime.sched_priority;
  errno = 0;
  priority.nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
  if (errno != 0) return std::nullopt;
  priority.io = ::syscall(SYS_ioprio_get, io_priority_of_thread, thread);
  return priority;
}

/// Gives a thread those priorities back, as far as this process may.
inline void write_priority(pid_t thread, const ThreadPriority& priority) noexcept {
  sched_param realtime{};
  realtime.sched_priority = priority.realtime;
  (void)::sched_setscheduler(thread, priority.policy, &realtime);
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), priority.nice);
  if (priority.io >= 0) (void)::syscall(SYS_ioprio_set, io_priority_of_thread, thread, priority.io);
}

/// The numbers of a process's threads; none once it has ended.
[[nodiscard]] inline std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  const auto folder = "/proc/" + std::to_string(process) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (entries == nullptr) return threads;
  while (const dirent* const entry = ::readdir(entries.get()))
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
      threads.push_back(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
  return threads;
}

/// The settings that a process is to have, to find out whether somebody else has changed them and to put them
/// right. Limits and priorities are those it had at first, whoever changes them. Where its threads may run is
/// their own business while they do, so that is remembered whenever they have come to a stop.
class ProcessSettings {
public:
  /// As they are now, before anything of the process is in doubt.
  explicit ProcessSettings(pid_t process)
      : process_(process), priority_(read_priority(process).value_or(ThreadPriority{})) {
    for (std::size_t i = 0; i < limits_.size(); ++i)
      (void)::prlimit(process, static_cast<__rlimit_resource>(i), nullptr, &limits_[i]);
    remember();
  }

  /// To be called when the threads have been stopped.
  void remember() {
    processors_.clear();
    for (const auto thread : threads_of(process_)) {
      cpu_set_t set;
      if (::sched_getaffinity(thread, sizeof set, &set) == 0) processors_.emplace(thread, set);
    }
  }

  /// Has the process's first thread run on those processors from now on. False if that is not possible.
  bool place(const cpu_set_t& processors) {
    if (::sched_setaffinity(process_, sizeof processors, &processors) != 0) return false;
    processors_[process_] = processors;
    return true;
  }

  /// Puts right what others have changed since. False if that is not possible for all of it: raising a limit
  /// or a priority needs rights that lowering it does not.
  [[nodiscard]] bool restore() const {
    bool right = restore_limits();
    for (const auto thread : threads_of(process_)) {
      if (read_priority(thread) != priority_) {
        write_priority(thread, priority_);
        right = read_priority(thread) == priority_ && right;
      }
      const auto known = processors_.find(thread);
      cpu_set_t now;
      if (known == processors_.end() || ::sched_getaffinity(thread, sizeof now, &now) != 0 ||
          CPU_EQUAL(&now, &known->second))
        continue;
      right = ::sched_setaffinity(thread, sizeof known->second, &known->second) == 0 && right;
    }
    return right;
  }

private:
  [[nodiscard]] bool restore_limits() const {
    bool right = true;
    for (std::size_t i = 0; i < limits_.size(); ++i) {
      const auto resource = static_cast<__rlimit_resource>(i);
      const auto& wanted = limits_[i];
      rlimit now{};
      if (::prlimit(process_, resource, nullptr, &now) != 0) continue;
      if (now.rlim_cur == wanted.rlim_cur && now.rlim_max == wanted.rlim_max) continue;
      right = ::prlimit(process_, resource, &wanted, nullptr) == 0 && right;
    }
    return right;
  }

  pid_t process_;
  std::array<rlimit, RLIM_NLIMITS> limits_{};
  ThreadPriority priority_;
  std::map<pid_t, cpu_set_t> processors_;
};

} // namespace mtmc::detail
