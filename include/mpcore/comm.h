/* mpcore/comm.h: several ranks. */
#ifndef MPCORE_COMM_H
#define MPCORE_COMM_H

#include "tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup comm 9. Several ranks
 *  @{ */

/** What becomes of equal places in the tensors of all ranks. */
typedef enum mp_reduce_op {
  MP_REDUCE_SUM = 0,
  MP_REDUCE_MAX =
      1 /**< of finite numbers >= 0 only: what NaN does to a maximum is everybody's own */
} mp_reduce_op_t;

/** How to reach the other ranks: a table of callbacks, so that this library links no other.
 *  mp_comm_init_nccl fills it for NCCL, bindings/mpi/mpcore_mpi.h for MPI on the host target.
 *
 *  Callbacks run on the calling thread, within the call that got the table.  They enqueue on
 *  `stream` (on the host target: they return when the result is there), get `user` last, may call
 *  mpcore, and return 0.  Any other code, or a C++ exception, ends the call with MP_ERROR_COMM.
 *
 *  A call that gets a table is collective: every rank makes it, in the same order, with equal
 *  numbers of elements, equal types and equal flags.  That they are equal nobody checks: MPI tells some
 *  ranks, the others wait, or have wrong sums.
 *
 *  As with every collective, a rank that is refused or fails leaves the others waiting: in the same call,
 *  or, where they have heard all of it, in the next one.  A call that is refused has not communicated.
 *  Weights and S of ranks that wait are as before the call.  A program looks at every status, and ends
 *  all ranks (MPI_Abort) where one is not MP_SUCCESS; docs/multi-gpu.md says what else it can do. */
typedef struct mp_comm {
  uint32_t struct_size;
  int32_t rank;       /**< 0 to world_size - 1 */
  int32_t world_size; /**< >= 1; with 1 no callback is called, and all may be NULL */
  uint32_t reserved0; /**< must be 0 */
  /** recv = send of all ranks combined, the same bits on every rank.  Device pointers; recv may be
   *  send. */
  int (*all_reduce)(const void *send, void *recv, size_t count, mp_dtype_t dtype, mp_reduce_op_t op,
                    mp_stream_t stream, void *user);
  int (*group_begin)(
      void *user);              /**< optional, with group_end: around a batch of all_reduce calls */
  int (*group_end)(void *user); /**< follows also where one of the batch failed */
  void *user;                   /**< e.g. the ncclComm_t */
} mp_comm_t;

/** One rank, for a program that may have several: nothing is communicated. */
MP_API mp_status_t mp_comm_init(mp_comm_t *comm, size_t struct_size);
static inline mp_comm_t mp_comm_default(void) {
  mp_comm_t comm;
  mp_comm_init(&comm, sizeof comm);
  return comm;
}

/** Fill `comm` from a communicator.  libnccl.so.2 is looked up with dlopen in this call; without it
 *  there is no dependency on NCCL.  The codes of its callbacks are those of ncclResult_t.
 *  @param comm       host, out; MP_INIT_STRUCT it before the call.
 *  @param nccl_comm  an ncclComm_t, blocking (with a nonblocking one the code of "in progress" is
 *                    taken for a failure); must outlive the calls that get *comm.
 *  @retval MP_ERROR_NOT_FOUND if NCCL cannot be loaded
 *  @retval MP_ERROR_COMM if it does not tell rank or size of nccl_comm */
MP_API mp_status_t mp_comm_init_nccl(mp_comm_t *comm, void *nccl_comm);

/** grads = post * sum over ranks (pre * grads), in place and in the gradients' own types, every
 *  product rounded.  pre = 1 / world_size, post = 1 averages without overflow, but what is small may
 *  underflow; pre = 1, post = 1 / world_size the reverse; both 1 / sqrt(world_size) is in between.
 *  A factor of 1 costs nothing, any other one pass over the gradients.  With a power of two, ranks with
 *  equal gradients get these back, bit for bit, unless they under- or overflow on the way.
 *
 *  One all_reduce per tensor that is not empty, in the order of the list, in one batch: NCCL makes
 *  one launch of it.  Neighbours in memory are not joined, for the ranks' addresses may differ;
 *  a list of one tensor over all of them (one buffer for all gradients) does that.
 *
 *  The gradients may still be multiplied by S.  Infinity and NaN survive the sum, and then every
 *  rank sees them; see mp_step_options.comm for what else must agree.
 *  @param pre,post   > 0, finite.
 *  @retval MP_ERROR_COMM a callback failed: some gradients may have been summed and others not, and all
 *          have been multiplied by pre */
MP_API mp_status_t mp_grad_all_reduce(mp_tensor_list_t grads, const mp_comm_t *comm, float pre,
                                      float post, mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_COMM_H */
