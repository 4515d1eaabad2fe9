#pragma once
/// The part of the OpenCL 1.2 interface that 04_opencl_backend.cpp needs, from a library opened at run time.
/// Every handle is a pointer; names and constants are those of CL/cl.h without their prefixes.

#include <mtmc/support/shared_library.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace opencl {

/// cl_int: 0, or a negative error.
using Code = std::int32_t;
using Word = std::uint32_t;
using Size = std::size_t;

/// What is asked of a device, a program, a parameter or a buffer.
enum : Word {
  device_type = 0x1000,
  device_compute_units = 0x1002,
  device_clock_mhz = 0x100c,
  device_alignment_bits = 0x1019,
  device_cache_bytes = 0x101e,
  device_memory_bytes = 0x101f,
  device_local_bytes = 0x1023,
  device_name = 0x102b,
  device_driver = 0x102d,
  device_version = 0x102f,
  device_extensions = 0x1030,
  build_log = 0x1183,
  argument_type_name = 0x1198,
  part_is_region = 0x1220
};
constexpr Code build_failed = -11;
constexpr Code device_not_available = -2;

/// The functions of libOpenCL.so.1. Making one throws mtmc::SharedLibraryError where the library or a
/// function of it is missing.
struct OpenCl {
  /// Becomes the function pointer it is assigned to.
  struct Function {
    const mtmc::SharedLibrary& library;
    const char* name;
    template <class F> operator F*() const { return library.symbol<F>(name); }
  };
  [[nodiscard]] Function named(const char* name) const { return {library, name}; }

  // Drivers start threads and register exit handlers, so what was opened stays.
  mtmc::SharedLibrary library =
      mtmc::SharedLibrary::open(std::vector<std::string>{"libOpenCL.so.1"}, {.keep_loaded = true});
  using Release = Code(void*);
  using Callback = void(void* event, Code status, void* data);
  Code (*platforms)(Word, void**, Word*) = named("clGetPlatformIDs");
  Code (*devices)(void*, std::uint64_t, Word, void**, Word*) = named("clGetDeviceIDs");
  Code (*device_info)(void*, Word, Size, void*, Size*) = named("clGetDeviceInfo");
  void* (*context)(const void*, Word, void* const*, void*, void*, Code*) = named("clCreateContext");
  void* (*queue)(void*, void*, std::uint64_t, Code*) = named("clCreateCommandQueue");
  void* (*program)(void*, Word, const char**, const Size*, Code*) = named("clCreateProgramWithSource");
  Code (*build)(void*, Word, void* const*, const char*, void*, void*) = named("clBuildProgram");
  Code (*build_info)(void*, void*, Word, Size, void*, Size*) = named("clGetProgramBuildInfo");
  void* (*kernel)(void*, const char*, Code*) = named("clCreateKernel");
  Code (*argument_info)(void*, Word, Word, Size, void*, Size*) = named("clGetKernelArgInfo");
  Code (*argument)(void*, Word, Size, const void*) = named("clSetKernelArg");
  void* (*memory)(void*, std::uint64_t, Size, void*, Code*) = named("clCreateBuffer");
  void* (*part)(void*, std::uint64_t, Word, const void*, Code*) = named("clCreateSubBuffer");
  Code (*write)(void*, void*, Word, Size, Size, const void*, Word, void*,
                void*) = named("clEnqueueWriteBuffer");
  Code (*read)(void*, void*, Word, Size, Size, void*, Word, void*, void*) = named("clEnqueueReadBuffer");
  Code (*fill)(void*, void*, const void*, Size, Size, Size, Word, void*,
               void*) = named("clEnqueueFillBuffer");
  Code (*launch)(void*, void*, Word, const Size*, const Size*, const Size*, Word, void*,
                 void**) = named("clEnqueueNDRangeKernel");
  Code (*when_done)(void*, Code, Callback*, void*) = named("clSetEventCallback");
  Code (*flush)(void*) = named("clFlush");
  Code (*finish)(void*) = named("clFinish");
  Release* release_event = named("clReleaseEvent");
  Release* release_kernel = named("clReleaseKernel");
  Release* release_program = named("clReleaseProgram");
  Release* release_memory = named("clReleaseMemObject");
  Release* release_queue = named("clReleaseCommandQueue");
  Release* release_context = named("clReleaseContext");
};

} // namespace opencl
