#include <mtmc/support/shared_library.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

using mtmc::SharedLibrary;
using mtmc::SharedLibraryError;

namespace {

// The C mathematics library: on every Linux with glibc, under this name.
const std::array<std::string, 2> names{"libmtmc-no-such-library.so.7", "libm.so.6"};

template <class Operation> std::string failure_of(const Operation& operation) {
  try {
    operation();
  } catch (const SharedLibraryError& error) {
    return error.what();
  }
  return "it succeeded";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("the first library that can be opened is used, and its functions can be called") {
  const SharedLibrary library = SharedLibrary::open(names);
  CHECK(library.name() == "libm.so.6");
  CHECK(library.symbol<double(double)>("cbrt")(27.0) == doctest::Approx(3.0));
  CHECK((library.find<double(double)>("cbrt") != nullptr));
}

TEST_CASE("a missing symbol is null, or an error that names library and symbol") {
  const SharedLibrary library = SharedLibrary::open(names);
  CHECK((library.find<void()>("no_such_function") == nullptr));
  CHECK(failure_of([&] { (void)library.symbol<void()>("no_such_function"); }) ==
        "libm.so.6 has no symbol no_such_function; another version of the library is needed");
}

TEST_CASE("if none can be opened the error keeps the loader's reason for each") {
  const std::array<std::string, 2> missing{"libmtmc-missing-one.so", "/etc/passwd"};
  const std::string text = failure_of([&] { (void)SharedLibrary::open(missing); });
  CHECK(contains(text, "libmtmc-missing-one.so: cannot open shared object file"));
  CHECK(contains(text, "/etc/passwd: "));
  CHECK(contains(text, "install it"));
  CHECK(contains(failure_of([] { (void)SharedLibrary::open({}); }), "no shared library was named"));
}

TEST_CASE("a library moves with its owner") {
  SharedLibrary first = SharedLibrary::open(names, {.keep_loaded = true});
  SharedLibrary second{std::move(first)};
  CHECK((first.find<double(double)>("cbrt") == nullptr));
  CHECK(second.symbol<double(double)>("cbrt")(8.0) == doctest::Approx(2.0));
  first = std::move(second);
  CHECK(first.symbol<double(double)>("cbrt")(8.0) == doctest::Approx(2.0));
  CHECK(first.name() == "libm.so.6");
}
