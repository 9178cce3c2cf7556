#define MP_ENABLE_EXPERIMENTAL
#include "operation.h"

#include <optional>

#include "runnable.h"

namespace mpbench {
namespace {

void set_kernels(Operation &operation, Runnable runnable) {
  operation.kernels = std::move(runnable.kernels);
  operation.predicted_us = static_cast<double>(operation.calls) * runnable.predicted_us;
}

/// Sets the functions that return the workspace size of a kernel and the selected kernel.
/// @param query  calls a function of the library with a descriptor and further arguments
template <typename Desc, typename WorkspaceSize, typename GetPlan, typename Query>
void set_queries(Operation &operation, const Desc &desc, WorkspaceSize *workspace_size,
                 GetPlan *get_plan, const Query &query) {
  operation.workspace_bytes = [=](const char *kernel) {
    return bytes_from(
        [&](size_t *bytes) { return query(workspace_size, with_kernel(desc, kernel), bytes); });
  };
  operation.selected_kernel = [=](const Buffer &workspace) -> std::string {
    mp_plan_t plan;
    MP_INIT_STRUCT(&plan);
    check(query(get_plan, desc, static_cast<size_t>(workspace.bytes()), &plan));
    return plan.kernel;
  };
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

/// Returns no epilogue for a plain GEMM.
std::optional<mp_epilogue_t> epilogue_of(Epilogue epilogue, mp_dtype_t dtype,
                                         const EpilogueTensors &t) {
  if (epilogue == Epilogue::kNone) return std::nullopt;
  mp_epilogue_t description = mp_epilogue_default();
  description.bias = t.bias;
  description.dtype_bias = dtype;
  description.aux = t.aux;
  description.dbias = t.dbias;
  description.stats.amax = t.amax;
  description.stats.found_inf = t.found_inf;
  description.activation = kind_of(epilogue).activation;
  return description;
}

const mp_epilogue_t *pointer(const std::optional<mp_epilogue_t> &epilogue) {
  return epilogue ? &*epilogue : nullptr;
}

}  // namespace

void add_gemm_kernels(Operation &operation, const Machine &machine, const mp_gemm_desc_t &desc) {
  set_kernels(operation, runnable_kernels([&](int32_t index, mp_kernel_info_t *info) {
                return mp_gemm_kernel_info(machine.context(), &desc, index, info);
              }));
  alignas(16) static float any[2];  // only the addresses are used
  const EpilogueKind &kind = kind_of(operation.epilogue);
  EpilogueTensors t;
  if (kind.has_bias) t.bias = any;
  if (kind.has_aux) t.aux = any;
  if (kind.has_dbias) t.dbias = any;
  if (kind.has_stats) {
    t.amax = any;
    t.found_inf = any + 1;
  }
  set_queries(operation, desc, mp_gemm_workspace_size, mp_gemm_get_plan,
              [&machine, asked = epilogue_of(operation.epilogue, desc.dtype_cd, t)](
                  auto *function, const mp_gemm_desc_t &of, auto... arguments) {
                return function(machine.context(), &of, pointer(asked), arguments...);
              });
}

Operation gemm_operation(const Machine &machine, const Shape &shape, const mp_gemm_desc_t &desc,
                         Epilogue epilogue) {
  Operation operation{.first_elems = desc.m * desc.k,
                      .second_elems = desc.k * desc.n,
                      .out_elems = desc.m * desc.n,
                      .dtype = desc.dtype_ab,
                      .out_dtype = desc.dtype_cd,
                      .beta = desc.beta,
                      .calls = shape.calls,
                      .flop = shape.flop(),
                      .min_bytes = min_bytes(desc, shape.calls),
                      .tolerance = tolerance_of_sums(desc.k, desc.dtype_cd),
                      .epilogue = epilogue,
                      .row_elems = desc.n};
  operation.enqueue = [&machine, desc, epilogue](const char *kernel, const Operands &t,
                                                 const Buffer &workspace) {
    const mp_gemm_desc_t forced = with_kernel(desc, kernel);
    const auto description = epilogue_of(epilogue, desc.dtype_cd, t.epilogue);
    machine.call(mp_gemm, &forced, t.first, t.second, t.out, t.out, pointer(description),
                 workspace);
  };
  add_gemm_kernels(operation, machine, desc);
  return operation;
}

Operation epilogue_operation(const Machine &machine, const EpilogueShape &shape,
                             const mp_gemm_desc_t &desc) {
  Operation operation = gemm_operation(machine, shape.gemm, desc, shape.epilogue);
  if (shape.epilogue != Epilogue::kNone && shape.epilogue != Epilogue::kAccumulateFp32) {
    operation.kernels = {kNotNamed};
    operation.predicted_us = 0;
  }
  operation.min_bytes = min_bytes(shape, desc);
  if (kind_of(shape.epilogue).has_aux) {
    // GELU and its derivative have slopes below 1.13.  tanh may be the hardware's, with a relative
    // error of 2^-11 (PTX ISA, tanh.approx.f32).
    operation.tolerance.absolute =
        1.13 * operation.tolerance.absolute + 0x1p-10 * magnitude_of_sums(desc.k);
  }
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
  set_queries(operation, desc, mp_conv2d_workspace_size, mp_conv2d_get_plan,
              [&machine, op](auto *function, const mp_conv2d_desc_t &of, auto... arguments) {
                return function(machine.context(), &of, op, nullptr, arguments...);
              });
  operation.enqueue = [&machine, desc, convolve](const char *kernel, const Operands &t,
                                                 const Buffer &workspace) {
    const mp_conv2d_desc_t forced = with_kernel(desc, kernel);
    machine.call(convolve, &forced, t.first, t.second, t.out, nullptr, workspace);
  };
  set_kernels(operation, runnable_kernels([&](int32_t index, mp_kernel_info_t *info) {
                return mp_conv2d_kernel_info(machine.context(), &desc, op, index, info);
              }));
  return operation;
}

}  // namespace mpbench
