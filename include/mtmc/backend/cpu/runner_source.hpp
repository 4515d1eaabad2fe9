#pragma once
/// The text of the runner: the program that loads candidates and forks a process for each of their calls.

#include <mtmc/backend/cpu/runner_protocol.hpp>
#include <mtmc/backend/cpu/runner_sandbox.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// What follows the protocol's constants. It uses nothing but C's library, so that it compiles in a moment,
/// and trusts nothing but the judge: it has no keys, no references, no clock and no files to write to.
inline constexpr std::string_view runner_tools_text = R"runner(
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <initializer_list>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
#define MTMC_ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define MTMC_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

namespace {

typedef unsigned long long Word;
typedef int (*Trampoline)(const Word* slots);

struct Mapping {
  uint64_t name;
  char* base;
  size_t bytes;
  bool used; // by a prepared call
};
struct Call {
  Trampoline trampoline;
  Word* slots;
  Word* zeroed; // by slot, bytes that are filled with zeros first
  uint64_t arguments;
};

template <class T> struct List {
  T* items;
  size_t count;
  size_t capacity;

  T* add() {
    if (count == capacity) {
      capacity = capacity == 0 ? 16 : 2 * capacity;
      items = static_cast<T*>(realloc(items, capacity * sizeof(T)));
      if (items == nullptr) _exit(70);
    }
    return &items[count++];
  }
};

List<Mapping> mappings;
List<Call> calls;
List<Trampoline> trampolines;
uint64_t question[largest_question];
uint64_t sequence;

void reply(uint64_t status, uint64_t first, uint64_t second, const char* text) {
  uint64_t words[largest_reply] = {magic, sequence, status, first, second};
  size_t length = strlen(text);
  if (length > (largest_reply - reply_header) * 8) length = (largest_reply - reply_header) * 8;
  memcpy(words + reply_header, text, length);
  send(socket_number, words, (reply_header + (length + 7) / 8) * 8, MSG_NOSIGNAL);
}

// A set of processors that this thread may run on.
class Processors {
public:
  void read() { size_ = sched_getaffinity(0, sizeof words_, set()) == 0 ? sizeof words_ : 0; }
  // What a new thread is asked to have. All that can be named stands for no wish.
  void read(const pthread_attr_t& attributes) {
    size_ = pthread_attr_getaffinity_np(&attributes, sizeof words_, set()) == 0 ? sizeof words_ : 0;
    bool wish = false;
    for (const unsigned long word : words_) wish = wish || word != ~0ul;
    if (!wish) size_ = 0;
  }
  void write(pthread_attr_t& attributes) { pthread_attr_setaffinity_np(&attributes, size_, set()); }
  bool known() const { return size_ != 0; }
  void apply() {
    if (size_ != 0) sched_setaffinity(0, size_, set());
  }

private:
  cpu_set_t* set() { return reinterpret_cast<cpu_set_t*>(words_); }
  unsigned long words_[1024] = {};
  size_t size_ = 0;
};

// With OMP_PROC_BIND, libgomp binds the thread that loads it to the first processor. A sequential kernel is not
// to be bound, or all runners would share that processor; one that has a team of threads must be: on the processor
// of another member it would wait for it, and take as long as a sequential one.
Processors bound_processors;

)runner";

/// Behind the sandbox.
inline constexpr std::string_view runner_text = R"runner(
using GnuParallel = void (*)(void (*)(void*), void*, unsigned, unsigned);
using ClangParallel = void (*)(const void*, int32_t, void (*)(int32_t*, int32_t*), ...);
GnuParallel gnu_parallel = nullptr;
ClangParallel clang_parallel = nullptr;

