/* mpcore_mpi.h: MPI communicator (mp_comm_t) for programs on the host target.
 *
 *     MPI_Init(&argc, &argv);
 *     mp_mpi_t mpi;
 *     mp_comm_t comm = mp_comm_default();
 *     int code = mp_mpi_init(&mpi, MPI_COMM_WORLD, &comm); // MPI_SUCCESS or an MPI error code
 *     mp_grads_all_reduce(grads, &comm, 1.0f / comm.world_size, 1.0f, NULL);
 *     ...
 *     mp_mpi_free(&mpi);
 *     MPI_Finalize();
 *
 * Copy this file into your program.  It is C99 and C++, and needs only MPI and mpcore.
 *
 * It supports host memory only: pointers are passed to MPI directly, and streams are ignored.  On
 * GPUs use mp_comm_init_nccl.  Callbacks block until the operation is complete.
 *
 * MPI has no 16-bit floating-point types: they are sent as uint16_t.  Custom operations
 * add in fp32 and round every partial sum to the 16-bit type, to nearest even.
 *
 * Callbacks return MPI error codes (see MPI_Error_string): the duplicated communicator uses
 * MPI_ERRORS_RETURN, independent of the error handler of the original one.
 */
#ifndef MPCORE_MPI_H
#define MPCORE_MPI_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mpcore.h"

/* ---------------------------------------------------------------- 16-bit floats */

static inline float mp_mpi_float_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint32_t mp_mpi_bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float mp_mpi_from_bf16(uint16_t x) {
  return mp_mpi_float_from_bits((uint32_t)x << 16);
}

static inline uint16_t mp_mpi_to_bf16(float x) {
  const uint32_t bits = mp_mpi_bits_of(x);
  if (x != x) return (uint16_t)(bits >> 16 | 0x40); /* a quiet NaN */
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float mp_mpi_from_fp16(uint16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000) << 16, magnitude = x & 0x7fff;
  /* Reinterpreted as fp32; 2^112 corrects the exponent bias exactly, for subnormals too. */
  const float value = mp_mpi_float_from_bits(magnitude << 13) * mp_mpi_float_from_bits(0x77800000);
  const uint32_t bits = magnitude < 0x7c00 ? mp_mpi_bits_of(value) : 0x7f800000 | magnitude << 13;
  return mp_mpi_float_from_bits(sign | bits);
}

