// mpcore/optimizer.h: checkpoints.  A block of plain data: a header, the number of elements of each
// tensor, the elements in fp32, and the scaler's state.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "capi/check.h"
#include "capi/nvtx_payload.h"
#include "capi/objects.h"
#include "kernels/backend.h"
#include "mpcore.h"

namespace mp {

namespace {

constexpr char kMagic[7] = {'m', 'p', 'c', 'o', 'r', 'e', '\0'};
constexpr uint8_t kVersion = 2;  // 1: mpcore 0.1

/// Header as stored; its layout must not change within a version.
struct Header {
  char magic[sizeof kMagic];
  uint8_t version;
  mp_optimizer_kind_t kind;  ///< must be checked before it is loaded (enum_value)
  uint32_t scaler_bytes;     ///< struct_size of the state at the end
  uint32_t num_tensors;
  uint32_t lists;  ///< bit i: the checkpoint has list i of lists_of()
  int64_t t;
};
static_assert(sizeof(Header) == 32);

struct List {
  const char *name;
  const mp_tensor_list *tensors;  ///< NULL if the optimizer has none
};

std::array<List, 3> lists_of(const mp_optimizer &o) {
  return {{{"master", o.desc.master}, {"m", o.desc.m}, {"v", o.desc.v}}};
}

Header header_of(const mp_optimizer &o) {
  Header header{};
  std::copy_n(kMagic, sizeof kMagic, header.magic);
  header.version = kVersion;
  header.kind = o.desc.kind;
  header.scaler_bytes = sizeof(mp_scaler_state_t);
  header.num_tensors = static_cast<uint32_t>(o.desc.master->numel.size());
  const auto lists = lists_of(o);
  for (uint32_t i = 0; i < lists.size(); ++i)
    if (lists[i].tensors != nullptr) header.lists |= 1u << i;
  return header;
}

/// Calls visit(list, tensor index, bytes of its elements) for every tensor, in storage order.
template <class Visit>
void for_each_tensor(const mp_optimizer &o, const Visit &visit) {
  for (const List &list : lists_of(o)) {
    if (list.tensors == nullptr) continue;
    for (size_t t = 0; t < list.tensors->numel.size(); ++t)
      visit(list, t, static_cast<size_t>(list.tensors->numel[t]) * sizeof(float));
  }
}

size_t size_of(const mp_optimizer &o, uint32_t scaler_bytes) {
  size_t bytes = sizeof(Header) + scaler_bytes;
  for_each_tensor(
      o, [&](const List &, size_t, size_t elements) { bytes += sizeof(int64_t) + elements; });
  return bytes;
}

/// Returns the optimizer; replaces a NULL scaler by the optimizer's.  Fails if they do not match.
const mp_optimizer &require_optimizer(mp_optimizer_t optimizer, mp_scaler_t &scaler) {
  const mp_optimizer &o = require_pointer(optimizer, "optimizer");
  MP_REQUIRE(scaler == nullptr || scaler->context == o.context, MP_ERROR_INVALID_ARGUMENT,
             "optimizer and scaler belong to different contexts");
  if (scaler == nullptr) scaler = o.own_scaler.get();
  require_data(o);
  return o;
}

/// Returns the header of a checkpoint; fails unless it matches the optimizer.
Header read_header(const mp_optimizer &o, const std::byte *checkpoint, size_t bytes) {
  const auto require = [](bool good, const auto &...parts) {
    if (!good) fail(MP_ERROR_INVALID_ARGUMENT, "checkpoint: ", parts...);
  };
  Header saved;
  require(bytes >= sizeof saved, "bytes = ", bytes, " must be at least ", sizeof saved,
          ", the size of the header");
  std::memcpy(&saved, checkpoint, sizeof saved);
  require(std::memcmp(saved.magic, kMagic, sizeof kMagic) == 0,
          "header is invalid; pass the bytes from mp_optimizer_save_sync");
  require(saved.version == kVersion, "version = ", saved.version, ": must be ", kVersion);
  const Header wanted = header_of(o);
  require(enum_value(saved.kind) == enum_value(wanted.kind), "kind = ", saved.kind,
          " must equal the optimizer's kind = ", wanted.kind);
  require(saved.num_tensors == wanted.num_tensors, "num_tensors = ", saved.num_tensors,
          " must equal the optimizer's num_tensors = ", wanted.num_tensors);
  const auto lists = lists_of(o);
  require(saved.lists >> lists.size() == 0, "lists = ", Flags{saved.lists}, " has unknown bits");
  for (uint32_t i = 0; i < lists.size(); ++i) {
    require((saved.lists >> i & 1) == (wanted.lists >> i & 1), "lists = ", Flags{saved.lists},
            (wanted.lists >> i & 1) != 0 ? " must include " : " must not include ", lists[i].name,
            (wanted.lists >> i & 1) != 0 ? ", which the optimizer has"
                                         : ", which the optimizer does not have");
  }
  require(bytes == size_of(o, saved.scaler_bytes), "bytes = ", bytes, " must be ",
          size_of(o, saved.scaler_bytes));
  const std::byte *next = checkpoint + sizeof saved;
  for_each_tensor(o, [&](const List &list, size_t t, size_t) {
    int64_t numel;
    std::memcpy(&numel, next, sizeof numel);
    next += sizeof numel;
    require(numel == list.tensors->numel[t], list.name, ": numel[", t, "] = ", numel,
            " must equal the optimizer's ", list.tensors->numel[t]);
  });
  return saved;
}

/// Returns the scaler state at the end of a checkpoint, written by any version.
mp_scaler_state_t read_state(const mp_scaler &scaler, const std::byte *end, uint32_t bytes) {
  std::vector<uint64_t> aligned(bytes / sizeof(uint64_t) + 1);
  std::memcpy(aligned.data(), end - bytes, bytes);
  const auto *saved = reinterpret_cast<const mp_scaler_state_t *>(aligned.data());
  MP_REQUIRE(saved->struct_size == bytes, MP_ERROR_INVALID_ARGUMENT,
             "checkpoint: struct_size = ", saved->struct_size, " of the scaler state must be ",
             bytes);
  const mp_scaler_state_t state = read_struct(saved, "scaler state of the checkpoint");
  check_state(state, scaler.config);
  return state;
}

void require_success(mp_status_t status) {
  if (status != MP_SUCCESS) fail(status, mp_last_error());
}

}  // namespace

}  // namespace mp

