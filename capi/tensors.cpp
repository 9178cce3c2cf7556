// mpcore/tensors.h: tensor lists, their chunk tables, and passes over them.
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "base/workspace_layout.h"
#include "capi/nvtx_payload.h"
#include "capi/objects.h"

using namespace mp;

Message mp::payload_text(const mp_tensor_list &list) {
  return Message("tensors = ", list.numel.size(), ", elements = ",
                 std::accumulate(list.numel.begin(), list.numel.end(), int64_t{0}));
}

namespace {

// ---------------------------------------------------------------------------- creation

/// Limit of 2^40 elements, more than any memory holds; its tables take 2 GB.  Larger counts fail
/// before their tables exhaust host memory.
constexpr int64_t kMaxChunks = (int64_t{1} << 40) / kChunkElems - 1;

int64_t chunks_of(int64_t numel) {
  return numel / kChunkElems + (numel % kChunkElems != 0);
}

void require_tensor_data(void *const *data, const std::vector<mp_dtype_t> &dtype) {
  for (size_t t = 0; t < dtype.size(); ++t) {
    MP_REQUIRE(is_aligned(data[t], mp_dtype_size(dtype[t])), MP_ERROR_MISALIGNED, "data[", t,
               "] = ", data[t], " is not aligned to its element size of ", mp_dtype_size(dtype[t]),
               " bytes");
  }
}

std::vector<mp_dtype_t> read_dtypes(const mp_tensor_list_desc_t &desc) {
  if (desc.dtypes == nullptr) {
    require_dtype(desc.dtype, "dtype");
    return std::vector<mp_dtype_t>(desc.count, desc.dtype);
  }
  for (uint32_t t = 0; t < desc.count; ++t) {
    require_dtype(desc.dtypes[t], Message("dtypes[", t, "]").c_str());
  }
  return std::vector<mp_dtype_t>(desc.dtypes, desc.dtypes + desc.count);
}

std::vector<int64_t> read_numel(const mp_tensor_list_desc_t &desc) {
  int64_t num_chunks = 0;
  for (uint32_t t = 0; t < desc.count; ++t) {
    const int64_t numel = desc.numel[t];
    MP_REQUIRE(numel >= 0, MP_ERROR_INVALID_ARGUMENT, "numel[", t, "] = ", numel, " is negative");
    num_chunks += chunks_of(numel);
    MP_REQUIRE(num_chunks <= kMaxChunks, MP_ERROR_INVALID_ARGUMENT, "numel[", t, "] = ", numel,
               ": number of elements of the list exceeds ", kMaxChunks * kChunkElems);
  }
  return std::vector<int64_t>(desc.numel, desc.numel + desc.count);
}

/// Sets the data pointers of the list, and finds overlaps.
void set_data(mp_tensor_list &list, void *const *data) {
  list.data.assign(data, data + list.numel.size());
  list.overlap.reset();
  std::vector<size_t> by_address;
  for (size_t t = 0; t < list.data.size(); ++t)
    if (list.data[t] != nullptr && list.numel[t] > 0) by_address.push_back(t);
  const auto begin = [&](size_t t) { return reinterpret_cast<uintptr_t>(list.data[t]); };
  std::ranges::sort(by_address, {}, begin);
  for (size_t i = 1; i < by_address.size(); ++i) {
    const auto [first, second] = std::minmax(by_address[i - 1], by_address[i]);
    const size_t before = by_address[i - 1];
    const uintptr_t bytes =
        static_cast<uintptr_t>(list.numel[before]) * mp_dtype_size(list.dtype[before]);
    if (begin(by_address[i]) - begin(before) >= bytes) continue;
    list.overlap = {first, second};
    return;
  }
}

std::unique_ptr<mp_tensor_list> read_list(const ContextPtr &context,
                                          const mp_tensor_list_desc_t &desc) {
  require_zero(desc.reserved0, "reserved0");
  MP_REQUIRE(desc.count == 0 || desc.data != nullptr, MP_ERROR_INVALID_ARGUMENT,
             "data = NULL, but count = ", desc.count);
  MP_REQUIRE(desc.count == 0 || desc.numel != nullptr, MP_ERROR_INVALID_ARGUMENT,
             "numel = NULL, but count = ", desc.count);
  auto list = std::make_unique<mp_tensor_list>();
  list->context = context;
  list->dtype = read_dtypes(desc);
  list->numel = read_numel(desc);
  require_tensor_data(desc.data, list->dtype);
  if (desc.count > 0) set_data(*list, desc.data);
  return list;
}

struct ChunkTable {
  std::vector<Chunk> chunks;
  std::vector<int64_t> first_chunk;
};

ChunkTable make_chunk_table(const std::vector<int64_t> &numel) {
  ChunkTable table;
  table.first_chunk.push_back(0);
  for (size_t t = 0; t < numel.size(); ++t) {
    const auto count = static_cast<uint32_t>(chunks_of(numel[t]));
    for (uint32_t i = 0; i < count; ++i) table.chunks.push_back({static_cast<uint32_t>(t), i});
    table.first_chunk.push_back(static_cast<int64_t>(table.chunks.size()));
  }
  return table;
}

void upload(mp_tensor_list &list) {
  const size_t count = list.data.size();
  const ChunkTable table = make_chunk_table(list.numel);
  const size_t num_chunks = table.chunks.size();
  const std::vector<uint8_t> dtype(list.dtype.begin(), list.dtype.end());
  list.device.count = static_cast<uint32_t>(count);
  list.device.num_chunks = static_cast<int64_t>(num_chunks);

  DeviceImage image;
  image.add(list.device.data, list.data.data(), count);
  image.add(list.device.numel, list.numel.data(), count);
  image.add(list.device.dtype, dtype.data(), count);
  image.add(list.device.chunks, table.chunks.data(), num_chunks);
  image.add(list.device.first_chunk, table.first_chunk.data(), count + 1);
  image.add_zeros(list.scratch.sum_squares, num_chunks);
  image.add_zeros(list.scratch.amax_bits, num_chunks);
  image.add_zeros(list.scratch.blocks_done);
  image.add_zeros(list.scratch.report_counts, num_chunks);
  image.add_zeros(list.scratch.first_bad, num_chunks);
  list.memory = image.upload(list.context);
}

// ---------------------------------------------------------------------------- passes

void enqueue_statistics(mp_tensor_list_t handle, const StatisticsOutputs &outputs,
                        mp_stream_t stream) {
  const mp_tensor_list &list = require_pointer(handle, "list");
  require_data(list, "list");
  const Context &c = *list.context;
  c.backend.statistics(c.device, list.device, list.scratch, outputs, stream);
}

StatisticsOutputs checked_outputs(const mp_stats_outputs_t &outputs) {
  require_zero(outputs.reserved0, "outputs->reserved0");
  bool any = false;
  const auto optional = [&](auto *pointer, const char *name) {
    require_aligned(pointer, name);
    any = any || pointer != nullptr;
    return pointer;
  };
  StatisticsOutputs checked{};
  checked.found_inf = optional(outputs.found_inf, "outputs->found_inf");
  checked.amax = optional(outputs.amax, "outputs->amax");
  checked.amax_per_tensor = optional(outputs.tensor_amax, "outputs->tensor_amax");
  checked.norm = optional(outputs.norm, "outputs->norm");
  checked.norm_per_tensor = optional(outputs.tensor_norm, "outputs->tensor_norm");
  checked.report = optional(outputs.report, "outputs->report");
  checked.tensor_reports = optional(outputs.tensor_reports, "outputs->tensor_reports");
  MP_REQUIRE(any, MP_ERROR_INVALID_ARGUMENT, "outputs: all pointers are NULL; set at least one");
  return checked;
}

/// Requires at least one of the two results of a reduction.
template <class T>
void require_results(const T *whole, const char *name, const T *per_tensor,
                     const char *per_tensor_name = "per_tensor") {
  MP_REQUIRE(whole != nullptr || per_tensor != nullptr, MP_ERROR_INVALID_ARGUMENT, name, " and ",
             per_tensor_name, " are both NULL; pass at least one");
  require_aligned(whole, name);
  require_aligned(per_tensor, per_tensor_name);
}

}  // namespace

