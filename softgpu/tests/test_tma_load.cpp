// Boxes that TMA loads, tiled and im2col.  The hashes of their contents were recorded when all
// boxes agreed with loops over their elements; tests/conformance compares other boxes with
// definitions.
#include "softgpu/tests/tma_kernel.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

/// Loads a box and adds its contents to a hash.
void load(const Tensor &tensor, const Place &place, uint32_t &hash) {
  const TensorMap &map = tensor.map;
  const uint32_t bytes = map.box_bytes();
  AlignedBuffer<uint8_t> out(bytes);
  const Outcome outcome =
      run_tma(map, bytes, load_box(map) + store_tile(bytes), place, out.address());
  INFO("rank " << int{map.rank} << ": " << outcome);
  CHECK(outcome.is_clean());
  hash = hash_of(out, hash);
}

TEST_CASE("TMA loads tiles of each rank inside and across the tensor's edges", "[tma]") {
  uint32_t hash = kHashStart;
  const std::vector<uint64_t> sizes = {20, 7, 5, 4, 3};
  const std::array<uint16_t, 5> box = {16, 4, 3, 2, 2};
  for (size_t rank = 1; rank <= 5; rank++) {
    Tensor tensor(ElementType::kF16, {sizes.begin(), sizes.begin() + static_cast<long>(rank)});
    for (size_t d = 0; d < rank; d++) tensor.map.box[d] = box[d];
    for (const int32_t shift : {0, 1, -1, 2, -3, 5, -40, 40})
      for (const int32_t column : {0, 8, -8, 16, 8 * shift}) {
        Place place;
        place.coordinates[0] = column;
        for (size_t d = 1; d < rank; d++) place.coordinates[d] = shift;
        load(tensor, place, hash);
      }
  }
  CHECK(hash == 0x13200110);
}

TEST_CASE("TMA loads tiles with each swizzle", "[tma]") {
  uint32_t hash = kHashStart;
  for (const Swizzle swizzle :
       {Swizzle::kNone, Swizzle::k32Bytes, Swizzle::k64Bytes, Swizzle::k128Bytes})
    for (const int32_t column : {0, 8, -8, 64}) {
      Tensor tensor(ElementType::kBf16, {70, 40});
      tensor.map.swizzle = swizzle;
      tensor.map.box = {static_cast<uint16_t>(swizzle_span(swizzle) / 2), 32, 1, 1, 1};
      load(tensor, {{column, 4, 0, 0, 0}, {}}, hash);
    }
  CHECK(hash == 0x426A59F4);
}

TEST_CASE("TMA loads tiles of each element size", "[tma]") {
  uint32_t hash = kHashStart;
  for (const ElementType type : {ElementType::kU8, ElementType::kF16, ElementType::kF32,
                                 ElementType::kF64, ElementType::kTf32}) {
    Tensor tensor(type, {33, 9});
    tensor.map.box = {32, 6, 1, 1, 1};
    const auto unit = static_cast<int32_t>(16 / size_of(type));
    for (const int32_t column : {unit, 32}) load(tensor, {{column, 5, 0, 0, 0}, {}}, hash);
    load(tensor, {{-unit, -2, 0, 0, 0}, {}}, hash);
  }
  CHECK(hash == 0xA3C461BC);
}

TEST_CASE("TMA loads im2col columns of each rank", "[tma]") {
  uint32_t hash = kHashStart;
  for (const size_t num_spatial : {1u, 2u, 3u}) {
    std::vector<uint64_t> sizes = {24};
    for (size_t d = 0; d < num_spatial; d++) sizes.push_back(4 + d);
    sizes.push_back(3);
    Tensor tensor(ElementType::kF16, sizes);
    TensorMap &map = tensor.map;
    map.is_im2col = true;
    map.channels = 16;
    map.pixels = 14;
    for (size_t d = 0; d < num_spatial; d++) {  // a filter of 3 with padding 1
      map.lower[d] = -1;
      map.upper[d] = -1;
    }
    for (uint16_t offset = 0; offset < 3; offset++)
      for (const int32_t channel : {0, 16, -8}) {
        Place place;
        place.coordinates[0] = channel;
        for (size_t d = 0; d < num_spatial; d++) {
          place.coordinates[d + 1] = d == 0 ? 1 : -1;
          place.offsets[d] = static_cast<uint16_t>((offset + d) % 3);
        }
        for (const int32_t image : {0, 2, 3}) {
          place.coordinates[num_spatial + 1] = image;
          load(tensor, place, hash);
        }
      }
  }
  CHECK(hash == 0x2EAD171E);
}

TEST_CASE("TMA loads im2col columns with strides and swizzle", "[tma]") {
  uint32_t hash = kHashStart;
  Tensor tensor(ElementType::kF16, {64, 9, 8, 2});
  TensorMap &map = tensor.map;
  map.is_im2col = true;
  map.swizzle = Swizzle::k128Bytes;
  map.channels = 64;
  map.pixels = 32;
  map.element_strides = {1, 2, 3, 1, 1};
  map.lower = {-2, -1, 0};
  map.upper = {-1, 0, 0};
  for (const uint16_t offset : {0, 1, 4})
    for (const int32_t w : {-2, 0, 4})
      for (const int32_t h : {-1, 2, 5})
        load(tensor, {{0, w, h, 0, 0}, {offset, static_cast<uint16_t>(4 - offset), 0}}, hash);
  CHECK(hash == 0x00B75046);
}

