// Embeddings and dropout through mpcore.hpp; small integers make sums exact.
#include "cpp.h"

#include <array>
#include <cmath>
#include <string>

namespace {

constexpr int kRows = 4, kVocabulary = 3, kWidth = 2;

using Table = std::array<std::array<float, kWidth>, kVocabulary>;
using Rows = std::array<std::array<float, kWidth>, kRows>;
using Four = std::array<float, 4>;

const Table kTable = {{{1, 2}, {3, 4}, {5, 6}}};
const Rows kDout = {{{1, -2}, {3, 1}, {-4, 8}, {2, 2}}};
const std::array<int32_t, kRows> kIndices = {2, 0, 2, 1};

mp_embedding_desc_t embedding() {
  return mp_embedding_desc_default(kRows, kVocabulary, kWidth, MP_FP32);
}

}  // namespace

TEST_CASE("C++: an embedding gathers rows", "[cpp][sequences]") {
  const mp::context context = mp::context::create(on_host());
  Rows out{};
  context.embedding_forward(embedding(), &kTable, kIndices.data(), &out);
  CHECK(out == Rows{{{5, 6}, {1, 2}, {5, 6}, {3, 4}}});
  const std::array<int32_t, kRows> outside = {0, kVocabulary, -1, 1};
  context.embedding_forward(embedding(), &kTable, outside.data(), &out);
  CHECK(out[0] == kTable[0]);
  CHECK(std::isnan(out[1][0]));
  CHECK(std::isnan(out[2][1]));
  CHECK(out[3] == kTable[1]);
}

TEST_CASE("C++: the gradient of an embedding sums rows", "[cpp][sequences]") {
  const mp::context context = mp::context::create(on_host());
  mp_embedding_desc_t desc = embedding();
  const size_t bytes = context.embedding_workspace_size(desc);
  const mp::memory space = context.malloc(bytes);
  Table dtable = {{{9, 9}, {9, 9}, {9, 9}}};
  float found_inf = 0, amax = 0;
  const auto backward = [&] {
    const mp_grad_stats_t stats = {&found_inf, &amax};
    context.embedding_backward(desc, kIndices.data(), &kDout, &dtable, &stats, {space, bytes});
  };
  backward();
  CHECK(dtable == Table{{{3, 1}, {2, 2}, {-3, 6}}});
  CHECK(found_inf == 0);
  CHECK(amax == 6);
  desc.flags = MP_EMBEDDING_FLAG_ACCUMULATE | MP_EMBEDDING_FLAG_PADDING;
  desc.padding_index = 1;
  backward();
  CHECK(dtable == Table{{{6, 2}, {2, 2}, {-6, 12}}});
}

// Philox of zeros starts with 6627e8d5 e169c58d bc57ac4c 9b00dbd8, and 2^32 3/4 is c0000000.
TEST_CASE("C++: dropout has the documented mask, also in place", "[cpp][sequences]") {
  const mp::context context = mp::context::create(on_host());
  Four x = {1, 2, 3, 4}, y{};
  context.dropout(mp_dropout_desc_default(4, 0.75f, MP_FP32), nullptr, &x, &y);
  CHECK(y == Four{0, 8, 0, 0});
  const uint64_t offset = 0;
  context.dropout(mp_dropout_desc_default(4, 0.5f, MP_FP32), &offset, &x, &x);
  CHECK(x == Four{0, 4, 6, 8});
}

TEST_CASE("C++: invalid descriptors of embeddings and dropout are rejected", "[cpp][sequences]") {
  const mp::context context = mp::context::create(on_host());
  Four x{};
  CHECK(message_of([&] {
          context.dropout(mp_dropout_desc_default(4, 1.0f, MP_FP32), nullptr, &x, &x);
        }) == "mp_dropout: p = 1 is outside [0, 1)");
  mp_embedding_desc_t desc = embedding();
  desc.num_embeddings = 0;
  CHECK(message_of([&] { context.embedding_workspace_size(desc); }) ==
        "mp_embedding_workspace_size: num_embeddings = 0 must be at least 1");
}
