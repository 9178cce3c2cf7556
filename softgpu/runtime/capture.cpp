// Stream capture: operations on a captured stream become graph nodes.
#include <algorithm>
#include <unordered_set>

#include "softgpu/runtime/graphs.h"
#include "softgpu/runtime/streams.h"

namespace softgpu::runtime {

namespace {

/// Active captures, guarded by streams_mutex().
std::vector<std::shared_ptr<Capture>> captures;
uint64_t num_captures = 0;

thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

bool forbids_unsafe_calls(const Capture &capture) {
  if (capture.is_invalid || mode_of_thread == cudaStreamCaptureModeRelaxed ||
      capture.mode == cudaStreamCaptureModeRelaxed)
    return false;
  if (capture.owner == std::this_thread::get_id()) return true;
  return mode_of_thread == cudaStreamCaptureModeGlobal &&
         capture.mode == cudaStreamCaptureModeGlobal;
}

void begin(Stream &stream, cudaStreamCaptureMode mode) {
  require(!stream.is_legacy, cudaErrorStreamCaptureUnsupported);
  require(!stream.capture, cudaErrorIllegalState);
  stream.capture = std::make_shared<Capture>();
  stream.capture->mode = mode;
  stream.capture->owner = std::this_thread::get_id();
  stream.capture->origin = &stream;
  stream.capture->id = ++num_captures;
  stream.front.clear();
  captures.push_back(stream.capture);
}

/// Returns whether the next node of the origin stream would follow every node, so that all forked
/// streams have joined.
bool is_joined(const Capture &capture) {
  std::unordered_set<const GraphNode *> joined;
  std::vector<const GraphNode *> open(capture.origin->front.begin(), capture.origin->front.end());
  while (!open.empty()) {
    const GraphNode *const node = open.back();
    open.pop_back();
    if (!joined.insert(node).second) continue;
    open.insert(open.end(), node->before.begin(), node->before.end());
  }
  return joined.size() == capture.graph.nodes.size();
}

/// Ends a capture and returns the graph, or fails.  Both leave the streams uncaptured.
Graph *end(Stream &stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  require(capture != nullptr, cudaErrorIllegalState);
  require(capture->origin == &stream, cudaErrorStreamCaptureUnmatched);
  require(
      capture->mode == cudaStreamCaptureModeRelaxed || capture->owner == std::this_thread::get_id(),
      cudaErrorStreamCaptureWrongThread);
  const bool joined = is_joined(*capture);
  for (Stream *other : all_streams()) {
    if (other->capture != capture) continue;
    other->capture = nullptr;
    other->front.clear();
  }
  std::erase(captures, capture);
  capture->is_finished = true;
  require(!capture->is_invalid, cudaErrorStreamCaptureInvalidated);
  require(joined, cudaErrorStreamCaptureUnjoined);
  return new Graph(std::move(capture->graph));
}

/// Returns the captures of streams that the legacy stream `stream` would wait for; empty for other
/// streams.
std::vector<Capture *> captures_before(const Stream &stream) {
  std::vector<Capture *> captures;
  if (!stream.is_legacy) return captures;
  for (const Stream *other : all_streams())
    if (other->capture && other->is_blocking && other->device == stream.device)
      captures.push_back(other->capture.get());
  return captures;
}

/// Returns the capture status without invalidating the capture.
cudaStreamCaptureStatus status_of(const Stream &stream) {
  require(captures_before(stream).empty(), cudaErrorStreamCaptureImplicit);
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->is_invalid ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
}

}  // namespace

void fail_capture(Capture &capture, cudaError_t error) {
  capture.is_invalid = true;
  throw ApiError{error};
}

void capture_task(Stream &stream, Task task) {
  require(!stream.capture->is_invalid, cudaErrorStreamCaptureInvalidated);
  stream.front = {stream.capture->graph.add(std::move(task), stream.front)};
}

void check_no_capture_forbids() {
  bool is_forbidden = false;
  for (const auto &capture : captures) {
    if (!forbids_unsafe_calls(*capture)) continue;
    capture->is_invalid = true;
    is_forbidden = true;
  }
  require(!is_forbidden, cudaErrorStreamCaptureUnsupported);
}

void check_legacy_is_free(const Stream &stream) {
  const std::vector<Capture *> in_the_way = captures_before(stream);
  for (Capture *capture : in_the_way) capture->is_invalid = true;
  require(in_the_way.empty(), cudaErrorStreamCaptureImplicit);
}

void check_not_captured(Stream &stream) {
  if (stream.capture) fail_capture(*stream.capture, cudaErrorStreamCaptureUnsupported);
}

void require_no_capture() {
  const std::lock_guard lock(streams_mutex());
  check_no_capture_forbids();
}

}  // namespace softgpu::runtime

using namespace softgpu::runtime;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", cudaErrorInvalidValue, [&] {
    require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed,
            cudaErrorInvalidValue);
    const std::lock_guard lock(streams_mutex());
    begin(stream_of(stream), mode);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  return call("cudaStreamEndCapture", cudaErrorInvalidValue, [&] {
    require(graph, cudaErrorInvalidValue);
    *graph = nullptr;
    const std::lock_guard lock(streams_mutex());
    *graph = reinterpret_cast<cudaGraph_t>(end(stream_of(stream)));
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
  return call("cudaStreamIsCapturing", cudaErrorInvalidValue, [&] {
    require(status, cudaErrorInvalidValue);
    const std::lock_guard lock(streams_mutex());
    Stream &s = stream_of(stream);
    *status = status_of(s);
  });
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **front, const cudaGraphEdgeData **edges,
                                     size_t *num_front) {
  return call("cudaStreamGetCaptureInfo", cudaErrorInvalidValue, [&] {
    require(status, cudaErrorInvalidValue);
    const std::lock_guard lock(streams_mutex());
    Stream &s = stream_of(stream);
    *status = status_of(s);
    if (*status != cudaStreamCaptureStatusActive) return;
    if (id) *id = s.capture->id;
    if (graph) *graph = reinterpret_cast<cudaGraph_t>(&s.capture->graph);
    if (front) *front = reinterpret_cast<const cudaGraphNode_t *>(s.front.data());
    if (edges) *edges = nullptr;
    if (num_front) *num_front = s.front.size();
  });
}
#endif

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  return call("cudaThreadExchangeStreamCaptureMode", cudaErrorInvalidValue, [&] {
    require(mode, cudaErrorInvalidValue);
    std::swap(*mode, mode_of_thread);
  });
}

}  // extern "C"
