// Events: markers in streams.
#include <algorithm>
#include <map>

#include "softgpu/runtime/device.h"
#include "softgpu/runtime/errors.h"
#include "softgpu/runtime/streams.h"

namespace softgpu::runtime {

namespace {

struct Event {
  int device;
  unsigned flags;
  WorkPtr work;  ///< marker of the last record; null if never recorded

  std::shared_ptr<Capture> capture;  ///< capture of the stream at the last record
  std::vector<GraphNode *> front;    ///< last nodes of the captured stream at that time
};

/// Guarded by streams_mutex().
std::map<cudaEvent_t, std::unique_ptr<Event>> &events() {
  static auto *const the_events = new std::map<cudaEvent_t, std::unique_ptr<Event>>;
  return *the_events;
}

Event &event_of(cudaEvent_t handle) {
  const auto found = events().find(handle);
  require(found != events().end(), cudaErrorInvalidResourceHandle);
  return *found->second;
}

cudaError_t create_event(const char *name, cudaEvent_t *handle, unsigned flags) {
  return call(name, cudaErrorMemoryAllocation, [&] {
    constexpr unsigned kKnown =
        cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    require(handle && (flags & ~kKnown) == 0, cudaErrorInvalidValue);
    auto event = std::make_unique<Event>(Event{current_device(), flags, nullptr, nullptr, {}});
    *handle = reinterpret_cast<cudaEvent_t>(event.get());
    const std::lock_guard lock(streams_mutex());
    events().emplace(*handle, std::move(event));
  });
}

/// Records an event.  Returns false if the stream is captured.
bool submit_record(cudaEvent_t handle, cudaStream_t stream_handle) {
  const std::lock_guard lock(streams_mutex());
  Event &event = event_of(handle);
  Stream &stream = stream_of(stream_handle);
  require(event.device == stream.device, cudaErrorInvalidResourceHandle);
  check_legacy_is_free(stream);
  event.capture = stream.capture;
  event.front = stream.front;
  if (stream.capture) return false;
  event.work = make_work(stream);
  append(stream, event.work, all_before(stream));
  return true;
}

cudaError_t record(const char *name, cudaEvent_t handle, cudaStream_t stream_handle) {
  return call(name, cudaErrorLaunchFailure, [&] {
    if (submit_record(handle, stream_handle)) scheduler().run_some();
  });
}

/// Adds the stream to the capture in which the event was recorded.
void wait_captured(Stream &stream, const Event &event) {
  if (!event.capture) fail_capture(*stream.capture, cudaErrorStreamCaptureIsolation);
  require(!event.capture->is_finished, cudaErrorCapturedEvent);
  require(!event.capture->is_invalid, cudaErrorStreamCaptureInvalidated);
  require(!stream.is_legacy, cudaErrorStreamCaptureImplicit);
  if (stream.capture && stream.capture != event.capture) {
    event.capture->is_invalid = true;
    fail_capture(*stream.capture, cudaErrorStreamCaptureMerge);
  }
  stream.capture = event.capture;
  for (GraphNode *node : event.front)
    if (std::ranges::find(stream.front, node) == stream.front.end()) stream.front.push_back(node);
}

void let_wait(cudaStream_t stream_handle, cudaEvent_t handle) {
  const std::lock_guard lock(streams_mutex());
  const Event &event = event_of(handle);
  Stream &stream = stream_of(stream_handle);
  check_legacy_is_free(stream);
  if (stream.capture || event.capture) return wait_captured(stream, event);
  if (!event.work) return;
  std::vector<WorkPtr> before = all_before(stream);
  before.push_back(event.work);
  append(stream, make_work(stream), std::move(before));
}

/// Marker of an event that the host queries or waits for.
struct Mark {
  WorkPtr work;
  int device;
};
Mark mark_of(cudaEvent_t handle) {
  const std::lock_guard lock(streams_mutex());
  const Event &event = event_of(handle);
  if (event.capture) fail_capture(*event.capture, cudaErrorCapturedEvent);
  check_no_capture_forbids();
  return {event.work, event.device};
}

/// Returns the completion time of a recorded event.
Clock::time_point time_of(cudaEvent_t handle) {
  const std::lock_guard lock(streams_mutex());
  const Event &event = event_of(handle);
  require(!event.capture, cudaErrorCapturedEvent);
  require(event.work && (event.flags & cudaEventDisableTiming) == 0,
          cudaErrorInvalidResourceHandle);
  require(scheduler().is_done(event.work), cudaErrorNotReady);
  return scheduler().time_of(event.work);
}

}  // namespace

}  // namespace softgpu::runtime

using namespace softgpu::runtime;

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return create_event("cudaEventCreate", event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  return create_event("cudaEventCreateWithFlags", event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", cudaErrorInvalidResourceHandle, [&] {
    const std::lock_guard lock(streams_mutex());
    event_of(event);
    events().erase(event);
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record("cudaEventRecord", event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordDefault) return end_call(cudaErrorNotSupported);
  return record("cudaEventRecordWithFlags", event, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call("cudaStreamWaitEvent", cudaErrorLaunchFailure, [&] {
    require(flags == cudaEventWaitDefault, cudaErrorNotSupported);
    let_wait(stream, event);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", cudaErrorLaunchFailure, [&] {
    const Mark mark = mark_of(event);
    scheduler().wait(mark.work);
    return sticky_error(mark.device);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", cudaErrorLaunchFailure, [&] {
    const Mark mark = mark_of(event);
    return scheduler().poll(mark.work) ? sticky_error(mark.device) : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", cudaErrorLaunchFailure, [&] {
    require(milliseconds, cudaErrorInvalidValue);
    const auto elapsed = time_of(end) - time_of(start);
    *milliseconds = std::chrono::duration<float, std::milli>(elapsed).count();
  });
}

}  // extern "C"
