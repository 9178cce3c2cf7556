// Variants of the complete optimizer step, its passes, and passes around it.
#include "step_ops.h"

#include <memory>
#include <stdexcept>

#include "step_data.h"

namespace mpbench {
namespace {

// Weights change only after all gradients have been checked: gradients are read twice.
constexpr int64_t kGradsTwice = 2 * kHalf;
constexpr int64_t kAdamWBytes = kGradsTwice + 3 * kUpdated + kHalf;  // master, m, v; model
constexpr int64_t kSgdBytes = kGradsTwice + 2 * kUpdated + kHalf;    // master, m; model
constexpr int64_t kCheckedAdamWBytes = kAdamWBytes - kHalf;          // their producer checks them
static_assert(kAdamWBytes == 30 && kSgdBytes == 22 && kCheckedAdamWBytes == 28);

constexpr int64_t kAdamWStorage = kHalf + 3 * kFloat + kHalf;
constexpr int64_t kSgdStorage = kHalf + 2 * kFloat + kHalf;

struct Training {
  Tensors grads, master, model, m;
  std::unique_ptr<Tensors> v;
  Scaler scaler;
  Optimizer optimizer;
  Buffer reports;  ///< one of the list, and one per tensor
};

/// Parameters of a variant of the step.
struct StepForm {
  mp_optimizer_kind_t kind;
  uint32_t step_flags = 0;       ///< mp_step_flags_t
  uint32_t optimizer_flags = 0;  ///< mp_optimizer_flags_t, in addition to those of the kind
  bool reports = false;
};

Optimizer make_optimizer(const Machine &machine, const Training &t, const StepForm &form) {
  mp_param_group_t group = mp_param_group_default(form.kind, 1e-3f);
  group.weight_decay = 0.01f;
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(form.kind);
  if (form.kind == MP_OPT_ADAM) desc.flags = MP_OPT_FLAG_DECOUPLED_DECAY;
  desc.flags |= form.optimizer_flags;
  desc.groups = &group;
  desc.grads = t.grads.list();
  desc.master = t.master.list();
  desc.model = t.model.list();
  desc.m = t.m.list();
  desc.v = t.v ? t.v->list() : nullptr;
  return mptools::make_optimizer(machine.context(), desc);
}

/// A skipped step writes nothing and would look fast.
void require_applied(const Machine &machine, mp_scaler_t scaler) {
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  check(mp_scaler_get_state_sync(scaler, &state, machine.stream()));
  if (state.steps != 1 || state.skipped != 0)
    throw std::runtime_error("mp_scale_step skipped a step whose gradients are finite");
}

mp_step_options_t options_of(const Training &t, const StepForm &form) {
  mp_step_options_t options = mp_step_options_default();
  options.flags = form.step_flags;
  if (form.reports) {
    options.report = t.reports.as<mp_tensor_report_t>();
    options.tensor_reports = options.report + 1;
  }
  return options;
}

Work make_step(const Machine &machine, Pools &pools, const Layout &layout, const StepForm &form) {
  const auto tensors = [&](mp_dtype_t dtype) { return Tensors(machine, layout, dtype); };
  const auto report_count = static_cast<int64_t>(form.reports ? layout.numel.size() + 1 : 1);
  const auto t = std::make_shared<Training>(
      tensors(MP_FP16), tensors(MP_FP32), tensors(MP_FP16), tensors(MP_FP32), nullptr, nullptr,
      nullptr,
      Buffer(machine.context(), report_count * static_cast<int64_t>(sizeof(mp_tensor_report_t))));
  if (form.kind == MP_OPT_ADAM) t->v = std::make_unique<Tensors>(machine, layout, MP_FP32);
  t->grads.fill(pools.half);
  t->master.fill(pools.single);
  t->scaler = make_scaler(machine);
  t->optimizer = make_optimizer(machine, *t, form);
  const Work work = [t, options = options_of(*t, form), stream = machine.stream()] {
    check(mp_scale_step(t->optimizer.get(), t->scaler.get(), &options, stream));
  };
  work();
  require_applied(machine, t->scaler.get());
  return work;
}

Work take_turns(std::vector<Work> works) {
  return [works = std::move(works), next = size_t{0}]() mutable {
    works[next]();
    next = (next + 1) % works.size();
  };
}

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

/// Passes that form a step, and passes around it, each as a separate call.
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

}  // namespace

std::vector<StepOp> step_ops() {
  constexpr LayoutChoice kAll = LayoutChoice::kAll, kFew = LayoutChoice::kFew;
  const auto step = [](const StepForm &form) {
    return [form](const Machine &machine, Pools &pools, const Layout &layout) {
      return make_step(machine, pools, layout, form);
    };
  };
  std::vector<StepOp> ops = {
      {"scale_step adamw", kAdamWBytes, kAdamWStorage, kAll, true, step({.kind = MP_OPT_ADAM})},
      {"scale_step adamw checked", kCheckedAdamWBytes, kAdamWStorage, kFew, false,
       step({.kind = MP_OPT_ADAM, .step_flags = MP_STEP_FLAG_CHECKED})},
      {"scale_step adamw report", kAdamWBytes, kAdamWStorage, kFew, false,
       step({.kind = MP_OPT_ADAM, .reports = true})},
      {"scale_step adamw stochastic", kAdamWBytes, kAdamWStorage, kFew, false,
       step({.kind = MP_OPT_ADAM, .optimizer_flags = MP_OPT_FLAG_STOCHASTIC_ROUNDING})},
      {"scale_step sgd", kSgdBytes, kSgdStorage, kFew, false, step({.kind = MP_OPT_SGD})},
  };
  for (const StepOp &pass : pass_ops()) ops.push_back(pass);
  return ops;
}

Work make_rotating(const StepOp &op, const Machine &machine, Pools &pools, const Layout &layout,
                   int64_t sets) {
  std::vector<Work> works;
  for (int64_t set = 0; set < sets; ++set) works.push_back(op.make(machine, pools, layout));
  return take_turns(std::move(works));
}

Work make_copy(const Machine &machine, int64_t bytes_moved) {
  const int64_t half_bytes = bytes_moved / 2;
  const int64_t stride = aligned_bytes(half_bytes);
  const int64_t sets = machine.sets_beyond_l2(2 * stride);
  const auto memory = std::make_shared<Buffer>(machine.context(), sets * 2 * stride);
  std::vector<Work> works;
  for (int64_t set = 0; set < sets; ++set) {
    char *const dst = memory->as<char>() + 2 * set * stride;
    works.push_back([=, &machine] {
      machine.call(mp_memcpy, dst, dst + stride, static_cast<size_t>(half_bytes));
    });
  }
  return [memory, turns = take_turns(std::move(works))] { turns(); };
}

}  // namespace mpbench
