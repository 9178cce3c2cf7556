#include "capi/nvtx.h"

#include <cstring>

#if MP_HAS_NVTX

namespace mp {

nvtxDomainHandle_t profiler_domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("mpcore");
  return domain;
}

void ProfilerRange::push(const char *function, const Message &problem) const {
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
  nvtxDomainRangePushEx(domain_, &range);
}

}  // namespace mp

#endif
