// D = epilogue(op(A) op(B)) on the tensor cores of Hopper: the loop of wgmma_loop.h over two matrices.
#pragma once

#include "kernels/gemm/dispatch.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/wgmma_loop.h"

namespace mp::MP_TARGET {

/// Stages of two matrices, or of a batch or group of them.
template <mp_op_t op_a, mp_op_t op_b, class Tile>
class GemmStages {
 public:
  using Args = WgmmaArgs;
  using A = StagedOperand<op_a == MP_OP_N ? Major::k : Major::mn, Tile::kM>;
  using B = StagedOperand<op_b == MP_OP_T ? Major::k : Major::mn, Tile::kN>;

  MP_DEVICE GemmStages(const WgmmaArgs &args, const WgmmaWorkTile &work)
      : from_(sources(args, work)), m0_(work.m0), n0_(work.n0), k_(work.k0) {}

  MP_DEVICE void load_next(SmemAddress a, SmemAddress b, SmemAddress full) {
    A::load(a, *from_.a, full, m0_, k_, from_.z_a, shares_a<Tile>());
    B::load(b, *from_.b, full, n0_, k_, from_.z_b, shares_b<Tile>());
    k_ += Tile::kK;
  }

 private:
  struct Sources {
    const TensorMap *a, *b;
    int z_a, z_b;
  };

  static MP_DEVICE Sources sources(const WgmmaArgs &args, const WgmmaWorkTile &work) {
    if (work.item != nullptr) {
      tensor_map_acquire(&work.item->a);
      tensor_map_acquire(&work.item->b);
      return {&work.item->a, &work.item->b, 0, 0};
    }
    const GemmProblem &p = args.problem;
    const int z = static_cast<int>(work.batch_item);
    return {&args.a, &args.b, p.a.stride != 0 ? z : 0, p.b.stride != 0 ? z : 0};
  }

  const Sources from_;
  const int m0_, n0_;
  int k_;
};

template <class T, mp_op_t op_a, mp_op_t op_b, class Tile>
MP_KERNEL(Tile::kThreads, 1)
gemm_wgmma(MP_PARAM(WgmmaArgs) args) {
  if constexpr (wgmma_supported<T, Tile::kSmemBytes>())
    wgmma_block<T, GemmStages<op_a, op_b, Tile>, DensePlacement, Tile>(args);
}

template <class T, mp_op_t op_a, mp_op_t op_b, class Tile>
void launch_gemm_wgmma(const GemmChoice &choice, const Device &device, const WgmmaArgs &args,
                       mp_stream_t stream) {
  launch(choice.name, gemm_wgmma<T, op_a, op_b, Tile>, device,
         wgmma_launch_shape<Tile>(device, args.num_work_tiles, choice.cluster), stream, args);
}

/// One type of operands; the .cu files have one instantiation each.
template <class T>
void launch_wgmma_kernel(const GemmChoice &choice, const Device &device, const WgmmaArgs &args,
                         mp_stream_t stream) {
  with_ops(args.problem.op_a, args.problem.op_b, [&](auto op_a, auto op_b) {
    with_tile(WgmmaTiles{}, *choice.kernel, [&](auto tile) {
      launch_gemm_wgmma<T, decltype(op_a)::value, decltype(op_b)::value,
                        typename decltype(tile)::type>(choice, device, args, stream);
    });
  });
}

}  // namespace mp::MP_TARGET
