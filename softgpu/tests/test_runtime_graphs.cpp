// Captured streams and graphs.
#include <thread>

#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

namespace {

/// Ends a capture that must have failed.
cudaError_t fail_capture(cudaStream_t stream) {
  auto graph = reinterpret_cast<cudaGraph_t>(1);
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  CHECK(graph == nullptr);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  CHECK(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusNone);
  return error;
}

/// Makes `to` wait for the current work of `from`.
void join(cudaStream_t to, cudaStream_t from) {
  const cudaEvent_t event = make_event();
  REQUIRE(cudaEventRecord(event, from) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(to, event, 0) == cudaSuccess);
}

}  // namespace

PASSES_IN_EVERY_ORDER("a captured sequence runs at its launch") {
  const Kernels kernels;
  uint32_t *const words = device_words(), *const copies = device_words();
  const cudaStream_t stream = begin_capture();
  {
    uint32_t value = kNew;  // out of scope when the graph runs
    REQUIRE(kernels.set(words, value, stream) == cudaSuccess);
    value = 0;
  }
  REQUIRE(kernels.increment(words, stream) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(copies, words, kBytes, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(words, 0, kBytes, stream) == cudaSuccess);
  const cudaGraph_t graph = end_capture(stream);
  require_words(words, kOld);

  const cudaGraphExec_t exec = instantiate(graph);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  for (int i = 0; i < 3; i++) REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  require_words(copies, kNew + 1);
  require_words(words, 0);
}

PASSES_IN_EVERY_ORDER("launches of a graph do not overlap") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  const cudaStream_t stream = begin_capture(), other = make_stream();
  REQUIRE(kernels.increment(words, stream) == cudaSuccess);
  const cudaGraphExec_t exec = instantiate(end_capture(stream));
  for (int i = 0; i < 4; i++) REQUIRE(cudaGraphLaunch(exec, i % 2 ? other : stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(other) == cudaSuccess);
  CHECK(words[0] == kOld + 4);
}

PASSES_IN_EVERY_ORDER("a fork and a join") {
  const Kernels kernels;
  uint32_t *const made = device_words(), *const left = device_words(),
                  *const right = device_words(), *const both = device_words();
  const cudaStream_t stream = begin_capture(), forked = make_stream();
  REQUIRE(kernels.set(made, kNew, stream) == cudaSuccess);
  join(forked, stream);
  REQUIRE(kernels.copy(left, made, stream) == cudaSuccess);
  REQUIRE(kernels.copy(right, made, forked) == cudaSuccess);
  join(stream, forked);
  REQUIRE(kernels.copy(both, right, stream) == cudaSuccess);
  REQUIRE(kernels.increment(both, stream) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(instantiate(end_capture(stream)), stream) == cudaSuccess);
  require_words(left, kNew);
  require_words(right, kNew);
  require_words(both, kNew + 1);
}

PASSES_IN_EVERY_ORDER("a graph is ordered with the other work of its stream") {
  const Kernels kernels;
  uint32_t *const words = device_words(), *const result = device_words();
  const cudaStream_t stream = begin_capture();
  REQUIRE(kernels.increment(words, stream) == cudaSuccess);
  const cudaGraphExec_t exec = instantiate(end_capture(stream));
  REQUIRE(kernels.set(words, kNew, stream) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  REQUIRE(kernels.copy(result, words, stream) == cudaSuccess);
  require_words(result, kNew + 1);
}

PASSES_IN_EVERY_ORDER("a graph launched in a capture") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  cudaStream_t stream = begin_capture();
  REQUIRE(kernels.increment(words, stream) == cudaSuccess);
  const cudaGraphExec_t one = instantiate(end_capture(stream));
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  REQUIRE(kernels.set(words, kNew, stream) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(one, stream) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(one, stream) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(instantiate(end_capture(stream)), stream) == cudaSuccess);
  require_words(words, kNew + 2);
}

PASSES_IN_EVERY_ORDER("forbidden calls invalidate a capture") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  void *memory = nullptr;
  const cudaEvent_t event = make_event();
  const std::vector<cudaError_t (*)(cudaStream_t, void *)> unsafe = {
      [](cudaStream_t, void *p) { return cudaMalloc(static_cast<void **>(p), 16); },
      [](cudaStream_t, void *) { return cudaFree(nullptr); },
      [](cudaStream_t, void *p) { return cudaMallocHost(static_cast<void **>(p), 16); },
      [](cudaStream_t, void *) { return cudaDeviceSynchronize(); },
      [](cudaStream_t s, void *) { return cudaStreamSynchronize(s); },
      [](cudaStream_t s, void *) { return cudaStreamQuery(s); },
  };
  for (const auto &function : unsafe) {
    const cudaStream_t stream = begin_capture();
    CHECK(function(stream, &memory) == cudaErrorStreamCaptureUnsupported);
    CHECK(kernels.set(words, kNew, stream) == cudaErrorStreamCaptureInvalidated);
    CHECK(fail_capture(stream) == cudaErrorStreamCaptureInvalidated);
  }
  const cudaStream_t stream = begin_capture();
  CHECK(cudaEventQuery(event) == cudaErrorStreamCaptureUnsupported);
  CHECK(fail_capture(stream) == cudaErrorStreamCaptureInvalidated);
  require_words(words, kOld);
}

