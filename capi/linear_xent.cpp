// mpcore/loss.h: a linear layer with its softmax cross-entropy, in chunks of rows.
#include <algorithm>

#include "capi/gemm_problem.h"
#include "capi/nvtx_payload.h"
#include "kernels/layers/layer_args.h"

using namespace mp;

namespace {

// Limits with which the logits of 8 rows and the column sums of a chunk fit into the workspace.
constexpr int64_t kMaxWidth = 1 << 16, kMaxClasses = 1 << 22;

constexpr size_t kMaxWorkspaceBytes = size_t{256} << 20;
constexpr size_t kMaxScratchBytes = (size_t{32} << 20) - 256;  // 256: the divisor of the loss
constexpr size_t kMaxLogitBytes = size_t{224} << 20;
static_assert(kMaxLogitBytes + kMaxScratchBytes + 256 == kMaxWorkspaceBytes);

// ---------------------------------------------------------------------------- plan

enum class Product {
  logits,  ///< x w^T + bias
  dx,      ///< dlogits w
  dw       ///< dw += dlogits^T x
};

/// Division of the rows into chunks, and byte offsets in the workspace.
struct LinearXentPlan {
  int64_t chunk_rows;  ///< depends on `classes` and the type only
  int64_t ld_logits;
  size_t logits, count, scratch;
  size_t gemm_bytes;  ///< workspace of the products, independent of `rows`, so their plans are too
  size_t bytes;
};

int64_t rows_per_chunk(int64_t row_bytes) {
  constexpr int64_t kMaxRows = 4096, kTile = 128, kVector = 8;
  const int64_t rows = std::min(static_cast<int64_t>(kMaxLogitBytes) / row_bytes, kMaxRows);
  return rows - rows % (rows >= kTile ? kTile : kVector);
}

/// Returns a product of `rows` rows, without data.
GemmProblem product_of(const mp_linear_xent_desc_t &d, const LinearXentPlan &plan, Product product,
                       int64_t rows) {
  mp_gemm_desc_t gemm{};
  gemm.op_a = gemm.op_b = MP_OP_N;
  gemm.dtype_ab = gemm.dtype_cd = d.dtype;
  gemm.alpha = 1.0f;
  gemm.batch_count = 1;
  switch (product) {
    case Product::logits:
      gemm.m = rows, gemm.n = d.classes, gemm.k = d.width;
      gemm.op_b = MP_OP_T;
      gemm.ld_a = d.ld_x, gemm.ld_b = d.ld_w, gemm.ld_d = plan.ld_logits;
      break;
    case Product::dx:
      gemm.m = rows, gemm.n = d.width, gemm.k = d.classes;
      gemm.ld_a = plan.ld_logits, gemm.ld_b = d.ld_w, gemm.ld_d = d.ld_dx;
      break;
    case Product::dw:
      gemm.m = d.classes, gemm.n = d.width, gemm.k = rows;
      gemm.op_a = MP_OP_T;
      gemm.ld_a = plan.ld_logits, gemm.ld_b = d.ld_x, gemm.ld_d = d.ld_dw;
      gemm.dtype_cd = MP_FP32;
      gemm.beta = 1.0f;
      break;
  }
  gemm.ld_c = gemm.ld_d;
  return gemm_problem(gemm);
}

/// Returns the logits of `rows` rows as the input of column sums.
Output logits_of(const mp_linear_xent_desc_t &d, const LinearXentPlan &plan, int64_t rows,
                 void *logits) {
  return output_matrix(logits, rows, d.classes, plan.ld_logits, d.dtype);
}

/// Plan of a chunk with the largest number of rows, whose kernel multiplies all chunks.
struct ChunkGemm : GemmPlan {};

GemmPlan plan_chunk(const Context &context, const GemmShape &shape, size_t workspace_bytes) {
  return cached_plan<ChunkGemm>(context, shape, workspace_bytes,
                                [&](const PlanRequest &request) -> ChunkGemm {
                                  const GemmPlan plan = plan_for_any_rows(shape, request);
                                  if (logs_plans()) log_new_plan(text_of(shape), plan.name, plan);
                                  return {plan};
                                });
}

LinearXentPlan plan_linear_xent(const Context &context, const mp_linear_xent_desc_t &d) {
  LinearXentPlan plan{};
  plan.ld_logits = align_up(d.classes, 8);
  const int64_t row_bytes = plan.ld_logits * static_cast<int64_t>(mp_dtype_size(d.dtype));
  plan.chunk_rows = rows_per_chunk(row_bytes);
  if (d.rows == 0) return plan;
  const int64_t rows = std::min(d.rows, plan.chunk_rows);
  for (const Product product : {Product::logits, Product::dx, Product::dw}) {
    const GemmShape shape = shape_of(product_of(d, plan, product, plan.chunk_rows));
    plan.gemm_bytes =
        std::max(plan.gemm_bytes, plan_chunk(context, shape, kMaxScratchBytes).workspace.bytes);
  }
  WorkspaceLayout layout;
  plan.logits = layout.add(static_cast<size_t>(rows * row_bytes));
  plan.count = layout.add(sizeof(float));
  // One region: products and column sums run one after the other.
  plan.scratch = layout.add(
      std::max(plan.gemm_bytes, column_sum_bytes(shape_of(logits_of(d, plan, rows, nullptr)))));
  plan.bytes = layout.size();
  return plan;
}

// ---------------------------------------------------------------------------- checks

mp_linear_xent_desc_t read_desc(const mp_linear_xent_desc_t *user) {
  const mp_linear_xent_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  require_integer_dtype(d.dtype_labels, "dtype_labels");
  require_flags(d.flags, MP_XENT_FLAG_IGNORE_LABEL | MP_XENT_FLAG_ACCUMULATE, "flags");
  require_not_negative(d.rows, "rows");
  require_within(d.width, "width", 1, kMaxWidth);
  require_within(d.classes, "classes", 1, kMaxClasses);
  const auto require_ld = [&](int64_t ld, const char *name, int64_t rows, mp_dtype_t dtype) {
    require_at_least({ld, name}, {d.width, "width"});
    int64_t elems;
    MP_REQUIRE(strided_extent(rows, ld, d.width, &elems) && bytes_fit(elems, dtype),
               MP_ERROR_INVALID_ARGUMENT, name, " = ", ld, " with ", rows,
               " rows: size in bytes exceeds 2^63 - 1");
  };
  require_ld(d.ld_x, "ld_x", d.rows, d.dtype);
  require_ld(d.ld_w, "ld_w", d.classes, d.dtype);
  require_ld(d.ld_dx, "ld_dx", d.rows, d.dtype);
  require_ld(d.ld_dw, "ld_dw", d.classes, MP_FP32);
  require_finite(d.weight, "weight");
  require_fraction(d.label_smoothing, "label_smoothing");
  require_finite_not_negative(d.z_loss, "z_loss");
  require_zero(d.reserved0, "reserved0");
  return d;
}

/// Checks addresses and overlaps; without rows, only dw, dbias and loss are written.
void require_tensors_of(const mp_linear_xent_desc_t &d, const mp_xent_tensors_t &t,
                        const Region &workspace) {
  const auto matrix = [&](const void *data, const char *name, int64_t rows, int64_t ld) {
    return matrix_region(data, name, rows, d.width, ld, d.dtype);
  };
  const auto row_values = [&](const float *data, const char *name) {
    return dense_region(data, name, d.rows);
  };
  // Tensors that are not accessed if there are no rows.
  const auto used = [&](const Region &region) { return d.rows > 0 ? region : Region{}; };
  require_tensors(
      {{matrix(t.x, "tensors->x", d.rows, d.ld_x), kReads},
       {used(matrix(t.w, "tensors->w", d.classes, d.ld_w)), kReads},
       {used(dense_region(t.bias, "tensors->bias", d.classes, d.dtype)), kMayRead},
       {dense_region(t.labels, "tensors->labels", d.rows, d.dtype_labels), kReads},
       {used(dense_region(t.loss_scale, "tensors->loss_scale")), kMayRead},
       {used(dense_region(t.count, "tensors->count")), kMayRead},
       {used(dense_region(t.class_weights, "tensors->class_weights", d.classes)), kMayRead},
       {matrix(t.dx, "tensors->dx", d.rows, d.ld_dx), kMayWrite, {"tensors->x"}},
       {matrix_region(t.dw, "tensors->dw", d.classes, d.width, d.ld_dw, MP_FP32), kMayWrite},
       {dense_region(t.dbias, "tensors->dbias", d.classes), kMayWrite},
       {row_values(t.row_loss, "tensors->row_loss"), kWrites},
       {row_values(t.lse, "tensors->lse"), kMayWrite},
       {dense_region(t.loss, "tensors->loss"), kMayWrite},
       {used(dense_region(t.correct, "tensors->correct")), kMayWrite},
       {workspace, kMayWrite}},
      t.stats);
  MP_REQUIRE(d.rows == 0 || t.dx != t.x || d.ld_dx == d.ld_x, MP_ERROR_INVALID_ARGUMENT,
             "ld_dx = ", d.ld_dx, " must equal ld_x = ", d.ld_x, " if tensors->dx = tensors->x");
}

// ---------------------------------------------------------------------------- a call

class LinearXent {
 public:
  LinearXent(const Context &context, const mp_linear_xent_desc_t &desc,
             const mp_xent_tensors_t &tensors, const LinearXentPlan &plan, void *workspace,
             mp_stream_t stream)
      : c_(context),
        d_(desc),
        t_(tensors),
        plan_(plan),
        workspace_(static_cast<std::byte *>(workspace)),
        stream_(stream) {
    if (t_.count == nullptr) count_rows();
  }

