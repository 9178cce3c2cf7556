// mpcore/core.h, sections 1 and 2: version, status, error messages, log.  NVTX ranges.
#include <pthread.h>

#include <cstdio>
#include <exception>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <utility>

#include "base/environment.h"
#include "base/lifetime.h"
#include "base/target_error.h"
#include "capi/check.h"
#include "kernels/backend.h"

using namespace mp;

// The build system defines these; other builds may not.
#ifndef MP_GIT_HASH
#define MP_GIT_HASH "unknown"
#endif
#ifndef MP_CUDA_VERSION
#define MP_CUDA_VERSION "unknown"
#endif
#ifndef MP_CUDA_ARCHS
#define MP_CUDA_ARCHS "unknown"
#endif

namespace {

/// Message of a thread's last failure, allocated at its first failure.
using LastError = ThreadLocal<Message>;

/// Replaces the last message if there was no memory to store it.
constinit thread_local const char *fallback_error_text = nullptr;

constinit thread_local bool is_part_of_a_call = false;

/// True if returned errors are logged too: with a callback or MP_LOG, not by default.
std::atomic<bool> logs_returned_errors = false;

mp_status_t record(mp_status_t status, const Message &message, bool is_returned) {
  try {
    LastError::get() = message;
    fallback_error_text = nullptr;
  } catch (const std::bad_alloc &) {
    fallback_error_text = "a call failed; out of memory while storing its message";
  }
  if (!is_part_of_a_call && (!is_returned || logs_returned_errors))
    log(MP_LOG_ERROR, message.c_str());
  return status;
}

// ---------------------------------------------------------------------------- log

/// Names of the levels from MP_LOG_ERROR on.
constexpr const char *kLevels[] = {"error", "warn", "info", "debug"};

void log_to_stderr(mp_log_level_t level, const char *message, void *) {
  std::fprintf(stderr, "mpcore: %s: %s\n", kLevels[level - MP_LOG_ERROR], message);
}

/// Returns the level of the log on stderr.  If MP_LOG sets it, returned errors are logged, too.
int32_t level_from_environment() {
  static constinit EnvironmentVariable variable("MP_LOG", "must be error, warn, info or debug");
  const auto named = variable.word({kLevels[0], kLevels[1], kLevels[2], kLevels[3]});
  logs_returned_errors = named.has_value();
  return named ? MP_LOG_ERROR + static_cast<int32_t>(*named) : MP_LOG_WARN;
}

struct LogSink {
  mp_log_callback_t callback = log_to_stderr;
  void *user = nullptr;
};

// Held (shared) by running callbacks.  When mp_set_log_callback returns, the previous callback is
// not running, and its `user` may be freed.
std::shared_mutex sink_mutex;
LogSink sink;
thread_local bool is_in_callback = false;

/// Held by mp_set_log_callback while it waits for running callbacks: sink_mutex prefers readers, so
/// threads that always log would delay it forever.
std::mutex entry_mutex;

/// Returns a shared lock of `sink`.  A call in a callback has entered before.
std::shared_lock<std::shared_mutex> enter_sink() {
  std::unique_lock entry(entry_mutex, std::defer_lock);
  if (!is_in_callback) entry.lock();
  return std::shared_lock(sink_mutex);
}

/// Re-creates the mutexes in the child of a fork, where other threads that hold them do not exist.
/// A fork does not wait for callbacks, because a callback may fork.
const int renewed_in_a_child = pthread_atfork(nullptr, nullptr, [] {
  new (&entry_mutex) std::mutex;
  if (!is_in_callback) new (&sink_mutex) std::shared_mutex;
});

}  // namespace

std::atomic<int32_t> mp::log_level{level_from_environment()};

namespace {
/// Environment variables that are read after MP_LOG report errors to the log.
const bool logs_environment = [] {
  environment_log = [](const char *line) { log(MP_LOG_WARN, line); };
  return true;
}();

void write_to_sink(mp_log_level_t level, const Message &line) {
  const bool is_nested = std::exchange(is_in_callback, true);
  try {
    sink.callback(level, line.c_str(), sink.user);
  } catch (...) {  // the API call continues
    log_to_stderr(MP_LOG_ERROR, "the log callback threw an exception; its line was:", nullptr);
    log_to_stderr(level, line.c_str(), nullptr);
  }
  is_in_callback = is_nested;
}

}  // namespace

