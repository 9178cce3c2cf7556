/* mpcore/optimizer.h: optimizers. */
#include <math.h>

#include "harness.h"

/* ---------------------------------------------------------------- creation */

enum { kTensors = 2 };

static mp_tensor_list_t list_at(mp_context_t of, size_t offset, mp_dtype_t dtype, uint32_t count) {
  static const int64_t numel[kTensors] = {8, 24};
  void *data[kTensors];
  data[0] = at(offset);
  data[1] = at(offset + 256);
  return make_list(of, dtype, count, data, numel);
}

static struct {
  mp_tensor_list_t grads, master, model, m, v;
  mp_tensor_list_t fp32_model, short_model, half_master, shorter, foreign, holes, ones, longer_ones,
      same_m;
} lists;

/** One element per tensor. */
static mp_tensor_list_t ones_list(uint32_t count) {
  static const int64_t numel[kTensors + 1] = {1, 1, 1};
  void *data[kTensors + 1];
  for (int i = 0; i <= kTensors; i++) data[i] = at(5120 + 256 * (size_t)i);
  return make_list(context, MP_FP32, count, data, numel);
}

static void make_lists(void) {
  lists.grads = list_at(context, 0, MP_FP16, kTensors);
  lists.master = list_at(context, 1024, MP_FP32, kTensors);
  lists.model = list_at(context, 2048, MP_FP16, kTensors);
  lists.m = list_at(context, 3072, MP_FP32, kTensors);
  lists.v = list_at(context, 4096, MP_FP32, kTensors);
  lists.same_m = list_at(context, 3072, MP_FP32, kTensors);
  lists.fp32_model = list_at(context, 2048, MP_FP32, kTensors);
  lists.short_model = list_at(context, 2048, MP_FP16, 1);
  lists.half_master = list_at(context, 1024, MP_FP16, kTensors);
  lists.shorter = list_at(context, 1024, MP_FP32, 1);
  lists.foreign = list_at(other_context, 1024, MP_FP32, kTensors);
  lists.holes = list_at(context, 1024, MP_FP32, kTensors);
  lists.ones = ones_list(kTensors);
  lists.longer_ones = ones_list(kTensors + 1);
  void *data[kTensors] = {NULL, NULL};
  data[0] = at(1024);
  WORKS(mp_tensor_list_set_data(lists.holes, data, NULL));
}

static void destroy_lists(void) {
  mp_tensor_list_t all[sizeof lists / sizeof(mp_tensor_list_t)];
  memcpy(all, &lists, sizeof all);
  for (size_t i = 0; i < COUNT(all); i++) mp_tensor_list_destroy(all[i]);
}

static mp_param_group_t group; /* of the optimizers created below */

static mp_optimizer_desc_t desc_of(mp_optimizer_kind_t kind) {
  mp_optimizer_desc_t d = mp_optimizer_desc_default(kind);
  d.groups = &group;
  d.grads = lists.grads;
  d.master = lists.master;
  d.model = lists.model;
  d.m = kind == MP_OPT_ADAGRAD ? NULL : lists.m;
  d.v = kind == MP_OPT_SGD ? NULL : kind == MP_OPT_NOVOGRAD ? lists.ones : lists.v;
  return d;
}

static mp_status_t call_optimizer(void *s) {
  const mp_status_t status = mp_optimizer_create(&out.optimizer, context, s);
  if (status == MP_SUCCESS) mp_optimizer_destroy(out.optimizer);
  return status;
}

static void check_kind(const char *parameter, mp_optimizer_kind_t kind, uint32_t more_flags,
                       const struct field_case *fields, size_t count) {
  group = mp_param_group_default(kind, 0.1f);
  mp_optimizer_desc_t d = desc_of(kind);
  d.flags |= more_flags;
  check_struct(SUBJECT("mp_optimizer_create", parameter, d, call_optimizer), fields, count);
}

