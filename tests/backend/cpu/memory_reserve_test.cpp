#include <mtmc/backend/cpu.hpp>
#include <mtmc/backend/cpu/memory_reserve.hpp>
#include <mtmc/support/file_io.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "kernels.hpp"

using namespace mtmc;
using namespace mtmc::detail;

namespace {
constexpr std::size_t megabyte = std::size_t{1} << 20;

/// Number of the file that is mapped at an address of this process.
std::string file_at(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::istringstream lines(read_file("/proc/self/maps"));
  for (std::string line; std::getline(lines, line);) {
    std::size_t end = 0;
    const auto first = std::stoull(line, &end, 16);
    if (wanted < first || wanted >= std::stoull(line.substr(end + 1), nullptr, 16)) continue;
    std::istringstream words(line);
    std::string inode;
    for (int word = 0; word < 5; ++word) words >> inode;
    return inode;
  }
  return {};
}

bool is_zero(const SharedMemory& memory) {
  return std::all_of(memory.content().begin(), memory.content().end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}
} // namespace

TEST_SUITE("memory reserve") {
  TEST_CASE("freed memory is handed out again, wiped, to whoever wants as much") {
    const auto reserve = std::make_shared<MemoryReserve>(std::int64_t{8} << 20);
    auto memory = reserve->allocate(2 * megabyte);
    const auto* const place = memory->content().data();
    std::memset(memory->content().data(), 7, memory->content().size());
    memory->stage_fill(5, 100, std::byte{9});
    memory.reset();
    CHECK(reserve->bytes() == 2 * megabyte);
    CHECK(reserve->allocate(3 * megabyte)->content().data() != place);
    memory = reserve->allocate(2 * megabyte);
    CHECK(memory->content().data() == place);
    CHECK(memory->pending_bytes() == 0);
    CHECK(is_zero(*memory));
  }

  TEST_CASE("memory that a runner may still have is not kept") {
    const auto reserve = std::make_shared<MemoryReserve>(std::int64_t{8} << 20);
    auto memory = reserve->allocate(megabyte);
    {
      const auto runner = memory->showing();
      CHECK(memory->shown());
      memory.reset();
    }
    CHECK(reserve->bytes() == 0);
  }

  TEST_CASE("no more is kept than allowed, the oldest goes first, and little things are not kept at all") {
    const auto reserve = std::make_shared<MemoryReserve>(std::int64_t{4} << 20);
    auto small = reserve->allocate(1000);
    auto first = reserve->allocate(2 * megabyte);
    auto second = reserve->allocate(megabyte);
    auto third = reserve->allocate(2 * megabyte);
    auto large = reserve->allocate(5 * megabyte);
    small.reset();
    large.reset();
    CHECK(reserve->bytes() == 0);
    first.reset();
    second.reset();
    CHECK(reserve->bytes() == 3 * megabyte);
    third.reset();
    CHECK(reserve->bytes() == 3 * megabyte);
    CHECK(std::make_shared<MemoryReserve>(0)->allocate(megabyte)->content().size() == megabyte);
  }

  TEST_CASE("what a program was given is not handed out again before its process has ended, and then clean") {
    CpuBackend backend;
    constexpr auto bytes = 2 * megabyte;
    const auto task = vector_task("//@ launch f(y, n)\nvoid f(float* y, int n) { y[n - 1] = 1; }\n");
    auto plan = plan_of(task, bytes / sizeof(float));
    const auto program = compile(backend, task).program;
    REQUIRE(program);
    const auto used = [&] {
      auto buffer = backend.allocate(bytes);
      plan.launches[0].arguments[0].bound = {buffer.handle(), 0, bytes};
      REQUIRE(backend.run(*program, plan, in(20s)).finished());
      REQUIRE(buffer.content()[bytes - 1] != std::byte{0});
      return buffer;
    };
    std::optional<CpuBuffer> buffer(used());
    const auto given = file_at(buffer->content().data());
    buffer.reset();
    buffer.emplace(used());
    const auto second = file_at(buffer->content().data());
    CHECK(second != given);
    program->retire();
    buffer.reset();
    buffer.emplace(backend.allocate(bytes));
    CHECK(file_at(buffer->content().data()) == second);
    CHECK(std::all_of(buffer->content().begin(), buffer->content().end(),
                      [](std::byte byte) { return byte == std::byte{0}; }));
  }
}
