#pragma once
/// The walls of the runner, as text of its program: the system calls that are allowed, and a process
/// namespace in which no other process has a number.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Comes before the text that uses it (runner_source.hpp).
inline constexpr std::string_view runner_sandbox_text = R"runner(
// The system calls a program may make, in two steps: while it is loaded, and afterwards. What is not on the list
// ends the process with SIGSYS. A call that can name a process or a thread is allowed for the caller alone.
class SystemCalls {
public:
  // The lower or upper half of an argument, masked, must be that value.
  struct Condition {
    uint32_t argument;
    uint32_t mask;
    uint32_t value;
    bool upper_half = false;
  };
  void allow(long number) { allow_if(number, {}); }
  // Only where all conditions hold.
  void allow_if(long number, std::initializer_list<Condition> conditions) {
    size_t left = conditions.size();
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 3 * left + 1);
    for (const Condition& condition : conditions) {
      const uint32_t half = condition.upper_half ? 4 : 0;
      add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 8 * condition.argument + half, 0, 0);
      add(BPF_ALU | BPF_AND | BPF_K, condition.mask, 0, 0);
      add(BPF_JMP | BPF_JEQ | BPF_K, condition.value, 0, 3 * --left + 1);
    }
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    if (conditions.size() > 0) add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr), 0, 0);
  }
  void refuse(long number, uint32_t error) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error, 0, 0);
  }
  void install() {
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
    const sock_fprog program = {count_, rules_};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(71);
  }
  SystemCalls() {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch), 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, MTMC_ARCHITECTURE, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr), 0, 0);
  }

private:
  void add(int code, uint32_t value, size_t if_true, size_t if_false) {
    if (count_ == sizeof rules_ / sizeof rules_[0]) _exit(71);
    rules_[count_++] = {static_cast<uint16_t>(code), static_cast<uint8_t>(if_true), static_cast<uint8_t>(if_false),
                        value};
  }
  sock_filter rules_[768];
  uint16_t count_ = 0;
};

constexpr uint32_t whole = ~0u;

