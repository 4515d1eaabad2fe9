#pragma once
/// Which optional abilities a backend has: those of core/backend_abilities.hpp, and those of its type by
/// which a worker makes it.

#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/conformance/report.hpp>
#include <mtmc/evaluator/worker/worker_server.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::test {

namespace detail {

/// Whether a backend has a member of an ability's name that is neither overloaded nor a template.
template <class B> [[nodiscard]] constexpr bool has_member_named(BackendAbility ability) {
  switch (ability) {
  case BackendAbility::identity:
    return requires { &B::identity; };
  case BackendAbility::max_concurrency:
    return requires { &B::max_concurrency; };
  case BackendAbility::resources:
    return requires { &B::resources; };
  case BackendAbility::guard_page_bytes:
    return requires { &B::guard_page_bytes; };
  case BackendAbility::guarded_allocation:
    return requires { &B::guarded_allocation; } || requires { &B::allocate_guarded; };
  case BackendAbility::view:
    return requires { &B::view; };
  case BackendAbility::shared_upload:
    return false;
  case BackendAbility::changed_state:
    return requires { &B::changed_state; };
  case BackendAbility::keep_state:
    return requires { &B::keep_state; };
  case BackendAbility::overwrite_residue:
    return requires { &B::overwrite_residue; };
  case BackendAbility::binary_hash:
    return requires { &B::binary_hash; };
  case BackendAbility::fill:
    return requires { &B::fill; };
  case BackendAbility::choose_place:
    return requires { &B::choose_place; };
  case BackendAbility::conditions:
    return requires { &B::conditions; };
  case BackendAbility::profile:
    return requires { &B::profile; };
  case BackendAbility::in_double_precision:
    return requires { &B::in_double_precision; };
  case BackendAbility::divided:
    return requires { &B::divided; };
  case BackendAbility::branches:
    return requires { &B::compile_probed; } || requires { &B::branches; };
  case BackendAbility::measure_ceilings:
    return requires { &B::measure_ceilings; };
  case BackendAbility::measure_read_bandwidth:
    return requires { &B::measure_read_bandwidth; };
  case BackendAbility::retire:
    return requires { &B::Program::retire; };
  case BackendAbility::reload:
    return requires { &B::Program::reload; };
  case BackendAbility::spent:
    return requires { &B::spent; };
  case BackendAbility::isolates_programs:
    return requires { &B::isolates_programs; } && !requires { static_cast<bool>(B::isolates_programs); };
  case BackendAbility::runs_judge_kernels:
    return requires { &B::runs_judge_kernels; } && !requires { static_cast<bool>(B::runs_judge_kernels); };
  }
  return false;
}

} // namespace detail

/// All optional abilities of a backend of this type that has those in `found`.
template <class B> [[nodiscard]] std::vector<ConformanceAbility> list_abilities(BackendAbilities found) {
  using Presence = ConformanceAbility::Presence;
  std::vector<ConformanceAbility> list;
  for (const auto& [ability, name] : enum_names(BackendAbility{}))
    list.push_back({std::string(name), std::string(declaration_of(ability)),
                    found.has(ability)                     ? Presence::found
                    : detail::has_member_named<B>(ability) ? Presence::declared_otherwise
                                                           : Presence::absent});
  const auto of_type = [&list](std::string_view name, std::string_view declaration, bool there, bool named) {
    list.push_back({std::string(name), std::string(declaration),
                    there   ? Presence::found
                    : named ? Presence::declared_otherwise
                            : Presence::absent});
  };
  of_type(
      "name", "static constexpr std::string_view name = ... (for workers)", NamedBackend<B>,
      requires { &B::name; });
  of_type(
      "from_json", "static B from_json(const nlohmann::json&) (for workers)", BackendFromJson<B>,
      requires { &B::from_json; });
  of_type(
      "role", "static mtmc::ProgramRole role() (for workers)", mtmc::detail::HasProgramRole<B>,
      requires { &B::role; });
  of_type(
      "takes_temporary_folder", "static constexpr bool takes_temporary_folder = true (for workers)",
      requires { B::takes_temporary_folder; }, false);
  of_type(
      "takes_device_lock_folder", "static constexpr bool takes_device_lock_folder = true (for workers)",
      requires { B::takes_device_lock_folder; }, false);
  of_type(
      "takes_expendable_process", "static constexpr bool takes_expendable_process = true (for workers)",
      requires { B::takes_expendable_process; }, false);
  return list;
}

} // namespace mtmc::test
