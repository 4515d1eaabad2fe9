#pragma once
/// How a program becomes its own helper: started again with a role's name as its first argument.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
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

/// Says that this process's program can be started in these roles.
inline void offer_roles(const std::vector<ProgramRole>& roles) {
  for (const auto& role : roles) offered_roles().add(role.argument);
}

/// The program that can be started in a role with the role's argument: this very one, even if its file has
/// been replaced or removed since. Empty if its `main` does not play that role.
[[nodiscard]] inline std::string own_program(std::string_view argument) {
  return offered_roles().has(argument) ? "/proc/self/exe" : "";
}

} // namespace detail

/// To be called at the start of `main`, before anything else that matters:
///
///     if (const auto code = mtmc::play_role(argc, argv, roles)) return *code;
///
/// If `argv[1]` names one of the roles, this process was started for it: it is played, and the answer is the
/// exit code. Otherwise nothing happens but that this very program may be started in each of them from now
/// on, and there is no answer. Never throws but std::bad_alloc.
[[nodiscard]] inline std::optional<int> play_role(int argc, const char* const* argv,
                                                  const std::vector<ProgramRole>& roles) {
  if (argc >= 2 && argv != nullptr && argv[1] != nullptr)
    for (const auto& role : roles)
      if (role.argument == argv[1]) return role.play(std::vector<std::string>(argv + 2, argv + argc));
  detail::offer_roles(roles);
  return std::nullopt;
}

} // namespace mtmc
