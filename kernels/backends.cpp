// Which targets this build has.
#include "kernels/backend.h"

namespace mp {

namespace host {
const Target &table();
}
#if MP_HAVE_CUDA
namespace cuda {
const Target &table();
}
#endif

const Target *host_target() {
  return &host::table();
}

const Target *cuda_target() {
#if MP_HAVE_CUDA
  return &cuda::table();
#else
  return nullptr;
#endif
}

}  // namespace mp
