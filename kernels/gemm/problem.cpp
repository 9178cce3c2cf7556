// Conversions from a descriptor to a problem, and from a problem to its shape.
#include "kernels/gemm/problem.h"

#include <algorithm>

#include "base/cache.h"

namespace mp {

namespace {

Operand matrix(int64_t ld, int64_t stride, int32_t batch_count) {
  return {.base = nullptr, .items = nullptr, .ld = ld, .stride = batch_count > 1 ? stride : 0};
}

Operand single(const void *base, int64_t ld) {
  return {.base = base, .items = nullptr, .ld = ld, .stride = 0};
}

MatrixLayout layout_of(const Operand &x) {
  return {.ld = x.ld, .stride = x.stride, .alignment = alignment_of(x.base)};
}

/// A and B are read by 16 bytes or one by one.
MatrixLayout operand_layout(const Operand &x) {
  return {.ld = x.ld, .stride = x.stride, .alignment = alignment_of(x.base) == 16 ? 16 : 1};
}

}  // namespace

void mix(Hash &hash, const OutputShape &out) {
  const EpilogueShape &e = out.epilogue;
  uint64_t flags = static_cast<uint64_t>(e.activation) << 8 |
                   static_cast<uint64_t>(out.items) << 4 | static_cast<uint64_t>(out.dtype);
  for (const bool flag :
       {out.reads_c, e.has_bias, e.has_aux, e.has_dbias, e.has_amax, e.has_found_inf})
    flags = flags << 1 | static_cast<uint64_t>(flag);
  hash.mix(flags);
}

int32_t alignment_of(const void *pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return address % 16 == 0 ? 16 : address % 8 == 0 ? 8 : 1;
}

OutputShape shape_of(const Output &out) {
  const Epilogue &e = out.epilogue;
  const bool reads_c = out.beta != 0.0f;
  return {.m = out.m,
          .n = out.n,
          .batch_count = out.batch_count,
          .dtype = out.dtype,
          .items = out.d.items != nullptr ? ItemAccess::pointers : ItemAccess::strided,
          .reads_c = reads_c,
          .c = reads_c ? layout_of(out.c) : MatrixLayout{},
          .d = layout_of(out.d),
          .epilogue = {.activation = e.activation,
                       .has_bias = e.bias != nullptr,
                       .has_aux = e.aux != nullptr,
                       .has_dbias = e.dbias != nullptr,
                       .has_amax = e.amax != nullptr,
                       .has_found_inf = e.found_inf != nullptr,
                       .aux = e.aux != nullptr
                                  ? MatrixLayout{e.ld_aux, e.stride_aux, alignment_of(e.aux)}
                                  : MatrixLayout{}}};
}

GemmShape shape_of(const GemmProblem &p) {
  return {.out = shape_of(p.out),
          .k = p.k,
          .op_a = p.op_a,
          .op_b = p.op_b,
          .dtype_ab = p.dtype_ab,
          .a = operand_layout(p.a),
          .b = operand_layout(p.b)};
}

RaggedShape shape_of(const RaggedProblem &p) {
  RaggedShape shape{shape_of(p.all), p.dimension};
  shape.all.out.items = ItemAccess::groups;
  return shape;
}

uint64_t GemmShape::hash() const {
  Hash hash;
  mix(hash, out);
  hash.mix({out.m, out.n, k, out.batch_count, a.ld, b.ld, a.stride, b.stride});
  hash.mix(static_cast<uint64_t>(op_a) << 4 | static_cast<uint64_t>(op_b) << 2 |
           static_cast<uint64_t>(dtype_ab));
  return hash.sum;
}

uint64_t RaggedShape::hash() const {
  Hash hash{all.hash()};
  hash.mix(static_cast<uint64_t>(dimension));
  return hash.sum;
}

GemmProblem gemm_problem(const mp_gemm_desc_t &d) {
  return {.out = {.m = d.m,
                  .n = d.n,
                  .batch_count = d.batch_count,
                  .dtype = d.dtype_cd,
                  .alpha = d.alpha,
                  .beta = d.beta,
                  .c = matrix(d.ld_c, d.stride_c, d.batch_count),
                  .d = matrix(d.ld_d, d.stride_d, d.batch_count),
                  .epilogue = {}},
          .k = summed_k(d.k, d.alpha),
          .op_a = d.op_a,
          .op_b = d.op_b,
          .dtype_ab = d.dtype_ab,
          .a = matrix(d.ld_a, d.stride_a, d.batch_count),
          .b = matrix(d.ld_b, d.stride_b, d.batch_count)};
}

GemmProblem item_problem(const GemmGroup &group, const GemmGroupItem &item) {
  GemmProblem problem = group.common;
  problem.out.m = item.m;
  problem.out.n = item.n;
  problem.k = item.k;
  problem.a = single(item.a, item.ld_a);
  problem.b = single(item.b, item.ld_b);
  problem.out.c = single(item.c, item.ld_c);
  problem.out.d = single(item.d, item.ld_d);
  return problem;
}

}  // namespace mp
