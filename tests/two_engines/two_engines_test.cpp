#include <mtmc/core/error.hpp>
#include <mtmc/support/shared_library.hpp>

#include <doctest/doctest.h>

#include <array>
#include <future>
#include <optional>
#include <string>

#include "engine.hpp"

namespace {

/// An engine as a host loads it; this host has a copy of mtmc of its own.
class Engine {
public:
  explicit Engine(const std::string& file)
      : library_(mtmc::SharedLibrary::open(std::array{std::string(MTMC_TEST_PROGRAMS) + "/" + file})) {}

  /// What went wrong; empty if nothing did.
  [[nodiscard]] std::string optimize() const {
    std::string why;
    const bool done = library_.symbol<engine::Optimize>("engine_optimize")(why);
    return done ? "" : "not optimized: " + why;
  }
  void fail() const { library_.symbol<engine::Fail>("engine_fail")(); }
  void offer_role(const char* name) const { library_.symbol<engine::OfferRole>("engine_offer_role")(name); }
  [[nodiscard]] bool has_role(const char* name) const {
    return library_.symbol<engine::HasRole>("engine_has_role")(name);
  }

private:
  mtmc::SharedLibrary library_;
};

/// The id of the error that reaches the host.
std::string caught_id(const Engine& engine) {
  try {
    engine.fail();
  } catch (const mtmc::Error& error) {
    return error.id();
  }
  return "nothing";
}

void check_two(const std::string& first_file, const std::string& second_file) {
  std::optional<Engine> first(first_file);
  const Engine second(second_file);

  const std::string id = caught_id(second);
  CHECK(id.starts_with("mtmc.task."));
  CHECK(caught_id(*first) == id);

  auto other = std::async(std::launch::async, [&] { return first->optimize(); });
  CHECK(second.optimize() == "");
  CHECK(other.get() == "");

  first.reset();
  CHECK(caught_id(second) == id);
  CHECK(second.optimize() == "");
}

} // namespace

TEST_CASE("two engines, each with mtmc inside, optimise at once and outlive each other") {
  check_two("libengine_first.so", "libengine_second.so");
}

TEST_CASE("so do two engines that hide their copies of mtmc") {
  check_two("libengine_first_hidden.so", "libengine_second_hidden.so");
}

TEST_CASE("what a hidden copy of mtmc keeps is its own") {
  const Engine first("libengine_first_hidden.so");
  const Engine second("libengine_second_hidden.so");
  first.offer_role("--first");
  second.offer_role("--second");
  CHECK(first.has_role("--first"));
  CHECK(second.has_role("--second"));
  CHECK_FALSE(first.has_role("--second"));
  CHECK_FALSE(second.has_role("--first"));
}
