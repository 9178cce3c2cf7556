// Section 4 of mpcore.h: from a descriptor and pointers to a checked problem, a kernel, a launch.
//
// Every field of a descriptor is checked, also where this call does not look at it (ldc with
// beta = 0), so that a descriptor is good or bad by itself.
#define MP_ENABLE_EXPERIMENTAL
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "capi/check.h"
#include "capi/objects.h"
#include "kernels/kernels.h"
#include "mpcore.h"

namespace mp {

namespace {

// ---------------------------------------------------------------------------- shapes

/// One operand as it is stored, with the names of its arguments.
struct Matrix {
  int64_t rows, cols, ld, stride;
  mp_dtype_t dtype;
  const char *ld_name, *stride_name, *cols_name;
  const char *note;  ///< what made `cols` the row length
};

Matrix matrix_a(const mp_gemm_desc_t &d) {
  const bool as_stored = d.op_a == MP_OP_N;
  return {.rows = as_stored ? d.m : d.k,
          .cols = as_stored ? d.k : d.m,
          .ld = d.lda,
          .stride = d.stride_a,
          .dtype = d.dtype_ab,
          .ld_name = "lda",
          .stride_name = "stride_a",
          .cols_name = as_stored ? "k" : "m",
          .note = as_stored ? " (op_a = N)" : " (op_a = T)"};
}

Matrix matrix_b(const mp_gemm_desc_t &d) {
  const bool as_stored = d.op_b == MP_OP_N;
  return {.rows = as_stored ? d.k : d.n,
          .cols = as_stored ? d.n : d.k,
          .ld = d.ldb,
          .stride = d.stride_b,
          .dtype = d.dtype_ab,
          .ld_name = "ldb",
          .stride_name = "stride_b",
          .cols_name = as_stored ? "n" : "k",
          .note = as_stored ? " (op_b = N)" : " (op_b = T)"};
}

Matrix matrix_c(const mp_gemm_desc_t &d) {
  return {d.m, d.n, d.ldc, d.stride_c, d.dtype_cd, "ldc", "stride_c", "n", ""};
}

Matrix matrix_d(const mp_gemm_desc_t &d) {
  return {d.m, d.n, d.ldd, d.stride_d, d.dtype_cd, "ldd", "stride_d", "n", ""};
}

/// Laid out as D, but for the distance of its rows.
Matrix matrix_aux(const mp_gemm_desc_t &d, int64_t ld_aux) {
  return {d.m, d.n, ld_aux, d.stride_d, d.dtype_cd, "ld_aux", "stride_d", "n", ""};
}

void check_matrix(const Matrix &matrix, int32_t batch_count) {
  MP_REQUIRE(matrix.ld >= matrix.cols, MP_ERROR_INVALID_ARGUMENT, matrix.ld_name, " = ", matrix.ld,
             " is smaller than ", matrix.cols_name, " = ", matrix.cols, matrix.note);
  require_not_negative(matrix.stride, matrix.stride_name);
  int64_t item, all;
  MP_REQUIRE(strided_extent(matrix.rows, matrix.ld, matrix.cols, &item) &&
                 strided_extent(batch_count, matrix.stride, item, &all) &&
                 bytes_fit(all, matrix.dtype),
             MP_ERROR_INVALID_ARGUMENT, matrix.ld_name, " = ", matrix.ld, " and ",
             matrix.stride_name, " = ", matrix.stride, " with ", matrix.rows, " rows and ",
             batch_count, " items: 64 bits cannot count the bytes");
}

/// Items may follow each other or be interleaved (heads beside each other in a row), but two
/// items written by different blocks must not share an element.
void require_separate_items(const Matrix &matrix, int32_t batch_count) {
  int64_t item, row_of_items;
  if (batch_count <= 1 || matrix.rows == 0 || matrix.cols == 0) return;
  (void)strided_extent(matrix.rows, matrix.ld, matrix.cols, &item);
  (void)strided_extent(batch_count, matrix.stride, matrix.cols, &row_of_items);
  const bool follow = matrix.stride >= item;
  const bool interleaved = matrix.stride >= matrix.cols && row_of_items <= matrix.ld;
  MP_REQUIRE(follow || interleaved, MP_ERROR_INVALID_ARGUMENT, matrix.stride_name, " = ",
             matrix.stride, " makes the items of ", matrix.rows, " rows of ", matrix.cols, " (",
             matrix.ld_name, " = ", matrix.ld, ") overlap; batch_count = ", batch_count);
}

void check_types(const mp_gemm_desc_t &d) {
  require_dtype(d.dtype_ab, "dtype_ab");
  require_dtype(d.dtype_cd, "dtype_cd");
}

mp_gemm_desc_t read_desc(const mp_gemm_desc_t *user) {
  const mp_gemm_desc_t d = read_struct(user, "desc");
  require_enum(d.op_a, "op_a", MP_OP_N, MP_OP_T);
  require_enum(d.op_b, "op_b", MP_OP_N, MP_OP_T);
  require_not_negative(d.batch_count, "batch_count");
  require_not_negative(d.m, "m");
  require_not_negative(d.n, "n");
  require_not_negative(d.k, "k");
  check_types(d);
  for (const Matrix &matrix : {matrix_a(d), matrix_b(d), matrix_c(d), matrix_d(d)}) {
    check_matrix(matrix, d.batch_count);
  }
  return d;
}

void require_no_strides(const mp_gemm_desc_t &d) {
  for (const Matrix &matrix : {matrix_a(d), matrix_b(d), matrix_c(d), matrix_d(d)}) {
    MP_REQUIRE(matrix.stride == 0, MP_ERROR_INVALID_ARGUMENT, matrix.stride_name, " = ",
               matrix.stride, ", but the items of mp_gemm_batched have pointers");
  }
}

bool is_empty(const mp_gemm_desc_t &d) {
  return d.m == 0 || d.n == 0 || d.batch_count == 0;
}

// ---------------------------------------------------------------------------- epilogue

Epilogue read_epilogue(const mp_epilogue_t *user, const mp_gemm_desc_t &d) {
  const mp_epilogue_t e = user != nullptr ? read_struct(user, "epilogue") : mp_epilogue_default();
  require_enum(e.activation, "activation", MP_ACT_NONE, MP_ACT_DGELU);
  require_zero(e.reserved0, "reserved0");
  require_aligned(e.scale, "scale");
  if (e.bias != nullptr) {
    require_dtype(e.bias_dtype, "bias_dtype");
    require_aligned(e.bias, "bias", mp_dtype_size(e.bias_dtype));
  }
  const bool backward = e.activation == MP_ACT_DRELU || e.activation == MP_ACT_DGELU;
  MP_REQUIRE(!backward || e.aux != nullptr, MP_ERROR_INVALID_ARGUMENT,
             "aux = NULL, but activation = ", e.activation, " reads it");
  const Matrix aux = matrix_aux(d, e.ld_aux != 0 ? e.ld_aux : d.ldd);
  check_matrix(aux, d.batch_count);
  require_aligned(e.aux, "aux", mp_dtype_size(d.dtype_cd));
  require_aligned(e.dbias, "dbias");
  require_aligned(e.amax, "amax");
  require_aligned(e.found_inf, "found_inf");
  return {.activation = e.activation,
          .scale = e.scale,
          .bias = e.bias,
          .bias_dtype = e.bias_dtype,
          .aux = e.aux,
          .ld_aux = aux.ld,
          .stride_aux = aux.stride,
          .dbias = e.dbias,
          .amax = e.amax,
          .found_inf = e.found_inf};
}

void require_batched_epilogue(const Epilogue &e) {
  const auto require_none = [](const void *pointer, const char *name) {
    MP_REQUIRE(pointer == nullptr, MP_ERROR_UNSUPPORTED, name, " = ", pointer,
               " is for mp_gemm only");
  };
  require_none(e.aux, "aux");
  require_none(e.dbias, "dbias");
  require_none(e.amax, "amax");
}

// ---------------------------------------------------------------------------- operands

/// A, B, C, D as they were passed: matrices, or arrays of pointers to matrices.
struct Operands {
  const void *a, *b, *c, *d;
};

void check_operands(const Operands &x, const mp_gemm_desc_t &desc, size_t ab_alignment,
                    size_t cd_alignment) {
  require_aligned(x.a, "A", ab_alignment);
  require_aligned(x.b, "B", ab_alignment);
  require_aligned(x.c, "C", cd_alignment);
  require_aligned(x.d, "D", cd_alignment);
  if (is_empty(desc)) return;

  MP_REQUIRE(x.d != nullptr, MP_ERROR_INVALID_ARGUMENT, "D = NULL");
  MP_REQUIRE(x.a != nullptr || desc.k == 0, MP_ERROR_INVALID_ARGUMENT, "A = NULL");
  MP_REQUIRE(x.b != nullptr || desc.k == 0, MP_ERROR_INVALID_ARGUMENT, "B = NULL");
  if (desc.beta == 0.0f) return;
  MP_REQUIRE(x.c != nullptr, MP_ERROR_INVALID_ARGUMENT, "C = NULL with beta = ", desc.beta);
  if (x.c != x.d) return;
  MP_REQUIRE(desc.ldc == desc.ldd, MP_ERROR_INVALID_ARGUMENT, "ldc = ", desc.ldc,
             " and ldd = ", desc.ldd, " differ, but C = D");
  MP_REQUIRE(desc.stride_c == desc.stride_d || desc.batch_count == 1, MP_ERROR_INVALID_ARGUMENT,
             "stride_c = ", desc.stride_c, " and stride_d = ", desc.stride_d, " differ, but C = D");
}

/// The problem without its data.
GemmProblem problem_of(const mp_gemm_desc_t &d) {
  const auto operand = [&](const Matrix &matrix) {
    const int64_t stride = d.batch_count > 1 ? matrix.stride : 0;
    return Operand{.base = nullptr, .items = nullptr, .ld = matrix.ld, .stride = stride};
  };
  return {.m = d.m,
          .n = d.n,
          .k = d.k,
          .batch_count = d.batch_count,
          .op_a = d.op_a,
          .op_b = d.op_b,
          .dtype_ab = d.dtype_ab,
          .dtype_cd = d.dtype_cd,
          .alpha = d.alpha,
          .beta = d.beta,
          .a = operand(matrix_a(d)),
          .b = operand(matrix_b(d)),
          .c = operand(matrix_c(d)),
          .d = operand(matrix_d(d)),
          .epilogue = {}};
}

void set_items(GemmProblem &problem, const void *const *A, const void *const *B,
               const void *const *C, const void *const *D) {
  problem.a.items = A;
  problem.b.items = B;
  problem.c.items = C;
  problem.d.items = D;
}

/// What a question about a descriptor is about: a problem whose data nobody has seen yet.
GemmProblem problem_to_rank(const mp_gemm_desc_t &d) {
  GemmProblem problem = problem_of(d);
  const bool has_strides = (d.stride_a | d.stride_b | d.stride_c | d.stride_d) != 0;
  if (d.batch_count > 1 && !has_strides) {
    // mp_gemm_batched: selection asks whether there are pointer arrays, not what is in them.
    static const void *const items[1] = {};
    set_items(problem, items, items, items, items);
  } else {
    require_separate_items(matrix_d(d), d.batch_count);
  }
  return problem;
}

// ---------------------------------------------------------------------------- choice

constexpr size_t kFastAlignment = 16;
constexpr bool kAssumedAligned = true;  // where the pointers are not known on the host

struct Ranking {
  std::array<GemmChoice, 128> choices;
  size_t count;
  std::span<const GemmChoice> best_first() const { return std::span(choices).first(count); }
};

Ranking rank(const GemmProblem &problem, const Device &device, bool aligned) {
  Ranking ranking;
  const int capacity = static_cast<int>(ranking.choices.size());
  const int existing = rank_gemm(problem, device, aligned, ranking.choices.data(), capacity);
  ranking.count = static_cast<size_t>(std::min(existing, capacity));
  return ranking;
}

GemmChoice forced_choice(const GemmProblem &problem, const Device &device, bool aligned,
                         const char *kernel) {
  GemmChoice choice;
  const char *why;
  if (find_gemm(problem, device, aligned, kernel, &choice, &why)) return choice;
  MP_REQUIRE(why != nullptr, MP_ERROR_NOT_FOUND, "kernel = ", kernel, " is unknown");
  fail(MP_ERROR_UNSUPPORTED, "kernel = ", kernel, " ", why);
}

struct Workspace {
  void *ptr;
  size_t bytes;
};

void check_workspace(const Workspace &workspace) {
  require_aligned(workspace.ptr, "workspace", 256);
  MP_REQUIRE(workspace.ptr != nullptr || workspace.bytes == 0, MP_ERROR_INVALID_ARGUMENT,
             "workspace = NULL with workspace_bytes = ", workspace.bytes);
}

GemmChoice choose(const GemmProblem &problem, const Device &device, bool aligned,
                  const char *kernel, const Workspace &workspace) {
  if (kernel != nullptr) {
    const GemmChoice choice = forced_choice(problem, device, aligned, kernel);
    MP_REQUIRE(choice.workspace_bytes <= workspace.bytes, MP_ERROR_WORKSPACE_TOO_SMALL,
               "workspace_bytes = ", workspace.bytes, ", but kernel = ", kernel, " needs ",
               choice.workspace_bytes);
    return choice;
  }
  const Ranking ranking = rank(problem, device, aligned);
  for (const GemmChoice &choice : ranking.best_first()) {
    if (choice.workspace_bytes <= workspace.bytes) return choice;
  }
  fail(MP_ERROR_INTERNAL, "no kernel runs without workspace");
}

// ---------------------------------------------------------------------------- log

void log_slow_path(const Context &context, const GemmProblem &problem, bool aligned) {
  std::atomic_flag &logged = context.logged.slow_path;
  if (!log_enabled(MP_LOG_WARN) || logged.test()) return;
  const std::string reason = slow_path_reason(problem, aligned);
  if (reason.empty() || logged.test_and_set()) return;
  log(MP_LOG_WARN, "mp_gemm: a slower path is taken because ", reason.c_str(),
      "; further ones are not reported");
}

void log_choice(const Context &context, const GemmProblem &problem, const GemmChoice &choice) {
  if (!log_enabled(MP_LOG_INFO)) return;
  {
    const std::lock_guard lock(context.logged.mutex);
    if (!context.logged.kernels.insert(choice.name).second) return;
  }
  const auto letter = [](mp_op_t op) { return op == MP_OP_N ? "N" : "T"; };
  log(MP_LOG_INFO, "mp_gemm: ", choice.name, " for m = ", problem.m, ", n = ", problem.n,
      ", k = ", problem.k, ", batch_count = ", problem.batch_count, ", op = ", letter(problem.op_a),
      letter(problem.op_b), ", ", dtype_name(problem.dtype_ab), " to ",
      dtype_name(problem.dtype_cd), ", workspace_bytes = ", choice.workspace_bytes);
}

// ---------------------------------------------------------------------------- launch

/// A checked problem, on its way to the device.
void run(const Context &context, const GemmProblem &problem, bool aligned, const char *kernel,
         const Workspace &workspace, mp_stream_t stream) {
  const GemmChoice choice = choose(problem, context.device, aligned, kernel, workspace);
  log_slow_path(context, problem, aligned);
  log_choice(context, problem, choice);
  context.target.gemm(context.device, problem, choice, workspace.ptr, stream);
}

/// The sums over no rows.
void clear_dbias(const Context &context, const GemmProblem &problem, mp_stream_t stream) {
  if (problem.epilogue.dbias == nullptr || problem.n == 0) return;
  context.target.fill(context.device, problem.epilogue.dbias, 0,
                      static_cast<size_t>(problem.n) * sizeof(float), stream);
}

}  // namespace

}  // namespace mp

