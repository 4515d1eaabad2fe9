#pragma once
/// The parts of a plan's launcher that are the same in all of them.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// What the launcher's text includes.
inline constexpr std::string_view plan_launcher_includes = R"(#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include <dlfcn.h>

)";

/// The driver's functions by their names, and what is told to it. Members of the launcher begin with "mtmc_",
/// because its parameters are called as the module's.
inline constexpr std::string_view plan_launcher_driver = R"(
  using Address = unsigned long long; // CUdeviceptr
  struct Attribute {                  // CUlaunchAttribute
    int id;
    int padding;
    alignas(8) unsigned value[16];
  };
  struct Configuration { // CUlaunchConfig
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    void* stream;
    Attribute* attributes;
    unsigned attribute_count;
  };

  class Driver {
  public:
    explicit Driver(const char* library) : library_(dlopen(library, RTLD_NOW)) {
      if (library_ == nullptr) {
        const char* const why = dlerror();
        throw std::runtime_error(std::string("CUDA's driver cannot be opened: ") + (why != nullptr ? why : library));
      }
      try {
        find(error_name, "cuGetErrorName");
        find(module_load, "cuModuleLoadData");
        find(module_unload, "cuModuleUnload");
        find(module_function, "cuModuleGetFunction");
        find(function_set, "cuFuncSetAttribute");
        find(launch, "cuLaunchKernelEx");
        find(fill_8, "cuMemsetD8Async");
        find(fill_16, "cuMemsetD16Async");
        find(fill_32, "cuMemsetD32Async");
        find(fill_rows_8, "cuMemsetD2D8Async");
        find(fill_rows_16, "cuMemsetD2D16Async");
        find(fill_rows_32, "cuMemsetD2D32Async");
        find(allocate, "cuMemAlloc_v2");
        find(free, "cuMemFree_v2");
        find(upload, "cuMemcpyHtoD_v2");
        find(copy, "cuMemcpyDtoDAsync_v2");
      } catch (...) {
        dlclose(library_);
        throw;
      }
    }
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;
    ~Driver() { dlclose(library_); }

    void check(int code, const char* call) const {
      if (code == 0) return;
      const char* name = nullptr;
      if (error_name(code, &name) != 0 || name == nullptr) name = "an unknown error";
      throw std::runtime_error(std::string(call) + " gave " + name);
    }

    int (*error_name)(int, const char**) = nullptr;
    int (*module_load)(void**, const void*) = nullptr;
    int (*module_unload)(void*) = nullptr;
    int (*module_function)(void**, void*, const char*) = nullptr;
    int (*function_set)(void*, int, int) = nullptr;
    int (*launch)(const Configuration*, void*, void**, void**) = nullptr;
    int (*fill_8)(Address, unsigned char, std::size_t, void*) = nullptr;
    int (*fill_16)(Address, unsigned short, std::size_t, void*) = nullptr;
    int (*fill_32)(Address, unsigned, std::size_t, void*) = nullptr;
    int (*fill_rows_8)(Address, std::size_t, unsigned char, std::size_t, std::size_t, void*) = nullptr;
    int (*fill_rows_16)(Address, std::size_t, unsigned short, std::size_t, std::size_t, void*) = nullptr;
    int (*fill_rows_32)(Address, std::size_t, unsigned, std::size_t, std::size_t, void*) = nullptr;
    int (*allocate)(Address*, std::size_t) = nullptr;
    int (*free)(Address) = nullptr;
    int (*upload)(Address, const void*, std::size_t) = nullptr;
    int (*copy)(Address, Address, std::size_t, void*) = nullptr;

  private:
    template <class Function> void find(Function& function, const char* name) {
      function = reinterpret_cast<Function>(dlsym(library_, name));
      if (function == nullptr)
        throw std::runtime_error(std::string("CUDA's driver has no ") + name + "; install one of CUDA 12 or later");
    }
    void* library_;
  };

  struct Entry {
    const char* name;
    const void* image;
    unsigned threads;
    unsigned shared_bytes;
    std::array<unsigned, 3> cluster;
  };
  // A loaded kernel.
  struct Function {
    explicit Function(const Driver& given) : driver(given) {}
    Function(const Function&) = delete;
    Function& operator=(const Function&) = delete;
    ~Function() {
      if (module != nullptr) driver.module_unload(module);
    }
    const Driver& driver;
    void* module = nullptr;
    void* handle = nullptr;
  };
  // Memory of the device.
  struct Memory {
    explicit Memory(const Driver& given) : driver(given) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
      if (address != 0) driver.free(address);
    }
    const Driver& driver;
    Address address = 0;
  };
)";

