#include "batched_shapes.h"

namespace mpbench {

const char *name_of(BatchForm form) {
  return form == BatchForm::kStrided    ? "strided"
         : form == BatchForm::kPointers ? "pointers"
         : form == BatchForm::kGrouped  ? "grouped"
                                        : "ragged";
}

std::string BatchedShape::name() const {
  return std::string(name_of(form)) + ' ' + std::to_string(count) + " x " + gemm.name();
}

std::string BatchedShape::kind() const {
  return gemm.set + ' ' + name_of(form) + ' ' + gemm.name().substr(0, 2);
}

int64_t BatchedShape::rows_of(int64_t i) const {
  return is_group(form) ? ceil_div(2 * gemm.m * (i + 1), count + 1) : gemm.m;
}

int64_t BatchedShape::rows() const {
  int64_t rows = 0;
  for (int64_t i = 0; i < count; ++i) rows += rows_of(i);
  return rows;
}

double BatchedShape::flop() const {
  return 2.0 * static_cast<double>(rows()) * static_cast<double>(gemm.n) *
         static_cast<double>(gemm.k);
}

double BatchedShape::effort_flop() const {
  double flop = 0;
  for (int64_t i = 0; i < count; ++i) {
    Shape item = gemm;
    item.m = rows_of(i);
    flop += item.effort_flop();
  }
  return flop;
}

std::vector<ItemOffsets> BatchedShape::offsets() const {
  std::vector<ItemOffsets> offsets = {{0, 0, 0}};
  for (int64_t i = 0; i < count; ++i) {
    const ItemOffsets &at = offsets.back();
    offsets.push_back({at.first + rows_of(i) * gemm.k, at.second + gemm.k * gemm.n,
                       at.out + rows_of(i) * gemm.n});
  }
  return offsets;
}

mp_gemm_desc_t make_desc(const BatchedShape &shape, mp_dtype_t dtype) {
  mp_gemm_desc_t desc = make_desc(shape.gemm, dtype, dtype);
  if (shape.form == BatchForm::kGrouped) return desc;
  desc.batch_count = static_cast<int32_t>(shape.count);
  if (shape.form == BatchForm::kRagged) {
    desc.m = shape.rows();
    desc.stride_b = desc.k * desc.n;
    return desc;
  }
  if (shape.form == BatchForm::kPointers) return desc;
  desc.stride_a = desc.m * desc.k;
  desc.stride_b = desc.k * desc.n;
  desc.stride_c = desc.stride_d = desc.m * desc.n;
  return desc;
}

double min_bytes(const BatchedShape &shape, mp_dtype_t dtype) {
  const ItemOffsets all = shape.offsets().back();
  return static_cast<double>((all.first + all.second + all.out) * dtype_bytes(dtype));
}

BatchedShape parse_batched(std::string_view line) {
  const std::vector<std::string_view> fields = split_line(line, 2);
  if (fields.size() != 3)
    throw std::runtime_error("a line must be form,count,m,n,k,layout,comment");
  BatchedShape shape{.form = BatchForm::kStrided,
                     .count = parse_field(fields[1], 1, kMaxBatch),
                     .gemm = parse_llm(fields[2])};
  for (const auto &[rows, columns] : {std::pair(shape.gemm.m, shape.gemm.k),
                                      {shape.gemm.k, shape.gemm.n},
                                      {shape.gemm.m, shape.gemm.n}})
    require_countable({shape.count, rows, columns});
  for (const BatchForm form :
       {BatchForm::kStrided, BatchForm::kPointers, BatchForm::kGrouped, BatchForm::kRagged}) {
    if (fields[0] != name_of(form)) continue;
    if (form == BatchForm::kRagged && shape.gemm.op_a != MP_OP_N)
      throw std::runtime_error("layout of a ragged batch must be NN or NT");
    shape.form = form;
    shape.gemm.is_wgrad = false;
    return shape;
  }
  throw std::runtime_error("\"" + std::string(fields[0]) +
                           "\": form must be strided, pointers, grouped or ragged");
}

std::vector<BatchedShape> BatchedShape::of_line(std::string_view line, const ShapeSet &set) {
  BatchedShape shape = parse_batched(line);
  shape.gemm.set = set.name;
  return {shape};
}

}  // namespace mpbench