void mp::write_log(mp_log_level_t level, const Message &line) {
  const auto lock = enter_sink();
  // mp_set_log_callback may have changed the level since the caller's check.
  if (log_enabled(level)) write_to_sink(level, line);
}

void mp::write_requested_log(const Message &line) {
  const auto lock = enter_sink();
  if (log_enabled(MP_LOG_INFO))
    write_to_sink(MP_LOG_INFO, line);
  else
    log_to_stderr(MP_LOG_INFO, line.c_str(), nullptr);
}

NestedCallScope::NestedCallScope() : was_part_of_a_call_(std::exchange(is_part_of_a_call, true)) {}

// The scope may be one of a log callback, within the scope of the call that logs.
NestedCallScope::~NestedCallScope() {
  is_part_of_a_call = was_part_of_a_call_;
}

mp_status_t mp::report_failure(const char *function, bool is_returned) noexcept {
  const auto record = [&](mp_status_t status, const auto &...why) {
    return ::record(status, Message(function, ": ", why...), is_returned);
  };
  try {
    throw;
  } catch (const CallError &error) {
    return record(error.status, error.why.c_str());
  } catch (const TargetError &error) {
    return record(error.status, error.what());
  } catch (const std::bad_alloc &) {
    return record(MP_ERROR_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception &error) {
    return record(MP_ERROR_INTERNAL, "unexpected exception: ", error.what());
  } catch (...) {
    return record(MP_ERROR_INTERNAL, "unexpected exception");
  }
}

uint32_t mp_version(void) {
  return MP_VERSION;
}

const char *mp_build_info(void) {
  const Message &info = lazy_init([] {
    return Message(
        "mpcore ", MP_VERSION_MAJOR, ".", MP_VERSION_MINOR, ".", MP_VERSION_PATCH,
        ", git " MP_GIT_HASH ", targets:", host_backend() ? " host" : "",
        cuda_backend() ? " cuda (CUDA " MP_CUDA_VERSION ", code for " MP_CUDA_ARCHS ")" : "");
  });
  return info.c_str();
}

const char *mp_status_string(mp_status_t status) {
  const char *const name = name_of(enumerators_of<mp_status_t>(), enum_value(status));
  return name != nullptr ? name : "unknown mp_status_t";
}

const char *mp_last_error(void) {
  if (fallback_error_text != nullptr) return fallback_error_text;
  const Message *const message = LastError::find();
  return message != nullptr ? message->c_str() : "";
}

void mp_set_log_callback(mp_log_callback_t callback, void *user, mp_log_level_t level) {
  call_void(__func__, [&] {
    const std::lock_guard entry(entry_mutex);
    const std::unique_lock lock(sink_mutex);
    sink = callback != nullptr ? LogSink{callback, user} : LogSink{};
    log_level = callback != nullptr ? enum_value(level) : level_from_environment();
    if (callback != nullptr) logs_returned_errors = true;
  });
}

// ---------------------------------------------------------------------------- NVTX ranges

#if __has_include(<nvtx3/nvToolsExtPayload.h>)

#include <nvtx3/nvToolsExtPayload.h>

namespace {

/// NVTX initializes itself in its first call; other threads wait for it.
std::mutex nvtx_mutex;
const ForkGuard<nvtx_mutex> nvtx_of_a_child;

/// Returns the domain, or NULL if no profiler is attached.
nvtxDomainHandle_t nvtx_domain() {
  return lazy_init([] {
    const std::lock_guard lock(nvtx_mutex);
    static const nvtxDomainHandle_t made = nvtxDomainCreateA("mpcore");
    return made;
  });
}

}  // namespace

bool ProfilerRange::profiler_listens() {
  return nvtx_domain() != nullptr;
}

void ProfilerRange::push(const char *function, const Message &problem) {
  // A scheme-less payload: one C string.
  const nvtxPayloadData_t text = {NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, std::strlen(problem.c_str()) + 1,
                                  problem.c_str()};
  nvtxEventAttributes_t range{};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = function;
  if (*problem.c_str() != '\0') {
    range.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    range.reserved0 = 1;  // payloads
    range.payload.ullValue = reinterpret_cast<uintptr_t>(&text);
  }
  nvtxDomainRangePushEx(nvtx_domain(), &range);
}

void ProfilerRange::pop() {
  nvtxDomainRangePop(nvtx_domain());
}

#else

bool ProfilerRange::profiler_listens() {
  return false;
}
void ProfilerRange::push(const char *, const Message &) {}
void ProfilerRange::pop() {}

#endif
