// Passes of a step, and passes around it.
#include <memory>

#include "step_data.h"
#include "step_ops.h"

namespace mpbench {
namespace {

using Make = decltype(StepOp::make);

/// A pass over fp16 gradients.
/// @param call  (list, result, stream); the result has the size of a report
template <typename Call>
Make reducing(Call call) {
  return [call](const Machine &machine, Pools &pools, const Layout &layout) -> Work {
    const auto in = std::make_shared<Tensors>(machine, layout, MP_FP16);
    const auto result = std::make_shared<Buffer>(machine.context(),
                                                 static_cast<int64_t>(sizeof(mp_tensor_report_t)));
    in->fill(pools.half);
    return [=, stream = machine.stream()] { check(call(in->list(), *result, stream)); };
  };
}

/// A pass from fp16 gradients to fp32 ones.
/// @param call  (scaler, list of fp16, list of fp32, stream)
template <typename Call>
Make widening(Call call) {
  return [call](const Machine &machine, Pools &pools, const Layout &layout) -> Work {
    const auto in = std::make_shared<Tensors>(machine, layout, MP_FP16);
    const auto out = std::make_shared<Tensors>(machine, layout, MP_FP32);
    const auto scaler = std::make_shared<Scaler>(make_scaler(machine));
    in->fill(pools.half);
    return [=, stream = machine.stream()] {
      check(call(scaler->get(), in->list(), out->list(), stream));
    };
  };
}

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
  using List = mp_tensor_list_t;
  using Stream = mp_stream_t;
  return {
      {"check_nonfinite", kHalf, kHalf, kAll, false,
       reducing([](List list, const Buffer &result, Stream stream) {
         return mp_check_nonfinite(list, result.as<float>(), stream);
       })},
      {"amax", kHalf, kHalf, kFew, false,
       reducing([](List list, const Buffer &result, Stream stream) {
         return mp_amax(list, result.as<float>(), nullptr, stream);
       })},
      {"l2norm", kHalf, kHalf, kAll, false,
       reducing([](List list, const Buffer &result, Stream stream) {
         return mp_l2norm(list, result.as<float>(), nullptr, stream);
       })},
      {"inspect", kHalf, kHalf, kFew, false,
       reducing([](List list, const Buffer &result, Stream stream) {
         return mp_inspect(list, result.as<mp_tensor_report_t>(), nullptr, stream);
       })},
      {"unscale", kBoth, kBoth, kFew, false,
       widening([](mp_scaler_t scaler, List in, List out, Stream stream) {
         return mp_unscale(in, out, mp_scaler_get_inv_scale_address(scaler),
                           mp_scaler_get_found_inf_address(scaler), stream);
       })},
      {"grads_to_fp32", kBoth, kBoth, kFew, false, widening(mp_grads_to_fp32)},
      {"grads_accumulate", kHalf + kUpdated, kBoth, kFew, false,
       widening([](mp_scaler_t scaler, List in, List out, Stream stream) {
         return mp_grads_accumulate(scaler, in, out, 1.0f, 0, stream);
       })},
      {"masters_to_model", kBoth, kBoth, kFew, false, make_masters_to_model},
      {"cast", kBoth, kBoth, LayoutChoice::kSingle, false, make_cast},
  };
}

}  // namespace mpbench
