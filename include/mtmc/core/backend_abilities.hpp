#pragma once
/// What a backend may offer beyond the concept `Backend`, how to ask whether it does, and what is done where
/// it does not.
///
/// Every ability has three things here: a concept, which says how it is declared; a name in `BackendAbility`,
/// by which anybody asks at run time (`has_ability`), because a type-erased backend has what the one inside
/// it has; and, where it is a call, a function that makes it or else does what is right without it.

#include <mtmc/core/branch.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/profile.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A backend that knows more of a program's resources than the compiler's answer said, once it is loaded.
template <class B>
concept ReportsResources = requires(B& backend, typename B::Program& program) {
  { backend.resources(program) } -> std::convertible_to<std::map<std::string, double>>;
};

/// A backend around whose allocations there is no memory for programs: `guard_page_bytes()` is the size of
/// its pages, and a program that touches a byte before the first of an allocation, or after its last rounded
/// up to whole pages, ends its run `faulted`. The evaluator then lets some checks take place where a buffer
/// ends (or begins) at such a page. 0 = not on this machine.
template <class B>
concept HasGuardPages = requires(const B& backend) {
  { backend.guard_page_bytes() } -> std::convertible_to<std::size_t>;
};

/// Memory that a backend can map with nothing beside it.
struct GuardedAllocation {
  /// Sizes of such memory are multiples of this. Bytes; 0 = there is none.
  std::size_t granularity = 0;
  /// Why there is none; empty if there is.
  std::string missing{};

  friend bool operator==(const GuardedAllocation&, const GuardedAllocation&) = default; ///< member by member
};

/// A backend that can map memory with nothing beside it: `allocate_guarded(bytes)`, for a multiple of
/// `guarded_allocation().granularity`, gives a buffer before whose first byte and behind whose last nothing
/// lies. A program that touches a byte there ends its run `faulted`, and may leave the backend spent. The
/// evaluator then lets some checks take place where a buffer ends (or begins) with such memory.
template <class B>
concept AllocatesGuarded = requires(B& backend, const B& constant, std::size_t bytes) {
  { constant.guarded_allocation() } -> std::same_as<GuardedAllocation>;
  { backend.allocate_guarded(bytes) } -> std::same_as<typename B::Buffer>;
};

/// A backend whose buffers the evaluator can look into without copying: `view(buffer, offset, bytes)` gives
/// what `download` would, or nothing where it must be copied. The bytes may change only while a program runs
/// to which the buffer is bound, and in the next call that is given the buffer. Throws std::out_of_range as
/// `download` does.
template <class B>
concept ShowsBuffers = requires(B& backend, typename B::Buffer& buffer, std::size_t bytes) {
  { backend.view(buffer, bytes, bytes) } -> std::same_as<std::span<const std::byte>>;
};

/// A backend that can take an upload without copying it at once: `upload(buffer, offset, content, owner)`
/// does what `upload` does, but may read `content` as late as in the next run of a plan that is bound to the
/// buffer. `owner` keeps `content` alive, and nobody changes it before that run has begun. Uploads count in
/// their order, of whatever kind.
template <class B>
concept TakesSharedUploads =
    requires(B& backend, typename B::Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
             std::shared_ptr<const void> owner) { backend.upload(buffer, offset, content, owner); };

/// A backend that sees what a program keeps in memory of its own from run to run, variables of the device for
/// instance: `changed_state(program)`, asked after a run, names a part of it that is not what it was when the
/// program was loaded; empty if all is. A candidate of which it names one keeps state between calls.
template <class B>
concept ObservesState = requires(B& backend, typename B::Program& program) {
  { backend.changed_state(program) } -> std::same_as<std::string>;
};

/// A backend that makes every run and every timed group in a process of its own, so that nothing that a
/// program leaves in its memory goes from one to the next. From `keep_state(program, true)` to
/// `keep_state(program, false)` runs of the same plan follow each other in one process instead: where state
/// does change what a program computes, that shows.
template <class B>
concept KeepsState =
    requires(B& backend, typename B::Program& program, bool keep) { backend.keep_state(program, keep); };
/// A backend that overwrites what earlier calls left in memory that programs are given uncleared, shared and
/// local memory of a GPU for instance: `overwrite_residue(program)`, called before a run or a timed group of
/// the program, has it begin with random bytes there, outside of the time that is taken.
template <class B>
concept OverwritesResidue =
    requires(B& backend, typename B::Program& program) { backend.overwrite_residue(program); };

