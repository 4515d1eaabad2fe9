#include <mtmc/evaluator/content/case_inputs.hpp>
#include <mtmc/evaluator/content/guarded_buffer.hpp>
#include <mtmc/evaluator/content/host_content.hpp>
#include <mtmc/evaluator/content/poison.hpp>
#include <mtmc/evaluator/content/slot_content.hpp>
#include <mtmc/evaluator/content/wrong_result.hpp>
#include <mtmc/evaluator/protocol/case_book.hpp>
#include <mtmc/evaluator/protocol/check_plan.hpp>
#include <mtmc/evaluator/protocol/influence.hpp>
#include <mtmc/evaluator/protocol/task_check.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fake_backend.hpp"

using namespace mtmc;

namespace {

template <class T> std::vector<std::byte> bytes(const std::vector<T>& values) {
  const auto view = std::as_bytes(std::span(values));
  return {view.begin(), view.end()};
}

/// A task of one input and one output, both of `rows` x `columns`.
ProblemLayout layout(std::int64_t rows, std::int64_t columns, DataType type = DataType::f32) {
  ProblemLayout result;
  for (const auto& [name, role] : {std::pair("X", ArgumentRole::input), std::pair("Y", ArgumentRole::output)})
    result.buffers.push_back({name,
                              result.buffers.size(),
                              role,
                              type,
                              {rows, columns},
                              rows * columns,
                              static_cast<std::size_t>(rows * columns) * size_of(type)});
  return result;
}

WrongResult describe(const ProblemLayout& where, const std::vector<float>& got,
                     const std::vector<float>& wanted, const std::vector<float>& input = {}) {
  const Tolerance tolerance{1e-5, 1, 1};
  const auto got_bytes = bytes(got);
  const auto wanted_bytes = bytes(wanted);
  const auto comparison = compare_output(got_bytes, wanted_bytes, DataType::f32, tolerance);
  REQUIRE_FALSE(comparison.right());
  const std::vector<std::vector<std::byte>> inputs{bytes(input), {}};
  return describe_wrong_result(where, 1, got_bytes, {wanted_bytes, DataType::f32}, inputs, tolerance,
                               comparison, Poison{});
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 1 + 0.01f * static_cast<float>(i % 97);
  return values;
}

/// Where a buffer of the backend in memory lies.
std::byte* address_of(const AnyBackend::Buffer& buffer) {
  return reinterpret_cast<std::byte*>(buffer.handle()); // NOLINT(performance-no-int-to-ptr)
}

} // namespace

TEST_CASE("a wrong result says where, what, how many and by how much") {
  auto got = ramp(6);
  got[4] = 2.5f;
  const auto words = describe(layout(2, 3), got, ramp(6));
  CHECK(words.message.find("Y[1, 1] is 2.5 but should be 1.03999996; 1 of 6 elements are wrong") == 0);
  CHECK(words.message.find("times the allowed error") != std::string::npos);
}

TEST_CASE("a dropped tail is recognised in each dimension") {
  auto got = ramp(20 * 100);
  for (std::size_t row = 0; row < 20; ++row)
    for (std::size_t column = 71; column < 100; ++column) got[row * 100 + column] = 0;
  auto words = describe(layout(20, 100), got, ramp(2000));
  CHECK(words.message.find("All wrong elements lie in the last 29 indices (71 to 99) of dimension 2 of 2") !=
        std::string::npos);
  CHECK(words.message.find("They are all zero") != std::string::npos);
  CHECK(words.remedy.find("no multiple of the tile") != std::string::npos);

  got = ramp(2000);
  std::fill(got.end() - 100, got.end(), 7.0f);
  words = describe(layout(20, 100), got, ramp(2000));
  CHECK(words.message.find("the last 1 index (19) of dimension 1 of 2") != std::string::npos);
  CHECK(words.message.find("They all have the same value") != std::string::npos);
}

TEST_CASE("elements that were never written are told from wrong ones") {
  std::vector<float> poisoned(8);
  std::memset(poisoned.data(), 0xff, 32);
  CHECK(describe(layout(2, 4), poisoned, ramp(8)).message.find("They were never written") !=
        std::string::npos);
  auto half = ramp(8);
  std::memset(half.data() + 2, 0xff, 8);
  half[7] = -1;
  CHECK(describe(layout(2, 4), half, ramp(8)).message.find("2 of them were never written") !=
        std::string::npos);
}