static void test_create(void) {
  static const uint32_t bad_group[kTensors] = {0, 1};
  const struct field_case adam[] = {
      INTS(mp_optimizer_desc_t, kind, 0, 7),
      INTS(mp_optimizer_desc_t, flags, MP_OPT_FLAG_NESTEROV, 1 << 9),
      INTS(mp_optimizer_desc_t, num_groups, 0),
      POINTERS(mp_optimizer_desc_t, groups, NULL),
      POINTERS(mp_optimizer_desc_t, tensor_group, bad_group),
      POINTERS(mp_optimizer_desc_t, grads, NULL, lists.holes, lists.foreign),
      FIELD(mp_optimizer_desc_t, master, pointers, MP_ERROR_UNSUPPORTED, NULL), /* with a model */
      POINTERS(mp_optimizer_desc_t, master, lists.half_master, lists.shorter, lists.foreign,
               lists.holes),
      POINTERS(mp_optimizer_desc_t, model, lists.fp32_model, lists.short_model, lists.grads),
      POINTERS(mp_optimizer_desc_t, m, lists.half_master, lists.shorter, lists.holes, lists.master),
      POINTERS(mp_optimizer_desc_t, v, lists.half_master, lists.foreign, lists.holes, lists.m,
               lists.master, lists.same_m /* same memory as m */),
      POINTERS(mp_optimizer_desc_t, extra_grads, lists.master, lists.v, lists.half_master,
               lists.shorter, lists.foreign, lists.holes),
      FIELD(mp_optimizer_desc_t, lr_multipliers, pointers, MP_ERROR_MISALIGNED, at(2)),
      FIELD(mp_optimizer_desc_t, decay_multipliers, pointers, MP_ERROR_MISALIGNED, at(2)),
      FIELD(mp_optimizer_desc_t, tensor_ids, pointers, MP_ERROR_UNSUPPORTED, bad_group),
      FIELD(mp_optimizer_desc_t, first_elements, pointers, MP_ERROR_UNSUPPORTED, at(0)),
      FIELD(mp_optimizer_desc_t, active, pointers, MP_ERROR_UNSUPPORTED, at(0)),
      FIELD(mp_optimizer_desc_t, ema, pointers, MP_ERROR_UNSUPPORTED, lists.m),
  };
  const struct field_case sgd[] = {
      INTS(mp_optimizer_desc_t, flags, MP_OPT_FLAG_DECOUPLED_DECAY, MP_OPT_FLAG_NO_BIAS_CORRECTION,
           MP_OPT_FLAG_NVLAMB, MP_OPT_FLAG_LARC | MP_OPT_FLAG_LARS,
           MP_OPT_FLAG_LARC | MP_OPT_FLAG_DECAY_AFTER_MOMENTUM,
           MP_OPT_FLAG_LARS | MP_OPT_FLAG_DECAY_AFTER_MOMENTUM),
      POINTERS(mp_optimizer_desc_t, v, lists.v),
  };
  const struct field_case lamb[] = {
      INTS(mp_optimizer_desc_t, flags, MP_OPT_FLAG_LARC),
  };
  const struct field_case novograd[] = {
      INTS(mp_optimizer_desc_t, flags, MP_OPT_FLAG_DECOUPLED_DECAY),
      POINTERS(mp_optimizer_desc_t, v, lists.v, lists.longer_ones, lists.foreign),
  };
  const struct field_case adagrad[] = {
      INTS(mp_optimizer_desc_t, flags, MP_OPT_FLAG_NESTEROV),
      POINTERS(mp_optimizer_desc_t, m, lists.m),
  };
  const struct field_case rmsprop[] = {
      INTS(mp_optimizer_desc_t, flags, MP_OPT_FLAG_DECOUPLED_DECAY),
      POINTERS(mp_optimizer_desc_t, v, lists.ones),
  };
  check_kind("desc (Adam)", MP_OPT_ADAM, 0, adam, COUNT(adam));
  check_kind("desc (SGD)", MP_OPT_SGD, 0, sgd, COUNT(sgd));
  check_kind("desc (LAMB)", MP_OPT_LAMB, MP_OPT_FLAG_NVLAMB, lamb, COUNT(lamb));
  check_kind("desc (NovoGrad)", MP_OPT_NOVOGRAD, 0, novograd, COUNT(novograd));
  check_kind("desc (Adagrad)", MP_OPT_ADAGRAD, MP_OPT_FLAG_DECOUPLED_DECAY, adagrad,
             COUNT(adagrad));
  check_kind("desc (RMSProp)", MP_OPT_RMSPROP, 0, rmsprop, COUNT(rmsprop));

  group = mp_param_group_default(MP_OPT_SGD, 0.1f);
  mp_optimizer_desc_t d = desc_of(MP_OPT_SGD);
  INVALID(mp_optimizer_create, (&out.optimizer, other_context, &d), "context");
  d.grads = lists.master;
  INVALID(mp_optimizer_create, (&out.optimizer, context, &d), "must differ from grads");
  d.grads = lists.grads;
  d.m = NULL; /* allocated by the optimizer */
  WORKS(call_optimizer(&d));
  group.beta1 = 0.0f;
  WORKS(call_optimizer(&d));
  d.grads = d.extra_grads = lists.m; /* both lists are only read */
  WORKS(call_optimizer(&d));
  mp_optimizer_destroy(NULL);
}

