// mpcore/optimizer.h: optimizers and checkpoints.  Uploads arrays and enqueues steps.
//
// kernels/step/update_rules.h has the update rules, optimizer_desc.cpp the checks of descriptors.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include "capi/defaults.h"
#include "capi/nvtx_payload.h"
#include "capi/objects.h"

using namespace mp;

Message mp::payload_text(const mp_optimizer &optimizer) {
  return payload_text(*optimizer.desc.master);
}

namespace {

bool clips_tensors(const mp_param_group_t &group) {
  return group.max_tensor_norm > 0.0f;
}

/// Returns a group without factors, which depend on the previous hyperparameters.
ParamGroup group_of(const mp_param_group_t &group) {
  return {group, {}};
}

void upload(mp_optimizer &optimizer, const std::vector<uint32_t> &tensor_group) {
  const mp_optimizer_desc_t &desc = optimizer.desc;
  OptimizerArgs &args = optimizer.args;
  const auto tensors = [](const mp_tensor_list *list) {
    return list != nullptr ? list->device : TensorList{};
  };
  MP_COPY_FIELDS(args, desc, kind, flags, num_groups, lr_multipliers, decay_multipliers);
  args.grads = tensors(desc.grads);
  args.master = tensors(desc.master);
  args.model = tensors(desc.model);
  args.m = tensors(desc.m);
  args.v = tensors(desc.v);
  args.extra = tensors(desc.extra_grads);
  args.copy = {.flags = desc.flags, .rounding_seed = desc.rounding_seed};

  DeviceImage image;
  image.add(args.groups, optimizer.groups.data(), optimizer.groups.size());
  image.add(args.tensor_group, tensor_group.data(), tensor_group.size());
  if (has_ratios(desc.kind, desc.flags)) {
    image.add_zeros(args.ratios.w_squares, static_cast<size_t>(args.grads.num_chunks));
    image.add_zeros(args.ratios.u_squares, static_cast<size_t>(args.grads.num_chunks));
    image.add_zeros(args.ratios.ratio, args.grads.count);
  }
  if (std::ranges::any_of(optimizer.groups, clips_tensors, &ParamGroup::hyper))
    image.add_zeros(optimizer.tensor_norms, tensor_group.size());
  image.add_zeros(args.lr, optimizer.groups.size());
  image.add_zeros(args.t);
  image.add_zeros(args.blocks_done);
  image.add_zeros(optimizer.amax);
  image.add_zeros(optimizer.grad_scale);
  image.add_zeros(optimizer.message);
  image.add_zeros(optimizer.sum_squares);
  optimizer.memory = image.upload(optimizer.context);
}

mp_model_options_t read_options(const mp_model_options_t *user) {
  if (user == nullptr) return {};
  const mp_model_options_t options = read_struct(user, "options");
  require_flags(options.flags, MP_OPT_FLAG_MODEL_OVERFLOW | MP_OPT_FLAG_STOCHASTIC_ROUNDING,
                "flags");
  MP_CHECK_FIELDS(require_unset, options, tensor_ids, first_elements);
  MP_CHECK_FIELDS(require_aligned, options, t, overflows);
  if (options.flags & MP_OPT_FLAG_STOCHASTIC_ROUNDING) require_pointer(options.t, "t");
  return options;
}

}  // namespace

mp_status_t mp_optimizer_create(mp_optimizer_t *optimizer, mp_context_t context,
                                const mp_optimizer_desc_t *desc) {
  return call(__func__, [&] {
    require_pointer(optimizer, "optimizer");
    auto created = std::make_unique<mp_optimizer>();
    created->context = require_context(context);
    created->desc = read_desc(desc, created->context);
    require_data(*created);
    std::ranges::transform(read_groups(created->desc), std::back_inserter(created->groups),
                           group_of);
    make_moments(*created);
    upload(*created, read_tensor_group(created->desc));
    created->own_scaler =
        make_scaler(created->context, default_scaler_config(MP_SCALER_POLICY_STATIC));
    created->own_scaler->is_owned = true;
    *optimizer = created.release();
  });
}

void mp_optimizer_destroy(mp_optimizer_t optimizer) {
  call_void(__func__, [&] { delete optimizer; });
}

