/* Loaded before libmpcore.so (LD_PRELOAD): the library with results replaced by environment
 * variables:
 *   STUB_VERSION      result of mp_version
 *   STUB_BUILD        result of mp_build_info
 *   STUB_HOST_STATUS  error of contexts on the host target
 *   STUB_CUDA_STATUS  error of contexts on every CUDA device
 *   STUB_CUDA_ARCHS   "90 86 0": CUDA devices, run by the host target; 0 = no code for one
 *   STUB_PRODUCT      "wrong": mp_gemm writes nothing; "fails", "warns": it does so */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"

enum { MOST = 8 };
static mp_context_t contexts[MOST]; /* by ordinal */
static const char *why;             /* message of the last call that failed here */
static mp_log_callback_t log_callback;
static void *log_user;

/* Function of the real library. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static mp_status_t refuse(mp_status_t status, const char *words) {
  why = words;
  return status;
}

/** @return the architecture of the CUDA device, -1 if there is none */
static int arch_of(int ordinal) {
  const char *list = getenv("STUB_CUDA_ARCHS");
  for (char *end; list != NULL; list = end) {
    const long arch = strtol(list, &end, 10);
    if (end == list) break;
    if (ordinal-- == 0) return (int)arch;
  }
  return -1;
}

uint32_t mp_version(void) {
  const char *version = getenv("STUB_VERSION");
  return version != NULL ? (uint32_t)atoi(version) : REAL(mp_version)();
}

const char *mp_build_info(void) {
  const char *build = getenv("STUB_BUILD");
  return build != NULL ? build : REAL(mp_build_info)();
}

const char *mp_last_error(void) {
  return why != NULL ? why : REAL(mp_last_error)();
}

void mp_set_log_callback(mp_log_callback_t callback, void *user, mp_log_level_t level) {
  log_callback = callback;
  log_user = user;
  REAL(mp_set_log_callback)(callback, user, level);
}

mp_status_t mp_context_create(mp_context_t *context, const mp_context_config_t *config) {
  mp_context_config_t chosen = *config;
  const char *status = getenv(chosen.device < 0 ? "STUB_HOST_STATUS" : "STUB_CUDA_STATUS");
  why = NULL;
  if (status != NULL) return refuse((mp_status_t)atoi(status), "refused by the test");
  if (chosen.device < 0 || getenv("STUB_CUDA_ARCHS") == NULL)
    return REAL(mp_context_create)(context, config);
  const int arch = arch_of(chosen.device);
  if (arch < 0) return refuse(MP_ERROR_INVALID_ARGUMENT, "there is no such device");
  if (arch == 0) return refuse(MP_ERROR_ARCH_MISMATCH, "no code for an old device");
  const int ordinal = chosen.device;
  chosen.device = MP_DEVICE_HOST;
  const mp_status_t done = REAL(mp_context_create)(context, &chosen);
  if (done == MP_SUCCESS && ordinal < MOST) contexts[ordinal] = *context;
  return done;
}

mp_status_t mp_context_get_info(mp_context_t context, mp_device_info_t *info) {
  const mp_status_t done = REAL(mp_context_get_info)(context, info);
  why = NULL;
  for (int ordinal = 0; ordinal < MOST; ordinal++) {
    if (contexts[ordinal] != context) continue;
    info->target = MP_TARGET_CUDA;
    info->arch = arch_of(ordinal);
    strcpy(info->name, "a GPU of the test");
  }
  return done;
}

mp_status_t mp_gemm(mp_context_t context, const mp_gemm_desc_t *desc, const void *A, const void *B,
                    const void *C, void *D, const mp_epilogue_t *epilogue, void *workspace,
                    size_t workspace_bytes, mp_stream_t stream) {
  const char *product = getenv("STUB_PRODUCT");
  why = NULL;
  const int warns = product != NULL && strcmp(product, "warns") == 0;
  if (warns && log_callback != NULL) log_callback(MP_LOG_WARN, "mp_gemm: slow", log_user);
  if (product == NULL || warns)
    return REAL(mp_gemm)(context, desc, A, B, C, D, epilogue, workspace, workspace_bytes, stream);
  return strcmp(product, "wrong") == 0 ? MP_SUCCESS
                                       : refuse(MP_ERROR_CUDA, "mp_gemm: it fell over");
}
