#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <errno.h>
#include <signal.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <type_traits>
#include <unistd.h>
#include <utility>

using mtmc::create_folders;
using mtmc::TemporaryFolder;
using mtmc::write_file_atomic;

static_assert(!std::is_copy_constructible_v<TemporaryFolder>);
static_assert(std::is_nothrow_move_constructible_v<TemporaryFolder>);

namespace {

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

} // namespace

TEST_CASE("a temporary folder exists for this user alone and goes with all its content") {
  std::string path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    CHECK(path.starts_with("/tmp/mtmc-"));
    struct stat status{};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0700);
    create_folders(path + "/a/b/c");
    for (int i = 0; i < 300; ++i) write_file_atomic(path + "/a/b/file" + std::to_string(i), "x");
    write_file_atomic(path + "/.hidden", "x");
  }
  CHECK_FALSE(exists(path));
}

TEST_CASE("two temporary folders differ, and base and name are as asked for") {
  const TemporaryFolder outer;
  const TemporaryFolder first{{.base = outer.path(), .prefix = "build-"}};
  const TemporaryFolder second{{.base = outer.path(), .prefix = "build-"}};
  CHECK(first.path() != second.path());
  CHECK(first.path().starts_with(outer.path() + "/build-"));
}

TEST_CASE("symbolic links are removed, not what they point to") {
  const TemporaryFolder kept;
  write_file_atomic(kept.path() + "/file", "precious");
  std::string path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    REQUIRE(::symlink(kept.path().c_str(), (path + "/folder-link").c_str()) == 0);
    REQUIRE(::symlink((kept.path() + "/file").c_str(), (path + "/file-link").c_str()) == 0);
    REQUIRE(::symlink("/nowhere", (path + "/dangling").c_str()) == 0);
  }
  CHECK_FALSE(exists(path));
  CHECK(mtmc::read_file(kept.path() + "/file") == "precious");
}

TEST_CASE("folders that were made unreadable are removed all the same") {
  std::string path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    create_folders(path + "/locked/inner");
    write_file_atomic(path + "/locked/inner/file", "x");
    REQUIRE(::chmod((path + "/locked/inner").c_str(), 0500) == 0);
    REQUIRE(::chmod((path + "/locked").c_str(), 0000) == 0);
    REQUIRE(::chmod(path.c_str(), 0000) == 0);
  }
  CHECK_FALSE(exists(path));
}

TEST_CASE("a folder nested too deeply to be removed stays, and takes no harm") {
  std::string path;
  std::string deep;
  {
    const TemporaryFolder folder;
    path = folder.path();
    deep = path;
    for (int i = 0; i < 150; ++i) deep += "/d";
    create_folders(deep);
  }
  CHECK(exists(path));
  mtmc::detail::remove_tree((path + deep.substr(path.size(), 2 * 80)).c_str());
  CHECK(mtmc::detail::remove_tree(path.c_str()));
  CHECK_FALSE(exists(path));
}

TEST_CASE("a moved or released folder has one owner or none") {
  TemporaryFolder first;
  const std::string first_path = first.path();
  TemporaryFolder second{std::move(first)};
  CHECK(first.path().empty());
  CHECK(second.path() == first_path);
  TemporaryFolder third;
  const std::string third_path = third.path();
  third = std::move(second);
  CHECK_FALSE(exists(third_path));
  CHECK(third.path() == first_path);

  std::string released;
  {
    TemporaryFolder folder;
    released = folder.release();
  }
  CHECK(exists(released));
  CHECK(mtmc::detail::remove_tree(released.c_str()));
}

TEST_CASE("a claimed folder of a process that was killed goes with the next one") {
  const TemporaryFolder base;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    TemporaryFolder claimed{{.base = base.path(), .claimed = true}};
    TemporaryFolder plain{{.base = base.path()}};
    const auto paths = claimed.path() + plain.path();
    if (::write(ends[1], paths.data(), paths.size()) < 0) ::_exit(1);
    for (;;) ::pause();
  }
  std::string paths(2 * (base.path() + "/mtmc-123456").size(), ' ');
  REQUIRE(::read(ends[0], paths.data(), paths.size()) == static_cast<ssize_t>(paths.size()));
  const auto claimed = paths.substr(0, paths.size() / 2);
  const auto plain = paths.substr(paths.size() / 2);

  {
    const TemporaryFolder next{{.base = base.path(), .claimed = true}};
  }
  CHECK(exists(claimed)); // its process lives

  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  {
    const TemporaryFolder unclaimed{{.base = base.path()}};
  }
  CHECK(exists(claimed)); // nobody has looked
  {
    const TemporaryFolder other{{.base = base.path(), .prefix = "other-", .claimed = true}};
    CHECK(exists(claimed)); // another prefix
    const TemporaryFolder next{{.base = base.path(), .claimed = true}};
    CHECK_FALSE(exists(claimed));
    CHECK(exists(plain)); // never claimed
    CHECK(exists(next.path()));
    const TemporaryFolder third{{.base = base.path(), .claimed = true}};
    CHECK(exists(next.path())); // of this very process
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a claim moves with its folder, and a released folder is nobody's to remove") {
  const TemporaryFolder base;
  TemporaryFolder first{{.base = base.path(), .claimed = true}};
  const TemporaryFolder second{std::move(first)};
  {
    const TemporaryFolder next{{.base = base.path(), .claimed = true}};
  }
  CHECK(exists(second.path()));
  std::string released;
  {
    TemporaryFolder folder{{.base = base.path(), .claimed = true}};
    released = folder.release();
  }
  {
    const TemporaryFolder next{{.base = base.path(), .claimed = true}};
  }
  CHECK(exists(released));
}

TEST_CASE("a base that does not exist is an error that names it") {
  try {
    const TemporaryFolder folder{{.base = "/no/such/base"}};
    FAIL("it was created as " << folder.path());
  } catch (const std::system_error& error) {
    CHECK(error.code().value() == ENOENT);
    CHECK(std::string{error.what()}.starts_with("cannot create a temporary folder in /no/such/base ("));
  }
  CHECK_THROWS_AS(TemporaryFolder{{.base = ""}}, std::system_error);
}
