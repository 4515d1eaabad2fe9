#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace mtmc;

namespace {

std::string error_of(const CompileResult<int>& result) {
  try {
    (void)result.program_or_throw("judges");
    return "none";
  } catch (const Error& error) {
    CHECK(error.id() == "mtmc.backend.001");
    return error.message();
  }
}

} // namespace

TEST_CASE("a kernel of the library's own gives its program, or says why it does not compile") {
  CompileResult<int> result;
  CHECK(error_of(result) == "the kernel that judges cannot be compiled in time");
  result.diagnostics.push_back({Severity::error, 3, 0, "expected `;`", {}, {}});
  CHECK(error_of(result) == "the kernel that judges cannot be compiled: expected `;`");
  result.timed_out = true;
  CHECK(error_of(result) == "the kernel that judges cannot be compiled in time");
  result.program = std::make_shared<int>(7);
  CHECK(result.program_or_throw("judges") == result.program);
}