mp_status_t mp_optimizer_set_group(mp_optimizer_t optimizer, uint32_t index,
                                   const mp_param_group_t *group, mp_stream_t stream) {
  return call(__func__, optimizer, "optimizer", [&](const Context &c, mp_optimizer &o) {
    MP_REQUIRE(index < o.desc.num_groups, MP_ERROR_INVALID_ARGUMENT, "index = ", index,
               " is outside [0, num_groups = ", o.desc.num_groups, ")");
    const mp_param_group_t value = read_struct(group, "group");
    check_group(value, "group->", o.desc);
    MP_REQUIRE(o.desc.m != nullptr || !needs_m(value, o.desc), MP_ERROR_INVALID_ARGUMENT,
               "group->beta1 = ", value.beta1,
               " (momentum) requires an optimizer created with momentum; this one has no list m");
    MP_REQUIRE(o.tensor_norms != nullptr || !clips_tensors(value), MP_ERROR_INVALID_ARGUMENT,
               "group->max_tensor_norm = ", value.max_tensor_norm,
               " requires a group with max_tensor_norm when the optimizer is created");

    // The source must stay valid: a CUDA graph that captures the copy reads it at each replay.
    ParamGroup &uploaded = o.groups[index] = group_of(value);
    c.backend.copy(c.device, o.args.groups + index, &uploaded, sizeof uploaded, stream);
  });
}

mp_status_t mp_optimizer_step(mp_optimizer_t optimizer, const float *grad_scale,
                              const float *found_inf, mp_stream_t stream) {
  return call(__func__, optimizer, "optimizer", [&](const Context &c, const mp_optimizer &o) {
    require_data(o);
    require_aligned(grad_scale, "grad_scale");
    require_aligned(found_inf, "found_inf");
    UpdateArgs update{};
    update.grad_scale = grad_scale;
    update.found_inf = found_inf;
    update.tensor_norms = o.tensor_norms;
    if (o.tensor_norms != nullptr) {
      StatisticsOutputs statistics{};
      statistics.wide_norms = o.tensor_norms;
      c.backend.statistics(c.device, o.args.grads, o.desc.grads->scratch, statistics, stream);
    }
    c.backend.optimizer_step(c.device, o.args, update, stream);
  });
}

mp_status_t mp_masters_to_model(mp_tensor_list_t master, mp_tensor_list_t model,
                                const float *found_inf, const mp_model_options_t *options,
                                mp_stream_t stream) {
  return call(__func__, master, "master", [&](const Context &c, const mp_tensor_list &from) {
    const mp_tensor_list &to = require_pointer(model, "model");
    require_parallel(from, "master", to, "model");
    require_data(from, "master");
    require_fp32(from, "master");
    require_16bit(to, "model");
    require_disjoint(to, "model");
    require_aligned(found_inf, "found_inf");
    const mp_model_options_t o = read_options(options);
    c.backend.model_copy(c.device,
                         {.master = from.device,
                          .model = to.device,
                          .policy = {.flags = o.flags, .rounding_seed = o.rounding_seed},
                          .found_inf = found_inf,
                          .t = o.t,
                          .overflows = o.overflows},
                         stream);
  });
}

mp_status_t mp_optimizer_write_model(mp_optimizer_t optimizer, mp_stream_t stream) {
  return call(__func__, optimizer, "optimizer", [&](const Context &c, const mp_optimizer &o) {
    require_data(o);
    if (o.desc.model == nullptr) return;
    c.backend.model_copy(c.device,
                         {.master = o.args.master,
                          .model = o.args.model,
                          .policy = o.args.copy,
                          .found_inf = nullptr,
                          .t = o.args.t,
                          .overflows = nullptr},
                         stream);
  });
}

mp_status_t mp_optimizer_get_moments(mp_optimizer_t optimizer, mp_tensor_list_t *m,
                                     mp_tensor_list_t *v) {
  return call(__func__, [&] {
    const mp_optimizer &o = require_pointer(optimizer, "optimizer");
    if (m != nullptr) *m = o.desc.m;
    if (v != nullptr) *v = o.desc.v;
  });
}

mp_scaler_t mp_optimizer_get_scaler(mp_optimizer_t optimizer) {
  return optimizer != nullptr ? optimizer->own_scaler.get() : nullptr;
}

const int64_t *mp_optimizer_get_step_address(mp_optimizer_t optimizer) {
  return optimizer != nullptr ? optimizer->args.t : nullptr;
}

const float *mp_optimizer_get_lr_address(mp_optimizer_t optimizer) {
  return optimizer != nullptr ? optimizer->args.lr : nullptr;
}

mp_status_t mp_optimizer_regularization(mp_optimizer_t optimizer, float *loss, mp_stream_t stream) {
  return call(__func__, optimizer, "optimizer", [&](const Context &c, const mp_optimizer &o) {
    require_data(*o.desc.master, "master");
    require_device(loss, "loss");
    c.backend.regularization(c.device, o.args, o.desc.master->scratch, loss, stream);
  });
}

