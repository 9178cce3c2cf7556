// D = epilogue(op(A) op(B)) on Hopper's tensor cores: the loop of wgmma_kernel.h over two matrices.
#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/gemm/wgmma_kernel.h"

namespace mp::MP_TARGET {

namespace {

/// Stages (wgmma_kernel.h) of two matrices, or of a batch or group of them.
template <class Tile>
struct GemmStages {
  using Args = WgmmaArgs;
  static constexpr int kProducers = 1;

  template <class F>
  static MP_DEVICE void with_layouts(const WgmmaArgs &args, const F &f) {
    with_ops(args.problem.op_a, args.problem.op_b,
             [&]<mp_op_t op_a, mp_op_t op_b>(Value<op_a>, Value<op_b>) {
               constexpr Major kA = op_a == MP_OP_N ? Major::k : Major::mn;
               constexpr Major kB = op_b == MP_OP_T ? Major::k : Major::mn;
               f(WgmmaLayouts<StagedOperand<kA, Tile::kM>, StagedOperand<kB, Tile::kN>>{});
             });
  }

  template <class Layouts>
  class Source {
   public:
    MP_DEVICE Source(const WgmmaArgs &args, const WgmmaWorkTile &work)
        : args_(args), from_(maps(args, work)), m0_(work.m0), n0_(work.n0), k_(work.k0) {}

    MP_DEVICE void load_next(SmemAddress a, SmemAddress b, SmemAddress full) {
      Layouts::A::load(a, *from_.a, full, m0_, k_, from_.z_a, shares_a<Tile>(args_));
      Layouts::B::load(b, *from_.b, full, n0_, k_, from_.z_b, shares_b<Tile>(args_));
      k_ += Tile::kK;
    }

   private:
    struct Maps {
      const TensorMap *a, *b;
      int z_a, z_b;
    };

    static MP_DEVICE Maps maps(const WgmmaArgs &args, const WgmmaWorkTile &work) {
      if (work.item != nullptr) {
        if (work.index_in_series == 0) {
          tensor_map_acquire(&work.item->a);
          tensor_map_acquire(&work.item->b);
        }
        return {&work.item->a, &work.item->b, 0, 0};
      }
      const GemmProblem &p = args.problem;
      const int z = static_cast<int>(work.batch_item);
      return {&args.a, &args.b, p.a.stride != 0 ? z : 0, p.b.stride != 0 ? z : 0};
    }

    const WgmmaArgs &args_;
    const Maps from_;
    const int m0_, n0_;
    int k_;
  };
};

template <class Tile>
MP_KERNEL(Tile::kThreads, 1)
gemm_wgmma(MP_PARAM(WgmmaArgs) args) {
  if constexpr (wgmma_supported<Tile::kSmemBytes>())
    wgmma_block<GemmStages<Tile>, DensePlacement, Tile>(args);
}

}  // namespace

void launch_wgmma_kernel(const GemmPlan &plan, const Device &device, const WgmmaArgs &args,
                         mp_stream_t stream) {
  with_tile(WgmmaTiles{}, *plan.kernel, [&]<class Tile>(std::type_identity<Tile>) {
    launch(plan.name, gemm_wgmma<Tile>, device,
           wgmma_launch_shape<Tile>(device, args.num_work_tiles, plan), stream, args);
  });
}

}  // namespace mp::MP_TARGET
