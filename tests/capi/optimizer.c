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
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) mp_tensor_list_destroy(all[i]);
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

static void init_kind(void *s, mp_optimizer_kind_t kind, uint32_t more_flags) {
  group = mp_param_group_default(kind, 0.1f);
  mp_optimizer_desc_t d = desc_of(kind);
  d.flags |= more_flags;
  memcpy(s, &d, sizeof d);
}

static void init_adam(void *s) {
  init_kind(s, MP_OPT_ADAM, 0);
}
static void init_sgd(void *s) {
  init_kind(s, MP_OPT_SGD, 0);
}
static void init_lamb(void *s) {
  init_kind(s, MP_OPT_LAMB, MP_OPT_FLAG_NVLAMB);
}
static void init_novograd(void *s) {
  init_kind(s, MP_OPT_NOVOGRAD, 0);
}
static void init_adagrad(void *s) {
  init_kind(s, MP_OPT_ADAGRAD, MP_OPT_FLAG_DECOUPLED_DECAY);
}
static void init_rmsprop(void *s) {
  init_kind(s, MP_OPT_RMSPROP, 0);
}

static mp_status_t call_optimizer(void *s) {
  const mp_status_t status = mp_optimizer_create(&out.optimizer, context, s);
  if (status == MP_SUCCESS) mp_optimizer_destroy(out.optimizer);
  return status;
}

#define OPTIMIZER_FIELD(field, member, v) \
  FIELD(mp_optimizer_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)
#define LATER_FIELD(type, field, member, v) FIELD(type, field, member, v, MP_ERROR_UNSUPPORTED)

static void test_create(void) {
  static const uint32_t bad_group[kTensors] = {0, 1};
  const struct field_case adam[] = {
      OPTIMIZER_FIELD(kind, i, 0),
      OPTIMIZER_FIELD(kind, i, 7),
      OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_NESTEROV),
      OPTIMIZER_FIELD(flags, i, 1 << 9),
      OPTIMIZER_FIELD(num_groups, i, 0),
      OPTIMIZER_FIELD(groups, p, NULL),
      OPTIMIZER_FIELD(tensor_group, p, bad_group),
      OPTIMIZER_FIELD(grads, p, NULL),
      OPTIMIZER_FIELD(grads, p, lists.holes),
      OPTIMIZER_FIELD(grads, p, lists.foreign),
      LATER_FIELD(mp_optimizer_desc_t, master, p, NULL), /* with a model */
      OPTIMIZER_FIELD(master, p, lists.half_master),
      OPTIMIZER_FIELD(master, p, lists.shorter),
      OPTIMIZER_FIELD(master, p, lists.foreign),
      OPTIMIZER_FIELD(master, p, lists.holes),
      OPTIMIZER_FIELD(model, p, lists.fp32_model),
      OPTIMIZER_FIELD(model, p, lists.short_model),
      OPTIMIZER_FIELD(m, p, lists.half_master),
      OPTIMIZER_FIELD(m, p, lists.shorter),
      OPTIMIZER_FIELD(m, p, lists.holes),
      OPTIMIZER_FIELD(v, p, lists.half_master),
      OPTIMIZER_FIELD(v, p, lists.foreign),
      OPTIMIZER_FIELD(v, p, lists.holes),
      OPTIMIZER_FIELD(m, p, lists.master),
      OPTIMIZER_FIELD(v, p, lists.m),
      OPTIMIZER_FIELD(v, p, lists.master),
      OPTIMIZER_FIELD(v, p, lists.same_m), /* same memory as m */
      OPTIMIZER_FIELD(model, p, lists.grads),
      OPTIMIZER_FIELD(extra_grads, p, lists.master),
      OPTIMIZER_FIELD(extra_grads, p, lists.v),
      OPTIMIZER_FIELD(extra_grads, p, lists.half_master),
      OPTIMIZER_FIELD(extra_grads, p, lists.shorter),
      OPTIMIZER_FIELD(extra_grads, p, lists.foreign),
      OPTIMIZER_FIELD(extra_grads, p, lists.holes),
      FIELD(mp_optimizer_desc_t, lr_multipliers, p, at(2), MP_ERROR_MISALIGNED),
      FIELD(mp_optimizer_desc_t, decay_multipliers, p, at(2), MP_ERROR_MISALIGNED),
      LATER_FIELD(mp_optimizer_desc_t, tensor_ids, p, bad_group),
      LATER_FIELD(mp_optimizer_desc_t, first_elements, p, at(0)),
      LATER_FIELD(mp_optimizer_desc_t, active, p, at(0)),
      LATER_FIELD(mp_optimizer_desc_t, ema, p, lists.m),
  };
  const struct subject adam_desc = {"mp_optimizer_create", "desc (Adam)",
                                    sizeof(mp_optimizer_desc_t), init_adam, call_optimizer};
  CHECK_STRUCT(&adam_desc, adam);

  const struct field_case sgd[] = {
      OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_DECOUPLED_DECAY),
      OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_NO_BIAS_CORRECTION),
      OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_NVLAMB),
      OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_LARC | MP_OPT_FLAG_LARS),
      OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_LARC | MP_OPT_FLAG_DECAY_AFTER_MOMENTUM),
      OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_LARS | MP_OPT_FLAG_DECAY_AFTER_MOMENTUM),
      OPTIMIZER_FIELD(v, p, lists.v),
  };
  const struct subject sgd_desc = {"mp_optimizer_create", "desc (SGD)", sizeof(mp_optimizer_desc_t),
                                   init_sgd, call_optimizer};
  CHECK_FIELDS(&sgd_desc, sgd);

  const struct field_case lamb[] = {OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_LARC)};
  const struct field_case novograd[] = {
      OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_DECOUPLED_DECAY),
      OPTIMIZER_FIELD(v, p, lists.v),
      OPTIMIZER_FIELD(v, p, lists.longer_ones),
      OPTIMIZER_FIELD(v, p, lists.foreign),
  };
  const struct field_case adagrad[] = {
      OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_NESTEROV),
      OPTIMIZER_FIELD(m, p, lists.m),
  };
  const struct field_case rmsprop[] = {
      OPTIMIZER_FIELD(flags, i, MP_OPT_FLAG_DECOUPLED_DECAY),
      OPTIMIZER_FIELD(v, p, lists.ones),
  };
  const struct {
    const char *parameter;
    void (*init)(void *);
    const struct field_case *cases;
    size_t count;
  } kinds[] = {
      {"desc (LAMB)", init_lamb, lamb, sizeof lamb / sizeof *lamb},
      {"desc (NovoGrad)", init_novograd, novograd, sizeof novograd / sizeof *novograd},
      {"desc (Adagrad)", init_adagrad, adagrad, sizeof adagrad / sizeof *adagrad},
      {"desc (RMSProp)", init_rmsprop, rmsprop, sizeof rmsprop / sizeof *rmsprop},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const struct subject subject = {"mp_optimizer_create", kinds[i].parameter,
                                    sizeof(mp_optimizer_desc_t), kinds[i].init, call_optimizer};
    check_fields(&subject, kinds[i].cases, kinds[i].count);
  }

  group = mp_param_group_default(MP_OPT_SGD, 0.1f);
  mp_optimizer_desc_t d = desc_of(MP_OPT_SGD);
  FAILS(mp_optimizer_create, (&out.optimizer, other_context, &d), MP_ERROR_INVALID_ARGUMENT,
        "context");
  d.grads = lists.master;
  FAILS(mp_optimizer_create, (&out.optimizer, context, &d), MP_ERROR_INVALID_ARGUMENT,
        "must differ from grads");
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

