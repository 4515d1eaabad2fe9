/* A driver that has no device: kernels are C functions on memory of the host, and launches are printed. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

enum { not_found = 500 };

int cuModuleLoadData(void** module, const void* image) {
  *module = (void*)image;
  return 0;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)module;
  *function = strdup(name);
  return strcmp(name, "missing") == 0 ? not_found : 0;
}

int cuFuncSetAttribute(void* function, int attribute, int value) {
  printf("%s: attribute %d is %d\n", (const char*)function, attribute, value);
  return 0;
}

int cuGetErrorName(int status, const char** name) {
  *name = status == not_found ? "CUDA_ERROR_NOT_FOUND" : "CUDA_ERROR_UNKNOWN";
  return 0;
}

/* float* x, float* out, int32_t n, float factor, uint8_t add, and Triton's two pointers. */
static int scale_add(void** parameters) {
  const float* x = *(float**)parameters[0];
  float* out = *(float**)parameters[1];
  const int32_t n = *(int32_t*)parameters[2];
  const float factor = *(float*)parameters[3];
  const uint8_t add = *(uint8_t*)parameters[4];
  if (*(void**)parameters[6] != NULL) return 1;
  if (*(void**)parameters[5] != NULL) {
    memset(*(void**)parameters[5], 1, 64);
    printf("scale_add: is lent memory\n");
  }
  for (int32_t i = 0; i < n; ++i) out[i] = x[i] * factor + add;
  return 0;
}

int cuLaunchKernelEx(const Configuration* launch, void* function, void** parameters, void** extra) {
  const Attribute* attribute = launch->attributes;
  (void)extra;
  printf("%s: %u %u %u blocks of %u, %u bytes", (const char*)function, launch->grid[0], launch->grid[1],
         launch->grid[2], launch->block[0], launch->shared_bytes);
  if (launch->attribute_count > 0)
    printf(", attribute %d is %u %u %u", attribute->id, attribute->value[0], attribute->value[1],
           attribute->value[2]);
  printf("\n");
  fflush(stdout);
  return strcmp(function, "scale_add") == 0 ? scale_add(parameters) : 0;
}
