// Inputs from .npy files: what is read, what is refused, and what kernels get to see of them.
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cpu.hpp>
#include <mtmc/evaluator/content/captured_inputs.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../../support/npy_bytes.hpp"
#include "../fake_backend.hpp"
#include "../fake_gpu.hpp"

using namespace mtmc;
using fake::Call;

namespace {

template <class T> std::vector<std::byte> bytes_of(const std::vector<T>& elements) {
  std::vector<std::byte> bytes(elements.size() * sizeof(T));
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

template <class T> std::vector<T> elements_of(const std::vector<std::byte>& bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

template <class T>
std::vector<T> varied(const std::vector<T>& elements, DataType type, std::uint64_t key,
                      const std::optional<ValueRange>& range = std::nullopt) {
  auto bytes = bytes_of(elements);
  vary_captured(bytes, type, key, 0, range);
  return elements_of<T>(bytes);
}

constexpr std::int64_t table_rows = 4096;
constexpr std::int64_t gathered = 1000;

/// Scattered over all rows, the last one included.
std::vector<std::int32_t> captured_index() {
  std::vector<std::int32_t> index;
  for (std::int64_t i = 0; i < gathered; ++i)
    index.push_back(static_cast<std::int32_t>((i * 2654435761 + table_rows - 1) % table_rows));
  return index;
}

std::vector<float> captured_table() {
  std::vector<float> table;
  for (std::int64_t i = 0; i < table_rows; ++i) table.push_back(static_cast<float>(i % 251) + 0.5f);
  return table;
}

Kernel gather_kernel(const std::string& entry) {
  return {languages::cpp, "//@ launch " + entry + "(table, index, out)\n", {}};
}

void gather(const Call& call) {
  const auto table = call.buffer<const float>("table");
  const auto index = call.buffer<const std::int32_t>("index");
  const auto out = call.buffer<float>("out");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = table[static_cast<std::size_t>(index[i])];
}

/// out[i] = table[index[i]] on fake hardware, with table and index captured.
template <class B> struct Bench {
  TemporaryFolder folder{};
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task task;

  Bench() {
    task.name = "gather";
    task.kernel = gather_kernel("start");
    task.arguments = {{.name = "table", .role = ArgumentRole::input, .shape = {"R"}},
                      {.name = "index", .role = ArgumentRole::input, .type = DataType::i32, .shape = {"N"}},
                      {.name = "out", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"R", table_rows}, {"N", gathered}}}};
    world->kernels["start"] = {gather};
    task.arguments[0].data = write("table.npy", npy_bytes::file("<f4", "(4096,)", captured_table()));
    task.arguments[1].data = write("index.npy", npy_bytes::file("<i4", "(1000,)", captured_index()));
  }

  std::string write(const std::string& name, const std::string& bytes) const {
    const auto path = folder.path() + '/' + name;
    write_file_atomic(path, bytes);
    return path;
  }
  [[nodiscard]] KernelEvaluator<B> evaluator() const { return KernelEvaluator<B>(B(world), {.seed = 42}); }
  Evaluation judge(const fake::Kernel& body) {
    world->kernels["candidate"] = body;
    auto judged_by = evaluator();
    return judged_by.evaluate({task, gather_kernel("candidate"), task.kernel, Purpose::explore, {}}, {});
  }
  /// What `prepare` says.
  [[nodiscard]] std::string refusal() const {
    auto judged_by = evaluator();
    try {
      judged_by.prepare(task, {});
    } catch (const Error& error) {
      CHECK_FALSE(error.remedy().empty());
      return error.what();
    }
    return "accepted";
  }
};

void check_says(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    INFO(text);
    CHECK(doctest::String(text.c_str()) == doctest::Contains(part));
  }
}

} // namespace

TEST_CASE("captured content is varied by up to an eighth, by its key, and keeps what has a meaning") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  std::vector<float> captured{0.0f, -0.0f, infinite, -infinite, std::nanf(""), 3e38f, -3.4e38f, 1e-45f};
  for (int i = 1; i <= 1000; ++i) captured.push_back(static_cast<float>(i) * (i % 2 == 0 ? 0.25f : -0.25f));
  const auto once = varied(captured, DataType::f32, 7);
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::memcmp(&once[i], &captured[i], 4) == 0);
  CHECK(std::isnan(once[4]));
  int below = 0;
  for (std::size_t i = 5; i < captured.size(); ++i) {
    CHECK(std::isfinite(once[i]));
    const double ratio = static_cast<double>(once[i]) / static_cast<double>(captured[i]);
    CHECK(ratio >= 0.874999);
    CHECK(ratio <= 1.125001);
    below += ratio < 1 ? 1 : 0;
  }
  CHECK(below > 400);
  CHECK(below < 600);
  CHECK(std::memcmp(varied(captured, DataType::f32, 7).data(), once.data(), 4 * once.size()) == 0);
  const auto twice = varied(captured, DataType::f32, 8);
  int same = 0;
  for (std::size_t i = 8; i < captured.size(); ++i) same += once[i] == twice[i] ? 1 : 0;
  CHECK(same < 5);

  const std::vector<std::int64_t> indices{0, 5, -7, 1'000'000'007};
  CHECK(varied(indices, DataType::i64, 7) == indices);
}

