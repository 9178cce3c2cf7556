/* Checks that every case of test_capi uses.
 *
 * A failing call must return the documented status, set an error message that starts with the
 * function and names the argument, log this message once at MP_LOG_ERROR, and write nothing: all
 * outputs are in memory filled with a pattern, which is compared after each call.
 */
#ifndef CAPI_HARNESS_H
#define CAPI_HARNESS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mpcore.h"

/* ---------------------------------------------------------------- shared state */

/** Contexts of the target under test, MP_TEST_DEVICE=host|cuda. */
extern mp_context_t context;
extern mp_context_t other_context;

mp_context_config_t test_config(void);
mp_scaler_t make_scaler(mp_context_t of, mp_scaler_policy_t policy);
/** Creates a list of `count` tensors of one type. */
mp_tensor_list_t make_list(mp_context_t of, mp_dtype_t dtype, uint32_t count, void *const *data,
                           const int64_t *numel);

/** Returns the first number after the floating-point types. */
mp_dtype_t invalid_dtype(void);

/** Pattern-filled device memory, 256-byte aligned; at(1) is misaligned for every type. */
void *at(size_t offset);
/** Returns an address without memory that overlaps no tensor, for calls that fail. */
void *nowhere(void);

/** Pattern-filled host memory for the outputs of failing calls. */
struct host_outputs {
  mp_context_t context;
  mp_tensor_list_t list;
  mp_scaler_t scaler;
  mp_optimizer_t optimizer;
  void *ptr;
  size_t bytes;
  int64_t t;
  mp_step_outcome_t outcome;
};
extern struct host_outputs out;

int start(void);
/** Sets the log callback and fills the memory with the pattern. */
void reset(void);
/** Prints the totals; returns the exit status. */
int finish(void);

/* ---------------------------------------------------------------- single cases */

void check(int good, const char *label);
void skip(const char *label, const char *reason);

/** Checks a call that fails; the error message must contain the word `argument`. */
void check_failure(const char *label, const char *function, mp_status_t got, mp_status_t want,
                   const char *argument);
#define FAILS(function, arguments, status, argument) \
  check_failure(#function #arguments, #function, function arguments, status, argument)
/** FAILS with MP_ERROR_INVALID_ARGUMENT. */
#define INVALID(function, arguments, argument)                                                  \
  check_failure(#function #arguments, #function, function arguments, MP_ERROR_INVALID_ARGUMENT, \
                argument)

/** Checks a call that succeeds, and may write. */
void check_success(const char *label, mp_status_t got);
#define WORKS(call) check_success(#call, call)

/* ---------------------------------------------------------------- cases of one struct */

/** A call as a function of one of its structs. */
struct subject {
  const char *function;
  const char *parameter;
  const void *good; /**< a struct with which the call succeeds */
  size_t size;
  mp_status_t (*call)(void *s);
};
#define SUBJECT(function, parameter, good, call) \
  (&(const struct subject){function, parameter, &(good), sizeof(good), call})

/** Defines the function of a subject that makes the call with the struct `s`. */
#define CALL_OF(function, call)          \
  static mp_status_t function(void *s) { \
    return call;                         \
  }

/** Returns a struct of zeros with its struct_size, like MP_INIT_STRUCT. */
#define INITIALIZED(type) ((type){.struct_size = sizeof(type)})

/** Returns a pointer to a copy of the value. */
#define REF(type, value) ((const type[]){value})
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Elements of the three lists of a field_case. */
typedef int64_t ints_value;
typedef double reals_value;
typedef const void *pointers_value;

/** Values of one field with which a call fails; two of the three lists are NULL. */
struct field_case {
  const char *field;
  size_t offset, bytes;
  mp_status_t status;
  size_t count;
  const ints_value *ints;
  const reals_value *reals;
  const pointers_value *pointers;
};

/** A field_case, whose `list` is ints, reals or pointers. */
#define FIELD(type, field, list, status, ...)                                          \
  {                                                                                    \
#field, offsetof(type, field), sizeof(((type *)0)->field), status,                 \
        COUNT(((const list##_value[]){__VA_ARGS__})), .list = (const list##_value[]) { \
      __VA_ARGS__                                                                      \
    }                                                                                  \
  }
/* A field_case of MP_ERROR_INVALID_ARGUMENT. */
#define INTS(type, field, ...) FIELD(type, field, ints, MP_ERROR_INVALID_ARGUMENT, __VA_ARGS__)
#define REALS(type, field, ...) FIELD(type, field, reals, MP_ERROR_INVALID_ARGUMENT, __VA_ARGS__)
#define POINTERS(type, field, ...) \
  FIELD(type, field, pointers, MP_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

/** Returns a plan that names a kernel, valid for the next 63 calls; NULL for NULL. */
const mp_plan_t *named_plan(const char *kernel);

/** Checks that the unchanged struct works and that every value of the fields fails. */
void check_fields(const struct subject *subject, const struct field_case *fields, size_t count);
#define CHECK_FIELDS(function, parameter, good, call, fields) \
  check_fields(SUBJECT(function, parameter, good, call), fields, COUNT(fields))

/** CHECK_FIELDS with one row. */
#define CHECK_FIELD(function, parameter, good, call, ...) \
  check_fields(SUBJECT(function, parameter, good, call), &(const struct field_case)__VA_ARGS__, 1)

/** Checks a struct_size of 0, too small, too large, and with unknown bytes that are 0 or set. */
void check_struct_size(const struct subject *subject);

/** Checks the fields and the struct_size. */
void check_struct(const struct subject *subject, const struct field_case *fields, size_t count);
#define CHECK_STRUCT(function, parameter, good, call, fields) \
  check_struct(SUBJECT(function, parameter, good, call), fields, COUNT(fields))

/** Checks the fields and struct_size of a full epilogue, for a D with rows of `cols` elements. */
void check_epilogue(const struct subject *subject, int64_t cols);

/** Checks an epilogue of which the call supports scale and statistics only.  `amax` must fail with
 *  `of_amax`. */
void check_scaling_epilogue(const struct subject *subject, const void *amax, mp_status_t of_amax);

/* ---------------------------------------------------------------- one function per file */

/** All tests, in the order in which they run. */
#define ALL_TESTS(X)   \
  X(test_core)         \
  X(test_defaults)     \
  X(test_gemm)         \
  X(test_gemm_grouped) \
  X(test_gemm_ragged)  \
  X(test_conv)         \
  X(test_tensors)      \
  X(test_scaler)       \
  X(test_optimizer)    \
  X(test_model)        \
  X(test_comm)         \
  X(test_step)         \
  X(test_softmax_xent) \
  X(test_linear_xent)  \
  X(test_layers)       \
  X(test_norm)         \
  X(test_pointwise)    \
  X(test_rnn)          \
  X(test_plan)         \
  X(test_sequences)    \
  X(test_transformer)  \
  X(test_attention)    \
  X(test_overlap)      \
  X(test_autocast)     \
  X(test_graph)

#define DECLARE_TEST(test) void test(void);
ALL_TESTS(DECLARE_TEST)

#endif
