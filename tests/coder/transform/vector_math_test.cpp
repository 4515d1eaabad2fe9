#include <mtmc/coder/transform/vector_math.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/shared_library.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "draft.hpp"

using namespace mtmc;

namespace {

/// The functions as a compiler makes them from the text that goes into kernels.
struct Compiled {
  explicit Compiled(const std::vector<std::string>& flags) {
    std::string text = "#include <algorithm>\n#include <bit>\n";
    for (const auto& function : detail::vector_functions) text += function.source;
    text += "extern \"C\" float exp_of(float x) { return vector_exp(x); }\n"
            "extern \"C\" float tanh_of(float x) { return vector_tanh(x); }\n";
    write_file_atomic(folder.path() + "/math.cpp", text);
    ProcessOptions options;
    options.arguments = {"g++",   "-std=c++20", "-shared",      "-fPIC",
                         "-Wall", "-Wextra",    "-Wconversion", "-Werror"};
    options.arguments.insert(options.arguments.end(), flags.begin(), flags.end());
    options.arguments.insert(options.arguments.end(),
                             {folder.path() + "/math.cpp", "-o", folder.path() + "/math.so"});
    const ProcessResult result = run_process(options);
    REQUIRE_MESSAGE(result.succeeded(), result.error);
    library = SharedLibrary::open(std::vector<std::string>{folder.path() + "/math.so"});
  }
  TemporaryFolder folder{};
  std::optional<SharedLibrary> library{};
};

} // namespace

TEST_CASE("the exp written into kernels is right to less than one unit in the last place") {
  for (const auto& flags : {std::vector<std::string>{"-O1"}, {"-O3", "-march=native"}}) {
    const Compiled compiled{flags};
    const auto exp_of = compiled.library->symbol<float(float)>("exp_of");
    double worst = 0;
    for (double x = -87.3; x < 88.7; x += 0.0007) {
      const auto argument = static_cast<float>(x);
      const double wanted = std::exp(static_cast<double>(argument));
      const double unit = std::ldexp(1.0, std::ilogb(wanted) - 23);
      worst = std::max(worst, std::abs(static_cast<double>(exp_of(argument)) - wanted) / unit);
    }
    CHECK(worst < 1.0);
  }
}

TEST_CASE("the exp written into kernels knows zero, infinity, what is no number, and results below normal") {
  const Compiled compiled{{"-O2"}};
  const auto exp_of = compiled.library->symbol<float(float)>("exp_of");
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(exp_of(0.0F) == 1.0F);
  CHECK(exp_of(-0.0F) == 1.0F);
  CHECK(exp_of(infinity) == infinity);
  CHECK(exp_of(1e9F) == infinity);
  CHECK(exp_of(88.73F) == infinity);
  CHECK(exp_of(-infinity) == 0.0F);
  CHECK(exp_of(-1e9F) == 0.0F);
  CHECK(exp_of(-104.0F) == 0.0F);
  CHECK(exp_of(-100.0F) == doctest::Approx(std::exp(-100.0)).epsilon(0.02));
  CHECK(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(exp_of(-std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("the tanh written into kernels is odd, bounded and right to single precision") {
  const Compiled compiled{{"-O2"}};
  const auto tanh_of = compiled.library->symbol<float(float)>("tanh_of");
  double worst = 0;
  for (double x = 0; x < 12; x += 0.0003) {
    const auto argument = static_cast<float>(x);
    worst = std::max(
        worst, std::abs(static_cast<double>(tanh_of(argument)) - std::tanh(static_cast<double>(argument))));
    REQUIRE(tanh_of(-argument) == -tanh_of(argument));
    REQUIRE(tanh_of(argument) <= 1.0F);
  }
  CHECK(worst < 2e-7);
  CHECK(tanh_of(std::numeric_limits<float>::infinity()) == 1.0F);
  CHECK(std::isnan(tanh_of(std::numeric_limits<float>::quiet_NaN())));
}
