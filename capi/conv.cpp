// mpcore/conv.h: convolution.
#define MP_ENABLE_EXPERIMENTAL
#include <algorithm>
#include <initializer_list>
#include <string>

#include "capi/gemm_problem.h"
#include "capi/kernel_info.h"
#include "capi/nvtx_payload.h"
#include "kernels/conv/conv_plan.h"

using namespace mp;

namespace {

// ---------------------------------------------------------------------------- descriptor

void require_divides(int32_t groups, int32_t channels, const char *name) {
  MP_REQUIRE(channels % groups == 0, MP_ERROR_INVALID_ARGUMENT, "groups = ", groups,
             " must divide ", name, " = ", channels);
}

/// Reads the fields that determine P and Q.
mp_conv2d_desc_t read_shape(const mp_conv2d_desc_t *user) {
  const mp_conv2d_desc_t d = read_struct(user, "desc");
  MP_CHECK_FIELDS(require_not_negative, d, n, pad_top, pad_bottom, pad_left, pad_right);
  MP_CHECK_FIELDS(require_positive, d, h, w, c, k, r, s, stride_h, stride_w, dilation_h, dilation_w,
                  groups);
  require_divides(d.groups, d.c, "c");
  require_divides(d.groups, d.k, "k");
  require_zero(d.reserved0, "reserved0");
  return d;
}

NamedNumber height(const mp_conv2d_desc_t &d) {
  return {padded_h(d), "h + pad_top + pad_bottom"};
}
NamedNumber width(const mp_conv2d_desc_t &d) {
  return {padded_w(d), "w + pad_left + pad_right"};
}

/// Formats extents: "n = 1, h = 2".
std::string extents_text(std::initializer_list<NamedNumber> extents) {
  std::string text;
  for (const NamedNumber &extent : extents)
    text += (text.empty() ? "" : ", ") + (extent.name + (" = " + std::to_string(extent.value)));
  return text;
}

/// Fails unless the product is less than 2^30: kernels index images and filters with 32 bits.
void require_countable(const char *what, const char *of,
                       std::initializer_list<NamedNumber> extents) {
  constexpr int64_t kLimit = int64_t{1} << 30;
  int64_t product = 1;
  const bool fits = std::all_of(extents.begin(), extents.end(), [&](const NamedNumber &extent) {
    return multiply_add(product, extent.value, 0, &product) && product < kLimit;
  });
  MP_REQUIRE(fits, MP_ERROR_UNSUPPORTED, extents_text(extents), ": ", what,
             " must have fewer than 2^30 ", of);
}

mp_conv2d_desc_t read_desc(const mp_conv2d_desc_t *user) {
  const mp_conv2d_desc_t d = read_shape(user);
  MP_CHECK_FIELDS(require_dtype, d, dtype, dtype_out);
  const auto [p, q] = conv_extents(d);
  const NamedNumber n{d.n, "n"}, k{d.k, "k"}, rows{p, "p"}, cols{q, "q"};
  // Kernels pad channels to multiples of 8.  The limit also covers r s (k / groups + 7).
  const NamedNumber padded_c{int64_t{d.c} / d.groups + 7, "c / groups + 7"};
  require_countable("a padded image of x", "elements", {height(d), width(d), {d.c, "c"}});
  require_countable("an image of y", "elements", {rows, cols, k});
  require_countable("filter", "elements", {{d.r, "r"}, {d.s, "s"}, padded_c, k});
  require_countable("x", "pixels", {n, {d.h, "h"}, {d.w, "w"}});
  require_countable("y", "pixels", {n, rows, cols});
  return d;
}

/// True if there are output pixels.
bool has_pixels(const ConvShape &s) {
  return s.n > 0 && s.p > 0 && s.q > 0;
}

/// True if the inputs are read; like BLAS, not if alpha = 0.
bool reads_inputs(const ConvProblem &problem) {
  return has_pixels(problem.shape) && problem.out.alpha != 0.0f;
}

// ---------------------------------------------------------------------------- kernel selection

ConvPlan find_conv_plan(const Context &context, const ConvProblem &problem,
                        const RequestedPlan &requested, size_t workspace_bytes) {
  const size_t limit = requested.workspace_limit(workspace_bytes);
  if (!requested.is_set())
    return cached_plan<ConvPlan>(context, key_of(problem), limit, [&](const PlanRequest &request) {
      const ConvPlan plan =
          plan_conv(problem, request, TunedCall(context, key_of(problem), limit).kernel());
      if (logs_plans()) log_new_plan(text_of(problem.shape), plan.name, plan.gemm);
      return plan;
    });
  ConvPlan plan;
  const char *why;
  const bool is_planned =
      plan_named_conv(problem, plan_request(context, limit), requested.kernel(), &plan, &why);
  requested.finish(is_planned, why, workspace_bytes, plan.gemm);
  return plan;
}

// ---------------------------------------------------------------------------- calls

/// Tensor argument with its name.
struct TensorArgument {
  const void *data;
  const char *name;
};

/// Arguments that fprop, dgrad and wgrad have in common.
struct ConvCall {
  const char *function;
  mp_conv_op_t op;
  TensorArgument image, other, out;
};

void check_tensor(const TensorArgument &tensor, mp_dtype_t dtype, bool is_used) {
  require_aligned(tensor.data, tensor.name, mp_dtype_size(dtype));
  MP_REQUIRE(tensor.data != nullptr || !is_used, MP_ERROR_INVALID_ARGUMENT, tensor.name, " = NULL");
}

void check_overlap(const ConvCall &call, const ConvProblem &problem, const Workspace &workspace) {
  const ConvShape &s = problem.shape;
  const int64_t x = int64_t{s.n} * s.h * s.w * s.c, y = int64_t{s.n} * s.p * s.q * s.k;
  const int64_t filter = int64_t{s.k} * s.r * s.s * group_c(s);
  const auto input = [&](const TensorArgument &tensor, int64_t elems) {
    return dense_region(reads_inputs(problem) ? tensor.data : nullptr, tensor.name, elems,
                        problem.dtype);
  };
  const bool is_dgrad = call.op == MP_CONV_DGRAD, is_wgrad = call.op == MP_CONV_WGRAD;
  const int64_t written = is_dgrad ? x : is_wgrad ? filter : y;
  check_overlap(problem.out, dense_region(call.out.data, call.out.name, written, problem.out.dtype),
                {input(call.image, is_dgrad ? y : x), input(call.other, is_wgrad ? y : filter)},
                workspace);
}

/// Measures the kernels of a new call.
void measure(const Context &context, const ConvProblem &problem, int32_t max_kernels,
             const Workspace &space, mp_stream_t stream) {
  const TunedCall call(context, key_of(problem), space.bytes);
  if (call.kernel() != nullptr) return;
  const PlanRequest request = plan_request(context, space.bytes);
  const auto launch = [&](const ConvProblem &measured, const ConvPlan &plan) {
    context.backend.conv(context.device, measured, plan, space, stream);
  };
  const char *const pass = problem.op == MP_CONV_FPROP   ? "fprop, "
                           : problem.op == MP_CONV_DGRAD ? "dgrad, "
                                                         : "wgrad, ";
  call.measure(pass + text_of(problem.shape), problem,
               fastest_conv_plans(problem, request, max_kernels), launch, stream);
}

void run(const Context &context, const ConvCall &call, const ConvProblem &problem,
         const RequestedPlan &requested, const Workspace &space, mp_stream_t stream) {
  const int32_t max_kernels = measured_kernels(context);
  if (max_kernels > 0 && !requested.is_set()) measure(context, problem, max_kernels, space, stream);
  const ConvPlan plan = find_conv_plan(context, problem, requested, space.bytes);
  log_slow_plan(context, call.function, problem.out, plan.gemm, space.bytes,
                [&] { return conv_slow_path_reason(problem, context.device); });
  log_plan(context, call.function, problem.shape, plan.name, plan.gemm.workspace.bytes);
  context.backend.conv(context.device, problem, plan, space, stream);
}

/// Computes beta * out and its epilogue, without a product.
void run_without_product(const Context &context, const ConvProblem &problem, mp_stream_t stream) {
  const Output &out = problem.out;
  if (out.m > 0) {
    const GemmProblem gemm = operands_of(problem);
    const GemmPlan plan = find_plan(context, shape_of(gemm), {}, 0);
    context.backend.gemm(context.device, gemm, plan, {nullptr, 0}, stream);
  } else {
    clear_sums(context, out.epilogue.dbias, out.n, stream);
  }
}

/// Returns the problem of a descriptor with its epilogue, without data.
ConvProblem read_problem(const mp_conv2d_desc_t &d, mp_conv_op_t op, const mp_epilogue_t *epilogue,
                         const char *function) {
  ConvProblem problem = conv_problem(d, op);
  problem.out.epilogue = op == MP_CONV_WGRAD ? read_scaling_epilogue(epilogue, function)
                                             : read_epilogue(epilogue, problem.out);
  return problem;
}

mp_status_t convolve(const ConvCall &call, mp_context_t context, const mp_conv2d_desc_t *desc,
                     const mp_epilogue_t *epilogue, const Workspace &space, mp_stream_t stream) {
  return mp::call(call.function, context, nvtx_payload(desc), [&](const Context &c) {
    const mp_conv2d_desc_t d = read_desc(desc);
    const RequestedPlan requested(d.plan);
    ConvProblem problem = read_problem(d, call.op, epilogue, call.function);
    const bool multiplies = reads_inputs(problem);
    check_tensor(call.image, d.dtype, multiplies);
    check_tensor(call.other, d.dtype, multiplies);
    check_tensor(call.out, d.dtype_out, problem.out.m > 0);
    check_workspace(space);
    problem.image = call.image.data;
    problem.other = call.other.data;
    problem.out.c.base = problem.out.d.base = call.out.data;
    check_overlap(call, problem, space);
    if (multiplies) return run(c, call, problem, requested, space, stream);
    requested.require_known(conv_names(call.op));
    run_without_product(c, problem, stream);
  });
}

/// A query about one pass.
struct Query {
  Query(const mp_conv2d_desc_t *user, const mp_conv_op_t &op, const mp_epilogue_t *epilogue,
        const char *function)
      : desc(read_desc(user)), requested(desc.plan) {
    require_enum(op, "op");
    problem = read_problem(desc, op, epilogue, function);
  }

