/* mpcore/tensors.h: tensor lists and the passes over them. */
#include <math.h>

#include "harness.h"

enum { kCount = 3 };

static const int64_t kNumel[kCount] = {8, 0, 5};
static void *data[kCount];

static mp_tensor_list_desc_t good_desc(void) {
  mp_tensor_list_desc_t d = INITIALIZED(mp_tensor_list_desc_t);
  data[0] = at(0);
  data[1] = NULL;
  data[2] = at(1024);
  d.dtype = MP_FP32;
  d.count = kCount;
  d.data = data;
  d.numel = kNumel;
  return d;
}

static mp_tensor_list_t list_of(mp_context_t of, const mp_tensor_list_desc_t *desc) {
  mp_tensor_list_t list = NULL;
  mp_tensor_list_create(&list, of, desc);
  return list;
}

/* ---------------------------------------------------------------- creation */

static mp_status_t call_create(void *s) {
  const mp_status_t status = mp_tensor_list_create(&out.list, context, s);
  if (status == MP_SUCCESS) mp_tensor_list_destroy(out.list);
  return status;
}

static void test_create(void) {
  static const int64_t negative[kCount] = {8, 0, -1}, huge[kCount] = {8, 0, INT64_MAX};
  static const int64_t large[kCount] = {8, 0, (INT64_C(1) << 40) - 16384};
  static const mp_dtype_t no_dtype[kCount] = {MP_FP16, MP_BF16, MP_DTYPE_NONE};
  const mp_dtype_t bad_dtype[kCount] = {MP_FP16, invalid_dtype(), MP_FP32};
  void *misaligned[kCount] = {NULL};
  misaligned[2] = at(2);
  const struct field_case fields[] = {
      INTS(mp_tensor_list_desc_t, dtype, MP_DTYPE_NONE, invalid_dtype(), MP_STATE_M8, MP_STATE_V8,
           MP_REMAINDER16, MP_REMAINDER8),
      INTS(mp_tensor_list_desc_t, reserved0, 1),
      FIELD(mp_tensor_list_desc_t, data, pointers, MP_ERROR_MISALIGNED, misaligned),
      POINTERS(mp_tensor_list_desc_t, numel, negative, huge, large),
      POINTERS(mp_tensor_list_desc_t, dtypes, no_dtype, bad_dtype),
  };
  const mp_tensor_list_desc_t initial = good_desc();
  CHECK_STRUCT("mp_tensor_list_create", "desc", initial, call_create, fields);

  /* The message names the index of the tensor. */
  mp_tensor_list_desc_t d = good_desc();
  d.numel = negative;
  INVALID(mp_tensor_list_create, (&out.list, context, &d), "numel[2]");
  d = good_desc();
  d.dtypes = bad_dtype;
  INVALID(mp_tensor_list_create, (&out.list, context, &d), "dtypes[1]");
  d = good_desc();
  d.data = misaligned;
  FAILS(mp_tensor_list_create, (&out.list, context, &d), MP_ERROR_MISALIGNED, "data[2]");

  d = good_desc();
  mp_tensor_list_destroy(NULL);
}

static void test_set_data(mp_tensor_list_t list) {
  void *misaligned[kCount] = {NULL};
  misaligned[2] = at(2);
  FAILS(mp_tensor_list_set_data, (list, misaligned, NULL), MP_ERROR_MISALIGNED, "data[2]");
  WORKS(mp_tensor_list_set_data(list, data, NULL));
}

/** A list keeps its context alive. */
static void test_list_outlives_context(void) {
  mp_context_t short_lived;
  const mp_context_config_t config = test_config();
  int good = mp_context_create(&short_lived, &config) == MP_SUCCESS;
  const mp_tensor_list_desc_t d = good_desc();
  mp_tensor_list_t list = list_of(short_lived, &d);
  mp_context_destroy(short_lived);
  good = good && mp_check_nonfinite(list, at(2048), NULL) == MP_SUCCESS;
  mp_tensor_list_destroy(list);
  check(good, "a list outlives mp_context_destroy");
  reset();
}

/* ---------------------------------------------------------------- passes */