  void run() {
    int64_t first = 0;
    do {
      const int64_t rows = std::min(plan_.chunk_rows, d_.rows - first);
      const bool is_last = first + rows == d_.rows;
      if (rows > 0) compute_losses(first, rows);
      // dx may be x, so dw reads x first.
      if (t_.dw != nullptr) add_dw(first, rows, is_last);
      if (t_.dbias != nullptr) add_dbias(first, rows, is_last);
      if (t_.dx != nullptr && rows > 0) compute_dx(first, rows);
      first += rows;
    } while (first < d_.rows);
    if (t_.loss == nullptr) return;
    if (d_.rows > 0)
      c_.backend.xent_mean(c_.device, losses_of(0, d_.rows), stream_);
    else
      store_empty_loss(c_, t_.loss, t_.count == nullptr, stream_);
  }

 private:
  std::byte *logits() const { return workspace_ + plan_.logits; }
  bool has_gradient() const { return t_.dx != nullptr || t_.dw != nullptr || t_.dbias != nullptr; }
  /// Returns the address of element `index` of a tensor of the descriptor's type.
  template <class T>
  T *element(T *tensor, int64_t index) const {
    return tensor == nullptr ? nullptr : advance(tensor, index, d_.dtype);
  }
  template <class T>
  static T *advance(T *tensor, int64_t index, mp_dtype_t dtype) {
    using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return static_cast<Byte *>(tensor) + index * static_cast<int64_t>(mp_dtype_size(dtype));
  }

