// The judge's kernel against the host's versions: on an emulated GPU, and on a real one where there is one.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/content/comparison.hpp>
#include <mtmc/evaluator/content/device_work.hpp>
#include <mtmc/evaluator/content/double_precision_content.hpp>
#include <mtmc/evaluator/content/input_structure.hpp>
#include <mtmc/evaluator/content/wrong_result.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../emulated_device.hpp"

using namespace mtmc;
using mtmc_test::EmulatedDevice;

namespace {

/// The device of this process; nothing where there is none.
template <class B> B* device() {
  static const auto made = []() -> std::unique_ptr<B> {
    try {
      return std::make_unique<B>();
    } catch (const Error& error) {
      MESSAGE("without this device: ", std::string(error.what()));
      return nullptr;
    }
  }();
  return made.get();
}

constexpr std::array all_types{DataType::f64, DataType::f32, DataType::f16, DataType::bf16,
                               DataType::i64, DataType::i32, DataType::i16, DataType::i8,
                               DataType::u64, DataType::u32, DataType::u16, DataType::u8};

/// A buffer of the device and the judge's kernel.
template <class B> struct Desk {
  using Buffer = typename B::Buffer;
  explicit Desk(B& device) : backend(device), work(erased) {}

  [[nodiscard]] Buffer place(std::span<const std::byte> content) {
    auto buffer = backend.allocate(content.size() + 64);
    backend.upload(buffer, 0, content);
    return buffer;
  }
  [[nodiscard]] std::vector<std::byte> read(Buffer& buffer, std::size_t offset, std::size_t bytes) {
    std::vector<std::byte> content(bytes);
    backend.download(buffer, offset, content);
    return content;
  }

  B& backend;
  AnyBackend erased{std::ref(backend)};
  DeviceWork work;
};

std::vector<std::byte> noise(std::size_t bytes, std::uint64_t key, std::uint64_t stream) {
  std::vector<std::uint32_t> words((bytes + 3) / 4);
  philox_fill(words, key, 0, stream);
  std::vector<std::byte> content(bytes);
  std::memcpy(content.data(), words.data(), bytes);
  return content;
}

} // namespace

TEST_CASE_TEMPLATE("the judge's kernel makes the same elements as the host, of every type and distribution",
                   B, EmulatedDevice, CudaBackend) {
  auto* backend = device<B>();
  if (backend == nullptr) return;
  Desk<B> desk(*backend);
  for (const auto type : all_types)
    for (const auto distribution : all_distributions)
      for (const auto& range : {std::optional<ValueRange>{}, std::optional<ValueRange>({-3.5, 90.25}),
                                std::optional<ValueRange>({7, 7}), std::optional<ValueRange>({1, 100})})
        for (const std::int64_t elements : {1, 63, 5000}) {
          CAPTURE(to_string(type));
          CAPTURE(to_string(distribution));
          CAPTURE(elements);
          auto whole = range;
          if (whole && !is_floating(type))
            whole = ValueRange{std::max(is_signed(type) ? -100.0 : 0.0, std::ceil(range->low)),
                               std::floor(range->high)};
          const ContentRecipe recipe{type, elements, distribution, 0x123456789abcdefu, 3, whole};
          std::vector<std::byte> wanted(recipe.bytes());
          fill_values(wanted, recipe);
          auto buffer = backend->allocate(recipe.bytes() + 16);
          fill_buffer(*backend, buffer, 0, recipe.bytes() + 16, std::byte{0x5a});
          desk.work.write_values(buffer.handle(), recipe);
          desk.work.run();
          CHECK(desk.read(buffer, 0, recipe.bytes()) == wanted);
          CHECK(desk.read(buffer, recipe.bytes(), 16) == std::vector<std::byte>(16, std::byte{0x5a}));

          const auto same = desk.work.look_for_values(buffer.handle(), recipe);
          desk.work.run();
          CHECK(desk.work.found(same).wrong == 0);
          CHECK(desk.work.found(same).checked == static_cast<std::uint64_t>(elements));
          const auto place = static_cast<std::size_t>(elements - 1) * size_of(type);
          wanted[place] ^= std::byte{1};
          backend->upload(buffer, 0, wanted);
          const auto changed = desk.work.look_for_values(buffer.handle(), recipe);
          desk.work.run();
          CHECK(desk.work.found(changed).wrong == 1);
          CHECK(desk.work.found(changed).first_wrong == static_cast<std::uint64_t>(elements - 1));
        }
}

