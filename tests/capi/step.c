/* mpcore/step.h: the fused step. */
#include <math.h>

#include "harness.h"

static mp_optimizer_t optimizer;
static mp_scaler_t scaler;

static mp_tensor_list_t list_at(size_t offset, mp_dtype_t dtype) {
  const int64_t numel = 8;
  void *data = at(offset);
  return make_list(context, dtype, 1, &data, &numel);
}

static void make_optimizer(mp_tensor_list_t grads, mp_tensor_list_t master, float max_tensor_norm) {
  mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 0.1f);
  group.beta1 = 0.0f;
  group.max_tensor_norm = max_tensor_norm;
  mp_optimizer_desc_t d = mp_optimizer_desc_default(MP_OPT_SGD);
  d.groups = &group;
  d.grads = grads;
  d.master = master;
  WORKS(mp_optimizer_create(&optimizer, context, &d));
}

/* ---------------------------------------------------------------- any step */

static mp_step_options_t good_options(void) {
  mp_step_options_t o = mp_step_options_default();
  o.max_grad_norm = 1.0f;
  o.grad_norm = at(8192);
  o.found_inf = at(8196);
  return o;
}

CALL_OF(call_scale_step, mp_scale_step(optimizer, scaler, s, NULL))

static mp_step_options_t options_with(const mp_comm_t *comm) {
  mp_step_options_t o = mp_step_options_default();
  o.comm = comm;
  o.flags = MP_STEP_FLAG_SHARDED;
  return o;
}

/** Invalid tables in general are tested in comm.c. */
static void test_comm_of_step(void) {
  mp_comm_t comm = mp_comm_default();
  mp_step_options_t o = options_with(&comm);
  WORKS(mp_scale_step(optimizer, scaler, &o, NULL));
  comm.rank = 1;
  INVALID(mp_scale_step, (optimizer, scaler, &o, NULL), "rank");
  comm.struct_size = 0;
  FAILS(mp_scale_step, (optimizer, scaler, &o, NULL), MP_ERROR_STRUCT_SIZE, "struct_size");
}

static void test_scale_step(void) {
  const struct field_case fields[] = {
      INTS(mp_step_options_t, flags, 1 << 5, MP_STEP_FLAG_SHARDED),
      INTS(mp_step_options_t, reserved0, 1),
      REALS(mp_step_options_t, max_grad_norm, -1, NAN),
      POINTERS(mp_step_options_t, found_inf, mp_scaler_get_found_inf_address(scaler)),
      FIELD(mp_step_options_t, amax, pointers, MP_ERROR_MISALIGNED, at(2)),
      POINTERS(mp_step_options_t, amax, at(0)),
      FIELD(mp_step_options_t, model_overflows, pointers, MP_ERROR_MISALIGNED, at(4)),
      FIELD(mp_step_options_t, flags, ints, MP_ERROR_UNSUPPORTED, MP_STEP_FLAG_SUM_DENOMINATOR),
      FIELD(mp_step_options_t, skip, pointers, MP_ERROR_UNSUPPORTED, at(0)),
      FIELD(mp_step_options_t, norm_limit, pointers, MP_ERROR_UNSUPPORTED, at(0)),
      FIELD(mp_step_options_t, denominator, pointers, MP_ERROR_UNSUPPORTED, at(0)),
  };
  const mp_step_options_t initial = good_options();
  CHECK_STRUCT("mp_scale_step", "options", initial, call_scale_step, fields);
  test_comm_of_step();

  mp_scaler_t foreign = make_scaler(other_context, MP_SCALER_POLICY_STATIC);
  INVALID(mp_scale_step, (optimizer, foreign, NULL, NULL), "scaler");
  WORKS(mp_scale_step(optimizer, NULL, NULL, NULL));
  mp_step_options_t o = mp_step_options_default();
  o.found_inf = mp_scaler_get_found_inf_address(mp_optimizer_get_scaler(optimizer));
  INVALID(mp_scale_step, (optimizer, NULL, &o, NULL), "found_inf");
  o.found_inf = NULL;
  for (uint32_t flag = MP_STEP_FLAG_KEEP_SCALER; flag <= MP_STEP_FLAG_CHECKED; flag *= 2) {
    o.flags = flag;
    WORKS(mp_scale_step(optimizer, NULL, &o, NULL));
  }
  o.flags = MP_STEP_FLAG_SHARDED;
  INVALID(mp_scale_step, (optimizer, scaler, &o, NULL),
          "flags = 0x8: MP_STEP_FLAG_SHARDED requires options->comm");
  o.flags = 1 << 5;
  INVALID(mp_scale_step, (optimizer, NULL, &o, NULL), "flags = 0x20: bits 0x20 are not supported");
  mp_scaler_t lognormal = make_scaler(context, MP_SCALER_POLICY_LOGNORMAL);
  WORKS(mp_scale_step(optimizer, lognormal, NULL, NULL));
  mp_scaler_destroy(foreign);
  mp_scaler_destroy(lognormal);
}

/* ---------------------------------------------------------------- MP_STEP_FLAG_CHECKED */

static mp_step_options_t good_checked(void) {
  mp_step_options_t o = mp_step_options_default();
  o.flags = MP_STEP_FLAG_CHECKED;
  o.amax = at(8192);
  return o;
}

static void test_checked(void) {
  const struct field_case fields[] = {
      REALS(mp_step_options_t, max_grad_norm, 1),
      POINTERS(mp_step_options_t, grad_norm, at(8200)),
      POINTERS(mp_step_options_t, tensor_norms, at(8200)),
      POINTERS(mp_step_options_t, report, at(8256)),
      POINTERS(mp_step_options_t, tensor_reports, at(8256)),
      POINTERS(mp_step_options_t, amax, NULL), /* required by lognormal */
  };
  const mp_step_options_t initial = good_checked();
  mp_scaler_t backoff = scaler;
  scaler = make_scaler(context, MP_SCALER_POLICY_LOGNORMAL);
  CHECK_FIELDS("mp_scale_step", "options", initial, call_scale_step, fields);
  mp_scaler_destroy(scaler);
  scaler = backoff;
}

static void test_refused(mp_tensor_list_t grads, mp_tensor_list_t master) {
  mp_step_options_t o = good_checked();
  o.amax = NULL;
  WORKS(mp_scale_step(optimizer, NULL, &o, NULL));
  WORKS(mp_scale_step(optimizer, scaler, &o, NULL));
  mp_optimizer_destroy(optimizer);
  make_optimizer(grads, master, 1.0f);
  INVALID(mp_scale_step, (optimizer, scaler, &o, NULL), "max_tensor_norm");
}

void test_step(void) {
  mp_tensor_list_t grads = list_at(0, MP_FP16), master = list_at(1024, MP_FP32);
  make_optimizer(grads, master, 0.0f);
  scaler = make_scaler(context, MP_SCALER_POLICY_BACKOFF);
  test_scale_step();
  test_checked();
  test_refused(grads, master);
  mp_scaler_destroy(scaler);
  mp_optimizer_destroy(optimizer);
  mp_tensor_list_destroy(grads);
  mp_tensor_list_destroy(master);
}
