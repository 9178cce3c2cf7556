// Programmatic dependent launch (PDL): no thread may access gmem or return before it has waited for
// the previous kernel.
#include "kernels/simt/device.h"
#include "kernels/simt/sm80.h"
#include "kernels/simt/sm90.h"
#include "kernels/simt/sm90_pdl.h"
#include "violations.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr LaunchShape kEarly{.num_blocks = 2, .num_threads = 64, .uses_pdl = true};

MP_KERNEL(64, 1) return_without_waiting(MP_PARAM(Lines)) {
  if (thread_index() != 33) wait_for_previous_kernel();
}

MP_KERNEL(64, 1) copy_before_waiting(MP_PARAM(Lines) lines) {
  alignas(16) static constexpr int kSource[4] = {1, 2, 3, 4};
  MP_SHARED(int, slots, [4 * 64]);
  copy_async_16(slots + 4 * thread_index(), kSource, 16, noted(lines.first));
  wait_for_previous_kernel();
}

struct LoadArgs {
  mp::TensorMap map;
  bool loads_before_wait;
  int *seen;
};
MP_KERNEL(64, 1) load_before_waiting(MP_PARAM(LoadArgs) args) {
  MP_DYN_SHARED(int, slots);
  MP_SHARED(uint64_t, bar, [1]);
  const SmemAddress full = smem_address(bar);
  if (thread_index() == 0) {
    mbarrier_init(full, 1);
    mbarrier_init_fence();
    mbarrier_arrive_expect(full, 16);
    if (args.loads_before_wait)
      tma_load_before_wait(smem_address(slots), args.map, full, 0, 0, 0);
    else
      tma_load(smem_address(slots), args.map, full, 0, 0, 0);
  }
  block_sync();
  wait_and_launch_dependents();
  mbarrier_wait(full, 0);
  if (thread_index() == 0) *args.seen = slots[3];
}

struct OneArgs {
  int *value;
};
MP_KERNEL(64, 1) add_one(MP_PARAM(OneArgs) args) {
  MP_SHARED(int, slots, [64]);
  slots[thread_index()] = thread_index();
  block_sync();
  wait_for_previous_kernel();
  if (thread_index() == 0 && block_index() == 0) *args.value += 1;
}
MP_KERNEL(64, 1) read_too_early(MP_PARAM(OneArgs) args) {
  const int value = thread_index() == 0 ? *args.value : 0;
  wait_for_previous_kernel();
  if (value != 0) *args.value = value;
}

}  // namespace

TEST_CASE("dependent launch: a return or a copy before the wait is reported",
          "[dependent_launch]") {
  check_violation(return_without_waiting, kEarly,
                  {"thread 33 returned without wait_for_previous_kernel"});
  check_violation(copy_before_waiting, kEarly, {"calls copy_async_16 before"});
}

TEST_CASE("dependent launch: only tma_load_before_wait loads before the wait",
          "[dependent_launch]") {
  alignas(16) static float values[4] = {1, 2, 3, 4};
  int seen = 0;
  LoadArgs args{tensor_map({values, MP_FP32, {4, 1, 1}, {4, 4}, {4, 1}, false}), true, &seen};
  run(load_before_waiting, {1, 64, 128, 1, true}, args);
  CHECK(seen == static_cast<int>(bits_of(4.0f)));
  args.loads_before_wait = false;
  CHECK(outcome(load_before_waiting, {1, 64, 128, 1, true}, args)
            .find("calls tma_load before wait_for_previous_kernel") != std::string::npos);
}

TEST_CASE("dependent launch: gmem is accessible after the wait, or without PDL",
          "[dependent_launch]") {
  const mp::Device device = describe(0);
  int *const value = static_cast<int *>(allocate(device, sizeof(int)));
  in_every_mode([value] {
    *value = 5;
    run(add_one, kEarly, {value});
    CHECK(*value == 6);
    run(read_too_early, {2, 64}, {value});
    CHECK(*value == 6);
  });
  release(device, value);
}
