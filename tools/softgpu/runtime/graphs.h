// Graphs of tasks, and streams that are captured into them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tools/softgpu/runtime/api.h"
#include "tools/softgpu/runtime/work.h"

namespace softgpu::runtime {

struct Stream;

/// What a stream does or a node of a graph stands for.  It may run more than once.
struct Task {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  std::function<void()> run = nullptr;
  std::function<std::unique_ptr<Grid>()> make_grid = nullptr;  ///< of a kernel, in place of `run`
  /// A kernel that may begin before the one ahead of it in the stream has ended, if it is a kernel.
  bool begins_early = false;
  int device = 0;
  bool runs_after_fault = false;
};

struct GraphNode {
  Task task;
  std::vector<GraphNode *> before;
  size_t index = 0;  ///< in the graph; nodes come after those of lower index
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;

  GraphNode *add(Task, std::vector<GraphNode *> before);
  /// Adds the nodes of another one, the first of them behind `before`; returns those that nothing
  /// comes after.
  std::vector<GraphNode *> add_copy(const Graph &, const std::vector<GraphNode *> &before);
};

/// A graph that can be launched: a copy.
struct GraphExec {
  Graph graph;
  unsigned long long flags = 0;
  WorkPtr last;  ///< the end of its last launch: it does not overlap itself
};

struct Capture {
  Graph graph;
  cudaStreamCaptureMode mode;
  std::thread::id owner;
  Stream *origin = nullptr;
  uint64_t id = 0;
  bool is_invalid = false, is_finished = false;
};

// These are called with streams_mutex() held.

/// Makes a task a node of the graph that the stream is captured into.
void capture_task(Stream &, Task);
/// Fails, and makes captures invalid, when the calling thread must not do what may wait for, or
/// change, what other streams do (cudaStreamCaptureMode).
void check_no_capture_forbids();
/// Fails, and makes captures invalid, if this is the legacy stream, and one is captured for which
/// it would wait.
void check_legacy_is_free(const Stream &);
/// Fails, and makes the capture invalid, if the stream is captured.
void check_not_captured(Stream &);
[[noreturn]] void fail_capture(Capture &, cudaError_t);

/// Does the same as check_no_capture_forbids(), and locks the mutex for it.
void require_no_capture();

}  // namespace softgpu::runtime