// Clang's OpenMP library looks for files when it is first used, which must be while it may. Whether it is there.
bool start_openmp() {
  bool there = false;
  for (const char* name : {"libomp.so.5", "libomp.so"})
    if (void* openmp = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) {
      there = true;
      if (void* first = dlsym(openmp, "omp_get_max_threads")) (void)reinterpret_cast<int (*)()>(first)();
      clang_parallel = reinterpret_cast<ClangParallel>(dlsym(openmp, "__kmpc_fork_call"));
    }
  if (void* openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD))
    gnu_parallel = reinterpret_cast<GnuParallel>(dlsym(openmp, "GOMP_parallel"));
  return there;
}

// A program's first parallel region starts its team of threads, which then waits for the next one. A forked process
// has none of them.
bool starts_team = false;
void start_team() {
  starts_team = true;
  static const int32_t place[] = {0, 2, 0, 0, 0, 0}; // of libomp's ident_t; the null pointer behind it is the name
  if (gnu_parallel != nullptr) gnu_parallel([](void*) {}, nullptr, 0, 0);
  if (clang_parallel != nullptr) clang_parallel(place, 0, [](int32_t*, int32_t*) {});
  starts_team = false;
}

// Reading the time stamp counter ends the process from now on, however a kernel came by the instruction.
void take_clock_away() {
#ifdef __x86_64__
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
#endif
}

bool sandbox = true;

void load(const uint64_t* payload) {
  static char path[4096];
  if (payload[1] >= sizeof path) return reply(status_refused, 0, 0, "the path is too long");
  memcpy(path, payload + 2, payload[1]);
  if (sandbox) allow_loading();
  Processors before;
  before.read();
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  // Clang's OpenMP library reads it itself, to know how long threads have waited.
  if (!start_openmp() && sandbox) take_clock_away();
  bound_processors.read();
  before.apply();
  if (library == nullptr) return reply(status_refused, 0, 0, dlerror());
  for (uint64_t i = 0; i < payload[0]; ++i) {
    char name[40];
    snprintf(name, sizeof name, "mtmc_launch_%llu", static_cast<Word>(i));
    void* symbol = dlsym(library, name);
    if (symbol == nullptr) return reply(status_refused, 0, 0, dlerror());
    *trampolines.add() = reinterpret_cast<Trampoline>(symbol);
  }
  reply(status_ok, 0, 0, "");
}

// Before and behind each mapping lies a page that nobody can touch.
size_t guard_bytes = 4096;

uint64_t random_bits() {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) _exit(74);
  return bits;
}

// Where the system puts what a program asks for, behind the heap, close to the buffer before, or anywhere: the address
// of a buffer, its distance to another and which of the two lies first tell nothing, and are not the same twice.
void* random_place() {
  constexpr uint64_t from = 0x100000000000, to = 0x600000000000, near = 256u << 20;
  const uint64_t bits = random_bits();
  const uint64_t distance = (bits >> 3) % near;
  const uint64_t before = mappings.count == 0 ? 0 : reinterpret_cast<uintptr_t>(mappings.items[mappings.count - 1].base);
  uint64_t place = from + (bits >> 3) % (to - from);
  switch (bits % 8) {
  case 0:
  case 1: return nullptr;
  case 2: place = reinterpret_cast<uintptr_t>(sbrk(0)) + distance; break;
  case 3:
  case 4:
    if (before > near) place = bits % 8 == 3 ? before + distance : before - distance;
    break;
  default: break;
  }
  return reinterpret_cast<void*>(place & ~uint64_t{0xfffff});
}

