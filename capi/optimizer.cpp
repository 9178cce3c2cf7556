// Section 8 of mpcore.h: optimizers.  The update rules are in kernels/step/update_rules.h; here
// their hyperparameters and the five parallel lists are checked.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "capi/check.h"
#include "capi/objects.h"
#include "kernels/kernels.h"
#include "mpcore.h"

namespace mp {

namespace {

// ---------------------------------------------------------------------------- hyperparameters

bool has_momentum(const mp_hyper_t &hyper) {
  return hyper.beta1 != 0.0f;
}

/// One parameter group; `name` is how the caller knows it, and `desc` what it is for.
void check_hyper(const mp_hyper_t &hyper, std::string_view name, const mp_optimizer_desc_t &desc) {
  const auto require = [&](bool good, const char *field, float value, const char *reason) {
    MP_REQUIRE(good, MP_ERROR_INVALID_ARGUMENT, name, field, " = ", value, reason);
  };
  const auto finite = [&](const char *field, float value) {
    require(std::isfinite(value), field, value, " is not finite");
  };
  const auto decay = [&](const char *field, float value) {
    require(value >= 0.0f && value < 1.0f, field, value, " is outside [0, 1)");
  };

  finite("lr", hyper.lr);
  finite("weight_decay", hyper.weight_decay);
  finite("eps", hyper.eps);
  finite("dampening", hyper.dampening);
  if (desc.kind == MP_OPT_ADAM) {
    decay("beta1", hyper.beta1);
    decay("beta2", hyper.beta2);
    return;
  }
  require(hyper.beta1 >= 0.0f && std::isfinite(hyper.beta1), "beta1", hyper.beta1,
          " (momentum) is negative or not finite");
  require(desc.m != nullptr || !has_momentum(hyper), "beta1", hyper.beta1,
          " (momentum), but the optimizer has no list m");
  if ((desc.flags & MP_OPT_NESTEROV) == 0) return;
  require(has_momentum(hyper), "beta1", hyper.beta1, ", but MP_OPT_NESTEROV needs momentum");
  require(hyper.dampening == 0.0f, "dampening", hyper.dampening,
          ", but MP_OPT_NESTEROV needs it to be 0");
}

std::vector<mp_hyper_t> read_groups(const mp_optimizer_desc_t &desc) {
  std::vector<mp_hyper_t> groups;
  for (uint32_t i = 0; i < desc.num_groups; ++i) {
    groups.push_back(read_element(desc.groups, i, "groups"));
    check_hyper(groups.back(), Sentence("groups[", i, "].").c_str(), desc);
  }
  return groups;
}

std::vector<uint32_t> read_tensor_group(const mp_optimizer_desc_t &desc) {
  const size_t count = desc.grads->numel.size();
  if (desc.tensor_group == nullptr) return std::vector<uint32_t>(count, 0);
  for (size_t t = 0; t < count; ++t) {
    MP_REQUIRE(desc.tensor_group[t] < desc.num_groups, MP_ERROR_INVALID_ARGUMENT, "tensor_group[",
               t, "] = ", desc.tensor_group[t], " with num_groups = ", desc.num_groups);
  }
  return std::vector<uint32_t>(desc.tensor_group, desc.tensor_group + count);
}

// ---------------------------------------------------------------------------- lists

uint32_t flags_of(mp_optimizer_kind_t kind) {
  return kind == MP_OPT_SGD
             ? MP_OPT_NESTEROV | MP_OPT_MODEL_OVERFLOW
             : MP_OPT_DECOUPLED_DECAY | MP_OPT_NO_BIAS_CORRECTION | MP_OPT_MODEL_OVERFLOW;
}

void require_fp32(const mp_tensor_list &list, const char *name) {
  for (size_t t = 0; t < list.dtype.size(); ++t) {
    MP_REQUIRE(list.dtype[t] == MP_FP32, MP_ERROR_INVALID_ARGUMENT, name, ": tensor ", t, " is ",
               dtype_name(list.dtype[t]), ", not fp32");
  }
}

void require_16bit(const mp_tensor_list &list, const char *name) {
  for (size_t t = 0; t < list.dtype.size(); ++t) {
    MP_REQUIRE(list.data[t] == nullptr || list.dtype[t] != MP_FP32, MP_ERROR_INVALID_ARGUMENT, name,
               ": tensor ", t, " is fp32, not fp16 or bf16");
  }
}

void check_lists(const mp_optimizer_desc_t &desc, const ContextPtr &context) {
  const mp_tensor_list &grads = require_pointer(desc.grads, "grads");
  require_pointer(desc.master, "master");
  if (desc.kind == MP_OPT_ADAM) {
    require_pointer(desc.m, "m");
    require_pointer(desc.v, "v");
  } else {
    MP_REQUIRE(desc.v == nullptr, MP_ERROR_INVALID_ARGUMENT, "v = ", desc.v,
               ", but MP_OPT_SGD has no second moment");
  }
  MP_REQUIRE(grads.context == context, MP_ERROR_INVALID_ARGUMENT,
             "grads belongs to another context than the optimizer");
  const auto check = [&](const mp_tensor_list *list, const char *name) {
    if (list != nullptr) require_parallel(*list, name, grads, "grads");
  };
  check(desc.master, "master");
  check(desc.model, "model");
  check(desc.m, "m");
  check(desc.v, "v");
}

// ---------------------------------------------------------------------------- creation

mp_optimizer_desc_t read_desc(const mp_optimizer_desc_t *user, const ContextPtr &context) {
  const mp_optimizer_desc_t desc = read_struct(user, "desc");
  require_enum(desc.kind, "kind", MP_OPT_SGD, MP_OPT_ADAM);
  require_flags(desc.flags, flags_of(desc.kind), "flags");
  MP_REQUIRE(desc.num_groups >= 1, MP_ERROR_INVALID_ARGUMENT, "num_groups = ", desc.num_groups,
             " is smaller than 1");
  check_lists(desc, context);
  return desc;
}

void upload(mp_optimizer &optimizer, const std::vector<uint32_t> &tensor_group) {
  DeviceImage image;
  const size_t groups = image.add(optimizer.groups.data(), optimizer.groups.size());
  const size_t group_of = image.add(tensor_group.data(), tensor_group.size());
  const size_t t = image.add_zeros<int64_t>(1);
  const size_t ticket = image.add_zeros<uint32_t>(1);
  const size_t amax = image.add_zeros<float>(1);
  const size_t norm = image.add_zeros<float>(1);
  const size_t grad_scale = image.add_zeros<float>(1);
  const size_t found_inf = image.add_zeros<float>(1);

  const DeviceBuffer &memory = optimizer.memory = image.upload(optimizer.context);
  const auto tensors = [](const mp_tensor_list *list) {
    return list != nullptr ? list->device : TensorList{};
  };
  const mp_optimizer_desc_t &desc = optimizer.desc;
  optimizer.device_groups = array_at<mp_hyper_t>(memory, groups);
  optimizer.args = {
      .kind = desc.kind,
      .flags = desc.flags,
      .grads = tensors(desc.grads),
      .master = tensors(desc.master),
      .model = tensors(desc.model),
      .m = tensors(desc.m),
      .v = tensors(desc.v),
      .tensor_group = array_at<uint32_t>(memory, group_of),
      .groups = optimizer.device_groups,
      .t = array_at<int64_t>(memory, t),
      .ticket = array_at<uint32_t>(memory, ticket),
  };
  optimizer.amax = array_at<float>(memory, amax);
  optimizer.norm = array_at<float>(memory, norm);
  optimizer.grad_scale = array_at<float>(memory, grad_scale);
  optimizer.found_inf = array_at<float>(memory, found_inf);
}

}  // namespace

void require_data(const mp_optimizer &optimizer) {
  const mp_optimizer_desc_t &desc = optimizer.desc;
  require_data(*desc.grads, "grads");
  require_data(*desc.master, "master");
  require_fp32(*desc.master, "master");
  if (desc.model != nullptr) require_16bit(*desc.model, "model");
  for (const auto &[list, name] : {std::pair{desc.m, "m"}, std::pair{desc.v, "v"}}) {
    if (list == nullptr) continue;
    require_data(*list, name);
    require_fp32(*list, name);
  }
}

}  // namespace mp

