// Detection of invalid TMA operations, and tensor maps that are modified on the device.
#include "softgpu/tests/tma_kernel.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

/// A 2D load of an fp32 tensor.
struct Load {
  Tensor tensor{ElementType::kF32, {64, 32}};
  std::string before;  ///< statements before the load
  Place place;
  Shape shape;
  uint64_t map_offset = 0;
  uint32_t tile_bytes = 4096;

  Load() { tensor.map.box = {32, 8, 1, 1, 1}; }
  explicit Load(std::string text) : Load() { before = std::move(text); }

  Outcome run(std::string body = "") {
    if (body.empty()) body = load_box(tensor.map);
    const Kernel kernel(tma_module(tile_bytes, before + body));
    const MapInMemory map(tensor.map);
    return launch(kernel, shape, map.address() + map_offset, place, 0);
  }
};

/// load_box for a tile, into the blocks of the mask.
std::string multicast_box(const TensorMap &map, const std::string &mask) {
  const std::string opcode = "complete_tx::bytes";
  std::string body = load_box(map);
  body.insert(body.find(opcode) + opcode.size(), ".multicast::cluster");
  body.insert(body.find("[%b];\nwait") + 4, ", %mask");
  return "mov.u16 %mask, " + mask + ";\n" + body;
}

TEST_CASE("a valid TMA load is clean", "[tma]") {
  CHECK(Load().run().is_clean());
}

TEST_CASE("TMA requires a fence after the initialization of its mbarrier", "[tma]") {
  const std::string begin = "fence.mbarrier_init.release.cluster;\n";
  const auto run = [&](const std::string &fence, const std::string &before, bool checks = true) {
    const WithOptions with([&](Options &o) { o.checks_fences = checks; });
    const Load load;
    std::string text = tma_module(4096, before + load_box(load.tensor.map));
    text.replace(text.find(begin), begin.size(), fence);
    const MapInMemory map(load.tensor.map);
    return launch(Kernel(text), Shape{}, map.address(), {}, 0);
  };
  CHECK(run(begin, "").is_clean());
  CHECK(run("fence.proxy.async.shared::cta;\n", "").is_clean());
  // Executed by the issuing thread, after the barrier.
  CHECK(run("", "fence.proxy.async;\n").is_clean());
  CHECK(run("", "", false).is_clean());
  for (const std::string fence :
       {"", "membar.cta;\n", "@!%one fence.mbarrier_init.release.cluster;\n"}) {
    CHECK_CONTAINS(first_violation(run(fence, "")),
                   "which thread 0 has initialized without a subsequent fence");
  }
}

TEST_CASE("map and TMA instruction must match", "[tma]") {
  Load load;
  TensorMap other = load.tensor.map;
  other.rank = 3;
  CHECK_CONTAINS(load.run(load_box(other)).fault, "TMA of rank 3 with a map of rank 2");
  other.is_im2col = true;
  load.tensor.map.rank = 3;
  CHECK_CONTAINS(load.run(load_box(other)).fault, "TMA mode and map differ");
  const auto fault_with = [](void (*change)(Load &, TensorMap &)) {
    Load changed;
    change(changed, changed.tensor.map);
    return changed.run().fault;
  };
  // The second half of the map and the following bytes.
  CHECK_CONTAINS(fault_with([](auto &l, auto &) { l.map_offset = 64; }), "no tensor map");
  CHECK_CONTAINS(fault_with([](auto &l, auto &) { l.map_offset = 32; }), "misaligned tensor map");
  CHECK_CONTAINS(fault_with([](auto &, auto &m) { m.box[0] = 3; }), "rows of 12 bytes");
  CHECK_CONTAINS(fault_with([](auto &, auto &m) { m.fills_nan = true; }), "fills with NaN");
  Load large;  // 4 GiB
  large.tensor.map.rank = 5;
  large.tensor.map.box = {4, 256, 256, 256, 16};
  CHECK_CONTAINS(large.run().fault, "4294967296 bytes, which exceeds shared memory");
}

