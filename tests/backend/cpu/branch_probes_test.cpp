// Which ways the branches of a kernel go, shown by stores in its assembly.
#include <mtmc/backend/cpu/branch_probes.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "kernels.hpp"

using mtmc::detail::BranchProbes;

namespace {

#ifdef __x86_64__
constexpr bool is_supported = true;
#else
constexpr bool is_supported = false;
#endif

/// A kernel of the vector task, compiled with probes, with its buffers.
class ProbedBench {
public:
  ProbedBench(CpuBackend& backend, std::string_view text, std::int64_t n) : backend_(backend) {
    const auto task = vector_task(text);
    plan_ = plan_of(task, n);
    auto compiled = backend.compile_probed(task.kernel, {.plan = plan_}, {});
    REQUIRE_MESSAGE(compiled.program != nullptr, said(compiled.diagnostics));
    program_ = std::move(compiled.program);
    for (auto& launch : plan_.launches)
      for (auto& argument : launch.arguments)
        if (argument.kind == LaunchArgument::Kind::buffer) {
          auto& buffer =
              buffers_.try_emplace(argument.name, backend.allocate(4 * static_cast<std::size_t>(n)))
                  .first->second;
          argument.bound = {buffer.handle(), 0, 4 * n};
        }
  }
  /// All of `x` the same.
  void call(float x) {
    const auto content = buffers_.at("x").content();
    for (std::size_t at = 0; at < content.size(); at += sizeof x) std::memcpy(&content[at], &x, sizeof x);
    const auto status = backend_.run(*program_, plan_, in(10s));
    REQUIRE_MESSAGE(status.finished(), status.message);
  }
  /// Whether all branches of a line have gone both ways.
  [[nodiscard]] bool covers(int line) {
    bool there = false;
    bool covered = true;
    for (const auto& branch : backend_.branches(*program_))
      if (branch.line == line) there = true, covered = covered && branch.is_covered();
    REQUIRE(there);
    return covered;
  }
  [[nodiscard]] std::set<int> lines() {
    std::set<int> lines;
    for (const auto& branch : backend_.branches(*program_)) lines.insert(branch.line);
    return lines;
  }
  [[nodiscard]] float result(std::size_t i) {
    float value = 0;
    std::memcpy(&value, &buffers_.at("y").content()[4 * i], sizeof value);
    return value;
  }

private:
  CpuBackend& backend_;
  LaunchPlan plan_;
  std::map<std::string, CpuBuffer> buffers_;
  std::shared_ptr<CpuProgram> program_;
};

} // namespace

