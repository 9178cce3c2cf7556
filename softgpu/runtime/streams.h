// Streams and their work.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "softgpu/runtime/api.h"
#include "softgpu/runtime/work.h"

namespace softgpu::runtime {

struct Stream;

/// Operation of a stream or of a graph node.  Can run more than once.
struct Task {
  std::function<void()> run = nullptr;
  std::function<std::unique_ptr<Grid>()> make_grid = nullptr;  ///< for kernels, instead of `run`
  /// True for a kernel that may start before the preceding kernel of the stream has ended.
  bool begins_early = false;
  int device = 0;
  bool runs_after_fault = false;
  bool calls_host = false;  ///< runs a host function of the program
};

struct GraphNode {
  Task task;
  std::vector<GraphNode *> before;
  size_t index = 0;  ///< in the graph; every node follows only nodes with lower indices
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;

  GraphNode *add(Task, std::vector<GraphNode *> before);
  /// Adds a copy of another graph whose roots follow `before`.  Returns its leaves.
  std::vector<GraphNode *> add_copy(const Graph &, const std::vector<GraphNode *> &before);
};

/// Executable copy of a graph.
struct GraphExec {
  Graph graph;
  WorkPtr last;  ///< end of the last launch; launches do not overlap
};

struct Capture {
  Graph graph;
  cudaStreamCaptureMode mode;
  std::thread::id owner;
  Stream *origin = nullptr;
  bool is_invalid = false, is_finished = false;
};

// The following functions require that streams_mutex() is held.

/// Adds a task to the graph into which the stream is captured.
void capture_task(Stream &, Task);
/// Fails and invalidates captures if their mode (cudaStreamCaptureMode) forbids the calling thread
/// to wait for other streams or to change them.
void check_no_capture_forbids();
/// Fails and invalidates captures if `stream` is the legacy stream and would wait for a captured
/// stream.
void check_legacy_is_free(const Stream &);
/// Fails and invalidates the capture if the stream is captured.
void check_not_captured(Stream &);
[[noreturn]] void fail_capture(Capture &, cudaError_t);

/// Locks streams_mutex() and calls check_no_capture_forbids().
void require_no_capture();

struct Stream {
  int device = 0;
  /// Default stream that synchronizes with all blocking streams.
  bool is_legacy = false;
  bool is_blocking = false;  ///< synchronizes with the legacy stream
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  WorkPtr last;  ///< last work in the stream

  std::shared_ptr<Capture> capture;  ///< active capture
  std::vector<GraphNode *> front;    ///< nodes that the next captured node follows
};

/// Guards all streams, events, captures and graphs.  Must not be held while waiting for work.
std::mutex &streams_mutex();

// The following functions require that the mutex is held.

/// Returns the stream of a handle.  Default handles depend on the calling thread and its device.
Stream &stream_of(cudaStream_t);
/// Creates work for a stream; without a task, a marker.
WorkPtr make_work(const Stream &, const Task & = {});
/// Returns the predecessors of work that is appended to the stream now.
std::vector<WorkPtr> all_before(Stream &);
/// Appends work with the predecessors `before`, usually from all_before().
void append(Stream &, const WorkPtr &work, std::vector<WorkPtr> before);
/// Returns all existing streams.
std::vector<Stream *> all_streams();

// The following functions lock the mutex.

/// Appends a task to a stream.  If the stream is captured, adds a graph node instead and returns
/// null.
WorkPtr enqueue(cudaStream_t, Task);
/// Ends a call that submitted work: some of the work may run before the call returns (work.h).
void settle(const WorkPtr &last);
/// Returns whether the stream is being captured.
bool is_captured(cudaStream_t);

}  // namespace softgpu::runtime
