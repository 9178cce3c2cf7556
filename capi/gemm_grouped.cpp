// mpcore/gemm.h, GEMMs of different shapes.  mp_gemm_grouped: one launch if a kernel can run the
// complete group, else the launches of mp_gemm for each item.  mp_gemm_ragged: groups whose sizes
// are in device memory.
#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "capi/gemm_problem.h"
#include "capi/nvtx_payload.h"
#include "kernels/gemm/plan_text.h"

using namespace mp;

namespace {

// ---------------------------------------------------------------------------- common fields

/// Reads the common descriptor; fields that items specify must be 0.
mp_gemm_desc_t read_common(const mp_gemm_desc_t *user) {
  const mp_gemm_desc_t d = read_struct(user, "desc");
  check_operation(d);
  const auto require_unset = [](int64_t value, const char *name) {
    MP_REQUIRE(value == 0, MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
               " must be 0: the items specify the shapes");
  };
  MP_CHECK_FIELDS(require_unset, d, m, n, k);
  for (const Matrix &matrix : {matrix_a(d), matrix_b(d), matrix_c(d), matrix_d(d)}) {
    require_unset(matrix.ld, matrix.ld_name);
    require_unset(matrix.stride, matrix.stride_name);
  }
  MP_REQUIRE(d.batch_count == 1, MP_ERROR_INVALID_ARGUMENT, "batch_count = ", d.batch_count,
             " must be 1: each item is one GEMM");
  return d;
}

// ---------------------------------------------------------------------------- items

/// Runs `body`; if it fails, prepends "items[index]" and `joint` to the message.
template <class Body>
auto for_item(int64_t index, const char *joint, const Body &body) {
  try {
    return body();
  } catch (const CallError &error) {
    fail(error.status, "items[", index, "]", joint, error.why.c_str());
  }
}

/// Returns the descriptor of an item for mp_gemm.
mp_gemm_desc_t desc_of(const mp_gemm_desc_t &common, const mp_gemm_group_item_t &item) {
  mp_gemm_desc_t d = common;
  MP_COPY_FIELDS(d, item, m, n, k, ld_a, ld_b, ld_c, ld_d);
  return d;
}

/// Fails if two outputs overlap; sorted by address, only neighbors need a check.
void require_separate_outputs(std::vector<GemmGroupItem> products, mp_dtype_t dtype) {
  std::ranges::sort(products, std::less<const void *>(), &GemmGroupItem::d);
  const auto region = [&](const GemmGroupItem &item, const char *name) {
    return matrix_region(item.d, name, item.m, item.n, item.ld_d, dtype);
  };
  for (size_t i = 1; i < products.size(); i++)
    for_item(products[i].index, ".", [&] {
      require_apart(region(products[i], "D"), region(products[i - 1], "D of another item"));
    });
}

/// Returns all items that are not empty.
/// @param epilogue  NULL: pointers are ignored
std::vector<GemmGroupItem> read_items(const mp_gemm_desc_t &common, int32_t count,
                                      const mp_gemm_group_item_t *items, const Epilogue *epilogue,
                                      const Workspace &workspace) {
  require_not_negative(count, "count");
  std::vector<GemmGroupItem> products;
  int64_t tiles = 0;
  for (int32_t i = 0; i < count; ++i) {
    mp_gemm_group_item_t item = read_element(items, static_cast<size_t>(i), "items");
    if (epilogue == nullptr) item.A = item.B = item.C = item.D = nullptr;
    for_item(i, ".", [&] {
      const mp_gemm_desc_t d = desc_of(common, item);
      require_zero(item.reserved0, "reserved0");
      check_shape(d);
      tiles += count_tiles(d, tiles_along(d.m), 1);
      MP_REQUIRE(tiles <= kMaxTiles, MP_ERROR_UNSUPPORTED, "m = ", d.m, ", n = ", d.n,
                 ": number of 16 x 16 tiles of all items exceeds 2^31 - 1");
      if (epilogue == nullptr) return;
      const Operands data{item.A, item.B, item.C, item.D};
      check_operands(data, d, mp_dtype_size(d.dtype_ab), mp_dtype_size(d.dtype_cd));
      Output out = gemm_problem(d).out;
      out.epilogue = *epilogue;
      check_overlap(data, d, out, workspace);
    });
    if (item.m == 0 || item.n == 0) continue;
    products.push_back({item.m, item.n, summed_k(item.k, common.alpha), item.ld_a, item.ld_b,
                        item.ld_c, item.ld_d, item.A, item.B, item.C, item.D, i});
  }
  if (epilogue != nullptr) require_separate_outputs(products, common.dtype_cd);
  return products;
}

/// Arguments of a call or, without pointers, of a query.
struct GroupedCall : NotCopied {
  /// @param workspace  NULL: a query
  GroupedCall(const mp_gemm_desc_t *user, int32_t count, const mp_gemm_group_item_t *items,
              const mp_epilogue_t *user_epilogue, const Workspace *workspace)
      : desc(read_common(user)), requested(RequestedPlan(desc.plan).kernel_only()) {
    const Epilogue epilogue = read_scaling_epilogue(user_epilogue, "mp_gemm_grouped");
    MP_REQUIRE(epilogue.amax == nullptr, MP_ERROR_UNSUPPORTED, "stats.amax = ", epilogue.amax,
               " is not supported by mp_gemm_grouped");
    products = read_items(desc, count, items, workspace != nullptr ? &epilogue : nullptr,
                          workspace != nullptr ? *workspace : Workspace{});
    group = {gemm_problem(desc), products.data(), static_cast<int64_t>(products.size())};
    group.common.out.epilogue = epilogue;
  }

