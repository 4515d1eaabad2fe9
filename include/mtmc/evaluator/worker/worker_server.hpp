#pragma once
/// Workers for backends of one's own. `play_role` itself is in evaluator/worker_entry.hpp.

#include <mtmc/requirements.hpp>

#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/worker_entry.hpp>

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A backend that a worker can be asked for: it has a name that hosts know it by.
template <class B>
concept NamedBackend = Backend<B> && requires {
  { B::name } -> std::convertible_to<std::string_view>;
};
/// A backend that can be made from a JSON object with its options. It should throw `Error` for names it does
/// not know.
template <class B>
concept BackendFromJson = requires(const nlohmann::json& options) {
  { B::from_json(options) } -> std::same_as<B>;
};

namespace detail {

template <class B>
concept HasProgramRole = requires {
  { B::role() } -> std::same_as<ProgramRole>;
};

/// The backend with these options, or as it is by default where it knows none.
template <class B> [[nodiscard]] B backend_from_json(nlohmann::json options, const WorkerFolders& folders) {
  if constexpr (requires { B::takes_temporary_folder; })
    if (!folders.temporary.empty() && !options.contains("temporary_folder"))
      options["temporary_folder"] = folders.temporary;
  if constexpr (requires { B::takes_device_lock_folder; })
    if (!folders.device_lock.empty() && !options.contains("device_lock_folder"))
      options["device_lock_folder"] = folders.device_lock;
  if constexpr (requires { B::takes_expendable_process; })
    if (!options.contains("expendable_process")) options["expendable_process"] = true;
  if constexpr (BackendFromJson<B>) {
    return B::from_json(options);
  } else {
    static_assert(
        std::default_initializable<B>,
        "mtmc: a backend of a worker needs `static B from_json(const nlohmann::json&)` or a default "
        "constructor");
    if (!options.empty())
      throw Error(error_id::worker_request,
                  "the backend " + std::string(B::name) + " takes no options, but was given " +
                      options.dump(),
                  "Give it none, or give the backend `from_json`")
          .about("WorkerOptions::backend_options");
    return B{};
  }
}

template <class B> [[nodiscard]] WorkerBackend worker_backend() {
  static_assert(check_backend<B>());
  static_assert(NamedBackend<B>,
                "mtmc: a backend of a worker needs `static constexpr std::string_view name`");
  std::vector<ProgramRole> roles;
  if constexpr (HasProgramRole<B>) roles.push_back(B::role());
  return {std::string(std::string_view(B::name)),
          [](const std::string& options, const WorkerFolders& folders) -> AnyBackend {
            return backend_from_json<B>(parse_json(options, "backend_options"), folders);
          },
          std::move(roles)};
}

} // namespace detail

/// The backends `play_role` is to offer. Each needs `static constexpr std::string_view name`, the name it
/// is asked for by, and is made by `static B from_json(const nlohmann::json& options)` or, if it has no
/// options, by its default constructor. With `static constexpr bool takes_temporary_folder` and
/// `takes_device_lock_folder` it finds `temporary_folder` and `device_lock_folder` among its options, with
/// `takes_expendable_process` that `expendable_process` is true: a worker that is spent is replaced. With
/// `bool spent() const` it can say that its process must be replaced, with `static ProgramRole role()` what
/// the program must be able to be besides a worker.
template <class... Backends>
[[nodiscard]] WorkerBackends worker_backends(std::function<void(Task&)> attach_hooks = {}) {
  return {{detail::worker_backend<Backends>()...}, std::move(attach_hooks)};
}

} // namespace mtmc