mp_status_t mp_optimizer_get_step_sync(mp_optimizer_t optimizer, int64_t *t, int64_t *tensor_steps,
                                       mp_stream_t stream) {
  return call(__func__, optimizer, "optimizer", [&](const Context &c, const mp_optimizer &o) {
    require_pointer(t, "t");
    int64_t value;
    c.backend.copy(c.device, &value, o.args.t, sizeof value, stream);
    c.backend.synchronize(c.device, stream);
    *t = value;
    if (tensor_steps == nullptr) return;
    for (const int64_t numel : o.desc.grads->numel) *tensor_steps++ = numel > 0 ? value : 0;
  });
}

mp_status_t mp_optimizer_set_step_sync(mp_optimizer_t optimizer, int64_t t,
                                       const int64_t *tensor_steps, mp_stream_t stream) {
  return call(__func__, optimizer, "optimizer", [&](const Context &c, const mp_optimizer &o) {
    require_step(t);
    const std::vector<int64_t> &numel = o.desc.grads->numel;
    for (size_t i = 0; tensor_steps != nullptr && i < numel.size(); ++i) {
      MP_REQUIRE(tensor_steps[i] == (numel[i] > 0 ? t : 0), MP_ERROR_UNSUPPORTED, "tensor_steps[",
                 i, "] = ", tensor_steps[i], ": a count other than ", numel[i] > 0 ? t : 0,
                 " is not supported by this version");
    }
    c.backend.copy(c.device, o.args.t, &t, sizeof t, stream);
    c.backend.synchronize(c.device, stream);
  });
}

// ---------------------------------------------------------------------------- checkpoints

// A block of plain data: a header, the number of elements of each tensor, the elements in fp32, and
// the scaler's state.

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

}  // namespace

mp_status_t mp_optimizer_checkpoint_size(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                         size_t *bytes) {
  return call(__func__, [&] {
    const mp_optimizer &o = require_optimizer(optimizer, scaler);
    require_pointer(bytes, "bytes") = size_of(o, header_of(o).scaler_bytes);
  });
}

mp_status_t mp_optimizer_save_sync(mp_optimizer_t optimizer, mp_scaler_t scaler, void *checkpoint,
                                   size_t bytes, mp_stream_t stream) {
  return call(__func__, nvtx_payload(optimizer), [&] {
    const NestedCallScope parts;
    const mp_optimizer &o = require_optimizer(optimizer, scaler);
    require_pointer(static_cast<std::byte *>(checkpoint), "checkpoint");
    Header header = header_of(o);
    const size_t needed = size_of(o, header.scaler_bytes);
    MP_REQUIRE(bytes >= needed, MP_ERROR_WORKSPACE_TOO_SMALL, "bytes = ", bytes,
               " must be at least ", needed, "; call mp_optimizer_checkpoint_size");
    require_success(mp_optimizer_get_step_sync(optimizer, &header.t, nullptr, stream));
    mp_scaler_state_t state;
    MP_INIT_STRUCT(&state);
    require_success(mp_scaler_get_state_sync(scaler, &state, stream));

    auto *next = static_cast<std::byte *>(checkpoint);
    const auto append = [&](const void *plain, size_t size) {
      std::memcpy(next, plain, size);
      next += size;
    };
    append(&header, sizeof header);
    for_each_tensor(o, [&](const List &list, size_t t, size_t) {
      append(&list.tensors->numel[t], sizeof(int64_t));
    });
    const Context &c = *o.context;
    for_each_tensor(o, [&](const List &list, size_t t, size_t size) {
      if (size > 0) c.backend.copy(c.device, next, list.tensors->data[t], size, stream);
      next += size;
    });
    append(&state, header.scaler_bytes);
    c.backend.synchronize(c.device, stream);
  });
}

mp_status_t mp_optimizer_restore_sync(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                      const void *checkpoint, size_t bytes, mp_stream_t stream) {
  return call(__func__, nvtx_payload(optimizer), [&] {
    const NestedCallScope parts;
    const mp_optimizer &o = require_optimizer(optimizer, scaler);
    const auto *first = &require_pointer(static_cast<const std::byte *>(checkpoint), "checkpoint");
    const Header header = read_header(o, first, bytes);
    const mp_scaler_state_t state = read_state(*scaler, first + bytes, header.scaler_bytes);

    // First, because these calls can fail; nothing has been written before.
    require_success(mp_optimizer_set_step_sync(optimizer, header.t, nullptr, stream));
    require_success(mp_scaler_set_state_sync(scaler, &state, stream));
    const Context &c = *o.context;
    const std::byte *next = first + bytes - header.scaler_bytes;
    for_each_tensor(o, [&](const List &, size_t, size_t size) { next -= size; });
    for_each_tensor(o, [&](const List &list, size_t t, size_t size) {
      if (size > 0) c.backend.copy(c.device, list.tensors->data[t], next, size, stream);
      next += size;
    });
    require_success(mp_optimizer_write_model(optimizer, stream));
    c.backend.synchronize(c.device, stream);
  });
}