// Memory, threads of this process, and the connection with the judge.
void allow_computing(SystemCalls& calls) {
  // All operations but those on locks with an owner, who is named by a number and whose priority they raise.
  constexpr uint32_t operation = ~static_cast<uint32_t>(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
  for (const uint32_t ownerless : {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET, FUTEX_REQUEUE,
                                   FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP})
    calls.allow_if(SYS_futex, {{1, operation, ownerless}});
  for (const long number :
       {SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_exit, SYS_exit_group, SYS_rt_sigreturn,
        SYS_rt_sigprocmask, SYS_sched_yield, SYS_set_robust_list, SYS_gettid, SYS_getpid, SYS_restart_syscall,
        SYS_close, SYS_fstat, SYS_getrandom, SYS_rseq, SYS_sigaltstack})
    calls.allow(number);
  for (const long number : {SYS_sched_getaffinity, SYS_sched_setaffinity}) calls.allow_if(number, {{0, whole, 0}});
  calls.refuse(SYS_sched_getaffinity, ENOSYS); // pthread_getattr_np asks by number, and does without an answer
  calls.allow_if(SYS_prlimit64, {{0, whole, 0}, {2, whole, 0}, {2, whole, 0, true}}); // which asks and sets nothing
  calls.refuse(SYS_clone3, ENOSYS); // its flags lie in memory, where no filter sees them; the library then uses clone
  calls.allow_if(SYS_clone, {{0, CLONE_THREAD, CLONE_THREAD}});
  for (const long number : {SYS_recvmsg, SYS_sendto}) calls.allow_if(number, {{0, whole, socket_number}});
  for (const long number : {SYS_write, SYS_writev}) calls.allow_if(number, {{0, whole, 2}}); // last words
  for (const uint32_t internal : {32u, 33u}) calls.allow_if(SYS_rt_sigaction, {{0, whole, internal}}); // of pthread_create
}

// What a runner needs to load a program and to fork its callers, whose own abort is to be let through.
void allow_loading() {
  SystemCalls calls;
  allow_computing(calls);
  calls.allow_if(SYS_tgkill, {{2, whole, SIGABRT}});
  calls.allow_if(SYS_clone, {{0, whole, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD}});
  for (const long number : {SYS_wait4, SYS_dup3, SYS_sched_setaffinity}) calls.allow(number);
  calls.allow_if(SYS_setpgid, {{0, whole, 0}, {1, whole, 0}});
  for (const long number : {SYS_mmap, SYS_mprotect, SYS_read, SYS_pread64, SYS_newfstatat, SYS_lseek, SYS_readlinkat,
                            SYS_getdents64, SYS_faccessat, SYS_uname, SYS_sysinfo, SYS_getcwd, SYS_rt_sigaction,
                            SYS_statx, SYS_set_tid_address, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
                            SYS_ftruncate})
    calls.allow(number);
#ifdef __x86_64__
  for (const long number : {SYS_access, SYS_readlink, SYS_stat, SYS_lstat, SYS_arch_prctl, SYS_time})
    calls.allow(number);
  calls.allow_if(SYS_open, {{1, O_ACCMODE | O_CREAT, O_RDONLY}});
#endif
  calls.allow_if(SYS_openat, {{2, O_ACCMODE | O_CREAT, O_RDONLY}});
  // Numbers of clocks with the highest bit belong to processes.
  calls.allow_if(SYS_clock_gettime, {{0, 1u << 31, 0}});
  // Not those commands and options that name who is to get a signal, or to share a core.
  for (const uint32_t command : {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL})
    calls.allow_if(SYS_fcntl, {{1, whole, command}});
  for (const uint32_t option : {PR_SET_SECCOMP, PR_SET_NAME, PR_GET_NAME, PR_SET_PDEATHSIG})
    calls.allow_if(SYS_prctl, {{0, whole, option}});
#ifdef __x86_64__
  calls.allow_if(SYS_prctl, {{0, whole, PR_SET_TSC}, {1, whole, PR_TSC_SIGSEGV}});
#endif
  calls.refuse(SYS_prctl, EINVAL);
  calls.allow_if(SYS_ioctl, {{1, whole, TCGETS}});
  calls.refuse(SYS_ioctl, ENOTTY);
  calls.install();
}

void allow_running() {
  SystemCalls calls;
  allow_computing(calls);
  calls.allow_if(SYS_tgkill, {{0, whole, static_cast<uint32_t>(getpid())}, {2, whole, SIGABRT}});
  for (const long number : {SYS_mmap, SYS_mprotect}) calls.allow_if(number, {{2, PROT_EXEC, 0}});
  calls.install();
}

// What only makes up for rights that the judge has, a program does not need.
void drop_capabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  syscall(SYS_capset, &header, none);
}

// The children of this process will be in a process namespace of their own. 0, or why not.
int leave_other_processes() {
  if (unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0) return 0;
  const int error = errno;
  return unshare(CLONE_NEWPID) == 0 ? 0 : error;
}

// The first process of a namespace, with which it ends. It ends with its parent, whether that is before or after
// it has asked for that.
[[noreturn]] void hold_namespace(int parents_end) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (char nothing; read(parents_end, &nothing, 1) < 0 && errno == EINTR;) {}
  _exit(0);
}

// Ends as `status` says that another process has ended.
[[noreturn]] void end_like(int status) {
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    kill(getpid(), WTERMSIG(status));
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 70);
}

[[noreturn]] void watch_over(pid_t program, pid_t holder) {
  int status = 0;
  while (waitpid(program, &status, 0) < 0 && errno == EINTR) {}
  kill(holder, SIGKILL);
  while (waitpid(holder, nullptr, 0) < 0 && errno == EINTR) {}
  end_like(status);
}

// Goes on in a process that cannot name any but its own, and greets the judge with its number. This process stays
// behind and ends as that one does. Where the system gives no namespace, this process goes on itself.
void enter_namespace() {
  if (const int error = leave_other_processes()) return reply(status_ok, static_cast<uint64_t>(getpid()), 0, strerror(error));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) _exit(72);
  const pid_t holder = fork();
  if (holder < 0) _exit(72);
  if (holder == 0) {
    close(ends[1]);
    close(socket_number);
    hold_namespace(ends[0]);
  }
  close(ends[0]);
  const pid_t program = fork();
  if (program < 0) _exit(72);
  if (program == 0) {
    close(ends[1]);
    return;
  }
  reply(status_ok, static_cast<uint64_t>(program), 1, "");
  close(socket_number);
  watch_over(program, holder);
}
)runner";

} // namespace mtmc::detail
