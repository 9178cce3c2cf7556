// mpcore.hpp with exceptions: results, exceptions and ownership.
#include "cpp.h"

#include <type_traits>

namespace {

static_assert(!std::is_copy_constructible_v<mp::context>);
static_assert(std::is_nothrow_move_constructible_v<mp::context>);
static_assert(std::is_nothrow_move_assignable_v<mp::memory>);

/// True if named objects convert to the argument of C functions, and temporaries do not.
template <class Owner, class Raw>
constexpr bool converts_if_named =
    std::is_convertible_v<const Owner &, Raw> &&std::is_convertible_v<Owner &, Raw> &&
    !std::is_convertible_v<Owner, Raw> && !std::is_convertible_v<const Owner, Raw>;
static_assert(converts_if_named<mp::context, mp_context_t>);
static_assert(converts_if_named<mp::tensor_list, mp_tensor_list_t>);
static_assert(converts_if_named<mp::scaler, mp_scaler_t>);
static_assert(converts_if_named<mp::optimizer, mp_optimizer_t>);
static_assert(converts_if_named<mp::autocast, mp_autocast_t>);
static_assert(converts_if_named<mp::graph, mp_graph_t>);
static_assert(converts_if_named<mp::memory, void *>);
static_assert(converts_if_named<mp::memory, const void *>);
static_assert(converts_if_named<mp::autocast_graph, mp_autocast_graph_t>);

/// The same rule for members that return an address inside their object.
template <class Owner, class Call>
constexpr bool lends_if_named(Call) {
  return std::is_invocable_v<Call, const Owner &> && !std::is_invocable_v<Call, Owner>;
}
#define LENDS_IF_NAMED(owner, call)    \
  static_assert(lends_if_named<owner>( \
      [](auto &&it) -> decltype(std::forward<decltype(it)>(it).call) { std::abort(); }))
LENDS_IF_NAMED(mp::memory, template as<float>());
LENDS_IF_NAMED(mp::scaler, scale());
LENDS_IF_NAMED(mp::scaler, inv_scale());
LENDS_IF_NAMED(mp::scaler, found_inf());
LENDS_IF_NAMED(mp::optimizer, lr());
LENDS_IF_NAMED(mp::optimizer, step_counter());
LENDS_IF_NAMED(mp::optimizer, moments());
LENDS_IF_NAMED(mp::autocast_graph, get());
LENDS_IF_NAMED(mp::graph, lists());
LENDS_IF_NAMED(mp::graph, get_tensor(0));

/// Counts allocations of a context that are not freed.
struct Counts {
  int allocated = 0, freed = 0;
};

mp_allocator_t counting_allocator(Counts *counts) {
  mp_allocator_t allocator;
  MP_INIT_STRUCT(&allocator);
  allocator.user = counts;
  allocator.alloc = [](size_t bytes, void *user) {
    ++static_cast<Counts *>(user)->allocated;
    return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  };
  allocator.free = [](void *data, size_t, void *user) {
    ++static_cast<Counts *>(user)->freed;
    std::free(data);
  };
  return allocator;
}

}  // namespace

TEST_CASE("C++: a failure throws an exception with status and message", "[cpp]") {
  const mp::context context = mp::context::create(on_host());
  try {
    context.gemm(kNegative, nullptr, nullptr, nullptr, nullptr);
    FAIL("nothing is thrown");
  } catch (const mp::error &error) {
    CHECK(error.status() == MP_ERROR_INVALID_ARGUMENT);
    CHECK(std::strcmp(error.what(), kMessage) == 0);
  }
}

TEST_CASE("C++: functions return their results", "[cpp]") {
  const mp::context context = mp::context::create(on_host());
  CHECK(context.get_info().target == MP_TARGET_HOST);
  const mp_conv2d_desc_t conv = mp_conv2d_desc_default(1, 8, 6, 8, 8, 3, 3, MP_FP16);
  CHECK(mp::conv2d_output_size(conv).p == 6);
  CHECK(mp::conv2d_output_size(conv).q == 4);
  const mp_pool2d_desc_t pool = mp_pool2d_desc_default(MP_POOL_MAX, 1, 8, 6, 8, 2, 3, MP_FP16);
  CHECK(mp::pool2d_output_size(pool).p == 4);
  CHECK(mp::pool2d_output_size(pool).q == 2);
  CHECK(mp::scaler_config_from_name("128").init_scale == 128);
  const mp::saved_scaler torch = mp::scaler_from_torch({64, 2, 0.5, 1000, 3});
  CHECK(torch.config.growth_interval == 1000);
  CHECK(torch.state.scale == 64);
  CHECK(mp::scaler_from_megatron({64, 3, 1}).scale == 64);
  const mp_gemm_desc_t gemm = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  size_t bytes = 1;
  mp::check(mp_gemm_workspace_size(context, &gemm, nullptr, &bytes));
  CHECK(context.gemm_workspace_size(gemm) == bytes);
  CHECK(context.gemm_kernel_info(gemm, 0).name != nullptr);
  context.measure_kernels(0);
  const std::string measured = mp::tuning_text();
  mp::check(mp_tuning_get_text(nullptr, &bytes));
  CHECK(measured.size() + 1 == bytes);
}