TEST_CASE("varied content stays in the domain and in its type, whatever the type") {
  const std::vector<float> ends{1.0f, 1.0f, 0.95f, 0.5f};
  for (std::uint64_t key = 0; key < 50; ++key)
    for (const float value : varied(ends, DataType::f32, key, ValueRange{0.5, 1.0})) {
      CHECK(value >= 0.5f);
      CHECK(value <= 1.0f);
    }
  const std::vector<double> reals{1.0, 1.7e308, -2.5};
  const auto doubles = varied(reals, DataType::f64, 3);
  for (std::size_t i = 0; i < reals.size(); ++i) {
    CHECK(std::abs(doubles[i] / reals[i] - 1) <= 0.125);
    CHECK(doubles[i] != reals[i]);
  }
  // The largest finite number of each format, and 1.
  for (const auto& [type, largest, one] :
       {std::tuple{DataType::f16, 0x7bff, 0x3c00}, std::tuple{DataType::bf16, 0x7f7f, 0x3f80}}) {
    const std::vector<std::uint16_t> bits{static_cast<std::uint16_t>(largest),
                                          static_cast<std::uint16_t>(one)};
    std::set<std::uint16_t> seen;
    for (std::uint64_t key = 0; key < 50; ++key) {
      const auto now = varied(bits, type, key);
      CHECK(now[0] <= largest);
      seen.insert(now[1]);
    }
    CHECK(seen.size() > 10);
  }
}

TEST_CASE_TEMPLATE("checks on normal inputs show captured content as it is, no other case shows any twice", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  const auto table = captured_table();
  const auto index = captured_index();
  int as_captured = 0;
  int calls = 0;
  std::map<std::vector<float>, int> shown;
  const auto answer = bench.judge({[&](const Call& call) {
    gather(call);
    const auto now = call.buffer<const float>("table");
    const auto indices = call.buffer<const std::int32_t>("index");
    CHECK(std::equal(index.begin(), index.end(), indices.begin(), indices.end()));
    ++calls;
    if (std::equal(table.begin(), table.end(), now.begin(), now.end()))
      ++as_captured;
    else
      ++shown[std::vector(now.begin(), now.end())];
  }});
  REQUIRE(answer.diagnostics.empty());
  CHECK(answer.verdict == Verdict::correct);
  CHECK(as_captured == 2);
  CHECK(calls > 12);
  const auto checks = static_cast<int>(all_distributions.size()) - 1;
  int twice = 0;
  for (const auto& [content, times] : shown) {
    // Each check has a second run on another poison.
    CHECK(times <= 2);
    twice += times == 2 ? 1 : 0;
  }
  CHECK(twice == checks);
}

TEST_CASE_TEMPLATE("a kernel that takes captured structure for granted, or remembers its answers, is wrong",
                   B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  CHECK(bench
            .judge({[](const Call& call) {
              const auto table = call.buffer<const float>("table");
              const auto out = call.buffer<float>("out");
              std::copy_n(table.begin(), out.size(), out.begin());
            }})
            .verdict == Verdict::wrong_result);
  auto kept = std::make_shared<std::vector<float>>();
  CHECK(bench
            .judge({[kept](const Call& call) {
              const auto out = call.buffer<float>("out");
              if (kept->empty()) {
                gather(call);
                kept->assign(out.begin(), out.end());
              }
              std::copy(kept->begin(), kept->end(), out.begin());
            }})
            .verdict == Verdict::wrong_result);
}

TEST_CASE_TEMPLATE("captured integers are never replaced by others, unless a domain says which make sense", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  const auto index = captured_index();
  int changed = 0;
  bench.world->kernels["start"] = {[&](const Call& call) {
    const auto now = call.buffer<const std::int32_t>("index");
    for (std::size_t i = 0; i < now.size(); ++i) {
      REQUIRE(now[i] >= 0);
      REQUIRE(now[i] < table_rows);
      changed += now[i] != index[i] ? 1 : 0;
    }
    gather(call);
  }};
  // So fast that the judge looks into what must be read.
  bench.world->device.measured.read_bandwidth = 1e9;
  CHECK(bench.judge({gather, 1e-6}).verdict == Verdict::correct);
  CHECK(changed == 0);
  bench.task.arguments[1].domain = ValueDomain{"0", "R - 1"};
  CHECK(bench.refusal() == "accepted");
  CHECK(changed > 0);
}

