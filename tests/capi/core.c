/* mpcore/core.h: version, status, errors, log, struct sizes, contexts, device memory, casts. */
#include <stdio.h>

#include "harness.h"

/* ---------------------------------------------------------------- functions that cannot fail */

static void test_names(void) {
  check(mp_version() == MP_VERSION, "mp_version equals MP_VERSION of the header");
  check(strncmp(mp_build_info(), "mpcore ", 7) == 0 && strchr(mp_build_info(), '\n') == NULL,
        "mp_build_info is one line");
  check(strcmp(mp_status_string(MP_ERROR_UNSUPPORTED), "MP_ERROR_UNSUPPORTED") == 0,
        "mp_status_string(MP_ERROR_UNSUPPORTED)");
  check(mp_status_string((mp_status_t)12345) != NULL, "mp_status_string of any int");
  const struct {
    mp_dtype_t dtype;
    size_t size;
    const char *name;
  } dtypes[] = {{MP_DTYPE_NONE, 0, "none"}, {MP_FP16, 2, "fp16"},   {MP_BF16, 2, "bf16"},
                {MP_FP32, 4, "fp32"},       {MP_INT32, 4, "int32"}, {MP_INT64, 8, "int64"},
                {(mp_dtype_t)4, 0, "?"}};
  for (size_t i = 0; i < COUNT(dtypes); i++)
    check(strcmp(mp_dtype_name(dtypes[i].dtype), dtypes[i].name) == 0 &&
              mp_dtype_size(dtypes[i].dtype) == dtypes[i].size,
          "mp_dtype_name and mp_dtype_size");
  check(strcmp(mp_dtype_name((mp_dtype_t)-1), "?") == 0, "mp_dtype_name of an invalid value");
  const char *const storage_names[] = {"state_m8", "state_v8", "remainder16", "remainder8"};
  for (int i = 0; i < 4; i++) {
    const mp_dtype_t dtype = (mp_dtype_t)(MP_STATE_M8 + i);
    check(strcmp(mp_dtype_name(dtype), storage_names[i]) == 0, "mp_dtype_name of a storage type");
    check(mp_dtype_size(dtype) == 0, "mp_dtype_size of a storage type is 0");
  }
  check(mp_dtype_size(MP_DTYPE_NONE) == 0 && mp_dtype_size((mp_dtype_t)77) == 0,
        "mp_dtype_size of an invalid value is 0");
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
  mp_set_log_callback(count_lines, lines, level);
  memset(lines, 0, sizeof *lines);
  return mp_gemm(other_context, &desc, at(0), at(1024), NULL, at(2048), NULL, NULL, 0, NULL) ==
         MP_SUCCESS;
}

static void test_log(void) {
  struct lines lines;
  int good = lines_of_one_gemm(MP_LOG_INFO, &lines);
  check(good && lines.count[MP_LOG_INFO] == 1, "the first selection of a kernel is logged");
  good = lines_of_one_gemm(MP_LOG_INFO, &lines);
  check(good && lines.count[MP_LOG_INFO] == 0, "a repeated selection is not logged");
  good = lines_of_one_gemm(MP_LOG_DEBUG, &lines);
  check(good && lines.count[MP_LOG_DEBUG] == 1 && strcmp(lines.debug, "mp_gemm") == 0,
        "every call is logged at MP_LOG_DEBUG");
  good = lines_of_one_gemm(MP_LOG_WARN, &lines);
  check(good && lines.count[MP_LOG_DEBUG] + lines.count[MP_LOG_INFO] == 0,
        "messages below the log level are not logged");
  reset();
}

/* ---------------------------------------------------------------- contexts */

static mp_status_t create_and_destroy(const mp_context_config_t *config) {
  const mp_status_t status = mp_context_create(&out.context, config);
  if (status == MP_SUCCESS) mp_context_destroy(out.context);
  return status;
}

CALL_OF(call_config, create_and_destroy(s))

static void *give_null(size_t bytes, void *user) {
  (void)bytes, (void)user;
  return NULL;
}

static void *give_misaligned(size_t bytes, void *user) {
  (void)bytes;
  return (char *)user + 8;
}

static void take_back(void *ptr, size_t bytes, void *user) {
  (void)ptr, (void)bytes, (void)user;
}

