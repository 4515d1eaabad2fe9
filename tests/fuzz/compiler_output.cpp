// What compilers and profilers write about a kernel, in which the kernel's own words stand.
#include <mtmc/backend/cpu/compiler_diagnostics.hpp>
#include <mtmc/backend/cuda/ncu_report.hpp>
#include <mtmc/backend/cuda/nvrtc_log.hpp>

#include <algorithm>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

void check(const std::vector<mtmc::Diagnostic>& diagnostics) {
  for (const auto& diagnostic : diagnostics) {
    require(!diagnostic.message.empty(), "a diagnostic has words");
    require(diagnostic.message.find('\n') == std::string::npos, "a message is one line");
  }
}

} // namespace

void compiler_output(std::string_view input) {
  using namespace mtmc::detail;
  const std::vector<LaunchSignature> signatures{
      {"scale", 1, {{mtmc::LaunchArgument::Kind::buffer, mtmc::DataType::f32, "x"}}}};
  constexpr int lines = 40;
  constexpr std::size_t most = 8;
  CompilerReport report(std::string(input), signatures, lines, "/tmp/folder",
                        [](const std::string& file) { return file.starts_with("/usr/"); });
  const auto remarks = report.diagnostics(most);
  require(remarks.size() <= most, "no more remarks than were asked for");
  check(remarks);
  check(read_nvrtc_log(input, std::string(lines - 1, '\n'), signatures, {"/usr/local/cuda"}, false));
  require(!read_nvrtc_log(input, "", signatures, {}, true).empty(), "what failed has an error");
  (void)read_ncu_report(input);
  (void)why_no_counters(input);
}

} // namespace mtmc_fuzz