TEST_CASE("TMA load rows must begin at a multiple of 16 bytes", "[tma]") {
  Load load;
  for (const int32_t column : {1, 2, 3, 5, 62, 65, -1, -2}) {
    load.place.coordinates[0] = column;
    const std::string complaint = "TMA from column " + std::to_string(column) + ", not a multiple";
    CHECK_CONTAINS(load.run().fault, complaint);
    CHECK_CONTAINS(load.run(multicast_box(load.tensor.map, "1")).fault, complaint);
  }
  for (const int32_t column : {4, 60, 64, -4, -64}) {
    load.place.coordinates[0] = column;
    CHECK(load.run().is_clean());
    CHECK(load.run(multicast_box(load.tensor.map, "1")).is_clean());
  }
  load.place.coordinates[0] = -4;
  load.place.coordinates[1] = -1;  // invalid for stores only
  CHECK(load.run().is_clean());
  Load other;  // last column is within a 16-byte unit, which a store must not cross
  other.tensor.map.sizes[0] = 61;
  other.place.coordinates[0] = 32;
  CHECK(other.run().is_clean());
}

TEST_CASE("the destination of a TMA load must be aligned and in shared memory", "[tma]") {
  CHECK_CONTAINS(Load("add.u32 %s, %s, 64;\n").run().fault, "not 128-byte aligned");
  CHECK_CONTAINS(Load("add.u32 %s, %s, 3968;\n").run().fault, "shared memory");
  Load swizzled("add.u32 %s, %s, 512;\n");
  swizzled.tensor.map.swizzle = Swizzle::k128Bytes;
  CHECK_CONTAINS(only_violation(swizzled.run()), "not a multiple of 1024");
  swizzled.tensor.map.swizzle = Swizzle::k64Bytes;
  CHECK(swizzled.run().is_clean());
  CHECK(Load("add.u32 %s, %s, 128;\n").run().is_clean());
}

TEST_CASE("a tensor map must not exceed its allocation", "[tma]") {
  Load load;
  load.tensor.map.sizes[1] = 64;  // twice as many rows as the tensor has
  CHECK(load.run().is_clean());
  load.place.coordinates[1] = 40;
  CHECK_CONTAINS(load.run().fault, "out of bounds");
}

TEST_CASE("expect_tx must match the loaded bytes", "[tma]") {
  const std::string body = load_box(Load().tensor.map);
  std::string less = body;
  less.replace(less.find("1024"), 4, "1008");
  CHECK_CONTAINS(Load().run(less).fault, "deadlock");
}

TEST_CASE("a multicast mask must select blocks of the cluster", "[tma]") {
  const auto multicast = [](const std::string &mask) {
    return multicast_box(Load().tensor.map, mask);
  };
  CHECK(Load().run(multicast("1")).is_clean());
  CHECK_CONTAINS(Load().run(multicast("2")).fault, "TMA to blocks 0x2 of a cluster of 1");
  CHECK_CONTAINS(Load().run(multicast("0")).fault, "TMA to blocks 0");
  Load remote(
      ".reg .b32 %other;\nmov.u32 %other, %cluster_ctarank;\nxor.b32 %other, %other, 1;\n"
      "mapa.shared::cluster.u32 %s, %s, %other;\n");
  remote.shape.blocks = {2, 1, 1};
  remote.shape.cluster = {2, 1, 1};
  CHECK_CONTAINS(remote.run().fault, "mbarrier and destination are in different blocks");
}

TEST_CASE("a TMA load to an exited block is a violation", "[tma]") {
  // The warp does not wait for the load.
  std::string body = load_box(Load().tensor.map);
  body.erase(body.find("wait:"));
  CHECK_CONTAINS(first_violation(Load().run(body)), "writes to a block that has exited");
}

