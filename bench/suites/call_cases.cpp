// Calls of a step other than GEMM and convolution.
#include "call_cases.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "step_data.h"

namespace mpbench {
namespace {

constexpr int64_t kTensorElems = 1000;

const StepOp &step_op(const std::string &name) {
  static const std::vector<StepOp> ops = step_ops();
  const auto found =
      std::find_if(ops.begin(), ops.end(), [&](const StepOp &op) { return op.name == name; });
  if (found == ops.end()) throw std::logic_error(name + " is not an operation of the step");
  return *found;
}

/// An operation of mpbench step on few elements per tensor, so that host work per tensor dominates.
CallCase on_tensors(const char *call, const char *op, int64_t tensors) {
  const Layout layout = equal_tensors(tensors, kTensorElems);
  return {.call = call,
          .problem = text("%lld tensor%s", static_cast<long long>(tensors), tensors > 1 ? "s" : ""),
          .enqueues = true,
          .make = [&chosen = step_op(op), layout](const Machine &machine, Pools &pools) {
            return chosen.make(machine, pools, layout);
          }};
}

/// Case of a call on a scaler.
template <typename Call>
CallCase on_scaler(const char *name, const char *problem, bool enqueues, const Call &call) {
  return {.call = name,
          .problem = problem,
          .enqueues = enqueues,
          .make = [call](const Machine &machine, Pools &) -> Work {
            const auto scaler = std::make_shared<Scaler>(make_scaler(machine));
            // A first update creates an outcome to query.
            check(mp_scaler_update(scaler->get(), nullptr, machine.stream()));
            machine.synchronize();
            return
                [scaler, call, stream = machine.stream()] { check(call(scaler->get(), stream)); };
          }};
}

/// Case of a call on two arrays of `count` elements or bytes.
template <typename Call>
CallCase on_arrays(const char *name, int64_t count, const char *unit, Call call) {
  constexpr int64_t kLargestBytes = 4;
  return {.call = name,
          .problem = count > 0 ? text("%lld %s", static_cast<long long>(count), unit) : "empty",
          .enqueues = count > 0,
          .make = [count, call](const Machine &machine, Pools &) -> Work {
            const auto memory =
                std::make_shared<Buffer>(machine.context(), 2 * kLargestBytes * kTensorElems);
            char *const src = memory->as<char>();
            char *const dst = src + kLargestBytes * kTensorElems;
            return [=, context = machine.context(), stream = machine.stream()] {
              (void)memory;
              check(call(context, dst, src, count, stream));
            };
          }};
}

mp_status_t cast(mp_context_t context, void *dst, const void *src, int64_t elems,
                 mp_stream_t stream) {
  return mp_cast(context, src, MP_FP32, dst, MP_FP16, elems, stream);
}
mp_status_t fill(mp_context_t context, void *dst, const void *, int64_t bytes, mp_stream_t stream) {
  return mp_memset(context, dst, 0, static_cast<size_t>(bytes), stream);
}
mp_status_t copy(mp_context_t context, void *dst, const void *src, int64_t bytes,
                 mp_stream_t stream) {
  return mp_memcpy(context, dst, src, static_cast<size_t>(bytes), stream);
}

CallCase softmax_xent(int64_t rows) {
  constexpr int64_t kRows = 128, kClasses = 1000;
  return {.call = "mp_softmax_xent",
          .problem = rows > 0 ? text("%lldx%lld", static_cast<long long>(rows),
                                     static_cast<long long>(kClasses))
                              : "empty",
          .enqueues = rows > 0,
          .make = [rows](const Machine &machine, Pools &) -> Work {
            const auto logits =
                std::make_shared<Buffer>(make_buffer(machine.context(), kRows * kClasses, MP_FP16));
            const auto labels = std::make_shared<Buffer>(machine.context(), 4 * kRows);
            const auto losses = std::make_shared<Buffer>(machine.context(), 4 * (kRows + 1));
            return [=, &machine, desc = mp_xent_desc_default(rows, kClasses, MP_FP16)] {
              mp_xent_tensors_t t;
              MP_INIT_STRUCT(&t);
              t.x = t.dx = logits->data();
              t.labels = labels->data();
              t.row_loss = losses->as<float>();
              t.loss = rows > 0 ? t.row_loss + kRows : nullptr;
              check(mp_softmax_xent(machine.context(), &desc, &t, machine.stream()));
            };
          }};
}

}  // namespace

std::vector<CallCase> call_cases() {
  std::vector<CallCase> cases = gemm_call_cases();
  for (CallCase &conv : conv_call_cases()) cases.push_back(std::move(conv));
  for (const int64_t tensors : {1, 100, 10'000}) {
    for (const auto &[call, op] :
         {std::pair{"mp_scale_step", "scale_step adamw"},
          std::pair{"mp_check_nonfinite", "check_nonfinite"}, std::pair{"mp_l2norm", "l2norm"},
          std::pair{"mp_grads_accumulate", "grads_accumulate"}})
      cases.push_back(on_tensors(call, op, tensors));
  }
  cases.push_back(
      on_scaler("mp_scaler_update", "backoff", true, [](mp_scaler_t scaler, mp_stream_t stream) {
        return mp_scaler_update(scaler, nullptr, stream);
      }));
  cases.push_back(on_scaler("mp_scaler_query_step", "a step that is done", false,
                            [](mp_scaler_t scaler, mp_stream_t) {
                              mp_step_outcome_t outcome;
                              return mp_scaler_query_step(scaler, 1, &outcome);
                            }));
  for (const int64_t count : {kTensorElems, int64_t{0}}) {
    cases.push_back(on_arrays("mp_cast", count, "elements", cast));
    cases.push_back(on_arrays("mp_memset", count, "bytes", fill));
    cases.push_back(on_arrays("mp_memcpy", count, "bytes", copy));
  }
  cases.push_back(softmax_xent(128));
  cases.push_back(softmax_xent(0));
  return cases;
}

}  // namespace mpbench
