#include <mtmc/support/device_lock.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <vector>

using namespace mtmc;

namespace {

/// Whether somebody else could have the device now, alone or shared, judged by another process' eyes.
bool is_free(const DeviceLock& lock, int kind) {
  const FileDescriptor file{::open(lock.path().c_str(), O_RDWR | O_CLOEXEC)};
  return ::flock(file.get(), kind | LOCK_NB) == 0;
}

} // namespace

TEST_CASE("any number share a device, or one has it alone") {
  const TemporaryFolder folder;
  const DeviceLock lock{folder.path(), "gpu/0"};
  CHECK(lock.path().starts_with(folder.path() + "/mtmc-"));
  CHECK(lock.path().ends_with("-gpu_0.lock"));
  {
    const auto first = lock.share();
    const auto second = lock.share();
    CHECK(is_free(lock, LOCK_SH));
    CHECK_FALSE(is_free(lock, LOCK_EX));
  }
  {
    const auto hold = lock.alone();
    CHECK_FALSE(is_free(lock, LOCK_SH));
    struct stat status{};
    REQUIRE(::stat(lock.path().c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
  }
  CHECK(is_free(lock, LOCK_EX));
}

TEST_CASE("without a folder nothing is locked") {
  const DeviceLock none;
  const DeviceLock empty{"", "cpu"};
  const auto first = none.alone();
  const auto second = empty.alone();
  CHECK(none.path().empty());
}

TEST_CASE("two processes on one device are never alone at the same time, and the kernel frees what dies") {
  const TemporaryFolder folder;
  const DeviceLock lock{folder.path(), "cpu"};
  // The other process takes the lock with a program that is not ours, and says so.
  const auto path = lock.path();
  (void)lock.share(); // makes the file
  ChildProcess other{{.arguments = {"flock", path, "sleep", "1000"}}};
  for (int i = 0; i < 2000 && is_free(lock, LOCK_SH); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  REQUIRE_FALSE(is_free(lock, LOCK_SH));
  std::atomic<bool> shared = false;
  std::jthread waiting([&] {
    const auto hold = lock.share();
    shared = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  CHECK_FALSE(shared);
  other.kill_group();
  waiting.join();
  CHECK(shared);
}

TEST_CASE("a stream of sharers does not keep out who wants to be alone") {
  const TemporaryFolder folder;
  const DeviceLock lock{folder.path(), "cpu"};
  std::atomic<bool> done = false;
  std::atomic<int> sharing = 0;
  std::vector<std::jthread> sharers;
  for (int t = 0; t < 4; ++t)
    sharers.emplace_back([&] {
      // They overlap: without the turnstile there would hardly be a moment without one.
      while (!done) {
        const auto hold = lock.share();
        ++sharing;
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
        --sharing;
      }
    });
  {
    const auto hold = lock.alone();
    CHECK(sharing == 0);
    done = true;
  }
}

TEST_CASE("a link or a file of somebody else is not taken for the lock, and a missing folder is named") {
  const TemporaryFolder folder;
  const DeviceLock lock{folder.path(), "cpu"};
  REQUIRE(::symlink("/dev/null", lock.path().c_str()) == 0);
  CHECK_THROWS_AS((void)lock.share(), std::system_error);
  const DeviceLock missing{folder.path() + "/missing", "cpu"};
  try {
    (void)missing.alone();
    FAIL("there is not a folder");
  } catch (const std::system_error& error) {
    CHECK(std::string(error.what()).find("/missing/mtmc-") != std::string::npos);
    CHECK(error.code() == std::errc::no_such_file_or_directory);
  }
}
