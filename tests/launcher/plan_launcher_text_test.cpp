// A plan's launcher says itself what the driver's functions take: this holds it against the toolkit's header.

#include <mtmc/launcher/plan_launcher_text.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace {

const char* const checks = R"(
};

template <class Own, class Theirs> struct Same;
template <class... Own, class... Theirs> struct Same<int (*)(Own...), CUresult (*)(Theirs...)> {
  static constexpr bool value = sizeof...(Own) == sizeof...(Theirs) && ((sizeof(Own) == sizeof(Theirs)) && ...);
};
#define SAME(member, function)                                                             \
  static_assert(Same<decltype(Launcher::Driver::member), decltype(&function)>::value, "");
#define NAME(function) #function
#define VERSION(function, name) static_assert(std::string_view(NAME(function)) == name, "");

SAME(error_name, cuGetErrorName)
SAME(module_load, cuModuleLoadData)
SAME(module_unload, cuModuleUnload)
SAME(module_function, cuModuleGetFunction)
SAME(launch, cuLaunchKernelEx)
SAME(fill_8, cuMemsetD8Async)
SAME(fill_16, cuMemsetD16Async)
SAME(fill_32, cuMemsetD32Async)
SAME(fill_rows_8, cuMemsetD2D8Async)
SAME(fill_rows_16, cuMemsetD2D16Async)
SAME(fill_rows_32, cuMemsetD2D32Async)
SAME(allocate, cuMemAlloc)
SAME(free, cuMemFree)
SAME(upload, cuMemcpyHtoD)
SAME(copy, cuMemcpyDtoDAsync)
SAME(function_set, cuFuncSetAttribute)
VERSION(cuMemAlloc, "cuMemAlloc_v2")
VERSION(cuMemFree, "cuMemFree_v2")
VERSION(cuMemcpyHtoD, "cuMemcpyHtoD_v2")
VERSION(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2")
VERSION(cuMemsetD8Async, "cuMemsetD8Async")
VERSION(cuMemsetD2D32Async, "cuMemsetD2D32Async")
VERSION(cuModuleLoadData, "cuModuleLoadData")
VERSION(cuLaunchKernelEx, "cuLaunchKernelEx")

using Own = Launcher::Configuration;
static_assert(sizeof(Own) == sizeof(CUlaunchConfig) && alignof(Own) == alignof(CUlaunchConfig), "");
static_assert(offsetof(Own, block) == offsetof(CUlaunchConfig, blockDimX), "");
static_assert(offsetof(Own, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes), "");
static_assert(offsetof(Own, stream) == offsetof(CUlaunchConfig, hStream), "");
static_assert(offsetof(Own, attributes) == offsetof(CUlaunchConfig, attrs), "");
static_assert(offsetof(Own, attribute_count) == offsetof(CUlaunchConfig, numAttrs), "");
static_assert(sizeof(Launcher::Attribute) == sizeof(CUlaunchAttribute), "");
static_assert(offsetof(Launcher::Attribute, value) == offsetof(CUlaunchAttribute, value), "");
static_assert(offsetof(CUlaunchAttributeValue, clusterDim.z) == 2 * sizeof(unsigned), "");
static_assert(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION == 4, "");
static_assert(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == 8, "");
static_assert(sizeof(Launcher::Address) == sizeof(CUdeviceptr) && CUDA_SUCCESS == 0, "");
)";

} // namespace

TEST_CASE("functions and structures of the driver are as its header has them") {
  const std::string toolkit = "/usr/local/cuda/include";
  if (!std::filesystem::exists(toolkit + "/cuda.h")) {
    std::printf("Not compiled: there is no cuda.h in %s\n", toolkit.c_str());
    return;
  }
  const mtmc::TemporaryFolder folder;
  mtmc::write_file_atomic(
      folder.path() + "/main.cpp",
      std::string(mtmc::detail::plan_launcher_includes).substr(sizeof "#pragma once") +
          "#include <cuda.h>\n#include <cstddef>\n#include <string_view>\nstruct Launcher {\n" +
          std::string(mtmc::detail::plan_launcher_driver) + checks);
  const auto compiled = mtmc::run_process({.arguments = {"c++", "-std=c++17", "-fsyntax-only", "-isystem",
                                                         toolkit, folder.path() + "/main.cpp"}});
  CHECK_MESSAGE(compiled.succeeded(), compiled.error);
}
