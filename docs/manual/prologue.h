/* prologue.h: declarations used by the C examples of the guide.
 *
 * tools/check/check_docs includes this file before each example, then compiles it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"

extern void check(mp_status_t status); /* prints mp_last_error and exits on failure */
#define CHECK(call) check(call)

extern mp_context_t context;
extern mp_stream_t stream;
extern mp_scaler_t scaler;
extern mp_optimizer_t optimizer, a, b;
extern mp_tensor_list_t grads, masters, models, sums, grads_of_b;

extern void forward_backward(mp_stream_t stream);
extern void my_kernel(const float *found_inf, mp_stream_t stream);
extern void my_host_optimizer(void);

extern int32_t batch, timesteps, input, hidden;
extern const mp_rnn_weights_t *weights;
extern const mp_rnn_weight_grads_t *weight_grads;
extern const int32_t *lengths;
extern const void *x, *dy;
extern void *y, *dx;
extern float *amax;
extern mp_rnn_desc_t desc;

extern const void *table;
extern const int32_t *indices;
extern int32_t vocabulary;
extern void *dtable, *workspace;
extern const uint64_t *counter;

extern int64_t rows, in, out, n, m, k;
extern const void *A, *B;
extern void *D;
extern float *device_amax, *device_norm, *device_skipped, *pinned_norm;

extern mp_comm_t comm;
extern void *nccl_comm;
extern int your_library_all_reduce(void *user, const void *send, void *recv, size_t count,
                                   mp_dtype_t dtype, mp_reduce_op_t op, mp_stream_t stream);

/* Declared as in cuda_runtime_api.h, so that no CUDA headers are needed. */
typedef struct CUgraphExec_st *cudaGraphExec_t;
extern cudaGraphExec_t step;
extern int cudaGraphLaunch(cudaGraphExec_t exec, mp_stream_t stream);