/* ---------------------------------------------------------------- hyperparameters */

static uint32_t flags; /* of the optimizers created below */

static mp_param_group_t good_group(void) {
  return mp_param_group_default(flags == MP_OPT_FLAG_NESTEROV ? MP_OPT_SGD : MP_OPT_ADAM, 0.1f);
}

/** Creates an optimizer with these groups: SGD for MP_OPT_FLAG_NESTEROV, otherwise Adam. */
static mp_status_t call_groups(void *s) {
  mp_optimizer_desc_t d = desc_of(flags == MP_OPT_FLAG_NESTEROV ? MP_OPT_SGD : MP_OPT_ADAM);
  d.flags = flags;
  d.groups = s;
  return call_optimizer(&d);
}

static mp_optimizer_t optimizer; /* of the kind of good_group() */

CALL_OF(call_set_group, mp_optimizer_set_group(optimizer, 0, s, NULL))

static void check_group(const char *function, const char *parameter, mp_status_t (*call)(void *)) {
  const struct field_case adam[] = {
      REALS(mp_param_group_t, lr, NAN, -0.1),
      REALS(mp_param_group_t, eps, 0, NAN, -1e-8),
      REALS(mp_param_group_t, weight_decay, INFINITY, NAN, -0.1),
      REALS(mp_param_group_t, dampening, NAN),
      REALS(mp_param_group_t, beta1, 1, -0.1),
      REALS(mp_param_group_t, beta2, 1, NAN),
      REALS(mp_param_group_t, l1, NAN, -0.1),
      REALS(mp_param_group_t, l2, INFINITY, NAN, -0.1),
      REALS(mp_param_group_t, clip_value, -1, NAN),
      REALS(mp_param_group_t, max_tensor_norm, -1, NAN),
      INTS(mp_param_group_t, lr_schedule, -1, 0, 6),
      INTS(mp_param_group_t, warmup_steps, -1),
      FIELD(mp_param_group_t, ema_decay, reals, MP_ERROR_UNSUPPORTED, 0.5, NAN),
      FIELD(mp_param_group_t, ema_warmup, ints, MP_ERROR_UNSUPPORTED, 1),
  };
  const struct field_case nesterov[] = {
      REALS(mp_param_group_t, lr, INFINITY),
      REALS(mp_param_group_t, beta1, -0.1, NAN, 0),
      REALS(mp_param_group_t, dampening, 0.1),
  };
  const mp_param_group_t initial = good_group();
  if (flags == MP_OPT_FLAG_NESTEROV)
    CHECK_STRUCT(function, parameter, initial, call, nesterov);
  else
    CHECK_STRUCT(function, parameter, initial, call, adam);
}

static void check_schedule(mp_lr_schedule_t schedule, const struct field_case *fields,
                           size_t count) {
  mp_param_group_t h = mp_param_group_default(MP_OPT_ADAM, 0.1f);
  h.lr_schedule = schedule;
  h.decay_steps = 10;
  h.decay_rate = 0.5f;
  check_fields(SUBJECT("mp_optimizer_create", "groups[0] (schedule)", h, call_groups), fields,
               count);
}