TEST_CASE("a constant factor, a copy and NaN are named") {
  auto got = ramp(500);
  for (auto& value : got) value *= 0.5f;
  CHECK(describe(layout(5, 100), got, ramp(500)).message.find("off by a constant factor of 0.5") !=
        std::string::npos);
  const std::vector<float> input(500, 3.0f);
  CHECK(describe(layout(5, 100), input, ramp(500), input).message.find("The result is a copy of X") !=
        std::string::npos);
  auto nan = ramp(500);
  nan[10] = std::nanf("1");
  CHECK(describe(layout(5, 100), nan, ramp(500)).message.find("1 of them are NaN") != std::string::npos);
}

TEST_CASE("a check plan covers every size with two distributions and uses each distribution") {
  const auto covers = [](const std::vector<SizeCost>& costs) {
    const auto plan = plan_checks(costs);
    std::vector<std::set<Distribution>> seen(costs.size());
    std::set<Distribution> all;
    for (const auto& check : plan) {
      seen[check.size].insert(check.distribution);
      all.insert(check.distribution);
    }
    for (const auto& distributions : seen) CHECK(distributions.size() >= 2);
    CHECK(all.size() == all_distributions.size());
    return plan;
  };
  const SizeCost tiny{1e-5, 1e3};
  const SizeCost medium{5e-3, 4e6};
  const SizeCost slow{0.5, 8e6};
  const SizeCost slow_and_timed{0.5, 8e6, true};
  const auto plan = covers({slow, medium, tiny});
  CHECK(plan.front().size == 2);
  CHECK(plan.back().size == 0);
  CHECK(plan.size() >= 8);
  for (const auto& check : covers({slow, medium})) CHECK(check.twice == (check.size == 1));
  // Its timed runs are on normal inputs.
  for (const auto& check : plan_checks(std::vector{slow_and_timed, tiny}))
    CHECK((check.size == 1 || check.distribution != Distribution::normal));
  CHECK(plan_checks(std::vector{slow_and_timed}).size() == all_distributions.size() - 1);
  // Which two of them a large size sees changes from one evaluation to the next.
  std::set<Distribution> shown;
  for (std::uint64_t turn = 0; turn < all_distributions.size(); ++turn)
    for (const auto& check : plan_checks(std::vector{slow, tiny}, {}, turn))
      if (check.size == 0) shown.insert(check.distribution);
  CHECK(shown.size() == all_distributions.size());
  covers({tiny});
  covers({tiny, tiny, tiny, tiny, tiny});
  CHECK(plan_checks({}).empty());
}

TEST_CASE("a check plan puts second runs next to missing pages and one of them in a fresh process") {
  const SizeCost tiny{1e-5, 1e3};
  const SizeCost medium{5e-3, 4e6};
  const SizeCost slow{0.5, 8e6};
  const auto plan = plan_checks(std::vector{slow, medium, tiny});
  std::map<std::size_t, std::vector<BufferGuard>> guards;
  for (const auto& check : plan) {
    CHECK((check.twice || check.guard == BufferGuard::red_zones));
    if (check.guard != BufferGuard::red_zones) guards[check.size].push_back(check.guard);
  }
  CHECK(guards[0].empty());
  CHECK(guards[1] == std::vector{BufferGuard::page_behind});
  CHECK(guards[2] == std::vector{BufferGuard::page_behind, BufferGuard::page_before});
  for (const auto& check : plan)
    CHECK(check.after_another ==
          (check.size == 2 || (check.size == 1 && check.guard == BufferGuard::page_behind)));
  CHECK(std::count_if(plan.begin(), plan.end(), [](const auto& check) { return check.fresh_process; }) == 1);
  const auto last = std::find_if(plan.rbegin(), plan.rend(), [](const auto& check) { return check.twice; });
  CHECK(last->fresh_process);
}

TEST_CASE("a check plan leaves out what it is told to") {
  SizeCost tiny{1e-5, 1e3};
  SizeCost other = tiny;
  other.checked = false;
  for (const auto& check : plan_checks(std::vector{other, tiny})) CHECK(check.size == 1);
  for (const auto& check : plan_checks(std::vector{tiny, tiny}, {.far_distributions = false}))
    CHECK_FALSE(is_far(check.distribution));
  const auto far = plan_checks(std::vector{tiny, tiny}, {.distributions = false});
  CHECK(far.size() == 2 * 7);
  for (const auto& check : far)
    CHECK((check.distribution == Distribution::normal || is_far(check.distribution)));
  const auto normal =
      plan_checks(std::vector{tiny, tiny}, {.distributions = false, .far_distributions = false});
  CHECK(normal.size() == 2);
  for (const auto& check : normal) CHECK(check.distribution == Distribution::normal);
}

