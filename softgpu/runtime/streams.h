// Streams and their work.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "softgpu/runtime/api.h"
#include "softgpu/runtime/graphs.h"
#include "softgpu/runtime/work.h"

namespace softgpu::runtime {

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
