// A driver without a device: accepts calls, counts them, and hands out handles.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int fake_launches, fake_copies;
static uintptr_t next_handle = 0x1000;
static const char *names[64];
static uintptr_t functions[64];
static int function_count;

int cuInit(unsigned flags) { return 0; }
// Not recorded: must be found behind the library that stands in front.
int cuDeviceGetCount(int *count) { *count = 7; return 0; }

int cuModuleLoadData(uintptr_t *module, const void *image) { *module = next_handle += 16; return 0; }
int cuLibraryLoadData(uintptr_t *library, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  *library = next_handle += 16;
  return 0;
}
int cuModuleGetFunction(uintptr_t *function, uintptr_t module, const char *name) {
  *function = next_handle += 16;
  functions[function_count] = *function;
  names[function_count++] = strdup(name);
  return 0;
}
int cuLibraryGetKernel(uintptr_t *kernel, uintptr_t library, const char *name) {
  return cuModuleGetFunction(kernel, library, name);
}
int cuKernelGetFunction(uintptr_t *function, uintptr_t kernel) { *function = kernel + 8; return 0; }
int cuFuncGetName(const char **name, uintptr_t function) {
  for (int i = 0; i < function_count; i++)
    if (functions[i] == function) {
      *name = names[i];
      return 0;
    }
  *name = "nobody_looked_it_up";
  return 0;
}
// Every kernel has an address, a 32-bit integer, and two addresses.
int cuFuncGetParamInfo(uintptr_t function, size_t index, size_t *offset, size_t *size) {
  static const size_t sizes[] = {8, 4, 8, 8};
  if (index >= 4) return 1;
  *offset = 8 * index;
  *size = sizes[index];
  return 0;
}
int cuLaunchKernel(uintptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
  fake_launches++;
  return 0;
}
int cuLaunchKernelEx(const void *config, uintptr_t f, void **params, void **extra) { fake_launches++; return 0; }
int cuGraphLaunch(void *exec, void *stream) { return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) { fake_copies++; return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) { fake_copies++; return 0; }
int cuMemcpyHtoDAsync_v2_ptsz(uint64_t to, const void *from, size_t bytes, void *stream) { fake_copies++; return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { fake_copies++; return 0; }
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) { fake_copies++; return 0; }
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream) { fake_copies++; return 0; }
int cuPointerGetAttribute(void *data, unsigned attribute, uint64_t address) {
  if (address < 0x7f0000000000) {
    *(unsigned *)data = 2;
    return 0;
  }
  return 1;
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count) { return 0; }
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) { return 0; }
int cuTensorMapEncodeTiled(void *map, unsigned dtype, unsigned rank, void *address, const uint64_t *extents,
                           const uint64_t *strides, const unsigned *block, const unsigned *steps, unsigned interleave,
                           unsigned swizzle, unsigned promotion, unsigned fill) {
  memset(map, 0xa5, 128);
  return 0;
}
int cuGetProcAddress_v2(const char *symbol, void **found, int version, uint64_t flags, int *status) {
  static const char *endings[] = {"_v2_ptsz", "_ptsz", "_v2", ""};
  void *self = dlopen("libtilewright-driver.so.1", RTLD_NOW);
  for (int i = flags & 2 ? 0 : 2; i < 4; i++) {
    char name[128];
    snprintf(name, sizeof name, "%s%s", symbol, endings[i]);
    // By its own handle, as the driver knows its own functions.
    if ((*found = dlsym(self, name))) return 0;
  }
  return 500;
}
int cuGetProcAddress(const char *symbol, void **found, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, found, version, flags, NULL);
}
