#pragma once
/// The type-erased twin of the backend concept.

#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/erased.hpp>
#include <mtmc/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Any backend, with every optional ability that it has and none that it lacks (`abilities`), so that whoever
/// is given one does what he would do with the backend itself. Its programs and buffers belong to the backend
/// that made them.
class AnyBackend {
public:
  /// A program of the backend that is held.
  class Program {
  public:
    /// Of no backend; not to be run.
    Program() = default;
    /// Ends what the program keeps from run to run; nothing if it keeps nothing.
    void retire() {
      if (retire_ != nullptr) retire_(held_.get());
    }
    /// Loads the program anew; nothing where that is not known.
    void reload() {
      if (reload_ != nullptr) reload_(held_.get());
    }

  private:
    friend class AnyBackend;
    Program(std::shared_ptr<void> held, void (*retire_held)(void*), void (*reload_held)(void*))
        : held_(std::move(held)), retire_(retire_held), reload_(reload_held) {}
    std::shared_ptr<void> held_;
    void (*retire_)(void*) = nullptr;
    void (*reload_)(void*) = nullptr;
  };
  /// A buffer of the backend that is held.
  class Buffer {
  public:
    /// What names the buffer in `BoundBuffer::handle`.
    [[nodiscard]] std::uint64_t handle() const {
      return handle_(detail::held_or_throw(held_, "AnyBackend::Buffer"));
    }

  private:
    friend class AnyBackend;
    Buffer(detail::ErasedPointer owned, std::uint64_t (*handle_of)(void*))
        : held_(std::move(owned)), handle_(handle_of) {}
    detail::ErasedPointer held_;
    std::uint64_t (*handle_)(void*);
  };

  /// Takes a backend over. One given as `std::ref` stays where it is, and has to live longer than this.
  template <class B>
    requires detail::FitsTwin<B, AnyBackend> && Backend<detail::Held<B>>
  AnyBackend(B&& backend) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : held_(detail::erase(std::forward<B>(backend))), table_(&table<detail::Held<B>>) {}
  /// One that holds what `make` gives, which need not be movable.
  template <class Make>
    requires Backend<std::invoke_result_t<Make&>>
  [[nodiscard]] static AnyBackend made_by(Make&& make) {
    using B = std::invoke_result_t<Make&>;
    return AnyBackend({new B(make()), [](void* held) { delete static_cast<B*>(held); }}, &table<B>);
  }