static void test_statistics(mp_tensor_list_t list, mp_tensor_list_t holes) {
  INVALID(mp_check_nonfinite, (holes, at(2048), NULL), "data[2]");

  INVALID(mp_inspect, (list, NULL, NULL, NULL), "report");
  INVALID(mp_inspect, (holes, at(2048), NULL, NULL), "data[2]");
  WORKS(mp_inspect(list, at(2048), at(2112), NULL));

  INVALID(mp_amax, (list, NULL, NULL, NULL), "amax");
  FAILS(mp_amax, (list, NULL, at(2050), NULL), MP_ERROR_MISALIGNED, "per_tensor");
  INVALID(mp_amax, (holes, at(2048), NULL, NULL), "data[2]");

  INVALID(mp_l2norm, (list, NULL, NULL, NULL), "norm");
  INVALID(mp_l2norm, (holes, NULL, at(2048), NULL), "data[2]");

  mp_stats_outputs_t outputs = INITIALIZED(mp_stats_outputs_t);
  INVALID(mp_tensor_stats, (list, &outputs, NULL), "all pointers are NULL");
  outputs.norm = at(2048);
  INVALID(mp_tensor_stats, (holes, &outputs, NULL), "data[2]");
  outputs.reserved0 = 1;
  INVALID(mp_tensor_stats, (list, &outputs, NULL), "reserved0");
  outputs.reserved0 = 0;
  outputs.struct_size = 0;
  FAILS(mp_tensor_stats, (list, &outputs, NULL), MP_ERROR_STRUCT_SIZE, "struct_size");
  outputs.struct_size = sizeof outputs;
  WORKS(mp_tensor_stats(list, &outputs, NULL));

  WORKS(mp_check_nonfinite(list, at(2048), NULL));
  WORKS(mp_amax(list, NULL, at(2048), NULL));
  WORKS(mp_l2norm(list, at(2048), NULL, NULL));
}

static void test_unscale(mp_tensor_list_t list, mp_tensor_list_t holes) {
  static const int64_t other_numel[kCount] = {8, 0, 6};
  mp_tensor_list_desc_t d = good_desc();
  mp_tensor_list_t foreign = list_of(other_context, &d);
  d.numel = other_numel;
  mp_tensor_list_t longer_tensor = list_of(context, &d);
  d = good_desc();
  d.count = 2;
  mp_tensor_list_t fewer_tensors = list_of(context, &d);

  float *scale = at(2048), *flag = at(2052);
  INVALID(mp_unscale, (holes, list, scale, flag, NULL), "in");
  INVALID(mp_unscale, (list, holes, scale, flag, NULL), "out");
  INVALID(mp_unscale, (list, foreign, scale, flag, NULL), "contexts");
  INVALID(mp_unscale, (list, fewer_tensors, scale, flag, NULL), "tensors");
  INVALID(mp_unscale, (list, longer_tensor, scale, flag, NULL), "numel");
  WORKS(mp_unscale(list, list, scale, flag, NULL));

  mp_tensor_list_destroy(foreign);
  mp_tensor_list_destroy(longer_tensor);
  mp_tensor_list_destroy(fewer_tensors);
}

