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

static void init_options(void *s) {
  mp_step_options_t o = mp_step_options_default();
  o.max_grad_norm = 1.0f;
  o.grad_norm = at(8192);
  o.found_inf = at(8196);
  memcpy(s, &o, sizeof o);
}

CALL_OF(call_scale_step, mp_scale_step(optimizer, scaler, s, NULL))

#define OPTIONS_FIELD(field, member, v, status) FIELD(mp_step_options_t, field, member, v, status)

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
  FAILS(mp_scale_step, (optimizer, scaler, &o, NULL), MP_ERROR_INVALID_ARGUMENT, "rank");
  comm.struct_size = 0;
  FAILS(mp_scale_step, (optimizer, scaler, &o, NULL), MP_ERROR_STRUCT_SIZE, "struct_size");
}

static void test_scale_step(void) {
  const struct field_case fields[] = {
      OPTIONS_FIELD(flags, i, 1 << 5, MP_ERROR_INVALID_ARGUMENT),
      OPTIONS_FIELD(flags, i, MP_STEP_FLAG_SHARDED, MP_ERROR_INVALID_ARGUMENT),
      OPTIONS_FIELD(reserved0, i, 1, MP_ERROR_INVALID_ARGUMENT),
      OPTIONS_FIELD(max_grad_norm, f, -1.0f, MP_ERROR_INVALID_ARGUMENT),
      OPTIONS_FIELD(max_grad_norm, f, NAN, MP_ERROR_INVALID_ARGUMENT),
      OPTIONS_FIELD(found_inf, p, mp_scaler_get_found_inf_address(scaler),
                    MP_ERROR_INVALID_ARGUMENT),
      OPTIONS_FIELD(amax, p, at(2), MP_ERROR_MISALIGNED),
      OPTIONS_FIELD(amax, p, at(0), MP_ERROR_INVALID_ARGUMENT),
      OPTIONS_FIELD(model_overflows, p, at(4), MP_ERROR_MISALIGNED),
      OPTIONS_FIELD(flags, i, MP_STEP_FLAG_SUM_DENOMINATOR, MP_ERROR_UNSUPPORTED),
      OPTIONS_FIELD(skip, p, at(0), MP_ERROR_UNSUPPORTED),
      OPTIONS_FIELD(norm_limit, p, at(0), MP_ERROR_UNSUPPORTED),
      OPTIONS_FIELD(denominator, p, at(0), MP_ERROR_UNSUPPORTED),
  };
  const struct subject options = {"mp_scale_step", "options", sizeof(mp_step_options_t),
                                  init_options, call_scale_step};
  CHECK_STRUCT(&options, fields);
  test_comm_of_step();

  mp_scaler_t foreign = make_scaler(other_context, MP_SCALER_POLICY_STATIC);
  FAILS(mp_scale_step, (optimizer, foreign, NULL, NULL), MP_ERROR_INVALID_ARGUMENT, "scaler");
  WORKS(mp_scale_step(optimizer, NULL, NULL, NULL));
  mp_step_options_t o = mp_step_options_default();
  o.found_inf = mp_scaler_get_found_inf_address(mp_optimizer_get_scaler(optimizer));
  FAILS(mp_scale_step, (optimizer, NULL, &o, NULL), MP_ERROR_INVALID_ARGUMENT, "found_inf");
  o.found_inf = NULL;
  for (uint32_t flag = MP_STEP_FLAG_KEEP_SCALER; flag <= MP_STEP_FLAG_CHECKED; flag *= 2) {
    o.flags = flag;
    WORKS(mp_scale_step(optimizer, NULL, &o, NULL));
  }
  o.flags = MP_STEP_FLAG_SHARDED;
  FAILS(mp_scale_step, (optimizer, scaler, &o, NULL), MP_ERROR_INVALID_ARGUMENT,
        "flags = 0x8: MP_STEP_FLAG_SHARDED requires options->comm");
  o.flags = 1 << 5;
  FAILS(mp_scale_step, (optimizer, NULL, &o, NULL), MP_ERROR_INVALID_ARGUMENT,
        "flags = 0x20: bits 0x20 are not supported");
  mp_scaler_t lognormal = make_scaler(context, MP_SCALER_POLICY_LOGNORMAL);
  WORKS(mp_scale_step(optimizer, lognormal, NULL, NULL));
  mp_scaler_destroy(foreign);
  mp_scaler_destroy(lognormal);
}

/* ---------------------------------------------------------------- MP_STEP_FLAG_CHECKED */

static void init_checked(void *s) {
  mp_step_options_t o = mp_step_options_default();
  o.flags = MP_STEP_FLAG_CHECKED;
  o.amax = at(8192);
  memcpy(s, &o, sizeof o);
}

#define CHECKED_FIELD(field, member, v) OPTIONS_FIELD(field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_checked(void) {
  const struct field_case fields[] = {
      CHECKED_FIELD(max_grad_norm, f, 1.0f),
      CHECKED_FIELD(grad_norm, p, at(8200)),
      CHECKED_FIELD(tensor_norms, p, at(8200)),
      CHECKED_FIELD(report, p, at(8256)),
      CHECKED_FIELD(tensor_reports, p, at(8256)),
      CHECKED_FIELD(amax, p, NULL), /* required by lognormal */
  };
  const struct subject options = {"mp_scale_step", "options", sizeof(mp_step_options_t),
                                  init_checked, call_scale_step};
  mp_scaler_t backoff = scaler;
  scaler = make_scaler(context, MP_SCALER_POLICY_LOGNORMAL);
  CHECK_FIELDS(&options, fields);
  mp_scaler_destroy(scaler);
  scaler = backoff;
}

static void test_refused(mp_tensor_list_t grads, mp_tensor_list_t master) {
  mp_step_options_t o;
  init_checked(&o);
  o.amax = NULL;
  WORKS(mp_scale_step(optimizer, NULL, &o, NULL));
  WORKS(mp_scale_step(optimizer, scaler, &o, NULL));
  mp_optimizer_destroy(optimizer);
  make_optimizer(grads, master, 1.0f);
  FAILS(mp_scale_step, (optimizer, scaler, &o, NULL), MP_ERROR_INVALID_ARGUMENT, "max_tensor_norm");
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
