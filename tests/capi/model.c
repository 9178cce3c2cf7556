/* mpcore/optimizer.h: 16-bit copies and checkpoints. */

#include "harness.h"

enum { kCount = 2 };

static mp_tensor_list_t list_of(mp_context_t of, size_t offset, mp_dtype_t dtype, uint32_t count,
                                int64_t second) {
  int64_t numel[kCount];
  void *data[kCount];
  numel[0] = 8;
  numel[1] = second;
  data[0] = at(offset);
  data[1] = at(offset + 256);
  return make_list(of, dtype, count, data, numel);
}

static mp_tensor_list_t master, model;

static mp_model_options_t good_options(void) {
  mp_model_options_t o = mp_model_options_default();
  o.flags = MP_OPT_FLAG_STOCHASTIC_ROUNDING;
  o.t = at(8192);
  o.overflows = at(8200);
  return o;
}

CALL_OF(call_copy, mp_masters_to_model(master, model, NULL, s, NULL))

static void test_options(void) {
  const struct field_case fields[] = {
      INTS(mp_model_options_t, flags, MP_OPT_FLAG_NESTEROV, 1 << 9),
      FIELD(mp_model_options_t, tensor_ids, pointers, MP_ERROR_UNSUPPORTED, at(0)),
      FIELD(mp_model_options_t, first_elements, pointers, MP_ERROR_UNSUPPORTED, at(0)),
  };
  const mp_model_options_t initial = good_options();
  CHECK_STRUCT("mp_masters_to_model", "options", initial, call_copy, fields);
}

static void test_lists(void) {
  mp_tensor_list_t shorter = list_of(context, 2048, MP_FP16, 1, 24);
  mp_tensor_list_t smaller = list_of(context, 2048, MP_FP16, kCount, 23);
  mp_tensor_list_t foreign = list_of(other_context, 2048, MP_FP16, kCount, 24);
  mp_tensor_list_t half_master = list_of(context, 1024, MP_BF16, kCount, 24);
  mp_tensor_list_t holes = list_of(context, 1024, MP_FP32, kCount, 24);
  void *data[kCount] = {NULL, NULL};
  data[0] = at(1024);
  WORKS(mp_tensor_list_set_data(holes, data, NULL));

  INVALID(mp_masters_to_model, (master, shorter, NULL, NULL, NULL), "model");
  INVALID(mp_masters_to_model, (master, smaller, NULL, NULL, NULL), "numel[1]");
  INVALID(mp_masters_to_model, (master, foreign, NULL, NULL, NULL), "contexts");
  INVALID(mp_masters_to_model, (half_master, model, NULL, NULL, NULL), "master: tensor 0");
  INVALID(mp_masters_to_model, (master, master, NULL, NULL, NULL), "model: tensor 0");
  INVALID(mp_masters_to_model, (holes, model, NULL, NULL, NULL), "data[1]");
  FAILS(mp_masters_to_model, (master, model, at(8194), NULL, NULL), MP_ERROR_MISALIGNED,
        "found_inf");
  WORKS(mp_masters_to_model(master, model, at(8192), NULL, NULL));

  data[0] = NULL; /* no copy of either */
  WORKS(mp_tensor_list_set_data(model, data, NULL));
  WORKS(mp_masters_to_model(master, model, NULL, NULL, NULL));
  mp_tensor_list_destroy(shorter);
  mp_tensor_list_destroy(smaller);
  mp_tensor_list_destroy(foreign);
  mp_tensor_list_destroy(half_master);
  mp_tensor_list_destroy(holes);
}

static void test_checkpoint(void) {
  mp_tensor_list_t grads = list_of(context, 4096, MP_FP16, kCount, 24), m, v;
  mp_param_group_t group;
  mp_optimizer_desc_t desc;
  mp_optimizer_t optimizer;
  mp_scaler_t scaler, foreign;
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  WORKS(mp_scaler_create(&scaler, context, &config));
  WORKS(mp_scaler_create(&foreign, other_context, &config));
  WORKS(mp_optimizer_desc_from_name("adam", &desc, sizeof desc, &group, sizeof group, 0.1f));
  desc.grads = grads;
  desc.master = master;
  desc.model = model;
  WORKS(mp_optimizer_create(&optimizer, context, &desc));

  WORKS(mp_optimizer_get_moments(optimizer, NULL, NULL));
  WORKS(mp_optimizer_get_moments(optimizer, &m, &v));
  int64_t numel = 0;
  FAILS(mp_tensor_list_get_tensor, (m, kCount, NULL, &numel, NULL), MP_ERROR_NOT_FOUND, "index");
  WORKS(mp_tensor_list_get_tensor(m, 0, NULL, NULL, NULL));
  check(mp_tensor_list_get_tensor(v, 1, NULL, &numel, NULL) == MP_SUCCESS && numel == 24,
        "the second tensor of v has 24 elements");

  WORKS(mp_optimizer_write_model(optimizer, NULL));

  static char saved[4096];
  size_t bytes = 0, own = 0;
  INVALID(mp_optimizer_checkpoint_size, (optimizer, foreign, &bytes), "contexts");
  WORKS(mp_optimizer_checkpoint_size(optimizer, NULL, &own));
  WORKS(mp_optimizer_checkpoint_size(optimizer, scaler, &bytes));
  check(bytes == own && bytes < sizeof saved, "NULL is the scaler of the optimizer");
  INVALID(mp_optimizer_save_sync, (optimizer, foreign, saved, bytes, NULL), "contexts");
  FAILS(mp_optimizer_save_sync, (optimizer, scaler, saved, bytes - 1, NULL),
        MP_ERROR_WORKSPACE_TOO_SMALL, "bytes");
  WORKS(mp_optimizer_save_sync(optimizer, scaler, saved, bytes, NULL));
  INVALID(mp_optimizer_restore_sync, (optimizer, foreign, saved, bytes, NULL), "contexts");
  INVALID(mp_optimizer_restore_sync, (optimizer, NULL, saved, bytes, NULL), "policy");
  INVALID(mp_optimizer_restore_sync, (optimizer, scaler, saved, bytes - 1, NULL), "bytes");
  WORKS(mp_optimizer_restore_sync(optimizer, scaler, saved, bytes, NULL));
  WORKS(mp_optimizer_save_sync(optimizer, NULL, saved, bytes, NULL));
  INVALID(mp_optimizer_restore_sync, (optimizer, scaler, saved, bytes, NULL), "policy");
  WORKS(mp_optimizer_restore_sync(optimizer, NULL, saved, bytes, NULL));

  mp_optimizer_destroy(optimizer);
  mp_scaler_destroy(scaler);
  mp_scaler_destroy(foreign);
  mp_tensor_list_destroy(grads);
}

void test_model(void) {
  master = list_of(context, 1024, MP_FP32, kCount, 24);
  model = list_of(context, 2048, MP_FP16, kCount, 24);
  test_options();
  test_checkpoint();
  test_lists();
  mp_tensor_list_destroy(master);
  mp_tensor_list_destroy(model);
}
