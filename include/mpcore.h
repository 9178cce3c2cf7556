/* mpcore.h - mixed-precision training kernels behind a C ABI.
 *
 * The simplest useful call, D = A B with 16-bit inputs and fp32 sums:
 *
 *     mp_context_t context;
 *     mp_context_create(&context, NULL); // the GPU, or the CPU where there is none
 *
 *     mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, MP_FP16, MP_FP32);
 *     mp_gemm(context, &desc, A, B, NULL, D, NULL, NULL, 0, stream); // A, B, D: device, row-major
 *     mp_stream_sync(context, stream);
 *
 * A training step, without error handling:
 *
 *     mp_gemm(...);                                           // forward, per layer
 *     mp_softmax_xent(context, &xent, logits, labels,         // loss; dlogits = S * gradient
 *                     mp_scaler_scale(scaler), row_loss, loss, correct, dlogits, stream);
 *     mp_gemm(...);                                           // backward: dgrad, wgrad
 *     mp_scale_step(optimizer, scaler, NULL, stream);         // all the rest
 *
 * The headers in reading order, each of which can be included alone:
 *
 *     mpcore/core.h          1-3  version, statuses, log, context, device memory
 *     mpcore/gemm.h          4    mp_gemm, mp_gemm_batched, mp_gemm_grouped, mp_gemm_ragged
 *     mpcore/conv.h          5    mp_conv2d_fprop, _dgrad, _wgrad
 *     mpcore/tensors.h       6    mp_check_nonfinite, mp_amax, mp_l2norm, mp_inspect, mp_tensor_stats
 *     mpcore/scaler.h        7    mp_scaler_*: the loss scale
 *     mpcore/optimizer.h     8    mp_optimizer_*: SGD, Adam, LAMB, NovoGrad, Adagrad, RMSProp
 *     mpcore/comm.h          9    mp_grad_all_reduce: between ranks
 *     mpcore/step.h          10   mp_scale_step: check, unscale, clip, update, rescale
 *     mpcore/autocast.h      11   mp_autocast_*: which type each operation of a graph runs in
 *     mpcore/layers.h        12   mp_softmax_xent: the loss and where backward starts
 *                            13   mp_pool2d_*, mp_batchnorm_*: around a convolution; mp_pointwise
 *     mpcore/rnn.h           14   mp_rnn_*: LSTM, GRU and plain recurrent layers
 *     mpcore/sequences.h     15   mp_embedding_*, mp_dropout: around sequences
 *     mpcore/graph.h         16   mp_graph_*: a network described once, "mixed" by one more call
 *     mpcore/compat.h             loss scalers of torch, Megatron and others
 *     mpcore/experimental.h       which kernel runs
 */
#ifndef MPCORE_H
#define MPCORE_H

/** @page rules Rules that hold for every function
 *
 *  So that they are not repeated below.
 *
 *  - **Argument order**: object acted on, descriptor, inputs, outputs, workspace and its size,
 *    stream.  In mp_*_create the new object comes first.
 *  - **Streams**: a function with a `stream` argument enqueues work and returns.  It never
 *    allocates, never waits for the device, and may be captured into a CUDA graph.  Only
 *    mp_*_create, mp_*_destroy, mp_graph_compile, mp_graph_set_batch, mp_malloc, mp_free and
 *    functions ending in `_sync` may allocate or wait.
 *  - **Memory**: "device" pointers are dereferenced by kernels only; "host" pointers are read or
 *    written before the call returns.  The library never frees memory it did not allocate.
 *  - **Matrices** are row-major.  `ld` is the distance, in elements, between the starts of two
 *    consecutive rows.
 *  - **Rounding**: fp32 -> fp16/bf16 rounds to nearest, ties to even, and lets overflow become
 *    infinity: saturating would hide the overflow from the loss scaler.  One exception: the 16-bit
 *    copy of the weights, see MP_OPT_MODEL_OVERFLOW and MP_OPT_STOCHASTIC_ROUNDING.
 *  - **Determinism**: equal inputs on the same device give bitwise equal outputs.
 *  - **Threads**: a context may be used by several threads at once.  Any other object belongs to
 *    one thread and one stream at a time, because it owns its scratch memory.  mp_last_error is per
 *    thread.
 *  - **Processes**: on the host target the child of a fork may call what its parent may, whatever other threads of
 *    the parent were in at that moment; it computes on one thread.  On CUDA it can use no device that its parent has
 *    used: calls return an error, as those of CUDA do.
 *  - **Errors**: mp_status_t; MP_SUCCESS is 0.  Errors below 40 are detected before anything is
 *    enqueued, and leave all outputs untouched; from 40 on, outputs in device memory may be partly
 *    written.  Faults inside a running kernel surface at the next synchronisation, as always in CUDA.
 *    Functions that cannot fail return their value directly.
 *  - **Null**: mp_*_destroy(NULL) does nothing.  Any other NULL not described as optional is
 *    MP_ERROR_INVALID_ARGUMENT.
 *  - **Structs** begin with `struct_size`; mp_*_default() makes one.  mpcore/core.h has the rest.
 *
 *  ## Stability
 *
 *  Within one major version no function or enumerator is removed, renumbered or changed in meaning,
 *  and structs only grow at the end.  The part under MP_ENABLE_EXPERIMENTAL carries no such promise.
 *
 *  ## Targets
 *
 *  Every kernel is compiled twice from one source: by nvcc for CUDA devices and by the host compiler
 *  for the CPU.  A context picks one of the two when it is created (mp_context_config.device).  The
 *  host target needs no GPU, no driver and no nvcc; it is for development, CI and small jobs.  There,
 *  device pointers are ordinary pointers, the stream argument is ignored, and a call has finished when
 *  it returns. */

/* In reading order. */
/* clang-format off */
#include "mpcore/core.h"
#include "mpcore/gemm.h"
#include "mpcore/conv.h"
#include "mpcore/tensors.h"
#include "mpcore/scaler.h"
#include "mpcore/optimizer.h"
#include "mpcore/comm.h"
#include "mpcore/step.h"
#include "mpcore/autocast.h"
#include "mpcore/layers.h"
#include "mpcore/rnn.h"
#include "mpcore/sequences.h"
#include "mpcore/graph.h"
#include "mpcore/compat.h"
#include "mpcore/experimental.h"
/* clang-format on */

#endif /* MPCORE_H */
