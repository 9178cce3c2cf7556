// TMA stores, their groups, and bulk copies without a tensor map.
#include "softgpu/tests/tma_kernel.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

const std::string kFence = "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
const std::string kCommit = "@%one cp.async.bulk.commit_group;\n";

std::string wait_group(int num_pending, bool until_read = false) {
  return "@%one cp.async.bulk.wait_group" + std::string(until_read ? ".read " : " ") +
         std::to_string(num_pending) + ";\n";
}

/// Thread 0 stores the tile.
std::string store_box(const TensorMap &map) {
  return "@%one cp.async.bulk.tensor." + std::to_string(map.rank) + "d.global.shared::cta." +
         (map.is_im2col ? "im2col_no_offs" : "tile") + ".bulk_group " + tensor_operand(map.rank) +
         ", [%s];\n";
}

/// Stores a tile of distinct bytes.
Outcome run_store(const Tensor &tensor, const Place &place) {
  const uint32_t bytes = tensor.map.box_bytes();
  AlignedBuffer<uint8_t> tile(bytes);
  for (size_t i = 0; i < bytes; i++) tile[i] = static_cast<uint8_t>(200 - i * 3);
  return run_tma(tensor.map, bytes,
                 fill_tile(bytes) + kFence + store_box(tensor.map) + kCommit + wait_group(0), place,
                 tile.address());
}

/// Returns the hash of the tensor after the store of a tile.
uint32_t stored_hash(const Tensor &tensor, const Place &place) {
  CHECK(run_store(tensor, place).is_clean());
  return hash_of(tensor.memory);
}

TEST_CASE("TMA stores only elements inside the tensor", "[tma]") {
  uint32_t all = 0;  // recorded as in test_tma_load.cpp
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k64Bytes, Swizzle::k128Bytes})
    for (const Place &place : {Place{}, Place{{8, 2, 2, 0, 0}, {}}, Place{{16, 4, 3, 0, 0}, {}},
                               Place{{32, 5, 0, 0, 0}, {}}, Place{{40, 6, 4, 0, 0}, {}}}) {
      Tensor tensor(ElementType::kF16, {40, 6, 4});
      tensor.map.swizzle = swizzle;
      tensor.map.box = {32, 4, 2, 1, 1};
      all = 31 * all + stored_hash(tensor, place);
    }
  CHECK(all == 0xEB79001A);
}

TEST_CASE("TMA stores im2col columns", "[tma]") {
  Tensor tensor(ElementType::kF16, {32, 5, 4, 3});
  tensor.map.is_im2col = true;
  tensor.map.channels = 32;
  tensor.map.pixels = 13;
  CHECK(stored_hash(tensor, {{0, 3, 1, 1, 0}, {}}) == 0x5D917C45);
  CHECK(stored_hash(tensor, {{8, 0, 3, 2, 0}, {}}) == 0x258BFC8B);
}

/// Three-dimensional tensor; a unit of 16 bytes has four elements.
struct Floats : Tensor {
  explicit Floats(uint64_t columns) : Tensor(ElementType::kF32, {columns, 6, 4}) {
    map.box = {8, 4, 2, 1, 1};
  }
};

TEST_CASE("TMA store rows must begin at a multiple of 16 bytes", "[tma]") {
  const Floats tensor(12);
  for (const int32_t column : {1, 2, 3, 5, 13, -1, -2}) {
    const std::string complaint = "TMA from column " + std::to_string(column) + ", not a multiple";
    CHECK_CONTAINS(run_store(tensor, {{column, 0, 0, 0, 0}, {}}).fault, complaint);
  }
  for (const int32_t column : {0, 4, 8, 12, 16})
    CHECK(run_store(tensor, {{column, 0, 0, 0, 0}, {}}).is_clean());
}

TEST_CASE("a TMA store before the start of the tensor is a fault", "[tma]") {
  Tensor tensor(ElementType::kF32, {4, 2, 2, 2, 2});
  tensor.map.box = {4, 2, 1, 1, 1};
  for (size_t d = 0; d < 5; d++) {
    Place place;
    place.coordinates[d] = -4;
    const std::string complaint = "TMA store to -4 in dimension " + std::to_string(d);
    CHECK_CONTAINS(run_store(tensor, place).fault, complaint);
    place.coordinates[d] = 4;  // one past the last element
    CHECK(run_store(tensor, place).is_clean());
  }
}