void map(const uint64_t* payload, int descriptor) {
  void* around = mmap(random_place(), payload[1] + 2 * guard_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* base = MAP_FAILED;
  if (around != MAP_FAILED)
    base = mmap(static_cast<char*>(around) + guard_bytes, payload[1], PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_FIXED, descriptor, 0);
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (base == MAP_FAILED) return reply(status_refused, static_cast<uint64_t>(error), 0, "");
  Mapping* mapping = mappings.add();
  mapping->name = payload[0];
  mapping->base = static_cast<char*>(base);
  mapping->bytes = payload[1];
  mapping->used = false;
  reply(status_ok, 0, 0, "");
}

Mapping* find_mapping(uint64_t name) {
  for (size_t i = 0; i < mappings.count; ++i)
    if (mappings.items[i].name == name) return &mappings.items[i];
  return nullptr;
}

void forget_calls() {
  for (size_t i = 0; i < calls.count; ++i) free(calls.items[i].slots);
  calls.count = 0;
  for (size_t i = 0; i < mappings.count; ++i) mappings.items[i].used = false;
}

void unmap(const uint64_t* payload) {
  forget_calls();
  if (Mapping* mapping = find_mapping(payload[0])) {
    munmap(mapping->base - guard_bytes, mapping->bytes + 2 * guard_bytes);
    *mapping = mappings.items[--mappings.count];
  }
  reply(status_ok, 0, 0, "");
}

void prepare(const uint64_t* payload) {
  if (payload[0] != 0) forget_calls();
  uint64_t remaining = payload[1];
  for (payload += 2; remaining > 0; --remaining) {
    const uint64_t number = *payload++;
    const uint64_t arguments = *payload++;
    if (number >= trampolines.count) return reply(status_refused, 0, 0, "there is no such launch");
    Call* call = calls.add();
    call->trampoline = trampolines.items[number];
    call->slots = static_cast<Word*>(calloc(2 * arguments + 1, sizeof(Word)));
    if (call->slots == nullptr) _exit(70);
    call->zeroed = call->slots + arguments;
    call->arguments = arguments;
    for (uint64_t i = 0; i < arguments; ++i) {
      const uint64_t kind = *payload++;
      if (kind == argument_value) {
        call->slots[i] = *payload++;
        continue;
      }
      Mapping* mapping = find_mapping(*payload++);
      if (mapping == nullptr) return reply(status_refused, 0, 0, "there is no such mapping");
      mapping->used = true;
      call->slots[i] = reinterpret_cast<uintptr_t>(mapping->base + *payload++);
      if (kind == argument_zeroed) call->zeroed[i] = *payload++;
    }
  }
  reply(status_ok, 0, 0, "");
}

void go() {
  for (size_t i = 0; i < calls.count; ++i) {
    const Call& call = calls.items[i];
    for (uint64_t k = 0; k < call.arguments; ++k)
      if (call.zeroed[k] > 0) memset(reinterpret_cast<void*>(call.slots[k]), 0, call.zeroed[k]);
    const int misfit = call.trampoline(call.slots);
    if (misfit != 0) return reply(status_misfit, i, static_cast<uint64_t>(misfit), "");
  }
  reply(status_ok, 0, 0, "");
}

// The pages are there already. This enters them into the process's page table, as read and written, so that neither a
// page fault nor such a note is left for a timed call. A read enters several pages at once: 0.8 ms for 16 MiB, where
// MADV_POPULATE_WRITE takes 4.1.
void enter_pages(const Mapping& mapping) {
  for (size_t at = 0; at < mapping.bytes; at += guard_bytes) {
    volatile char& byte = mapping.base[at];
    const char same = byte;
    byte = same;
  }
}

// Waits for the judge's next question. Without one, nothing is left to do.
ssize_t receive(int* descriptor) {
  for (;;) {
    iovec place = {question, sizeof question};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message = {};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t size = recvmsg(socket_number, &message, MSG_CMSG_CLOEXEC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 24 || question[0] != magic) return size <= 0 ? 0 : -1;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message))
      if (header->cmsg_type == SCM_RIGHTS) memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    sequence = question[2];
    return size;
  }
}

// Ends with the runner, has nothing of its connections, and is continued and stopped apart from it.
void become_caller(int descriptor) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (dup3(descriptor, socket_number, O_CLOEXEC) < 0) _exit(73);
  close(descriptor);
  close(lifeline_number);
}

