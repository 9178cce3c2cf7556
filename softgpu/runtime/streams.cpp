#include "softgpu/runtime/streams.h"

#include <algorithm>
#include <map>

#include "softgpu/options.h"
#include "softgpu/runtime/device.h"

namespace softgpu::runtime {

namespace {

constexpr int kMinPriority = 0, kGreatestPriority = -5;

/// All streams of the process.
struct Registry {
  std::map<cudaStream_t, std::unique_ptr<Stream>> created;
  std::vector<std::unique_ptr<Stream>> defaults;   ///< legacy and per-thread
  std::vector<std::unique_ptr<Stream>> destroyed;  ///< destroyed, with pending work
  uint64_t num_created = 0;
  std::mutex mutex;
};
Registry &registry() {
  static Registry *const the_registry = new Registry;
  return *the_registry;
}

std::unique_ptr<Stream> make_stream(int device, unsigned flags, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->device = device;
  stream->flags = flags;
  stream->is_blocking = (flags & cudaStreamNonBlocking) == 0;
  stream->priority = std::clamp(priority, kGreatestPriority, kMinPriority);
  stream->id = ++registry().num_created;
  return stream;
}

/// Keeps a destroyed stream until its work is done.
void retire(std::unique_ptr<Stream> stream) {
  Registry &r = registry();
  std::erase_if(r.destroyed, [](const auto &s) { return scheduler().is_done(s->last); });
  if (!scheduler().is_done(stream->last)) r.destroyed.push_back(std::move(stream));
}

Stream *add_default(int device, bool is_legacy) {
  std::unique_ptr<Stream> stream = make_stream(device, cudaStreamDefault, kMinPriority);
  stream->is_legacy = is_legacy;
  stream->is_blocking = !is_legacy;
  return registry().defaults.emplace_back(std::move(stream)).get();
}

Stream &legacy_stream(int device) {
  static std::vector<Stream *> streams(kMaxDevices);
  Stream *&stream = streams[static_cast<size_t>(device)];
  if (!stream) stream = add_default(device, true);
  return *stream;
}

/// Default streams of a thread; destroyed with the thread.
struct ThreadStreams {
  std::vector<Stream *> of_device = std::vector<Stream *>(kMaxDevices);

  ~ThreadStreams() {
    const std::lock_guard lock(registry().mutex);
    auto &defaults = registry().defaults;
    for (Stream *stream : of_device) {
      const auto found =
          std::ranges::find_if(defaults, [&](const auto &s) { return s.get() == stream; });
      if (found == defaults.end()) continue;
      retire(std::move(*found));
      defaults.erase(found);
    }
  }
};

Stream &per_thread_stream(int device) {
  thread_local ThreadStreams streams;
  Stream *&stream = streams.of_device[static_cast<size_t>(device)];
  if (!stream) stream = add_default(device, false);
  return *stream;
}

cudaError_t create_stream(cudaStream_t *handle, unsigned flags, int priority,
                          const char *name = __builtin_FUNCTION()) {
  const auto body = [&] {
    require(handle && (flags & ~unsigned{cudaStreamNonBlocking}) == 0, cudaErrorInvalidValue);
    const std::lock_guard lock(registry().mutex);
    std::unique_ptr<Stream> stream = make_stream(current_device(), flags, priority);
    *handle = reinterpret_cast<cudaStream_t>(stream.get());
    registry().created.emplace(*handle, std::move(stream));
  };
  return call(cudaErrorMemoryAllocation, body, Needs::kDevice, name);
}

void destroy_stream(cudaStream_t handle) {
  const std::lock_guard lock(registry().mutex);
  Stream &stream = stream_of(handle);
  const auto found = registry().created.find(handle);
  require(found != registry().created.end(), cudaErrorInvalidResourceHandle);
  check_not_captured(stream);
  retire(std::move(found->second));
  registry().created.erase(found);
}

/// Pending work of a stream.
struct Rest {
  int device;
  std::vector<WorkPtr> works;

  void wait() const { scheduler().wait(works); }
  bool poll() const { return scheduler().poll(works); }
};

/// Waiting for the legacy stream includes waiting for all blocking streams.
Rest rest_of(cudaStream_t handle) {
  const std::lock_guard lock(registry().mutex);
  Stream &stream = stream_of(handle);
  check_not_captured(stream);
  check_no_capture_forbids();
  if (!stream.is_legacy) return {stream.device, {stream.last}};
  check_legacy_is_free(stream);
  return {stream.device, all_before(stream)};
}

template <class Value, class Of>
cudaError_t get_property(cudaStream_t handle, Value *to, Of Stream::*field,
                         const char *name = __builtin_FUNCTION()) {
  const auto value = [&] {
    const std::lock_guard lock(registry().mutex);
    return stream_of(handle).*field;
  };
  return get(to, value, cudaErrorInvalidValue, Needs::kDevice, name);
}

}  // namespace

std::mutex &streams_mutex() {
  return registry().mutex;
}

Stream &stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return legacy_stream(current_device());
  if (handle == cudaStreamPerThread) return per_thread_stream(current_device());
  const auto found = registry().created.find(handle);
  require(found != registry().created.end(), cudaErrorInvalidResourceHandle);
  return *found->second;
}