TEST_CASE("no case of a book repeats, and every candidate starts at the first") {
  CaseBook book(1, 1000);
  std::set<std::uint64_t> keys;
  int cases = 0;
  for (std::size_t size = 0; size < 3; ++size)
    for (const auto distribution : all_distributions)
      for (const bool timed : {false, true})
        for (std::uint64_t serial = 0; serial < 20; ++serial, ++cases)
          keys.insert(book.key_of({size, distribution, timed, serial}));
  CHECK(static_cast<int>(keys.size()) == cases);
  CHECK(CaseBook(2, 1000).key_of({}) != book.key_of({}));
  const CaseBook stale(1, 1000, false);
  CHECK(stale.key_of({1, Distribution::normal, true, 7}) ==
        stale.key_of({1, Distribution::normal, false, 0}));
  CHECK(stale.key_of({1, Distribution::normal, true, 7}) != stale.key_of({2, Distribution::normal, true, 7}));

  CHECK(book.next_check("a") == 0);
  CHECK(book.next_check("a") == 1);
  CHECK(book.next_check("b") == 0);
  CHECK(book.next_timed("a", 0).serial == 0);
  CHECK(book.next_timed("a", 0).serial == 1);
  CHECK(book.next_timed("a", 1).serial == 0);
  CHECK(book.next_timed("b", 0).serial == 0);
  CaseBook apart(1, 1000, true, false);
  const auto first = apart.next_timed("a", 0);
  CHECK(apart.next_timed("b", 0) != first);
  CHECK(apart.next_timed("a", 0).serial == first.serial + 1);
  CHECK(apart.next_check("a") == apart.next_check("b"));
}

TEST_CASE("a book keeps results up to its limit, the latest always") {
  CaseBook book(1, 1000);
  const auto result = [](std::size_t size) {
    auto made = std::make_shared<ReferenceResult>();
    made->contents = BufferContents{std::vector<std::byte>(size)};
    return made;
  };
  const auto id = [](std::uint64_t serial) { return CaseId{0, Distribution::normal, false, serial}; };
  book.keep(id(0), result(400));
  book.keep(id(1), result(400));
  CHECK(book.bytes() == 800);
  book.keep(id(2), result(400));
  CHECK(book.find(id(2)) != nullptr);
  CHECK(book.find(id(1)) == nullptr);
  CHECK(book.bytes() == 800);
  book.keep(id(3), result(5000));
  CHECK(book.find(id(3)) != nullptr);
  CHECK(book.find(id(0)) == nullptr);
  book.keep(id(3), result(10));
  CHECK(book.bytes() == 10);
}

TEST_CASE("inputs are made of their recipes when they are asked for, and no more of them than is needed") {
  const ContentRecipe recipe{DataType::f32, 5000, Distribution::mostly_zero, 7, 2, {}};
  std::vector<std::byte> whole(recipe.bytes());
  fill_values(whole, recipe);
  CaseInputs inputs;
  inputs.clear(2);
  inputs.leave_to(0, recipe);
  REQUIRE(inputs.recipe(0) != nullptr);
  CHECK(*inputs.recipe(0) == recipe);
  CHECK(inputs.recipe(1) == nullptr);
  CHECK(inputs.equals(0, whole));
  CHECK(inputs.host(0) == whole);
  CHECK(inputs.host(1).empty());
  auto other = whole;
  other[17] ^= std::byte{1};
  CHECK_FALSE(inputs.equals(0, other));
  other = whole;
  other.back() ^= std::byte{1};
  CHECK_FALSE(inputs.equals(0, other));
  CHECK_FALSE(inputs.equals(1, whole));

  // What is changed is not what the recipe says any more.
  inputs.change(0)[3] ^= std::byte{1};
  CHECK(inputs.recipe(0) == nullptr);
  CHECK(inputs.host(0) != whole);
  // Room that is used again forgets what it held.
  inputs.clear(2);
  inputs.leave_to(0, recipe);
  CHECK(inputs.host(0) == whole);
}

