#define MP_ENABLE_EXPERIMENTAL
#include "operation.h"

namespace mpbench {
namespace {

/// @param kernel  NULL: the library's choice
template <typename Desc>
Desc with_kernel(Desc desc, const char *kernel) {
  desc.kernel = kernel;
  return desc;
}

/// @param ask  mp_*_kernel_info of the problem, for the kernel with this index
template <typename Ask>
void add_kernels(Operation &operation, Ask ask) {
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  for (int32_t index = 0;; ++index) {
    const mp_status_t status = ask(index, &info);
    if (status == MP_ERROR_NOT_FOUND) return;
    check(status);
    if (info.why_not != nullptr) return;  // those behind it cannot run it either
    operation.kernels.push_back(info.name);
    if (index == 0)
      operation.predicted_us = static_cast<double>(operation.calls) * info.predicted_us;
  }
}

/// In the order of the arguments of mp_conv2d_*.
void set_elems(Operation &operation, const ConvShape &shape) {
  const auto x = static_cast<int64_t>(shape.x_elems());
  const auto y = static_cast<int64_t>(shape.y_elems());
  const auto filter = static_cast<int64_t>(shape.filter_elems());
  const bool is_fprop = shape.op == MP_CONV_FPROP, is_wgrad = shape.op == MP_CONV_WGRAD;
  operation.first_elems = is_fprop || is_wgrad ? x : y;
  operation.second_elems = is_wgrad ? y : filter;
  operation.out_elems = is_fprop ? y : is_wgrad ? filter : x;
}

}  // namespace

Operation gemm_operation(const Machine &machine, const Shape &shape, const mp_gemm_desc_t &desc) {
  Operation operation{.first_elems = desc.m * desc.k,
                      .second_elems = desc.k * desc.n,
                      .out_elems = desc.m * desc.n,
                      .dtype = desc.dtype_ab,
                      .out_dtype = desc.dtype_cd,
                      .beta = desc.beta,
                      .calls = shape.calls,
                      .flop = shape.flop(),
                      .min_bytes = min_bytes(desc, shape.calls),
                      .kernels = {},
                      .predicted_us = 0,
                      .workspace_bytes = {},
                      .enqueue = {}};
  operation.workspace_bytes = [&machine, desc](const char *kernel) {
    const mp_gemm_desc_t forced = with_kernel(desc, kernel);
    size_t bytes = 0;
    check(mp_gemm_workspace_size(machine.context(), &forced, &bytes));
    return static_cast<int64_t>(bytes);
  };
  operation.enqueue = [&machine, desc](const char *kernel, const Operands &t,
                                       const Buffer &workspace) {
    const mp_gemm_desc_t forced = with_kernel(desc, kernel);
    check(mp_gemm(machine.context(), &forced, t.first, t.second, t.out, t.out, nullptr,
                  workspace.data(), static_cast<size_t>(workspace.bytes()), machine.stream()));
  };
  add_kernels(operation, [&](int32_t index, mp_kernel_info_t *info) {
    return mp_gemm_kernel_info(machine.context(), &desc, index, info);
  });
  return operation;
}

Operation conv_operation(const Machine &machine, const ConvShape &shape,
                         const mp_conv2d_desc_t &desc) {
  const mp_conv_op_t op = shape.op;
  const auto convolve = op == MP_CONV_FPROP   ? mp_conv2d_fprop
                        : op == MP_CONV_DGRAD ? mp_conv2d_dgrad
                                              : mp_conv2d_wgrad;
  Operation operation{.first_elems = 0,
                      .second_elems = 0,
                      .out_elems = 0,
                      .dtype = desc.dtype,
                      .out_dtype = desc.dtype_out,
                      .beta = desc.beta,
                      .calls = 1,
                      .flop = shape.flop(),
                      .min_bytes = min_bytes(shape, desc),
                      .kernels = {},
                      .predicted_us = 0,
                      .workspace_bytes = {},
                      .enqueue = {}};
  set_elems(operation, shape);
  operation.workspace_bytes = [&machine, desc, op](const char *kernel) {
    const mp_conv2d_desc_t forced = with_kernel(desc, kernel);
    size_t bytes = 0;
    check(mp_conv2d_workspace_size(machine.context(), &forced, op, &bytes));
    return static_cast<int64_t>(bytes);
  };
  operation.enqueue = [&machine, desc, convolve](const char *kernel, const Operands &t,
                                                 const Buffer &workspace) {
    const mp_conv2d_desc_t forced = with_kernel(desc, kernel);
    check(convolve(machine.context(), &forced, t.first, t.second, t.out, nullptr, workspace.data(),
                   static_cast<size_t>(workspace.bytes()), machine.stream()));
  };
  add_kernels(operation, [&](int32_t index, mp_kernel_info_t *info) {
    return mp_conv2d_kernel_info(machine.context(), &desc, op, index, info);
  });
  return operation;
}

}  // namespace mpbench