  /// Returns the arguments of the loss of some rows.
  XentArgs losses_of(int64_t first, int64_t rows) const {
    XentArgs args{};
    args.x = logits();
    args.labels = advance(t_.labels, first, d_.dtype_labels);
    MP_COPY_FIELDS(args, t_, loss_scale, count, loss, correct, class_weights);
    args.row_loss = t_.row_loss + first;
    args.lse = t_.lse == nullptr ? nullptr : t_.lse + first;
    args.dx = has_gradient() ? logits() : nullptr;
    MP_COPY_FIELDS(args.desc, d_, dtype, dtype_labels, classes, ignore_label, weight,
                   label_smoothing, z_loss);
    args.desc.flags = d_.flags & MP_XENT_FLAG_IGNORE_LABEL;
    args.desc.rows = rows;
    args.desc.ld_logits = args.desc.ld_dlogits = plan_.ld_logits;
    return args;
  }

  /// Stores the divisor of the loss in the workspace, as the count of all chunks.
  void count_rows() {
    if (d_.rows == 0) return;
    XentArgs args = losses_of(0, d_.rows);
    args.sum = reinterpret_cast<float *>(workspace_ + plan_.count);
    c_.backend.fill(c_.device, args.sum, 0, sizeof *args.sum, stream_);
    c_.backend.xent_count(c_.device, args, stream_);
    t_.count = args.sum;
  }

