#include <mtmc/support/file_descriptor.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <type_traits>
#include <unistd.h>
#include <utility>

using mtmc::FileDescriptor;

static_assert(!std::is_copy_constructible_v<FileDescriptor>);

namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int descriptor) { return ::fcntl(descriptor, F_GETFD) >= 0; }

} // namespace

TEST_CASE("a file descriptor is closed with its owner") {
  const int raw = open_null();
  {
    const FileDescriptor owner{raw};
    CHECK(owner);
    CHECK(owner.get() == raw);
    CHECK(is_open(raw));
  }
  CHECK_FALSE(is_open(raw));
}

TEST_CASE("a moved file descriptor has one owner") {
  const int raw = open_null();
  FileDescriptor first{raw};
  FileDescriptor second{std::move(first)};
  CHECK_FALSE(first);
  CHECK(second.get() == raw);
  const int other = open_null();
  FileDescriptor third{other};
  third = std::move(second);
  CHECK(third.get() == raw);
  CHECK_FALSE(is_open(other));
  CHECK(is_open(raw));
}

TEST_CASE("a released file descriptor stays open, and a failed open() gives none") {
  FileDescriptor owner{open_null()};
  const int raw = owner.release();
  CHECK_FALSE(owner);
  CHECK(is_open(raw));
  owner.reset(raw);
  owner.reset();
  CHECK_FALSE(is_open(raw));
  CHECK_FALSE(FileDescriptor{::open("/does/not/exist", O_RDONLY)});
}
