#pragma once
/// The judge's work on contents, done by its own kernel on the device.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/content/content_work.hpp>
#include <mtmc/evaluator/content/device_work.hpp>
#include <mtmc/evaluator/content/host_content.hpp>
#include <mtmc/evaluator/content/secret_keys.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mtmc::inline MTMC_ABI::detail {

/// Results that are kept stay on the device, each byte changed by the noise of a secret key. Inputs without a
/// recipe are uploaded once and kept there in the same way. What does not lie on the device is compared by
/// the host.
class DeviceContent final : public ContentWork {
public:
  DeviceContent(AnyBackend& backend, SecretKeys& keys) : backend_(backend), keys_(keys), work_(backend) {}

  void write_byte(const BufferPart& part, std::byte value) override;
  void write_noise(const BufferPart& part, std::uint64_t key, std::uint64_t stream) override;
  void write_repeated_noise(const BufferPart& part, std::uint64_t key, std::uint64_t stream) override;
  void write_input(const BufferPart& part, const CaseInputs& inputs, std::size_t i, DataType type,
                   const std::shared_ptr<const void>& owner) override;
  [[nodiscard]] std::size_t look_for_noise(const BufferPart& part, std::uint64_t key,
                                           std::uint64_t stream) override;
  [[nodiscard]] std::size_t look_for_input(const BufferPart& part, const CaseInputs& inputs, std::size_t i,
                                           DataType type) override;
  [[nodiscard]] std::size_t look_for_bits(const CallResults& results, std::size_t i,
                                          const KeptContents& kept) override;
  [[nodiscard]] std::size_t compare(const CallResults& results, std::size_t i, const KeptContents& wanted,
                                    DataType wanted_type, const Tolerance& tolerance) override;
  [[nodiscard]] std::size_t look_for_scale(const CallResults& results, std::size_t i) override;
  [[nodiscard]] KeptContents keep(CallResults& results) override;
  void run() override;
  void forget() noexcept override;
  [[nodiscard]] const ContentFinding& found(std::size_t number) override { return looks_.found(number); }

private:
  /// Notes a look that the device does, by its number there.
  [[nodiscard]] std::size_t on_device(std::size_t number);

  /// Memory for a masked content of so many bytes, under a key that nobody can foresee.
  [[nodiscard]] MaskedContent masked_memory(std::size_t bytes);

  AnyBackend& backend_;
  SecretKeys& keys_;
  DeviceWork work_;
  LazyLooks looks_;
};

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/content/device_content_inl.hpp>
#endif