static void check_schedules(void) {
  const struct field_case polynomial[] = {
      INTS(mp_param_group_t, decay_steps, 0),
      REALS(mp_param_group_t, lr_end, NAN),
      REALS(mp_param_group_t, decay_power, 0, INFINITY),
  };
  const struct field_case cosine[] = {
      INTS(mp_param_group_t, decay_steps, 0),
      REALS(mp_param_group_t, lr_end, INFINITY),
  };
  const struct field_case exponential[] = {
      INTS(mp_param_group_t, decay_steps, -1),
      REALS(mp_param_group_t, decay_rate, 0, NAN),
  };
  check_schedule(MP_LR_POLYNOMIAL, polynomial, COUNT(polynomial));
  check_schedule(MP_LR_COSINE, cosine, COUNT(cosine));
  check_schedule(MP_LR_EXPONENTIAL, exponential, COUNT(exponential));
}

/** `trust_coefficient` is used with MP_OPT_FLAG_LARC and MP_OPT_FLAG_LARS only. */
static void check_trust(void) {
  mp_optimizer_desc_t d = desc_of(MP_OPT_SGD);
  group = mp_param_group_default(MP_OPT_SGD, 0.1f);
  group.trust_coefficient = 0.0f;
  WORKS(call_optimizer(&d));
  static const uint32_t adaptive[] = {MP_OPT_FLAG_LARC, MP_OPT_FLAG_LARS};
  for (int i = 0; i < 2; i++) {
    d.flags = adaptive[i];
    group.trust_coefficient = 0.0f;
    check_failure("trust_coefficient = 0", "mp_optimizer_create", call_optimizer(&d),
                  MP_ERROR_INVALID_ARGUMENT, "trust_coefficient");
    group.trust_coefficient = NAN;
    check_failure("trust_coefficient = NAN", "mp_optimizer_create", call_optimizer(&d),
                  MP_ERROR_INVALID_ARGUMENT, "trust_coefficient");
    group.trust_coefficient = 0.001f;
    WORKS(call_optimizer(&d));
  }
}

static mp_optimizer_t make_optimizer(mp_optimizer_kind_t kind, mp_tensor_list_t m, float beta1) {
  group = mp_param_group_default(kind, 0.1f);
  group.beta1 = beta1;
  mp_optimizer_desc_t d = desc_of(kind);
  d.flags = flags;
  d.m = m;
  mp_optimizer_t made = NULL;
  mp_optimizer_create(&made, context, &d);
  return made;
}

static void test_group(void) {
  static const uint32_t kinds[] = {0, MP_OPT_FLAG_NESTEROV};
  for (int i = 0; i < 2; i++) {
    flags = kinds[i];
    optimizer =
        make_optimizer(flags == MP_OPT_FLAG_NESTEROV ? MP_OPT_SGD : MP_OPT_ADAM, lists.m, 0.9f);
    check_group("mp_optimizer_create", "groups[0]", call_groups);
    check_group("mp_optimizer_set_group", "group", call_set_group);
    mp_optimizer_destroy(optimizer);
  }
  flags = 0;

  const mp_param_group_t h = mp_param_group_default(MP_OPT_SGD, 0.1f);
  optimizer = make_optimizer(MP_OPT_SGD, NULL, 0.0f);
  INVALID(mp_optimizer_set_group, (optimizer, 0, &h, NULL), "beta1");
  INVALID(mp_optimizer_set_group, (optimizer, 1, &h, NULL), "index");
  mp_optimizer_destroy(optimizer);

  check_schedules();
  check_trust();

  /* struct_size of the first group is the distance to the second. */
  mp_param_group_t groups[3];
  memset(groups, 0, sizeof groups);
  groups[0] = groups[1] = h;
  groups[1].struct_size = sizeof h + 4;
  mp_optimizer_desc_t d = desc_of(MP_OPT_SGD);
  d.num_groups = 2;
  d.groups = groups;
  check_failure("groups of different sizes", "mp_optimizer_create", call_optimizer(&d),
                MP_ERROR_STRUCT_SIZE, "groups[1]");
  groups[0].struct_size = sizeof h + 2;
  groups[1].struct_size = 0;
  check_failure("misaligned groups", "mp_optimizer_create", call_optimizer(&d),
                MP_ERROR_STRUCT_SIZE, "must be a multiple of");
  groups[0] = groups[1] = h;
  groups[1].lr = NAN;
  check_failure("second group", "mp_optimizer_create", call_optimizer(&d),
                MP_ERROR_INVALID_ARGUMENT, "groups[1]");
}