TEST_CASE("TMA loads count only bytes inside the tensor", "[tma]") {
  Tensor tensor(ElementType::kF32, {6, 8});
  tensor.map.box = {4, 4, 1, 1, 1};
  const Kernel kernel(tma_module(64, load_box(tensor.map)));
  const MapInMemory map(tensor.map);
  CHECK(launch(kernel, Shape{}, map.address(), {{4, 5, 0, 0, 0}, {}}, 0).is_clean());
  const auto &accesses = kernel.program().totals->tally.accesses;
  CHECK(accesses[kernel.statement("cp.async.bulk.tensor")].bytes == 2 * 3 * 4);
}

TEST_CASE("a TMA load may complete late, early or at random", "[tma]") {
  Tensor tensor(ElementType::kF32, {8, 8});
  tensor.map.box = {4, 4, 1, 1, 1};
  const std::string load_text = load_box(tensor.map);
  const std::string look =
      ".reg .b32 %first;\nld.shared.u32 %first, [%s];\n"
      "st.global.u32 [%out], %first;\n";
  const Kernel kernel(tma_module(64, std::string(load_text).insert(load_text.find("wait:"), look)));
  const MapInMemory map(tensor.map);
  uint32_t in_tensor;
  std::memcpy(&in_tensor, &tensor.memory[0], 4);
  AlignedBuffer<uint32_t> out(1);
  CHECK(launch(kernel, Shape{}, map.address(), {}, out.address()).is_clean());
  CHECK(out[0] == kPoison);
  {
    const WithOptions with([](Options &o) { o.completion = Completion::kEarly; });
    CHECK(launch(kernel, Shape{}, map.address(), {}, out.address()).is_clean());
    CHECK(out[0] == in_tensor);
  }
  uint32_t late = kHashStart;
  load(tensor, {}, late);
  for (uint64_t seed = 1; seed < 20; seed++) {
    const WithOptions with([&](Options &o) {
      o.completion = Completion::kRandom;
      o.seed = seed;
    });
    uint32_t at_random = kHashStart;
    load(tensor, {}, at_random);
    CHECK(at_random == late);
  }
}

/// Each of two blocks loads its half of 16 rows into both blocks, which then store all rows.
std::string multicast_module(uint32_t bytes) {
  const std::string body = R"(
    .reg .b32 %rank, %to, %row;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %rank, %cluster_ctarank;
    mad.lo.u32 %to, %rank, )" +
                           std::to_string(bytes) + R"(, %s;
    mad.lo.u32 %c1, %rank, 8, %c1;
    mov.u16 %mask, 3;
    @%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], )" +
                           std::to_string(2 * bytes) + R"(;
    @%one cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%to], [%map, {%c0, %c1}], [%b], %mask;
    wait:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%b], 0;
    @!%q bra wait;
    .reg .b64 %block;
    cvt.u64.u32 %block, %rank;
    mad.lo.u64 %out, %block, )" +
                           std::to_string(2 * bytes) + ", %out;\n";
  return tma_module(2 * bytes,
                    body + store_tile(2 * bytes) +
                        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n");
}

struct Multicast {
  Tensor tensor{ElementType::kF16, {64, 16}};
  Shape shape{.blocks = {2, 1, 1}, .cluster = {2, 1, 1}};

  Multicast() {
    tensor.map.box = {64, 8, 1, 1, 1};
    tensor.map.swizzle = Swizzle::k128Bytes;
  }
  uint32_t bytes() const { return tensor.map.box_bytes(); }
};

TEST_CASE("a multicast load writes to several blocks of a cluster", "[tma]") {
  const Multicast multicast;
  const uint32_t bytes = multicast.bytes();
  const Kernel kernel(multicast_module(bytes));
  const MapInMemory map(multicast.tensor.map);
  for (uint64_t seed = 0; seed < 4; seed++) {
    const WithOptions with([&](Options &o) {
      o.seed = seed;
      if (seed != 0) o.completion = Completion::kRandom;
    });
    AlignedBuffer<uint8_t> out(4 * bytes);
    CHECK(launch(kernel, multicast.shape, map.address(), {}, out.address()).is_clean());
    CHECK(hash_of(out) == 0x5C25A65D);
  }
}

TEST_CASE("a load that signals remote mbarriers requires their fence", "[tma]") {
  const Multicast multicast;
  const MapInMemory map(multicast.tensor.map);
  const auto run = [&](const std::string &fence) {
    const std::string init_fence = "fence.mbarrier_init.release.cluster;\n";
    std::string text = multicast_module(multicast.bytes());
    text.replace(text.find(init_fence), init_fence.size(), fence);
    AlignedBuffer<uint8_t> out(4 * multicast.bytes());
    return launch(Kernel(text), multicast.shape, map.address(), {}, out.address());
  };
  CHECK(run("fence.proxy.async.shared::cta;\n").is_clean());
  // Neither a cluster barrier nor the fence of another thread is sufficient.
  for (const char *fence : {"", "fence.acq_rel.cluster;\n", "fence.proxy.async.global;\n",
                            "@!%one fence.mbarrier_init.release.cluster;\n"}) {
    CHECK_CONTAINS(first_violation(run(fence)),
                   "whose thread 0 has initialized it without a subsequent fence");
  }
}

}  // namespace
}  // namespace softgpu::test