  /// `Backend::device` of what is held.
  [[nodiscard]] const Device& device() { return table_->device(held()); }
  /// `Backend::screen` of what is held.
  [[nodiscard]] std::vector<Diagnostic> screen(const Kernel& kernel) {
    return table_->screen(held(), kernel);
  }
  /// `Backend::compile` of what is held.
  [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                               std::stop_token stop) {
    return table_->compile(held(), kernel, options, std::move(stop));
  }
  /// `Backend::allocate` of what is held.
  [[nodiscard]] Buffer allocate(std::size_t bytes) { return table_->allocate(held(), bytes); }
  /// `Backend::upload` of what is held.
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
    table_->upload(held(), buffer, offset, content);
  }
  /// `Backend::download` of what is held.
  void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
    table_->download(held(), buffer, offset, target);
  }
  /// `Backend::run` of what is held.
  [[nodiscard]] RunStatus run(Program& program, const LaunchPlan& plan, Deadline deadline) {
    return table_->run(held(), program, plan, deadline);
  }
  /// `Backend::time` of what is held.
  [[nodiscard]] TimedRun time(Program& program, std::span<const LaunchPlan> group, bool cold,
                              Deadline deadline) {
    return table_->time(held(), program, group, cold, deadline);
  }

  /// What the backend that is held can.
  [[nodiscard]] BackendAbilities abilities() const { return table_->abilities(held()); }

  // The optional abilities. Each does what core/backend_abilities.hpp says of it or, where what is held
  // lacks it, what is right without it.

  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const { return table_->common->identity(held()); }
  /// Most calls that may run at once.
  [[nodiscard]] int concurrency_limit() const { return table_->common->concurrency_limit(held()); }
  /// `BackendAbility::resources`; without it empty.
  [[nodiscard]] std::map<std::string, double> resources(Program& program) {
    return table_->resources(held(), program);
  }
  /// `BackendAbility::guard_page_bytes`; without it 0.
  [[nodiscard]] std::size_t guard_page_bytes() const { return table_->guard_page_bytes(held()); }
  /// `BackendAbility::guarded_allocation`; without it none.
  [[nodiscard]] GuardedAllocation guarded_allocation() const { return table_->guarded_allocation(held()); }
  /// `BackendAbility::guarded_allocation`; without it what `allocate` gives.
  [[nodiscard]] Buffer allocate_guarded(std::size_t bytes) { return table_->allocate_guarded(held(), bytes); }
  /// `BackendAbility::view`; without it empty.
  [[nodiscard]] std::span<const std::byte> view(Buffer& buffer, std::size_t offset, std::size_t bytes) {
    return table_->view(held(), buffer, offset, bytes);
  }
  /// `BackendAbility::shared_upload`; without it a plain upload.
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
              const std::shared_ptr<const void>& owner) {
    table_->upload_shared(held(), buffer, offset, content, owner);
  }
  /// `BackendAbility::changed_state`; without it empty.
  [[nodiscard]] std::string changed_state(Program& program) { return table_->changed_state(held(), program); }
  /// `BackendAbility::keep_state`; without it nothing.
  void keep_state(Program& program, bool keep) { table_->keep_state(held(), program, keep); }
  /// `BackendAbility::overwrite_residue`; without it nothing happens.
  void overwrite_residue(Program& program) { table_->overwrite_residue(held(), program); }
  /// `BackendAbility::binary_hash`; without it empty.
  [[nodiscard]] std::string binary_hash(Program& program) { return table_->binary_hash(held(), program); }
  /// `BackendAbility::fill`; without it an upload.
  void fill(Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value) {
    table_->fill(held(), buffer, offset, bytes, value);
  }
  /// `BackendAbility::choose_place`; without it nothing happens.
  void choose_place() { table_->choose_place(held()); }
  /// `BackendAbility::conditions`; without it nothing is known.
  [[nodiscard]] Conditions conditions() { return table_->conditions(held()); }
  /// Empty where what is held has none to give.
  [[nodiscard]] Profile profile(Program& program, const LaunchPlan& plan) {
    return table_->profile(held(), program, plan).value_or(Profile{});
  }
  /// `BackendAbility::in_double_precision`; without it nothing.
  [[nodiscard]] std::optional<Kernel> in_double_precision(const Kernel& kernel) const {
    return table_->in_double_precision(held(), kernel);
  }
  /// `BackendAbility::divided`; without it nothing.
  [[nodiscard]] std::optional<DividedKernel> divided(const Kernel& kernel) const {
    return table_->divided(held(), kernel);
  }
  /// `BackendAbility::branches`; without it no program.
  [[nodiscard]] CompileResult<Program> compile_probed(const Kernel& kernel, const CompileOptions& options,
                                                      std::stop_token stop) {
    return table_->compile_probed(held(), kernel, options, std::move(stop));
  }
  /// `BackendAbility::branches`; without it empty.
  [[nodiscard]] std::vector<Branch> branches(Program& program) { return table_->branches(held(), program); }
  /// `BackendAbility::measure_ceilings`; without it nothing happens.
  void measure_ceilings() { table_->measure_ceilings(held()); }
  /// Bytes per second; 0 where what is held cannot measure it.
  [[nodiscard]] double measure_read_bandwidth() { return table_->read_bandwidth_again(held()).value_or(0.0); }
  /// `BackendAbility::spent`; without it false.
  [[nodiscard]] bool spent() const { return table_->spent(held()); }