  ConvPlan plan(const Context &context, size_t workspace_bytes) const {
    return find_conv_plan(context, problem, requested, workspace_bytes);
  }
  mp_kernel_info_t info(const Context &context, int32_t index) const {
    const PlanRequest request = plan_request(context);
    return kernel_info(context, index, rank_conv(problem, request), conv_names(problem.op),
                       [&](const char *name, const char **why) {
                         ConvPlan plan;
                         return plan_named_conv(problem, request, name, &plan, why);
                       });
  }
  /// Fails for a problem without output pixels, which launches no convolution.
  void require_pixels() const {
    const ConvShape &s = problem.shape;
    MP_REQUIRE(has_pixels(s), MP_ERROR_NOT_FOUND, "n = ", s.n, ", p = ", s.p, ", q = ", s.q,
               ": an empty problem requires no kernel");
  }

  mp_conv2d_desc_t desc;
  RequestedPlan requested;
  ConvProblem problem;
};

}  // namespace

mp_status_t mp_conv2d_get_output_size(const mp_conv2d_desc_t *desc, int32_t *p, int32_t *q) {
  return call(__func__, nvtx_payload(desc), [&] {
    const mp_conv2d_desc_t d = read_shape(desc);
    require_pointer(p, "p");
    require_pointer(q, "q");
    const auto [rows, cols] = conv_extents(d);
    MP_REQUIRE(rows <= INT32_MAX && cols <= INT32_MAX, MP_ERROR_UNSUPPORTED,
               extents_text({height(d), width(d)}), ": p = ", rows, " and q = ", cols,
               " must be less than 2^31");
    *p = static_cast<int32_t>(rows);
    *q = static_cast<int32_t>(cols);
  });
}