  mp_gemm_desc_t desc;
  RequestedPlan requested;
  std::vector<GemmGroupItem> products;
  GemmGroup group;  ///< refers to products
};

GemmShape shape_of(const GemmGroup &group, const GemmGroupItem &item) {
  return shape_of(item_problem(group, item));
}

std::span<const GemmGroupItem> items_of(const GemmGroup &group) {
  return {group.items, static_cast<size_t>(group.count)};
}

// ---------------------------------------------------------------------------- workspace

/// Returns the workspace for one launch per item; all items reuse it.
size_t most_workspace(const GemmGroup &group, const Context &context,
                      const RequestedPlan &requested) {
  size_t most = 0;
  for (const GemmGroupItem &item : items_of(group)) {
    const GemmPlan plan = for_item(item.index, ": ", [&] {
      return find_call_plan(context, shape_of(group, item), requested, SIZE_MAX);
    });
    most = std::max(most, plan.workspace.bytes);
  }
  return most;
}

size_t workspace_of(const GemmGroup &group, const Context &context,
                    const RequestedPlan &requested) {
  GemmPlan plan;
  if (group.count == 0) {
    requested.require_known(gemm_names());
    return 0;
  }
  if (plan_gemm_grouped(group, plan_request(context), requested.kernel(), &plan))
    return plan.workspace.bytes;
  return most_workspace(group, context, requested);
}

// ---------------------------------------------------------------------------- launch

/// Returns the reason why one launch per item is slower than necessary, or an empty string.
std::string why_slow(const GemmGroup &group, const Context &context,
                     const std::vector<GemmPlan> &plans, const Workspace &workspace) {
  const Device &device = context.device;
  GemmPlan together;
  if (plan_gemm_grouped(group, plan_request(context), nullptr, &together)) {
    double us = 0;
    for (const GemmPlan &plan : plans) us += plan.predicted_us;
    const std::string reason = if_slower(grouped_slow_path_reason(group, device, workspace.bytes),
                                         us, together.predicted_us);
    if (!reason.empty()) return reason;
  }
  for (size_t i = 0; i < plans.size(); i++) {
    const GemmGroupItem &item = group.items[i];
    const std::string reason = if_slower(slow_path_reason(shape_of(group, item), device),
                                         plans[i].predicted_us, plans[i].aligned_us);
    if (!reason.empty()) return "items[" + std::to_string(item.index) + "]: " + reason;
  }
  return "";
}

void run_one_by_one(const Context &context, const GemmGroup &group, const RequestedPlan &requested,
                    const Workspace &workspace, mp_stream_t stream) {
  // All plans are made first: if one fails, nothing has been enqueued.
  std::vector<GemmPlan> plans;
  for (const GemmGroupItem &item : items_of(group)) {
    plans.push_back(for_item(item.index, ": ", [&] {
      return find_call_plan(context, shape_of(group, item), requested, workspace.bytes);
    }));
  }
  log_slow_path(context, "mp_gemm_grouped", [&] {
    return requested.is_set() ? std::string() : why_slow(group, context, plans, workspace);
  });
  for (size_t i = 0; i < plans.size(); ++i) {
    const GemmProblem problem = item_problem(group, group.items[i]);
    log_plan(context, "mp_gemm_grouped", shape_of(problem), plans[i].name,
             plans[i].workspace.bytes);
    context.backend.gemm(context.device, problem, plans[i], workspace, stream);
  }
}

void run(const Context &context, const GemmGroup &group, const RequestedPlan &requested,
         const Workspace &workspace, mp_stream_t stream) {
  GemmPlan plan;
  if (!plan_gemm_grouped(group, plan_request(context, workspace.bytes), requested.kernel(), &plan))
    return run_one_by_one(context, group, requested, workspace, stream);
  if (is_first_occurrence(context, plan.name))
    log(MP_LOG_INFO, "mp_gemm_grouped: ", plan.name, " for ", group.count,
        " GEMMs in one launch, workspace_bytes = ", plan.workspace.bytes);
  if (logs_plans())
    log_new_plan(std::to_string(group.count) + " GEMMs in one launch", plan.name, plan);
  context.backend.gemm_grouped(context.device, group, plan, workspace.ptr, stream);
}

}  // namespace

mp_status_t mp_gemm_grouped_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                           int32_t count, const mp_gemm_group_item_t *items,
                                           const mp_epilogue_t *epilogue, size_t *bytes) {
  return call(__func__, context, nvtx_payload("count", count), [&](const Context &c) {
    require_pointer(bytes, "bytes");
    const GroupedCall call(desc, count, items, epilogue, nullptr);
    *bytes = workspace_of(call.group, c, call.requested);
  });
}

