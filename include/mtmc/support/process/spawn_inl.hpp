#pragma once
/// Definitions of support/process/spawn.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_fence.hpp>
#include <mtmc/support/process/spawn.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <signal.h>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The null-terminated array of C strings that exec wants; valid as long as the strings are.
[[nodiscard]] inline std::vector<char*> c_string_array(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[nodiscard]] inline std::vector<std::string> child_environment(const ChildOptions& options) {
  std::vector<std::string> entries;
  if (options.environment)
    entries = *options.environment;
  else
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry)
      entries.emplace_back(*entry);
  for (const std::string& added : options.extra_environment) {
    const std::string name = added.substr(0, added.find('=')) + "=";
    bool replaced = false;
    for (std::string& entry : entries)
      if (entry.starts_with(name)) {
        entry = added;
        replaced = true;
      }
    if (!replaced) entries.push_back(added);
  }
  return entries;
}

[[nodiscard]] inline std::string start_failure(const ChildOptions& options, int error) {
  const std::string& command = options.arguments.front();
  const bool no_folder =
      !options.working_folder.empty() && ::access(options.working_folder.c_str(), X_OK) != 0;
  if (no_folder && (error == ENOENT || error == ENOTDIR || error == EACCES))
    return "cannot start " + command + " in the folder " + options.working_folder + ": " +
           std::generic_category().message(error) + "; create the folder or choose another one";
  switch (error) {
  case ENOENT:
    if (command.find('/') != std::string::npos && ::access(command.c_str(), F_OK) == 0)
      return "cannot start " + command +
             ": the interpreter that its first line or its ELF header names is missing; "
             "install that";
    return "command not found: " + command + "; install it or give its path";
  case EACCES:
    // Also what an unreadable folder in the PATH gives.
    if (command.find('/') == std::string::npos)
      return "command not found, or not executable: " + command + "; install it or give its path";
    [[fallthrough]];
  case EPERM:
    return "not allowed to run " + command + "; make it executable (chmod +x) or choose another program";
  case ENOEXEC:
    return "cannot run " + command +
           ": it is not a program for this machine; rebuild it, or add a #! line to a script";
  case E2BIG:
    return "cannot start " + command +
           ": arguments and environment are too long; pass less, or pass it in a file";
  case EAGAIN:
  case ENOMEM:
    return "cannot start " + command + ": no more processes or memory (" +
           std::generic_category().message(error) +
           "); end other programs, run fewer at a time or raise the limit (ulimit -u)";
  case EMFILE:
  case ENFILE:
    return "cannot start " + command +
           ": too many open files; run fewer at a time or raise the limit (ulimit -n)";
  default:
    return "cannot start " + command + ": " + std::generic_category().message(error);
  }
}

MTMC_INLINE void throw_start_failure(const ChildOptions& options, int error) {
  throw ProcessStartError{start_failure(options, error), error};
}

/// Refuses what exec would silently cut or misread.
inline void check_child_options(const ChildOptions& options) {
  if (options.arguments.empty() || options.arguments.front().empty())
    throw ProcessStartError{"no command given; put the program's name first in the arguments", 0};
  const auto refuse = [&](std::string_view what) {
    throw ProcessStartError{
        "cannot start " + std::string{options.arguments.front().c_str()} + ": " + std::string{what}, 0};
  };
  const auto has_null = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  for (const std::string& argument : options.arguments)
    if (has_null(argument)) refuse("an argument contains a null character; remove it");
  if (has_null(options.working_folder)) refuse("the working folder contains a null character; remove it");
  if (options.environment)
    for (const std::string& entry : *options.environment)
      if (has_null(entry)) refuse("an environment entry contains a null character; remove it");
  for (const std::string& entry : options.extra_environment) {
    if (has_null(entry)) refuse("an environment entry contains a null character; remove it");
    if (entry.find('=') == std::string::npos || entry.front() == '=')
      refuse("the environment entry \"" + entry + "\" is not of the form NAME=value");
  }
  for (std::size_t i = 0; i < options.descriptors.size(); ++i) {
    if (options.descriptors[i].number < 0 || options.descriptors[i].number > 1023)
      refuse("a descriptor is to be passed as number " + std::to_string(options.descriptors[i].number) +
             "; choose one from 0 to 1023");
    for (std::size_t j = 0; j < i; ++j)
      if (options.descriptors[i].number == options.descriptors[j].number)
        refuse("two descriptors are to be passed as number " + std::to_string(options.descriptors[i].number));
  }
}

MTMC_INLINE pid_t spawn(const ChildOptions& options) {
  check_child_options(options);
  const auto require = [&](int error) {
    if (error != 0) throw_start_failure(options, error);
  };

  int highest = 2;
  for (const PassedDescriptor& passed : options.descriptors)
    if (passed.number > highest) highest = passed.number;
  std::vector<int> sources(static_cast<std::size_t>(highest) + 1, -1);
  // Copies above all target numbers, so that no dup2 in the child overwrites the source of a later one.
  std::vector<FileDescriptor> copies;
  for (const PassedDescriptor& passed : options.descriptors) {
    FileDescriptor copy{::fcntl(passed.descriptor, F_DUPFD_CLOEXEC, highest + 1)};
    if (!copy) require(errno);
    sources[static_cast<std::size_t>(passed.number)] = copy.get();
    copies.push_back(std::move(copy));
  }

  SpawnActions actions;
  for (int number = 0; number <= highest; ++number) {
    const int source = sources[static_cast<std::size_t>(number)];
    if (source >= 0)
      require(::posix_spawn_file_actions_adddup2(&actions.value, source, number));
    else if (number <= 2)
      require(::posix_spawn_file_actions_addopen(&actions.value, number, "/dev/null", O_RDWR, 0));
    else
      require(::posix_spawn_file_actions_addclose(&actions.value, number));
  }
  require(::posix_spawn_file_actions_addclosefrom_np(&actions.value, highest + 1));
  if (!options.working_folder.empty())
    require(::posix_spawn_file_actions_addchdir_np(&actions.value, options.working_folder.c_str()));

  SpawnAttributes attributes;
  sigset_t all;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGKILL);
  ::sigdelset(&all, SIGSTOP);
  sigset_t none;
  ::sigemptyset(&none);
  require(::posix_spawnattr_setsigdefault(&attributes.value, &all));
  require(::posix_spawnattr_setsigmask(&attributes.value, &none));
  require(::posix_spawnattr_setpgroup(&attributes.value, 0));
  // The leader of a new session leads a new group, too.
  const int group = options.new_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
  require(::posix_spawnattr_setflags(
      &attributes.value, static_cast<short>(group | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)));

  const std::vector<std::string> environment = child_environment(options);
  const std::vector<char*> arguments = c_string_array(options.arguments);
  pid_t pid = -1;
  const auto start = [&] {
    return ::posix_spawnp(&pid, arguments.front(), &actions.value, &attributes.value, arguments.data(),
                          c_string_array(environment).data());
  };
  require(options.fence == nullptr ? start() : start_behind(*options.fence, start));
  return pid;
}

} // namespace mtmc::detail
