#pragma once
/// What the judge writes to buffers before a call and looks for in them after it: one interface, whether the
/// host does the work or the judge's own kernel on the device.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/data_type.hpp>
#include <mtmc/evaluator/content/call_results.hpp>
#include <mtmc/evaluator/content/case_inputs.hpp>
#include <mtmc/evaluator/content/content_finding.hpp>
#include <mtmc/evaluator/content/kept_contents.hpp>
#include <mtmc/evaluator/content/tolerance.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mtmc::inline MTMC_ABI {

/// A part of a buffer, `bytes` from `offset` on.
struct BufferPart {
  /// Of a backend.
  AnyBackend::Buffer& buffer;
  /// Bytes before the part.
  std::size_t offset = 0;
  /// Bytes of the part.
  std::size_t bytes = 0;
};

/// Writes and looks, asked for one by one and done by `run` at the latest: in one launch where the device
/// does them, in any order. A look answers the number under which `found` knows it from `run` until the next
/// job is asked for. What is handed over lives until then. Not thread-safe.
class ContentWork {
public:
  ContentWork() = default;
  ContentWork(const ContentWork&) = delete;
  ContentWork& operator=(const ContentWork&) = delete;
  virtual ~ContentWork() = default;

  /// Writes one byte to all of a part.
  virtual void write_byte(const BufferPart& part, std::byte value) = 0;
  /// Writes random bytes: equal `key` and `stream` give equal ones.
  virtual void write_noise(const BufferPart& part, std::uint64_t key, std::uint64_t stream) = 0;
  /// The same bytes again and again, every `fill_chunk`.
  virtual void write_repeated_noise(const BufferPart& part, std::uint64_t key, std::uint64_t stream) = 0;
  /// Writes input `i` of a case as elements of `type`: its own (`CaseInputs::type`), or f64 in place of f32,
  /// which makes it twice as long. `owner`, if there is one, keeps the inputs alive and unchanged until the
  /// call, which saves copies.
  virtual void write_input(const BufferPart& part, const CaseInputs& inputs, std::size_t i, DataType type,
                           const std::shared_ptr<const void>& owner) = 0;

  /// Looks which bytes of a part are not the noise of `write_noise`.
  [[nodiscard]] virtual std::size_t look_for_noise(const BufferPart& part, std::uint64_t key,
                                                   std::uint64_t stream) = 0;
  /// Looks whether a part still holds input `i` of a case, elements of `type`.
  [[nodiscard]] virtual std::size_t look_for_input(const BufferPart& part, const CaseInputs& inputs,
                                                   std::size_t i, DataType type) = 0;
  /// Looks which elements of result `i` have other bits than what was kept.
  [[nodiscard]] virtual std::size_t look_for_bits(const CallResults& results, std::size_t i,
                                                  const KeptContents& kept) = 0;
  /// Does what `compare_output` does, with result `i` and what was kept of the reference as elements of
  /// `wanted_type`, which may be another floating-point type than the result's.
  [[nodiscard]] virtual std::size_t compare(const CallResults& results, std::size_t i,
                                            const KeptContents& wanted, DataType wanted_type,
                                            const Tolerance& tolerance) = 0;
  /// Looks for what `output_scale` is made of, of a floating-point type.
  [[nodiscard]] virtual std::size_t look_for_scale(const CallResults& results, std::size_t i) = 0;

  /// Copies all results, so that they outlive their buffers; where no other program can read them.
  [[nodiscard]] virtual KeptContents keep(CallResults& results) = 0;

  /// Does all that was asked for. Throws `Error` (`mtmc.backend.004`) if the device does not.
  virtual void run() = 0;
  /// Forgets what was asked for and not done. Whoever begins must not find the jobs of an evaluation that
  /// ended early: their memory may be gone.
  virtual void forget() noexcept = 0;
  /// What a look found.
  [[nodiscard]] virtual const ContentFinding& found(std::size_t number) = 0;
};

} // namespace mtmc
