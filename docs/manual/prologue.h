/* What the pieces of C in the guide take as given.  tools/check_docs compiles each behind this. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"

extern void check(mp_status_t status); /* stops the program with mp_last_error */

extern mp_context_t context;
extern mp_stream_t stream;
extern mp_scaler_t scaler;
extern mp_optimizer_t optimizer, a, b;
extern mp_tensor_list_t grads, masters, models, sums, grads_of_b;

extern int64_t rows, in, out;
extern float *device_norm, *device_skipped, *pinned_skipped;

extern void forward_backward(mp_stream_t stream);
extern void next_batch(mp_stream_t stream);

/* Of cuda_runtime_api.h, which need not be there. */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef enum { cudaStreamCaptureModeThreadLocal = 1 } cudaStreamCaptureMode;
typedef int cudaError_t;
extern cudaGraphExec_t step;
extern cudaError_t cudaStreamCreate(cudaStream_t *stream);
extern cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
extern cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
extern cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                        unsigned long long flags);
extern cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
