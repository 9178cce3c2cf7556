// See gemm_problem.h.
#include "capi/gemm_problem.h"

#include <mutex>
#include <type_traits>

#include "base/lifetime.h"

namespace mp {

// ---------------------------------------------------------------------------- shapes

Matrix matrix_a(const mp_gemm_desc_t &d) {
  if (d.op_a == MP_OP_N)
    return {d.m, d.k, d.ld_a, d.stride_a, d.dtype_ab, "ld_a", "stride_a", "k", " (op_a = N)"};
  return {d.k, d.m, d.ld_a, d.stride_a, d.dtype_ab, "ld_a", "stride_a", "m", " (op_a = T)"};
}

Matrix matrix_b(const mp_gemm_desc_t &d) {
  if (d.op_b == MP_OP_N)
    return {d.k, d.n, d.ld_b, d.stride_b, d.dtype_ab, "ld_b", "stride_b", "n", " (op_b = N)"};
  return {d.n, d.k, d.ld_b, d.stride_b, d.dtype_ab, "ld_b", "stride_b", "k", " (op_b = T)"};
}

Matrix matrix_c(const mp_gemm_desc_t &d) {
  return {d.m, d.n, d.ld_c, d.stride_c, d.dtype_cd, "ld_c", "stride_c", "n", ""};
}

Matrix matrix_d(const mp_gemm_desc_t &d) {
  return {d.m, d.n, d.ld_d, d.stride_d, d.dtype_cd, "ld_d", "stride_d", "n", ""};
}

Matrix matrix_aux(const Output &out, int64_t ld_aux) {
  return {out.m, out.n, ld_aux, out.d.stride, out.dtype, "ld_aux", "stride_d", "n", ""};
}

namespace {

/// Returns whether all matrices are valid and so small that no size can overflow: the usual case,
/// which needs no names for messages.
bool is_small_and_valid(const mp_gemm_desc_t &d) {
  const int64_t lengths = d.m | d.n | d.k | d.ld_a | d.ld_b | d.ld_c | d.ld_d;
  const int64_t strides = d.stride_a | d.stride_b | d.stride_c | d.stride_d;
  const auto has_bits = [](int64_t value, int bits) {
    return static_cast<uint64_t>(value) >> bits == 0;
  };
  return has_bits(lengths, 28) && has_bits(strides, 40) && has_bits(d.batch_count, 16) &&
         d.ld_a >= (d.op_a == MP_OP_N ? d.k : d.m) && d.ld_b >= (d.op_b == MP_OP_N ? d.n : d.k) &&
         d.ld_c >= d.n && d.ld_d >= d.n;
}

void check_matrix(const Matrix &matrix, int64_t batch_count) {
  MP_REQUIRE(matrix.ld >= matrix.cols, MP_ERROR_INVALID_ARGUMENT, matrix.ld_name, " = ", matrix.ld,
             " is smaller than ", matrix.cols_name, " = ", matrix.cols, matrix.note);
  require_not_negative(matrix.stride, matrix.stride_name);
  int64_t item, all;
  MP_REQUIRE(strided_extent(matrix.rows, matrix.ld, matrix.cols, &item) &&
                 strided_extent(batch_count, matrix.stride, item, &all) &&
                 bytes_fit(all, matrix.dtype),
             MP_ERROR_INVALID_ARGUMENT, matrix.ld_name, " = ", matrix.ld, " and ",
             matrix.stride_name, " = ", matrix.stride, " with ", matrix.rows, " rows and ",
             batch_count, " items: size in bytes exceeds 2^63 - 1");
}

}  // namespace

void check_operation(const mp_gemm_desc_t &d) {
  require_enum(d.op_a, "op_a", MP_OP_N, MP_OP_T);
  require_enum(d.op_b, "op_b", MP_OP_N, MP_OP_T);
  MP_CHECK_FIELDS(require_dtype, d, dtype_ab, dtype_cd);
}

void check_shape(const mp_gemm_desc_t &d) {
  if (is_small_and_valid(d)) return;
  MP_CHECK_FIELDS(require_not_negative, d, batch_count, m, n, k);
  for (const Matrix &matrix : {matrix_a(d), matrix_b(d), matrix_c(d), matrix_d(d)})
    check_matrix(matrix, d.batch_count);
}

int64_t count_tiles(const mp_gemm_desc_t &d, int64_t tiles_m, int64_t batch_count) {
  int64_t tiles;
  MP_REQUIRE(multiply_add(tiles_m, tiles_along(d.n), 0, &tiles) &&
                 multiply_add(tiles, batch_count, 0, &tiles) && tiles <= kMaxTiles,
             MP_ERROR_UNSUPPORTED, "m = ", d.m, ", n = ", d.n, ", batch_count = ", d.batch_count,
             ": number of 16 x 16 tiles exceeds 2^31 - 1");
  return tiles;
}

void require_separate_items(const Matrix &matrix, int32_t batch_count) {
  int64_t item, row_of_items;
  if (batch_count <= 1 || matrix.rows == 0 || matrix.cols == 0) return;
  (void)strided_extent(matrix.rows, matrix.ld, matrix.cols, &item);
  (void)strided_extent(batch_count, matrix.stride, matrix.cols, &row_of_items);
  const bool follow = matrix.stride >= item;
  const bool interleaved = matrix.stride >= matrix.cols && row_of_items <= matrix.ld;
  MP_REQUIRE(follow || interleaved, MP_ERROR_INVALID_ARGUMENT, matrix.stride_name, " = ",
             matrix.stride, ": batch items of ", matrix.rows, " rows of ", matrix.cols,
             " elements (", matrix.ld_name, " = ", matrix.ld,
             ") overlap; batch_count = ", batch_count);
}

// ---------------------------------------------------------------------------- data

namespace {

/// Reads an epilogue, and checks the fields that every function has.
mp_epilogue_t read_common(const mp_epilogue_t *user) {
  const mp_epilogue_t e = user != nullptr ? read_struct(user, "epilogue") : mp_epilogue_t{};
  require_enum(e.activation, "activation", MP_ACT_NONE, MP_ACT_DGELU_ERF);
  require_flags(e.flags, MP_EPILOGUE_FLAG_GATED, "flags");
  MP_REQUIRE(e.flags == 0, MP_ERROR_UNSUPPORTED, "flags = ", Flags{e.flags},
             ": MP_EPILOGUE_FLAG_GATED is not supported by this version");
  require_aligned(e.scale, "scale");
  require_stats(e.stats, {"stats.found_inf", "stats.amax"});
  return e;
}

}  // namespace

Epilogue read_epilogue(const mp_epilogue_t *user, const Output &out) {
  if (user == nullptr) return Epilogue{};
  const mp_epilogue_t e = read_common(user);
  if (e.bias != nullptr) {
    require_dtype(e.dtype_bias, "dtype_bias");
    require_aligned(e.bias, "bias", mp_dtype_size(e.dtype_bias));
  }
  const bool backward = reads_aux(e.activation);
  MP_REQUIRE(!backward || e.aux != nullptr, MP_ERROR_INVALID_ARGUMENT,
             "aux = NULL, but activation = ", e.activation, " requires it");
  const Matrix aux = matrix_aux(out, e.ld_aux != 0 ? e.ld_aux : out.d.ld);
  if (e.ld_aux != 0) check_matrix(aux, out.batch_count);
  require_aligned(e.aux, "aux", mp_dtype_size(out.dtype));
  require_aligned(e.dbias, "dbias");
  Epilogue epilogue{};
  MP_COPY_FIELDS(epilogue, e, activation, scale, bias, dtype_bias, aux, dbias);
  MP_COPY_FIELDS(epilogue, e.stats, amax, found_inf);
  epilogue.ld_aux = aux.ld;
  epilogue.stride_aux = aux.stride;
  return epilogue;
}

Epilogue read_scaling_epilogue(const mp_epilogue_t *user, const char *function) {
  const mp_epilogue_t e = read_common(user);
  const auto require_unset = [&](const auto &value, const char *name) {
    bool is_unset;
    if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>)
      is_unset = enum_value(value) == 0;
    else
      is_unset = !value;
    MP_REQUIRE(is_unset, MP_ERROR_UNSUPPORTED, name, " = ", value, " is not supported by ",
               function);
  };
  MP_CHECK_FIELDS(require_unset, e, activation, bias, dtype_bias, aux, ld_aux, dbias);
  Epilogue epilogue{};
  epilogue.scale = e.scale;
  MP_COPY_FIELDS(epilogue, e.stats, amax, found_inf);
  return epilogue;
}