TEST_CASE("im2col must begin at a pixel of the box", "[tma]") {
  const auto run = [](int32_t w, int32_t image, uint16_t offset, int32_t channel = 0) {
    Tensor tensor(ElementType::kF16, {16, 8, 8, 2});
    tensor.map.is_im2col = true;
    tensor.map.channels = 16;
    tensor.map.pixels = 8;
    tensor.map.lower = {-1, -1, 0};
    tensor.map.upper = {-1, -1, 0};
    tensor.map.element_strides[1] = 2;
    return run_tma(tensor.map, 4096, load_box(tensor.map),
                   {{channel, w, -1, image, 0}, {offset, 0, 0}});
  };
  CHECK(run(-1, 0, 2).is_clean());
  CHECK(run(5, 0, 255).is_clean());
  for (const int32_t w : {-2, 0, 7}) {
    CHECK_CONTAINS(only_violation(run(w, 0, 0)), "im2col starts at");
    CHECK(run(w, 2, 0).is_clean());  // after the last image
  }
  CHECK_CONTAINS(run(-1, 0, 256).fault, "im2col offset 256");
  for (const int32_t channel : {8, -8, 16}) CHECK(run(-1, 0, 0, channel).is_clean());
  for (const int32_t channel : {1, 4, -4, 20})
    CHECK_CONTAINS(run(-1, 0, 0, channel).fault,
                   "TMA from column " + std::to_string(channel) + ", not a multiple");
}

/// Stores a tile that `fill` writes.
Outcome run_store(const std::string &fence, const std::string &after) {
  Tensor tensor(ElementType::kU32, {8}, 0);
  tensor.map.box[0] = 8;
  const AlignedBuffer<uint32_t> tile(8, 1);
  return run_tma(tensor.map, 32,
                 fill_tile(32) + fence +
                     "@%one cp.async.bulk.tensor.1d.global.shared::cta.bulk_group "
                     "[%map, {%c0}], [%s];\n@%one cp.async.bulk.commit_group;\n" +
                     after,
                 {}, tile.address());
}

TEST_CASE("generic writes require a proxy fence before a TMA store", "[tma]") {
  const std::string wait = "@%one cp.async.bulk.wait_group.read 0;\n";
  CHECK(run_store("fence.proxy.async;\nbar.sync 0;\n", wait).is_clean());
  CHECK(run_store("bar.sync 0;\nfence.proxy.async;\n", wait).is_clean());
  // A fence after the store is too late.
  for (const std::string &after : {wait, "fence.proxy.async;\n" + wait}) {
    CHECK_CONTAINS(first_violation(run_store("bar.sync 0;\n", after)),
                   "a bulk store reads without fence.proxy.async");
  }
  // Writes before the store has read are also invalid.
  CHECK(!run_store("bar.sync 0;\nfence.proxy.async;\n", "st.shared.u32 [%s], %t;\n" + wait)
             .is_clean());
}

/// Lane 0 stores the matrix that `write` writes to [%s].  All other lanes except one have executed
/// the fence.
Outcome run_store_of_matrix(const std::string &write, int unfenced_lane) {
  Tensor tensor(ElementType::kU32, {4, 64}, 0);
  tensor.map.box = {4, 64, 1, 1, 1};
  return run_tma(
      tensor.map, 1024,
      write + "setp.ne.u32 %q, %t, 0;\nsetp.ne.and.u32 %q, %t, " + std::to_string(unfenced_lane) +
          ", %q;\n@%q fence.proxy.async;\nbar.sync 0;\n"
          "@%one cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {%c0, %c1}], "
          "[%s];\n@%one cp.async.bulk.commit_group;\n"
          "@%one cp.async.bulk.wait_group.read 0;\n");
}

TEST_CASE("stmatrix and wmma count as generic writes of each owning lane", "[tma]") {
  const auto stmatrix = [](const std::string &form) {
    return "mad.lo.u32 %v, %t, 16, %s;\nstmatrix.sync.aligned.m8n8.x1" + form +
           ".shared.b16 [%v], {%t};\n";
  };
  // If two lanes write a word, the fence of the second lane counts.
  CHECK(run_store_of_matrix(stmatrix(".trans"), 0).is_clean());
  CHECK(!run_store_of_matrix(stmatrix(".trans"), 5).is_clean());
  CHECK(!run_store_of_matrix(stmatrix(""), 0).is_clean());
  CHECK(!run_store_of_matrix(stmatrix(""), 5).is_clean());
  const std::string wmma =
      "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%s], {%t, %t, %t, %t, %t, %t, %t, %t}, "
      "16;\n";
  CHECK_CONTAINS(first_violation(run_store_of_matrix(wmma, 0)), "reads without fence.proxy.async");
}

