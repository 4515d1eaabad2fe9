#pragma once
/// The CUDA driver, opened at run time: no header and no library of CUDA is needed to build.

#include <mtmc/backend/cuda/tensor_map.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/shared_library.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// CUresult: 0, or an error.
using CudaCode = int;
using CudaAddress = unsigned long long;
/// Contexts, modules, functions, streams and events.
using CudaHandle = void*;

/// Errors that are told apart, as in cuda.h.
namespace cuda_code {
inline constexpr CudaCode success = 0;
inline constexpr CudaCode out_of_memory = 2;
inline constexpr CudaCode stub_library = 34;
inline constexpr CudaCode no_device = 100;
inline constexpr CudaCode not_ready = 600;
inline constexpr CudaCode illegal_address = 700;
inline constexpr CudaCode out_of_resources = 701;
inline constexpr CudaCode launch_timeout = 702;
inline constexpr CudaCode first_kernel_fault = 710;
inline constexpr CudaCode last_kernel_fault = 719;
} // namespace cuda_code

/// What is asked of a device, numbered as in cuda.h.
enum class DeviceAttribute : int {
  max_grid_x = 5,
  max_grid_y = 6,
  max_grid_z = 7,
  warp_size = 10,
  clock_kilohertz = 13,
  compute_units = 16,
  memory_clock_kilohertz = 36,
  memory_bus_bits = 37,
  l2_bytes = 38,
  threads_of_a_unit = 39,
  major = 75,
  minor = 76,
  shared_bytes = 81,
  shared_bytes_of_a_block = 97,
  maps_memory = 102,
  launches_clusters = 120,
  reads_tensor_maps = 127
};
/// What is asked of a function.
enum class FunctionAttribute : int {
  max_threads = 0,
  static_shared_bytes = 1,
  local_bytes = 3,
  registers = 4,
  dynamic_shared_bytes = 8,
  cluster_x = 11,
  cluster_y = 12,
  cluster_z = 13
};

/// CUlaunchAttribute: one thing that a launch asks for.
struct LaunchAttribute {
  int id = 0;
  alignas(8) std::array<unsigned, 16> value{};
};
static_assert(sizeof(LaunchAttribute) == 72);
/// What CUlaunchAttributeID calls the extents of clusters.
inline constexpr int cluster_attribute = 4;

/// CUlaunchConfig: a launch with attributes.
struct LaunchConfig {
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  unsigned shared_bytes = 0;
  CudaHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

/// CUmemLocation: where memory lies.
struct MemoryLocation {
  int type = 1; ///< on a device
  int device = 0;
};
/// CUmemAllocationProp: memory that is mapped by hand.
struct MemoryKind {
  int type = 1; ///< pinned, as all memory of a device is
  int shared_as = 0;
  MemoryLocation location{};
  void* of_windows = nullptr;
  std::array<unsigned char, 8> flags{};
};
static_assert(sizeof(MemoryKind) == 32);
/// CUmemAccessDesc: who may read and write mapped memory.
struct MemoryAccess {
  MemoryLocation location{};
  int flags = 3; ///< both
};
static_assert(sizeof(MemoryAccess) == 12);

/// The functions of the driver under the names of their binary interface: a bare name may mean that of
/// another version.
class CudaDriver {
  // Before the functions, which are found in it while they are made.
  std::vector<std::string> missing_{};
  SharedLibrary opened_;

public:
  /// Opens `library`, or libcuda.so.1, and initialises it. Throws `Error` (`mtmc.backend.004`) with what was
  /// tried where there is no driver, none that works, or no device.
  explicit CudaDriver(const std::string& library = {}) : opened_(open(library)) { start(); }

