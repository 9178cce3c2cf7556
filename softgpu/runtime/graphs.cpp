#include "softgpu/runtime/streams.h"

#include <algorithm>
#include <unordered_set>

#include "softgpu/runtime/device.h"

namespace softgpu::runtime {

namespace {

Graph &graph_of(cudaGraph_t handle) {
  require(handle != nullptr, cudaErrorInvalidValue);
  return *reinterpret_cast<Graph *>(handle);
}

GraphExec &exec_of(cudaGraphExec_t handle) {
  require(handle != nullptr, cudaErrorInvalidValue);
  return *reinterpret_cast<GraphExec *>(handle);
}

/// Returns the nodes without successors, from index `begin` on.
std::vector<GraphNode *> leaves_of(const std::vector<std::unique_ptr<GraphNode>> &nodes,
                                   size_t begin) {
  std::vector<bool> is_leaf(nodes.size(), true);
  for (const auto &node : nodes)
    for (const GraphNode *before : node->before) is_leaf[before->index] = false;
  std::vector<GraphNode *> leaves;
  for (size_t i = begin; i < nodes.size(); i++)
    if (is_leaf[i]) leaves.push_back(nodes[i].get());
  return leaves;
}

cudaError_t instantiate(cudaGraphExec_t *handle, cudaGraph_t graph, unsigned long long flags,
                        const char *name = __builtin_FUNCTION()) {
  const auto body = [&] {
    constexpr unsigned long long kKnown =
        cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload;
    require(handle && (flags & ~kKnown) == 0, cudaErrorInvalidValue);
    const std::lock_guard lock(streams_mutex());
    auto exec = std::make_unique<GraphExec>();
    exec->graph.add_copy(graph_of(graph), {});
    *handle = reinterpret_cast<cudaGraphExec_t>(exec.release());
  };
  return call(cudaErrorMemoryAllocation, body, Needs::kDevice, name);
}

/// Returns a marker that follows all work of a graph launch.
WorkPtr submit(const GraphExec &exec, Stream &stream) {
  std::vector<WorkPtr> before = all_before(stream);
  before.push_back(exec.last);
  std::vector<WorkPtr> works;
  for (const auto &node : exec.graph.nodes) {
    const WorkPtr work = make_work(stream, node->task);
    work->device = node->task.device;
    work->stream += node->index << 32;  // branches are as independent as streams
    std::vector<WorkPtr> inside;
    for (const GraphNode *other : node->before) inside.push_back(works[other->index]);
    // A single edge between two kernels is programmatic if it was programmatic in the captured
    // stream.
    if (node->task.begins_early && inside.size() == 1) work->primary = inside[0];
    scheduler().submit(work, inside.empty() ? before : inside);
    works.push_back(work);
  }
  const WorkPtr end = make_work(stream);
  for (const GraphNode *leaf : leaves_of(exec.graph.nodes, 0)) before.push_back(works[leaf->index]);
  append(stream, end, std::move(before));
  return end;
}

/// Launches a graph.  Returns null if the stream is captured: the nodes then belong to that
/// capture.
WorkPtr launch(GraphExec &exec, cudaStream_t handle) {
  const std::lock_guard lock(streams_mutex());
  Stream &stream = stream_of(handle);
  check_legacy_is_free(stream);
  if (!stream.capture) return exec.last = submit(exec, stream);
  require(!stream.capture->is_invalid, cudaErrorStreamCaptureInvalidated);
  if (!exec.graph.nodes.empty())
    stream.front = stream.capture->graph.add_copy(exec.graph, stream.front);
  return nullptr;
}

}  // namespace

GraphNode *Graph::add(Task task, std::vector<GraphNode *> before) {
  auto node = std::make_unique<GraphNode>();
  node->task = std::move(task);
  node->before = std::move(before);
  node->index = nodes.size();
  return nodes.emplace_back(std::move(node)).get();
}

std::vector<GraphNode *> Graph::add_copy(const Graph &other,
                                         const std::vector<GraphNode *> &before) {
  const size_t begin = nodes.size();
  for (const auto &node : other.nodes) {
    std::vector<GraphNode *> inside;
    for (const GraphNode *b : node->before) inside.push_back(nodes[begin + b->index].get());
    add(node->task, inside.empty() ? before : inside);
  }
  return leaves_of(nodes, begin);
}

// ---- stream capture: operations on a captured stream become graph nodes

namespace {

/// Active captures, guarded by streams_mutex().
std::vector<std::shared_ptr<Capture>> captures;

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

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call(cudaErrorInvalidValue, [&] { delete &graph_of(graph); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return instantiate(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return instantiate(exec, graph, flags);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return call(cudaErrorInvalidValue, [&] { delete &exec_of(exec); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return call(cudaErrorLaunchOutOfResources, [&] {
    const WorkPtr end = launch(exec_of(exec), stream);
    if (end) settle(end);
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call(cudaErrorInvalidValue, [&] {
    require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed,
            cudaErrorInvalidValue);
    const std::lock_guard lock(streams_mutex());
    begin(stream_of(stream), mode);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  return call(cudaErrorInvalidValue, [&] {
    require(graph, cudaErrorInvalidValue);
    *graph = nullptr;
    const std::lock_guard lock(streams_mutex());
    *graph = reinterpret_cast<cudaGraph_t>(end(stream_of(stream)));
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
  return get(status, [&] {
    const std::lock_guard lock(streams_mutex());
    return status_of(stream_of(stream));
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  return call(cudaErrorInvalidValue, [&] {
    require(mode, cudaErrorInvalidValue);
    std::swap(*mode, mode_of_thread);
  });
}

}  // extern "C"
