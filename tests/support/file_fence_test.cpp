// What a process behind a fence can open, and that others go on as before.
#include <mtmc/support/file_fence.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using namespace mtmc;

namespace {

/// Whether there is nothing to test on this system, which it says.
bool without_landlock() {
  if (landlock_version() == 0) MESSAGE("SKIPPED: no Landlock");
  return landlock_version() == 0;
}

/// Whether this thread can read a file.
bool can_read(const std::string& path) {
  return static_cast<bool>(FileDescriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)});
}
bool can_write(const std::string& path) {
  return static_cast<bool>(FileDescriptor{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)});
}

/// A folder with a file in it, and another one beside it.
struct Files {
  TemporaryFolder folder;
  std::string mine = folder.path() + "/mine";
  std::string other = folder.path() + "/other";
  Files() {
    create_folders(mine);
    create_folders(other);
    write_file_atomic(mine + "/file", "mine");
    write_file_atomic(other + "/file", "other");
  }
};

} // namespace

TEST_SUITE("a fence round files") {
  TEST_CASE("a thread behind it reads and writes what it may, and nothing else; the others all") {
    if (without_landlock()) return;
    const Files files;
    const FileFence readable({.read = {files.mine, files.folder.path() + "/missing"}});
    REQUIRE(readable.usable());
    const auto seen = readable.run_behind([&] {
      return std::to_string(can_read(files.mine + "/file")) +
             std::to_string(can_read(files.other + "/file")) + std::to_string(can_read("/proc/self/status")) +
             std::to_string(can_write(files.mine + "/new"));
    });
    CHECK(seen == "1000");
    CHECK(can_read(files.other + "/file"));
    CHECK(can_write(files.mine + "/new"));
    const FileFence writable({.write = {files.mine}});
    CHECK(writable.run_behind([&] { return can_write(files.mine + "/newer"); }) == true);
    CHECK(writable.run_behind([&] { return can_write(files.other + "/newer"); }) == false);
  }

  TEST_CASE("what work throws comes out") {
    if (without_landlock()) return;
    const FileFence fence({});
    CHECK_THROWS_AS((void)fence.run_behind([]() -> int { throw std::out_of_range("no"); }),
                    std::out_of_range);
  }

  TEST_CASE("a program that is started behind it takes the fence along to what it starts") {
    if (without_landlock()) return;
    const Files files;
    const FileFence fence({.read = {files.mine},
                           .execute = {"/bin", "/usr/bin", "/lib", "/lib64", "/usr/lib"},
                           .write = {"/dev/null"}});
    const auto said_by = [&](const std::string& command) {
      const auto result = run_process({.arguments = {"/bin/sh", "-c", command}, .fence = &fence});
      CHECK_MESSAGE(result.succeeded(), result.message, result.error);
      return result.output;
    };
    CHECK(said_by("cat " + files.mine + "/file") == "mine");
    CHECK(said_by("sh -c 'cat " + files.other + "/file' 2>/dev/null || echo refused") == "refused\n");
    CHECK(said_by("(echo x > " + files.mine + "/new) 2>/dev/null || echo refused") == "refused\n");
    CHECK(run_process({.arguments = {"cat", files.other + "/file"}}).output == "other");
  }

  TEST_CASE("a program that it does not hold cannot be started, and that is told") {
    if (without_landlock()) return;
    const FileFence fence({.write = {"/dev/null"}});
    const auto result = run_process({.arguments = {"/bin/sh", "-c", "true"}, .fence = &fence});
    CHECK(result.status == ProcessStatus::failed_to_start);
    CHECK(result.message.find("not allowed to run /bin/sh") != std::string::npos);
  }
}