mp_status_t mp_gemm_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                   size_t *bytes) {
  return mp::call(__func__, [&] {
    const mp::Context &c = *mp::require_context(context);
    mp::require_pointer(bytes, "bytes");
    const mp_gemm_desc_t d = mp::read_desc(desc);
    const mp::GemmProblem problem = mp::problem_to_rank(d);
    if (mp::is_empty(d)) {
      *bytes = 0;
    } else if (d.kernel != nullptr) {
      *bytes = mp::forced_choice(problem, c.device, mp::kAssumedAligned, d.kernel).workspace_bytes;
    } else {
      *bytes = mp::rank(problem, c.device, mp::kAssumedAligned).best_first()[0].workspace_bytes;
    }
  });
}

mp_status_t mp_gemm(mp_context_t context, const mp_gemm_desc_t *desc, const void *A, const void *B,
                    const void *C, void *D, const mp_epilogue_t *epilogue, void *workspace,
                    size_t workspace_bytes, mp_stream_t stream) {
  return mp::call(__func__, [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_gemm_desc_t d = mp::read_desc(desc);
    mp::GemmProblem problem = mp::problem_of(d);
    problem.epilogue = mp::read_epilogue(epilogue, d);
    mp::require_separate_items(mp::matrix_d(d), d.batch_count);
    if (problem.epilogue.aux != nullptr) {
      mp::require_separate_items(mp::matrix_aux(d, problem.epilogue.ld_aux), d.batch_count);
    }
    mp::check_operands({A, B, C, D}, d, mp_dtype_size(d.dtype_ab), mp_dtype_size(d.dtype_cd));
    const mp::Workspace space{workspace, workspace_bytes};
    mp::check_workspace(space);
    if (mp::is_empty(d)) return mp::clear_dbias(c, problem, stream);

    problem.a.base = A;
    problem.b.base = B;
    problem.c.base = C;
    problem.d.base = D;
    const bool aligned =
        mp::is_aligned(A, mp::kFastAlignment) && mp::is_aligned(B, mp::kFastAlignment);
    mp::run(c, problem, aligned, d.kernel, space, stream);
  });
}

