#pragma once
/// How a program becomes its own helper: started again with a role's name as its first argument.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A part that a program plays, in place of its own, when it is started with `argument` first.
struct ProgramRole {
  /// "--mtmc-compiler", say.
  std::string argument;
  /// Plays it with the arguments that follow. The answer is the exit code. Must not throw.
  std::function<int(const std::vector<std::string>& rest)> play;
};

namespace detail {

/// Roles that this process's program has said it plays. May be used from several threads.
class OfferedRoles {
public:
  void add(const std::string& argument) {
    const std::scoped_lock lock(mutex_);
    arguments_.push_back(argument);
  }
  [[nodiscard]] bool has(std::string_view argument) const {
    const std::scoped_lock lock(mutex_);
    return std::find(arguments_.begin(), arguments_.end(), argument) != arguments_.end();
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::string> arguments_;
};

/// Those of this process: a fact about its program, which only `main` can tell.
[[nodiscard]] inline OfferedRoles& offered_roles() {
  static OfferedRoles roles;
  return roles;
}

/// Plays the role that the arguments of `main` name, if it is one of `roles`; the answer is whether it was,
/// and `code` then the exit code. Otherwise this program can be started in any of them from now on.
[[nodiscard]] inline bool play_role(int argc, const char* const* argv, const std::vector<ProgramRole>& roles,
                                    int& code) {
  for (const auto& role : roles) {
    if (argc < 2 || argv == nullptr || argv[1] == nullptr || role.argument != argv[1]) continue;
    code = role.play(std::vector<std::string>(argv + 2, argv + argc));
    return true;
  }
  for (const auto& role : roles) offered_roles().add(role.argument);
  return false;
}

} // namespace detail

} // namespace mtmc