// Makes the prepared calls when the judge says so, which then ends this process.
[[noreturn]] void call(int descriptor, bool threads) {
  become_caller(descriptor);
  for (size_t i = 0; i < mappings.count; ++i)
    if (mappings.items[i].used) enter_pages(mappings.items[i]);
  if (threads) {
    bound_processors.apply();
    start_team();
  }
  if (sandbox) allow_running();
  reply(status_ok, 0, 0, "");
  // Nor does the address of a variable tell anything.
  volatile char* const room = static_cast<char*>(__builtin_alloca(16 * (1 + random_bits() % 4096)));
  room[0] = 0;
  int none = -1;
  while (receive(&none) > 0 && question[1] == command_go) go();
  _exit(76);
}

int last_end = 0;
pid_t caller = -1;

// Callers that have ended are to be waited for, or they stay in the system's table.
void collect() {
  if (caller > 0)
    while (waitpid(caller, &last_end, 0) < 0 && errno == EINTR) {}
  caller = -1;
}

void begin(const uint64_t* payload, int descriptor) {
  collect();
  const bool threads = payload[0] != 0;
  caller = fork();
  if (caller == 0) call(descriptor, threads);
  if (caller < 0) {
    const uint64_t words[reply_header] = {magic, sequence, status_refused, static_cast<uint64_t>(errno), 0};
    send(descriptor, words, sizeof words, MSG_NOSIGNAL);
  }
  close(descriptor);
}

void limit(__rlimit_resource resource, rlim_t value) {
  rlimit now;
  if (getrlimit(resource, &now) != 0) return;
  if (now.rlim_max < value) value = now.rlim_max;
  const rlimit wanted = {value, value};
  setrlimit(resource, &wanted);
}

// Clang's OpenMP library registers itself in a shared-memory object, which it could not make under the limit on
// files, and would leave behind when killed. It gets this one instead.
int private_object = -1;

void make_private_object() {
  private_object = memfd_create("mtmc-private", MFD_CLOEXEC);
  if (private_object >= 0 && ftruncate(private_object, 4096) != 0) _exit(70);
}

// When the judge dies, however that happens, the kernel signals the pipe's owner: this whole process group,
// stopped or not, with SIGKILL. (PR_SET_PDEATHSIG would already fire when the thread that started the runner
// ends.)
void die_with_the_judge() {
  fcntl(lifeline_number, F_SETOWN, -getpgrp());
  fcntl(lifeline_number, F_SETSIG, SIGKILL);
  fcntl(lifeline_number, F_SETFL, O_ASYNC | O_NONBLOCK);
  char nothing;
  if (read(lifeline_number, &nothing, 1) == 0) kill(0, SIGKILL);
}

// Should the machine run out of memory in spite of the limits, then let it be this process that has to go.
void be_the_first_victim() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  if (write(file, "1000", 4) != 4) errno = 0;
  close(file);
}

// Who starts a thread binds it by its number, and a filter cannot tell one's own threads from others'. So a new
// thread binds itself. Not so the team's, before the filter is there: it would first have to run where the one that
// waits for it does, which took 4 ms.
struct NewThread {
  void* (*start)(void*);
  void* argument;
  Processors processors;
};
void* bind_and_start(void* given) {
  NewThread* thread = static_cast<NewThread*>(given);
  thread->processors.apply();
  void* (*const start)(void*) = thread->start;
  void* const argument = thread->argument;
  free(thread);
  return start(argument);
}

using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
CreateThread create_thread() {
  static const CreateThread found = reinterpret_cast<CreateThread>(dlsym(RTLD_NEXT, "pthread_create"));
  return found;
}

} // namespace