mp_status_t mp_conv2d_workspace_size(mp_context_t context, const mp_conv2d_desc_t *desc,
                                     mp_conv_op_t op, const mp_epilogue_t *epilogue,
                                     size_t *bytes) {
  return call(__func__, context, nvtx_payload(desc), [&, function = __func__](const Context &c) {
    require_pointer(bytes, "bytes");
    const Query query(desc, op, epilogue, function);
    if (reads_inputs(query.problem)) {
      *bytes = workspace_bytes_of(query.plan(c, SIZE_MAX).gemm);
    } else {
      query.requested.require_known(conv_names(op));
      *bytes = 0;
    }
  });
}

mp_status_t mp_conv2d_get_plan(mp_context_t context, const mp_conv2d_desc_t *desc, mp_conv_op_t op,
                               const mp_epilogue_t *epilogue, size_t max_workspace_bytes,
                               mp_plan_t *plan) {
  return call(__func__, context, nvtx_payload(desc), [&, function = __func__](const Context &c) {
    require_struct(plan, "plan");
    const Query query(desc, op, epilogue, function);
    query.require_pixels();
    const ConvPlan found = query.plan(c, max_workspace_bytes);
    write_struct(plan, "plan", stable_plan(found.name, found.gemm));
  });
}

mp_status_t mp_conv2d_fprop(mp_context_t context, const mp_conv2d_desc_t *desc, const void *x,
                            const void *filter, void *y, const mp_epilogue_t *epilogue,
                            void *workspace, size_t workspace_bytes, mp_stream_t stream) {
  const ConvCall call{__func__, MP_CONV_FPROP, {x, "x"}, {filter, "filter"}, {y, "y"}};
  return convolve(call, context, desc, epilogue, {workspace, workspace_bytes}, stream);
}

