#pragma once
/// A backend that lacks nothing. Each test hides or breaks one of its parts.

#include <mtmc/core/concepts.hpp>

struct CompleteBackend {
  struct Program {};
  struct Buffer {
    [[nodiscard]] std::uint64_t handle() const;
  };
  const mtmc::Device& device();
  std::vector<mtmc::Diagnostic> screen(const mtmc::Kernel&);
  mtmc::CompileResult<Program> compile(const mtmc::Kernel&, const mtmc::CompileOptions&, std::stop_token);
  Buffer allocate(std::size_t bytes);
  void upload(Buffer&, std::size_t offset, std::span<const std::byte>);
  void download(Buffer&, std::size_t offset, std::span<std::byte>);
  mtmc::RunStatus run(Program&, const mtmc::LaunchPlan&, mtmc::Deadline);
  mtmc::TimedRun time(Program&, std::span<const mtmc::LaunchPlan> group, bool cold, mtmc::Deadline);
};
