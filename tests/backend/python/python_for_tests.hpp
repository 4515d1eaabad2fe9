#pragma once

#include <mtmc/backend/python/triton_compiler.hpp>
#include <mtmc/backend/python/triton_recorder.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <unistd.h>

/// Python with torch and triton, as `cmake/bootstrap.sh --python` makes it, or as MTMC_TEST_PYTHON names it;
/// a message that skips the test where there is none.
inline std::optional<mtmc::PythonOptions> python_for_tests() {
  mtmc::PythonOptions options;
  const char* const named = std::getenv("MTMC_TEST_PYTHON"); // NOLINT(concurrency-mt-unsafe)
  options.interpreter = named != nullptr ? named : std::string(MTMC_REPOSITORY) + "/build/python/bin/python";
  if (named != nullptr || ::access(options.interpreter.c_str(), X_OK) == 0) return options;
  MESSAGE("SKIPPED: there is no Python with torch and triton; see cmake/bootstrap.sh --python");
  return std::nullopt;
}

/// One recorder for all tests, because it takes seconds to start.
inline mtmc::TritonRecorder& shared_recorder(const mtmc::PythonOptions& options) {
  static mtmc::TritonRecorder recorder(options);
  return recorder;
}
inline mtmc::TritonCompiler& shared_compiler(const mtmc::PythonOptions& options) {
  static mtmc::TritonCompiler compiler(options);
  return compiler;
}

/// A tensor that lies in rows, as a module is called with it.
inline mtmc::RecordedValue tensor_input(std::vector<std::int64_t> sizes, std::string type = "f32") {
  mtmc::RecordedValue value{.kind = mtmc::RecordedValue::Kind::tensor};
  value.tensor.sizes = sizes;
  value.tensor.type = std::move(type);
  std::int64_t stride = 1;
  value.tensor.strides.resize(sizes.size());
  for (std::size_t axis = sizes.size(); axis-- > 0; stride *= sizes[axis])
    value.tensor.strides[axis] = stride;
  return value;
}
