#include "harness.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPattern = 0xA5, kArenaBytes = 32768, kMaxStruct = 8192 };

mp_context_t context;
mp_context_t other_context;
struct host_outputs out;

static unsigned char *arena;
static int passed, failed;

static struct {
  int errors;
  char last[1024];
} logged;

static void count_errors(mp_log_level_t level, const char *message, void *user) {
  (void)user;
  if (level != MP_LOG_ERROR) return;
  logged.errors++;
  snprintf(logged.last, sizeof logged.last, "%s", message);
}

mp_dtype_t invalid_dtype(void) {
  int dtype = MP_FP16;
  while (mp_dtype_size((mp_dtype_t)dtype) != 0) dtype++;
  return (mp_dtype_t)dtype;
}

/* ---------------------------------------------------------------- memory */

void *at(size_t offset) {
  return arena + offset;
}

void *nowhere(void) {
  return (void *)((uintptr_t)arena + ((uintptr_t)1 << 30));
}

void reset(void) {
  mp_set_log_callback(count_errors, NULL, MP_LOG_ERROR);
  logged.errors = 0;
  mp_memset(context, arena, kPattern, kArenaBytes, NULL);
  mp_stream_sync(context, NULL);
  memset(&out, kPattern, sizeof out);
}

static int is_pattern(const void *bytes, size_t count) {
  const unsigned char *b = bytes;
  for (size_t i = 0; i < count; i++)
    if (b[i] != kPattern) return 0;
  return 1;
}

static int outputs_untouched(void) {
  static unsigned char copy[kArenaBytes];
  mp_memcpy(context, copy, arena, kArenaBytes, NULL);
  mp_stream_sync(context, NULL);
  return is_pattern(copy, sizeof copy) && is_pattern(&out, sizeof out);
}

mp_context_config_t test_config(void) {
  const char *wanted = getenv("MP_TEST_DEVICE");
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  if (wanted != NULL && strcmp(wanted, "cuda") == 0) config.device = MP_DEVICE_CURRENT;
  return config;
}

mp_scaler_t make_scaler(mp_context_t of, mp_scaler_policy_t policy) {
  const mp_scaler_config_t config = mp_scaler_config_default(policy);
  mp_scaler_t scaler = NULL;
  mp_scaler_create(&scaler, of, &config);
  return scaler;
}

mp_tensor_list_t make_list(mp_context_t of, mp_dtype_t dtype, uint32_t count, void *const *data,
                           const int64_t *numel) {
  mp_tensor_list_desc_t desc = INITIALIZED(mp_tensor_list_desc_t);
  desc.dtype = dtype;
  desc.count = count;
  desc.data = data;
  desc.numel = numel;
  mp_tensor_list_t list = NULL;
  mp_tensor_list_create(&list, of, &desc);
  return list;
}

int start(void) {
  const mp_context_config_t config = test_config();
  mp_set_log_callback(count_errors, NULL, MP_LOG_ERROR);
  void *memory = NULL;
  if (mp_context_create(&context, &config) != MP_SUCCESS ||
      mp_context_create(&other_context, &config) != MP_SUCCESS ||
      mp_malloc(context, &memory, kArenaBytes) != MP_SUCCESS) {
    fprintf(stderr, "%s\n", mp_last_error());
    return 0;
  }
  arena = memory;
  reset();
  return 1;
}

