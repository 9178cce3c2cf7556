/* mp_plan_t: invalid plans, and invalid arguments of the functions that create or explain plans. */
#define MP_ENABLE_EXPERIMENTAL
#include <stdint.h>

#include "harness.h"

enum { kA = 0, kB = 4096, kD = 8192, kWorkspace = 12288 };

static mp_gemm_desc_t good_desc(void) {
  return mp_gemm_desc_default(16, 16, 16, MP_FP16, MP_FP16);
}

static void init_plan(void *s) {
  const mp_gemm_desc_t d = good_desc();
  MP_INIT_STRUCT((mp_plan_t *)s);
  check(mp_gemm_get_plan(context, &d, NULL, SIZE_MAX, s) == MP_SUCCESS, "mp_gemm_get_plan");
}
static mp_status_t call_plan(void *s) {
  mp_gemm_desc_t d = good_desc();
  d.plan = s;
  return mp_gemm(context, &d, at(kA), at(kB), NULL, at(kD), NULL, at(kWorkspace), 4096, NULL);
}

#define PLAN_FIELD(field, member, v, status) FIELD(mp_plan_t, field, member, v, status)

void test_plan(void) {
  const struct field_case fields[] = {
      PLAN_FIELD(split_k, i, -1, MP_ERROR_INVALID_ARGUMENT),
      PLAN_FIELD(split_k, i, 77, MP_ERROR_INVALID_ARGUMENT),
      PLAN_FIELD(num_sms, i, -1, MP_ERROR_INVALID_ARGUMENT),
      PLAN_FIELD(num_sms, i, 65537, MP_ERROR_INVALID_ARGUMENT),
      PLAN_FIELD(reserved0, i, 1, MP_ERROR_INVALID_ARGUMENT),
  };
  const struct subject subject = {"mp_gemm", "plan", sizeof(mp_plan_t), init_plan, call_plan};
  CHECK_STRUCT(&subject, fields);
  mp_gemm_desc_t d = good_desc();
  mp_plan_t plan;
  init_plan(&plan);
  plan.workspace_bytes = 4097; /* the kernel requires less */
  check(call_plan(&plan) == MP_SUCCESS, "a call requires only the workspace of its kernel");
  reset();
  d.m = 0;
  FAILS(mp_gemm_get_plan, (context, &d, NULL, 0, &plan), MP_ERROR_NOT_FOUND, "m");
  d = good_desc(), d.plan = &plan;
  memset(plan.kernel, 'x', sizeof plan.kernel);
  FAILS(mp_gemm, (context, &d, at(kA), at(kB), NULL, at(kD), NULL, NULL, 0, NULL),
        MP_ERROR_INVALID_ARGUMENT, "kernel");
  FAILS(mp_plan_init, (NULL, sizeof plan, "gemv"), MP_ERROR_INVALID_ARGUMENT, "plan");
  FAILS(mp_plan_init, (&plan, 0, "gemv"), MP_ERROR_STRUCT_SIZE, "struct_size");
}
