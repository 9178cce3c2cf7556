// TMA in the simulator: the report of a violation names the rule and the line.
#include "tma_rules.h"
#include "host/tensor_box.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr TensorShape kSwizzled{MP_FP16, 100, 30, 3, 104, 104 * 30, 64, 8, true};
constexpr TensorShape kPlain{MP_FP16, 100, 30, 3, 104, 104 * 30, 64, 8, false};

/// Tensor maps that the kernels of this file capture.
struct Maps {
  mp::TensorMap swizzled, plain;
};

struct Fixture {
  Tensor swizzled{kSwizzled}, plain{kPlain};
  const Maps maps{swizzled.map(), plain.map()};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "tma: an invalid address of a box in shared memory is reported") {
  const Maps m = maps;
  const auto load_to = [m](SmemAddress offset, bool swizzled) {
    return [map = swizzled ? m.swizzled : m.plain, offset] {
      const SmemAddress bar = initialized_barrier();
      if (thread_index() != 0) return;
      noted_line = __LINE__ + 1;
      tma_load(box(0) + offset, map, bar, 0, 0, 0);
    };
  };
  check_violation(load_to(64, false), {"to tma_load that is not 128-byte aligned"});
  check_violation(load_to(128, true), {"to tma_load that is not 1024-byte aligned"});
  check_violation(load_to(512, true), {"to tma_load that is not 1024-byte aligned"});
  check_violation(load_to(kBoxes * kBytes + 512, false), {"tma_load"});  // ends out of bounds
  check_violation(load_to(1u << 20, false), {"outside all shared variables", "tma_load"});
  const auto store_from = [m](SmemAddress offset, bool swizzled) {
    return [map = swizzled ? m.swizzled : m.plain, offset] {
      if (thread_index() != 0) return;
      noted_line = __LINE__, tma_store(map, box(0) + offset, 0, 0, 0);
    };
  };
  check_violation(store_from(64, false), {"to tma_store that is not 128-byte aligned"});
  check_violation(store_from(256, true), {"to tma_store that is not 1024-byte aligned"});
  check_violation(store_from(kBoxes * kBytes + 512, false), {"tma_store"});
}

TEST_CASE_METHOD(Fixture, "tma: an invalid tensor map is reported") {
  alignas(128) char memory[256] = {};
  const auto *const no_map = reinterpret_cast<mp::TensorMap *>(memory);
  check_violation([=] { noted_line = __LINE__, tma_prefetch(*no_map); },
                  {"passes an invalid tensor map to tma_prefetch"});
  check_violation([=] { noted_line = __LINE__, tensor_map_acquire(no_map); },
                  {"passes an invalid tensor map to tensor_map_acquire"});
  const Maps m = maps;
  check_violation([m] { noted_line = __LINE__, tma_reduce_add(m.plain, box(0), 0, 0, 0); },
                  {"passes a tensor map to tma_reduce_add that is not of fp32"});
  if (kAsanBuild) return;  // UBSan stops at the reference to a misaligned map
  std::memcpy(memory + 32, &maps.plain, sizeof maps.plain);
  const auto *const misaligned = reinterpret_cast<mp::TensorMap *>(memory + 32);
  check_violation([=] { noted_line = __LINE__, tma_store(*misaligned, box(0), 0, 0, 0); },
                  {"passes a tensor map to tma_store that is not 64-byte aligned"});
}

TEST_CASE_METHOD(Fixture, "tma: a wrong number of expected bytes is reported") {
  const Maps m = maps;
  const auto load_expecting = [m](uint32_t bytes) {
    return [m, bytes] {
      const SmemAddress bar = initialized_barrier();
      if (thread_index() == 0) {
        mbarrier_arrive_expect(bar, bytes);
        // Most of the box is outside the tensor; the mbarrier counts all of its bytes.
        if (bytes < kBytes) noted_line = __LINE__ + 1;
        tma_load(box(1), m.plain, bar, 88, 28, 0);
      }
      if (bytes > kBytes) noted_line = __LINE__ + 1;
      mbarrier_wait(bar, 0);
    };
  };
  check_fine(load_expecting(kBytes));
  check_violation(load_expecting(kBytes + 16),
                  {"deadlocked", "mbarrier_wait", "loaded", "16 bytes"});
  check_violation(load_expecting(2 * kBytes), {"deadlocked", "1024 bytes"});
  check_violation(load_expecting(kBytes - 16), {"loaded", "16 bytes more"});
}