mp_status_t mp_gemm_batched(mp_context_t context, const mp_gemm_desc_t *desc, const void *const *A,
                            const void *const *B, const void *const *C, void *const *D,
                            const mp_epilogue_t *epilogue, void *workspace, size_t workspace_bytes,
                            mp_stream_t stream) {
  return mp::call(__func__, [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_gemm_desc_t d = mp::read_desc(desc);
    mp::require_no_strides(d);
    mp::GemmProblem problem = mp::problem_of(d);
    problem.epilogue = mp::read_epilogue(epilogue, d);
    mp::require_batched_epilogue(problem.epilogue);
    mp::check_operands({A, B, C, D}, d, alignof(void *), alignof(void *));
    const mp::Workspace space{workspace, workspace_bytes};
    mp::check_workspace(space);
    if (mp::is_empty(d)) return;

    mp::set_items(problem, A, B, C, D);
    mp::run(c, problem, mp::kAssumedAligned, d.kernel, space, stream);
  });
}

mp_status_t mp_gemm_kernel_name(mp_context_t context, const mp_gemm_desc_t *desc, int32_t index,
                                const char **name) {
  return mp::call(__func__, [&] {
    const mp::Context &c = *mp::require_context(context);
    const mp_gemm_desc_t d = mp::read_desc(desc);
    mp::require_pointer(name, "name");
    mp::require_not_negative(index, "index");
    const mp::GemmProblem problem = mp::problem_to_rank(d);
    MP_REQUIRE(!mp::is_empty(d), MP_ERROR_NOT_FOUND, "index = ", index,
               ", but an empty problem needs no kernel");
    const mp::Ranking ranking = mp::rank(problem, c.device, mp::kAssumedAligned);
    MP_REQUIRE(static_cast<size_t>(index) < ranking.count, MP_ERROR_NOT_FOUND, "index = ", index,
               ", but the number of kernels for this problem is ", ranking.count);
    *name = ranking.best_first()[static_cast<size_t>(index)].name;
  });
}
