#include "step_ops.h"

#include <memory>

#include "step_data.h"

namespace mpbench {
namespace {

// ---------------------------------------------------------------------------- statistics

struct Reduction {
  Tensors in;
  Buffer result;  ///< 1 report, or 1 float
};

std::shared_ptr<Reduction> make_reduction(const Machine &machine, Pools &pools,
                                          const Layout &layout) {
  const auto r = std::make_shared<Reduction>(
      Tensors(machine, layout, MP_FP16),
      Buffer(machine.context(), static_cast<int64_t>(sizeof(mp_tensor_report_t))));
  r->in.fill(pools.half);
  return r;
}

Work make_check_nonfinite(const Machine &machine, Pools &pools, const Layout &layout) {
  return [r = make_reduction(machine, pools, layout), stream = machine.stream()] {
    check(mp_check_nonfinite(r->in.list(), r->result.as<float>(), stream));
  };
}

Work make_amax(const Machine &machine, Pools &pools, const Layout &layout) {
  return [r = make_reduction(machine, pools, layout), stream = machine.stream()] {
    check(mp_amax(r->in.list(), r->result.as<float>(), nullptr, stream));
  };
}

Work make_l2norm(const Machine &machine, Pools &pools, const Layout &layout) {
  return [r = make_reduction(machine, pools, layout), stream = machine.stream()] {
    check(mp_l2norm(r->in.list(), r->result.as<float>(), nullptr, stream));
  };
}

Work make_inspect(const Machine &machine, Pools &pools, const Layout &layout) {
  return [r = make_reduction(machine, pools, layout), stream = machine.stream()] {
    check(mp_inspect(r->in.list(), r->result.as<mp_tensor_report_t>(), nullptr, stream));
  };
}

// ---------------------------------------------------------------------------- gradients

struct Gradients {
  Tensors in, out;  ///< fp16, fp32
  Scaler scaler;
};

std::shared_ptr<Gradients> make_gradients(const Machine &machine, Pools &pools,
                                          const Layout &layout) {
  const auto g = std::make_shared<Gradients>(
      Tensors(machine, layout, MP_FP16), Tensors(machine, layout, MP_FP32), make_scaler(machine));
  g->in.fill(pools.half);
  return g;
}

Work make_unscale(const Machine &machine, Pools &pools, const Layout &layout) {
  return [g = make_gradients(machine, pools, layout), stream = machine.stream()] {
    check(mp_unscale(g->in.list(), g->out.list(), mp_scaler_get_inv_scale_address(g->scaler.get()),
                     mp_scaler_get_found_inf_address(g->scaler.get()), stream));
  };
}

Work make_grads_to_fp32(const Machine &machine, Pools &pools, const Layout &layout) {
  return [g = make_gradients(machine, pools, layout), stream = machine.stream()] {
    check(mp_grads_to_fp32(g->scaler.get(), g->in.list(), g->out.list(), stream));
  };
}

Work make_grads_accumulate(const Machine &machine, Pools &pools, const Layout &layout) {
  return [g = make_gradients(machine, pools, layout), stream = machine.stream()] {
    check(mp_grads_accumulate(g->scaler.get(), g->in.list(), g->out.list(), 1.0f, 0, stream));
  };
}

// ---------------------------------------------------------------------------- weights

Work make_masters_to_model(const Machine &machine, Pools &pools, const Layout &layout) {
  const auto master = std::make_shared<Tensors>(machine, layout, MP_FP32);
  const auto model = std::make_shared<Tensors>(machine, layout, MP_FP16);
  master->fill(pools.single);
  return [master, model, stream = machine.stream()] {
    check(mp_masters_to_model(master->list(), model->list(), nullptr, nullptr, stream));
  };
}

Work make_cast(const Machine &machine, Pools &pools, const Layout &layout) {
  const int64_t count = layout.parameters();
  const auto src = std::make_shared<Buffer>(make_buffer(machine.context(), count, MP_FP32));
  const auto dst = std::make_shared<Buffer>(make_buffer(machine.context(), count, MP_FP16));
  pools.single.fill(src->data(), count);
  return [src, dst, count, context = machine.context(), stream = machine.stream()] {
    check(mp_cast(context, src->data(), MP_FP32, dst->data(), MP_FP16, count, stream));
  };
}

}  // namespace

std::vector<StepOp> pass_ops() {
  constexpr LayoutChoice kAll = LayoutChoice::kAll, kFew = LayoutChoice::kFew;
  constexpr int64_t kBoth = kHalf + kFloat;
  return {
      {"check_nonfinite", kHalf, kHalf, kAll, false, make_check_nonfinite},
      {"amax", kHalf, kHalf, kFew, false, make_amax},
      {"l2norm", kHalf, kHalf, kAll, false, make_l2norm},
      {"inspect", kHalf, kHalf, kFew, false, make_inspect},
      {"unscale", kBoth, kBoth, kFew, false, make_unscale},
      {"grads_to_fp32", kBoth, kBoth, kFew, false, make_grads_to_fp32},
      {"grads_accumulate", kHalf + kUpdated, kBoth, kFew, false, make_grads_accumulate},
      {"masters_to_model", kBoth, kBoth, kFew, false, make_masters_to_model},
      {"cast", kBoth, kBoth, LayoutChoice::kSingle, false, make_cast},
  };
}

}  // namespace mpbench
