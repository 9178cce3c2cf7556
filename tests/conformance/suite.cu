#include "suite.h"

#include "cases.h"

namespace mp::MP_TARGET {

mpconform::Suite conformance_suite() {
  mpconform::Suite suite{};
#define LISTED_CASE(function, name, needs_sm90) {name, needs_sm90, conform_##function},
  suite.cases = {CONFORMANCE_CASES(LISTED_CASE)};
  suite.why_no_device = why_no_device();
  if (suite.why_no_device.empty()) suite.device = describe(current_device());
  return suite;
}

}  // namespace mp::MP_TARGET
