/* mpcore/comm.h: communicator and gradient all-reduce for several ranks. */
#ifndef MPCORE_COMM_H
#define MPCORE_COMM_H

#include "tensors.h"

MP_BEGIN_C

/** @defgroup comm 16. Communication between ranks
 *  @{ */

/** Element-wise reduction across ranks. */
typedef enum mp_reduce_op {
  MP_REDUCE_SUM = 1,
  MP_REDUCE_MAX = 2 /**< finite values >= 0 only; handling of NaN differs by library */
} mp_reduce_op_t;

/** Communicator: a table of callbacks, so that mpcore does not link a communication library.
 *  mp_comm_init_nccl fills it for NCCL, bindings/mpi/mpcore_mpi.h for MPI on the host target.
 *
 *  Callbacks run on the calling thread, during the call that received the communicator.  They
 *  enqueue on `stream` (on the host target: return after completion), receive `user` as the last
 *  argument, may call mpcore, and return 0.  Any other return value, or a C++ exception, ends the
 *  call with MP_ERROR_COMM.
 *
 *  A call with a communicator is collective: all ranks make it, in the same order, with equal
 *  numbers of elements, types and flags.  Equality is not validated: a mismatch may deadlock,
 *  return an MPI error on some ranks, or give wrong sums.
 *
 *  As with every collective, a rank whose call fails leaves the others waiting: in the same call
 *  or, if they have received all of its data, in the next one.  A call that is rejected (status
 *  below 40) has not communicated.  Waiting ranks still have the weights and S from before the
 *  call.  A program should check every status and end all ranks (MPI_Abort) if one is not
 *  MP_SUCCESS; for alternatives see docs/multi-gpu.md. */
typedef struct mp_comm {
  uint32_t struct_size;
  int32_t rank;       /**< 0 to world_size - 1 */
  int32_t world_size; /**< >= 1; with 1, no callback is called and all may be NULL */
  uint32_t reserved0; /**< must be 0 */
  /** Reduces `send` over all ranks into `recv`, bitwise identical on every rank.  Device pointers;
   *  recv may be send. */
  int (*all_reduce)(const void *send, void *recv, size_t count, mp_dtype_t dtype, mp_reduce_op_t op,
                    mp_stream_t stream, void *user);
  /** Begins a batch of all_reduce calls; optional, with group_end. */
  int (*group_begin)(void *user);
  int (*group_end)(void *user); /**< ends the batch, also if an all_reduce failed */
  void *user;                   /**< passed to the callbacks, e.g. the ncclComm_t */
} mp_comm_t;

/** Initializes a communicator of a single rank, which does not communicate. */
MP_API mp_status_t mp_comm_init(mp_comm_t *comm, size_t struct_size);
static inline mp_comm_t mp_comm_default(void) {
  mp_comm_t comm;
  mp_comm_init(&comm, sizeof comm);
  return comm;
}

/** Initializes *comm with the callbacks of an NCCL communicator.  The library does not link NCCL:
 *  this call loads libnccl.so.2 with dlopen.  The callbacks return ncclResult_t codes.
 *  @param comm       host, out; initialize it with MP_INIT_STRUCT.
 *  @param nccl_comm  a blocking ncclComm_t; must outlive the calls that receive *comm.  (A
 *                    nonblocking one returns ncclInProgress, which counts as a failure.)
 *  @retval MP_ERROR_NOT_FOUND NCCL cannot be loaded
 *  @retval MP_ERROR_COMM NCCL fails to return rank or size of nccl_comm */
MP_API mp_status_t mp_comm_init_nccl(mp_comm_t *comm, void *nccl_comm);

/** Sums gradients over ranks: grads = post * sum over ranks (pre * grads).  In place, in the types
 *  of the gradients, with every product rounded.  Factors that average over n = world_size ranks:
 *
 *      pre = 1/n,        post = 1           no overflow, but small values may underflow
 *      pre = 1,          post = 1/n         small values are kept, but sums may overflow
 *      pre = 1/sqrt(n),  post = 1/sqrt(n)   a compromise
 *
 *  A factor of 1 is free; any other factor costs one pass over the gradients.  If the factors are
 *  powers of two and all ranks have equal gradients, the average is bitwise identical to them,
 *  unless a value underflows or overflows.
 *
 *  Each non-empty tensor is one all_reduce, in the order of the list, in one batch: NCCL merges
 *  them into one launch.  Adjacent tensors are not merged, because addresses may differ between
 *  ranks.  If one buffer holds all gradients, pass a list with one tensor over that buffer.
 *
 *  The gradients may still be multiplied by S.  Infinity and NaN remain in the sum, so every rank
 *  detects them; mp_step_options.comm covers the other decisions.
 *  @param grads     the gradients of this rank; overwritten.
 *  @param pre,post  > 0, finite.
 *  @retval MP_ERROR_COMM a callback failed: all gradients have been multiplied by pre, and some may
 *          have been summed */
MP_API mp_status_t mp_grads_all_reduce(mp_tensor_list_t grads, const mp_comm_t *comm, float pre,
                                       float post, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_COMM_H */