void check_operands(const Operands &x, const mp_gemm_desc_t &desc, size_t ab_alignment,
                    size_t cd_alignment) {
  require_aligned(x.a, "A", ab_alignment);
  require_aligned(x.b, "B", ab_alignment);
  require_aligned(x.c, "C", cd_alignment);
  require_aligned(x.d, "D", cd_alignment);
  if (is_empty(desc)) return;

  MP_REQUIRE(x.d != nullptr, MP_ERROR_INVALID_ARGUMENT, "D = NULL");
  MP_REQUIRE(x.a != nullptr || !has_product(desc), MP_ERROR_INVALID_ARGUMENT, "A = NULL");
  MP_REQUIRE(x.b != nullptr || !has_product(desc), MP_ERROR_INVALID_ARGUMENT, "B = NULL");
  if (desc.beta == 0.0f) return;
  MP_REQUIRE(x.c != nullptr, MP_ERROR_INVALID_ARGUMENT, "C = NULL, but beta = ", desc.beta,
             " requires C");
  if (x.c != x.d) return;
  MP_REQUIRE(desc.ld_c == desc.ld_d, MP_ERROR_INVALID_ARGUMENT, "ld_c = ", desc.ld_c,
             " must equal ld_d = ", desc.ld_d, " if C = D");
  MP_REQUIRE(desc.stride_c == desc.stride_d || desc.batch_count == 1, MP_ERROR_INVALID_ARGUMENT,
             "stride_c = ", desc.stride_c, " must equal stride_d = ", desc.stride_d, " if C = D");
}

