#include <mtmc/core/any.hpp>

#include <numeric>
#include <thread>

#include "kernels.hpp"

static_assert(mtmc::check_backend<mtmc::CpuBackend>());
static_assert(mtmc::HasIdentity<mtmc::CpuBackend>);

TEST_SUITE("CpuBackend") {
  TEST_CASE("a kernel computes on the buffers of its plan") {
    auto& backend = shared_backend();
    Bench bench(backend, "//@ launch axpy(x, y, n, a)\n"
                         "void axpy(const float* __restrict__ x, float* __restrict__ y, int n, float a) {\n"
                         "  for (int i = 0; i < n; ++i) y[i] += a * x[i];\n"
                         "}\n");
    std::iota(bench.of<float>("x").begin(), bench.of<float>("x").end(), 0.0f);
    for (auto& value : bench.of<float>("y")) value = 1;
    const auto status = bench.run();
    REQUIRE_MESSAGE(status.finished(), status.message);
    for (std::size_t i = 0; i < 1024; ++i)
      REQUIRE(bench.of<float>("y")[i] == 1 + 0.5f * static_cast<float>(i));
  }

  TEST_CASE("launches run in order and share scratch memory") {
    auto& backend = shared_backend();
    Bench bench(backend, "//@ scratch t: f64[n, 2]\n"
                         "//@ launch split(x, t, n)\n"
                         "//@ launch join(t, y, n)\n"
                         "//@ launch scale(y, n, a)\n"
                         "void split(const float* x, double (*t)[2], int n) {\n"
                         "  for (int i = 0; i < n; ++i) t[i][0] = x[i], t[i][1] = i;\n"
                         "}\n"
                         "static void join(const double (*t)[2], float* y, long n) {\n"
                         "  for (long i = 0; i < n; ++i) y[i] = float(t[i][0] + t[i][1]);\n"
                         "}\n"
                         "extern \"C\" int scale(float* y, const int& n, double a) noexcept {\n"
                         "  for (int i = 0; i < n; ++i) y[i] *= a;\n"
                         "  return n;\n"
                         "}\n");
    for (auto& value : bench.of<float>("x")) value = 3;
    REQUIRE(bench.run().finished());
    CHECK(bench.of<float>("y")[0] == 1.5f);
    CHECK(bench.of<float>("y")[1000] == 501.5f);
  }

  TEST_CASE("scratch memory of zeros is full of them in every call, also of a group") {
    auto& backend = shared_backend();
    Bench bench(backend, "//@ scratch t: i32[n, 3] zero\n"
                         "//@ launch count(t, y, n)\n"
                         "//@ launch count(t, y, n)\n"
                         "void count(int (*t)[3], float* y, int n) {\n"
                         "  for (int i = 0; i < n; ++i) y[i] = float(++t[i][0] + ++t[i][2]);\n"
                         "}\n");
    for (int i = 0; i < 3; ++i) {
      REQUIRE(bench.run().finished());
      CHECK(bench.of<float>("y")[0] == 4);
      CHECK(bench.of<float>("y")[1000] == 4);
    }
    REQUIRE(bench.time().status.finished());
    CHECK(bench.of<float>("y")[1000] == 4);
  }

  TEST_CASE("every element type arrives as the parameter's own type") {
    auto& backend = shared_backend();
    Task task{.name = "types", .kernel = cpp(R"(
#include <cstdint>
struct bfloat16 { std::uint16_t bits; };
//@ launch types(f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8)
void types(double* f64, float* f32, std::uint16_t* f16, bfloat16* bf16, std::int64_t* i64, int* i32, short* i16,
           signed char* i8, unsigned long* u64, unsigned* u32, std::uint16_t* u16, unsigned char* u8) {
  f64[1] = 0.5, f32[1] = 0.25f, f16[1] = 0x3c00, bf16[1].bits = 0x3f80, i64[1] = -5000000000, i32[1] = -70000;
  i16[1] = -300, i8[1] = -3, u64[1] = 1ul << 63, u32[1] = 1u << 31, u16[1] = 40000, u8[1] = 200;
}
)")};
    for (const auto type :
         {DataType::f64, DataType::f32, DataType::f16, DataType::bf16, DataType::i64, DataType::i32,
          DataType::i16, DataType::i8, DataType::u64, DataType::u32, DataType::u16, DataType::u8})
      task.arguments.push_back(
          {.name = std::string(to_string(type)), .role = ArgumentRole::output, .type = type, .shape = {"n"}});
    Bench bench(backend, task, 2);
    REQUIRE(bench.run().finished());
    CHECK(bench.of<double>("f64")[1] == 0.5);
    CHECK(bench.of<float>("f32")[1] == 0.25f);
    CHECK(bench.of<std::uint16_t>("f16")[1] == 0x3c00);
    CHECK(bench.of<std::uint16_t>("bf16")[1] == 0x3f80);
    CHECK(bench.of<std::int64_t>("i64")[1] == -5000000000);
    CHECK(bench.of<std::int32_t>("i32")[1] == -70000);
    CHECK(bench.of<std::int16_t>("i16")[1] == -300);
    CHECK(bench.of<std::int8_t>("i8")[1] == -3);
    CHECK(bench.of<std::uint64_t>("u64")[1] == std::uint64_t{1} << 63);
    CHECK(bench.of<std::uint32_t>("u32")[1] == std::uint32_t{1} << 31);
    CHECK(bench.of<std::uint16_t>("u16")[1] == 40000);
    CHECK(bench.of<std::uint8_t>("u8")[1] == 200);
  }

  TEST_CASE("scalars are converted to the parameter's type, and refused where they do not fit") {
    auto& backend = shared_backend();
    Bench bench(backend,
                "//@ launch f(y, n, n * 3, a, -1)\n"
                "void f(float* y, unsigned char small, double wide, float a, signed char least) {\n"
                "  y[0] = small, y[1] = float(wide), y[2] = a, y[3] = least;\n"
                "}\n",
                200);
    REQUIRE(bench.run().finished());
    CHECK(bench.of<float>("y")[0] == 200);
    CHECK(bench.of<float>("y")[1] == 600);
    CHECK(bench.of<float>("y")[2] == 0.5f);
    CHECK(bench.of<float>("y")[3] == -1);

    bench.of<float>("y")[0] = 7;
    bench.plan().launches[0].arguments[1].integer = 256;
    const auto status = bench.run();
    CHECK(status.outcome == RunOutcome::launch_failed);
    CHECK(status.message ==
          "argument 2 of the launch in line 1 (`n` = 256) does not fit the type of its parameter in `f`");
    CHECK(bench.of<float>("y")[0] == 7);
    bench.plan().launches[0].arguments[1].integer = 255;
    CHECK(bench.run().finished());
    CHECK(bench.of<float>("y")[0] == 255);
  }

  TEST_CASE("a buffer may lie anywhere in a bigger allocation") {
    auto& backend = shared_backend();
    Bench bench(backend,
                "//@ launch f(y, n)\nvoid f(float* y, int n) { for (int i = 0; i < n; ++i) y[i] = 1; }\n",
                100);
    auto block = backend.allocate(10'000);
    auto& bound = bench.plan().launches[0].arguments[0].bound;
    bound = {block.handle(), 4000, 400};
    REQUIRE(bench.run().finished());
    std::vector<float> content(2500);
    backend.download(block, 0, std::as_writable_bytes(std::span(content)));
    CHECK(content[999] == 0);
    CHECK(content[1000] == 1);
    CHECK(content[1099] == 1);
    CHECK(content[1100] == 0);
  }

  TEST_CASE("upload and download copy bytes and refuse places outside the buffer") {
    auto& backend = shared_backend();
    auto buffer = backend.allocate(10);
    const std::array<std::byte, 4> four{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    backend.upload(buffer, 6, four);
    std::array<std::byte, 4> back{};
    backend.download(buffer, 6, back);
    CHECK(back == four);
    CHECK_THROWS_AS(backend.upload(buffer, 7, four), std::out_of_range);
    CHECK_THROWS_AS(backend.download(buffer, 11, std::span<std::byte>{}), std::out_of_range);
    auto empty = backend.allocate(0);
    backend.upload(empty, 0, {});
    CHECK(empty.content().empty());
  }

  TEST_CASE("memory that is not there is an error, not a killed process") {
    auto& backend = shared_backend();
    try {
      (void)backend.allocate(std::size_t{1} << 46);
      FAIL("64 TiB were allocated");
    } catch (const Error& error) {
      CHECK(error.id() == error_id::backend_memory);
    }
  }

  TEST_CASE("a plan must be bound to live buffers and fit the program") {
    auto& backend = shared_backend();
    Bench bench(backend,
                "//@ launch f(y, n)\nvoid f(float* y, int n) { for (int i = 0; i < n; ++i) y[i] = 1; }\n");
    auto& bound = bench.plan().launches[0].arguments[0].bound;
    const auto good = bound;
    const auto id_of_error = [&] {
      try {
        (void)bench.run();
      } catch (const Error& error) {
        return error.id();
      }
      return std::string{};
    };
    bound.handle = 0;
    CHECK(id_of_error() == error_id::backend_memory);
    bound = good;
    bound.offset = 4;
    CHECK(id_of_error() == error_id::backend_memory);
    bound = good;
    bound.offset = -4;
    CHECK(id_of_error() == error_id::backend_memory);
    bound = good;
    {
      auto dead = backend.allocate(4096);
      bound.handle = dead.handle();
    }
    CHECK(id_of_error() == error_id::backend_memory);
    bound = good;
    CHECK(bench.run().finished());
    bench.plan().launches[0].arguments[0].type = DataType::f64;
    CHECK(bench.run().outcome == RunOutcome::launch_failed);
  }

  TEST_CASE("a group of plans is called back to back in one measurement") {
    auto& backend = shared_backend();
    Bench bench(backend, "//@ launch f(y, n, a)\nvoid f(float* y, int n, float a) { for (int i = 0; i < n; "
                         "++i) y[i] += a; }\n");
    const std::vector<LaunchPlan> group(500, bench.plan());
    const auto timed = backend.time(bench.program(), group, true, in(20s));
    REQUIRE_MESSAGE(timed.status.finished(), timed.status.message);
    CHECK(timed.seconds > 0);
    CHECK(bench.of<float>("y")[5] == 250);
  }

  TEST_CASE("two programs take turns on the same buffers") {
    auto& backend = shared_backend();
    Bench doubles(backend,
                  "//@ launch f(x, n)\nvoid f(float* x, int n) { for (int i = 0; i < n; ++i) x[i] *= 2; }\n");
    Bench adds(backend,
               "//@ launch f(x, n)\nvoid f(float* x, int n) { for (int i = 0; i < n; ++i) x[i] += 1; }\n");
    adds.plan().launches[0].arguments[0].bound = doubles.plan().launches[0].arguments[0].bound;
    for (int i = 0; i < 5; ++i) {
      REQUIRE(adds.time().status.finished());
      REQUIRE(doubles.time().status.finished());
    }
    CHECK(doubles.of<float>("x")[3] == 62);
  }

  TEST_CASE("kernels use as many OpenMP threads as the options say") {
    CpuBackend backend({.threads = 3});
    Bench bench(backend, "#include <omp.h>\n//@ launch f(y)\nvoid f(float* y) {\n"
                         "#pragma omp parallel\n"
                         "#pragma omp single\n"
                         "  y[0] = omp_get_num_threads();\n}\n");
    REQUIRE(bench.run().finished());
    CHECK(bench.of<float>("y")[0] == 3);
  }

  TEST_CASE("the same kernel gives the same program, and a retired one gets another process") {
    auto& backend = bare_backend();
    const std::string text = "#include <unistd.h>\n//@ launch f(y)\nvoid f(float* y) { "
                             "reinterpret_cast<int*>(y)[0] = getppid(); }\n";
    Bench first(backend, text);
    Bench second(backend, text);
    CHECK(&first.program() == &second.program());
    REQUIRE(first.run().finished());
    REQUIRE(second.run().finished());
    CHECK(second.of<int>("y")[0] == first.of<int>("y")[0]);
    first.program().retire();
    REQUIRE(second.run().finished());
    CHECK(second.of<int>("y")[0] != first.of<int>("y")[0]);
    Bench other(backend, text + "// another text\n");
    CHECK(&first.program() != &other.program());
  }

  TEST_CASE("a program dropped and compiled again is not compiled twice") {
    auto& backend = shared_backend();
    const auto task = vector_task("//@ launch f(y)\nvoid f(float* y) { y[0] = 1; }\n");
    auto first = compile(backend, task);
    REQUIRE(first.program);
    first.program.reset();
    const auto second = compile(backend, task);
    CHECK(second.program);
    CHECK(second.resources == first.resources);
    CHECK(second.resources.at("code_bytes") > 0);
    CHECK(second.seconds < 0.01);
  }

  TEST_CASE("programs and buffers may outlive the backend") {
    auto backend = std::make_unique<CpuBackend>();
    auto buffer = backend->allocate(64);
    auto program =
        compile(*backend, vector_task("//@ launch f(y)\nvoid f(float* y) { y[0] = 1; }\n")).program;
    REQUIRE(program);
    backend.reset();
    CHECK(buffer.content().size() == 64);
    program->retire();
  }

  TEST_CASE("compilations and runs from several threads") {
    auto& backend = shared_backend();
    std::vector<std::thread> threads;
    std::vector<int> right(8);
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        // Two threads compile each text.
        const auto text =
            "//@ launch f(y, n)\nvoid f(float* y, int n) { for (int i = 0; i < n; ++i) y[i] = " +
            std::to_string(t / 2) + "; }\n";
        const auto task = vector_task(text);
        auto plan = plan_of(task, 16);
        const auto compiled = backend.compile(task.kernel, {.plan = plan}, {});
        auto buffer = backend.allocate(64);
        plan.launches[0].arguments[0].bound = {buffer.handle(), 0, 64};
        if (!compiled.program || !backend.run(*compiled.program, plan, in(20s)).finished()) return;
        if (!backend.time(*compiled.program, {&plan, 1}, true, in(20s)).status.finished()) return;
        std::array<float, 16> content{};
        backend.download(buffer, 0, std::as_writable_bytes(std::span(content)));
        right[static_cast<std::size_t>(t)] = content[15] == static_cast<float>(t / 2);
      });
    for (auto& thread : threads) thread.join();
    CHECK(right == std::vector<int>(8, 1));
  }

  TEST_CASE("AnyBackend holds it") {
    AnyBackend backend = CpuBackend{};
    const auto task = vector_task(
        "//@ launch f(y, n)\nvoid f(float* y, int n) { for (int i = 0; i < n; ++i) y[i] = 4; }\n");
    auto plan = plan_of(task, 16);
    auto compiled = backend.compile(task.kernel, {.plan = plan}, {});
    REQUIRE(compiled.program);
    auto buffer = backend.allocate(64);
    plan.launches[0].arguments[0].bound = {buffer.handle(), 0, 64};
    REQUIRE(backend.run(*compiled.program, plan, in(20s)).finished());
    std::array<float, 16> content{};
    backend.download(buffer, 0, std::as_writable_bytes(std::span(content)));
    CHECK(content[15] == 4);
    CHECK(backend.identity().find("-O3") != std::string::npos);
    CHECK(backend.device().kind == "cpu");
  }

  TEST_CASE("the device's ceilings are measured once, on demand") {
    CpuBackend backend;
    CHECK(backend.device().measured == MeasuredCeilings{});
    const auto measured = backend.measure_ceilings();
    CHECK(measured.read_bandwidth > 1e8);
    CHECK(measured.f32_rate > 1e8);
    CHECK(measured.f64_rate > 1e8);
    CHECK(backend.device().measured == measured);
    CHECK(backend.measure_ceilings() == measured);
    CHECK(backend.device().software.contains("compiler"));
    CHECK(backend.device().software.at("compiler_files") ==
          (landlock_version() > 0 ? "Landlock" : "checked"));
  }

  TEST_CASE("the overhead of an empty call is known") {
    CpuBackend backend;
    const double overhead = backend.call_overhead();
    CHECK(overhead > 0);
    CHECK(backend.call_overhead() == overhead);
  }

  TEST_CASE("identity names compiler, flags and threads") {
    CpuBackend three({.extra_flags = {"-DONE=1"}, .threads = 3});
    CHECK(three.identity().find("-O3 -march=native -fopenmp -DONE=1") != std::string::npos);
    CHECK(three.identity().find("OMP_NUM_THREADS=3") != std::string::npos);
    CHECK(three.identity() != CpuBackend({.threads = 2}).identity());
  }
}