TEST_CASE("a TMA store across a partial last unit of 16 bytes is a violation", "[tma]") {
  const auto is_reported = [](const Tensor &tensor, int32_t column) {
    const Outcome outcome = run_store(tensor, {{column, 0, 0, 0, 0}, {}});
    CHECK(outcome.fault == "");
    if (outcome.violations.empty()) return false;
    CHECK_CONTAINS(outcome.violations[0], "TMA store across the last of " +
                                              std::to_string(tensor.map.sizes[0]) +
                                              " columns, which ends within a unit of 16 bytes");
    return true;
  };
  for (const uint64_t columns : {9u, 10u, 11u}) {
    const Floats tensor(columns);
    CHECK(!is_reported(tensor, 0));  // ends before the last unit
    CHECK(is_reported(tensor, 4));
    CHECK(is_reported(tensor, 8));
    CHECK(!is_reported(tensor, 12));  // begins after it
  }
  const Floats whole(12);
  for (const int32_t column : {0, 4, 8, 12}) CHECK(!is_reported(whole, column));
  Tensor images(ElementType::kF16, {20, 5, 4, 3});
  images.map.is_im2col = true;
  images.map.channels = 16;
  images.map.pixels = 4;
  CHECK(!is_reported(images, 0));
  CHECK(is_reported(images, 8));
  CHECK(!is_reported(images, 24));
}

/// Returns a word of the tensor after a kernel that stores a tile of ones, executes `body`, and
/// then overwrites the tile.
uint32_t stored_word(const std::string &body, Completion completion = Completion::kLate) {
  const WithOptions with([&](Options &o) { o.completion = completion; });
  Tensor tensor(ElementType::kU32, {8}, 0);
  tensor.map.box[0] = 8;
  const AlignedBuffer<uint32_t> tile(8, 1);
  run_tma(tensor.map, 32,
          fill_tile(32) + kFence + store_box(tensor.map) + kCommit + body +
              "st.shared.u32 [%s], 5;\nfence.proxy.async;\n" + wait_group(0),
          {}, tile.address());
  uint32_t word;
  std::memcpy(&word, &tensor.memory[0], 4);
  return word;
}

TEST_CASE("a tile is reusable after wait_group.read", "[tma]") {
  CHECK(stored_word("") == 5);
  CHECK(stored_word("", Completion::kEarly) == 1);
  CHECK(stored_word(wait_group(1, true)) == 5);
  CHECK(stored_word(wait_group(0, true)) == 1);
  CHECK(stored_word(wait_group(0)) == 1);
}

/// Returns the word that a thread reads from the tensor after a store and `body`.
uint32_t found_word(const std::string &body, Completion completion = Completion::kLate) {
  const WithOptions with([&](Options &o) { o.completion = completion; });
  Tensor tensor(ElementType::kU32, {8}, 0);
  tensor.map.box[0] = 8;
  AlignedBuffer<uint32_t> tile(16, 1);
  tensor.map.base = tile.address() + 32;
  tile[8] = 9;
  CHECK(run_tma(tensor.map, 32,
                fill_tile(32) + kFence + store_box(tensor.map) + kCommit + body +
                    "cvta.to.global.u64 %g, %out;\nld.global.u32 %v, [%g+32];\n"
                    "st.global.u32 [%g+4], %v;\n" +
                    wait_group(0),
                {}, tile.address())
            .is_clean());
  return tile[1];
}

TEST_CASE("a store is visible after wait_group", "[tma]") {
  CHECK(found_word("") == 9);
  CHECK(found_word("", Completion::kEarly) == 9);  // only the read is early
  CHECK(found_word(wait_group(0), Completion::kEarly) == 1);
  CHECK(found_word(wait_group(0, true)) == 9);
  CHECK(found_word(wait_group(0)) == 1);
  CHECK(found_word(kCommit + wait_group(1)) == 1);  // the latest group is empty
  CHECK(found_word(kCommit + wait_group(2)) == 9);
}

TEST_CASE("bulk copies without a tensor map copy bytes", "[bulk]") {
  const std::string load = R"(
    @%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 4096;
    .reg .b32 %size;
    mov.u32 %size, 4096;
    @%one cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%map], %size, [%b];
    wait:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%b], 0;
    @!%q bra wait;
  )";
  const std::string store =
      "@%one cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], %size;\n" + kCommit +
      wait_group(0);
  std::vector<uint32_t> values(1024);
  for (uint32_t i = 0; i < 1024; i++) values[i] = i * 3 + 1;
  const AlignedBuffer<uint32_t> from(values);
  AlignedBuffer<uint32_t> to(1024, 10);
  const auto run = [&](const std::string &body) {
    return launch(Kernel(tma_module(8192, body)), Shape{}, from.address(), {}, to.address());
  };

  CHECK(run(load + store).is_clean());
  for (uint32_t i = 0; i < 1024; i++) CHECK(to[i] == values[i]);

  CHECK_CONTAINS(run("add.u64 %map, %map, 4;\n" + load).fault, "not multiples of 16");
  CHECK_CONTAINS(run("add.u64 %map, %map, 1024;\n" + load).fault, "out of bounds");
  CHECK_CONTAINS(run("add.u32 %s, %s, 7168;\n" + load).fault, "shared memory");
}

}  // namespace
}  // namespace softgpu::test