void check_overlap(const Output &out, const Region &d, const std::array<Region, 4> &inputs,
                   const Workspace &workspace) {
  const Epilogue &e = out.epilogue;
  const Region aux = strided_region(e.aux, "aux", out.n, {out.m, e.ld_aux},
                                    {out.batch_count, e.stride_aux}, out.dtype);
  require_tensors({{d, kMayWrite},
                   {inputs[0], kMayRead},
                   {inputs[1], kMayRead},
                   {inputs[2], kMayRead},
                   {inputs[3], kMayRead},
                   {dense_region(e.bias, "bias", out.n, e.dtype_bias), kMayRead},
                   {dense_region(e.scale, "scale"), kMayRead},
                   {aux, reads_aux(e.activation) ? kMayRead : kMayWrite},
                   {dense_region(e.dbias, "dbias", out.n), kMayWrite},
                   {workspace_region(workspace.ptr, workspace.bytes), kMayWrite}},
                  {e.found_inf, e.amax}, {"stats.found_inf", "stats.amax"});
}

Region region_of(const Matrix &matrix, const void *data, const char *name, int64_t batch_count) {
  return strided_region(data, name, matrix.cols, {matrix.rows, matrix.ld},
                        {batch_count, matrix.stride}, matrix.dtype);
}

Output output_matrix(const void *data, int64_t rows, int64_t columns, int64_t ld,
                     mp_dtype_t dtype) {
  Output out{};
  out.m = rows;
  out.n = columns;
  out.batch_count = 1;
  out.dtype = dtype;
  out.alpha = 1.0f;
  out.c = out.d = {data, nullptr, ld, 0};
  return out;
}