TEST_CASE_METHOD(Fixture, "tma: a return before stores have read shared memory is reported") {
  const Maps m = maps;
  const char *const kText = "returned before its TMA store has read shared memory";
  const auto store_then = [m](auto rest) {
    return [m, rest] {
      if (thread_index() != 40) return;
      noted_line = __LINE__, tma_store(m.plain, box(0), 0, 0, 0);
      rest();
    };
  };
  check_violation(store_then([] {}), {kText, "thread 40"});
  check_violation(store_then([] { tma_store_commit(); }), {kText});
  check_violation(store_then([] { tma_store_wait<0>(); }), {kText});
  check_violation(store_then([] { tma_store_commit(), tma_store_wait_read<1>(); }), {kText});
  check_fine(store_then([] { tma_store_commit(), tma_store_wait_read<0>(); }));
  check_fine(store_then([] { tma_store_commit(), tma_store_wait<0>(); }));
  check_fine(store_then([] { tma_store_commit(), tma_store_commit(), tma_store_wait_read<1>(); }));
  // A wait of another thread does not cover the stores.
  check_violation(
      [m] {
        if (thread_index() == 1) tma_store(m.plain, box(0), 0, 0, 0), tma_store_commit();
        block_sync();
        if (thread_index() == 0) tma_store_commit(), tma_store_wait<0>();
      },
      {kText, "thread 1 "});
}

