#define MP_ENABLE_EXPERIMENTAL
#include "operation.h"

#include "runnable.h"

namespace mpbench {
namespace {

/// @param kernel  NULL: the library's choice
template <typename Desc>
Desc with_kernel(Desc desc, const char *kernel) {
  desc.plan = named_plan(kernel == kNotNamed ? nullptr : kernel);
  return desc;
}

void set_kernels(Operation &operation, Runnable runnable) {
  operation.kernels = std::move(runnable.kernels);
  operation.predicted_us = static_cast<double>(operation.calls) * runnable.predicted_us;
}

/// @param ask  calls mp_*_get_plan
template <typename Ask>
std::string planned_kernel(Ask ask) {
  mp_plan_t plan;
  MP_INIT_STRUCT(&plan);
  check(ask(&plan));
  return plan.kernel;
}

/// Sets the sizes in the order of the arguments of mp_conv2d_*.
void set_elems(Operation &operation, const ConvShape &shape) {
  const auto x = static_cast<int64_t>(shape.x_elems());
  const auto y = static_cast<int64_t>(shape.y_elems());
  const auto filter = static_cast<int64_t>(shape.filter_elems());
  const bool is_fprop = shape.op == MP_CONV_FPROP, is_wgrad = shape.op == MP_CONV_WGRAD;
  operation.first_elems = is_fprop || is_wgrad ? x : y;
  operation.second_elems = is_wgrad ? y : filter;
  operation.out_elems = is_fprop ? y : is_wgrad ? filter : x;
}

/// cuDNN may use Winograd's algorithm, which rounds transformed images and filters to the type of
/// the tensors.  With F(4x4, 3x3), the largest tile in use, these roundings are up to an order of
/// magnitude larger than those of direct products: 8 roundings of P.
/// Source: Lavin, Gray, Fast Algorithms for Convolutional Neural Networks, 2016.
Tolerance tolerance_of(const ConvShape &shape, const mp_conv2d_desc_t &desc) {
  const double terms = shape.op == MP_CONV_FPROP   ? shape.filter_elems() / shape.k
                       : shape.op == MP_CONV_DGRAD ? shape.filter_elems() / shape.c
                                                   : shape.y_elems() / shape.k;
  const auto count = static_cast<int64_t>(terms);
  Tolerance tolerance = tolerance_of_sums(count, desc.dtype_out);
  if (desc.dtype != MP_FP32)
    tolerance.absolute += 8 * unit_roundoff(desc.dtype) * magnitude_of_sums(count);
  return tolerance;
}

mp_epilogue_t epilogue_of(Epilogue epilogue, mp_dtype_t dtype, const EpilogueTensors &t) {
  mp_epilogue_t description = mp_epilogue_default();
  description.bias = t.bias;
  description.dtype_bias = dtype;
  description.aux = t.aux;
  description.dbias = t.dbias;
  description.stats.amax = t.amax;
  description.stats.found_inf = t.found_inf;
  description.activation = epilogue == Epilogue::kBiasRelu      ? MP_ACT_RELU
                           : epilogue == Epilogue::kBiasGeluAux ? MP_ACT_GELU
                           : epilogue == Epilogue::kDgeluDbias  ? MP_ACT_DGELU
                                                                : MP_ACT_NONE;
  return description;
}

}  // namespace

void add_gemm_kernels(Operation &operation, const Machine &machine, const mp_gemm_desc_t &desc) {
  set_kernels(operation, runnable_kernels([&](int32_t index, mp_kernel_info_t *info) {
                return mp_gemm_kernel_info(machine.context(), &desc, index, info);
              }));
  operation.selected_kernel = [&machine, desc](const Buffer &workspace) {
    return planned_kernel([&](mp_plan_t *plan) {
      return mp_gemm_get_plan(machine.context(), &desc, nullptr,
                              static_cast<size_t>(workspace.bytes()), plan);
    });
  };
}

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
                      .tolerance = tolerance_of_sums(desc.k, desc.dtype_cd)};
  operation.workspace_bytes = [&machine, desc](const char *kernel) {
    const mp_gemm_desc_t forced = with_kernel(desc, kernel);
    return bytes_from(mp_gemm_workspace_size, machine.context(), &forced, nullptr);
  };
  operation.enqueue = [&machine, desc](const char *kernel, const Operands &t,
                                       const Buffer &workspace) {
    const mp_gemm_desc_t forced = with_kernel(desc, kernel);
    check(mp_gemm(machine.context(), &forced, t.first, t.second, t.out, t.out, nullptr,
                  workspace.data(), static_cast<size_t>(workspace.bytes()), machine.stream()));
  };
  add_gemm_kernels(operation, machine, desc);
  return operation;
}

