/* libcuda.so.1 without a device: memory is the host's, kernels are C functions of the names of their entries, and
   whatever is done is printed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;

typedef struct {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
} Configuration;

typedef struct {
  int id;
  char padding[4];
  unsigned value[16];
} Attribute;

enum { invalid_value = 1, not_found = 500 };

int cuGetErrorName(int status, const char** name) {
  *name = status == not_found       ? "CUDA_ERROR_NOT_FOUND"
          : status == invalid_value ? "CUDA_ERROR_INVALID_VALUE"
                                    : "CUDA_ERROR_UNKNOWN";
  return 0;
}

int cuModuleLoadData(void** module, const void* image) {
  *module = (void*)image;
  printf("load\n");
  return 0;
}

int cuModuleUnload(void* module) {
  (void)module;
  printf("unload\n");
  return 0;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)module;
  *function = (void*)name;
  return strcmp(name, "missing") == 0 ? not_found : 0;
}

int cuFuncSetAttribute(void* function, int attribute, int value) {
  printf("%s: attribute %d is %d\n", (const char*)function, attribute, value);
  return 0;
}

int cuMemAlloc_v2(Address* place, size_t bytes) {
  printf("allocate %zu\n", bytes);
  void* memory = NULL;
  const int status = posix_memalign(&memory, 256, bytes);
  *place = (uintptr_t)memory;
  return status;
}

int cuMemFree_v2(Address place) {
  free((void*)(uintptr_t)place);
  return 0;
}

int cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) {
  memcpy((void*)(uintptr_t)to, from, bytes);
  return 0;
}

int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
  printf("copy %zu on %p\n", bytes, stream);
  memcpy((void*)(uintptr_t)to, (void*)(uintptr_t)from, bytes);
  return 0;
}

static int fill(Address at, size_t pitch, const void* element, size_t bytes, size_t width, size_t height) {
  for (size_t row = 0; row < height; ++row)
    for (size_t i = 0; i < width; ++i) memcpy((char*)(uintptr_t)at + row * pitch + i * bytes, element, bytes);
  return at % bytes == 0 && (height == 1 || (pitch % bytes == 0 && pitch >= width * bytes)) ? 0 : invalid_value;
}

#define FILLS(bits, type)                                                                                      \
  int cuMemsetD##bits##Async(Address at, type element, size_t count, void* stream) {                           \
    (void)stream;                                                                                              \
    return fill(at, 0, &element, sizeof element, count, 1);                                                    \
  }                                                                                                            \
  int cuMemsetD2D##bits##Async(Address at, size_t pitch, type element, size_t width, size_t height,            \
                               void* stream) {                                                                 \
    (void)stream;                                                                                              \
    return fill(at, pitch, &element, sizeof element, width, height);                                           \
  }
FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)

/* What kernels are passed in the end: Triton's two pointers. */
static int has_no_scratch(void** parameters, int first) {
  return *(void**)parameters[first] == NULL && *(void**)parameters[first + 1] == NULL;
}

/* float* x, float* out, int32_t n, float factor, uint8_t add. */
static int scale_add(void** parameters) {
  const float* x = *(float**)parameters[0];
  float* out = *(float**)parameters[1];
  const int32_t n = *(int32_t*)parameters[2];
  const float factor = *(float*)parameters[3];
  const uint8_t add = *(uint8_t*)parameters[4];
  for (int32_t i = 0; i < n; ++i) out[i] = x[i] * factor + add;
  return has_no_scratch(parameters, 5) ? 0 : invalid_value;
}

/* float* x, float* w (may be null), float* out, int32_t n: out += x * w, w being ones where it is null. */
static int add_product(void** parameters) {
  const float* x = *(float**)parameters[0];
  const float* w = *(float**)parameters[1];
  float* out = *(float**)parameters[2];
  const int32_t n = *(int32_t*)parameters[3];
  for (int32_t i = 0; i < n; ++i) out[i] += w != NULL ? x[i] * w[i] : x[i];
  return has_no_scratch(parameters, 4) ? 0 : invalid_value;
}

/* float* table, int64_t* places, float* out, int64_t n, double shift: out[i] = table[places[i]] + shift. */
static int look_up(void** parameters) {
  const float* table = *(float**)parameters[0];
  const int64_t* places = *(int64_t**)parameters[1];
  float* out = *(float**)parameters[2];
  const int64_t n = *(int64_t*)parameters[3];
  const double shift = *(double*)parameters[4];
  for (int64_t i = 0; i < n; ++i) out[i] = (float)(table[places[i]] + shift);
  return has_no_scratch(parameters, 5) ? 0 : invalid_value;
}

/* float* table, int64_t* places, float* out, int32_t n: out[i] = table[places[i]]. */
static int take(void** parameters) {
  const float* table = *(float**)parameters[0];
  const int64_t* places = *(int64_t**)parameters[1];
  float* out = *(float**)parameters[2];
  const int32_t n = *(int32_t*)parameters[3];
  for (int32_t i = 0; i < n; ++i) out[i] = table[places[i]];
  return has_no_scratch(parameters, 4) ? 0 : invalid_value;
}

int cuLaunchKernelEx(const Configuration* launch, void* function, void** parameters, void** extra) {
  const Attribute* attribute = launch->attributes;
  (void)extra;
  printf("%s: %u %u %u blocks of %u, %u bytes, stream %p", (const char*)function, launch->grid[0],
         launch->grid[1], launch->grid[2], launch->block[0], launch->shared_bytes, launch->stream);
  if (launch->attribute_count > 0)
    printf(", attribute %d is %u %u %u", attribute->id, attribute->value[0], attribute->value[1],
           attribute->value[2]);
  printf("\n");
  if (strcmp(function, "scale_add") == 0) return scale_add(parameters);
  if (strcmp(function, "add_product") == 0) return add_product(parameters);
  if (strcmp(function, "take") == 0) return take(parameters);
  return strcmp(function, "look_up") == 0 ? look_up(parameters) : 0;
}
