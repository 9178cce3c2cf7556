// wgmma convolution kernels for FP16 and BF16.
#include "kernels/conv/dgrad_wgmma.h"
#include "kernels/gemm/gemm.h"

namespace mp::MP_TARGET {

namespace {

/// Kernel of fprop and of dgrad without a stride.
template <class Tile>
MP_KERNEL(Tile::kThreads, 1)
conv_wgmma(MP_PARAM(ConvWgmmaArgs) args) {
  if constexpr (wgmma_supported<Tile::kSmemBytes>())
    wgmma_block<FpropOperands<Tile>, DensePlacement, Tile>(args);
}

template <class Tile>
MP_KERNEL(Tile::kThreads, 1)
dgrad_wgmma(MP_PARAM(DgradWgmmaArgs) args) {
  if constexpr (wgmma_supported<Tile::kSmemBytes>())
    wgmma_block<FpropOperands<Tile, DgradWgmmaArgs>, StridePhasePlacement, Tile>(args);
}

template <class Tile>
MP_KERNEL(Tile::kThreads, 1)
wgrad_wgmma(MP_PARAM(ConvWgmmaArgs) args) {
  if constexpr (wgmma_supported<Tile::kSmemBytes>())
    wgmma_block<WgradOperands<Tile>, TapColumns, Tile>(args);
}

template <class Tile, class Args>
void launch_tile(void (*kernel)(MP_PARAM(Args)), const ConvPlan &plan, const Device &device,
                 const Args &args, mp_stream_t stream) {
  launch(plan.name, kernel, device,
         wgmma_launch_shape<Tile>(device, args.num_work_tiles, plan.gemm.cluster), stream, args);
}

}  // namespace

void launch_conv_wgmma_kernel(const ConvPlan &plan, mp_conv_op_t op, const Device &device,
                              const ConvWgmmaArgs &args, mp_stream_t stream) {
  if (op == MP_CONV_WGRAD)  // low tiles: its rows are the K channels
    with_tile(WgradWgmmaTiles{}, *plan.gemm.kernel, [&](auto found) {
      using Tile = typename decltype(found)::type;
      launch_tile<Tile>(wgrad_wgmma<Tile>, plan, device, args, stream);
    });
  else
    with_tile(ConvWgmmaTiles{}, *plan.gemm.kernel, [&](auto found) {
      using Tile = typename decltype(found)::type;
      launch_tile<Tile>(conv_wgmma<Tile>, plan, device, args, stream);
    });
}

void launch_dgrad_wgmma_kernel(const ConvPlan &plan, const Device &device,
                               const DgradWgmmaArgs &args, mp_stream_t stream) {
  with_tile(StridedDgradWgmmaTiles{}, *plan.gemm.kernel, [&](auto found) {
    using Tile = typename decltype(found)::type;
    launch_tile<Tile>(dgrad_wgmma<Tile>, plan, device, args, stream);
  });
}

}  // namespace mp::MP_TARGET
