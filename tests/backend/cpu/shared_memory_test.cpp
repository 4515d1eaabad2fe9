#include <mtmc/backend/cpu/cache_eviction.hpp>
#include <mtmc/backend/cpu/cpu_program.hpp>
#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace mtmc;
using namespace mtmc::detail;

TEST_SUITE("shared memory") {
  TEST_CASE("what is mapped elsewhere is the same memory") {
    const SharedMemory memory(5000);
    CHECK(memory.content().size() == 5000);
    CHECK(memory.mapped_bytes() >= 5000);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.content().data()) % 4096 == 0);
    auto* const other = static_cast<char*>(
        ::mmap(nullptr, memory.mapped_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memory.descriptor(), 0));
    REQUIRE(other != MAP_FAILED);
    CHECK(other[4999] == 0);
    other[4999] = 7;
    CHECK(memory.content()[4999] == std::byte{7});
    ::munmap(other, memory.mapped_bytes());
  }

  TEST_CASE("a container's limit leaves what is neither taken nor more than can be given back") {
    const TemporaryFolder group;
    const auto write = [&](const std::string& name, const std::string& text) {
      write_file_atomic(group.path() + '/' + name, text);
    };
    CHECK_FALSE(memory_left_to_container(group.path()));
    write("memory.max", "max\n");
    write("memory.current", "5000000\n");
    CHECK_FALSE(memory_left_to_container(group.path()));
    write("memory.max", "8000000\n");
    CHECK(memory_left_to_container(group.path()) == 3000000);
    write("memory.stat", "anon 100\nfile 3000000\nactive_file 500000\ninactive_file 1000000\n");
    CHECK(memory_left_to_container(group.path()) == 4000000);
    write("memory.max", "2000000\n");
    CHECK(memory_left_to_container(group.path()) == 0);
  }

  TEST_CASE("nobody who has the descriptor can change its size, which would kill readers") {
    const SharedMemory memory(8192);
    CHECK(::ftruncate(memory.descriptor(), 0) != 0);
    CHECK(::ftruncate(memory.descriptor(), 1 << 20) != 0);
    CHECK(memory.content()[8191] == std::byte{0});
  }

  TEST_CASE("handles are found while the buffer lives and never come again") {
    BufferRegistry registry;
    const auto memory = std::make_shared<const SharedMemory>(16);
    const auto first = registry.add(memory);
    CHECK(registry.find(first) == memory);
    registry.remove(first);
    CHECK(registry.find(first) == nullptr);
    CHECK(registry.add(memory) != first);
    CHECK(registry.find(0) == nullptr);
  }

  TEST_CASE("eviction leaves the content as it is, at any alignment and length") {
    const SharedMemory memory(100'000);
    for (std::size_t i = 0; i < memory.content().size(); ++i)
      memory.content()[i] = static_cast<std::byte>(i * 7 % 251);
    CacheEvictor evictor(1 << 20);
    const std::array<std::span<std::byte>, 4> parts{memory.content(), memory.content().subspan(33, 1),
                                                    memory.content().subspan(99'999),
                                                    memory.content().first(0)};
    evictor.evict(parts);
    bool same = true;
    for (std::size_t i = 0; i < memory.content().size(); ++i)
      same = same && memory.content()[i] == static_cast<std::byte>(i * 7 % 251);
    CHECK(same);
  }

  TEST_CASE("what is staged is seen by nobody before it settles, then the later above the earlier") {
    const SharedMemory memory(1000);
    const auto bytes = [](std::size_t count, int value) {
      return std::make_shared<const std::vector<std::byte>>(count, static_cast<std::byte>(value));
    };
    auto shared = bytes(600, 2);
    memory.stage(0, *bytes(1000, 1));
    memory.stage_shared(100, *shared, shared);
    memory.stage_fill(300, 100, std::byte{3});
    memory.stage(350, *bytes(100, 4));
    CHECK(std::all_of(memory.content().begin(), memory.content().end(),
                      [](std::byte byte) { return byte == std::byte{0}; }));
    CHECK(shared.use_count() == 2);
    memory.settle();
    CHECK(shared.use_count() == 1);
    std::vector<std::byte> wanted(1000, std::byte{1});
    std::fill_n(wanted.begin() + 100, 600, std::byte{2});
    std::fill_n(wanted.begin() + 300, 100, std::byte{3});
    std::fill_n(wanted.begin() + 350, 100, std::byte{4});
    CHECK(std::equal(wanted.begin(), wanted.end(), memory.content().begin()));
  }

  TEST_CASE("what is covered whole before it settles is let go") {
    const SharedMemory memory(1000);
    auto first = std::make_shared<const std::vector<std::byte>>(500, std::byte{1});
    memory.stage_shared(100, *first, first);
    memory.stage_fill(200, 10, std::byte{2});
    CHECK(first.use_count() == 2);
    memory.stage_fill(100, 500, std::byte{3});
    CHECK(first.use_count() == 1);
    memory.settle();
    CHECK(memory.content()[99] == std::byte{0});
    CHECK(memory.content()[205] == std::byte{3});
    CHECK(memory.content()[599] == std::byte{3});
  }

  TEST_CASE("overlapping ranges are merged") {
    std::array<std::byte, 100> bytes{};
    const std::span<std::byte> all(bytes);
    const auto result = merged({all.subspan(50, 10), all.subspan(0, 10), all.subspan(5, 20),
                                all.subspan(7, 2), all.subspan(25, 5), all.subspan(50, 10)});
    REQUIRE(result.size() == 2);
    CHECK(result[0].data() == bytes.data());
    CHECK(result[0].size() == 30);
    CHECK(result[1].data() == bytes.data() + 50);
    CHECK(result[1].size() == 10);
    CHECK(merged({}).empty());
  }
}
