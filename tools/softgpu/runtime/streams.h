// Streams, and what is put into them.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "tools/softgpu/runtime/api.h"
#include "tools/softgpu/runtime/graphs.h"
#include "tools/softgpu/runtime/work.h"

namespace softgpu::runtime {

struct Stream {
  int device = 0;
  /// The default stream, for which all blocking streams wait and which waits for them.
  bool is_legacy = false;
  bool is_blocking = false;  ///< with the legacy stream
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  WorkPtr last;  ///< that was put into it

  std::shared_ptr<Capture> capture;  ///< under way
  std::vector<GraphNode *> front;    ///< of the capture: what the next node comes after
};

/// Guards all streams, events, captures and graphs.  Nobody waits for work while holding it.
std::mutex &streams_mutex();

// These are called with the mutex held.

/// The stream of a handle, of the calling thread and its device where the handle is a default stream.
Stream &stream_of(cudaStream_t);
/// Work that a stream is to do; without a task a mark in the stream.
WorkPtr make_work(const Stream &, const Task & = {});
/// What work that is put into the stream now comes after.
std::vector<WorkPtr> all_before(Stream &);
/// Puts work into the stream: what all_before said next comes after `work`.
void append(Stream &, const WorkPtr &work, std::vector<WorkPtr> before);
/// Every stream that exists.
std::vector<Stream *> all_streams();

// These lock it.

/// Puts a task into the stream.  Null if the stream is captured: the task is a node of the graph then.
WorkPtr enqueue(cudaStream_t, Task);
/// What a call does last that has submitted work: some of it is done in the call (runtime/work.h).
void settle(const WorkPtr &last);
/// Whether the stream is being captured.
bool is_captured(cudaStream_t);

}  // namespace softgpu::runtime
