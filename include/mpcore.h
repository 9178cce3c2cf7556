/* mpcore.h: mixed-precision training kernels with a C ABI.
 *
 * The simplest useful call, D = A B with 16-bit inputs and fp32 accumulation:
 *
 *     mp_context_t context;
 *     mp_context_create(&context, NULL); // the GPU if there is one, else the CPU
 *
 *     mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, MP_FP16, MP_FP32);
 *     mp_gemm(context, &desc, A, B, NULL, D, NULL, NULL, 0, stream); // A, B, D: device, row-major
 *     mp_stream_sync(context, stream);
 *
 * A training step, without error handling:
 *
 *     mp_gemm(...);                                           // forward, per layer
 *     mp_softmax_xent(context, &xent, &tensors, stream);      // loss; tensors.dx = S * gradient
 *     mp_gemm(...);                                           // backward: dgrad, wgrad
 *     mp_scale_step(optimizer, scaler, NULL, stream);         // check, unscale, clip, update
 *
 * The headers in reading order; each can be included alone:
 *
 *     mpcore/core.h          1-3  version, status codes, log, context, device memory
 *     mpcore/tensors.h       4    mp_tensor_stats: overflow, amax, norms of many tensors
 *     mpcore/gemm.h          5    mp_gemm, mp_gemm_batched, mp_gemm_grouped, mp_gemm_ragged
 *     mpcore/conv.h          6    mp_conv2d_fprop, _dgrad, _wgrad
 *     mpcore/rnn.h           7    mp_rnn_*: LSTM, GRU and plain recurrent layers
 *     mpcore/layers.h        8    mp_pool2d_*, mp_batchnorm_*, mp_pointwise, mp_glu_*,
 *                                 mp_column_sum, mp_sum_rows, mp_strided_copy
 *     mpcore/norm.h          9    mp_norm_*: layer normalization and RMS normalization
 *     mpcore/loss.h          10   mp_softmax_xent, mp_linear_xent, mp_loss: losses and gradients
 *     mpcore/sequences.h     11   mp_embedding_*, mp_dropout, mp_rope, mp_softmax_*
 *     mpcore/attention.h     12   mp_attention_*: scaled dot-product attention
 *     mpcore/scaler.h        13   mp_scaler_*: loss scaling
 *     mpcore/optimizer.h     14   mp_optimizer_*: SGD, Adam, LAMB, NovoGrad, Adagrad, RMSProp
 *     mpcore/step.h          15   mp_scale_step: check, unscale, clip, update, rescale
 *     mpcore/comm.h          16   mp_grads_all_reduce: gradients across ranks
 *     mpcore/autocast.h      17   mp_autocast_*: assigns a type to each operation of a graph
 *     mpcore/graph.h         18   mp_graph_*: a network as a graph, trained in mixed precision
 *     mpcore/compat.h        19   loss scalers of torch, Megatron and other systems
 *     mpcore/experimental.h  20   kernel selection
 */
#ifndef MPCORE_H
#define MPCORE_H

/** @page rules Rules that hold for every function
 *
 *  The headers do not repeat these rules.
 *
 *  - **Argument order**: object, descriptor, inputs, outputs, workspace and its size, stream.
 *    In mp_*_create the new object comes first.
 *  - **Streams**: a function with a `stream` argument enqueues work and returns.  It neither
 *    allocates nor waits for the device, and can be captured into a CUDA graph.  Only mp_*_create,
 *    mp_*_destroy, mp_graph_compile, mp_graph_set_batch, mp_malloc, mp_free and functions ending in
 *    `_sync` may allocate or wait.
 *  - **Memory**: only kernels dereference "device" pointers; "host" pointers are read or written
 *    before the call returns.  The library never frees memory that it did not allocate.
 *  - **Workspaces** are device memory, 256-byte aligned, whose contents later calls do not use.  If
 *    a workspace is not documented as optional, it must have the size that the workspace query
 *    returns (MP_ERROR_WORKSPACE_TOO_SMALL).  If that size is 0, it may be NULL.
 *  - **Matrices** are row-major.  `ld` is the distance, in elements, between the starts of
 *    consecutive rows.
 *  - **Rounding**: fp32 -> fp16/bf16 rounds to nearest, ties to even.  Overflow becomes infinity:
 *    saturation would hide it from the loss scaler.  The one exception is the 16-bit copy of the
 *    weights; see MP_OPT_FLAG_MODEL_OVERFLOW and MP_OPT_FLAG_STOCHASTIC_ROUNDING.
 *  - **Determinism**: equal inputs on the same device give bitwise identical outputs.
 *  - **Threads**: several threads may use a context concurrently.  Any other object may be used by
 *    one thread and one stream at a time, because it owns scratch memory.  mp_last_error is per
 *    thread.
 *  - **Processes**: on the host target, the child of a fork may make the same calls as its parent,
 *    regardless of what other threads of the parent were doing; it computes on one thread.  On
 *    CUDA it cannot use a device that its parent has used: calls return an error, as in CUDA.
 *  - **Errors**: functions return mp_status_t; MP_SUCCESS is 0.  Errors below 40 are detected
 *    before anything is enqueued and leave all outputs unchanged.  From 40 on, outputs in device
 *    memory may be partly written.  Faults of a running kernel are reported by the next
 *    synchronization, as in CUDA.  Functions that cannot fail return their value directly.
 *  - **Null**: mp_*_destroy(NULL) does nothing.  Any other NULL argument returns
 *    MP_ERROR_INVALID_ARGUMENT unless it is documented as optional.
 *  - **Structs** that may grow begin with `struct_size`; mp_*_default() initializes them.
 *
 *  ## Stability
 *
 *  Within one major version, no function or enumerator is removed, renumbered or changed in
 *  meaning, and structs grow only at the end.  This does not apply to MP_ENABLE_EXPERIMENTAL.
 *
 *  ## Targets
 *
 *  Every kernel is compiled twice from one source: by nvcc for CUDA devices and by the host
 *  compiler for the CPU.  A context selects one of the two targets when it is created
 *  (mp_context_config.device).  The host target needs no GPU, driver or nvcc; it is meant for
 *  development, CI and small jobs.  On it, device pointers are ordinary pointers, the stream
 *  argument is ignored, and work has finished when a call returns. */

/* In reading order. */
/* clang-format off */
#include "mpcore/core.h"
#include "mpcore/tensors.h"
#include "mpcore/gemm.h"
#include "mpcore/conv.h"
#include "mpcore/rnn.h"
#include "mpcore/layers.h"
#include "mpcore/norm.h"
#include "mpcore/loss.h"
#include "mpcore/sequences.h"
#include "mpcore/attention.h"
#include "mpcore/scaler.h"
#include "mpcore/optimizer.h"
#include "mpcore/step.h"
#include "mpcore/comm.h"
#include "mpcore/autocast.h"
#include "mpcore/graph.h"
#include "mpcore/compat.h"
#include "mpcore/experimental.h"
/* clang-format on */

#endif /* MPCORE_H */
