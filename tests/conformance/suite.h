// The conformance cases of one target.
#pragma once

#include <string>
#include <vector>

#include "base/device_info.h"
#include "kernels/simt/compiler.h"
#include "outputs.h"

namespace mpconform {

/// A primitive's test; suite.cu is compiled once per target.
struct Case {
  const char *name;
  bool needs_sm90;  ///< sm_90a: code for newer architectures has no wgmma
  Output (*run)(const mp::Device &, Mistake);
};

struct Suite {
  std::vector<Case> cases;
  std::string why_no_device;  ///< empty if there is a device
  mp::Device device;          ///< the current device
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