std::vector<Stream *> all_streams() {
  std::vector<Stream *> all;
  for (const auto &[handle, stream] : registry().created) all.push_back(stream.get());
  for (const auto &stream : registry().defaults) all.push_back(stream.get());
  for (const auto &stream : registry().destroyed) all.push_back(stream.get());
  return all;
}

WorkPtr make_work(const Stream &stream, const Task &task) {
  auto work = std::make_shared<Work>();
  work->run = task.run;
  work->make_grid = task.make_grid;
  work->device = stream.device;
  work->stream = stream.id;
  work->runs_after_fault = task.runs_after_fault;
  work->calls_host = task.calls_host;
  return work;
}

std::vector<WorkPtr> all_before(Stream &stream) {
  std::vector<WorkPtr> before{stream.last};
  if (stream.is_blocking) before.push_back(legacy_stream(stream.device).last);
  if (stream.is_legacy) {
    for (const Stream *other : all_streams())
      if (other->is_blocking && other->device == stream.device) before.push_back(other->last);
  }
  return before;
}

void append(Stream &stream, const WorkPtr &work, std::vector<WorkPtr> before) {
  scheduler().submit(work, before);
  stream.last = work;
}

void settle(const WorkPtr &work) {
  scheduler().run_some();
  if (settings().is_synchronous) scheduler().wait(work);
}

WorkPtr enqueue(cudaStream_t handle, Task task) {
  WorkPtr work;
  {
    const std::lock_guard lock(registry().mutex);
    Stream &stream = stream_of(handle);
    check_legacy_is_free(stream);
    if (stream.capture) {
      task.device = stream.device;
      capture_task(stream, std::move(task));
      return nullptr;
    }
    work = make_work(stream, task);
    if (task.begins_early && stream.last) work->primary = stream.last;
    append(stream, work, all_before(stream));
  }
  settle(work);
  return work;
}

bool is_captured(cudaStream_t handle) {
  const std::lock_guard lock(registry().mutex);
  return stream_of(handle).capture != nullptr;
}

// ---- events: markers in streams

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

cudaError_t create_event(cudaEvent_t *handle, unsigned flags,
                         const char *name = __builtin_FUNCTION()) {
  const auto body = [&] {
    constexpr unsigned kKnown =
        cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    require(handle && (flags & ~kKnown) == 0, cudaErrorInvalidValue);
    auto event = std::make_unique<Event>(Event{current_device(), flags, nullptr, nullptr, {}});
    *handle = reinterpret_cast<cudaEvent_t>(event.get());
    const std::lock_guard lock(streams_mutex());
    events().emplace(*handle, std::move(event));
  };
  return call(cudaErrorMemoryAllocation, body, Needs::kDevice, name);
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

cudaError_t record(cudaEvent_t handle, cudaStream_t stream,
                   const char *name = __builtin_FUNCTION()) {
  const auto body = [&] {
    if (submit_record(handle, stream)) scheduler().run_some();
  };
  return call(cudaErrorLaunchFailure, body, Needs::kDevice, name);
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

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return create_stream(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return create_stream(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
  return create_stream(stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call(cudaErrorInvalidResourceHandle, [&] { destroy_stream(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call(cudaErrorLaunchFailure, [&] {
    const Rest rest = rest_of(stream);
    rest.wait();
    return sticky_error(rest.device);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call(cudaErrorLaunchFailure, [&] {
    const Rest rest = rest_of(stream);
    return rest.poll() ? sticky_error(rest.device) : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
  return get_property(stream, flags, &Stream::flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  return get_property(stream, priority, &Stream::priority);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
  return get_property(stream, device, &Stream::device);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return call(cudaErrorInvalidValue, [&] {
    if (least) *least = kMinPriority;
    if (greatest) *greatest = kGreatestPriority;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call(cudaErrorLaunchFailure, [&] {
    require_no_capture();
    scheduler().wait_for_device(current_device());
    return sticky_error(current_device());
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument) {
  return call(cudaErrorInvalidValue, [&] {
    require(function, cudaErrorInvalidValue);
    enqueue(stream, {.run = [=] { call_user(function, argument); }, .calls_host = true});
  });
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return create_event(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  return create_event(event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call(cudaErrorInvalidResourceHandle, [&] {
    const std::lock_guard lock(streams_mutex());
    event_of(event);
    events().erase(event);
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record(event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordDefault) return end_call(cudaErrorNotSupported);
  return record(event, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call(cudaErrorLaunchFailure, [&] {
    require(flags == cudaEventWaitDefault, cudaErrorNotSupported);
    let_wait(stream, event);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call(cudaErrorLaunchFailure, [&] {
    const Mark mark = mark_of(event);
    scheduler().wait(mark.work);
    return sticky_error(mark.device);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call(cudaErrorLaunchFailure, [&] {
    const Mark mark = mark_of(event);
    return scheduler().poll(mark.work) ? sticky_error(mark.device) : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call(cudaErrorLaunchFailure, [&] {
    require(milliseconds, cudaErrorInvalidValue);
    const auto elapsed = time_of(end) - time_of(start);
    *milliseconds = std::chrono::duration<float, std::milli>(elapsed).count();
  });
}

}  // extern "C"
