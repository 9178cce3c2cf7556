// The WMMA kernels: both types, every tile, every pair of ops.
#include "kernels/gemm/dispatch.h"
#include "kernels/gemm/gemm_wmma.h"

namespace mp::MP_TARGET {

void launch_wmma(const GemmChoice &choice, const Device &device, const GemmArgs &args,
                 mp_stream_t stream) {
  const GemmProblem &p = args.problem;
  with_half_type(p.dtype_ab, [&](auto type) {
    with_ops(p.op_a, p.op_b, [&](auto op_a, auto op_b) {
      with_tile(WmmaTiles{}, *choice.kernel, [&](auto tile) {
        launch_gemm_wmma<typename decltype(type)::type, decltype(op_a)::value,
                         decltype(op_b)::value, typename decltype(tile)::type>(choice.name, device,
                                                                               args, stream);
      });
    });
  });
}

}  // namespace mp::MP_TARGET
