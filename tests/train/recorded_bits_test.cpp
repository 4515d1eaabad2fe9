// Weights of trainings that were recorded: the same bits with GCC and Clang, at any level of optimisation.

#include <mtmc/support/sha256.hpp>
#include <mtmc/train/imitation.hpp>
#include <mtmc/train/ppo.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "toy_features.hpp"
#include "toy_trees.hpp"

using namespace mtmc;

namespace {
#ifdef __FMA__
constexpr bool may_contract = true;
#else
constexpr bool may_contract = false;
#endif
std::string digest(const std::vector<double>& numbers) {
  return sha256_hex({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)});
}
/// How the C library rounds the functions that training calls: by version, and by whether the processor has
/// fused multiply-add, which glibc asks for at run time.
std::string digest_of_functions() {
  std::vector<double> results;
  PhiloxEngine random{1};
  for (int i = 1; i <= 30000; ++i) {
    const double place = random.uniform();
    results.push_back(std::exp(-8 * place));
    results.push_back(std::log(1 - place));
    results.push_back(std::cos(6 * place));
    results.push_back(std::pow(0.9, i % 1000));
    results.push_back(std::pow(0.999, i));
  }
  return digest(results);
}
} // namespace

TEST_CASE("where the C library rounds as when they were recorded, so do first weights, imitation and "
          "reinforcement") {
  if (may_contract) {
    MESSAGE("skipped: the compiler may contract multiplications and additions");
    return;
  }
  if (digest_of_functions() != "7349e2f32a35fa48c4b1b55add11c44076e5ffd3fd92db4c294dbcb9fed80db8") {
    MESSAGE("skipped: this C library rounds otherwise on this processor");
    return;
  }
  std::vector<KernelTree> trees{toy::random_tree(4, 12), toy::random_tree(5, 12)};
  const toy::ByName features(trees);
  const ActionNetwork start = make_network(features.shape(), 3);
  CHECK(digest(start.weights) == "496aa4d8def6a4ec3b4df896979cf910f0ea3464d181f7da9de6b0b2a0575550");
  const ImitationResult imitated = imitate(start, trees, {}, features, exact_teacher({}),
                                           {.rounds = 2, .states = 300, .epochs = 4, .seed = 5});
  CHECK(digest(imitated.network.weights) ==
        "b08955ee0441b42bfae252a49f6fa6ce89d57b55af9df01ee6da1c9ec29a3cd7");
  const PpoResult result = train_ppo(imitated.network, trees, {}, features,
                                     {.rollout = 256, .minibatch = 64, .steps = 2048, .seed = 3});
  CHECK(digest(result.network.weights) == "ba71172534f5e9baf9adfe1ed57a46d537b83e41194b1e09a832c37923e9f40d");
}