/** Two tensors that share one byte can be read; calls that write them fail and name both. */
static void test_overlaps(mp_tensor_list_t list) {
  mp_tensor_list_desc_t d = good_desc();
  void *behind[kCount] = {at(0), at(4), at(28)}, *before[kCount] = {at(16), NULL, at(0)};
  void *next_to[kCount] = {at(0), at(4), at(32)};
  mp_tensor_list_t overlapping[2], separate, apart, model;
  d.data = behind;
  overlapping[0] = list_of(context, &d);
  d.dtype = MP_FP16;
  void *halves[kCount] = {at(1024), NULL, at(1038)};
  d.data = halves;
  model = list_of(context, &d);
  d = good_desc();
  overlapping[1] = list_of(context, &d);
  WORKS(mp_tensor_list_set_data(overlapping[1], before, NULL));
  d.data = next_to;
  separate = list_of(context, &d);
  void *elsewhere[kCount] = {at(512), NULL, at(768)};
  d.data = elsewhere;
  apart = list_of(context, &d);

  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_STATIC);
  const mp_comm_t alone = mp_comm_default();
  mp_scaler_t scaler = NULL;
  WORKS(mp_scaler_create(&scaler, context, &config));
  mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 0.5f);
  group.beta1 = 0.0f;
  for (int i = 0; i < 2; i++) {
    mp_tensor_list_t o = overlapping[i];
    INVALID(mp_unscale, (list, o, at(2048), at(2052), NULL), "out: data[2]");
    check(strstr(mp_last_error(), " overlaps data[0] = ") != NULL,
          "the message names the other tensor");
    INVALID(mp_grads_accumulate, (scaler, list, o, 1.0f, 0, NULL), "sums: data[2]");
    INVALID(mp_grads_to_fp32, (scaler, list, o, NULL), "out: data[2]");
    INVALID(mp_grads_all_reduce, (o, &alone, 1.0f, 1.0f, NULL), "grads: data[2]");
    WORKS(mp_l2norm(o, at(2048), NULL, NULL));
    WORKS(mp_unscale(o, list, at(2048), at(2052), NULL));
    mp_optimizer_desc_t sgd = mp_optimizer_desc_default(MP_OPT_SGD);
    sgd.groups = &group;
    sgd.grads = apart;
    sgd.master = o;
    INVALID(mp_optimizer_create, (&out.optimizer, context, &sgd), "master: data[2]");
  }
  INVALID(mp_masters_to_model, (list, model, NULL, NULL, NULL), "model: data[2]");
  WORKS(mp_unscale(list, separate, at(2048), at(2052), NULL));

  mp_optimizer_desc_t sgd = mp_optimizer_desc_default(MP_OPT_SGD);
  sgd.groups = &group;
  sgd.grads = overlapping[0];
  sgd.master = list;
  mp_optimizer_t optimizer = NULL;
  void *moved[kCount] = {at(512), NULL, at(516)};
  WORKS(mp_tensor_list_set_data(list, data, NULL));
  void *gradients[kCount] = {at(1536), NULL, at(1540)};
  WORKS(mp_tensor_list_set_data(overlapping[0], gradients, NULL));
  WORKS(mp_optimizer_create(&optimizer, context, &sgd));
  WORKS(mp_scale_step(optimizer, NULL, NULL, NULL));
  WORKS(mp_tensor_list_set_data(list, moved, NULL));
  INVALID(mp_scale_step, (optimizer, NULL, NULL, NULL), "master: data[2]");
  INVALID(mp_optimizer_step, (optimizer, NULL, NULL, NULL), "master: data[2]");
  WORKS(mp_tensor_list_set_data(list, data, NULL));
  mp_optimizer_destroy(optimizer);
  mp_scaler_destroy(scaler);
  mp_tensor_list_destroy(overlapping[0]);
  mp_tensor_list_destroy(overlapping[1]);
  mp_tensor_list_destroy(separate);
  mp_tensor_list_destroy(apart);
  mp_tensor_list_destroy(model);
}

static void test_clip_factor(void) {
  float *norm = at(0), *scale = at(4), *result = at(8);
  INVALID(mp_clip_factor, (context, norm, scale, 0.0f, result, NULL), "max_norm");
  INVALID(mp_clip_factor, (context, norm, scale, -1.0f, result, NULL), "max_norm");
  INVALID(mp_clip_factor, (context, norm, scale, NAN, result, NULL), "max_norm");
  WORKS(mp_clip_factor(context, norm, scale, 1.0f, result, NULL));
}

void test_tensors(void) {
  test_create();
  const mp_tensor_list_desc_t d = good_desc();
  mp_tensor_list_t list = list_of(context, &d);
  mp_tensor_list_t holes = list_of(context, &d);
  void *with_hole[kCount] = {NULL};
  with_hole[0] = at(0);
  WORKS(mp_tensor_list_set_data(holes, with_hole, NULL));

  test_set_data(list);
  test_list_outlives_context();
  test_statistics(list, holes);
  test_unscale(list, holes);
  test_overlaps(list);
  test_clip_factor();
  mp_tensor_list_destroy(list);
  mp_tensor_list_destroy(holes);
}
