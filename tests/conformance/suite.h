// The cases, once per target.
#pragma once

#include <string>
#include <vector>

#include "base/device_info.h"
#include "kernels/simt/compiler.h"
#include "outputs.h"

namespace mpconform {

/// What one target offers: suite.cu is compiled once for each.
struct Case {
  const char *name;
  bool needs_sm90;  ///< sm_90a: code for newer architectures has no wgmma
  Output (*run)(const mp::Device &, Mistake);
};

struct Suite {
  std::vector<Case> cases;
  std::string why_no_device;  ///< empty: there is one
  mp::Device device;          ///< the current one
};

}  // namespace mpconform

namespace mp {
namespace host {
mpconform::Suite conformance_suite();
}
namespace cuda {
mpconform::Suite conformance_suite();
}
}  // namespace mp
