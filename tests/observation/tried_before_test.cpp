#include <mtmc/observation/tried_before.hpp>

#include <doctest/doctest.h>

using Names = std::vector<std::string_view>;

namespace {
mtmc::HistoryEntry tried(const char* key) {
  mtmc::HistoryEntry entry;
  entry.action_key = key;
  return entry;
}
} // namespace

TEST_CASE("which functions a path speaks of") {
  CHECK(mtmc::functions_of("gemm/i/j+j#2") == Names{"gemm"});
  CHECK(mtmc::functions_of("gemm#2/threads:xy") == Names{"gemm"});
  CHECK(mtmc::functions_of("launch:gemm#2") == Names{"gemm"});
  CHECK(mtmc::functions_of("launch:a+launch:b#3") == Names{"a", "b"});
  CHECK(mtmc::functions_of("") == Names{});
}

TEST_CASE("a path in Python names the members of a run") {
  CHECK(mtmc::members_of_run("Model/relu+launch:softmax#2+tanh#3") == Names{"relu", "softmax", "tanh#3"});
  CHECK(mtmc::members_of_run("launch:a+relu#2+launch:b") == Names{"a", "relu#2", "b"});
  CHECK(mtmc::members_of_run("Model/relu") == Names{"relu"});
  CHECK(mtmc::members_of_run("") == Names{});
}

TEST_CASE("a step is about a launch where its region is of that function, alone or among others") {
  CHECK(mtmc::is_about(tried("tiling|gemm/k"), {"gemm"}));
  CHECK(mtmc::is_about(tried("fusion|launch:gemm+launch:bias"), {"bias"}));
  CHECK_FALSE(mtmc::is_about(tried("tiling|gemm2/k"), {"gemm"}));
  CHECK_FALSE(mtmc::is_about(tried("vectorization|soften/gather"), {"gather"})); // a loop's name
  CHECK_FALSE(mtmc::is_about(tried("stop"), {"gemm"}));
}
