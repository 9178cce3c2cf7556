// mpcore.hpp: what its functions return, throw and free.  Compiled with exceptions and without, and
// both linked into one program.
#define MP_ENABLE_EXPERIMENTAL
#include "mpcore.hpp"

#include <cstdio>
#include <cstring>
#include <type_traits>

extern int passed, failed;
void test_without_exceptions();

namespace {

#define EXPECT(condition) \
  ((condition)            \
       ? (void)++passed   \
       : (void)(++failed, std::printf("FAILED: %s:%d: %s\n", __FILE__, __LINE__, #condition)))

static_assert(!std::is_copy_constructible_v<mp::context>);
static_assert(std::is_nothrow_move_constructible_v<mp::context>);
static_assert(std::is_nothrow_move_assignable_v<mp::memory>);
static_assert(std::is_convertible_v<mp::scaler, mp_scaler_t>);

mp_context_config_t on_host() {
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  return config;
}

const mp_gemm_desc_t kNegative = mp_gemm_desc_default(-1, 1, 1, MP_FP16, MP_FP16);
constexpr char kSentence[] = "mp_gemm: m = -1 is negative";

}  // namespace

#ifndef MPCORE_NO_EXCEPTIONS

int passed = 0, failed = 0;

namespace {

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

void test_failures(const mp::context &context) {
  bool caught = false;
  try {
    context.gemm(kNegative, nullptr, nullptr, nullptr, nullptr);
  } catch (const mp::error &error) {
    caught = true;
    EXPECT(error.status() == MP_ERROR_INVALID_ARGUMENT);
    EXPECT(std::strcmp(error.what(), kSentence) == 0);
  }
  EXPECT(caught);
}

void test_results(const mp::context &context) {
  EXPECT(context.get_info().target == MP_TARGET_HOST);
  const mp_conv2d_desc_t conv = mp_conv2d_desc_default(1, 8, 6, 8, 8, 3, 3, MP_FP16);
  EXPECT(mp::conv2d_output_size(conv).p == 6 && mp::conv2d_output_size(conv).q == 4);
  const mp_gemm_desc_t gemm = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  size_t bytes = 1;
  mp::check(mp_gemm_workspace_size(context, &gemm, &bytes));
  EXPECT(context.gemm_workspace_size(gemm) == bytes);
  EXPECT(context.gemm_kernel_name(gemm, 0) != nullptr);
}

/// Every handle frees what it made, once, wherever it has been moved.
void test_life() {
  Counts counts;
  const mp_allocator_t allocator = counting_allocator(&counts);
  mp_context_config_t config = on_host();
  config.allocator = &allocator;
  {
    mp::context context = mp::context::create(config);
    const mp_scaler_config_t policy = mp_scaler_config_default(MP_SCALER_BACKOFF);
    mp::scaler scaler = mp::scaler::create(context, policy);
    const int with_one = counts.allocated;
    EXPECT(with_one > 0 && counts.freed == 0);
    mp::scaler moved = std::move(scaler);
    EXPECT(scaler.get() == nullptr && counts.freed == 0);
    EXPECT(moved.get_state_sync().scale == policy.init_scale);
    moved = mp::scaler::create(context, policy);
    EXPECT(counts.allocated == 2 * with_one && counts.freed == with_one);
    moved.reset();
    EXPECT(counts.freed == 2 * with_one);

    mp::memory memory = context.malloc(64);
    memory = context.malloc(128);
    mp::memory other = std::move(memory);
    EXPECT(memory.get() == nullptr && other.as<float>() != nullptr);
  }
  EXPECT(counts.allocated == counts.freed);
}

}  // namespace

int main() {
  const mp::context context = mp::context::create(on_host());
  test_failures(context);
  test_results(context);
  test_life();
  test_without_exceptions();
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

#else

void test_without_exceptions() {
  mp::result<mp::context> context = mp::context::create(on_host());
  EXPECT(context.has_value());
  const mp::result<void> negative =
      context.value().gemm(kNegative, nullptr, nullptr, nullptr, nullptr);
  EXPECT(!negative);
  EXPECT(negative.error().status() == MP_ERROR_INVALID_ARGUMENT);
  EXPECT(std::strcmp(negative.error().what(), kSentence) == 0);
  const mp::memory memory = context.value().malloc(64).value();
  EXPECT(context.value().memset(memory, 0, 64).has_value());
  EXPECT(!context.value().malloc(SIZE_MAX).has_value());
  EXPECT(!mp::check(mp_stream_sync(nullptr, nullptr)));
}

#endif
