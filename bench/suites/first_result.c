/* Prints the microseconds of each phase until a program that loads libmpcore.so has its first
 * result.
 *
 *     mpbench_first_result LIBRARY DEVICE EDGE
 *
 * DEVICE is that of mp_context_config; EDGE is the size of the square matrices.  The program is C
 * and not linked with the library, so that dlopen has to load all that the library needs. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpcore.h"

static struct {
  const char *(*last_error)(void);
  mp_status_t (*context_config_init)(mp_context_config_t *, size_t);
  mp_status_t (*gemm_desc_init)(mp_gemm_desc_t *, size_t, int64_t, int64_t, int64_t, mp_dtype_t,
                                mp_dtype_t);
  mp_status_t (*context_create)(mp_context_t *, const mp_context_config_t *);
  mp_status_t (*malloc)(mp_context_t, void **, size_t);
  mp_status_t (*memcpy)(mp_context_t, void *, const void *, size_t, mp_stream_t);
  mp_status_t (*gemm)(mp_context_t, const mp_gemm_desc_t *, const void *, const void *,
                      const void *, void *, const mp_epilogue_t *, void *, size_t, mp_stream_t);
  mp_status_t (*stream_sync)(mp_context_t, mp_stream_t);
} mp;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "mpbench_first_result: %s: %s\n", what, why);
  exit(1);
}

static void check(mp_status_t status, const char *what) {
  if (status != MP_SUCCESS) fail(what, mp.last_error());
}

/* Stores a function pointer; POSIX guarantees that dlsym's result can be converted to one. */
static void find(void *library, const char *name, void *function) {
  void *const symbol = dlsym(library, name);
  if (symbol == NULL) fail(name, dlerror());
  memcpy(function, &symbol, sizeof symbol);
}

static void load(const char *path) {
  void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail("dlopen", dlerror());
  find(library, "mp_last_error", &mp.last_error);
  find(library, "mp_context_config_init", &mp.context_config_init);
  find(library, "mp_gemm_desc_init", &mp.gemm_desc_init);
  find(library, "mp_context_create", &mp.context_create);
  find(library, "mp_malloc", &mp.malloc);
  find(library, "mp_memcpy", &mp.memcpy);
  find(library, "mp_gemm", &mp.gemm);
  find(library, "mp_stream_sync", &mp.stream_sync);
}

enum { kOne = 0x3C00 }; /* FP16 */

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Prints the time since the last call. */
static void print_phase(void) {
  static double then_us = 0;
  const double us = now_us();
  if (then_us > 0) printf("%.3f ", us - then_us);
  then_us = now_us();
}

int main(int argc, char **argv) {
  if (argc != 4) fail("usage", "mpbench_first_result LIBRARY DEVICE EDGE");
  const int64_t edge = atoll(argv[3]);
  const size_t count = (size_t)(edge * edge);
  uint16_t *const ones = malloc(count * sizeof *ones);
  float *const results = malloc(count * sizeof *results);
  if (ones == NULL || results == NULL) fail("EDGE", "out of memory");
  for (size_t i = 0; i < count; i++) ones[i] = kOne;

  print_phase();
  load(argv[1]);
  print_phase();

  mp_context_t context;
  mp_context_config_t config;
  check(mp.context_config_init(&config, sizeof config), "mp_context_config_init");
  config.device = (int32_t)atoi(argv[2]);
  check(mp.context_create(&context, &config), "mp_context_create");
  print_phase();

  void *a, *d;
  check(mp.malloc(context, &a, count * sizeof *ones), "mp_malloc");
  check(mp.malloc(context, &d, count * sizeof *results), "mp_malloc");
  check(mp.memcpy(context, a, ones, count * sizeof *ones, NULL), "mp_memcpy");
  check(mp.stream_sync(context, NULL), "mp_stream_sync");
  print_phase();

  mp_gemm_desc_t gemm;
  check(mp.gemm_desc_init(&gemm, sizeof gemm, edge, edge, edge, MP_FP16, MP_FP32),
        "mp_gemm_desc_init");
  for (int call = 0; call < 2; call++) {
    check(mp.gemm(context, &gemm, a, a, NULL, d, NULL, NULL, 0, NULL), "mp_gemm");
    check(mp.stream_sync(context, NULL), "mp_stream_sync");
    print_phase();
  }

  check(mp.memcpy(context, results, d, count * sizeof *results, NULL), "mp_memcpy");
  check(mp.stream_sync(context, NULL), "mp_stream_sync");
  for (size_t i = 0; i < count; i++)
    if (results[i] != (float)edge) fail("mp_gemm", "the result is wrong");
  putchar('\n');
  return 0;
}