TEST_CASE_TEMPLATE("sizes of another shape have generated content", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.task.sizes.push_back({.symbols = {{"R", table_rows}, {"N", 7}}, .weight = 0});
  bench.task.sizes.push_back({.symbols = {{"R", 10}, {"N", 3}}, .weight = 0});
  bench.task.arguments[1].domain = ValueDomain{"0", "R - 1"};
  const auto table = captured_table();
  std::set<std::vector<std::int32_t>> indices;
  int as_captured = 0;
  int small = 0;
  CHECK(bench
            .judge({[&](const Call& call) {
              gather(call);
              const auto index = call.buffer<const std::int32_t>("index");
              const auto now = call.buffer<const float>("table");
              if (index.size() == 7) {
                indices.insert(std::vector(index.begin(), index.end()));
                as_captured += std::equal(table.begin(), table.end(), now.begin(), now.end()) ? 1 : 0;
              }
              small += now.size() == 10 ? 1 : 0;
            }})
            .verdict == Verdict::correct);
  // One file serves two sizes.
  CHECK(as_captured == 2);
  CHECK(indices.size() >= 3);
  CHECK(small > 0);
}

TEST_CASE_TEMPLATE("a hook generates what is not captured", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.task.arguments[0].data.clear();
  std::set<std::string> asked;
  bench.task.generate = [&](const Argument& argument, const ProblemSize&, std::uint64_t key,
                            std::span<std::byte> content) {
    asked.insert(argument.name);
    fill_values(content, argument.type, Distribution::normal, key, 0);
  };
  CHECK(bench.judge({gather, 0.5e-3}).verdict == Verdict::correct);
  CHECK(asked == std::set<std::string>{"table"});
}

TEST_CASE_TEMPLATE("a file is read when the task is prepared, and not again", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  auto evaluator = bench.evaluator();
  evaluator.prepare(bench.task, {});
  bench.write("table.npy", "overwritten");
  bench.world->kernels["honest"] = {gather, 0.5e-3};
  CHECK(evaluator.evaluate({bench.task, gather_kernel("honest"), bench.task.kernel, Purpose::explore, {}}, {})
            .correct());
}

TEST_CASE_TEMPLATE("at expensive sizes, too, captured content is shown as it is", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  // The first two calls tell how expensive a size is; from 50 ms on, timed runs stand in for normal checks.
  bench.world->kernels["start"] = {[](const Call& call) {
    if (call.earlier < 2) std::this_thread::sleep_for(std::chrono::milliseconds(55));
    gather(call);
  }};
  const auto table = captured_table();
  int as_captured = 0;
  CHECK(bench
            .judge({[&](const Call& call) {
              gather(call);
              const auto now = call.buffer<const float>("table");
              as_captured += std::equal(table.begin(), table.end(), now.begin(), now.end()) ? 1 : 0;
            }})
            .correct());
  CHECK(as_captured > 0);
}

TEST_CASE_TEMPLATE("timed sizes whose contents could not change are refused", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.task.arguments[0].type = DataType::i32;
  bench.task.arguments[2].type = DataType::i32;
  bench.task.arguments[0].data =
      bench.write("table.npy", npy_bytes::file("<i4", "(4096,)", std::vector<std::int32_t>(table_rows, 3)));
  check_says(bench.refusal(),
             {"[mtmc.task.002]", "each timed run would show the same contents", "R=4096", "generate hook"});
  // Zeros are as they are, too.
  Bench<B> zeros;
  zeros.task.arguments[0].data =
      zeros.write("table.npy", npy_bytes::file("<f4", "(4096,)", std::vector<float>(table_rows)));
  check_says(zeros.refusal(), {"[mtmc.task.002]", "integers and zeros stay"});
  // A generated input next to the captured one, or another timed size, is enough.
  bench.task.arguments[0].data.clear();
  const auto copy = [](const Call& call) {
    const auto table = call.buffer<const std::int32_t>("table");
    const auto index = call.buffer<const std::int32_t>("index");
    const auto out = call.buffer<std::int32_t>("out");
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = table[static_cast<std::size_t>(index[i])];
  };
  bench.world->kernels["start"] = {copy};
  CHECK(bench.refusal() == "accepted");
  bench.task.arguments[0].data = bench.folder.path() + "/table.npy";
  bench.task.arguments[1].domain = ValueDomain{"0", "R - 1"};
  bench.task.sizes.front().weight = 0;
  bench.task.sizes.push_back({.symbols = {{"R", 100}, {"N", 50}}});
  CHECK(bench.refusal() == "accepted");
}