mp_status_t mp_optimizer_create(mp_optimizer_t *optimizer, mp_context_t context,
                                const mp_optimizer_desc_t *desc) {
  return mp::call(__func__, [&] {
    mp::require_pointer(optimizer, "optimizer");
    auto created = std::make_unique<mp_optimizer>();
    created->context = mp::require_context(context);
    created->desc = mp::read_desc(desc, created->context);
    mp::require_data(*created);
    created->groups = mp::read_groups(created->desc);
    mp::upload(*created, mp::read_tensor_group(created->desc));
    *optimizer = created.release();
  });
}

void mp_optimizer_destroy(mp_optimizer_t optimizer) {
  (void)mp::call(__func__, [&] { delete optimizer; });
}

mp_status_t mp_optimizer_set_hyper(mp_optimizer_t optimizer, uint32_t group,
                                   const mp_hyper_t *hyper, mp_stream_t stream) {
  return mp::call(__func__, [&] {
    mp_optimizer &o = mp::require_pointer(optimizer, "optimizer");
    MP_REQUIRE(group < o.desc.num_groups, MP_ERROR_INVALID_ARGUMENT, "group = ", group,
               " with num_groups = ", o.desc.num_groups);
    const mp_hyper_t value = mp::read_struct(hyper, "hyper");
    mp::check_hyper(value, "hyper->", o.desc);

    // Copied from memory that stays: a graph that captures the copy reads it again at each replay.
    o.groups[group] = value;
    const mp::Context &c = *o.context;
    c.target.copy(c.device, o.device_groups + group, &o.groups[group], sizeof value, stream);
  });
}

