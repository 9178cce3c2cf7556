// Backends of this build.
#include "kernels/backend.h"

namespace mp {

namespace host {
const Backend &backend();
}
#if MP_HAVE_CUDA
namespace cuda {
const Backend &backend();
}
#endif

const Backend *host_backend() {
  return &host::backend();
}

const Backend *cuda_backend() {
#if MP_HAVE_CUDA
  return &cuda::backend();
#else
  return nullptr;
#endif
}

}  // namespace mp