/// A backend that says which binary a program is: `binary_hash(program)` is the SHA-256, in 64 lower-case
/// hexadecimal digits, of exactly the bytes that are loaded and run (a shared object, a CUBIN). It stays what
/// it is as long as the program lives, and the same text compiled again by the same compiler gives the same.
template <class B>
concept HashesBinaries = requires(B& backend, typename B::Program& program) {
  { backend.binary_hash(program) } -> std::same_as<std::string>;
};

/// A backend that writes one byte to a part of a buffer, and to no other byte, faster than uploads would.
template <class B>
concept FillsBuffers = requires(B& backend, typename B::Buffer& buffer, std::size_t bytes, std::byte value) {
  backend.fill(buffer, bytes, bytes, value);
};

/// A backend on which times depend on where on the device a program runs: the timings from one call of
/// `choose_place()` to the next take place on the same part of it, so that they can be compared.
template <class B>
concept ChoosesPlace = requires(B& backend) {
  { backend.choose_place() };
};

/// A backend that reads counters of its device and host, from which the evaluator tells whether a timing was
/// disturbed. Called before and after a timing, never within; it should take a millisecond at most. Throws
/// nothing: what cannot be read is absent.
template <class B>
concept ReportsConditions = requires(B& backend) {
  { backend.conditions() } -> std::same_as<Conditions>;
};

/// A backend that tells where the time of a plan goes whose buffers are bound, by counters of a run or else
/// by what it knows of the program. May take seconds, and leaves the buffers as they are. Throws nothing for
/// what the surroundings lack: the profile says what is missing.
template <class B>
concept Profiles = requires(B& backend, typename B::Program& program, const LaunchPlan& plan) {
  { backend.profile(program, plan) } -> std::same_as<Profile>;
};

/// A backend that can write a kernel anew with every `float` made a `double`, in its text and its launch
/// lines, so that the same function is computed without f32's rounding errors. Integers and constants stay
/// what they are. Nothing where types alone do not do it: where the kernel looks at the bits of a float, say.
/// An evaluator may run such a twin of the task's own kernel to learn the true results; it uses them only
/// where the kernel itself confirms them, so a twin may turn out not to compile or to compute something else.
template <class B>
concept GivesDoubleTwin = requires(const B& backend, const Kernel& kernel) {
  { backend.in_double_precision(kernel) } -> std::same_as<std::optional<Kernel>>;
};

/// A backend that can write a kernel anew so that it may be stopped behind each of its parts, from which the
/// evaluator tells what each takes, by timing it stopped earlier and later. Lines stay where they are.
/// Nothing where there are no two parts to tell apart. What is written is timed, never judged.
template <class B>
concept DividesKernels = requires(const B& backend, const Kernel& kernel) {
  { backend.divided(kernel) } -> std::same_as<std::optional<DividedKernel>>;
};

/// A backend that can compile a kernel so that its calls show which ways its branches go. Such a program
/// computes what the kernel does, but its times and the last bits of its results may be others. Branches are
/// those of the kernel's own text, as exactly as compiler and processor let them be told; places that no
/// candidate's condition stands behind (loops that a compiler adds, say) are left out. There is no program
/// where that is not possible for this kernel.
template <class B>
concept ShowsBranches =
    requires(B& backend, const Kernel& kernel, const CompileOptions& options, typename B::Program& program) {
      {
        backend.compile_probed(kernel, options, std::stop_token{})
      } -> std::same_as<CompileResult<typename B::Program>>;
      { backend.branches(program) } -> std::same_as<std::vector<Branch>>;
    };

/// A backend that can find out what its device reaches at best; the results stand in `Device::measured` from
/// then on. Asked once, before the device is first looked at.
template <class B>
concept MeasuresCeilings = requires(B& backend) { backend.measure_ceilings(); };

/// A backend that can measure its read bandwidth again, in bytes per second, under whatever load there is
/// now.
template <class B>
concept MeasuresBandwidthAgain = requires(B& backend) {
  { backend.measure_read_bandwidth() } -> std::convertible_to<double>;
};

/// A backend whose programs keep a process (or another state) that `Program::retire()` ends, so that the next
/// run takes place in a fresh one.
template <class B>
concept RetiresPrograms = requires(typename B::Program& program) { program.retire(); };