TEST_CASE("C++: every handle frees its object once, also after moves", "[cpp]") {
  Counts counts;
  const mp_allocator_t allocator = counting_allocator(&counts);
  mp_context_config_t config = on_host();
  config.allocator = &allocator;
  {
    mp::context context = mp::context::create(config);
    const mp_scaler_config_t policy = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
    mp::scaler scaler = mp::scaler::create(context, policy);
    const int with_one = counts.allocated;
    CHECK(with_one > 0);
    CHECK(counts.freed == 0);
    mp::scaler moved = std::move(scaler);
    CHECK(scaler.get() == nullptr);
    CHECK(counts.freed == 0);
    CHECK(moved.get_state_sync().scale == policy.init_scale);
    moved = mp::scaler::create(context, policy);
    CHECK(counts.allocated == 2 * with_one);
    CHECK(counts.freed == with_one);
    moved.reset();
    CHECK(counts.freed == 2 * with_one);

    const mp::memory weights = context.malloc(8), gradients = context.malloc(8);
    void *const data[] = {weights.get(), gradients.get()};
    const int64_t numel = 2;
    mp_tensor_list_desc_t tensors;
    MP_INIT_STRUCT(&tensors);
    tensors.dtype = MP_FP32;
    tensors.count = 1;
    tensors.numel = &numel;
    tensors.data = data;
    const mp::tensor_list masters = mp::tensor_list::create(context, tensors);
    tensors.data = data + 1;
    const mp::tensor_list grads = mp::tensor_list::create(context, tensors);
    const int before = counts.allocated - counts.freed;
    mp_param_group_t group;
    mp_optimizer_desc_t adamw = mp::optimizer_desc_from_name("AdamW", group, 0.5f);
    adamw.grads = grads;
    adamw.master = masters;
    mp::optimizer optimizer = mp::optimizer::create(context, adamw);
    CHECK(mp::tensor_list_get(optimizer.moments().v, 0).numel == numel);
    optimizer.reset();  // frees m and v
    CHECK(counts.allocated - counts.freed == before);

    mp::memory memory = context.malloc(64);
    memory = context.malloc(128);
    mp::memory other = std::move(memory);
    CHECK(memory.get() == nullptr);
    CHECK(other.as<float>() != nullptr);
  }
  CHECK(counts.allocated == counts.freed);
}

TEST_CASE("C++: a checkpoint restores masters, moments, step, scaler and copies", "[cpp]") {
  const mp::context context = mp::context::create(on_host());
  const mp::memory master = context.malloc(4), grad = context.malloc(4), model = context.malloc(2);
  const auto list_of = [&](void *data, mp_dtype_t dtype) {
    const int64_t numel = 1;
    mp_tensor_list_desc_t desc;
    MP_INIT_STRUCT(&desc);
    desc.dtype = dtype;
    desc.count = 1;
    desc.numel = &numel;
    desc.data = &data;
    return mp::tensor_list::create(context, desc);
  };
  const mp::tensor_list masters = list_of(master, MP_FP32), models = list_of(model, MP_FP16),
                        grads = list_of(grad, MP_FP32);
  mp_param_group_t group;
  mp_optimizer_desc_t adamw = mp::optimizer_desc_from_name("adamw", group, 0.5f);
  adamw.grads = grads;
  adamw.master = masters;
  adamw.model = models;
  const mp::optimizer optimizer = mp::optimizer::create(context, adamw);
  const mp::scaler scaler =
      mp::scaler::create(context, mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
  *master.as<float>() = 70000.0f;  // clamped in fp16
  *grad.as<float>() = 1.0f;
  optimizer.scale_step(scaler);
  const std::vector<std::byte> saved = optimizer.save_sync(scaler);
  CHECK(saved.size() == optimizer.checkpoint_size(scaler));
  const float weight = *master.as<float>();

  optimizer.scale_step(scaler);
  *model.as<uint16_t>() = 0;
  optimizer.restore_sync(scaler, saved);
  CHECK(*master.as<float>() == weight);
  CHECK(*model.as<uint16_t>() == 0x7bff);
  CHECK(optimizer.get_step_sync() == 1);
  CHECK(scaler.get_state_sync().steps == 1);
  CHECK(optimizer.save_sync(scaler) == saved);
  CHECK_THROWS_AS(optimizer.restore_sync(nullptr, saved), mp::error);
}