TEST_CASE("a warp must not exit before its stores have read", "[tma]") {
  const std::string fence = "fence.proxy.async;\nbar.sync 0;\n";
  CHECK(run_store(fence, "@%one cp.async.bulk.wait_group.read 0;\n").is_clean());
  CHECK_CONTAINS(first_violation(run_store(fence, "")), "exits before its bulk store has read");
}

/// Runs a kernel in which thread 0 modifies the map at %map in global memory.
Outcome replace(const MapInMemory &map, const std::string &what, uint64_t value = 0) {
  const Kernel kernel(
      tma_module(16, "cvt.u32.u64 %v, %out;\n@%one tensormap.replace.tile." + what + ";\n"));
  return launch(kernel, Shape{}, map.address(), {}, value);
}

TEST_CASE("tensormap.replace changes a field", "[tensor_map]") {
  Tensor tensor(ElementType::kF32, {64, 32});
  const MapInMemory map(tensor.map);
  const auto changed = [&](const std::string &what, uint64_t value = 0) {
    CHECK(replace(map, what, value).is_clean());
    return map.read();
  };
  CHECK(changed("global_address.global.b1024.b64 [%map], %out", 0x5000).base == 0x5000);
  CHECK(changed("rank.global.b1024.b32 [%map], 3").rank == 4);
  CHECK(changed("box_dim.global.b1024.b32 [%map], 1, 77").box[1] == 77);
  CHECK(changed("global_dim.global.b1024.b32 [%map], 2, %v", 1000).sizes[2] == 1000);
  CHECK(changed("global_stride.global.b1024.b64 [%map], 2, %out", 4096).strides[2] == 4096);
  CHECK(changed("elemtype.global.b1024.b32 [%map], 10").type == ElementType::kBf16);
  CHECK(changed("swizzle_mode.global.b1024.b32 [%map], 3").swizzle == Swizzle::k128Bytes);
  CHECK(changed("fill_mode.global.b1024.b32 [%map], 1").fills_nan);
  changed("element_stride.global.b1024.b32 [%map], 1, 1");
  changed("interleave_layout.global.b1024.b32 [%map], 0");

  CHECK_CONTAINS(replace(map, "rank.global.b1024.b32 [%map], 5").fault, "the rank");
  CHECK_CONTAINS(replace(map, "box_dim.global.b1024.b32 [%map], 1, 257").fault, "the box");
  CHECK_CONTAINS(replace(map, "global_address.global.b1024.b64 [%map], %out", 8).fault,
                 "16-byte aligned");
  CHECK_CONTAINS(replace(map, "global_stride.global.b1024.b64 [%map], 0, %out", 24).fault,
                 "multiple of 16");
  CHECK_CONTAINS(replace(map, "interleave_layout.global.b1024.b32 [%map], 1").fault, "interleave");
  CHECK_THROWS_AS(replace(map, "colour.global.b1024.b32 [%map], 1"), ptx::Error);
  CHECK_THROWS_AS(replace(map, "global_stride.global.b1024.b64 [%map], 4, %out"), ptx::Error);
}

/// Creates a map of 64 x 32 fp32 from the first map, in shared memory, copies it to %copy in global
/// memory, and loads through it.
std::string copied_map(const std::string &acquire) {
  return R"(
    .shared .align 128 .b8 draft[128];
    .reg .b32 %draft, %value;
    .reg .b64 %copy;
    mov.u32 %draft, draft;
    mad.lo.u32 %v, %t, 4, %draft;
    mad.wide.u32 %g, %t, 4, %map;
    ld.global.u32 %value, [%g];
    st.shared.u32 [%v], %value;
    bar.warp.sync -1;
    @%one tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%draft], 1, 4;
    bar.warp.sync -1;
    add.u64 %copy, %map, 128;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%copy], [%draft], 128;
  )" + acquire +
         "mov.u64 %map, %copy;\n";
}

Outcome run_copied_map(const std::string &acquire, AlignedBuffer<uint8_t> &out) {
  Tensor tensor(ElementType::kF32, {64, 32});
  tensor.map.box = {32, 8, 1, 1, 1};
  AlignedBuffer<uint8_t> maps(256);
  const auto packed = pack(tensor.map);
  for (size_t i = 0; i < packed.size(); i++) maps[i] = static_cast<uint8_t>(packed[i]);
  const Kernel kernel(
      tma_module(1024, copied_map(acquire) + load_box(tensor.map) + store_tile(1024)));
  return launch(kernel, Shape{}, maps.address(), {}, out.address());
}