static void init_group(void *s) {
  const mp_param_group_t h =
      mp_param_group_default(flags == MP_OPT_FLAG_NESTEROV ? MP_OPT_SGD : MP_OPT_ADAM, 0.1f);
  memcpy(s, &h, sizeof h);
}

/** Creates an optimizer with these groups: SGD for MP_OPT_FLAG_NESTEROV, otherwise Adam. */
static mp_status_t call_groups(void *s) {
  mp_optimizer_desc_t d = desc_of(flags == MP_OPT_FLAG_NESTEROV ? MP_OPT_SGD : MP_OPT_ADAM);
  d.flags = flags;
  d.groups = s;
  return call_optimizer(&d);
}

static mp_optimizer_t optimizer; /* of init_group's kind */

CALL_OF(call_set_group, mp_optimizer_set_group(optimizer, 0, s, NULL))

#define GROUP_FIELD(field, v) FIELD(mp_param_group_t, field, f, v, MP_ERROR_INVALID_ARGUMENT)
#define GROUP_INT_FIELD(field, v) FIELD(mp_param_group_t, field, i, v, MP_ERROR_INVALID_ARGUMENT)

static void check_group(const char *function, const char *parameter, mp_status_t (*call)(void *)) {
  const struct field_case adam[] = {
      GROUP_FIELD(lr, NAN),
      GROUP_FIELD(lr, -0.1f),
      GROUP_FIELD(eps, 0.0f),
      GROUP_FIELD(weight_decay, INFINITY),
      GROUP_FIELD(weight_decay, NAN),
      GROUP_FIELD(weight_decay, -0.1f),
      GROUP_FIELD(eps, NAN),
      GROUP_FIELD(eps, -1e-8f),
      GROUP_FIELD(dampening, NAN),
      GROUP_FIELD(beta1, 1.0f),
      GROUP_FIELD(beta1, -0.1f),
      GROUP_FIELD(beta2, 1.0f),
      GROUP_FIELD(beta2, NAN),
      GROUP_FIELD(l1, NAN),
      GROUP_FIELD(l1, -0.1f),
      GROUP_FIELD(l2, INFINITY),
      GROUP_FIELD(l2, NAN),
      GROUP_FIELD(l2, -0.1f),
      GROUP_FIELD(clip_value, -1.0f),
      GROUP_FIELD(clip_value, NAN),
      GROUP_FIELD(max_tensor_norm, -1.0f),
      GROUP_FIELD(max_tensor_norm, NAN),
      GROUP_INT_FIELD(lr_schedule, -1),
      GROUP_INT_FIELD(lr_schedule, 0),
      GROUP_INT_FIELD(lr_schedule, 6),
      GROUP_INT_FIELD(warmup_steps, -1),
      LATER_FIELD(mp_param_group_t, ema_decay, f, 0.5f),
      LATER_FIELD(mp_param_group_t, ema_decay, f, NAN),
      LATER_FIELD(mp_param_group_t, ema_warmup, i, 1),
  };
  const struct field_case nesterov[] = {
      GROUP_FIELD(lr, INFINITY), GROUP_FIELD(beta1, -0.1f),    GROUP_FIELD(beta1, NAN),
      GROUP_FIELD(beta1, 0.0f),  GROUP_FIELD(dampening, 0.1f),
  };
  const struct subject subject = {function, parameter, sizeof(mp_param_group_t), init_group, call};
  if (flags == MP_OPT_FLAG_NESTEROV) {
    CHECK_FIELDS(&subject, nesterov);
  } else {
    CHECK_FIELDS(&subject, adam);
  }
  check_struct_size(&subject);
}