TEST_CASE_TEMPLATE("files that do not fit the task are refused with place and remedy", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  const auto with_table = [&](const std::string& bytes) {
    bench.write("table.npy", bytes);
    return bench.refusal();
  };
  const auto& path = bench.task.arguments[0].data;
  check_says(with_table(npy_bytes::file("<f8", "(4096,)", std::vector<double>(table_rows, 1))),
             {"[mtmc.task.002]", "\"<f8\"", "the argument is f32", "data of argument table of task gather",
              path.c_str(), "array.astype(numpy.float32)"});
  check_says(with_table(npy_bytes::file("<f4", "(64, 64)", captured_table())),
             {"[mtmc.task.002]", "the shape (64, 64)", "(4096,) at N=1000 R=4096", "Add a size"});
  check_says(with_table("no array"), {"[mtmc.task.002]", "is not a .npy file", "numpy.save"});
  check_says(with_table(npy_bytes::file("<f4", "(4096,)", std::vector<float>(10, 1.0f))),
             {"[mtmc.task.002]", "cut off"});

  Bench<B> outside;
  outside.task.arguments[1].domain = ValueDomain{"0", "R - 1"};
  auto index = captured_index();
  index[17] = 4096;
  index[18] = -1;
  outside.write("index.npy", npy_bytes::file("<i4", "(1000,)", index));
  check_says(outside.refusal(), {"[mtmc.task.002]", "index[17] is 4096", "outside the domain [0, 4095]"});

  Bench<B> missing;
  missing.task.arguments[1].data = missing.folder.path() + "/nowhere.npy";
  check_says(missing.refusal(), {"[mtmc.task.001]", "No such file", "nowhere.npy"});
}

TEST_CASE("files of every type are taken for arguments of that type and no other") {
  const std::vector<std::pair<const char*, std::vector<DataType>>> table{
      {"<f2", {DataType::f16}}, {"<f4", {DataType::f32}}, {"<f8", {DataType::f64}},
      {"|i1", {DataType::i8}},  {"<i2", {DataType::i16}}, {"<i4", {DataType::i32}},
      {"<i8", {DataType::i64}}, {"|u1", {DataType::u8}},  {"<u2", {DataType::u16, DataType::bf16}},
      {"<u4", {DataType::u32}}, {"<u8", {DataType::u64}}, {"|b1", {DataType::i8, DataType::u8}},
      {"<V2", {DataType::bf16}}};
  for (const auto& entry : table) {
    const std::string written = entry.first;
    const auto& fitting = entry.second;
    NpyHeader header;
    detail::read_npy_type(written, header);
    for (const auto& facts : detail::data_type_facts) {
      CAPTURE(written);
      CAPTURE(facts.name);
      CHECK(detail::holds_elements_of(header, facts.type) ==
            (std::find(fitting.begin(), fitting.end(), facts.type) != fitting.end()));
    }
  }
  CHECK(detail::numpy_conversion(DataType::u8) == "array.astype(numpy.uint8)");
}

TEST_CASE("a task file with captured inputs beside it is judged on the processor") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& bytes) {
    write_file_atomic(folder.path() + '/' + name, bytes);
  };
  const auto text = [](const std::string& body) {
    return "//@ launch gather(table, index, out, N)\n"
           "void gather(const float* table, const int* index, float* out, int N) {\n  " +
           body + "\n}\n";
  };
  write("gather.cpp", text("for (int i = 0; i < N; ++i) out[i] = 2 * table[index[i]];"));
  write("table.npy", npy_bytes::file("<f4", "(4096,)", captured_table()));
  write("index.npy", npy_bytes::file("<i4", "(1000,)", captured_index()));
  write("gather.json", R"({"name": "gather", "language": "cpp", "source": "gather.cpp",
    "arguments": [{"name": "table", "shape": ["R"], "data": "table.npy"},
                  {"name": "index", "shape": ["N"], "data": "index.npy"},
                  {"name": "out", "shape": ["N"]}],
    "sizes": [{"R": 4096, "N": 1000}]})");
  const auto task = load_task(folder.path() + "/gather.json");
  CHECK(task.arguments[1].data == folder.path() + "/index.npy");
  KernelEvaluator<CpuBackend> evaluator{CpuBackend{}, {.explore_seconds = 0.05}};
  const auto judge = [&](const std::string& body) {
    return evaluator.evaluate({task, {languages::cpp, text(body), {}}, task.kernel, Purpose::explore, {}},
                              {});
  };
  const auto honest = judge("for (int i = N - 1; i >= 0; --i) out[i] = table[index[i]] * 2;");
  CHECK(honest.verdict == Verdict::correct);
  CHECK(honest.sizes[0].checked_elements == honest.sizes[0].total_elements);
  // Indices in order, and indices below 1024: true of others' tables, not of this one.
  CHECK(judge("for (int i = 0; i < N; ++i) out[i] = 2 * table[i];").verdict == Verdict::wrong_result);
  CHECK(judge("for (int i = 0; i < N; ++i) out[i] = 2 * table[index[i] & 1023];").verdict ==
        Verdict::wrong_result);
}
