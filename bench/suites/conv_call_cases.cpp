// Host time of a convolution call: argument checks, kernel selection, and the rest, as in
// gemm_call_cases.cpp.
#include <memory>

#include "call_cases.h"

namespace mpbench {
namespace {

constexpr char kLayer[] = "32x56x56x64, 64 of 3x3";

mp_conv2d_desc_t layer(int32_t images) {
  mp_conv2d_desc_t desc = mp_conv2d_desc_default(images, 56, 56, 64, 64, 3, 3, MP_FP16);
  desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = 1;
  return desc;
}

int64_t workspace_bytes(const Machine &machine, const mp_conv2d_desc_t &desc, mp_conv_op_t op) {
  return bytes_from(mp_conv2d_workspace_size, machine.context(), &desc, op, nullptr);
}

using Convolve = decltype(mp_conv2d_fprop);

CallCase conv(const char *name, Convolve *convolve, mp_conv_op_t op, int32_t images) {
  return {.call = name,
          .problem = images > 0 ? kLayer : "empty",
          .enqueues = images > 0,
          .make = [convolve, op, images](const Machine &machine, Pools &) -> Work {
            // Images and results have the same size; a filter is smaller.
            const mp_conv2d_desc_t full = layer(32);
            const auto x = std::make_shared<Matrices>(
                matrix(machine, full.n * full.h * full.w, full.c),
                matrix(machine, full.n * full.h * full.w, full.c),
                matrix(machine, full.n * full.h * full.w, full.c),
                Buffer(machine.context(), workspace_bytes(machine, full, op)));
            return [&machine, convolve, desc = layer(images), x] {
              check(convolve(machine.context(), &desc, x->a.data(), x->b.data(), x->d.data(),
                             nullptr, x->workspace.data(),
                             static_cast<size_t>(x->workspace.bytes()), machine.stream()));
            };
          }};
}

CallCase conv_choice() {
  return {.call = "mp_conv2d_workspace_size",
          .problem = kLayer,
          .enqueues = false,
          .make = [](const Machine &machine, Pools &) -> Work {
            return [&machine, desc = layer(32)] {
              (void)workspace_bytes(machine, desc, MP_CONV_FPROP);
            };
          }};
}

}  // namespace

std::vector<CallCase> conv_call_cases() {
  return {
      conv("mp_conv2d_fprop", mp_conv2d_fprop, MP_CONV_FPROP, 0),
      conv_choice(),
      conv("mp_conv2d_fprop", mp_conv2d_fprop, MP_CONV_FPROP, 32),
      conv("mp_conv2d_dgrad", mp_conv2d_dgrad, MP_CONV_DGRAD, 32),
      conv("mp_conv2d_wgrad", mp_conv2d_wgrad, MP_CONV_WGRAD, 32),
  };
}

}  // namespace mpbench
