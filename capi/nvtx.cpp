// NVTX ranges (ProfilerRange).
#include "capi/check.h"

#if __has_include(<nvtx3/nvToolsExtPayload.h>)

#include <nvtx3/nvToolsExtPayload.h>

#include <mutex>

#include "base/lifetime.h"

namespace mp {

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

}  // namespace mp

#else

namespace mp {

bool ProfilerRange::profiler_listens() {
  return false;
}
void ProfilerRange::push(const char *, const Message &) {}
void ProfilerRange::pop() {}

}  // namespace mp

#endif