PASSES_IN_EVERY_ORDER("capture modes") {
  void *memory = nullptr;
  const auto in_other_thread = [&] {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = cudaMalloc(&memory, 16); }).join();
    return error;
  };
  cudaStream_t stream = begin_capture(cudaStreamCaptureModeRelaxed);
  CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
  end_capture(stream);

  stream = begin_capture(cudaStreamCaptureModeThreadLocal);
  CHECK(in_other_thread() == cudaSuccess);
  CHECK(cudaMalloc(&memory, 16) == cudaErrorStreamCaptureUnsupported);
  CHECK(fail_capture(stream) == cudaErrorStreamCaptureInvalidated);

  stream = begin_capture(cudaStreamCaptureModeGlobal);
  CHECK(in_other_thread() == cudaErrorStreamCaptureUnsupported);
  CHECK(fail_capture(stream) == cudaErrorStreamCaptureInvalidated);

  stream = begin_capture(cudaStreamCaptureModeGlobal);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(mode == cudaStreamCaptureModeGlobal);
  CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
  end_capture(stream);
}

PASSES_IN_EVERY_ORDER("capture errors") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) ==
        cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(make_stream(), &graph) == cudaErrorIllegalState);

  cudaStream_t stream = begin_capture();  // second capture of the stream
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaErrorIllegalState);
  end_capture(stream);

  stream = begin_capture();  // the forked stream has not joined
  const cudaStream_t forked = make_stream();
  REQUIRE(kernels.set(words, 1, stream) == cudaSuccess);
  join(forked, stream);
  REQUIRE(kernels.set(words, 2, forked) == cudaSuccess);
  CHECK(cudaStreamEndCapture(forked, &graph) == cudaErrorStreamCaptureUnmatched);
  CHECK(fail_capture(stream) == cudaErrorStreamCaptureUnjoined);

  stream = begin_capture();  // event recorded outside the capture
  const cudaEvent_t outside = make_event();
  REQUIRE(cudaEventRecord(outside, forked) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(stream, outside, 0) == cudaErrorStreamCaptureIsolation);
  CHECK(fail_capture(stream) == cudaErrorStreamCaptureInvalidated);

  // The host synchronizes with an event recorded in the capture.
  stream = begin_capture(cudaStreamCaptureModeRelaxed);
  const cudaEvent_t inside = make_event();
  REQUIRE(cudaEventRecord(inside, stream) == cudaSuccess);
  CHECK(cudaEventSynchronize(inside) == cudaErrorCapturedEvent);
  CHECK(fail_capture(stream) == cudaErrorStreamCaptureInvalidated);

  stream = begin_capture(cudaStreamCaptureModeRelaxed);  // dependency between two captures
  const cudaStream_t other = begin_capture(cudaStreamCaptureModeRelaxed);
  REQUIRE(cudaEventRecord(inside, stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(other, inside, 0) == cudaErrorStreamCaptureMerge);
  CHECK(fail_capture(stream) == cudaErrorStreamCaptureInvalidated);
  CHECK(fail_capture(other) == cudaErrorStreamCaptureInvalidated);

  stream = begin_capture(cudaStreamCaptureModeRelaxed, cudaStreamDefault);  // legacy stream
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CHECK(cudaStreamIsCapturing(nullptr, &status) == cudaErrorStreamCaptureImplicit);
  REQUIRE(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive);
  CHECK(kernels.set(words, 3, nullptr) == cudaErrorStreamCaptureImplicit);
  CHECK(fail_capture(stream) == cudaErrorStreamCaptureInvalidated);

  stream = begin_capture(cudaStreamCaptureModeGlobal);  // capture ended by another thread
  cudaError_t error = cudaSuccess;
  std::thread([&] { error = cudaStreamEndCapture(stream, &graph); }).join();
  CHECK(error == cudaErrorStreamCaptureWrongThread);
  end_capture(stream);
  require_words(words, kOld);
}