/// A backend whose programs can be loaded anew where they are, from the binary that there is, in a
/// millisecond or less: `Program::reload()` leaves nothing of what runs have changed of the program.
template <class B>
concept ReloadsPrograms = requires(typename B::Program& program) { program.reload(); };

/// A backend that can say that it is of no more use, so that the process it lives in must be replaced.
template <class B>
concept SaysWhenSpent = requires(const B& backend) {
  { backend.spent() } -> std::convertible_to<bool>;
};

/// The optional abilities of a backend, by the names under which they are declared.
enum class BackendAbility {
  /// `HasIdentity`.
  identity,
  /// `HasMaxConcurrency` or `HasConcurrencyLimit`. Without it any number of calls may run at once.
  max_concurrency,
  /// `ReportsResources`. Without it there is what `CompileResult::resources` has.
  resources,
  /// `HasGuardPages`. Without it and without `guarded_allocation` only red zones show accesses beside a
  /// buffer ("guarded_allocation: not observed" in the environment record).
  guard_page_bytes,
  /// `AllocatesGuarded`. The same.
  guarded_allocation,
  /// `ShowsBuffers`. Without it contents are downloaded.
  view,
  /// `TakesSharedUploads`. Without it contents are copied at once.
  shared_upload,
  /// `ObservesState`. Without it only wrong or different results show that a program keeps state ("state: not
  /// observed" in the environment record).
  changed_state,
  /// `KeepsState`. Without it runs are taken to follow each other in one process.
  keep_state,
  /// `OverwritesResidue`. Without it what a call leaves in such memory lasts until others write there
  /// ("residue: not
  /// overwritten" in the environment record).
  overwrite_residue,
  /// `HashesBinaries`. Without it `Evaluation::binary_hash` is empty ("binary: not observed" in the
  /// environment record).
  binary_hash,
  /// `FillsBuffers`. Without it bytes are uploaded.
  fill,
  /// `ChoosesPlace`. Without it places are taken for equal.
  choose_place,
  /// `ReportsConditions`. Without it disturbances are seen in the times alone.
  conditions,
  /// `Profiles`. Without it there is no profile.
  profile,
  /// `GivesDoubleTwin`. Without it results are compared with those of the reference in its own precision.
  in_double_precision,
  /// `DividesKernels`. Without it no launch is divided.
  divided,
  /// `ShowsBranches`. Without it nobody knows which branches of a kernel no check has met ("branches: not
  /// observed" in the environment record).
  branches,
  /// `MeasuresCeilings`. Without it `Device::measured` is what the backend filled in.
  measure_ceilings,
  /// `MeasuresBandwidthAgain`. Without it the plausibility rule leaves more room to a ceiling that may be
  /// old.
  measure_read_bandwidth,
  /// `RetiresPrograms`. Without it a new compilation is a new program.
  retire,
  /// `ReloadsPrograms`. Without it a program that has been loaded to be timed stays loaded ("reload: not
  /// between
  /// pairs" in the environment record).
  reload,
  /// `SaysWhenSpent`. Without it a worker goes on with its backend.
  spent,
  /// `static constexpr bool isolates_programs = true`: every program runs in an address space of its own, in
  /// which it sees nothing but the buffers of its own plans. Without it results of the reference and the
  /// incumbent are wiped before a candidate runs.
  isolates_programs,
  /// `static constexpr bool runs_judge_kernels = true`: the backend compiles CUDA C++, and the handle of a
  /// buffer is an address on the device. Inputs, poisons and red zones are then made there, results are
  /// compared there, and references stay there under a mask (evaluator/content/device_kernel.hpp). Without it
  /// the host does all that.
  runs_judge_kernels
};