  void compute_losses(int64_t first, int64_t rows) const {
    GemmProblem problem = product_of(d_, plan_, Product::logits, rows);
    problem.out.epilogue.bias = t_.bias;
    problem.out.epilogue.dtype_bias = d_.dtype;
    multiply(problem, Product::logits, rows,
             {element(t_.x, first * d_.ld_x), t_.w, nullptr, logits()});
    XentArgs args = losses_of(first, rows);
    args.loss = nullptr;
    c_.backend.softmax_xent(c_.device, args, stream_);
  }

  void compute_dx(int64_t first, int64_t rows) const {
    GemmProblem problem = product_of(d_, plan_, Product::dx, rows);
    set_stats(problem.out);
    multiply(problem, Product::dx, rows,
             {logits(), t_.w, nullptr, element(t_.dx, first * d_.ld_dx)});
  }

  void add_dw(int64_t first, int64_t rows, bool is_last) const {
    GemmProblem problem = product_of(d_, plan_, Product::dw, rows);
    problem.out.beta = beta(first);
    if (is_last) set_stats(problem.out);
    multiply(problem, Product::dw, rows, {logits(), element(t_.x, first * d_.ld_x), t_.dw, t_.dw});
  }

  void add_dbias(int64_t first, int64_t rows, bool is_last) const {
    Output sums = output_matrix(t_.dbias, 1, d_.classes, d_.classes, MP_FP32);
    sums.beta = beta(first);
    if (is_last) set_stats(sums);
    c_.backend.sum_columns(c_.device, logits_of(d_, plan_, rows, logits()), sums,
                           workspace_ + plan_.scratch, stream_);
  }

  float beta(int64_t first) const {
    return first > 0 || (d_.flags & MP_XENT_FLAG_ACCUMULATE) != 0 ? 1.0f : 0.0f;
  }
  void set_stats(Output &out) const { MP_COPY_FIELDS(out.epilogue, t_.stats, amax, found_inf); }

  /// Launches a product with the kernel for chunk_rows, so that bits do not depend on `rows`.
  void multiply(GemmProblem &problem, Product product, int64_t rows, const Operands &x) const {
    set_data(problem, x);
    const Workspace scratch{workspace_ + plan_.scratch, plan_.gemm_bytes};
    const GemmShape shape = shape_of(problem);
    GemmPlan gemm;
    if (rows == 0) {
      gemm = find_plan(c_, shape, {}, 0);
    } else {
      GemmShape whole = shape;
      (product == Product::dw ? whole.k : whole.out.m) = plan_.chunk_rows;
      gemm = plan_chunk(c_, whole, scratch.bytes);
      if (rows != plan_.chunk_rows) gemm = adapt_plan(shape, gemm, plan_request(c_, scratch.bytes));
    }
    log_plan(c_, "mp_linear_xent", shape, gemm.name, gemm.workspace.bytes);
    c_.backend.gemm(c_.device, problem, gemm, scratch, stream_);
  }

  const Context &c_;
  const mp_linear_xent_desc_t &d_;
  mp_xent_tensors_t t_;
  const LinearXentPlan &plan_;
  std::byte *const workspace_;
  const mp_stream_t stream_;
};

}  // namespace

mp_status_t mp_linear_xent_workspace_size(mp_context_t context, const mp_linear_xent_desc_t *desc,
                                          size_t *bytes) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    require_pointer(bytes, "bytes") = plan_linear_xent(c, d).bytes;
  });
}

mp_status_t mp_linear_xent(mp_context_t context, const mp_linear_xent_desc_t *desc,
                           const mp_xent_tensors_t *tensors, void *workspace,
                           size_t workspace_bytes, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_xent_tensors_t t = read_tensors(tensors);
    const LinearXentPlan plan = plan_linear_xent(c, d);
    require_workspace(workspace, workspace_bytes, plan.bytes);
    require_tensors_of(d, t, workspace_region(workspace, plan.bytes));
    LinearXent(c, d, t, plan, workspace, stream).run();
  });
}