Operation epilogue_operation(const Machine &machine, const EpilogueShape &shape,
                             const mp_gemm_desc_t &desc) {
  const Epilogue epilogue = shape.epilogue;
  Operation operation = gemm_operation(machine, shape.gemm, desc);
  operation.epilogue = epilogue;
  if (epilogue != Epilogue::kNone && epilogue != Epilogue::kAccumulateFp32) {
    operation.kernels = {kNotNamed};
    operation.predicted_us = 0;
  }
  operation.row_elems = desc.n;
  operation.min_bytes = min_bytes(shape, desc);
  if (epilogue == Epilogue::kBiasGeluAux || epilogue == Epilogue::kDgeluDbias) {
    // GELU and its derivative have slopes below 1.13.  tanh may be the hardware's, with a relative
    // error of 2^-11 (PTX ISA, tanh.approx.f32).
    operation.tolerance.absolute =
        1.13 * operation.tolerance.absolute + 0x1p-10 * magnitude_of_sums(desc.k);
  }
  alignas(16) static float any[2];  // only the addresses are used
  EpilogueTensors t;
  if (epilogue == Epilogue::kBias || epilogue == Epilogue::kBiasRelu ||
      epilogue == Epilogue::kBiasGeluAux)
    t.bias = any;
  if (epilogue == Epilogue::kBiasGeluAux || epilogue == Epilogue::kDgeluDbias) t.aux = any;
  if (epilogue == Epilogue::kDgeluDbias) t.dbias = any;
  if (epilogue == Epilogue::kAmaxFoundInf) {
    t.amax = any;
    t.found_inf = any + 1;
  }
  const mp_epilogue_t asked = epilogue_of(epilogue, desc.dtype_cd, t);
  operation.selected_kernel = [&machine, desc, asked](const Buffer &workspace) {
    return planned_kernel([&](mp_plan_t *plan) {
      return mp_gemm_get_plan(machine.context(), &desc, &asked,
                              static_cast<size_t>(workspace.bytes()), plan);
    });
  };
  operation.workspace_bytes = [&machine, desc, asked](const char *kernel) {
    const mp_gemm_desc_t forced = with_kernel(desc, kernel);
    return bytes_from(mp_gemm_workspace_size, machine.context(), &forced, &asked);
  };
  operation.enqueue = [&machine, desc, epilogue](const char *kernel, const Operands &t,
                                                 const Buffer &workspace) {
    const mp_gemm_desc_t forced = with_kernel(desc, kernel);
    const mp_epilogue_t description = epilogue_of(epilogue, desc.dtype_cd, t.epilogue);
    check(mp_gemm(machine.context(), &forced, t.first, t.second, t.out, t.out, &description,
                  workspace.data(), static_cast<size_t>(workspace.bytes()), machine.stream()));
  };
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
                      .tolerance = tolerance_of(shape, desc)};
  set_elems(operation, shape);
  operation.workspace_bytes = [&machine, desc, op](const char *kernel) {
    const mp_conv2d_desc_t forced = with_kernel(desc, kernel);
    return bytes_from(mp_conv2d_workspace_size, machine.context(), &forced, op, nullptr);
  };
  operation.enqueue = [&machine, desc, convolve](const char *kernel, const Operands &t,
                                                 const Buffer &workspace) {
    const mp_conv2d_desc_t forced = with_kernel(desc, kernel);
    check(convolve(machine.context(), &forced, t.first, t.second, t.out, nullptr, workspace.data(),
                   static_cast<size_t>(workspace.bytes()), machine.stream()));
  };
  operation.selected_kernel = [&machine, desc, op](const Buffer &workspace) {
    return planned_kernel([&](mp_plan_t *plan) {
      return mp_conv2d_get_plan(machine.context(), &desc, op, nullptr,
                                static_cast<size_t>(workspace.bytes()), plan);
    });
  };
  set_kernels(operation, runnable_kernels([&](int32_t index, mp_kernel_info_t *info) {
                return mp_conv2d_kernel_info(machine.context(), &desc, op, index, info);
              }));
  return operation;
}

}  // namespace mpbench