mp_status_t mp_optimizer_step(mp_optimizer_t optimizer, const float *grad_scale,
                              const float *found_inf, mp_stream_t stream) {
  return mp::call(__func__, [&] {
    const mp_optimizer &o = mp::require_pointer(optimizer, "optimizer");
    mp::require_data(o);
    mp::require_aligned(grad_scale, "grad_scale");
    mp::require_aligned(found_inf, "found_inf");
    mp::UpdateArgs update{};
    update.grad_scale = grad_scale;
    update.found_inf = found_inf;
    const mp::Context &c = *o.context;
    c.target.optimizer_step(c.device, o.args, update, stream);
  });
}

mp_status_t mp_optimizer_get_step_sync(mp_optimizer_t optimizer, int64_t *t, mp_stream_t stream) {
  return mp::call(__func__, [&] {
    const mp_optimizer &o = mp::require_pointer(optimizer, "optimizer");
    mp::require_pointer(t, "t");
    const mp::Context &c = *o.context;
    int64_t value;
    c.target.copy(c.device, &value, o.args.t, sizeof value, stream);
    c.target.synchronize(c.device, stream);
    *t = value;
  });
}

mp_status_t mp_optimizer_set_step_sync(mp_optimizer_t optimizer, int64_t t, mp_stream_t stream) {
  return mp::call(__func__, [&] {
    const mp_optimizer &o = mp::require_pointer(optimizer, "optimizer");
    mp::require_not_negative(t, "t");
    const mp::Context &c = *o.context;
    c.target.copy(c.device, o.args.t, &t, sizeof t, stream);
    c.target.synchronize(c.device, stream);
  });
}
