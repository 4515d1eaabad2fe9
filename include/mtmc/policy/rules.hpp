#pragma once
/// An expert's decision table as a policy: no training, no network. The default until a learnt policy is at
/// hand.

#include <mtmc/core/concepts.hpp>
#include <mtmc/policy/gpu_rules.hpp>
#include <mtmc/policy/program_rules.hpp>
#include <mtmc/policy/rule.hpp>
#include <mtmc/policy/situation.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The decision table of `RulesPolicy` for everything but GPUs (`default_gpu_rules`) and Python
/// (`default_program_rules`), top to bottom: the first row that holds for an action decides. Sources: the
/// order "whole-kernel traffic, then locality, then memory access, then parallel mapping, then instruction
/// level", with the tiers of headroom, that the published rule-based systems share.
[[nodiscard]] const std::vector<Rule>& default_rules();

/// Options of `RulesPolicy`.
struct RulesPolicyOptions {
  /// Weight of `stop` while there is headroom: actions below it are not worth trying.
  double stop_weight = 0.03;
  /// Part of the bound from which on `stop` is wanted most.
  double good_enough = 0.92;
  /// Part of a launch's own bound up to which the search goes on as long as there is something that was not
  /// tried on it, where the times of launches are known.
  double launch_good_enough = 0.85;
  /// Weight of actions whose optimisation the table does not speak of (a host's own types).
  double unknown_weight = 0.30;
  /// Regions that do less than this part of the kernel's work are left alone, remainder tiles above all; and
  /// launches that take less than this part of its time.
  double least_share = 0.02;
  /// A launch is left, while there are others to work on, when its last two tries gained less than this.
  double least_gain = 0.02;
  /// Factor on an action that was tried before: on a type and region that failed, and on one that was already
  /// kept.
  double tried_factor = 0.5;
  double repeated_factor = 0.3; ///< on a type and region that was already kept
  /// Factor on a variation: a type that gained nothing on another region of the same launch, or on another
  /// sequence of launches that shares one with this.
  double variation_factor = 0.7;
  /// Steps in a row that gained nothing, after which a search in Python stops once no chain worth fusing is
  /// left that was not tried, nor another one with a member of it.
  int fruitless_steps = 3;
};

/// Chooses by a readable decision table (`default_rules`, `default_gpu_rules` on a GPU,
/// `default_program_rules` for PyTorch modules and Triton kernels, or the host's own) from the roofline's
/// bottleneck, the headroom and the structure of each region. On a GPU, where the times of several launches
/// are known, each is seen by its own roofline, and its actions count by what can be saved there; of regions
/// in Python, whose sizes nobody knows, fusing counts in full. There it also stops once all that is promising
/// was tried, or when the last steps gained nothing and nothing is left to fuse. Deterministic; no state.
class RulesPolicy {
public:
  /// With the default tables.
  explicit RulesPolicy(RulesPolicyOptions options = {})
      : RulesPolicy(options, default_rules(), default_gpu_rules(), default_program_rules()) {}
  /// With the host's own table, also on GPUs and for Python; the first row that holds decides.
  RulesPolicy(RulesPolicyOptions options, std::vector<Rule> rules)
      : options_(options), rules_(rules), gpu_rules_(rules), program_rules_(std::move(rules)) {}
  /// With the host's own tables, the second for GPUs and for Python, which runs on them.
  RulesPolicy(RulesPolicyOptions options, std::vector<Rule> rules, std::vector<Rule> gpu_rules)
      : options_(options), rules_(std::move(rules)), gpu_rules_(gpu_rules),
        program_rules_(std::move(gpu_rules)) {}
  /// With the host's own tables, the second for GPUs, the third for regions in Python.
  RulesPolicy(RulesPolicyOptions options, std::vector<Rule> rules, std::vector<Rule> gpu_rules,
              std::vector<Rule> program_rules)
      : options_(options), rules_(std::move(rules)), gpu_rules_(std::move(gpu_rules)),
        program_rules_(std::move(program_rules)) {}

  /// Weighs the legal actions by the tables.
  [[nodiscard]] ActionDistribution distribution(const Observation& seen, std::span<const Action> legal,
                                                std::stop_token);

  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const;

private:
  RulesPolicyOptions options_;
  std::vector<Rule> rules_;
  std::vector<Rule> gpu_rules_;
  std::vector<Rule> program_rules_;
};

static_assert(check_policy<RulesPolicy>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/policy/rules_inl.hpp>
#endif