std::unique_ptr<mp_tensor_list> mp::make_zeros(const ContextPtr &context,
                                               const std::vector<int64_t> &numel) {
  auto list = std::make_unique<mp_tensor_list>();
  list->context = context;
  list->numel = numel;
  list->dtype.assign(numel.size(), MP_FP32);
  constexpr size_t kAlignment = 64;  // elements: 256 bytes
  std::vector<size_t> first;
  size_t count = 0;
  for (const int64_t n : numel) {
    first.push_back(count);
    count += align_up(static_cast<size_t>(n), kAlignment);
  }
  if (count > 0) {
    list->elements = allocate_device(context, count * sizeof(float));
    context->backend.fill(context->device, list->elements.get(), 0, count * sizeof(float), nullptr);
    context->backend.synchronize(context->device, nullptr);
  }
  auto *const elements = reinterpret_cast<float *>(list->elements.get());
  for (size_t t = 0; t < numel.size(); ++t)
    list->data.push_back(numel[t] > 0 ? elements + first[t] : nullptr);
  upload(*list);
  return list;
}

void mp::require_data(const mp_tensor_list &list, const char *name) {
  for (size_t t = 0; t < list.data.size(); ++t) {
    MP_REQUIRE(list.data[t] != nullptr || list.numel[t] == 0, MP_ERROR_INVALID_ARGUMENT, name,
               ": data[", t, "] = NULL, but numel[", t, "] = ", list.numel[t]);
  }
}

