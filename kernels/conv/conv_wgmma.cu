// The wgmma convolution kernels: both types, every pass with its tiles.
#include "kernels/conv/conv_wgmma.h"

#include "kernels/conv/conv_dispatch.h"

namespace mp::MP_TARGET {

void launch_conv_wgmma_kernel(const ConvChoice &choice, const ConvProblem &problem,
                              const Device &device, const ConvWgmmaArgs &args, mp_stream_t stream) {
  with_half_type(problem.dtype, [&](auto type) {
    with_conv_op(problem.op, [&](auto op) {
      with_tile(ConvWgmmaTiles<decltype(op)::value>{}, *choice.gemm.kernel, [&](auto tile) {
        launch_conv_wgmma<typename decltype(type)::type, decltype(op)::value,
                          typename decltype(tile)::type>(choice, device, args, stream);
      });
    });
  });
}

}  // namespace mp::MP_TARGET