// The three of the C library's functions on threads that name one to the system, for which its own would need
// more rights than a program has.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) noexcept {
  Processors wanted;
  if (attributes != nullptr) wanted.read(*attributes);
  if (!wanted.known() || starts_team) return create_thread()(thread, attributes, start, argument);
  void* const memory = malloc(sizeof(NewThread));
  if (memory == nullptr) return EAGAIN;
  NewThread* const made = static_cast<NewThread*>(memory);
  made->start = start;
  made->argument = argument;
  made->processors = wanted;
  pthread_attr_t& changed = const_cast<pthread_attr_t&>(*attributes);
  Processors().write(changed);
  const int error = create_thread()(thread, attributes, bind_and_start, made);
  wanted.write(changed);
  if (error != 0) free(memory);
  return error;
}
extern "C" int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t* set) noexcept {
  if (!pthread_equal(thread, pthread_self())) return ENOSYS;
  return sched_getaffinity(0, bytes, set) == 0 ? 0 : errno;
}
extern "C" int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t* set) noexcept {
  if (!pthread_equal(thread, pthread_self())) return ENOSYS;
  return sched_setaffinity(0, bytes, set) == 0 ? 0 : errno;
}

extern "C" int shm_open(const char*, int, mode_t) { return fcntl(private_object, F_DUPFD_CLOEXEC, 0); }
extern "C" int shm_unlink(const char*) { return 0; }

int main(int argument_count, char** arguments) {
  if (argument_count != 5) return 64;
  sandbox = arguments[3][0] == '1';
  guard_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  (void)create_thread();
  // As many as are the default; else the library would read their number from a file once there are eight.
  mallopt(M_ARENA_MAX, 8 * static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  die_with_the_judge();
  be_the_first_victim();
  make_private_object();
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // RLIMIT_DATA counts heap, stacks and private mappings, but not the judge's buffers, which are shared.
  limit(RLIMIT_DATA, strtoull(arguments[1], nullptr, 10));
  limit(RLIMIT_AS, strtoull(arguments[2], nullptr, 10));
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, 64);
  if (arguments[4][0] == '1')
    enter_namespace();
  else
    reply(status_ok, static_cast<uint64_t>(getpid()), 0, "it was not asked for");
  if (sandbox) drop_capabilities();
  for (;;) {
    int descriptor = -1;
    const ssize_t size = receive(&descriptor);
    if (size == 0) kill(0, SIGKILL);
    if (size < 0) _exit(76);
    const uint64_t* payload = question + 3;
    switch (question[1]) {
    case command_load: load(payload); break;
    case command_map: map(payload, descriptor); break;
    case command_unmap: unmap(payload); break;
    case command_prepare: prepare(payload); break;
    case command_begin: begin(payload, descriptor); break;
    case command_ended:
      collect();
      reply(status_ok, static_cast<uint64_t>(last_end), 0, "");
      break;
    default: _exit(76);
    }
  }
}
)runner";

/// The whole program, ready for a C++17 compiler.
[[nodiscard]] inline std::string runner_source() {
  namespace protocol = runner_protocol;
  std::string text = "namespace {\n";
  const auto constant = [&](std::string_view name, std::uint64_t value) {
    text.append("constexpr unsigned long ")
        .append(name)
        .append(" = ")
        .append(std::to_string(value))
        .append("ul;\n");
  };
  constant("magic", protocol::magic);
  constant("command_load", protocol::command_load);
  constant("command_map", protocol::command_map);
  constant("command_unmap", protocol::command_unmap);
  constant("command_prepare", protocol::command_prepare);
  constant("command_begin", protocol::command_begin);
  constant("command_go", protocol::command_go);
  constant("command_ended", protocol::command_ended);
  constant("status_ok", protocol::status_ok);
  constant("status_refused", protocol::status_refused);
  constant("status_misfit", protocol::status_misfit);
  constant("argument_value", protocol::argument_value);
  constant("argument_zeroed", protocol::argument_zeroed);
  constant("largest_question", protocol::largest_question);
  constant("reply_header", protocol::reply_header);
  constant("largest_reply", protocol::largest_reply);
  text.append("constexpr int socket_number = ").append(std::to_string(protocol::socket_number)).append(";\n");
  text.append("constexpr int lifeline_number = ")
      .append(std::to_string(protocol::lifeline_number))
      .append(";\n");
  text.append("} // namespace\n").append(runner_tools_text).append(runner_sandbox_text).append(runner_text);
  return text;
}

} // namespace mtmc::detail