TEST_CASE_TEMPLATE("so of every structure", B, EmulatedDevice, CudaBackend) {
  auto* backend = device<B>();
  if (backend == nullptr) return;
  Desk<B> desk(*backend);
  for (const auto type : all_types)
    for (int structure = 0; structure < static_cast<int>(detail::structure_count); ++structure)
      for (const std::int64_t slice : {1, 17, 64}) {
        CAPTURE(to_string(type));
        CAPTURE(structure);
        CAPTURE(slice);
        for (const auto& range : {std::optional<ValueRange>{}, std::optional<ValueRange>({1, 100})}) {
          const ContentRecipe recipe{type,  5000,     Distribution::structured, 0x123456789abcdefu, 3, range,
                                     slice, structure};
          std::vector<std::byte> wanted(recipe.bytes());
          fill_values(wanted, recipe);
          auto buffer = backend->allocate(recipe.bytes());
          desk.work.write_values(buffer.handle(), recipe);
          desk.work.run();
          CHECK(desk.read(buffer, 0, recipe.bytes()) == wanted);
        }
      }
}

TEST_CASE_TEMPLATE("noise, bytes and masks are the host's, wherever they begin and end", B, EmulatedDevice,
                   CudaBackend) {
  auto* backend = device<B>();
  if (backend == nullptr) return;
  Desk<B> desk(*backend);
  for (const std::size_t offset : std::initializer_list<std::size_t>{0, 1, 7, 64})
    for (const std::size_t bytes : std::initializer_list<std::size_t>{1, 15, 16, 4097, 300000}) {
      CAPTURE(offset);
      CAPTURE(bytes);
      auto buffer = backend->allocate(offset + bytes + 16);
      fill_buffer(*backend, buffer, 0, offset + bytes + 16, std::byte{0x11});
      desk.work.write_noise(buffer.handle() + offset, bytes, 99, 5);
      desk.work.run();
      auto wanted = noise(bytes, 99, 5);
      CHECK(desk.read(buffer, offset, bytes) == wanted);
      CHECK(desk.read(buffer, offset + bytes, 16) == std::vector<std::byte>(16, std::byte{0x11}));
      const auto whole = desk.work.look_for_noise(buffer.handle() + offset, bytes, 99, 5);
      desk.work.run();
      CHECK(desk.work.found(whole).wrong == 0);
      CHECK(desk.work.found(whole).checked == bytes);
      wanted.front() ^= std::byte{0x80};
      wanted.back() ^= std::byte{0x80};
      backend->upload(buffer, offset, wanted);
      const auto damaged = desk.work.look_for_noise(buffer.handle() + offset, bytes, 99, 5);
      desk.work.run();
      if (bytes > 1) {
        CHECK(desk.work.found(damaged).wrong == 2);
        CHECK(desk.work.found(damaged).first_wrong == 0);
        CHECK(desk.work.found(damaged).last_wrong == bytes - 1);
      }

      desk.work.write_repeated_noise(buffer.handle() + offset, bytes, 7, 1);
      desk.work.run();
      auto repeated = noise(std::min(bytes, detail::fill_chunk), 7, 1);
      const auto got = desk.read(buffer, offset, bytes);
      for (std::size_t i = 0; i < bytes; ++i)
        if (got[i] != repeated[i % detail::fill_chunk]) FAIL_CHECK("byte " << i);
      desk.work.write_byte(buffer.handle() + offset, bytes, std::byte{0xff});
      desk.work.run();
      CHECK(desk.read(buffer, offset, bytes) == std::vector<std::byte>(bytes, std::byte{0xff}));
    }
}