private:
  struct Table {
    const detail::CommonTable* common;
    BackendAbilities (*abilities)(const void*);
    const Device& (*device)(void*);
    CompileResult<Program> (*compile)(void*, const Kernel&, const CompileOptions&, std::stop_token);
    Buffer (*allocate)(void*, std::size_t);
    void (*upload)(void*, Buffer&, std::size_t, std::span<const std::byte>);
    void (*download)(void*, Buffer&, std::size_t, std::span<std::byte>);
    RunStatus (*run)(void*, Program&, const LaunchPlan&, Deadline);
    TimedRun (*time)(void*, Program&, std::span<const LaunchPlan>, bool, Deadline);
    std::vector<Diagnostic> (*screen)(void*, const Kernel&);
    std::map<std::string, double> (*resources)(void*, Program&);
    std::size_t (*guard_page_bytes)(const void*);
    GuardedAllocation (*guarded_allocation)(const void*);
    Buffer (*allocate_guarded)(void*, std::size_t);
    std::span<const std::byte> (*view)(void*, Buffer&, std::size_t, std::size_t);
    void (*upload_shared)(void*, Buffer&, std::size_t, std::span<const std::byte>,
                          const std::shared_ptr<const void>&);
    std::string (*changed_state)(void*, Program&);
    void (*keep_state)(void*, Program&, bool);
    void (*overwrite_residue)(void*, Program&);
    std::string (*binary_hash)(void*, Program&);
    void (*fill)(void*, Buffer&, std::size_t, std::size_t, std::byte);
    void (*choose_place)(void*);
    Conditions (*conditions)(void*);
    std::optional<Profile> (*profile)(void*, Program&, const LaunchPlan&);
    std::optional<Kernel> (*in_double_precision)(const void*, const Kernel&);
    std::optional<DividedKernel> (*divided)(const void*, const Kernel&);
    CompileResult<Program> (*compile_probed)(void*, const Kernel&, const CompileOptions&, std::stop_token);
    std::vector<Branch> (*branches)(void*, Program&);
    void (*measure_ceilings)(void*);
    std::optional<double> (*read_bandwidth_again)(void*);
    bool (*spent)(const void*);
  };

  template <class B> [[nodiscard]] static B& as(void* held) { return *static_cast<B*>(held); }
  template <class B> [[nodiscard]] static const B& as(const void* held) {
    return *static_cast<const B*>(held);
  }
  template <class B> [[nodiscard]] static typename B::Program& program_of(Program& program) {
    if (program.held_ == nullptr)
      throw Error(error_id::empty_part, "an AnyBackend::Program without a program was run",
                  "Run only programs that compile() gave");
    return *static_cast<typename B::Program*>(program.held_.get());
  }
  template <class B> [[nodiscard]] static typename B::Buffer& buffer_of(Buffer& buffer) {
    return *static_cast<typename B::Buffer*>(detail::held_or_throw(buffer.held_, "AnyBackend::Buffer"));
  }
  template <class B> [[nodiscard]] static Buffer erased(typename B::Buffer inner) {
    return Buffer(detail::make_erased<typename B::Buffer>(std::move(inner)), [](void* buffer) {
      return static_cast<std::uint64_t>(static_cast<typename B::Buffer*>(buffer)->handle());
    });
  }
  template <class B>
  [[nodiscard]] static CompileResult<Program> erased(CompileResult<typename B::Program> inner) {
    CompileResult<Program> result;
    if (inner.program)
      result.program = std::make_shared<Program>(Program(
          std::move(inner.program),
          [](void* program) { retire_program(*static_cast<typename B::Program*>(program)); },
          [](void* program) { reload_program(*static_cast<typename B::Program*>(program)); }));
    result.timed_out = inner.timed_out;
    result.refused = inner.refused;
    result.diagnostics = std::move(inner.diagnostics);
    result.resources = std::move(inner.resources);
    result.seconds = inner.seconds;
    return result;
  }
  template <class B> [[nodiscard]] static constexpr Table table_of() {
    return {
        .common = &detail::common_table<B>,
        .abilities = [](const void* held) { return abilities_of(as<B>(held)); },
        .device = [](void* held) -> const Device& { return as<B>(held).device(); },
        .compile =
            [](void* held, const Kernel& kernel, const CompileOptions& options, std::stop_token stop) {
              return erased<B>(as<B>(held).compile(kernel, options, std::move(stop)));
            },
        .allocate = [](void* held, std::size_t bytes) { return erased<B>(as<B>(held).allocate(bytes)); },
        .upload =
            [](void* held, Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
              as<B>(held).upload(buffer_of<B>(buffer), offset, content);
            },
        .download =
            [](void* held, Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
              as<B>(held).download(buffer_of<B>(buffer), offset, target);
            },
        .run = [](void* held, Program& program, const LaunchPlan& plan,
                  Deadline deadline) { return as<B>(held).run(program_of<B>(program), plan, deadline); },
        .time =
            [](void* held, Program& program, std::span<const LaunchPlan> group, bool cold,
               Deadline deadline) { return as<B>(held).time(program_of<B>(program), group, cold, deadline); },
        .screen = [](void* held, const Kernel& kernel) { return as<B>(held).screen(kernel); },
        .resources = [](void* held,
                        Program& program) { return resources_of(as<B>(held), program_of<B>(program)); },
        .guard_page_bytes = [](const void* held) { return guard_page_bytes_of(as<B>(held)); },
        .guarded_allocation = [](const void* held) { return guarded_allocation_of(as<B>(held)); },
        .allocate_guarded =
            [](void* held, std::size_t bytes) { return erased<B>(allocate_guarded_by(as<B>(held), bytes)); },
        .view = [](void* held, Buffer& buffer, std::size_t offset,
                   std::size_t bytes) { return view_of(as<B>(held), buffer_of<B>(buffer), offset, bytes); },
        .upload_shared =
            [](void* held, Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
               const std::shared_ptr<const void>& owner) {
              mtmc::upload_shared(as<B>(held), buffer_of<B>(buffer), offset, content, owner);
            },
        .changed_state =
            [](void* held, Program& program) {
              return changed_state_of(as<B>(held), program_of<B>(program));
            },
        .keep_state = [](void* held, Program& program,
                         bool keep) { keep_state_of(as<B>(held), program_of<B>(program), keep); },
        .overwrite_residue =
            [](void* held, Program& program) { overwrite_residue_by(as<B>(held), program_of<B>(program)); },
        .binary_hash = [](void* held,
                          Program& program) { return binary_hash_of(as<B>(held), program_of<B>(program)); },
        .fill = [](void* held, Buffer& buffer, std::size_t offset, std::size_t bytes,
                   std::byte value) { fill_buffer(as<B>(held), buffer_of<B>(buffer), offset, bytes, value); },
        .choose_place = [](void* held) { choose_place_of(as<B>(held)); },
        .conditions = [](void* held) { return conditions_of(as<B>(held)); },
        .profile =
            [](void* held, Program& program, const LaunchPlan& plan) {
              return profile_by(as<B>(held), program_of<B>(program), plan);
            },
        .in_double_precision = [](const void* held,
                                  const Kernel& kernel) { return double_twin_by(as<B>(held), kernel); },
        .divided = [](const void* held, const Kernel& kernel) { return divided_by(as<B>(held), kernel); },
        .compile_probed =
            [](void* held, const Kernel& kernel, const CompileOptions& options, std::stop_token stop) {
              return erased<B>(compile_probed_by(as<B>(held), kernel, options, std::move(stop)));
            },
        .branches = [](void* held,
                       Program& program) { return branches_of(as<B>(held), program_of<B>(program)); },
        .measure_ceilings = [](void* held) { measure_ceilings_of(as<B>(held)); },
        .read_bandwidth_again = [](void* held) { return mtmc::read_bandwidth_again(as<B>(held)); },
        .spent = [](const void* held) { return is_spent(as<B>(held)); }};
  }
  template <class B> static constexpr Table table = table_of<B>();

  AnyBackend(detail::ErasedPointer owned, const Table* table_of_owned)
      : held_(std::move(owned)), table_(table_of_owned) {}
  [[nodiscard]] void* held() const { return detail::held_or_throw(held_, "AnyBackend"); }

  detail::ErasedPointer held_;
  const Table* table_;
};

static_assert(Backend<AnyBackend>);

} // namespace mtmc
