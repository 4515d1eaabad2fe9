#pragma once
/// The judge's work on contents, done by the host.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/content/content_work.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Looks by round, which take place, or are fetched from where they took place, when somebody asks what they
/// found: of a candidate that is wrong in the first place the others are never needed.
class LazyLooks {
public:
  /// Its number. The first look after `end_round` begins a new round.
  [[nodiscard]] std::size_t add(std::function<ContentFinding()> look);
  void end_round() noexcept { ended_ = true; }
  [[nodiscard]] const ContentFinding& found(std::size_t number);

private:
  struct Look {
    std::function<ContentFinding()> look;
    std::optional<ContentFinding> finding{};
  };
  std::vector<Look> looks_;
  bool ended_ = false;
};

/// Result `i` against what was kept, by the host.
[[nodiscard]] ContentFinding different_bits(const CallResults& results, std::size_t i,
                                            const KeptContents& kept);
[[nodiscard]] ContentFinding compared(const CallResults& results, std::size_t i, const KeptContents& wanted,
                                      DataType wanted_type, const Tolerance& tolerance);

/// Writes take place at once.
class HostContent final : public ContentWork {
public:
  explicit HostContent(AnyBackend& backend) noexcept : backend_(backend) {}

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
  void run() override { looks_.end_round(); }
  void forget() noexcept override { looks_.end_round(); }
  [[nodiscard]] const ContentFinding& found(std::size_t number) override { return looks_.found(number); }

private:
  AnyBackend& backend_;
  LazyLooks looks_;
};

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/content/host_content_inl.hpp>
#endif