  CudaCode (*init)(unsigned) = find("cuInit");
  CudaCode (*driver_version)(int*) = find("cuDriverGetVersion");
  CudaCode (*error_name)(CudaCode, const char**) = find("cuGetErrorName");
  CudaCode (*error_text)(CudaCode, const char**) = find("cuGetErrorString");
  CudaCode (*device_count)(int*) = find("cuDeviceGetCount");
  CudaCode (*device_get)(int*, int) = find("cuDeviceGet");
  CudaCode (*device_name)(char*, int, int) = find("cuDeviceGetName");
  CudaCode (*device_uuid)(unsigned char*, int) = find("cuDeviceGetUuid_v2");
  CudaCode (*device_memory)(std::size_t*, int) = find("cuDeviceTotalMem_v2");
  CudaCode (*device_attribute)(int*, DeviceAttribute, int) = find("cuDeviceGetAttribute");
  CudaCode (*context_retain)(CudaHandle*, int) = find("cuDevicePrimaryCtxRetain");
  CudaCode (*context_release)(int) = find("cuDevicePrimaryCtxRelease_v2");
  CudaCode (*context_push)(CudaHandle) = find("cuCtxPushCurrent_v2");
  CudaCode (*context_pop)(CudaHandle*) = find("cuCtxPopCurrent_v2");
  CudaCode (*module_load)(CudaHandle*, const void*, unsigned, int*, void**) = find("cuModuleLoadDataEx");
  CudaCode (*module_unload)(CudaHandle) = find("cuModuleUnload");
  CudaCode (*module_function)(CudaHandle*, CudaHandle, const char*) = find("cuModuleGetFunction");
  CudaCode (*module_global)(CudaAddress*, std::size_t*, CudaHandle,
                            const char*) = find("cuModuleGetGlobal_v2");
  CudaCode (*function_attribute)(int*, FunctionAttribute, CudaHandle) = find("cuFuncGetAttribute");
  CudaCode (*function_set_attribute)(CudaHandle, FunctionAttribute, int) = find("cuFuncSetAttribute");
  CudaCode (*launch)(CudaHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     CudaHandle, void**, void**) = find("cuLaunchKernel");
  CudaCode (*memory_allocate)(CudaAddress*, std::size_t) = find("cuMemAlloc_v2");
  CudaCode (*memory_free)(CudaAddress) = find("cuMemFree_v2");
  CudaCode (*memory_info)(std::size_t*, std::size_t*) = find("cuMemGetInfo_v2");
  CudaCode (*host_allocate)(void**, std::size_t, unsigned) = find("cuMemHostAlloc");
  CudaCode (*host_free)(void*) = find("cuMemFreeHost");
  CudaCode (*host_address)(CudaAddress*, void*, unsigned) = find("cuMemHostGetDevicePointer_v2");
  CudaCode (*copy_in)(CudaAddress, const void*, std::size_t, CudaHandle) = find("cuMemcpyHtoDAsync_v2");
  CudaCode (*copy_out)(void*, CudaAddress, std::size_t, CudaHandle) = find("cuMemcpyDtoHAsync_v2");
  CudaCode (*fill_bytes)(CudaAddress, unsigned char, std::size_t, CudaHandle) = find("cuMemsetD8Async");
  CudaCode (*stream_create)(CudaHandle*, unsigned) = find("cuStreamCreate");
  CudaCode (*stream_destroy)(CudaHandle) = find("cuStreamDestroy_v2");
  CudaCode (*stream_synchronize)(CudaHandle) = find("cuStreamSynchronize");
  CudaCode (*event_create)(CudaHandle*, unsigned) = find("cuEventCreate");
  CudaCode (*event_destroy)(CudaHandle) = find("cuEventDestroy_v2");
  CudaCode (*event_record)(CudaHandle, CudaHandle) = find("cuEventRecord");
  CudaCode (*event_query)(CudaHandle) = find("cuEventQuery");
  CudaCode (*event_seconds)(float*, CudaHandle, CudaHandle) = find("cuEventElapsedTime");
  /// Blocks of a function, of so many threads and bytes of dynamic shared memory, that a multiprocessor
  /// holds.
  CudaCode (*resident_blocks)(int*, CudaHandle, int,
                              std::size_t) = find("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  /// Holds a stream until a word of memory has a value; null where the driver has none.
  CudaCode (*stream_wait)(CudaHandle, CudaAddress, std::uint32_t,
                          unsigned) = find_optional("cuStreamWaitValue32_v2");

  /// Launches with attributes, clusters for instance; null before CUDA 11.8.
  CudaCode (*launch_with)(const LaunchConfig*, CudaHandle, void**,
                          void**) = find_optional("cuLaunchKernelEx");
  /// Makes a tensor map of type, rank, address, extents, strides, box, steps, interleave, swizzle, promotion
  /// and fill; null before CUDA 12.
  CudaCode (*encode_tensor_map)(CudaParameterBytes*, int, std::uint32_t, CudaAddress, const std::uint64_t*,
                                const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, int, int,
                                int, int) = find_optional("cuTensorMapEncodeTiled");

  // Memory that is mapped by hand; all are there or, in a driver before CUDA 10.2, none.
  CudaCode (*address_reserve)(CudaAddress*, std::size_t, std::size_t, CudaAddress,
                              unsigned long long) = find_optional("cuMemAddressReserve");
  CudaCode (*address_free)(CudaAddress, std::size_t) = find_optional("cuMemAddressFree");
  CudaCode (*memory_create)(std::uint64_t*, std::size_t, const MemoryKind*,
                            unsigned long long) = find_optional("cuMemCreate");
  CudaCode (*memory_release)(std::uint64_t) = find_optional("cuMemRelease");
  CudaCode (*memory_map)(CudaAddress, std::size_t, std::size_t, std::uint64_t,
                         unsigned long long) = find_optional("cuMemMap");
  CudaCode (*memory_unmap)(CudaAddress, std::size_t) = find_optional("cuMemUnmap");
  CudaCode (*memory_set_access)(CudaAddress, std::size_t, const MemoryAccess*,
                                std::size_t) = find_optional("cuMemSetAccess");
  CudaCode (*memory_granularity)(std::size_t*, const MemoryKind*,
                                 int) = find_optional("cuMemGetAllocationGranularity");
  /// Whether it has all of them.
  [[nodiscard]] bool maps_memory() const noexcept {
    return address_reserve != nullptr && address_free != nullptr && memory_create != nullptr &&
           memory_release != nullptr && memory_map != nullptr && memory_unmap != nullptr &&
           memory_set_access != nullptr && memory_granularity != nullptr;
  }

  /// 13000 for CUDA 13.0: the newest that the driver serves.
  [[nodiscard]] int version() const noexcept { return version_; }
  /// Devices that this process can see; at least 1.
  [[nodiscard]] int devices() const noexcept { return devices_; }

  /// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
  [[nodiscard]] std::string describe(CudaCode code) const {
    // A stub leaves the pointers alone.
    const char* name = nullptr;
    const char* text = nullptr;
    (void)error_name(code, &name);
    (void)error_text(code, &text);
    return (name != nullptr ? std::string(name) + " (" : "CUDA error (") + std::to_string(code) + ')' +
           (text != nullptr ? std::string(": ") + text : std::string());
  }
  /// For what no candidate can be blamed for. Throws `Error` (`mtmc.backend.004`).
  void demand(CudaCode code, std::string_view function) const {
    if (code == cuda_code::success) return;
    throw Error(error_id::backend_device, std::string(function) + " gave " + describe(code),
                "Check with nvidia-smi that the device still works; a process whose kernel has crashed must "
                "be replaced");
  }

private:
  /// Becomes the function pointer it is assigned to; what is missing is told all at once.
  struct Symbol {
    CudaDriver& driver;
    const char* name;
    bool optional;
    template <class F> operator F*() const {
      auto* const found = driver.opened_.template find<F>(name);
      if (found == nullptr && !optional) driver.missing_.emplace_back(name);
      return found;
    }
  };
  [[nodiscard]] Symbol find(const char* name) { return {*this, name, false}; }
  [[nodiscard]] Symbol find_optional(const char* name) { return {*this, name, true}; }

  [[noreturn]] static void refuse(const std::string& reason, const std::string& remedy,
                                  std::string_view option = {}) {
    throw Error(error_id::backend_device, reason, remedy).about(option);
  }
  static constexpr std::string_view library_option = "CudaBackendOptions::driver_library";

  [[nodiscard]] static SharedLibrary open(const std::string& library) {
    // Not libcuda.so: that name exists where only a toolkit is installed, and may be its stub.
    const std::vector<std::string> names{library.empty() ? "libcuda.so.1" : library};
    try {
      return SharedLibrary::open(names, {.keep_loaded = true});
    } catch (const SharedLibraryError& error) {
      refuse(std::string("there is no NVIDIA driver: ") + error.what(),
             "Run this on a machine with an NVIDIA GPU and its driver, or name the driver's library",
             library_option);
    }
  }

  void start() {
    if (!missing_.empty()) {
      std::string names;
      for (const auto& name : missing_) names += (names.empty() ? "" : ", ") + name;
      refuse(opened_.name() + " is not a driver that this library can use: it lacks " + names,
             "Install a driver of CUDA 11.2 or newer, or name another library", library_option);
    }
    const auto code = init(0);
    if (code == cuda_code::stub_library)
      refuse(opened_.name() + " is the stub that a toolkit brings for linking, not a driver",
             "Install the NVIDIA driver, or take the toolkit's `stubs` folder out of LD_LIBRARY_PATH");
    if (code == cuda_code::no_device) refuse("the NVIDIA driver sees no device", no_device_remedy);
    if (code != cuda_code::success)
      refuse("the NVIDIA driver does not start: " + describe(code), no_device_remedy);
    demand(driver_version(&version_), "cuDriverGetVersion");
    demand(device_count(&devices_), "cuDeviceGetCount");
    if (devices_ <= 0) refuse("the NVIDIA driver sees no device", no_device_remedy);
  }

  static constexpr const char* no_device_remedy =
      "Check what nvidia-smi says, and that CUDA_VISIBLE_DEVICES does not hide the device from this process";

  int version_ = 0;
  int devices_ = 0;
};

} // namespace mtmc::detail