void mp::require_disjoint(const mp_tensor_list &list, const char *name) {
  if (!list.overlap) return;
  const auto [first, second] = *list.overlap;
  fail(MP_ERROR_INVALID_ARGUMENT, name, ": data[", second, "] = ", list.data[second],
       " overlaps data[", first, "] = ", list.data[first], ", and the call writes both");
}

void mp::require_parallel(const mp_tensor_list &list, const char *name, const mp_tensor_list &other,
                          const char *other_name) {
  MP_REQUIRE(list.context == other.context, MP_ERROR_INVALID_ARGUMENT, name, " and ", other_name,
             " belong to different contexts");
  MP_REQUIRE(list.numel.size() == other.numel.size(), MP_ERROR_INVALID_ARGUMENT, name, " has ",
             list.numel.size(), " tensors, but ", other_name, " has ", other.numel.size());
  for (size_t t = 0; t < list.numel.size(); ++t) {
    MP_REQUIRE(list.numel[t] == other.numel[t], MP_ERROR_INVALID_ARGUMENT, name, ": numel[", t,
               "] = ", list.numel[t], " must equal numel[", t, "] = ", other.numel[t], " of ",
               other_name);
  }
}

mp_status_t mp_tensor_list_create(mp_tensor_list_t *list, mp_context_t context,
                                  const mp_tensor_list_desc_t *desc) {
  return call(__func__, [&] {
    require_pointer(list, "list");
    const ContextPtr &c = require_context(context);
    std::unique_ptr<mp_tensor_list> created = read_list(c, read_struct(desc, "desc"));
    upload(*created);
    *list = created.release();
  });
}

void mp_tensor_list_destroy(mp_tensor_list_t list) {
  call_void(__func__, [&] { delete list; });
}

mp_status_t mp_tensor_list_set_data(mp_tensor_list_t list, void *const *data, mp_stream_t stream) {
  return call(__func__, list, "list", [&](const Context &c, mp_tensor_list &l) {
    if (l.data.empty()) return;
    require_pointer(data, "data");
    require_tensor_data(data, l.dtype);
    set_data(l, data);
    c.backend.copy(c.device, l.device.data, l.data.data(), l.data.size() * sizeof(void *), stream);
  });
}

