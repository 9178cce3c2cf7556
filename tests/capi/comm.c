/* mpcore/comm.h: several ranks. */
#include <math.h>

#include "harness.h"

enum { kCount = 2 };

static mp_tensor_list_t list; /* of the subject below */

static mp_tensor_list_t list_with(void *second) {
  static const int64_t numel[kCount] = {8, 4};
  void *data[kCount];
  data[0] = at(0);
  data[1] = second;
  return make_list(context, MP_FP32, kCount, data, numel);
}

/* ---------------------------------------------------------------- a table that counts its calls */

static int all_reduces, code;

static int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                      mp_reduce_op_t op, mp_stream_t stream, void *user) {
  (void)send, (void)recv, (void)count, (void)dtype, (void)op, (void)stream, (void)user;
  all_reduces++;
  return code;
}

static int group(void *user) {
  (void)user;
  return 0;
}

static mp_comm_t good_comm(void) {
  mp_comm_t c = mp_comm_default();
  c.rank = 1;
  c.world_size = 2;
  c.all_reduce = all_reduce;
  c.group_begin = group;
  c.group_end = group;
  return c;
}

CALL_OF(call_all_reduce, mp_grads_all_reduce(list, s, 0.5f, 2.0f, NULL))

static void test_all_reduce(void) {
  const struct field_case fields[] = {
      INTS(mp_comm_t, rank, -1, 2),    INTS(mp_comm_t, world_size, 0, -1, 1),
      INTS(mp_comm_t, reserved0, 1),   INTS(mp_comm_t, all_reduce, 0),
      INTS(mp_comm_t, group_begin, 0), INTS(mp_comm_t, group_end, 0),
  };
  const mp_comm_t initial = good_comm();
  CHECK_STRUCT("mp_grads_all_reduce", "comm", initial, call_all_reduce, fields);

  const mp_comm_t comm = good_comm();
  mp_tensor_list_t holes = list_with(NULL);
  all_reduces = 0;
  INVALID(mp_grads_all_reduce, (holes, &comm, 1, 1, NULL), "grads");
  INVALID(mp_grads_all_reduce, (list, &comm, 0, 1, NULL), "pre");
  INVALID(mp_grads_all_reduce, (list, &comm, -1, 1, NULL), "pre");
  INVALID(mp_grads_all_reduce, (list, &comm, NAN, 1, NULL), "pre");
  INVALID(mp_grads_all_reduce, (list, &comm, 1, 0, NULL), "post");
  INVALID(mp_grads_all_reduce, (list, &comm, 1, INFINITY, NULL), "post");
  check(all_reduces == 0, "a rejected mp_grads_all_reduce calls nothing");
  WORKS(mp_grads_all_reduce(list, &comm, 1, 1, NULL));
  check(all_reduces == kCount, "one all_reduce per tensor");

  code = 7;
  FAILS(mp_grads_all_reduce, (list, &comm, 1, 1, NULL), MP_ERROR_COMM, "7");
  code = 0;

  const mp_comm_t one = mp_comm_default();
  all_reduces = 0;
  WORKS(mp_grads_all_reduce(list, &one, 0.5f, 2.0f, NULL));
  check(all_reduces == 0, "one rank calls nothing");
  mp_tensor_list_destroy(holes);
}

/* ---------------------------------------------------------------- NCCL */

/* Successful calls require a communicator: test_comm_nccl.cpp. */
static void test_nccl(void) {
  mp_comm_t comm = mp_comm_default();
  const mp_comm_t before = comm;
  INVALID(mp_comm_init_nccl, (NULL, at(0)), "comm");
  INVALID(mp_comm_init_nccl, (&comm, NULL), "nccl_comm");
  comm.struct_size = 0;
  FAILS(mp_comm_init_nccl, (&comm, at(0)), MP_ERROR_STRUCT_SIZE, "struct_size");
  comm.struct_size = before.struct_size;
  check(memcmp(&comm, &before, sizeof comm) == 0,
        "a failing mp_comm_init_nccl does not write comm");
}

void test_comm(void) {
  list = list_with(at(64));
  test_all_reduce();
  test_nccl();
  mp_tensor_list_destroy(list);
}
