/* Sections 1 to 3: version, status, errors, log, struct sizes, contexts, device memory, casts. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capi_harness.h"

/* ---------------------------------------------------------------- what cannot fail */

static void test_names(void) {
  check(mp_version() == MP_VERSION, "mp_version is that of the header");
  check(strncmp(mp_build_info(), "mpcore ", 7) == 0 && strchr(mp_build_info(), '\n') == NULL,
        "mp_build_info is one line");
  check(strcmp(mp_status_string(MP_ERROR_UNSUPPORTED), "MP_ERROR_UNSUPPORTED") == 0,
        "mp_status_string(MP_ERROR_UNSUPPORTED)");
  check(mp_status_string((mp_status_t)12345) != NULL, "mp_status_string of any int");
  check(mp_dtype_size(MP_FP16) == 2 && mp_dtype_size(MP_BF16) == 2 && mp_dtype_size(MP_FP32) == 4,
        "mp_dtype_size");
  check(mp_dtype_size(MP_DTYPE_NONE) == 0 && mp_dtype_size((mp_dtype_t)77) == 0,
        "mp_dtype_size of an invalid value is 0");
}

static void *other_thread(void *sentence) {
  snprintf(sentence, 64, "%s", mp_last_error());
  return NULL;
}

static void test_last_error_is_per_thread(void) {
  char sentence[64] = "not run";
  pthread_t thread;
  FAILS(mp_malloc, (NULL, &out.ptr, 1), MP_ERROR_INVALID_ARGUMENT, "context");
  if (pthread_create(&thread, NULL, other_thread, sentence) == 0) pthread_join(thread, NULL);
  check(sentence[0] == '\0', "mp_last_error of a thread without errors is empty");
}

/* ---------------------------------------------------------------- log */

struct lines {
  int count[MP_LOG_DEBUG + 1];
  char debug[64];
};

static void count_lines(mp_log_level_t level, const char *message, void *user) {
  struct lines *lines = user;
  lines->count[level]++;
  if (level == MP_LOG_DEBUG) snprintf(lines->debug, sizeof lines->debug, "%s", message);
}

static int lines_of_one_gemm(mp_log_level_t level, struct lines *lines) {
  const mp_gemm_desc_t desc = mp_gemm_desc_default(4, 8, 16, MP_FP16, MP_FP16);
  memset(lines, 0, sizeof *lines);
  mp_set_log_callback(count_lines, lines, level);
  return mp_gemm(other_context, &desc, at(0), at(1024), NULL, at(2048), NULL, NULL, 0, NULL) ==
         MP_SUCCESS;
}

/** Leaves the log without a reader, as the harness set it up before. */
static void test_log(mp_log_callback_t harness, mp_log_level_t harness_level) {
  struct lines lines;
  int good = lines_of_one_gemm(MP_LOG_INFO, &lines);
  check(good && lines.count[MP_LOG_INFO] == 1, "the first choice of a kernel is logged");
  good = lines_of_one_gemm(MP_LOG_INFO, &lines);
  check(good && lines.count[MP_LOG_INFO] == 0, "the second one is not");
  good = lines_of_one_gemm(MP_LOG_DEBUG, &lines);
  check(good && lines.count[MP_LOG_DEBUG] == 1 && strcmp(lines.debug, "mp_gemm") == 0,
        "every call is logged at MP_LOG_DEBUG");
  good = lines_of_one_gemm(MP_LOG_ERROR, &lines);
  check(good && lines.count[MP_LOG_DEBUG] + lines.count[MP_LOG_INFO] + lines.count[MP_LOG_WARN] == 0,
        "nothing less important than the level is logged");
  mp_set_log_callback(harness, NULL, harness_level);
}