namespace {

/// Returns whether the ranges of bytes that a call writes meet no other range: the usual case,
/// which needs no regions.
bool are_ranges_apart(const Operands &x, const mp_gemm_desc_t &d, const Output &out,
                      const Workspace &workspace) {
  struct Range {
    uintptr_t begin, end;
  };
  Range ranges[11];
  size_t count = 0;
  const auto add = [&](const void *data, int64_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    if (data != nullptr) ranges[count++] = {begin, begin + static_cast<uintptr_t>(bytes)};
  };
  const auto add_matrix = [&](const void *data, int64_t rows, int64_t cols, int64_t ld,
                              int64_t stride, int64_t elem) {
    if (rows > 0) add(data, ((d.batch_count - 1) * stride + (rows - 1) * ld + cols) * elem);
  };
  const auto ab = static_cast<int64_t>(mp_dtype_size(d.dtype_ab));
  const auto cd = static_cast<int64_t>(mp_dtype_size(d.dtype_cd));
  const bool a_by_k = d.op_a == MP_OP_N, b_by_k = d.op_b == MP_OP_T;
  const Epilogue &e = out.epilogue;
  add_matrix(x.d, d.m, d.n, d.ld_d, d.stride_d, cd);
  add(workspace.ptr, workspace_region(workspace.ptr, workspace.bytes).run);
  add_matrix(e.aux, d.m, d.n, e.ld_aux, e.stride_aux, cd);  // treated as written
  add(e.dbias, out.n * int64_t{sizeof(float)});
  add(e.amax, sizeof(float));
  add(e.found_inf, sizeof(float));
  const size_t written = count;
  if (has_product(d)) {
    add_matrix(x.a, a_by_k ? d.m : d.k, a_by_k ? d.k : d.m, d.ld_a, d.stride_a, ab);
    add_matrix(x.b, b_by_k ? d.n : d.k, b_by_k ? d.k : d.n, d.ld_b, d.stride_b, ab);
  }
  if (d.beta != 0.0f && x.c != x.d) add_matrix(x.c, d.m, d.n, d.ld_c, d.stride_c, cd);
  if (e.bias != nullptr) add(e.bias, out.n * static_cast<int64_t>(mp_dtype_size(e.dtype_bias)));
  add(e.scale, sizeof(float));
  for (size_t i = 0; i < written; i++)
    for (size_t j = i + 1; j < count; j++)
      if (ranges[i].begin < ranges[j].end && ranges[j].begin < ranges[i].end) return false;
  return true;
}

}  // namespace

void check_overlap(const Operands &x, const mp_gemm_desc_t &d, const Output &out,
                   const Workspace &workspace, const Region &input) {
  if (input.data == nullptr && are_ranges_apart(x, d, out, workspace)) return;
  const bool multiplies = has_product(d), reads_c = d.beta != 0.0f && x.c != x.d;
  check_overlap(out, region_of(matrix_d(d), x.d, "D", d.batch_count),
                {region_of(matrix_a(d), multiplies ? x.a : nullptr, "A", d.batch_count),
                 region_of(matrix_b(d), multiplies ? x.b : nullptr, "B", d.batch_count),
                 region_of(matrix_c(d), reads_c ? x.c : nullptr, "C", d.batch_count), input},
                workspace);
}

void set_data(GemmProblem &problem, const Operands &x) {
  problem.a.base = x.a;
  problem.b.base = x.b;
  problem.out.c.base = x.c;
  problem.out.d.base = x.d;
}

void check_workspace(const Workspace &workspace) {
  require_aligned(workspace.ptr, "workspace", 256);
  MP_REQUIRE(workspace.ptr != nullptr || workspace.bytes == 0, MP_ERROR_INVALID_ARGUMENT,
             "workspace = NULL, but workspace_bytes = ", workspace.bytes);
}

// ---------------------------------------------------------------------------- log

namespace {

std::mutex news_mutex;
const ForkGuard<news_mutex> news_of_a_child;

}  // namespace

bool is_first_occurrence(const Context &context, const char *kernel) {
  if (!log_enabled(MP_LOG_INFO)) return false;
  const std::lock_guard lock(news_mutex);
  return context.logged.kernels.insert(kernel).second;
}

}  // namespace mp