namespace detail {
inline constexpr EnumName<BackendAbility> backend_ability_names[] = {
    {BackendAbility::identity, "identity"},
    {BackendAbility::max_concurrency, "max_concurrency"},
    {BackendAbility::resources, "resources"},
    {BackendAbility::guard_page_bytes, "guard_page_bytes"},
    {BackendAbility::guarded_allocation, "guarded_allocation"},
    {BackendAbility::view, "view"},
    {BackendAbility::shared_upload, "shared_upload"},
    {BackendAbility::changed_state, "changed_state"},
    {BackendAbility::keep_state, "keep_state"},
    {BackendAbility::overwrite_residue, "overwrite_residue"},
    {BackendAbility::binary_hash, "binary_hash"},
    {BackendAbility::fill, "fill"},
    {BackendAbility::choose_place, "choose_place"},
    {BackendAbility::conditions, "conditions"},
    {BackendAbility::profile, "profile"},
    {BackendAbility::in_double_precision, "in_double_precision"},
    {BackendAbility::divided, "divided"},
    {BackendAbility::branches, "branches"},
    {BackendAbility::measure_ceilings, "measure_ceilings"},
    {BackendAbility::measure_read_bandwidth, "measure_read_bandwidth"},
    {BackendAbility::retire, "retire"},
    {BackendAbility::reload, "reload"},
    {BackendAbility::spent, "spent"},
    {BackendAbility::isolates_programs, "isolates_programs"},
    {BackendAbility::runs_judge_kernels, "runs_judge_kernels"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<BackendAbility>> enum_names(BackendAbility) noexcept {
  return detail::backend_ability_names;
}

/// How an ability is declared: the member that a backend writes to have it.
[[nodiscard]] constexpr std::string_view declaration_of(BackendAbility ability) noexcept {
  switch (ability) {
  case BackendAbility::identity:
    return "std::string identity() const";
  case BackendAbility::max_concurrency:
    return "static constexpr int max_concurrency = ...";
  case BackendAbility::resources:
    return "std::map<std::string, double> resources(Program&)";
  case BackendAbility::guard_page_bytes:
    return "std::size_t guard_page_bytes() const";
  case BackendAbility::guarded_allocation:
    return "mtmc::GuardedAllocation guarded_allocation() const; Buffer allocate_guarded(std::size_t bytes)";
  case BackendAbility::view:
    return "std::span<const std::byte> view(Buffer&, std::size_t offset, std::size_t bytes)";
  case BackendAbility::shared_upload:
    return "void upload(Buffer&, std::size_t offset, std::span<const std::byte>, std::shared_ptr<const "
           "void>)";
  case BackendAbility::changed_state:
    return "std::string changed_state(Program&)";
  case BackendAbility::keep_state:
    return "void keep_state(Program&, bool)";
  case BackendAbility::overwrite_residue:
    return "void overwrite_residue(Program&)";
  case BackendAbility::binary_hash:
    return "std::string binary_hash(const Program&)";
  case BackendAbility::fill:
    return "void fill(Buffer&, std::size_t offset, std::size_t bytes, std::byte)";
  case BackendAbility::choose_place:
    return "void choose_place()";
  case BackendAbility::conditions:
    return "mtmc::Conditions conditions()";
  case BackendAbility::profile:
    return "mtmc::Profile profile(Program&, const mtmc::LaunchPlan&)";
  case BackendAbility::in_double_precision:
    return "std::optional<mtmc::Kernel> in_double_precision(const mtmc::Kernel&) const";
  case BackendAbility::divided:
    return "std::optional<mtmc::DividedKernel> divided(const mtmc::Kernel&) const";
  case BackendAbility::branches:
    return "mtmc::CompileResult<Program> compile_probed(const mtmc::Kernel&, const mtmc::CompileOptions&, "
           "std::stop_token); std::vector<mtmc::Branch> branches(Program&)";
  case BackendAbility::measure_ceilings:
    return "mtmc::MeasuredCeilings measure_ceilings()";
  case BackendAbility::measure_read_bandwidth:
    return "double measure_read_bandwidth()";
  case BackendAbility::retire:
    return "void Program::retire()";
  case BackendAbility::reload:
    return "void Program::reload()";
  case BackendAbility::spent:
    return "bool spent() const";
  case BackendAbility::isolates_programs:
    return "static constexpr bool isolates_programs = true";
  case BackendAbility::runs_judge_kernels:
    return "static constexpr bool runs_judge_kernels = true";
  }
  return {};
}

/// A set of abilities.
class BackendAbilities {
public:
  /// Whether an ability is in the set.
  [[nodiscard]] constexpr bool has(BackendAbility ability) const noexcept {
    return (bits_ & bit(ability)) != 0;
  }
  /// Puts an ability into the set, or takes it out.
  constexpr void set(BackendAbility ability, bool there = true) noexcept {
    bits_ = there ? bits_ | bit(ability) : bits_ & ~bit(ability);
  }

  /// Member by member.
  friend constexpr bool operator==(const BackendAbilities&, const BackendAbilities&) = default;

private:
  [[nodiscard]] static constexpr std::uint32_t bit(BackendAbility ability) noexcept {
    return std::uint32_t{1} << static_cast<unsigned>(ability);
  }
  std::uint32_t bits_ = 0;
};

/// A backend that says at run time what it can (`AnyBackend`, which can what the backend inside it can). Its
/// word counts, whatever members it has.
template <class B>
concept SaysItsAbilities = requires(const B& backend) {
  { backend.abilities() } -> std::same_as<BackendAbilities>;
};

/// What the type of a backend declares.
template <class B> [[nodiscard]] consteval BackendAbilities declared_abilities() {
  BackendAbilities all;
  all.set(BackendAbility::identity, HasIdentity<B>);
  all.set(BackendAbility::max_concurrency, HasMaxConcurrency<B> || HasConcurrencyLimit<B>);
  all.set(BackendAbility::resources, ReportsResources<B>);
  all.set(BackendAbility::guard_page_bytes, HasGuardPages<B>);
  all.set(BackendAbility::guarded_allocation, AllocatesGuarded<B>);
  all.set(BackendAbility::view, ShowsBuffers<B>);
  all.set(BackendAbility::shared_upload, TakesSharedUploads<B>);
  all.set(BackendAbility::changed_state, ObservesState<B>);
  all.set(BackendAbility::keep_state, KeepsState<B>);
  all.set(BackendAbility::overwrite_residue, OverwritesResidue<B>);
  all.set(BackendAbility::binary_hash, HashesBinaries<B>);
  all.set(BackendAbility::fill, FillsBuffers<B>);
  all.set(BackendAbility::choose_place, ChoosesPlace<B>);
  all.set(BackendAbility::conditions, ReportsConditions<B>);
  all.set(BackendAbility::profile, Profiles<B>);
  all.set(BackendAbility::in_double_precision, GivesDoubleTwin<B>);
  all.set(BackendAbility::divided, DividesKernels<B>);
  all.set(BackendAbility::branches, ShowsBranches<B>);
  all.set(BackendAbility::measure_ceilings, MeasuresCeilings<B>);
  all.set(BackendAbility::measure_read_bandwidth, MeasuresBandwidthAgain<B>);
  all.set(BackendAbility::retire, RetiresPrograms<B>);
  all.set(BackendAbility::reload, ReloadsPrograms<B>);
  all.set(BackendAbility::spent, SaysWhenSpent<B>);
  if constexpr (requires { static_cast<bool>(B::isolates_programs); })
    all.set(BackendAbility::isolates_programs, static_cast<bool>(B::isolates_programs));
  if constexpr (requires { static_cast<bool>(B::runs_judge_kernels); })
    all.set(BackendAbility::runs_judge_kernels, static_cast<bool>(B::runs_judge_kernels));
  return all;
}

/// What a backend can: its own word, or what its type declares.
template <class B> [[nodiscard]] BackendAbilities abilities_of([[maybe_unused]] const B& backend) {
  if constexpr (SaysItsAbilities<B>)
    return backend.abilities();
  else
    return declared_abilities<B>();
}
/// Whether a backend has an ability.
template <class B> [[nodiscard]] bool has_ability(const B& backend, BackendAbility ability) {
  return abilities_of(backend).has(ability);
}

/// Whether every program of a backend sees nothing but the buffers of its own plans.
template <class B> [[nodiscard]] bool isolates_programs(const B& backend) {
  return has_ability(backend, BackendAbility::isolates_programs);
}
/// Whether the judge's own kernel runs on a backend's device.
template <class B> [[nodiscard]] bool runs_judge_kernels(const B& backend) {
  return has_ability(backend, BackendAbility::runs_judge_kernels);
}

/// What a backend knows of a program's resources beyond its compiler's answer; nothing if it does not say.
template <class B>
[[nodiscard]] std::map<std::string, double> resources_of([[maybe_unused]] B& backend,
                                                         [[maybe_unused]] typename B::Program& program) {
  if constexpr (ReportsResources<B>)
    return backend.resources(program);
  else
    return {};
}

/// Bytes of the pages that a backend keeps away from programs around each of its allocations; 0 if it does
/// not.
template <class B> [[nodiscard]] std::size_t guard_page_bytes_of([[maybe_unused]] const B& backend) {
  if constexpr (HasGuardPages<B>)
    return backend.guard_page_bytes();
  else
    return 0;
}

/// The memory that a backend can map with nothing beside it; none if it has no such ability.
template <class B> [[nodiscard]] GuardedAllocation guarded_allocation_of([[maybe_unused]] const B& backend) {
  if constexpr (AllocatesGuarded<B>)
    return backend.guarded_allocation();
  else
    return {};
}
/// Whether a check can take place with no memory next to its buffers.
template <class B> [[nodiscard]] bool guards_buffers(const B& backend) {
  return guarded_allocation_of(backend).granularity > 0 || guard_page_bytes_of(backend) > 0;
}
/// Such memory, or the backend's usual where it has none.
template <class B> [[nodiscard]] typename B::Buffer allocate_guarded_by(B& backend, std::size_t bytes) {
  if constexpr (AllocatesGuarded<B>)
    if (backend.guarded_allocation().granularity > 0) return backend.allocate_guarded(bytes);
  return backend.allocate(bytes);
}

/// What a program has changed of its own memory since it was loaded; empty if nothing, or if the backend does
/// not see it.
template <class B>
[[nodiscard]] std::string changed_state_of([[maybe_unused]] B& backend,
                                           [[maybe_unused]] typename B::Program& program) {
  if constexpr (ObservesState<B>)
    return backend.changed_state(program);
  else
    return {};
}

/// Whether runs of a program follow each other in one process from now on, where that is not so anyway.
template <class B>
void keep_state_of([[maybe_unused]] B& backend, [[maybe_unused]] typename B::Program& program,
                   [[maybe_unused]] bool keep) {
  if constexpr (KeepsState<B>) backend.keep_state(program, keep);
}

/// Has a program's next run or timed group find random bytes in memory that it is given uncleared, if the
/// backend can.
template <class B>
void overwrite_residue_by([[maybe_unused]] B& backend, [[maybe_unused]] typename B::Program& program) {
  if constexpr (OverwritesResidue<B>) backend.overwrite_residue(program);
}

/// SHA-256 of the binary that a program is, in hexadecimal digits; empty if the backend does not say.
template <class B>
[[nodiscard]] std::string binary_hash_of([[maybe_unused]] B& backend,
                                         [[maybe_unused]] typename B::Program& program) {
  if constexpr (HashesBinaries<B>)
    return backend.binary_hash(program);
  else
    return {};
}

/// A part of a buffer where it lies; nothing where it must be downloaded.
template <class B>
[[nodiscard]] std::span<const std::byte>
view_of([[maybe_unused]] B& backend, [[maybe_unused]] typename B::Buffer& buffer,
        [[maybe_unused]] std::size_t offset, [[maybe_unused]] std::size_t bytes) {
  if constexpr (ShowsBuffers<B>)
    return backend.view(buffer, offset, bytes);
  else
    return {};
}

/// Uploads to a part of a backend's buffer what `owner` keeps alive and unchanged until the next run; without
/// a copy where the backend can do so. Null = nobody keeps it.
template <class B>
void upload_shared(B& backend, typename B::Buffer& buffer, std::size_t offset,
                   std::span<const std::byte> content,
                   [[maybe_unused]] const std::shared_ptr<const void>& owner) {
  if constexpr (TakesSharedUploads<B>)
    if (owner != nullptr) return backend.upload(buffer, offset, content, owner);
  backend.upload(buffer, offset, content);
}

namespace detail {

/// Small enough for the nearer caches, large enough that the calls do not count.
inline constexpr std::size_t fill_chunk = std::size_t{1} << 18;

/// Uploads `block`, which `owner` keeps, again and again until the part is full.
template <class B>
void upload_repeatedly(B& backend, typename B::Buffer& buffer, std::size_t offset, std::size_t bytes,
                       std::span<const std::byte> block, const std::shared_ptr<const void>& owner) {
  for (std::size_t done = 0; done < bytes; done += block.size())
    upload_shared(backend, buffer, offset + done, block.first(std::min(block.size(), bytes - done)), owner);
}

} // namespace detail

/// Writes one byte to a part of a backend's buffer: by the backend's own `fill` if it has one, else by
/// uploads.
template <class B>
void fill_buffer(B& backend, typename B::Buffer& buffer, std::size_t offset, std::size_t bytes,
                 std::byte value) {
  if constexpr (FillsBuffers<B>) {
    backend.fill(buffer, offset, bytes, value);
  } else {
    const auto block = std::make_shared<std::vector<std::byte>>(std::min(bytes, detail::fill_chunk), value);
    detail::upload_repeatedly(backend, buffer, offset, bytes, *block, block);
  }
}

/// Has a backend choose where the next timings take place, if that is for it to choose.
template <class B> void choose_place_of([[maybe_unused]] B& backend) {
  if constexpr (ChoosesPlace<B>) backend.choose_place();
}

/// A backend's counters, or a reading of nothing if it has none.
template <class B> [[nodiscard]] Conditions conditions_of([[maybe_unused]] B& backend) {
  if constexpr (ReportsConditions<B>)
    return backend.conditions();
  else
    return {};
}

/// Where the time of a plan goes whose buffers are bound; nothing if the backend does not tell.
template <class B>
[[nodiscard]] std::optional<Profile> profile_by([[maybe_unused]] B& backend,
                                                [[maybe_unused]] typename B::Program& program,
                                                [[maybe_unused]] const LaunchPlan& plan) {
  if constexpr (Profiles<B>)
    if (has_ability(backend, BackendAbility::profile)) return backend.profile(program, plan);
  return std::nullopt;
}

/// A kernel with every `float` made a `double`; nothing where the backend cannot write it.
template <class B>
[[nodiscard]] std::optional<Kernel> double_twin_by([[maybe_unused]] const B& backend,
                                                   [[maybe_unused]] const Kernel& kernel) {
  if constexpr (GivesDoubleTwin<B>)
    return backend.in_double_precision(kernel);
  else
    return std::nullopt;
}

/// A kernel that can be stopped behind each of its parts; nothing where the backend cannot write it.
template <class B>
[[nodiscard]] std::optional<DividedKernel> divided_by([[maybe_unused]] const B& backend,
                                                      [[maybe_unused]] const Kernel& kernel) {
  if constexpr (DividesKernels<B>)
    return backend.divided(kernel);
  else
    return std::nullopt;
}

/// A program whose calls show which ways its branches go; none where the backend cannot make it.
template <class B>
[[nodiscard]] CompileResult<typename B::Program>
compile_probed_by([[maybe_unused]] B& backend, [[maybe_unused]] const Kernel& kernel,
                  [[maybe_unused]] const CompileOptions& options, [[maybe_unused]] std::stop_token stop) {
  if constexpr (ShowsBranches<B>)
    return backend.compile_probed(kernel, options, std::move(stop));
  else
    return {};
}
/// Which ways the branches of such a program have gone; empty where the backend does not show them.
template <class B>
[[nodiscard]] std::vector<Branch> branches_of([[maybe_unused]] B& backend,
                                              [[maybe_unused]] typename B::Program& program) {
  if constexpr (ShowsBranches<B>)
    return backend.branches(program);
  else
    return {};
}

/// Has a backend measure what its device reaches at best, if it can.
template <class B> void measure_ceilings_of([[maybe_unused]] B& backend) {
  if constexpr (MeasuresCeilings<B>) (void)backend.measure_ceilings();
}

/// The read bandwidth under the present load, in bytes per second; nothing if the backend cannot measure it
/// again.
template <class B> [[nodiscard]] std::optional<double> read_bandwidth_again([[maybe_unused]] B& backend) {
  if constexpr (MeasuresBandwidthAgain<B>)
    if (has_ability(backend, BackendAbility::measure_read_bandwidth))
      return static_cast<double>(backend.measure_read_bandwidth());
  return std::nullopt;
}

/// Ends what a program keeps from run to run, if it keeps anything.
template <class Program> void retire_program([[maybe_unused]] Program& program) {
  if constexpr (requires { program.retire(); }) program.retire();
}

/// Loads a program anew, if it can be.
template <class Program> void reload_program([[maybe_unused]] Program& program) {
  if constexpr (requires { program.reload(); }) program.reload();
}

/// Whether a backend says that its process must be replaced.
template <class B> [[nodiscard]] bool is_spent([[maybe_unused]] const B& backend) {
  if constexpr (SaysWhenSpent<B>)
    return static_cast<bool>(backend.spent());
  else
    return false;
}

} // namespace mtmc