static mp_lr_schedule_t schedule; /* of init_schedule */

static void init_schedule(void *s) {
  mp_param_group_t h = mp_param_group_default(MP_OPT_ADAM, 0.1f);
  h.lr_schedule = schedule;
  h.decay_steps = 10;
  h.decay_rate = 0.5f;
  memcpy(s, &h, sizeof h);
}

static void check_schedules(void) {
  const struct subject subject = {"mp_optimizer_create", "groups[0] (schedule)",
                                  sizeof(mp_param_group_t), init_schedule, call_groups};
  const struct field_case polynomial[] = {
      GROUP_INT_FIELD(decay_steps, 0),
      GROUP_FIELD(lr_end, NAN),
      GROUP_FIELD(decay_power, 0.0f),
      GROUP_FIELD(decay_power, INFINITY),
  };
  const struct field_case cosine[] = {GROUP_INT_FIELD(decay_steps, 0),
                                      GROUP_FIELD(lr_end, INFINITY)};
  const struct field_case exponential[] = {GROUP_INT_FIELD(decay_steps, -1),
                                           GROUP_FIELD(decay_rate, 0.0f),
                                           GROUP_FIELD(decay_rate, NAN)};
  schedule = MP_LR_POLYNOMIAL;
  CHECK_FIELDS(&subject, polynomial);
  schedule = MP_LR_COSINE;
  CHECK_FIELDS(&subject, cosine);
  schedule = MP_LR_EXPONENTIAL;
  CHECK_FIELDS(&subject, exponential);
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
  FAILS(mp_optimizer_set_group, (optimizer, 0, &h, NULL), MP_ERROR_INVALID_ARGUMENT, "beta1");
  FAILS(mp_optimizer_set_group, (optimizer, 1, &h, NULL), MP_ERROR_INVALID_ARGUMENT, "index");
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

  FAILS(mp_optimizer_set_step_sync, (optimizer, -1, NULL, NULL), MP_ERROR_INVALID_ARGUMENT, "t");
  const int64_t most = (int64_t)1 << 52;
  FAILS(mp_optimizer_set_step_sync, (optimizer, INT64_MAX, NULL, NULL), MP_ERROR_INVALID_ARGUMENT,
        "t");
  FAILS(mp_optimizer_set_step_sync, (optimizer, most + 1, NULL, NULL), MP_ERROR_INVALID_ARGUMENT,
        "t");
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
  FAILS(mp_optimizer_step, (optimizer, NULL, NULL, NULL), MP_ERROR_INVALID_ARGUMENT, "grads");
  FAILS(mp_scale_step, (optimizer, NULL, NULL, NULL), MP_ERROR_INVALID_ARGUMENT, "grads");
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