TEST_SUITE("branch probes of C++") {
  TEST_CASE("a conditional jump is told apart from its place, and what is not the kernel's is left alone") {
    const auto probed = BranchProbes("kernel.cpp", "", {9}, "mtmc_launch_")
                            .probe("\t.file\t1 \"kernel.cpp\"\n\t.file\t2 \"new\"\n"
                                   "f:\n\t.loc\t1 3 7\n\tcmpl\t%eax, %ebx\n\tjle\t.L2\n"
                                   "\t.loc\t2 5 1\n\tje\t.L2\n"
                                   "mtmc_launch_0:\n\t.loc\t1 9 0\n\tjne\t.L3\n\t.loc\t1 4 2\n\tsetne\t%al\n",
                                   "mtmc_launch_1");
    REQUIRE(probed.branches.size() == 2);
    CHECK(probed.branches[0] == Branch{3, 7, false, false});
    CHECK(probed.branches[1] == Branch{4, 2, false, false});
    CHECK(probed.text.find("\tjnle\t.Lmtmc_other0\n\tmovb\t$1, mtmc_branches+0(%rip)\n\tjmp\t.L2\n") !=
          std::string::npos);
    CHECK(probed.text.find("\tje\t.L2\n") != std::string::npos);
    CHECK(probed.text.find("\tjne\t.L3\n") != std::string::npos);
    CHECK(probed.text.find(".comm\tmtmc_branches,4,32") != std::string::npos);
  }

  TEST_CASE("questions about NaNs and signs of quotients, which are the compiler's, have no probes") {
    const auto probed = BranchProbes("kernel.cpp", "", {}, "mtmc_launch_")
                            .probe("\t.file\t1 \"kernel.cpp\"\n\t.loc\t1 3 7\n\tjp\t.L2\n\tsetnp\t%al\n"
                                   "\tcmovns\t%eax, %ebx\n\tjmp\t.L2\n",
                                   "mtmc_launch_1");
    CHECK(probed.branches.empty());
  }

  TEST_CASE("conditional moves have probes, also with the size that Clang writes") {
    const auto probed = BranchProbes("kernel.cpp", "", {}, "mtmc_launch_")
                            .probe("\t.file\t1 \"kernel.cpp\"\n\t.loc\t1 3 7\n\tcmovne\t%eax, %ebx\n"
                                   "\tcmovel\t%eax, %ebx\n\tcmovgq\t%rax, %rbx\n\tcmovnsl\t%eax, %ebx\n",
                                   "mtmc_launch_1");
    CHECK(probed.branches.size() == 3);
    CHECK(probed.text.find("\tjg\t.Lmtmc_one2\n") != std::string::npos);
  }

  TEST_CASE("calls show which ways the conditions of a kernel went") {
    if (!is_supported) return;
    ProbedBench bench(shared_backend(),
                      "//@ launch f(x, y, n)\n"
                      "void f(const float* x, float* y, int n) {\n"
                      "  for (int i = 0; i < n; ++i) {\n"
                      "    y[i] = x[i];\n"
                      "    if (x[i] > 5)\n"
                      "      y[i] = 0;\n"
                      "    const bool three = x[i] == 3;\n"
                      "    y[i] *= 1 + three;\n"
                      "    y[i] = n > 100 ? -y[i] : y[i];\n"
                      "  }\n"
                      "}\n",
                      16);
    bench.call(1);
    CHECK(bench.covers(3));
    CHECK_FALSE(bench.covers(5));
    CHECK_FALSE(bench.covers(7));
    CHECK(bench.result(15) == 1);
    bench.call(3);
    CHECK(bench.covers(7));
    CHECK_FALSE(bench.covers(5));
    CHECK(bench.result(0) == 6);
    bench.call(7);
    CHECK(bench.covers(5));
    CHECK_FALSE(bench.covers(9));
  }

  TEST_CASE(
      "threads of OpenMP, lambdas and templates have theirs, the loops that compilers deal out have not") {
    if (!is_supported) return;
    ProbedBench bench(shared_backend(),
                      "//@ launch f(x, y, n)\n"
                      "template <int K> float g(float x) {\n"
                      "  return x > K ? 1 : 0;\n"
                      "}\n"
                      "void f(const float* x, float* y, int n) {\n"
                      "#pragma omp parallel for schedule(static, 4)\n"
                      "  for (int i = 0; i < n; ++i) {\n"
                      "    const auto h = [&](float v) {\n"
                      "      return v < 0 ? g<1>(v) : g<2>(v);\n"
                      "    };\n"
                      "    y[i] = h(x[i]);\n"
                      "  }\n"
                      "}\n",
                      64);
    CHECK_FALSE(bench.lines().contains(6));
    bench.call(1);
    CHECK_FALSE(bench.covers(3));
    CHECK_FALSE(bench.covers(9));
    bench.call(-1);
    CHECK(bench.covers(9));
    CHECK_FALSE(bench.covers(3)); // g<1> has never met more than 1
  }

  TEST_CASE("a program of the usual kind has no branches to show") {
    const auto task = vector_task("//@ launch f(x, y, n)\n"
                                  "void f(const float* x, float* y, int n) {\n"
                                  "  for (int i = 0; i < n; ++i) y[i] = x[i] > 0 ? 1 : 0;\n"
                                  "}\n");
    const auto compiled = compile(shared_backend(), task);
    REQUIRE(compiled.program != nullptr);
    CHECK(CpuBackend::branches(*compiled.program).empty());
  }

  TEST_CASE("what the screens refuse is refused here, too") {
    const auto task = vector_task("//@ launch f(x, y, n)\n"
                                  "int calls = 0;\n"
                                  "void f(const float* x, float* y, int n) {\n"
                                  "  for (int i = 0; i < n; ++i) y[i] = x[i] + ++calls;\n"
                                  "}\n");
    const auto compiled = shared_backend().compile_probed(task.kernel, {.plan = plan_of(task, 8)}, {});
    CHECK(compiled.program == nullptr);
    CHECK((compiled.refused || !is_supported));
  }
}
