// Calls the driver in each of the ways that torch's and Triton's libraries do. Arguments: the recording library, a scene.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { fprintf(stderr, "line %d: %s\n", __LINE__, #what); exit(3); } } while (0)

static void *driver;
static void *by_name(const char *name) { void *f = dlsym(driver, name); CHECK(f); return f; }
typedef int (*get_t)(const char *, void **, int, uint64_t, int *);
static void *asked(const char *name, uint64_t flags) {
  void *f = NULL;
  int status = 0;
  CHECK(((get_t)by_name("cuGetProcAddress_v2"))(name, &f, 13000, flags, &status) == 0 && f);
  return f;
}

struct attribute { unsigned id, pad; char value[64]; };
struct config { unsigned grid[3], block[3], shared; void *stream; struct attribute *attributes; unsigned count; };

// A header, one section of code after it, and the table that says so.
static void make_image(unsigned char *image) {
  memcpy(image, "\177ELF\2\1\1", 7);
  *(uint64_t *)(image + 0x28) = 128;  // section table
  *(uint16_t *)(image + 0x3a) = 64;   // its entries' size
  *(uint16_t *)(image + 0x3c) = 1;    // their count
  *(uint64_t *)(image + 128 + 0x18) = 64;
  *(uint64_t *)(image + 128 + 0x20) = 200;
}

int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) { fprintf(stderr, "%s\n", dlerror()); return 2; }
  // Whoever asks for the driver by its name gets the library.
  driver = dlopen("libcuda.so.1", RTLD_LAZY);
  CHECK(driver == library);
  CHECK(((int (*)(int))by_name("tilewright_open"))(0) == 0);
  void (*mark)(unsigned) = by_name("tilewright_mark");
  const char *scene = argv[2];

  mark(0);
  int count = 0;
  CHECK(((int (*)(int *))by_name("cuDeviceGetCount"))(&count) == 0 && count == 7);
  CHECK(asked("cuDeviceGetCount", 0) != NULL);

  static unsigned char image[512];
  make_image(image);
  uintptr_t module, function, lib, kernel, other;
  ((int (*)(uintptr_t *, const void *))by_name("cuModuleLoadData"))(&module, image);
  ((int (*)(uintptr_t *, uintptr_t, const char *))by_name("cuModuleGetFunction"))(&function, module, "add");
  ((int (*)(uintptr_t *, const void *, void *, void *, unsigned, void *, void *, unsigned))asked("cuLibraryLoadData", 0))(
      &lib, "\x50\xed\x55\xba something else", 0, 0, 0, 0, 0, 0);
  ((int (*)(uintptr_t *, uintptr_t, const char *))asked("cuLibraryGetKernel", 0))(&kernel, lib, "torch_adds");
  ((int (*)(uintptr_t *, uintptr_t))asked("cuKernelGetFunction", 0))(&other, kernel);

  uint64_t x = 0x700000, null = 0;
  unsigned n = 1000;
  void *params[] = {&x, &n, &null, &null};
  struct attribute attribute = {4, 0, {2, 0, 0, 0, 1, 0, 0, 0, 1}};
  struct config config = {{8, 2, 1}, {128, 1, 1}, 4096, (void *)5, &attribute, 1};
  ((int (*)(void *, uintptr_t, void **, void **))by_name("cuLaunchKernelEx"))(&config, function, params, NULL);
  typedef int (*launch_t)(uintptr_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                          void **, void **);
  ((launch_t)asked("cuLaunchKernel", 0))(other, 3, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
  ((launch_t)by_name("cuLaunchKernel"))(0x99, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);

  char bytes[] = "contents";
  ((int (*)(uint64_t, const void *, size_t))by_name("cuMemcpyHtoD_v2"))(0x1000, bytes, 8);
  typedef int (*upload_t)(uint64_t, const void *, size_t, void *);
  ((upload_t)asked("cuMemcpyHtoDAsync", 0))(0x2000, bytes, 4, NULL);
  ((upload_t)asked("cuMemcpyHtoDAsync", 2))(0x3000, bytes, 4, NULL);
  ((int (*)(void *, uint64_t, size_t))asked("cuMemcpyDtoH", 0))(bytes, 0x1000, 8);
  ((int (*)(uint64_t, uint64_t, size_t))asked("cuMemcpyDtoD", 0))(0x1000, 0x2000, 16);
  ((int (*)(uint64_t, uint64_t, size_t, void *))asked("cuMemcpyAsync", 0))(0x5000, (uint64_t)bytes, 8, NULL);
  ((int (*)(uint64_t, unsigned char, size_t))asked("cuMemsetD8", 0))(0x4000, 7, 32);
  ((int (*)(uint64_t, unsigned, size_t, void *))asked("cuMemsetD32Async", 0))(0x4000, 9, 3, NULL);
  ((int (*)(void *, void *))asked("cuGraphLaunch", 0))(NULL, NULL);

  unsigned char map[128];
  uint64_t extents[] = {64, 32}, strides[] = {128};
  unsigned block[] = {16, 8}, steps[] = {1, 1};
  ((int (*)(void *, unsigned, unsigned, uint64_t, uint64_t *, uint64_t *, unsigned *, unsigned *, unsigned, unsigned,
            unsigned, unsigned))by_name("cuTensorMapEncodeTiled"))(map, 6, 2, 0x8000, extents, strides, block, steps, 0,
                                                                   3, 2, 1);
  // Everything has reached the driver too.
  void *real = dlopen("libtilewright-driver.so.1", RTLD_NOW);
  CHECK(real && *(int *)dlsym(real, "fake_launches") == 3 && *(int *)dlsym(real, "fake_copies") == 6);

  if (!strcmp(scene, "forge")) {
    // Whoever finds the descriptor can write, but has no key.
    char frame[4 + 5 + 8] = {5, 0, 0, 0, 1, 7};
    CHECK(write(200, frame, sizeof frame) == sizeof frame);
  } else if (!strcmp(scene, "close")) {
    close(200);
  } else if (!strcmp(scene, "replace")) {
    dup2(1, 200);
  } else if (!strcmp(scene, "cut")) {
    CHECK(write(200, "\x40\0\0\0 half", 9) == 9);
    _exit(0);
  } else if (!strcmp(scene, "reopen")) {
    CHECK(((int (*)(int))by_name("tilewright_open"))(200) != 0);
  }
  mark(7);
  return 0;
}