static mp_allocator_t good_allocator(void) {
  mp_allocator_t allocator = INITIALIZED(mp_allocator_t);
  allocator.alloc = give_null;
  allocator.free = take_back;
  return allocator;
}

static mp_status_t call_allocator(void *s) {
  mp_context_config_t config = test_config();
  config.allocator = s;
  return create_and_destroy(&config);
}

static void test_context_create(void) {
  const mp_context_config_t initial = test_config();
  const struct field_case fields[] = {
      INTS(mp_context_config_t, device, -4),
      INTS(mp_context_config_t, sm_limit, -1),
      INTS(mp_context_config_t, flags, 1),
  };
  CHECK_STRUCT("mp_context_create", "config", initial, call_config, fields);

  const mp_allocator_t initial_allocator = good_allocator();
  const struct field_case functions[] = {
      INTS(mp_allocator_t, reserved0, 1),
      POINTERS(mp_allocator_t, alloc, NULL),
      POINTERS(mp_allocator_t, free, NULL),
  };
  CHECK_STRUCT("mp_context_create", "allocator", initial_allocator, call_allocator, functions);

  mp_context_destroy(NULL);
}

static void test_auto(void) {
  struct lines lines;
  mp_device_info_t info = INITIALIZED(mp_device_info_t);
  int good = 1;
  mp_set_log_callback(count_lines, &lines, MP_LOG_WARN);
  memset(&lines, 0, sizeof lines);
  for (int i = 0; i < 2; i++) {
    mp_context_t any = NULL;
    good = good && mp_context_create(&any, NULL) == MP_SUCCESS;
    good = good && mp_context_get_info(any, &info) == MP_SUCCESS;
    mp_context_destroy(any);
  }
  const int expected = info.target == MP_TARGET_HOST;
  check(good && lines.count[MP_LOG_WARN] == expected && lines.count[MP_LOG_ERROR] == 0,
        "falling back to the host target is logged once");
  reset();
}

/** Checks device = 0, whose status depends on build and machine. */
static void test_cuda_devices(void) {
  static const struct {
    mp_status_t status;
    const char *label, *reason;
  } outcomes[] = {
      {MP_ERROR_UNSUPPORTED, "device = 0 in a build without CUDA target",
       "this build has a CUDA target"},
      {MP_ERROR_CUDA, "device = 0 without a usable CUDA device", "it is usable, or no CUDA target"},
      {MP_ERROR_ARCH_MISMATCH, "device = 0 without code for it", "no such device"},
  };
  mp_context_config_t config = mp_context_config_default();
  config.device = 0;
  const mp_status_t status = create_and_destroy(&config);
  reset();
  int documented = status == MP_SUCCESS;
  for (size_t i = 0; i < COUNT(outcomes); i++) {
    if (status != outcomes[i].status) {
      skip(outcomes[i].label, outcomes[i].reason);
      continue;
    }
    documented = 1;
    check_failure(outcomes[i].label, "mp_context_create", create_and_destroy(&config), status,
                  "device");
  }
  check(documented, "device = 0 gives a documented status");

  const char *no_ordinal = "device = 1000000";
  if (status == MP_SUCCESS || status == MP_ERROR_ARCH_MISMATCH) {
    config.device = 1000000;
    check_failure(no_ordinal, "mp_context_create", create_and_destroy(&config),
                  MP_ERROR_INVALID_ARGUMENT, "device");
  } else {
    skip(no_ordinal, "no CUDA device is usable");
  }
}

/* ---------------------------------------------------------------- allocators */

/** Memory allocated and not yet freed. */
struct ledger {
  int pieces;
  size_t bytes;
};

static void *give(size_t bytes, void *user) {
  struct ledger *ledger = user;
  void *ptr = NULL;
  if (mp_malloc(context, &ptr, bytes) != MP_SUCCESS) return NULL;
  ledger->pieces++;
  ledger->bytes += bytes;
  return ptr;
}

static void take(void *ptr, size_t bytes, void *user) {
  struct ledger *ledger = user;
  ledger->pieces--;
  ledger->bytes -= bytes;
  mp_free(context, ptr);
}