mp_status_t mp_tensor_list_get_tensor(mp_tensor_list_t list, uint32_t index, void **data,
                                      int64_t *numel, mp_dtype_t *dtype) {
  return call(__func__, [&] {
    const mp_tensor_list &l = require_pointer(list, "list");
    MP_REQUIRE(index < l.data.size(), MP_ERROR_NOT_FOUND, "index = ", index, " is outside [0, ",
               l.data.size(), ")");
    if (data != nullptr) *data = l.data[index];
    if (numel != nullptr) *numel = l.numel[index];
    if (dtype != nullptr) *dtype = l.dtype[index];
  });
}

mp_status_t mp_check_nonfinite(mp_tensor_list_t list, float *found_inf, mp_stream_t stream) {
  return call(__func__, nvtx_payload(list), [&] {
    require_device(found_inf, "found_inf");
    StatisticsOutputs outputs{};
    outputs.found_inf = found_inf;
    enqueue_statistics(list, outputs, stream);
  });
}

mp_status_t mp_amax(mp_tensor_list_t list, float *amax, float *per_tensor, mp_stream_t stream) {
  return call(__func__, nvtx_payload(list), [&] {
    require_results(amax, "amax", per_tensor);
    StatisticsOutputs outputs{};
    outputs.amax = amax;
    outputs.amax_per_tensor = per_tensor;
    enqueue_statistics(list, outputs, stream);
  });
}

mp_status_t mp_l2norm(mp_tensor_list_t list, float *norm, float *per_tensor, mp_stream_t stream) {
  return call(__func__, nvtx_payload(list), [&] {
    require_results(norm, "norm", per_tensor);
    StatisticsOutputs outputs{};
    outputs.norm = norm;
    outputs.norm_per_tensor = per_tensor;
    enqueue_statistics(list, outputs, stream);
  });
}

mp_status_t mp_inspect(mp_tensor_list_t list, mp_tensor_report_t *report,
                       mp_tensor_report_t *tensor_reports, mp_stream_t stream) {
  return call(__func__, nvtx_payload(list), [&] {
    require_results(report, "report", tensor_reports, "tensor_reports");
    StatisticsOutputs outputs{};
    outputs.report = report;
    outputs.tensor_reports = tensor_reports;
    enqueue_statistics(list, outputs, stream);
  });
}

mp_status_t mp_tensor_stats(mp_tensor_list_t list, const mp_stats_outputs_t *outputs,
                            mp_stream_t stream) {
  return call(__func__, nvtx_payload(list), [&] {
    enqueue_statistics(list, checked_outputs(read_struct(outputs, "outputs")), stream);
  });
}

mp_status_t mp_unscale(mp_tensor_list_t in, mp_tensor_list_t out, const float *inv_scale,
                       float *found_inf, mp_stream_t stream) {
  return call(__func__, in, "in", [&](const Context &c, const mp_tensor_list &from) {
    const mp_tensor_list &to = require_pointer(out, "out");
    require_parallel(from, "in", to, "out");
    require_data(from, "in");
    require_writable(to, "out");
    require_device(inv_scale, "inv_scale");
    require_device(found_inf, "found_inf");
    c.backend.accumulate(c.device,
                         {.in = from.device,
                          .out = to.device,
                          .inv_scale = inv_scale,
                          .weight = 1.0f,
                          .first = true,
                          .last = false,
                          .found_inf = found_inf,
                          .scaler = nullptr,
                          .blocks_done = nullptr},
                         stream);
  });
}

mp_status_t mp_clip_factor(mp_context_t context, const float *scaled_norm, const float *inv_scale,
                           float max_norm, float *grad_scale, mp_stream_t stream) {
  return call(__func__, context, [&](const Context &c) {
    require_device(scaled_norm, "scaled_norm");
    require_device(inv_scale, "inv_scale");
    MP_REQUIRE(max_norm > 0.0f, MP_ERROR_INVALID_ARGUMENT, "max_norm = ", max_norm,
               " must be positive");
    require_device(grad_scale, "grad_scale");
    c.backend.clip_factor(c.device,
                          {.scaled_norm = scaled_norm,
                           .inv_scale = inv_scale,
                           .max_norm = max_norm,
                           .grad_scale = grad_scale,
                           .grad_norm = nullptr,
                           .tensor_norms = nullptr},
                          stream);
  });
}
