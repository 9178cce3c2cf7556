// Optimizer kinds: names, defaults, and checks of descriptors: hyperparameters and parallel tensor
// lists.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/defaults.h"
#include "capi/objects.h"

namespace mp {

// ---------------------------------------------------------------------------- kinds

namespace {

/// Use of beta1: as a decay in [0, 1), or as a momentum, where 0 means that there is no m.
enum class Beta1 { unused, decay, momentum };
/// Second moments: one for each element or for each tensor.
enum class SecondMoment { none, per_element, per_tensor };

/// Optimizer: properties of its kind, and defaults.
struct Optimizer {
  std::string_view name;
  mp_optimizer_kind_t kind;
  uint32_t supported_flags;
  Beta1 use_of_beta1;
  SecondMoment v;
  uint32_t flags;      ///< this and all below: defaults
  float beta1, beta2;  ///< beta2 = 0: not used
  float eps, weight_decay, trust_coefficient;
};

constexpr uint32_t kCommon = MP_OPT_FLAG_MODEL_OVERFLOW | MP_OPT_FLAG_STOCHASTIC_ROUNDING;
constexpr uint32_t kSgd = kCommon | MP_OPT_FLAG_NESTEROV | MP_OPT_FLAG_DECAY_AFTER_MOMENTUM |
                          MP_OPT_FLAG_LARC | MP_OPT_FLAG_LARS;
constexpr uint32_t kDecoupled = MP_OPT_FLAG_DECOUPLED_DECAY;
constexpr uint32_t kAdam = kCommon | kDecoupled | MP_OPT_FLAG_NO_BIAS_CORRECTION;
constexpr uint32_t kLamb = kAdam | MP_OPT_FLAG_NVLAMB;

using enum Beta1;
using enum SecondMoment;

/// All optimizers by ascending kind.  The first row of each kind has its defaults.
constexpr Optimizer kOptimizers[] = {
    {"sgd", MP_OPT_SGD, kSgd, momentum, none, 0, 0.9f, 0, 0, 0, 0.001f},
    {"adam", MP_OPT_ADAM, kAdam, decay, per_element, 0, 0.9f, 0.999f, 1e-8f, 0, 0},
    {"adamw", MP_OPT_ADAM, kAdam, decay, per_element, kDecoupled, 0.9f, 0.999f, 1e-8f, 0.01f, 0},
    {"lamb", MP_OPT_LAMB, kLamb, decay, per_element, kDecoupled, 0.9f, 0.999f, 1e-6f, 0.01f, 0},
    {"novograd", MP_OPT_NOVOGRAD, kCommon, decay, per_tensor, 0, 0.95f, 0.98f, 1e-8f, 0, 0},
    {"adagrad", MP_OPT_ADAGRAD, kCommon | kDecoupled, unused, per_element, 0, 0, 0, 1e-10f, 0, 0},
    {"rmsprop", MP_OPT_RMSPROP, kCommon, momentum, per_element, 0, 0, 0.9f, 1e-8f, 0, 0},
};

/// Returns the first row of a kind; zeros for an invalid kind.
Optimizer optimizer_of(const mp_optimizer_kind_t &kind) {
  for (const Optimizer &row : kOptimizers)
    if (row.kind == enum_value(kind)) return row;
  return {};
}

Optimizer named_optimizer(std::string_view name) {
  std::string known;
  for (const Optimizer &row : kOptimizers) {
    if (equals_ignore_case(name, row.name)) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  fail(MP_ERROR_NOT_FOUND, "name = \"", truncated(name), "\": must be one of ", known);
}

mp_param_group_t default_group(const Optimizer &row, float lr) {
  auto h = zero_struct<mp_param_group_t>();
  h.lr = lr;
  h.lr_schedule = MP_LR_CONSTANT;
  h.decay_power = 1.0f;
  MP_COPY_FIELDS(h, row, beta1, beta2, eps, weight_decay, trust_coefficient);
  return h;
}

mp_optimizer_desc_t default_desc(const mp_optimizer_kind_t &kind, uint32_t flags) {
  auto d = zero_struct<mp_optimizer_desc_t>();
  store(kind, d.kind);
  d.flags = flags;
  d.num_groups = 1;
  return d;
}

// ---------------------------------------------------------------------------- hyperparameters

bool has_momentum(const mp_param_group_t &group) {
  return group.beta1 != 0.0f;
}

}  // namespace

void check_group(const mp_param_group_t &group, std::string_view name,
                 const mp_optimizer_desc_t &desc) {
  const Optimizer optimizer = optimizer_of(desc.kind);
  const auto require = [&](bool good, auto value, const char *field, const char *reason) {
    MP_REQUIRE(good, MP_ERROR_INVALID_ARGUMENT, name, field, " = ", value, reason);
  };
  const auto finite_not_negative = [&](float value, const char *field,
                                       const char *reason = " is negative or not finite") {
    require(value >= 0.0f && std::isfinite(value), value, field, reason);
  };
  const auto positive = [&](float value, const char *field,
                            const char *reason = " must be positive and finite") {
    require(value > 0.0f && std::isfinite(value), value, field, reason);
  };
  const auto fraction = [&](float value, const char *field) {
    require(value >= 0.0f && value < 1.0f, value, field, " is outside [0, 1)");
  };
  const auto not_negative = [&](float value, const char *field) {
    require(value >= 0.0f, value, field, " is negative or NaN");
  };

  MP_CHECK_FIELDS(finite_not_negative, group, lr, weight_decay, eps);
  require(group.eps > 0.0f || desc.kind == MP_OPT_SGD, group.eps, "eps",
          " must be positive to avoid 0 / 0");
  require(std::isfinite(group.dampening), group.dampening, "dampening", " is not finite");
  if (optimizer.beta2 != 0.0f) fraction(group.beta2, "beta2");
  if (optimizer.use_of_beta1 == decay) fraction(group.beta1, "beta1");
  if (optimizer.use_of_beta1 == momentum)
    finite_not_negative(group.beta1, "beta1", " (momentum) is negative or not finite");
  if (desc.flags & (MP_OPT_FLAG_LARC | MP_OPT_FLAG_LARS))
    positive(group.trust_coefficient, "trust_coefficient",
             " must be positive and finite with MP_OPT_FLAG_LARC or MP_OPT_FLAG_LARS");
  MP_CHECK_FIELDS(not_negative, group, max_tensor_norm, clip_value);
  MP_CHECK_FIELDS(finite_not_negative, group, l1, l2);

  const int32_t schedule = enum_value(group.lr_schedule);
  require_enum(group.lr_schedule, Message(name, "lr_schedule").c_str());
  require(group.warmup_steps >= 0, group.warmup_steps, "warmup_steps", " is negative");
  if (schedule != MP_LR_CONSTANT && schedule != MP_LR_INVERSE_SQRT) {
    require(group.decay_steps >= 1, group.decay_steps, "decay_steps", " must be at least 1");
    finite_not_negative(group.lr_end, "lr_end");
  }
  if (schedule == MP_LR_POLYNOMIAL) positive(group.decay_power, "decay_power");
  if (schedule == MP_LR_EXPONENTIAL) positive(group.decay_rate, "decay_rate");

  require_unset(group.ema_decay, Message(name, "ema_decay").c_str());
  require_unset(group.ema_warmup, Message(name, "ema_warmup").c_str());
  if ((desc.flags & MP_OPT_FLAG_NESTEROV) == 0) return;
  require(has_momentum(group), group.beta1, "beta1",
          ", but MP_OPT_FLAG_NESTEROV requires momentum");
  require(group.dampening == 0.0f, group.dampening, "dampening",
          " must be 0 with MP_OPT_FLAG_NESTEROV");
}

bool needs_m(const mp_param_group_t &group, const mp_optimizer_desc_t &desc) {
  const Beta1 use = optimizer_of(desc.kind).use_of_beta1;
  return use == decay || (use == momentum && has_momentum(group));
}

void make_moments(mp_optimizer &optimizer) {
  mp_optimizer_desc_t &desc = optimizer.desc;
  const auto group_needs_m = [&](const ParamGroup &group) { return needs_m(group.hyper, desc); };
  if (desc.m == nullptr && std::ranges::any_of(optimizer.groups, group_needs_m)) {
    optimizer.own_m = make_zeros(optimizer.context, desc.grads->numel);
    desc.m = optimizer.own_m.get();
  }
  const SecondMoment v = optimizer_of(desc.kind).v;
  if (desc.v == nullptr && v != none) {
    std::vector<int64_t> numel = desc.grads->numel;
    if (v == per_tensor) std::ranges::fill(numel, 1);
    optimizer.own_v = make_zeros(optimizer.context, numel);
    desc.v = optimizer.own_v.get();
  }
}

std::vector<mp_param_group_t> read_groups(const mp_optimizer_desc_t &desc) {
  std::vector<mp_param_group_t> groups;
  for (uint32_t i = 0; i < desc.num_groups; ++i) {
    groups.push_back(read_element(desc.groups, i, "groups"));
    check_group(groups.back(), Message("groups[", i, "].").c_str(), desc);
  }
  return groups;
}

std::vector<uint32_t> read_tensor_group(const mp_optimizer_desc_t &desc) {
  const size_t count = desc.grads->numel.size();
  if (desc.tensor_group == nullptr) return std::vector<uint32_t>(count, 0);
  for (size_t t = 0; t < count; ++t) {
    MP_REQUIRE(desc.tensor_group[t] < desc.num_groups, MP_ERROR_INVALID_ARGUMENT, "tensor_group[",
               t, "] = ", desc.tensor_group[t], " is outside [0, num_groups = ", desc.num_groups,
               ")");
  }
  return std::vector<uint32_t>(desc.tensor_group, desc.tensor_group + count);
}

// ---------------------------------------------------------------------------- lists

void require_fp32(const mp_tensor_list &list, const char *name) {
  for (size_t t = 0; t < list.dtype.size(); ++t) {
    MP_REQUIRE(list.dtype[t] == MP_FP32, MP_ERROR_INVALID_ARGUMENT, name, ": tensor ", t,
               " must be fp32, not ", mp_dtype_name(list.dtype[t]));
  }
}

void require_16bit(const mp_tensor_list &list, const char *name) {
  for (size_t t = 0; t < list.dtype.size(); ++t) {
    MP_REQUIRE(list.data[t] == nullptr || is_half(list.dtype[t]), MP_ERROR_INVALID_ARGUMENT, name,
               ": tensor ", t, " must be " MP_HALF_TYPE_NAMES ", not ",
               mp_dtype_name(list.dtype[t]));
  }
}

namespace {

/// Checks a list of second moments: one number per tensor.
void require_one_each(const mp_tensor_list &list, const char *name, const mp_tensor_list &grads,
                      mp_optimizer_kind_t kind) {
  MP_REQUIRE(list.context == grads.context, MP_ERROR_INVALID_ARGUMENT, name,
             " and grads belong to different contexts");
  MP_REQUIRE(list.numel.size() == grads.numel.size(), MP_ERROR_INVALID_ARGUMENT, name, " has ",
             list.numel.size(), " tensors, but grads has ", grads.numel.size());
  for (size_t t = 0; t < list.numel.size(); ++t) {
    MP_REQUIRE(list.numel[t] == 1, MP_ERROR_INVALID_ARGUMENT, name, ": tensor ", t,
               " has numel = ", list.numel[t], ", but ", kind, " requires 1");
  }
}

void check_lists(const mp_optimizer_desc_t &desc, const ContextPtr &context) {
  const Optimizer optimizer = optimizer_of(desc.kind);
  const mp_tensor_list &grads = require_pointer(desc.grads, "grads");
  MP_REQUIRE(desc.master != nullptr || desc.model == nullptr, MP_ERROR_UNSUPPORTED,
             "master = NULL: a model without masters is not supported by this version");
  require_pointer(desc.master, "master");
  MP_REQUIRE(optimizer.use_of_beta1 != unused || desc.m == nullptr, MP_ERROR_INVALID_ARGUMENT,
             "m = ", desc.m, " must be NULL: ", desc.kind, " has no first moment");
  MP_REQUIRE(optimizer.v != none || desc.v == nullptr, MP_ERROR_INVALID_ARGUMENT, "v = ", desc.v,
             " must be NULL: ", desc.kind, " has no second moment");
  MP_REQUIRE(grads.context == context, MP_ERROR_INVALID_ARGUMENT,
             "grads belongs to a different context than the optimizer");
  const auto check = [&](const mp_tensor_list *list, const char *name) {
    if (list != nullptr) require_parallel(*list, name, grads, "grads");
  };
  check(desc.master, "master");
  check(desc.model, "model");
  check(desc.m, "m");
  check(desc.extra_grads, "extra_grads");
  if (optimizer.v != per_tensor)
    check(desc.v, "v");
  else if (desc.v != nullptr)
    require_one_each(*desc.v, "v", grads, desc.kind);
}

/// Tensor list of a descriptor.
struct Role {
  const mp_tensor_list *list;
  const char *name;
  bool is_written;
};

/// Fails if two lists, one of which is written, have a common list or tensor.
void require_separate(const Role &a, const Role &b) {
  MP_REQUIRE(a.list != b.list, MP_ERROR_INVALID_ARGUMENT, b.name, " = ", b.list,
             " must differ from ", a.name, ": a step writes ", b.is_written ? b.name : a.name);
  for (size_t t = 0; t < a.list->numel.size(); ++t) {
    const void *const data = a.list->data[t];
    const bool is_present = data != nullptr && a.list->numel[t] > 0 && b.list->numel[t] > 0;
    MP_REQUIRE(!is_present || data != b.list->data[t], MP_ERROR_INVALID_ARGUMENT, b.name, ": data[",
               t, "] = ", data, " must differ from data[", t, "] of ", a.name, ": a step writes ",
               b.is_written ? b.name : a.name);
  }
}

/// Detects only equal lists and tensors.  The caller must avoid partial overlaps, and any overlap
/// by a later mp_tensor_list_set_data.
void check_overlaps(const mp_optimizer_desc_t &desc) {
  const Role roles[] = {{desc.grads, "grads", false},  {desc.extra_grads, "extra_grads", false},
                        {desc.master, "master", true}, {desc.model, "model", true},
                        {desc.m, "m", true},           {desc.v, "v", true}};
  for (const Role *b = std::begin(roles); b != std::end(roles); ++b) {
    for (const Role *a = std::begin(roles); a != b; ++a) {
      if (a->list != nullptr && b->list != nullptr && (a->is_written || b->is_written))
        require_separate(*a, *b);
    }
  }
}

void check_flags(const mp_optimizer_desc_t &desc) {
  const uint32_t supported = optimizer_of(desc.kind).supported_flags;
  for (const Enumerator &flag : enumerators_of<mp_optimizer_flags_t>())
    MP_REQUIRE((desc.flags & ~supported & static_cast<uint32_t>(flag.value)) == 0,
               MP_ERROR_INVALID_ARGUMENT, "flags = ", Flags{desc.flags}, ": ", flag.name,
               " is not supported by ", desc.kind);
  require_flags(desc.flags, supported, "flags");
  const auto exclude = [&](uint32_t flags, const char *names) {
    MP_REQUIRE((desc.flags & flags) != flags, MP_ERROR_INVALID_ARGUMENT,
               "flags = ", Flags{desc.flags}, ": ", names, " cannot be combined");
  };
  exclude(MP_OPT_FLAG_LARC | MP_OPT_FLAG_LARS, "MP_OPT_FLAG_LARC and MP_OPT_FLAG_LARS");
  exclude(MP_OPT_FLAG_LARC | MP_OPT_FLAG_DECAY_AFTER_MOMENTUM,
          "MP_OPT_FLAG_LARC and MP_OPT_FLAG_DECAY_AFTER_MOMENTUM");
  exclude(MP_OPT_FLAG_LARS | MP_OPT_FLAG_DECAY_AFTER_MOMENTUM,
          "MP_OPT_FLAG_LARS and MP_OPT_FLAG_DECAY_AFTER_MOMENTUM");
}

}  // namespace

mp_optimizer_desc_t read_desc(const mp_optimizer_desc_t *user, const ContextPtr &context) {
  const mp_optimizer_desc_t desc = read_struct(user, "desc");
  require_enum(desc.kind, "kind", std::begin(kOptimizers)->kind, std::rbegin(kOptimizers)->kind);
  check_flags(desc);
  require_positive(desc.num_groups, "num_groups");
  MP_CHECK_FIELDS(require_unset, desc, tensor_ids, first_elements, active, ema);
  check_lists(desc, context);
  check_overlaps(desc);
  MP_CHECK_FIELDS(require_aligned, desc, lr_multipliers, decay_multipliers);
  return desc;
}

void require_data(const mp_optimizer &optimizer) {
  const mp_optimizer_desc_t &desc = optimizer.desc;
  require_data(*desc.grads, "grads");
  require_writable(*desc.master, "master");
  require_fp32(*desc.master, "master");
  if (desc.model != nullptr) {
    require_16bit(*desc.model, "model");
    require_disjoint(*desc.model, "model");
  }
  for (const auto &[list, name] : {std::pair{desc.m, "m"}, std::pair{desc.v, "v"},
                                   std::pair{desc.extra_grads, "extra_grads"}}) {
    if (list == nullptr) continue;
    require_data(*list, name);
    require_fp32(*list, name);
    if (list != desc.extra_grads) require_disjoint(*list, name);
  }
}

}  // namespace mp

using namespace mp;

mp_status_t mp_param_group_init(mp_param_group_t *group, size_t struct_size,
                                mp_optimizer_kind_t kind, float lr) {
  return init(__func__, group, "group", struct_size,
              [&] { return default_group(optimizer_of(kind), lr); });
}

mp_status_t mp_optimizer_desc_init(mp_optimizer_desc_t *desc, size_t struct_size,
                                   mp_optimizer_kind_t kind) {
  return init(__func__, desc, "desc", struct_size,
              [&] { return default_desc(kind, optimizer_of(kind).flags); });
}

mp_status_t mp_optimizer_desc_from_name(const char *name, mp_optimizer_desc_t *desc,
                                        size_t desc_size, mp_param_group_t *group,
                                        size_t group_size, float lr) {
  Optimizer named{};
  const mp_status_t status = init(__func__, desc, "desc", desc_size, [&] {
    require_pointer(name, "name");
    require_pointer(group, "group");
    require_struct_size<mp_param_group_t>(group_size, "group", "->",
                                          "; pass sizeof(mp_param_group_t) as group_size");
    named = named_optimizer(name);
    mp_optimizer_desc_t d = default_desc(named.kind, named.flags);
    d.groups = group;
    return d;
  });
  if (status != MP_SUCCESS) return status;
  return init(__func__, group, "group", group_size, [&] { return default_group(named, lr); });
}