/** Creates a list without tensors in a context with this allocator, then destroys the context. */
static mp_status_t create_list(mp_allocator_t allocator) {
  mp_context_config_t config = test_config();
  config.allocator = &allocator;
  mp_context_t with_allocator;
  mp_status_t status = mp_context_create(&with_allocator, &config);
  if (status != MP_SUCCESS) return status;
  mp_tensor_list_desc_t desc = INITIALIZED(mp_tensor_list_desc_t);
  desc.dtype = MP_FP32;
  status = mp_tensor_list_create(&out.list, with_allocator, &desc);
  mp_context_destroy(with_allocator);
  return status;
}

static void test_allocators(void) {
  mp_allocator_t allocator = good_allocator();
  check_failure("an allocator without memory", "mp_tensor_list_create", create_list(allocator),
                MP_ERROR_OUT_OF_MEMORY, "alloc");
  allocator.alloc = give_misaligned;
  allocator.user = at(0);
  check_failure("an allocator without alignment", "mp_tensor_list_create", create_list(allocator),
                MP_ERROR_MISALIGNED, "alloc");

  struct ledger ledger = {0, 0};
  allocator.alloc = give;
  allocator.free = take;
  allocator.user = &ledger;
  int good = create_list(allocator) == MP_SUCCESS && ledger.pieces > 0;
  if (good) mp_tensor_list_destroy(out.list);
  check(good && ledger.pieces == 0 && ledger.bytes == 0,
        "objects free all memory that they allocate from the allocator");
  reset();
}

/* ---------------------------------------------------------------- info */

CALL_OF(call_info, mp_context_get_info(context, s))

static void test_info(void) {
  mp_device_info_t value = INITIALIZED(mp_device_info_t);
  check_struct_size(SUBJECT("mp_context_get_info", "info", value, call_info));

  mp_context_config_t config = test_config();
  config.sm_limit = 1;
  mp_context_t limited;
  int good = mp_context_create(&limited, &config) == MP_SUCCESS;
  good = good && mp_context_get_info(limited, &value) == MP_SUCCESS;
  check(good && value.num_sms == 1 && value.arch > 0, "sm_limit = 1 limits num_sms");
  mp_context_destroy(limited);
}

/* ---------------------------------------------------------------- device memory */

static void test_memory(void) {
  const mp_status_t status = mp_malloc(context, &out.ptr, (size_t)1 << 60);
  check(status == MP_ERROR_OUT_OF_MEMORY && strncmp(mp_last_error(), "mp_malloc: ", 11) == 0,
        "mp_malloc of 2^60 bytes is MP_ERROR_OUT_OF_MEMORY");
  reset();

  void *ptr = at(0);
  const mp_status_t nothing = mp_malloc(context, &ptr, 0);
  check(nothing == MP_SUCCESS && ptr == NULL, "mp_malloc of 0 bytes gives NULL");
  mp_free(context, NULL);
  mp_free(NULL, NULL);

  WORKS(mp_memcpy(context, NULL, NULL, 0, NULL));
  WORKS(mp_memset(context, NULL, 0, 0, NULL));
}

static void test_cast(void) {
  void *src = at(0), *dst = at(1024);
  INVALID(mp_cast, (context, src, MP_DTYPE_NONE, dst, MP_FP16, 8, NULL), "dtype_src");
  INVALID(mp_cast, (context, src, MP_FP32, dst, MP_INT32, 8, NULL), "dtype_dst");
  INVALID(mp_cast, (context, src, MP_FP32, dst, MP_FP16, -1, NULL), "count");
  INVALID(mp_cast, (context, src, MP_FP32, dst, MP_FP16, INT64_MAX / 2, NULL), "count");
  INVALID(mp_cast, (context, src, MP_FP16, dst, MP_FP32, INT64_MAX / 3, NULL), "count");
  INVALID(mp_cast, (context, NULL, MP_FP16, NULL, MP_FP32, 8, NULL), "src");
  WORKS(mp_cast(context, src, MP_FP16, src, MP_BF16, 8, NULL));
  WORKS(mp_cast(context, NULL, MP_FP16, NULL, MP_BF16, 0, NULL));
}

void test_core(void) {
  test_names();
  test_log();
  test_context_create();
  test_auto();
  test_cuda_devices();
  test_allocators();
  test_info();
  test_memory();
  test_cast();
  skip("MP_ERROR_INTERNAL", "only a bug in mpcore returns it");
}