TEST_CASE("a book that is full keeps what the next candidate comes to first") {
  CaseBook book(1, 1000);
  const auto result = std::make_shared<ReferenceResult>();
  result->contents = BufferContents{std::vector<std::byte>(100)};
  const auto id = [](bool timed, std::uint64_t serial) {
    return CaseId{0, Distribution::normal, timed, serial};
  };
  // Two candidates, one after the other.
  int found = 0;
  for (int candidate = 0; candidate < 2; ++candidate) {
    for (std::uint64_t check = 0; check < 2; ++check)
      if (!book.find(id(false, check))) book.keep(id(false, check), result);
    for (std::uint64_t pair = 0; pair < 14; ++pair) {
      if (book.find(id(true, pair)))
        ++found;
      else
        book.keep(id(true, pair), result);
      CHECK(book.find(id(true, pair)) != nullptr);
    }
  }
  CHECK(book.find(id(false, 1)) != nullptr);
  CHECK(found >= 7);
  CHECK(book.bytes() == 1000);
}

TEST_CASE("red zones see every single byte on both sides, and how far it is away") {
  AnyBackend backend{fake::Backend(std::make_shared<fake::World>())};
  const auto around = guard_layout(100);
  GuardedBuffer buffer{backend.allocate(around.total()), around, 0, 3};
  auto* const data = address_of(buffer.memory);
  detail::HostContent work(backend);
  const auto find_damage = [&] {
    const RedZoneLook look(work, buffer);
    work.run();
    return look.damage();
  };
  renew_red_zones(work, buffer, 99);
  CHECK(buffer.layout.front % 64 == 0);
  CHECK(buffer.layout.front >= 4096);
  CHECK(buffer.layout.back >= 4096);
  CHECK_FALSE(find_damage());
  for (std::size_t at = 0; at < buffer.layout.total(); ++at) {
    auto& byte = data[at];
    byte = ~byte;
    const auto damage = find_damage();
    byte = ~byte;
    if (at < buffer.layout.front) {
      REQUIRE(damage);
      REQUIRE(damage->before);
      REQUIRE(damage->distance == buffer.layout.front - 1 - at);
    } else if (at >= buffer.layout.front + 100) {
      REQUIRE(damage);
      REQUIRE_FALSE(damage->before);
      REQUIRE(damage->distance == at - buffer.layout.front - 100);
    } else {
      REQUIRE_FALSE(damage);
    }
  }
  CHECK(guard_layout(10 << 20).front == 65536);
}