TEST_CASE_TEMPLATE("jobs that were forgotten are not done, and those queued after them are", B,
                   EmulatedDevice, CudaBackend) {
  auto* backend = device<B>();
  if (backend == nullptr) return;
  Desk<B> desk(*backend);
  const std::vector<std::byte> content(100, std::byte{7});
  auto untouched = desk.place(content);
  auto written = desk.place(content);
  desk.work.write_byte(untouched.handle(), 100, std::byte{1});
  (void)desk.work.look_for_noise(untouched.handle(), 100, 1, 1);
  desk.work.forget();
  desk.work.write_byte(written.handle(), 100, std::byte{2});
  const auto number = desk.work.look_for_noise(untouched.handle(), 100, 1, 1);
  desk.work.run();
  CHECK(number == 1);
  CHECK(desk.work.found(number).checked == 100);
  CHECK(desk.read(untouched, 0, 100) == content);
  CHECK(desk.read(written, 0, 100) == std::vector<std::byte>(100, std::byte{2}));
}

TEST_CASE_TEMPLATE("what is kept under a mask cannot be read, and comes back whole", B, EmulatedDevice,
                   CudaBackend) {
  auto* backend = device<B>();
  if (backend == nullptr) return;
  Desk<B> desk(*backend);
  for (const std::size_t bytes : std::initializer_list<std::size_t>{1, 16, 30, 100003}) {
    const auto content = noise(bytes, 1, 1);
    auto source = desk.place(content);
    auto target = backend->allocate(bytes);
    desk.work.write_masked(target.handle(), source.handle(), bytes, 0xfeedu);
    desk.work.run();
    auto masked = desk.read(target, 0, bytes);
    CHECK(masked != content);
    const auto mask = noise(bytes, 0xfeedu, 0);
    for (std::size_t i = 0; i < bytes; ++i) masked[i] ^= mask[i];
    CHECK(masked == content);
    auto back = backend->allocate(bytes);
    desk.work.write_masked(back.handle(), target.handle(), bytes, 0xfeedu);
    const auto same = desk.work.look_for_bits(source.handle(), DataType::u8, static_cast<std::int64_t>(bytes),
                                              target.handle(), 0xfeedu);
    desk.work.run();
    CHECK(desk.work.found(same).wrong == 0);
    CHECK(desk.read(back, 0, bytes) == content);
  }
}

TEST_CASE_TEMPLATE("comparing on the device answers what the host's comparison does", B, EmulatedDevice,
                   CudaBackend) {
  auto* backend = device<B>();
  if (backend == nullptr) return;
  Desk<B> desk(*backend);
  for (const auto type : all_types)
    for (const std::int64_t elements : {1, 37, 4096, 70001}) {
      CAPTURE(to_string(type));
      CAPTURE(elements);
      const ContentRecipe recipe{type, elements, Distribution::heavy_tail, 11, 0, {}};
      std::vector<std::byte> wanted(recipe.bytes());
      fill_values(wanted, recipe);
      auto masked = backend->allocate(wanted.size());
      const Tolerance tolerance{is_floating(type) ? 16 * epsilon_of(type) : 0, output_scale(wanted, type), 1};
      auto plain = desk.place(wanted);
      desk.work.write_masked(masked.handle(), plain.handle(), wanted.size(), 5);
      const auto magnitudes =
          is_floating(type) ? desk.work.add_magnitudes(plain.handle(), type, elements) : std::size_t{0};
      desk.work.run();
      if (is_floating(type))
        CHECK(desk.work.found(magnitudes).scale() ==
              doctest::Approx(output_scale(wanted, type)).epsilon(1e-6));

      for (const int mutation : {0, 1, 2, 3}) {
        auto got = wanted;
        PhiloxEngine random(static_cast<std::uint64_t>(mutation), 1);
        for (int times = 0; times < 5 && mutation > 0; ++times) {
          const auto place = static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(elements)));
          std::byte* at = got.data() + place * size_of(type);
          if (!is_floating(type))
            *at ^= std::byte{4};
          else if (mutation == 1)
            detail::store_real(type,
                               detail::element_value(wanted, type, static_cast<std::int64_t>(place)) + 1,
                               {-HUGE_VAL, HUGE_VAL}, at);
          else if (mutation == 2)
            detail::store_real(type, std::numeric_limits<double>::quiet_NaN(), {-HUGE_VAL, HUGE_VAL}, at);
          else
            perturb_last_place(std::span(got).subspan(place * size_of(type), size_of(type)), type, 3);
        }
        backend->upload(plain, 0, got);
        const auto number =
            desk.work.compare(plain.handle(), type, elements, masked.handle(), type, 5, tolerance);
        desk.work.run();
        const auto here = compare_output(got, wanted, type, tolerance);
        const auto there = comparison_of(desk.work.found(number), elements);
        CHECK(there.checked == here.checked);
        CHECK(there.total == here.total);
        CHECK(there.wrong == here.wrong);
        CHECK(there.first_wrong == here.first_wrong);
        CHECK(there.right() == here.right());
        if (std::isfinite(here.largest_error))
          CHECK(there.largest_error == doctest::Approx(here.largest_error).epsilon(1e-3));
        else
          CHECK(there.largest_error == here.largest_error);
      }
    }
}

