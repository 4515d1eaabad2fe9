#include <mtmc/core/error.hpp>

#include <doctest/doctest.h>

using namespace mtmc;

TEST_CASE("an error says what happened, where, and what to do") {
  const Error error(error_id::task_unreadable, "cannot read the task", "Check the path", "gemm.json");
  CHECK(std::string(error.what()) == "[mtmc.task.001] cannot read the task (gemm.json). Check the path");
  CHECK(error.id() == "mtmc.task.001");
  CHECK(error.place() == "gemm.json");
  CHECK(error.remedy() == "Check the path");
}

TEST_CASE("place and remedy may be missing") {
  CHECK(std::string(Error("host.1", "boom", "").what()) == "[host.1] boom");
}