static inline uint16_t mp_mpi_to_fp16(float x) {
  const uint32_t bits = mp_mpi_bits_of(x), magnitude = bits & 0x7fffffff;
  const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN */
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* >= 65520: infinity */
  if (magnitude < 0x38800000) {
    /* Below 2^-14 the unit in the last place is 2^-24, as in fp32 between 0.5 and 1. */
    const float shifted = mp_mpi_float_from_bits(magnitude) + 0.5f;
    return (uint16_t)(sign | (mp_mpi_bits_of(shifted) - 0x3f000000));
  }
  return (uint16_t)(sign | ((magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13));
}

/* X(dtype, name) for the types that mp_mpi_from_NAME and mp_mpi_to_NAME convert. */
#define MP_MPI_HALF_TYPES(X) X(MP_FP16, fp16) X(MP_BF16, bf16)

/* ---------------------------------------------------------------- operations */

#define MP_MPI_FIELDS(dtype, name) MPI_Op sum_##name, max_##name;
typedef struct mp_mpi {
  MPI_Comm comm; /* a duplicate, separate from the program's messages */
  MP_MPI_HALF_TYPES(MP_MPI_FIELDS)
} mp_mpi_t;
#undef MP_MPI_FIELDS

/* Defines an MPI operation: inout[i] = combined(in[i], inout[i]). */
#define MP_MPI_OPERATION(name, from, to, combined)                                     \
  static inline void name(void *in, void *inout, int *count, MPI_Datatype *datatype) { \
    const uint16_t *x = (const uint16_t *)in;                                          \
    uint16_t *y = (uint16_t *)inout;                                                   \
    (void)datatype;                                                                    \
    for (int i = 0; i < *count; i++) {                                                 \
      const float a = from(x[i]), b = from(y[i]);                                      \
      y[i] = to(combined);                                                             \
    }                                                                                  \
  }
#define MP_MPI_OPERATIONS(dtype, name)                                             \
  MP_MPI_OPERATION(mp_mpi_sum_##name, mp_mpi_from_##name, mp_mpi_to_##name, a + b) \
  MP_MPI_OPERATION(mp_mpi_max_##name, mp_mpi_from_##name, mp_mpi_to_##name, a > b ? a : b)
MP_MPI_HALF_TYPES(MP_MPI_OPERATIONS)
#undef MP_MPI_OPERATIONS
#undef MP_MPI_OPERATION

/* ---------------------------------------------------------------- communicator */

static inline int mp_mpi_all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                                    mp_reduce_op_t op, mp_stream_t stream, void *user) {
  const mp_mpi_t *mpi = (const mp_mpi_t *)user;
  const int is_max = op == MP_REDUCE_MAX, is_fp32 = dtype == MP_FP32;
  const size_t most = (size_t)1 << 30; /* MPI counts are int */
  MPI_Op operation = is_max ? MPI_MAX : MPI_SUM;
#define MP_MPI_CHOOSE(number, name) \
  if (dtype == number) operation = is_max ? mpi->max_##name : mpi->sum_##name;
  MP_MPI_HALF_TYPES(MP_MPI_CHOOSE)
#undef MP_MPI_CHOOSE
  (void)stream;
  for (size_t begin = 0; begin < count; begin += most) {
    const size_t left = count - begin, offset = begin * (is_fp32 ? 4 : 2);
    void *to = (char *)recv + offset;
    const void *from = send == recv ? MPI_IN_PLACE : (const char *)send + offset;
    const int code = MPI_Allreduce(from, to, (int)(left < most ? left : most),
                                   is_fp32 ? MPI_FLOAT : MPI_UINT16_T, operation, mpi->comm);
    if (code != MPI_SUCCESS) return code;
  }
  return 0;
}

/** Initializes *mpi and *comm from an MPI communicator.  Collective over `parent`.
 *  @param mpi   host, out; must stay at its address while *comm is in use.
 *  @param comm  host, in and out; initialize it with mp_comm_default.
 *  @return MPI_SUCCESS (0) or an MPI error code; after an error there is nothing to free. */
static inline int mp_mpi_init(mp_mpi_t *mpi, MPI_Comm parent, mp_comm_t *comm) {
  int rank, size;
  int code = MPI_Comm_dup(parent, &mpi->comm);
  if (code != MPI_SUCCESS) return code;
  MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(mpi->comm, &rank);
  MPI_Comm_size(mpi->comm, &size);
#define MP_MPI_CREATE(dtype, name)                       \
  MPI_Op_create(mp_mpi_sum_##name, 1, &mpi->sum_##name); \
  MPI_Op_create(mp_mpi_max_##name, 1, &mpi->max_##name);
  MP_MPI_HALF_TYPES(MP_MPI_CREATE)
#undef MP_MPI_CREATE
  comm->rank = rank;
  comm->world_size = size;
  comm->all_reduce = mp_mpi_all_reduce;
  comm->user = mpi;
  return MPI_SUCCESS;
}

/** Frees the communicator and the operations.  Call it before MPI_Finalize. */
static inline void mp_mpi_free(mp_mpi_t *mpi) {
#define MP_MPI_FREE(dtype, name) \
  MPI_Op_free(&mpi->sum_##name); \
  MPI_Op_free(&mpi->max_##name);
  MP_MPI_HALF_TYPES(MP_MPI_FREE)
#undef MP_MPI_FREE
  MPI_Comm_free(&mpi->comm);
}

#endif
