// Task graphs, and the capture of streams into them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "softgpu/runtime/api.h"
#include "softgpu/runtime/work.h"

namespace softgpu::runtime {

struct Stream;

/// Operation of a stream or of a graph node.  Can run more than once.
struct Task {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  std::function<void()> run = nullptr;
  std::function<std::unique_ptr<Grid>()> make_grid = nullptr;  ///< for kernels, instead of `run`
  /// True for a kernel that may start before the preceding kernel of the stream has ended.
  bool begins_early = false;
  int device = 0;
  bool runs_after_fault = false;
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
  unsigned long long flags = 0;
  WorkPtr last;  ///< end of the last launch; launches do not overlap
};

struct Capture {
  Graph graph;
  cudaStreamCaptureMode mode;
  std::thread::id owner;
  Stream *origin = nullptr;
  uint64_t id = 0;
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

}  // namespace softgpu::runtime
