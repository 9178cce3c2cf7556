// Host arrays in the parameters of a launch: every byte is copied, and none beside them is written.
#include <cstring>

#include "kernels/gemm/upload.h"
#include "testing.h"

using namespace mptest;

namespace {

constexpr size_t kGuard = 64;
constexpr uint8_t kPattern = 0xA5;

std::vector<uint8_t> numbered(size_t bytes) {
  std::vector<uint8_t> values(bytes);
  for (size_t i = 0; i < bytes; i++) values[i] = static_cast<uint8_t>(i % 251);
  return values;
}

/// `misalignment` is that of the source, which may have any alignment.
void check_upload(size_t bytes, size_t misalignment) {
  INFO(bytes << " bytes");
  std::vector<uint8_t> expected(kGuard + bytes + kGuard, kPattern);
  std::vector<uint8_t> source = numbered(misalignment + bytes);
  std::copy(source.begin() + static_cast<ptrdiff_t>(misalignment), source.end(),
            expected.begin() + kGuard);

  auto *const memory =
      static_cast<uint8_t *>(std::aligned_alloc(kGuard, (expected.size() + 63) / 64 * 64));
  std::memset(memory, kPattern, expected.size());
  mp::Device device{};
  device.num_sms = engine::max_workers();
  mp::host::upload(device, memory + kGuard, source.data() + misalignment, bytes, nullptr);
  CHECK(std::equal(expected.begin(), expected.end(), memory));
  std::free(memory);
}

}  // namespace

TEST_CASE("upload: all lengths around a piece and a launch") {
  in_every_mode([] {
    for (const size_t bytes :
         {0, 1, 15, 16, 17, 512, 3999, 4000, 4001, 31999, 32000, 32001, 36000, 36001, 100003}) {
      check_upload(bytes, 0);
    }
    check_upload(5000, 3);
  });
}