TEST_CASE_TEMPLATE("f32 is stored as f64 for a twin, and the two are compared", B, EmulatedDevice,
                   CudaBackend) {
  auto* backend = device<B>();
  if (backend == nullptr) return;
  Desk<B> desk(*backend);
  for (const std::int64_t elements : {1, 2, 3, 37, 5003}) {
    CAPTURE(elements);
    const ContentRecipe recipe{DataType::f32, elements, Distribution::heavy_tail, 11, 0, {}};
    std::vector<std::byte> floats(recipe.bytes());
    fill_values(floats, recipe);
    auto doubles = in_double_precision(floats);
    auto wide = backend->allocate(doubles.size());
    desk.work.write_values(wide.handle(), recipe, DataType::f64);
    desk.work.run();
    CHECK(desk.read(wide, 0, doubles.size()) == doubles);

    const Tolerance tolerance{1e-6, output_scale(floats, DataType::f32), 1};
    const auto last = static_cast<std::size_t>(elements - 1);
    detail::store_real(DataType::f64, 1000, {-HUGE_VAL, HUGE_VAL}, doubles.data() + last * sizeof(double));
    backend->upload(wide, 0, doubles);
    auto narrow = desk.place(floats);
    auto masked_wide = backend->allocate(doubles.size());
    auto masked_narrow = backend->allocate(floats.size());
    desk.work.write_masked(masked_wide.handle(), wide.handle(), doubles.size(), 5);
    desk.work.write_masked(masked_narrow.handle(), narrow.handle(), floats.size(), 6);
    desk.work.run();
    const auto by_truth = desk.work.compare(narrow.handle(), DataType::f32, elements, masked_wide.handle(),
                                            DataType::f64, 5, tolerance);
    const auto of_truth = desk.work.compare(wide.handle(), DataType::f64, elements, masked_narrow.handle(),
                                            DataType::f32, 6, tolerance);
    desk.work.run();
    const auto here = compare_output(floats, DataType::f32, doubles, DataType::f64, tolerance);
    const auto there = comparison_of(desk.work.found(by_truth), elements);
    CHECK(there.checked == here.checked);
    CHECK(there.wrong == 1);
    CHECK(there.first_wrong == elements - 1);
    CHECK(there.largest_error == doctest::Approx(here.largest_error));
    CHECK(comparison_of(desk.work.found(of_truth), elements).wrong == 1);
    CHECK(comparison_of(desk.work.found(of_truth), elements).first_wrong == elements - 1);
  }
}

TEST_CASE_TEMPLATE("NaN is right where the reference has NaN, an infinity where it has the same", B,
                   EmulatedDevice, CudaBackend) {
  auto* backend = device<B>();
  if (backend == nullptr) return;
  Desk<B> desk(*backend);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> wanted{nan, inf, -inf, 1, 0, nan, inf};
  const std::vector<float> got{-nan, inf, -inf, 1, -0.0f, 2, -inf};
  const auto bytes = [](const std::vector<float>& values) { return std::as_bytes(std::span(values)); };
  auto a = desk.place(bytes(got));
  auto b = desk.place(bytes(wanted));
  auto masked = backend->allocate(wanted.size() * sizeof(float));
  desk.work.write_masked(masked.handle(), b.handle(), wanted.size() * sizeof(float), 8);
  desk.work.run();
  const auto number =
      desk.work.compare(a.handle(), DataType::f32, 7, masked.handle(), DataType::f32, 8, {1e-6, 1, 1});
  desk.work.run();
  const auto found = comparison_of(desk.work.found(number), 7);
  CHECK(found.wrong == 2);
  CHECK(found.first_wrong == 5);
  CHECK(std::isinf(found.largest_error));
}
