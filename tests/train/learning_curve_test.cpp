// Learning curves: well-formed pictures with everything in them, whatever the numbers are.

#include <mtmc/support/file_io.hpp>
#include <mtmc/train/learning_curve.hpp>

#include <doctest/doctest.h>
#include <tinyxml2.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

using namespace mtmc;
using doctest::Approx;

namespace {
/// A training that gets better and more certain.
std::vector<PpoProgress> course(std::uint64_t seed, std::size_t updates) {
  PhiloxEngine random{seed};
  std::vector<PpoProgress> progress(updates);
  for (std::size_t i = 0; i < updates; ++i) {
    const double done = static_cast<double>(i) / static_cast<double>(updates);
    progress[i].steps = 1024 * (i + 1);
    progress[i].episodes = 200;
    progress[i].mean_return = 2.2 - 1.8 * std::exp(-4 * done) + 0.3 * (random.uniform() - 0.5);
    progress[i].entropy = 0.15 + 0.8 * std::exp(-3 * done) + 0.04 * random.uniform();
    progress[i].explained_variance = 0.9 - 1.1 * std::exp(-6 * done) + 0.1 * random.uniform();
  }
  return progress;
}
std::string drawn(const std::vector<std::vector<PpoProgress>>& runs,
                  const LearningCurveOptions& options = {}) {
  const std::string text = learning_curve(runs, options);
  tinyxml2::XMLDocument document;
  CHECK(document.Parse(text.c_str(), text.size()) == tinyxml2::XML_SUCCESS);
  CHECK(text.find("nan") == std::string::npos);
  for (const char* infinite : {"inf\"", "inf,", "inf<"}) CHECK(text.find(infinite) == std::string::npos);
  return text;
}
std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}
} // namespace

TEST_CASE("of one run there are the updates and their means, of several their mean and range") {
  const std::string one =
      drawn({course(1, 98)}, {.title = "Toys & <trees>", .best = 2.5, .best_name = "mean of V*"});
  CHECK(count_of(one, "class=\"raw\"") == 3);
  CHECK(count_of(one, "class=\"curve\"") == 3);
  CHECK(count_of(one, "class=\"band\"") == 0);
  CHECK(count_of(one, ">Toys &amp; &lt;trees&gt;</text>") == 1);
  CHECK(count_of(one, "mean of V* 2.5") == 1);
  CHECK(count_of(one, ">20k</text>") == 3);
  CHECK(count_of(one, "prefers-color-scheme:dark") == 1);
  const std::string several = drawn({course(1, 98), course(2, 98), course(3, 60)});
  CHECK(count_of(several, "class=\"raw\"") == 0);
  CHECK(count_of(several, "class=\"band\"") == 3);
  CHECK(count_of(several, "3 seeds") == 1);
  CHECK(count_of(several, ">60k</text>") == 3); // the shortest ends there
  CHECK(count_of(several, ">80k</text>") == 0);
}

TEST_CASE("numbers that are all the same, few, huge, or none are drawn, too") {
  std::vector<PpoProgress> same(5), single = course(1, 1), huge = course(1, 30), none;
  for (std::size_t i = 0; i < same.size(); ++i) same[i].steps = i + 1;
  huge[3].mean_return = 1e9;
  huge[4].explained_variance = -1e9;
  huge[5].mean_return = -1e-9;
  huge[6].entropy = std::numeric_limits<double>::quiet_NaN();
  CHECK(count_of(drawn({same}), "<path") == 6);
  CHECK(count_of(drawn({single}), "<path") == 6);
  CHECK(count_of(drawn({huge, huge}), "<polygon") == 3);
  CHECK(learning_curve({}).empty());
  CHECK(learning_curve(std::vector<std::vector<PpoProgress>>{none}).empty());
}

TEST_CASE("axes have round marks that enclose the numbers, and means leave out what is no number") {
  const detail::CurveAxis axis = detail::CurveAxis::around(0.13, 2.41, 5);
  CHECK(axis.step == Approx(0.5));
  CHECK(axis.low == Approx(0));
  CHECK(axis.high == Approx(2.5));
  CHECK(axis.digits() == 1);
  CHECK(detail::CurveAxis::around(-3, 14000, 5).step == Approx(5000));
  CHECK(detail::CurveAxis::around(7, 7, 5).low < 7);
  const std::vector<double> values{1, 2, std::numeric_limits<double>::quiet_NaN(), 4};
  const auto means = detail::smoothed(values, 3);
  CHECK(means[0] == Approx(1.5));
  CHECK(means[1] == Approx(1.5));
  CHECK(means[2] == Approx(3));
  CHECK(detail::short_number(-0.0001, 2) == "0");
  CHECK(detail::short_number(100, 0) == "100");
  CHECK(detail::short_count(1500000) == "1.5M");
  CHECK(detail::short_count(950) == "950");
}
