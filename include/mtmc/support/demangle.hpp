#pragma once

#include <mtmc/requirements.hpp>

#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <string>

namespace mtmc::detail {

/// The name as the coder wrote it: `_ZZ4rowsPKfE5cache` is `rows(float const*)::cache`.
[[nodiscard]] inline std::string demangled(const std::string& name) {
  // Without this prefix it would be taken for a type: `c` for `char`.
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text{
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free};
  return status == 0 && text ? std::string(text.get()) : name;
}

} // namespace mtmc::detail