/* ---------------------------------------------------------------- steps */

static void test_optimizer_step(void) {
  int64_t t = 0;
  FAILS(mp_optimizer_step, (optimizer, at(2), NULL, NULL), MP_ERROR_MISALIGNED, "grad_scale");
  FAILS(mp_optimizer_step, (optimizer, NULL, at(2), NULL), MP_ERROR_MISALIGNED, "found_inf");
  WORKS(mp_optimizer_step(optimizer, NULL, NULL, NULL));

  check(mp_optimizer_get_step_address(NULL) == NULL &&
            mp_optimizer_get_step_address(optimizer) != NULL,
        "mp_optimizer_get_step_address is NULL only without an optimizer");
  check(mp_optimizer_get_scaler(NULL) == NULL && mp_optimizer_get_scaler(optimizer) != NULL,
        "mp_optimizer_get_scaler is NULL only without an optimizer");
  check(mp_optimizer_get_lr_address(NULL) == NULL && mp_optimizer_get_lr_address(optimizer) != NULL,
        "mp_optimizer_get_lr_address is NULL only without an optimizer");
  WORKS(mp_optimizer_regularization(optimizer, at(8192), NULL));

  INVALID(mp_optimizer_set_step_sync, (optimizer, -1, NULL, NULL), "t");
  const int64_t most = (int64_t)1 << 52;
  INVALID(mp_optimizer_set_step_sync, (optimizer, INT64_MAX, NULL, NULL), "t");
  INVALID(mp_optimizer_set_step_sync, (optimizer, most + 1, NULL, NULL), "t");
  WORKS(mp_optimizer_set_step_sync(optimizer, most, NULL, NULL));
  WORKS(mp_optimizer_set_step_sync(optimizer, 41, NULL, NULL));
  check(mp_optimizer_get_step_sync(optimizer, &t, NULL, NULL) == MP_SUCCESS && t == 41,
        "mp_optimizer_get_step_sync returns the step that was set");

  /* Both tensors have elements, so both counts are t. */
  int64_t tensor_steps[kTensors] = {0, 0};
  check(mp_optimizer_get_step_sync(optimizer, &t, tensor_steps, NULL) == MP_SUCCESS &&
            tensor_steps[0] == 41 && tensor_steps[1] == 41,
        "every tensor has been updated t times");
  WORKS(mp_optimizer_set_step_sync(optimizer, 41, tensor_steps, NULL));
  tensor_steps[1] = 40;
  FAILS(mp_optimizer_set_step_sync, (optimizer, 41, tensor_steps, NULL), MP_ERROR_UNSUPPORTED,
        "tensor_steps[1] = 40");

  /* An absent gradient is detected before anything is written. */
  void *data[kTensors] = {NULL, NULL};
  data[1] = at(256);
  WORKS(mp_tensor_list_set_data(lists.grads, data, NULL));
  INVALID(mp_optimizer_step, (optimizer, NULL, NULL, NULL), "grads");
  INVALID(mp_scale_step, (optimizer, NULL, NULL, NULL), "grads");
  data[0] = at(0);
  WORKS(mp_tensor_list_set_data(lists.grads, data, NULL));
}

void test_optimizer(void) {
  make_lists();
  test_create();
  test_group();
  optimizer = make_optimizer(MP_OPT_ADAM, lists.m, 0.9f);
  test_optimizer_step();
  mp_optimizer_destroy(optimizer);
  destroy_lists();
}