int finish(void) {
  mp_free(context, arena);
  mp_context_destroy(other_context);
  mp_context_destroy(context);
  mp_set_log_callback(NULL, NULL, MP_LOG_ERROR);
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---------------------------------------------------------------- single cases */

static void result(const char *label, const char *complaint) {
  if (complaint == NULL) {
    passed++;
    printf("ok      %s\n", label);
  } else {
    failed++;
    printf("FAILED  %s: %s; mp_last_error: %s\n", label, complaint, mp_last_error());
  }
}

void check(int good, const char *label) {
  result(label, good ? NULL : "does not hold");
}

void skip(const char *label, const char *reason) {
  printf("skipped: %s (%s)\n", label, reason);
}

static int in_word(int character) {
  return isalnum(character) || character == '_';
}

static int has_word(const char *text, const char *word) {
  const size_t length = strlen(word);
  for (const char *hit = strstr(text, word); hit != NULL; hit = strstr(hit + 1, word))
    if ((hit == text || !in_word((unsigned char)hit[-1])) && !in_word((unsigned char)hit[length]))
      return 1;
  return 0;
}

static const char *complaint_about_failure(const char *function, mp_status_t got, mp_status_t want,
                                           const char *argument) {
  static char complaint[256];
  const char *message = mp_last_error();
  const size_t prefix = strlen(function);
  const int errors = logged.errors;
  logged.errors = 0;
  if (got != want) {
    snprintf(complaint, sizeof complaint, "returned %s, not %s", mp_status_string(got),
             mp_status_string(want));
    return complaint;
  }
  if (strncmp(message, function, prefix) != 0 || strncmp(message + prefix, ": ", 2) != 0)
    return "the message does not start with the function";
  if (!has_word(message + prefix, argument)) {
    snprintf(complaint, sizeof complaint, "the message does not name %s", argument);
    return complaint;
  }
  if (errors != 1 || strcmp(logged.last, message) != 0) return "not logged once";
  if (want < 40 && !outputs_untouched()) return "an output was written";
  return NULL;
}

void check_failure(const char *label, const char *function, mp_status_t got, mp_status_t want,
                   const char *argument) {
  result(label, complaint_about_failure(function, got, want, argument));
  if (got == MP_SUCCESS) reset();
}

void check_success(const char *label, mp_status_t got) {
  result(label, got != MP_SUCCESS ? "failed" : logged.errors != 0 ? "logged an error" : NULL);
  reset();
}

/* ---------------------------------------------------------------- cases made from one struct */

/** A struct in a larger buffer, which allows the size of a newer caller's struct. */
union buffer {
  unsigned char bytes[kMaxStruct];
  uint32_t struct_size;
  double alignment;
};

static void init(const struct subject *subject, union buffer *b) {
  memset(b, 0, sizeof *b);
  memcpy(b, subject->good, subject->size);
}

static const char *label_of(const struct subject *subject, const char *rest) {
  static char label[256];
  snprintf(label, sizeof label, "%s: %s.%s", subject->function, subject->parameter, rest);
  return label;
}

/** Checks that the call fails and does not write the struct. */
static void check_refused(const struct subject *subject, union buffer *b, const char *rest,
                          mp_status_t want, const char *argument) {
  static union buffer before;
  before = *b;
  const char *label = label_of(subject, rest);
  const mp_status_t got = subject->call(b);
  const char *complaint = complaint_about_failure(subject->function, got, want, argument);
  if (complaint == NULL && memcmp(&before, b, sizeof before) != 0)
    complaint = "the struct was written";
  result(label, complaint);
  if (got == MP_SUCCESS) reset();
}

/** Sets the field to its i-th value, and describes that in `text`. */
static void set_field(const struct field_case *field, size_t i, union buffer *b, char text[128]) {
  unsigned char *const to = b->bytes + field->offset;
  if (field->ints != NULL) {
    memcpy(to, &field->ints[i], field->bytes); /* little endian */
    snprintf(text, 128, "%s = %lld", field->field, (long long)field->ints[i]);
  } else if (field->reals != NULL) {
    const float single = (float)field->reals[i];
    memcpy(to, field->bytes == 4 ? (const void *)&single : &field->reals[i], field->bytes);
    snprintf(text, 128, "%s = %g", field->field, field->reals[i]);
  } else {
    memcpy(to, &field->pointers[i], field->bytes);
    snprintf(text, 128, "%s = pointer %u", field->field, (unsigned)i);
  }
}

void check_fields(const struct subject *subject, const struct field_case *fields, size_t count) {
  static union buffer b;
  init(subject, &b);
  check_success(label_of(subject, "unchanged"), subject->call(&b));
  for (const struct field_case *field = fields; field != fields + count; field++)
    for (size_t i = 0; i < field->count; i++) {
      char text[128];
      init(subject, &b);
      set_field(field, i, &b, text);
      check_refused(subject, &b, text, field->status, field->field);
    }
}

void check_struct_size(const struct subject *subject) {
  static union buffer b;
  const uint32_t size = (uint32_t)subject->size;
  const uint32_t refused[] = {0, size - 1, kMaxStruct};
  for (size_t i = 0; i < COUNT(refused); i++) {
    char rest[64];
    snprintf(rest, sizeof rest, "struct_size = %u", (unsigned)refused[i]);
    init(subject, &b);
    b.struct_size = refused[i];
    check_refused(subject, &b, rest, MP_ERROR_STRUCT_SIZE, "struct_size");
  }

  init(subject, &b);
  b.struct_size = size + 16;
  b.bytes[size + 15] = 1;
  check_refused(subject, &b, "unknown byte set", MP_ERROR_STRUCT_SIZE, "struct_size");

  init(subject, &b);
  b.struct_size = size + 16;
  b.bytes[size + 16] = 1; /* after the struct */
  check_success(label_of(subject, "unknown bytes 0"), subject->call(&b));
  check(b.bytes[size + 16] == 1 && b.struct_size == size + 16,
        label_of(subject, "struct_size and bytes after the struct are not written"));
}

const mp_plan_t *named_plan(const char *kernel) {
  static mp_plan_t plans[64];
  static unsigned next;
  if (kernel == NULL) return NULL;
  mp_plan_t *const plan = &plans[next++ % 64];
  *plan = mp_plan_default(kernel);
  return plan;
}

void check_struct(const struct subject *subject, const struct field_case *fields, size_t count) {
  check_fields(subject, fields, count);
  check_struct_size(subject);
}

void check_epilogue(const struct subject *subject, int64_t cols) {
  const struct field_case fields[] = {
      INTS(mp_epilogue_t, activation, MP_ACT_DGELU_ERF + 1, -1),
      INTS(mp_epilogue_t, dtype_bias, MP_DTYPE_NONE),
      FIELD(mp_epilogue_t, flags, ints, MP_ERROR_UNSUPPORTED, MP_EPILOGUE_FLAG_GATED),
      INTS(mp_epilogue_t, flags, 1 << 1),
      INTS(mp_epilogue_t, ld_aux, cols - 1, -1, INT64_MAX),
  };
  check_struct(subject, fields, COUNT(fields));
}

void check_scaling_epilogue(const struct subject *subject, const void *amax, mp_status_t of_amax) {
  const mp_status_t refused = MP_ERROR_UNSUPPORTED;
  const struct field_case fields[] = {
      FIELD(mp_epilogue_t, activation, ints, refused, MP_ACT_RELU, MP_ACT_DTANH),
      INTS(mp_epilogue_t, activation, MP_ACT_DGELU_ERF + 1),
      FIELD(mp_epilogue_t, bias, pointers, refused, at(0)),
      FIELD(mp_epilogue_t, dtype_bias, ints, refused, MP_FP16),
      FIELD(mp_epilogue_t, flags, ints, refused, MP_EPILOGUE_FLAG_GATED),
      INTS(mp_epilogue_t, flags, 1 << 1),
      FIELD(mp_epilogue_t, aux, pointers, refused, at(0)),
      FIELD(mp_epilogue_t, ld_aux, ints, refused, 16),
      FIELD(mp_epilogue_t, dbias, pointers, refused, at(0)),
      FIELD(mp_epilogue_t, stats.amax, pointers, of_amax, amax),
  };
  check_struct(subject, fields, COUNT(fields));
}
