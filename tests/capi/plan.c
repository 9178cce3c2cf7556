/* mp_plan_t: invalid plans, and invalid arguments of the functions that create or explain plans. */
#define MP_ENABLE_EXPERIMENTAL
#include <stdint.h>

#include "harness.h"

enum { kA = 0, kB = 4096, kD = 8192, kWorkspace = 12288 };

static mp_gemm_desc_t good_desc(void) {
  return mp_gemm_desc_default(16, 16, 16, MP_FP16, MP_FP16);
}

static mp_status_t call_plan(void *s) {
  mp_gemm_desc_t d = good_desc();
  d.plan = s;
  return mp_gemm(context, &d, at(kA), at(kB), NULL, at(kD), NULL, at(kWorkspace), 4096, NULL);
}

void test_plan(void) {
  const struct field_case fields[] = {
      INTS(mp_plan_t, split_k, -1, 77),
      INTS(mp_plan_t, num_sms, -1, 65537),
      INTS(mp_plan_t, reserved0, 1),
  };
  mp_gemm_desc_t d = good_desc();
  mp_plan_t plan = INITIALIZED(mp_plan_t);
  WORKS(mp_gemm_get_plan(context, &d, NULL, SIZE_MAX, &plan));
  CHECK_STRUCT("mp_gemm", "plan", plan, call_plan, fields);
  plan.workspace_bytes = 4097; /* the kernel requires less */
  check(call_plan(&plan) == MP_SUCCESS, "a call requires only the workspace of its kernel");
  reset();
  d.m = 0;
  FAILS(mp_gemm_get_plan, (context, &d, NULL, 0, &plan), MP_ERROR_NOT_FOUND, "m");
  d = good_desc(), d.plan = &plan;
  memset(plan.kernel, 'x', sizeof plan.kernel);
  INVALID(mp_gemm, (context, &d, at(kA), at(kB), NULL, at(kD), NULL, NULL, 0, NULL), "kernel");
  INVALID(mp_plan_init, (NULL, sizeof plan, "gemv"), "plan");
  FAILS(mp_plan_init, (&plan, 0, "gemv"), MP_ERROR_STRUCT_SIZE, "struct_size");
}
