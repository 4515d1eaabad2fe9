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

TEST_CASE("an error that passes through an outer place tells both") {
  const Error inner("mtmc.x.001", "it broke", "Mend it", "line 3");
  const Error outer = inner.within("task.json");
  CHECK(outer.place() == "task.json, line 3");
  CHECK(outer.id() == inner.id());
  CHECK(outer.message() == inner.message());
  CHECK(outer.remedy() == inner.remedy());
  CHECK(std::string(outer.what()) == "[mtmc.x.001] it broke (task.json, line 3). Mend it");
  CHECK(Error("mtmc.x.001", "it broke", "Mend it").within("task.json").place() == "task.json");
  CHECK(inner.within("").place() == "line 3");
}
