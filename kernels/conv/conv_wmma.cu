// The WMMA convolution kernels: both types, every tile, every pass.
#include "kernels/conv/conv_dispatch.h"
#include "kernels/conv/conv_wmma.h"

namespace mp::MP_TARGET {

void launch_conv_wmma(const ConvChoice &choice, const ConvProblem &problem, const Device &device,
                      const ConvArgs &args, mp_stream_t stream) {
  with_half_type(problem.dtype, [&](auto type) {
    with_conv_op(problem.op, [&](auto op) {
      with_tile(WmmaTiles{}, *choice.gemm.kernel, [&](auto tile) {
        launch_conv_wmma<typename decltype(type)::type, decltype(op)::value,
                         typename decltype(tile)::type>(choice.name, device, args, stream);
      });
    });
  });
}

}  // namespace mp::MP_TARGET
