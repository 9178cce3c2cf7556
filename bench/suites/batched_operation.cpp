#include "batched_operation.h"

#include <memory>

namespace mpbench {
namespace {

mp_gemm_desc_t item_desc(const BatchedShape &shape, int64_t i, mp_dtype_t dtype) {
  Shape item = shape.gemm;
  item.m = shape.rows_of(i);
  return make_desc(item, dtype, dtype);
}

/// Descriptor of a group: the fields that its entries share.
mp_gemm_desc_t group_desc(const BatchedShape &shape, mp_dtype_t dtype) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(0, 0, 0, dtype, dtype);
  desc.op_a = shape.gemm.op_a;
  desc.op_b = shape.gemm.op_b;
  return desc;
}

std::vector<mp_gemm_group_item_t> group_items(const BatchedShape &shape, mp_dtype_t dtype) {
  std::vector<mp_gemm_group_item_t> items;
  for (int64_t i = 0; i < shape.count; ++i) {
    const mp_gemm_desc_t desc = item_desc(shape, i, dtype);
    mp_gemm_group_item_t item = mp_gemm_group_item_default(desc.m, desc.n, desc.k);
    item.ld_a = desc.ld_a;
    item.ld_b = desc.ld_b;
    items.push_back(item);
  }
  return items;
}

void set_batch(Operation &operation, const Machine &machine, const BatchedShape &shape,
               mp_dtype_t dtype) {
  const mp_gemm_desc_t desc = make_desc(shape, dtype);
  const bool by_pointers = shape.form == BatchForm::kPointers;
  operation.workspace_bytes = [&machine, desc, by_pointers](const char *) {
    const auto query = by_pointers ? mp_gemm_batched_workspace_size : mp_gemm_workspace_size;
    return bytes_from(query, machine.context(), &desc, nullptr);
  };
  operation.enqueue = [&machine, desc, by_pointers](const char *, const Operands &t,
                                                    const Buffer &workspace) {
    if (by_pointers)
      machine.call(mp_gemm_batched, &desc, t.items.first, t.items.second, nullptr, t.items.out,
                   nullptr, workspace);
    else
      machine.call(mp_gemm, &desc, t.first, t.second, nullptr, t.out, nullptr, workspace);
  };
}

void set_group(Operation &operation, const Machine &machine, const BatchedShape &shape,
               mp_dtype_t dtype) {
  const mp_gemm_desc_t desc = group_desc(shape, dtype);
  std::vector<mp_gemm_group_item_t> items = group_items(shape, dtype);
  const auto count = static_cast<int32_t>(shape.count);
  operation.workspace_bytes = [&machine, desc, items, count](const char *) {
    return bytes_from(mp_gemm_grouped_workspace_size, machine.context(), &desc, count, items.data(),
                      nullptr);
  };
  const int64_t elem_bytes = dtype_bytes(dtype);
  operation.enqueue = [=, &machine, offsets = shape.offsets()](const char *, const Operands &t,
                                                               const Buffer &workspace) mutable {
    for (size_t i = 0; i < items.size(); ++i) {
      mp_gemm_group_item_t &item = items[i];
      item.A = static_cast<const char *>(t.first) + offsets[i].first * elem_bytes;
      item.B = static_cast<const char *>(t.second) + offsets[i].second * elem_bytes;
      item.D = static_cast<char *>(t.out) + offsets[i].out * elem_bytes;
    }
    machine.call(mp_gemm_grouped, &desc, count, items.data(), nullptr, workspace);
  };
}

/// Copies the offsets to the device once; a previous layer would have computed them there.
void set_ragged(Operation &operation, const Machine &machine, const BatchedShape &shape,
                mp_dtype_t dtype) {
  const mp_gemm_desc_t desc = make_desc(shape, dtype);
  std::vector<int32_t> ends;
  for (int64_t i = 0, rows = 0; i < shape.count; ++i)
    ends.push_back(static_cast<int32_t>(rows += shape.rows_of(i)));
  const auto on_device = std::make_shared<Buffer>(machine.upload(ends));
  operation.workspace_bytes = [&machine, desc](const char *) {
    return bytes_from(mp_gemm_ragged_workspace_size, machine.context(), &desc, MP_RAGGED_M,
                      nullptr);
  };
  operation.enqueue = [&machine, desc, on_device](const char *, const Operands &t,
                                                  const Buffer &workspace) {
    machine.call(mp_gemm_ragged, &desc, MP_RAGGED_M, on_device->as<int32_t>(), t.first, t.second,
                 nullptr, t.out, nullptr, workspace);
  };
}

}  // namespace

Operation batched_operation(const Machine &machine, const BatchedShape &shape, mp_dtype_t dtype) {
  const std::vector<ItemOffsets> offsets = shape.offsets();
  Operation operation{.first_elems = offsets.back().first,
                      .second_elems = offsets.back().second,
                      .out_elems = offsets.back().out,
                      .dtype = dtype,
                      .out_dtype = dtype,
                      .beta = 0,
                      .calls = 1,
                      .flop = shape.flop(),
                      .min_bytes = min_bytes(shape, dtype),
                      .tolerance = tolerance_of_sums(shape.gemm.k, dtype),
                      .items = {offsets.begin(), offsets.end() - 1}};
  if (shape.form == BatchForm::kStrided)
    add_gemm_kernels(operation, machine, make_desc(shape, dtype));
  else
    operation.kernels = {kNotNamed};
  if (shape.form == BatchForm::kGrouped)
    set_group(operation, machine, shape, dtype);
  else if (shape.form == BatchForm::kRagged)
    set_ragged(operation, machine, shape, dtype);
  else
    set_batch(operation, machine, shape, dtype);
  return operation;
}

PeerCalls group_calls(const CublasLt &loop, const Cublas *grouped, const BatchedShape &shape,
                      mp_dtype_t dtype) {
  std::vector<mp_gemm_desc_t> items;
  PeerCalls entries;
  for (int64_t i = 0; i < shape.count; ++i) {
    items.push_back(item_desc(shape, i, dtype));
    entries.push_back(loop.gemm(items.back()).front());
  }
  const auto enqueue_all = [entries, offsets = shape.offsets(),
                            elem_bytes = dtype_bytes(dtype)](const Operands &t) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const ItemOffsets &at = offsets[i];
      entries[i].enqueue({.first = static_cast<const char *>(t.first) + at.first * elem_bytes,
                          .second = static_cast<const char *>(t.second) + at.second * elem_bytes,
                          .out = static_cast<char *>(t.out) + at.out * elem_bytes});
    }
  };
  PeerCalls calls = {{{.limit = CublasLt::kWorkspaceBytes, .used = -1}, enqueue_all}};
  if (grouped != nullptr) calls.push_back(grouped->grouped_gemm(items));
  return calls;
}

}  // namespace mpbench
