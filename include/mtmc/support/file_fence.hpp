#pragma once
/// Which files a process may open, enforced by the system (Landlock, Linux 5.13 or later). By raw system
/// calls, because many systems have older headers than kernels.

#include <mtmc/support/file_descriptor.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What a process may open. Entries are files, or folders with all that lies below; what is not there is
/// passed over.
struct OpenableFiles {
  /// Read, and folders listed.
  std::vector<std::string> read{};
  /// Folders of which only the names of what they hold may be read.
  std::vector<std::string> list{};
  /// Read, and started as programs; their interpreters (the loader, of most) have to be there, too.
  std::vector<std::string> execute{};
  /// Read, written, made and removed.
  std::vector<std::string> write{};
};

namespace detail {

/// The part of Landlock's interface that is needed, numbers and layouts as the kernel has them.
namespace landlock {

// The same numbers on all architectures.
inline constexpr long create_ruleset = 444;
inline constexpr long add_rule = 445;
inline constexpr long restrict_self = 446;

inline constexpr unsigned ask_for_version = 1;
inline constexpr unsigned below_path = 1;

inline constexpr std::uint64_t execute = 1U << 0;
inline constexpr std::uint64_t write_file = 1U << 1;
inline constexpr std::uint64_t read_file = 1U << 2;
inline constexpr std::uint64_t read_folder = 1U << 3;
/// Making and removing entries of all kinds: bits 4 to 12.
inline constexpr std::uint64_t change_folder = 0x1ff0;
/// Version 2: linking and renaming from one folder to another.
inline constexpr std::uint64_t refer = 1U << 13;
/// Version 3.
inline constexpr std::uint64_t truncate = 1U << 14;

struct RulesetAttributes {
  std::uint64_t handled_files;
};
struct __attribute__((packed)) PathAttributes {
  std::uint64_t allowed;
  std::int32_t descriptor;
};

} // namespace landlock

} // namespace detail

/// The version of Landlock that this process can use; 0 where the kernel has none, has it switched off, or a
/// container forbids it.
[[nodiscard]] inline int landlock_version() noexcept {
  const long version =
      ::syscall(detail::landlock::create_ruleset, nullptr, std::size_t{0}, detail::landlock::ask_for_version);
  return version > 0 ? static_cast<int>(version) : 0;
}

/// A wall that leaves those files to whoever goes behind it, and to what that starts. It concerns opening:
/// what is open stays open, and whether a file is there can still be asked. Move-only.
class FileFence {
public:
  /// Made, or left unusable where there is no Landlock (see `usable`).
  explicit FileFence(const OpenableFiles& files) {
    using namespace detail;
    const int version = landlock_version();
    if (version == 0) return;
    handled_ = landlock::execute | landlock::write_file | landlock::read_file | landlock::read_folder |
               landlock::change_folder;
    if (version >= 2) handled_ |= landlock::refer;
    if (version >= 3) handled_ |= landlock::truncate;
    const landlock::RulesetAttributes attributes{handled_};
    FileDescriptor made{
        static_cast<int>(::syscall(landlock::create_ruleset, &attributes, sizeof attributes, 0U))};
    if (!made) return;
    rules_ = std::move(made);
    constexpr auto read = landlock::read_file | landlock::read_folder;
    allow(files.read, read);
    allow(files.list, landlock::read_folder);
    allow(files.execute, read | landlock::execute);
    allow(files.write,
          read | landlock::write_file | landlock::change_folder | landlock::refer | landlock::truncate);
  }

  /// Whether the system keeps it.
  [[nodiscard]] bool usable() const noexcept { return static_cast<bool>(rules_); }

  /// Puts the calling thread behind it, for good, with what it starts from now on: threads and processes,
  /// which gain no rights by starting privileged programs any more. False, with errno set, if that fails.
  [[nodiscard]] bool enter() const noexcept {
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::syscall(detail::landlock::restrict_self, rules_.get(), 0U) == 0;
  }

  /// Calls `work` in a thread behind it and gives back the answer, or throws what it threw; nothing if the
  /// thread cannot be put there. Throws std::system_error if there can be no thread.
  template <class Work> [[nodiscard]] std::optional<std::invoke_result_t<Work&>> run_behind(Work work) const {
    std::optional<std::invoke_result_t<Work&>> answer;
    std::exception_ptr thrown;
    std::thread([&] {
      if (!enter()) return;
      try {
        answer.emplace(work());
      } catch (...) {
        thrown = std::current_exception();
      }
    }).join();
    if (thrown) std::rethrow_exception(thrown);
    return answer;
  }

private:
  void allow(const std::vector<std::string>& paths, std::uint64_t what) const {
    using namespace detail;
    constexpr auto of_files =
        landlock::execute | landlock::write_file | landlock::read_file | landlock::truncate;
    for (const auto& path : paths) {
      const FileDescriptor place{::open(path.c_str(), O_PATH | O_CLOEXEC)};
      struct stat facts{};
      if (!place || ::fstat(place.get(), &facts) != 0) continue;
      landlock::PathAttributes rule{what & handled_, place.get()};
      if (!S_ISDIR(facts.st_mode)) rule.allowed &= of_files;
      if (rule.allowed != 0)
        (void)::syscall(landlock::add_rule, rules_.get(), landlock::below_path, &rule, 0U);
    }
  }

  FileDescriptor rules_;
  std::uint64_t handled_ = 0;
};

} // namespace mtmc