mp_status_t mp_gemm_grouped(mp_context_t context, const mp_gemm_desc_t *desc, int32_t count,
                            const mp_gemm_group_item_t *items, const mp_epilogue_t *epilogue,
                            void *workspace, size_t workspace_bytes, mp_stream_t stream) {
  return call(__func__, context, nvtx_payload("count", count), [&](const Context &c) {
    const Workspace space{workspace, workspace_bytes};
    const GroupedCall call(desc, count, items, epilogue, &space);
    check_workspace(space);
    if (call.products.empty()) return call.requested.require_known(gemm_names());
    run(c, call.group, call.requested, space, stream);
  });
}

// ---------------------------------------------------------------------------- ragged

namespace {

constexpr char kFunction[] = "mp_gemm_ragged";

/// Fails if a matrix that the groups divide has a stride; its parts are consecutive.
void require_no_stride(const Matrix &matrix, mp_ragged_t ragged) {
  MP_REQUIRE(matrix.stride == 0, MP_ERROR_INVALID_ARGUMENT, matrix.stride_name, " = ",
             matrix.stride, " must be 0: ",
             ragged == MP_RAGGED_M ? "MP_RAGGED_M divides the rows among the groups"
                                   : "MP_RAGGED_K divides k among the groups");
}

mp_gemm_desc_t read_desc(const mp_gemm_desc_t *user, const mp_ragged_t &ragged) {
  const mp_gemm_desc_t d = read_struct(user, "desc");
  require_enum(ragged, "ragged");
  check_operation(d);
  check_shape(d);
  require_no_stride(matrix_a(d), ragged);
  if (ragged == MP_RAGGED_M) {
    count_tiles(d, tiles_along(d.m) + d.batch_count, 1);  // each group may begin a tile
    require_no_stride(matrix_c(d), ragged);
    require_no_stride(matrix_d(d), ragged);
  } else {
    count_tiles(d, tiles_along(d.m), d.batch_count);
    require_no_stride(matrix_b(d), ragged);
    require_separate_items(matrix_d(d), d.batch_count);
  }
  return d;
}

/// Selects a kernel for a checked problem, logs and launches it.
void run(const Context &context, const RaggedProblem &problem, const RequestedPlan &requested,
         const Workspace &workspace, mp_stream_t stream) {
  const RaggedShape shape = shape_of(problem);
  const GemmPlan plan = find_call_plan(context, shape, requested, workspace.bytes);
  log_slow_plan(context, kFunction, problem.all.out, plan, workspace.bytes,
                [&] { return slow_path_reason(shape.all, context.device); });
  log_plan(context, kFunction, shape, plan.name, plan.workspace.bytes);
  context.backend.gemm_ragged(context.device, problem, plan, workspace.ptr, stream);
}

}  // namespace

mp_status_t mp_gemm_ragged_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                          mp_ragged_t ragged, const mp_epilogue_t *epilogue,
                                          size_t *bytes) {
  return call(__func__, context, nvtx_payload(desc), [&](const Context &c) {
    require_pointer(bytes, "bytes");
    const mp_gemm_desc_t d = read_desc(desc, ragged);
    const RequestedPlan requested = RequestedPlan(d.plan).kernel_only();
    RaggedProblem problem{gemm_problem(d), ragged, nullptr};
    problem.all.out.epilogue = read_scaling_epilogue(epilogue, kFunction);
    if (is_empty(d)) requested.require_known(gemm_names());
    *bytes =
        is_empty(d) ? 0 : find_call_plan(c, shape_of(problem), requested, SIZE_MAX).workspace.bytes;
  });
}

mp_status_t mp_gemm_ragged(mp_context_t context, const mp_gemm_desc_t *desc, mp_ragged_t ragged,
                           const int32_t *ends, const void *A, const void *B, const void *C,
                           void *D, const mp_epilogue_t *epilogue, void *workspace,
                           size_t workspace_bytes, mp_stream_t stream) {
  return call(__func__, context, nvtx_payload(desc), [&](const Context &c) {
    const mp_gemm_desc_t d = read_desc(desc, ragged);
    const RequestedPlan requested = RequestedPlan(d.plan).kernel_only();
    RaggedProblem problem{gemm_problem(d), ragged, ends};
    problem.all.out.epilogue = read_scaling_epilogue(epilogue, kFunction);
    check_operands({A, B, C, D}, d, mp_dtype_size(d.dtype_ab), mp_dtype_size(d.dtype_cd));
    require_aligned(ends, "ends");
    const Workspace space{workspace, workspace_bytes};
    check_workspace(space);
    if (is_empty(d)) return requested.require_known(gemm_names());

    require_device(ends, "ends");
    check_overlap({A, B, C, D}, d, problem.all.out, space,
                  dense_region(ends, "ends", d.batch_count));
    set_data(problem.all, {A, B, C, D});
    run(c, problem, requested, space, stream);
  });
}