/// Loads kernels and constants, and queues what a call consists of.
inline constexpr std::string_view plan_launcher_calls = R"(
  void mtmc_load() {
    std::size_t number = 0;
    for (const Entry& entry : mtmc_entries()) {
      Function& function = *(mtmc_functions_[number++] = std::make_unique<Function>(mtmc_driver_));
      mtmc_driver_.check(mtmc_driver_.module_load(&function.module, entry.image), "cuModuleLoadData");
      mtmc_driver_.check(mtmc_driver_.module_function(&function.handle, function.module, entry.name),
                         "cuModuleGetFunction");
      constexpr unsigned without_asking = 48 << 10;
      constexpr int max_dynamic_shared_bytes = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
      if (entry.shared_bytes > without_asking)
        mtmc_driver_.check(mtmc_driver_.function_set(function.handle, max_dynamic_shared_bytes,
                                                     static_cast<int>(entry.shared_bytes)),
                           "cuFuncSetAttribute");
    }
    if (mtmc_constant_bytes > 0) {
      mtmc_driver_.check(mtmc_driver_.allocate(&mtmc_memory_.address, mtmc_constant_bytes), "cuMemAlloc");
      mtmc_driver_.check(mtmc_driver_.upload(mtmc_memory_.address, mtmc_constants(), mtmc_constant_bytes),
                         "cuMemcpyHtoD");
    }
  }

  static Address mtmc_address(const void* memory, const char* name) {
    const auto address = static_cast<Address>(reinterpret_cast<std::uintptr_t>(memory));
    if (address == 0) throw std::invalid_argument(std::string(name) + " is null");
    if (address % 16 != 0) throw std::invalid_argument(std::string(name) + " is not aligned to 16 bytes");
    return address;
  }

  template <std::size_t n>
  void mtmc_launch(void* stream, std::size_t number, std::array<unsigned, 3> blocks,
                   std::array<std::uint64_t, n> values) const {
    const Entry& entry = mtmc_entries()[number];
    std::array<void*, n> parameters{};
    for (std::size_t i = 0; i < n; ++i) parameters[i] = &values[i];
    Attribute attribute{};
    attribute.id = 4; // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    for (std::size_t i = 0; i < 3; ++i) attribute.value[i] = entry.cluster[i];
    const bool clustered = entry.cluster[0] * entry.cluster[1] * entry.cluster[2] > 1;
    const Configuration configuration{{blocks[0], blocks[1], blocks[2]},
                                      {entry.threads, 1, 1},
                                      entry.shared_bytes,
                                      stream,
                                      &attribute,
                                      clustered ? 1u : 0u};
    mtmc_driver_.check(
        mtmc_driver_.launch(&configuration, mtmc_functions_[number]->handle, parameters.data(), nullptr),
        "cuLaunchKernelEx");
  }

  // Writes an element of 1, 2 or 4 bytes to `rows` rows of `width` elements, whose beginnings are `pitch` bytes apart.
  void mtmc_fill(void* stream, Address at, int bytes, unsigned bits, std::size_t width, std::size_t rows,
                 std::size_t pitch) const {
    const auto byte = static_cast<unsigned char>(bits & 0xFF);
    const auto word = static_cast<unsigned short>(bits & 0xFFFF);
    const Driver& driver = mtmc_driver_;
    if (rows == 1)
      driver.check(bytes == 1   ? driver.fill_8(at, byte, width, stream)
                   : bytes == 2 ? driver.fill_16(at, word, width, stream)
                                : driver.fill_32(at, bits, width, stream),
                   "cuMemsetAsync");
    else
      driver.check(bytes == 1   ? driver.fill_rows_8(at, pitch, byte, width, rows, stream)
                   : bytes == 2 ? driver.fill_rows_16(at, pitch, word, width, rows, stream)
                                : driver.fill_rows_32(at, pitch, bits, width, rows, stream),
                   "cuMemsetD2DAsync");
  }

  void mtmc_copy(void* stream, Address to, Address from, std::size_t bytes) const {
    mtmc_driver_.check(mtmc_driver_.copy(to, from, bytes, stream), "cuMemcpyDtoDAsync");
  }
)";

} // namespace mtmc::detail