TEST_CASE_METHOD(Fixture, "tma: a load that completes after its block has returned is reported") {
  const Maps m = maps;
  const auto load_and_return = [m] {
    const SmemAddress bar = initialized_barrier();
    if (thread_index() != 0) return;
    mbarrier_arrive_expect(bar, kBytes);
    noted_line = __LINE__, tma_load(box(0), m.plain, bar, 0, 0, 0);
  };
  const ModeScope scope({true, 0, engine::CopyTiming::late});
  const std::string diagnostic = outcome_of(load_and_return);
  CAPTURE(diagnostic);
  CHECK(diagnostic.find("which has returned, in tma_load at tma_rules.cpp:" +
                        std::to_string(noted_line)) != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "tma: an invalid mask or address of another block is reported") {
  const Maps m = maps;
  const auto multicast_to = [m](uint32_t mask) {
    return [m, mask] {
      const SmemAddress bar = initialized_barrier();
      if (thread_index() == 0 && cluster_rank() == 0)
        noted_line = __LINE__, tma_load_multicast(box(0), m.plain, bar, 0, 0, 0, mask);
      cluster_sync();
    };
  };
  check_violation(multicast_to(0), {"the mask 0 ", "a cluster of 2 blocks"}, 2);
  check_violation(multicast_to(4), {"the mask 0x4 ", "a cluster of 2 blocks"}, 2);
  check_violation(multicast_to(3), {"the mask 0x3 ", "a cluster of 1 blocks"}, 1);
  check_violation(
      [m] {
        const SmemAddress bar = initialized_barrier();
        if (thread_index() == 0 && cluster_rank() == 0)
          noted_line = __LINE__, tma_load(in_block(box(0), 1), m.plain, bar, 0, 0, 0);
        cluster_sync();
      },
      {"passes smem of one block and an mbarrier of another to tma_load"}, 2);
  check_violation(
      [m] {
        if (thread_index() == 0 && cluster_rank() == 0)
          noted_line = __LINE__, tma_store(m.plain, in_block(box(0), 1), 0, 0, 0);
        cluster_sync();
      },
      {"passes an smem address of another block to tma_store"}, 2);
  // A load into another block is valid if that block waits for it.
  check_fine(
      [m] {
        const SmemAddress bar = initialized_barrier();
        if (thread_index() == 0 && cluster_rank() == 1) mbarrier_arrive_expect(bar, kBytes);
        cluster_sync();
        if (thread_index() == 0 && cluster_rank() == 0)
          tma_load(in_block(box(0), 1), m.plain, in_block(bar, 1), 0, 0, 0);
        if (cluster_rank() == 1) mbarrier_wait(bar, 0);
        cluster_sync();
      },
      2);
}

// ---------------------------------------------------------------- maps built by kernels

namespace {

constexpr int kTensors = 5;

struct MakeArgs {
  mp::TensorMap map;
  mp::TensorMap *made;  ///< [kTensors]
  uint8_t *base[kTensors];
};

MP_KERNEL(kThreads, 1) make_maps(MP_PARAM(MakeArgs) args) {
  if (thread_index() >= kTensors) return;
  tensor_map_copy_with_base(args.made + thread_index(), args.map, args.base[thread_index()]);
  tensor_map_release();
}

struct UseArgs {
  const mp::TensorMap *made;
  uint8_t *boxes;  ///< out, [kTensors]
  int acquirer;    ///< thread index
};

/// Warp 1 loads the boxes of all tensors; thread `acquirer`, if it exists, acquires their maps.
MP_KERNEL(kThreads, 1) load_with_made_maps(MP_PARAM(UseArgs) args) {
  const SmemAddress bar = initialized_barrier();
  uint8_t *const smem = aligned_smem();
  for (int i = 0; i < kTensors; i++) {
    if (thread_index() == args.acquirer) tensor_map_acquire(args.made + i);
    block_sync();
    if (thread_index() == kWarpSize) {
      mbarrier_arrive_expect(bar, kBytes);
      tma_load(smem_address(smem), args.made[i], bar, 8, 5, 1);
    }
    mbarrier_wait(bar, static_cast<uint32_t>(i % 2));
    for (int at = thread_index(); at < static_cast<int>(kBytes); at += kThreads)
      args.boxes[i * static_cast<int>(kBytes) + at] = smem[at];
    block_sync();
  }
}

}  // namespace

TEST_CASE("tma: a map built by a kernel addresses the tensor at its base") {
  std::vector<std::unique_ptr<Tensor>> tensors;
  alignas(128) mp::TensorMap made[kTensors];
  MakeArgs make{Tensor(kSwizzled).map(), made, {}};
  std::vector<uint8_t> expected, boxes(kTensors * kBytes);
  for (int i = 0; i < kTensors; i++) {
    tensors.push_back(std::make_unique<Tensor>(kSwizzled));
    make.base[i] = tensors.back()->base();
    std::memset(tensors.back()->element(12, 7, 1), i + 1, 2);
    const std::vector<uint8_t> box = expected_box(*tensors.back(), kSwizzled, 8, 5, 1);
    expected.insert(expected.end(), box.begin(), box.end());
  }
  const LaunchShape shape{1, kThreads, 2 * kBytes};
  in_every_mode([&] {
    run(make_maps, shape, make);
    for (const int acquirer : {0, kWarpSize}) {
      std::fill(boxes.begin(), boxes.end(), uint8_t{0});
      run(load_with_made_maps, shape, {made, boxes.data(), acquirer});
      CHECK(boxes == expected);
    }
    const std::string diagnostic = outcome(load_with_made_maps, shape, {made, boxes.data(), -1});
    if (engine::mode().strict)
      CHECK(diagnostic.find("that a kernel built, without tensor_map_acquire at tma_rules") !=
            std::string::npos);
    else
      CHECK(diagnostic == "");
  });
}

namespace {

struct MakeMatrixArgs {
  mp::TensorMap map;
  mp::TensorMap *made;
  TensorMapMatrix matrix;
};

MP_KERNEL(kThreads, 1) make_map_of_matrix(MP_PARAM(MakeMatrixArgs) args) {
  if (thread_index() != 0) return;
  tensor_map_copy_with_matrix(args.made, args.map, args.matrix);
  tensor_map_release();
}

}  // namespace

TEST_CASE("tma: a map of a matrix built by a kernel equals the map that the host encodes") {
  const Tensor any(kSwizzled);
  alignas(128) mp::TensorMap made;
  for (const auto &[columns, rows] : {std::pair{64, 32}, {1, 1}, {7, 2}, {129, 1}, {130, 500}}) {
    TensorShape shape = kSwizzled;
    shape.columns = columns;
    shape.rows = rows;
    shape.matrices = 1;
    shape.row_stride = shape.matrix_stride = (columns + 7) / 8 * 8;
    Tensor tensor(shape);
    run(make_map_of_matrix, {1, kThreads},
        {any.map(), &made, {tensor.base(), columns, rows, shape.row_stride * 2}});
    engine::TensorMapFields fields = engine::fields_of(made);
    CHECK((fields.made_by_kernel && fields.released));
    fields.made_by_kernel = fields.released = false;
    const mp::TensorMap bits = std::bit_cast<mp::TensorMap>(fields), encoded = tensor.map();
    CHECK(std::equal(bits.opaque, bits.opaque + 16, encoded.opaque));
  }
}

TEST_CASE_METHOD(Fixture, "tma: an invalid map built by a kernel is reported") {
  const Maps m = maps;
  alignas(128) mp::TensorMap made[2];
  auto *const misaligned = reinterpret_cast<mp::TensorMap *>(reinterpret_cast<char *>(made) + 64);
  const uint8_t *const base = plain.base();
  const auto make = [m](mp::TensorMap *to, const void *new_base) {
    return [=] { noted_line = __LINE__, tensor_map_copy_with_base(to, m.plain, new_base); };
  };
  check_violation(make(misaligned, base), {"builds a tensor map that is not 128-byte aligned"});
  check_violation(make(made, base + 8), {"with a base that is not 16-byte aligned"});
  check_violation(make(made, nullptr), {"with a base that is not 16-byte aligned"});
  auto *const target = made;
  const auto make_matrix = [=](const TensorMapMatrix &matrix) {
    return [=] { noted_line = __LINE__, tensor_map_copy_with_matrix(target, m.plain, matrix); };
  };
  check_violation(make_matrix({base, 0, 5, 16}), {"builds a tensor map of 0 columns and 5 rows"});
  check_violation(make_matrix({base, 5, -1, 16}), {"builds a tensor map of 5 columns and -1 rows"});
  check_violation(make_matrix({base, 5, 5, 24}), {"with a row stride of 24 bytes"});
  check_violation(make_matrix({base, 5, 5, 0}), {"with a row stride of 0 bytes"});
  check_violation(make_matrix({base + 8, 5, 5, 16}), {"with a base that is not 16-byte aligned"});
  // A map that is rebuilt must be released and acquired again.
  const ModeScope scope({true, 2, engine::CopyTiming::random});
  for (const bool releases : {false, true}) {
    const auto make_use_make_use = [=] {
      if (thread_index() != 0) return;
      tensor_map_copy_with_base(target, m.plain, base);
      tensor_map_release();
      tensor_map_acquire(target);
      tma_prefetch(*target);
      tensor_map_copy_with_base(target, m.plain, base);
      if (releases) tensor_map_release();
      noted_line = __LINE__, tma_prefetch(*target);
    };
    const std::string missing = releases ? "tensor_map_acquire" : "tensor_map_release";
    CHECK(outcome_of(make_use_make_use)
              .find("without " + missing + " at tma_rules.cpp:" + std::to_string(noted_line)) !=
          std::string::npos);
  }
}