mp_status_t mp_optimizer_checkpoint_size(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                         size_t *bytes) {
  return mp::call(__func__, [&] {
    const mp_optimizer &o = mp::require_optimizer(optimizer, scaler);
    mp::require_pointer(bytes, "bytes") = mp::size_of(o, mp::header_of(o).scaler_bytes);
  });
}

mp_status_t mp_optimizer_save_sync(mp_optimizer_t optimizer, mp_scaler_t scaler, void *checkpoint,
                                   size_t bytes, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(optimizer), [&] {
    const mp::NestedCallScope parts;
    const mp_optimizer &o = mp::require_optimizer(optimizer, scaler);
    mp::require_pointer(static_cast<std::byte *>(checkpoint), "checkpoint");
    mp::Header header = mp::header_of(o);
    const size_t needed = mp::size_of(o, header.scaler_bytes);
    MP_REQUIRE(bytes >= needed, MP_ERROR_WORKSPACE_TOO_SMALL, "bytes = ", bytes,
               " must be at least ", needed, "; call mp_optimizer_checkpoint_size");
    mp::require_success(mp_optimizer_get_step_sync(optimizer, &header.t, nullptr, stream));
    mp_scaler_state_t state;
    MP_INIT_STRUCT(&state);
    mp::require_success(mp_scaler_get_state_sync(scaler, &state, stream));

    auto *next = static_cast<std::byte *>(checkpoint);
    const auto append = [&](const void *plain, size_t size) {
      std::memcpy(next, plain, size);
      next += size;
    };
    append(&header, sizeof header);
    mp::for_each_tensor(o, [&](const mp::List &list, size_t t, size_t) {
      append(&list.tensors->numel[t], sizeof(int64_t));
    });
    const mp::Context &c = *o.context;
    mp::for_each_tensor(o, [&](const mp::List &list, size_t t, size_t size) {
      if (size > 0) c.backend.copy(c.device, next, list.tensors->data[t], size, stream);
      next += size;
    });
    append(&state, header.scaler_bytes);
    c.backend.synchronize(c.device, stream);
  });
}

mp_status_t mp_optimizer_restore_sync(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                      const void *checkpoint, size_t bytes, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(optimizer), [&] {
    const mp::NestedCallScope parts;
    const mp_optimizer &o = mp::require_optimizer(optimizer, scaler);
    const auto *first =
        &mp::require_pointer(static_cast<const std::byte *>(checkpoint), "checkpoint");
    const mp::Header header = mp::read_header(o, first, bytes);
    const mp_scaler_state_t state = mp::read_state(*scaler, first + bytes, header.scaler_bytes);

    // First, because these calls can fail; nothing has been written before.
    mp::require_success(mp_optimizer_set_step_sync(optimizer, header.t, nullptr, stream));
    mp::require_success(mp_scaler_set_state_sync(scaler, &state, stream));
    const mp::Context &c = *o.context;
    const std::byte *next = first + bytes - header.scaler_bytes;
    mp::for_each_tensor(o, [&](const mp::List &, size_t, size_t size) { next -= size; });
    mp::for_each_tensor(o, [&](const mp::List &list, size_t t, size_t size) {
      if (size > 0) c.backend.copy(c.device, list.tensors->data[t], next, size, stream);
      next += size;
    });
    mp::require_success(mp_optimizer_write_model(optimizer, stream));
    c.backend.synchronize(c.device, stream);
  });
}
