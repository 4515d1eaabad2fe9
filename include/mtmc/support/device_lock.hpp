#pragma once

#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/text.hpp>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// Keeps processes of one user on one machine out of each other's way on a device: any number may share it,
/// or one has it alone.
///
/// Two files in a folder, locked with flock(2): the kernel frees them when their holder dies, in whatever
/// way. Everybody passes the first, the turnstile, on the way to the second; who waits to be alone stands in
/// the turnstile meanwhile, so that a stream of sharers cannot keep it waiting for ever. The files are made
/// with mode 0600, are never removed (a file removed while somebody waits for it would be two locks), and
/// must belong to this user. A default-constructed lock locks nothing. May be used from several threads;
/// a thread that holds it must not ask for it again before it lets go: it would wait for itself.
class DeviceLock {
public:
  /// Holds the lock while it lives.
  class Hold {
  public:
    Hold() noexcept = default;

  private:
    friend class DeviceLock;
    explicit Hold(FileDescriptor file) noexcept : file_{std::move(file)} {}
    FileDescriptor file_;
  };

  DeviceLock() = default;
  /// `device` names the device among those of this machine: "cpu", "gpu-<uuid>". An empty folder: no lock.
  DeviceLock(const std::string& folder, std::string_view device) {
    if (folder.empty()) return;
    path_ = folder + "/mtmc-" + std::to_string(::getuid()) + '-';
    for (const char c : device) path_.push_back(is_name_character(c) || c == '-' ? c : '_');
    path_ += ".lock";
  }

  /// The file that is locked; empty if nothing is.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Waits until nobody has the device alone. Throws std::system_error, whose what() names the file and the
  /// remedy.
  [[nodiscard]] Hold share() const { return take(LOCK_SH); }
  /// Waits until nobody has the device, alone or shared. Throws as `share` does.
  [[nodiscard]] Hold alone() const { return take(LOCK_EX); }

private:
  [[nodiscard]] Hold take(int kind) const {
    if (path_.empty()) return {};
    const FileDescriptor turnstile = open(path_ + ".turnstile");
    lock(turnstile, LOCK_EX);
    FileDescriptor file = open(path_);
    lock(file, kind);
    return Hold{std::move(file)};
  }

  [[nodiscard]] static FileDescriptor open(const std::string& path) {
    FileDescriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (!file) fail(path, errno);
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) fail(path, errno);
    if (!S_ISREG(status.st_mode) || status.st_uid != ::getuid()) fail(path, EPERM);
    return file;
  }
  static void lock(const FileDescriptor& file, int kind) {
    while (::flock(file.get(), kind) != 0)
      if (errno != EINTR) fail("a device's lock file", errno);
  }
  [[noreturn]] static void fail(const std::string& path, int error) {
    throw std::system_error{error, std::generic_category(),
                            "cannot lock the device with " + path +
                                "; choose a folder for device locks on a local disk in which only this user "
                                "has files of that name"};
  }

  std::string path_;
};

} // namespace mtmc
