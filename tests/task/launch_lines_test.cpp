#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

using namespace mtmc;

namespace {

Task linear_task() {
  Task task{"linear", "", {languages::cuda, ""}};
  task.arguments = {{"A", ArgumentRole::input, DataType::f32, {"M", "K"}},
                    {"C", ArgumentRole::output, DataType::f16, {"M"}},
                    {"M", ArgumentRole::scalar, DataType::i32},
                    {"K", ArgumentRole::scalar, DataType::i32, {}, "K"},
                    {"alpha", ArgumentRole::scalar, DataType::f32, {}, "0.25"}};
  return task;
}

LaunchPlan plan(std::string source, Symbols symbols = {{"M", 100}, {"K", 30}}) {
  auto task = linear_task();
  task.kernel.source = std::move(source);
  return plan_launches(task.kernel, task, {std::move(symbols)}, 132);
}

std::string plan_error(std::string source, Symbols symbols = {{"M", 100}, {"K", 30}}) {
  try {
    (void)plan(std::move(source), std::move(symbols));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("scratch memory of zeros is filled before the first launch that it is passed to") {
  const auto result = plan(R"(
//@ scratch T: f32[M]
//@ scratch tickets: i32[4]   zero
//@ scratch unused: i32[4] zero
//@ launch f(T, M)
//@ launch f(T, tickets, tickets)
//@ launch f(tickets, T)
)");
  std::vector<std::vector<bool>> zeroed;
  for (const auto& launch : result.launches) {
    zeroed.emplace_back();
    for (const auto& argument : launch.arguments) zeroed.back().push_back(argument.zeroed);
  }
  CHECK(zeroed == std::vector<std::vector<bool>>{{false, false}, {false, true, false}, {false, false}});
}

TEST_CASE("launch lines are read in order, with grid, block, shared memory and scratch") {
  const auto result = plan(R"(
//@ scratch T: f32[M, K + 2]
__global__ void linear() {}
  //@ launch linear<<<(ceil_div(K, 16), ceil_div(M, 16)), (16, 8), 4096>>>(A, T, M, K, alpha)
//@ launch row_max<<<2*compute_units, 128>>>(T, C, max(M, 64))
)");
  REQUIRE(result.scratch.size() == 1);
  CHECK(result.scratch[0].extents == std::vector<std::int64_t>{100, 32});
  CHECK(result.scratch[0].bytes() == 100 * 32 * 4);
  REQUIRE(result.launches.size() == 2);
  const auto& first = result.launches[0];
  CHECK(first.entry == "linear");
  CHECK(first.grid == std::array<std::int64_t, 3>{2, 7, 1});
  CHECK(first.block == std::array<std::int64_t, 3>{16, 8, 1});
  CHECK(first.shared_bytes == 4096);
  CHECK(first.line == 4);
  REQUIRE(first.arguments.size() == 5);
  CHECK(first.arguments[0].kind == LaunchArgument::Kind::buffer);
  CHECK_FALSE(first.arguments[0].writable);
  CHECK(first.arguments[1].writable);
  CHECK(first.arguments[2].integer == 100);
  CHECK(first.arguments[2].type == DataType::i32);
  CHECK(first.arguments[4].real == 0.25);
  const auto& second = result.launches[1];
  CHECK(second.grid[0] == 264);
  CHECK(second.arguments[1].writable);
  CHECK(second.arguments[1].type == DataType::f16);
  CHECK(second.arguments[2].kind == LaunchArgument::Kind::scalar);
  CHECK(second.arguments[2].integer == 100);
}

TEST_CASE("on a CPU there is no grid, and Python text has its own marker") {
  Task task = linear_task();
  task.kernel = {languages::triton, "#@ launch f(A, C)\n//@ launch not_this(A)\n"};
  const auto result = plan_launches(task.kernel, task, {{{"M", 4}, {"K", 4}}}, 1);
  REQUIRE(result.launches.size() == 1);
  CHECK(result.launches[0].grid == std::array<std::int64_t, 3>{1, 1, 1});
}

TEST_CASE("a tensor map names a buffer and its box") {
  const auto result = plan("//@ launch f(tensor_map(A, 64, K), C)\n");
  const auto& map = result.launches[0].arguments[0];
  CHECK(map.kind == LaunchArgument::Kind::tensor_map);
  CHECK(map.name == "A");
  CHECK(map.operands == std::vector<std::int64_t>{64, 30});
  CHECK(map.options.empty());
}

TEST_CASE("a tensor map has named options behind its box") {
  const auto result = plan("//@ launch f(tensor_map(A, 64, K, swizzle = 4 * 32, nan_fill=1), C)\n");
  const auto& map = result.launches[0].arguments[0];
  CHECK(map.operands == std::vector<std::int64_t>{64, 30});
  CHECK(map.options == std::map<std::string, std::int64_t>{{"swizzle", 128}, {"nan_fill", 1}});
  CHECK(contains(plan_error("//@ launch f(tensor_map(A, swizzle=32, 64))\n"), "come last"));
  CHECK(contains(plan_error("//@ launch f(tensor_map(A, 64, swizle=32))\n"), "there are swizzle"));
  CHECK(contains(plan_error("//@ launch f(tensor_map(A, 64, swizzle=x))\n"), "launch of f, line 1"));
}

TEST_CASE("the last thing in a launch configuration may be a cluster") {
  const std::array<std::int64_t, 3> none{1, 1, 1};
  CHECK(plan("//@ launch f<<<8, 32>>>(A)\n").launches[0].cluster == none);
  const auto without_memory = plan("//@ launch f<<<8, 32, cluster(2)>>>(A)\n").launches[0];
  CHECK(without_memory.cluster == std::array<std::int64_t, 3>{2, 1, 1});
  CHECK(without_memory.shared_bytes == 0);
  const auto with_memory =
      plan("//@ launch f<<<(8, 8), 32, 4 * M, cluster(2, K / 15, 1)>>>(A)\n").launches[0];
  CHECK(with_memory.cluster == std::array<std::int64_t, 3>{2, 2, 1});
  CHECK(with_memory.shared_bytes == 400);
  CHECK(contains(plan_error("//@ launch f<<<8, 32, 0, cluster(0)>>>(A)\n"), "at least 1"));
  CHECK(contains(plan_error("//@ launch f<<<8, 32, 0, cluster()>>>(A)\n"), "one to three extents"));
  CHECK(contains(plan_error("//@ launch f<<<8, 32, 0, 2>>>(A)\n"), "and a cluster"));
}

TEST_CASE("parentheses of an expression are not a list of extents") {
  const auto result = plan("//@ launch f<<<(M + 1) * (K + 1), (32)>>>(A)\n");
  CHECK(result.launches[0].grid[0] == 101 * 31);
  CHECK(result.launches[0].block[0] == 32);
}

TEST_CASE("what is wrong is said with the line and the remedy") {
  CHECK(contains(plan_error("void f();\n//@ lunch f(A)\n"), "line 2"));
  CHECK(contains(plan_error("//@ lunch f(A)\n"), "neither `scratch` nor `launch`"));
  CHECK(contains(plan_error("//@ launch (A)\n"), "entry function's name is missing"));
  CHECK(contains(plan_error("//@ launch f(A\n"), "arguments in parentheses"));
  CHECK(contains(plan_error("//@ launch f(A,,C)\n"), "malformed"));
  CHECK(contains(plan_error("//@ launch f<<<1>>>(A)\n"), "needs grid, block"));
  CHECK(contains(plan_error("//@ launch f<<<1, (1,1,1,1)>>>(A)\n"), "one to three extents"));
  CHECK(contains(plan_error("//@ launch f<<<1, 0>>>(A)\n"), "at least 1"));
  CHECK(contains(plan_error("//@ launch f<<<1, 1, 0 - 4>>>(A)\n"), "negative"));
  CHECK(contains(plan_error("//@ scratch T: float[M]\n"), "is not a data type"));
  CHECK(contains(plan_error("//@ scratch T f32[M]\n"), "colon"));
  CHECK(contains(plan_error("//@ scratch T: f32[M] zeros\n"), "with ` zero` behind it"));
  CHECK(contains(plan_error("//@ scratch T: f32[M zero]\n"), "zero"));
  CHECK(contains(plan_error("//@ scratch A: f32[M]\n//@ launch f(A)\n"), "already taken"));
  CHECK(contains(plan_error("//@ scratch T: f32[M - 100]\n//@ launch f(T)\n"), "is 0"));
  CHECK(contains(plan_error("//@ launch f(tensor_map(Q, 4))\n"), "unknown buffer \"Q\""));
  CHECK(contains(plan_error("//@ launch f(tensor_map(M, 4))\n"), "unknown buffer \"M\""));
  CHECK(contains(plan_error("void f();\n"), "no launch line"));
}

TEST_CASE("shapes that cannot be evaluated are errors with a place, not crashes") {
  CHECK(contains(plan_error("//@ launch f(A)\n", {{"M", 1}}), error_id::task_expression));
  CHECK(contains(plan_error("//@ launch f(A)\n", {{"M", 1}}), "shape of A"));
  CHECK(contains(plan_error("//@ launch f(M / (K - 30))\n"), "launch of f, line 1"));
  CHECK(contains(plan_error("//@ launch f(A)\n", {{"M", 1LL << 40}, {"K", 1LL << 40}}), "shape of A"));
}

TEST_CASE("compulsory traffic follows the roles unless the task states it") {
  auto task = linear_task();
  const ProblemSize size{{{"M", 10}, {"K", 3}}};
  CHECK(least_bytes(task, size) == 10 * 3 * 4 + 10 * 2);
  task.arguments[1].role = ArgumentRole::inout;
  CHECK(least_bytes(task, size) == 10 * 3 * 4 + 2 * 10 * 2);
  task.bytes = "7*M";
  CHECK(least_bytes(task, size) == 70);
  CHECK(stated_flops(task, size) == 0);
  task.flops = "2*M*K";
  CHECK(stated_flops(task, size) == 60);
}

TEST_CASE("a floating scalar is a decimal number in any notation, or an expression") {
  const auto alpha = [](std::string value) {
    auto task = linear_task();
    task.arguments[4].value = std::move(value);
    task.kernel.source = "//@ launch f(alpha)\n";
    return plan_launches(task.kernel, task, {{{"M", 7}, {"K", 2}}}, 1).launches[0].arguments[0].real;
  };
  CHECK(alpha("0.25") == 0.25);
  CHECK(alpha(" -1.5e-3 ") == -1.5e-3);
  CHECK(alpha(".5") == 0.5);
  CHECK(alpha("3") == 3);
  CHECK(alpha("1e-310") == 1e-310);
  CHECK(alpha("M / K") == 3);
  for (const auto* wrong : {"", "nan", "inf", "-inf", "1e999", "0.5 + M", "0,5", "0x1p3"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS((void)alpha(wrong), Error);
  }
}