mp_status_t mp_conv2d_dgrad(mp_context_t context, const mp_conv2d_desc_t *desc, const void *dy,
                            const void *filter, void *dx, const mp_epilogue_t *epilogue,
                            void *workspace, size_t workspace_bytes, mp_stream_t stream) {
  const ConvCall call{__func__, MP_CONV_DGRAD, {dy, "dy"}, {filter, "filter"}, {dx, "dx"}};
  return convolve(call, context, desc, epilogue, {workspace, workspace_bytes}, stream);
}

mp_status_t mp_conv2d_wgrad(mp_context_t context, const mp_conv2d_desc_t *desc, const void *x,
                            const void *dy, void *dfilter, const mp_epilogue_t *epilogue,
                            void *workspace, size_t workspace_bytes, mp_stream_t stream) {
  const ConvCall call{__func__, MP_CONV_WGRAD, {x, "x"}, {dy, "dy"}, {dfilter, "dfilter"}};
  return convolve(call, context, desc, epilogue, {workspace, workspace_bytes}, stream);
}

mp_status_t mp_conv2d_kernel_info(mp_context_t context, const mp_conv2d_desc_t *desc,
                                  mp_conv_op_t op, int32_t index, mp_kernel_info_t *info) {
  return call(__func__, context, nvtx_payload(desc), [&, function = __func__](const Context &c) {
    const Query query(desc, op, nullptr, function);
    require_struct(info, "info");
    require_not_negative(index, "index");
    query.require_pixels();
    write_struct(info, "info", query.info(c, index));
  });
}

mp_status_t mp_conv2d_explain(mp_context_t context, const mp_conv2d_desc_t *desc, mp_conv_op_t op,
                              const mp_epilogue_t *epilogue, char *text, size_t *bytes) {
  return call(__func__, context, nvtx_payload(desc), [&, function = __func__](const Context &c) {
    const Query query(desc, op, epilogue, function);
    query.require_pixels();
    const ConvPlan plan = query.plan(c, SIZE_MAX);
    write_text(plan_text(c, text_of(query.problem.shape), plan.name, plan.gemm, plan.copy.bytes(),
                         next_candidates(query, c, plan.name)),
               text, bytes);
  });
}