TEST_CASE("a buffer can begin or end where its pages do") {
  for (const std::size_t page : {4096u, 65536u})
    for (const std::size_t bytes : {1u, 63u, 64u, 4096u, 100'000u, 5'000'000u}) {
      CAPTURE(bytes);
      const auto usual = guard_layout(bytes, 4096, BufferGuard::red_zones, page);
      const auto before = guard_layout(bytes, 4096, BufferGuard::page_before, page);
      const auto behind = guard_layout(bytes, 4096, BufferGuard::page_behind, page);
      for (const auto& layout : {usual, before, behind}) {
        CHECK(layout.bytes == bytes);
        CHECK(layout.total() % page == 0);
        CHECK(layout.front % 64 == 0);
      }
      CHECK(std::min(usual.front, usual.back) >= 4096);
      CHECK(before.front == 0);
      CHECK(before.back >= 4096);
      CHECK(behind.front >= 4032);
      CHECK(behind.back < 64);
    }
}

TEST_CASE("noise does not depend on how it is written, only on key and stream") {
  AnyBackend backend{fake::Backend(std::make_shared<fake::World>())};
  constexpr std::size_t bytes = 600'001;
  auto buffer = backend.allocate(bytes + 2);
  auto* const data = address_of(buffer);
  std::memset(data, 1, bytes + 2);
  fill_with_noise(backend, buffer, 1, bytes, 5, 6);
  std::vector<std::uint32_t> whole(bytes / 4 + 1);
  philox_fill(whole, 5, 0, 6);
  CHECK(std::memcmp(data + 1, whole.data(), bytes) == 0);
  CHECK(data[0] == std::byte{1});
  CHECK(data[bytes + 1] == std::byte{1});
}

TEST_CASE("repeated noise fills exactly its part, with bytes that key and stream decide") {
  AnyBackend backend{fake::Backend(std::make_shared<fake::World>())};
  constexpr std::size_t bytes = 600'001;
  constexpr std::size_t period = std::size_t{1} << 18;
  auto buffer = backend.allocate(bytes + 2);
  auto* const data = address_of(buffer);
  std::memset(data, 1, bytes + 2);
  fill_with_repeated_noise(backend, buffer, 1, bytes, 5, 6);
  std::vector<std::uint32_t> block(period / 4);
  philox_fill(block, 5, 0, 6);
  CHECK(std::memcmp(data + 1, block.data(), period) == 0);
  CHECK(std::memcmp(data + 1 + period, block.data(), period) == 0);
  CHECK(std::memcmp(data + 1 + 2 * period, block.data(), bytes - 2 * period) == 0);
  CHECK(data[0] == std::byte{1});
  CHECK(data[bytes + 1] == std::byte{1});
}

TEST_CASE("filling writes exactly the bytes asked for, with or without the backend's help") {
  AnyBackend backend{fake::Backend(std::make_shared<fake::World>())};
  auto buffer = backend.allocate(1 << 20);
  auto* const data = address_of(buffer);
  std::memset(data, 1, 1 << 20);
  fill_buffer(backend, buffer, 100, 700'000, std::byte{0xff});
  CHECK(data[99] == std::byte{1});
  CHECK(data[700'100] == std::byte{1});
  CHECK(std::all_of(data + 100, data + 700'100, [](std::byte b) { return b == std::byte{0xff}; }));
  const std::vector<std::byte> content(data + 90, data + 110);
  CHECK(count_poisoned(content, 1, {}) == 10);
  CHECK(count_poisoned(content, 1, {.noise = 1}) == 0);
}

TEST_CASE("replacing an element always changes it, inside its range") {
  for (const auto type : {DataType::f64, DataType::f32, DataType::f16, DataType::bf16, DataType::i64,
                          DataType::i32, DataType::i8, DataType::u64, DataType::u16, DataType::u8})
    for (const auto& range : {std::optional<ValueRange>{}, std::optional(ValueRange{0, 5})})
      for (const bool up : {true, false}) {
        CAPTURE(to_string(type));
        std::vector<std::byte> content(10 * size_of(type));
        fill_values(content, type, Distribution::normal, 3, 0, range);
        for (std::size_t place = 0; place < 10; ++place) {
          const double before = detail::element_value(content, type, static_cast<std::int64_t>(place));
          replace_element(content, type, place, range, up);
          const double after = detail::element_value(content, type, static_cast<std::int64_t>(place));
          CHECK(after != before);
          if (range) CHECK((after >= 0 && after <= 5));
        }
      }
}

TEST_CASE("mutants that pass everywhere are named, those that equal the reference do not count") {
  const auto where = layout(10, 16);
  const auto check_with = [&](const std::vector<float>& wanted, const std::vector<float>& input,
                              double relative) {
    const auto wanted_bytes = bytes(wanted);
    const std::vector<std::vector<std::byte>> inputs{bytes(input), {}};
    const Tolerance tolerance{relative, output_scale(wanted_bytes, DataType::f32), 1};
    TaskCheck check;
    check.add({&where, 1, wanted_bytes, inputs, tolerance}, [&](const std::vector<std::byte>& content) {
      return compare_output(content, wanted_bytes, DataType::f32, tolerance).right();
    });
    return check;
  };
  const auto wanted = ramp(160);
  const auto other = std::vector<float>(160, 9.0f);
  CHECK(check_with(wanted, other, 1e-5).survivors().empty());
  // A copy: the mutant "copied input" is the right result.
  CHECK(check_with(wanted, wanted, 1e-5).survivors().empty());
  // All zero: an output that does not depend on anything leaves nothing to refuse, but precision is no
  // matter.
  CHECK(check_with(std::vector<float>(160, 0.0f), other, 1e-5).survivors().empty());
  // A tolerance this large lets half precision pass, and numbers close together a constant.
  const auto loose = check_with(wanted, other, 0.6).survivors();
  CHECK(std::find(loose.begin(), loose.end(), "Y: computed in the next lower precision") != loose.end());
  CHECK(std::find(loose.begin(), loose.end(), "Y: all the same value") != loose.end());
  CHECK(std::find(loose.begin(), loose.end(), "Y: all zero") == loose.end());
  Task task;
  task.name = "loose";
  try {
    check_with(wanted, other, 0.6).demand_none(task);
    FAIL("the task was accepted");
  } catch (const Error& error) {
    CHECK(error.id() == error_id::task_cannot_tell);
    CHECK(error.message().find("all the same value") != std::string::npos);
  }
}