TEST_CASE("a map created on the device must be acquired before use", "[tensor_map]") {
  AlignedBuffer<uint8_t> out(1024, 1);
  CHECK(
      run_copied_map("fence.proxy.tensormap::generic.acquire.gpu [%copy], 128;\n", out).is_clean());
  for (size_t i = 512; i < 1024; i++) CHECK(out[i] == 0);  // rows from 4 on are now outside
  CHECK(out[0] != 0);
  const std::string acquire = "fence.proxy.tensormap::generic.acquire.gpu [%copy], 128;\n";
  const std::string copy_again =
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%copy], [%draft], 128;\n";
  CHECK(run_copied_map(copy_again + acquire, out).is_clean());
  for (const std::string &late : {std::string(), acquire + copy_again}) {
    CHECK_CONTAINS(first_violation(run_copied_map(late, out)), "without fence.proxy.tensormap");
  }
}

TEST_CASE("a map modified in global memory must be released and acquired", "[tensor_map]") {
  const std::string change =
      "@%one tensormap.replace.tile.global_dim.global.b1024.b32 [%map], 1, 4;\n";
  const std::string release = "fence.proxy.tensormap::generic.release.gpu;\n";
  const std::string acquire = "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;\n";
  const auto run = [](const std::string &edit) {
    Tensor tensor(ElementType::kF32, {64, 32});
    tensor.map.box = {32, 8, 1, 1, 1};
    return run_tma(tensor.map, 1024, edit + load_box(tensor.map));
  };
  CHECK(run(change + release + acquire).is_clean());
  const auto complaint = [&](const std::string &edit) { return first_violation(run(edit)); };
  CHECK_CONTAINS(complaint(change + acquire), "without fence.proxy.tensormap release");
  CHECK_CONTAINS(complaint(release + change + acquire), "fence.proxy.tensormap release");
  CHECK_CONTAINS(complaint(change + release), "without fence.proxy.tensormap acquire");
  CHECK_CONTAINS(complaint(acquire + change + release), "fence.proxy.tensormap acquire");
}

TEST_CASE("prefetch.tensormap requires a valid map", "[tensor_map]") {
  Tensor tensor(ElementType::kF32, {64, 32});
  const MapInMemory map(tensor.map);
  const Kernel kernel(tma_module(16, "prefetch.tensormap [%map];\n"));
  CHECK(launch(kernel, Shape{}, map.address(), {}, 0).is_clean());
  CHECK_CONTAINS(launch(kernel, Shape{}, tensor.map.base, {}, 0).fault, "no tensor map");
}

TEST_CASE("unsupported forms of TMA are rejected", "[tma]") {
  const auto with = [](const std::string &statement) { return tma_module(16, statement); };
  const std::string load = "cp.async.bulk.tensor.2d.shared::cluster.global.";
  CHECK_NOTHROW(
      Kernel(with(load + "tile.mbarrier::complete_tx::bytes [%s], [%map, {%c0, %c1}], [%b];")));
  CHECK_NOTHROW(Kernel(with(
      load + "mbarrier::complete_tx::bytes.L2::cache_hint [%s], [%map, {%c0, %c1}], [%b], %out;")));
  for (const std::string &statement :
       {load + "tile::gather4.mbarrier::complete_tx::bytes [%s], [%map, {%c0, %c1}], [%b];",
        load + "im2col.mbarrier::complete_tx::bytes [%s], [%map, {%c0, %c1}], [%b];",
        load + "tile.mbarrier::complete_tx::bytes [%s], [%map, {%c0}], [%b];",
        load + "tile.mbarrier::complete_tx::bytes [%s], [%map, {%c0, %c1}], [%b], %out;",
        std::string("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%s], "
                    "[%s], %v, [%b];")})
    CHECK_THROWS_AS(Kernel(with(statement)), ptx::Error);
}

}  // namespace
}  // namespace softgpu::test
