// mpcore.hpp with exceptions: what its functions return, throw and free.
#include "cpp.h"

#include <type_traits>

namespace {

static_assert(!std::is_copy_constructible_v<mp::context>);
static_assert(std::is_nothrow_move_constructible_v<mp::context>);
static_assert(std::is_nothrow_move_assignable_v<mp::memory>);
static_assert(std::is_convertible_v<mp::scaler, mp_scaler_t>);

/// Counts what a context takes and gives back.
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

TEST_CASE("C++: a failure throws its status and sentence", "[cpp]") {
  const mp::context context = mp::context::create(on_host());
  try {
    context.gemm(kNegative, nullptr, nullptr, nullptr, nullptr);
    FAIL("nothing is thrown");
  } catch (const mp::error &error) {
    CHECK(error.status() == MP_ERROR_INVALID_ARGUMENT);
    CHECK(std::strcmp(error.what(), kSentence) == 0);
  }
}

TEST_CASE("C++: results are returned", "[cpp]") {
  const mp::context context = mp::context::create(on_host());
  CHECK(context.get_info().target == MP_TARGET_HOST);
  const mp_conv2d_desc_t conv = mp_conv2d_desc_default(1, 8, 6, 8, 8, 3, 3, MP_FP16);
  CHECK(mp::conv2d_output_size(conv).p == 6);
  CHECK(mp::conv2d_output_size(conv).q == 4);
  const mp_gemm_desc_t gemm = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  size_t bytes = 1;
  mp::check(mp_gemm_workspace_size(context, &gemm, &bytes));
  CHECK(context.gemm_workspace_size(gemm) == bytes);
  CHECK(context.gemm_kernel_info(gemm, 0).name != nullptr);
}

TEST_CASE("C++: every handle frees what it made, once, wherever it has been moved", "[cpp]") {
  Counts counts;
  const mp_allocator_t allocator = counting_allocator(&counts);
  mp_context_config_t config = on_host();
  config.allocator = &allocator;
  {
    mp::context context = mp::context::create(config);
    const mp_scaler_config_t policy = mp_scaler_config_default(MP_SCALER_BACKOFF);
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

    mp::memory memory = context.malloc(64);
    memory = context.malloc(128);
    mp::memory other = std::move(memory);
    CHECK(memory.get() == nullptr);
    CHECK(other.as<float>() != nullptr);
  }
  CHECK(counts.allocated == counts.freed);
}
