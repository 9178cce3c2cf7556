// Embedding lookups and the gradient of the table, against loops over the indices.
//
// Sums of small integers are exact in fp32 in any order, so they are compared to the last bit.
// Tests of the order compare with the documented one.
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "tests/step/step_fixtures.h"
#include "tests/support/any.h"
#include "tests/support/grad_stats.h"

using namespace mptest;

namespace {

constexpr int32_t kMin = std::numeric_limits<int32_t>::min(),
                  kMax = std::numeric_limits<int32_t>::max();

// ---------------------------------------------------------------------------- cases

struct Case {
  mp_embedding_desc_t desc;
  std::vector<int64_t> indices;
  Matrices table;  ///< also the initial contents of dtable
  Matrices dout;
  int64_t offset = 0;  ///< offset of the matrices from 256-byte alignment, in elements

  bool has(mp_embedding_flags_t flag) const { return (desc.flags & flag) != 0; }
  bool is_in_table(int64_t index) const { return index >= 0 && index < desc.num_embeddings; }
  bool adds(int64_t index) const {
    return is_in_table(index) && !(has(MP_EMBEDDING_FLAG_PADDING) && index == desc.padding_index);
  }
};

Case make_case(std::vector<int64_t> indices, int32_t vocabulary, int64_t width,
               mp_dtype_t dtype = MP_FP16) {
  const int64_t rows = static_cast<int64_t>(indices.size());
  Case c{mp_embedding_desc_default(rows, vocabulary, width, dtype), std::move(indices),
         Matrices(1, vocabulary, width), Matrices(1, rows, width)};
  c.table.values = random_integers(vocabulary * width, 100, 1);
  c.dout.values = random_integers(rows * width, 8, 2);
  return c;
}

std::vector<int64_t> any_indices(int64_t rows, int32_t vocabulary, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> indices(static_cast<size_t>(rows));
  for (int64_t &index : indices) index = random.integer(0, vocabulary - 1);
  return indices;
}

/// Returns indices in which the r-th word is 1 / r as frequent as the first.
std::vector<int64_t> zipf_indices(int64_t rows, int32_t vocabulary, uint64_t seed) {
  std::vector<double> up_to;
  double total = 0.0;
  for (int32_t r = 1; r <= vocabulary; ++r) up_to.push_back(total += 1.0 / r);
  Random random(seed);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < rows; ++i) {
    const auto place = std::ranges::upper_bound(up_to, random.real(0.0, total));
    // Frequent words are spread over the table.
    indices.push_back((place - up_to.begin()) * 7 % vocabulary);
  }
  return indices;
}

// ---------------------------------------------------------------------------- calls

DeviceMatrices on_device(const Case &c, mp_dtype_t dtype, int64_t rows, int64_t ld,
                         uint8_t padding) {
  return DeviceMatrices(dtype, 1, rows, c.desc.embedding_dim, ld, rows * ld, c.offset, padding);
}

Matrices look_up(const Case &c) {
  const mp_embedding_desc_t &d = c.desc;
  DeviceMatrices table = on_device(c, d.dtype, d.num_embeddings, d.ld_table, kPoison);
  const DeviceMatrices out = on_device(c, d.dtype, d.num_indices, d.ld_out, kCanary);
  const DeviceIndices indices(c.desc.dtype_indices, c.indices);
  table.upload(c.table);
  require_ok(
      mp_embedding_forward(context(), &d, table.data(), indices.data(), out.data(), kStream));
  expect_none(out.damage(), "out");
  return out.download();
}

struct Gradient {
  Matrices dtable;
  std::vector<uint8_t> bits;
};

Gradient differentiate(const Case &c, mp_context_t context) {
  const mp_embedding_desc_t &d = c.desc;
  DeviceMatrices dout = on_device(c, d.dtype, d.num_indices, d.ld_out, kPoison);
  DeviceMatrices dtable = on_device(c, d.dtype_dtable, d.num_embeddings, d.ld_dtable, kCanary);
  const DeviceIndices indices(c.desc.dtype_indices, c.indices);
  const GradStats stats;
  const DeviceWorkspace workspace(mp_embedding_workspace_size, context, &d);
  dout.upload(c.dout);
  if (c.has(MP_EMBEDDING_FLAG_ACCUMULATE)) dtable.upload(c.table);
  require_ok(mp_embedding_backward(context, &d, indices.data(), dout.data(), dtable.data(),
                                   stats.get(), workspace.data(), workspace.bytes(), kStream));
  expect_none(dtable.damage(), "dtable");
  const Matrices got = dtable.download();
  std::vector<double> stored;
  for (const int64_t v : c.indices)
    for (int64_t j = 0; c.adds(v) && j < d.embedding_dim; ++j) stored.push_back(got.at(0, v, j));
  stats.check(stored);
  return {got, dtable.download_bits()};
}
Gradient differentiate(const Case &c) {
  return differentiate(c, context());
}

// ---------------------------------------------------------------------------- oracle

void check_forward(const Case &c) {
  const Matrices out = look_up(c);
  int64_t wrong = 0;
  for (int64_t i = 0; i < c.desc.num_indices; ++i) {
    const int64_t index = c.indices[static_cast<size_t>(i)];
    for (int64_t j = 0; j < c.desc.embedding_dim; ++j) {
      const double wanted =
          c.is_in_table(index) ? round_to(c.desc.dtype, c.table.at(0, index, j)) : kNaN;
      wrong += !same_value(out.at(0, i, j), wanted);
    }
  }
  CHECK(wrong == 0);
}

/// Compares with fp64 sums, which are exact in fp32 for integers.
void check_backward(const Case &c) {
  const mp_embedding_desc_t &d = c.desc;
  const Gradient got = differentiate(c);
  Matrices sums(1, d.num_embeddings, d.embedding_dim);
  std::set<int64_t> written;
  for (int64_t i = 0; i < d.num_indices; ++i) {
    const int64_t v = c.indices[static_cast<size_t>(i)];
    if (!c.adds(v)) continue;
    written.insert(v);
    for (int64_t j = 0; j < d.embedding_dim; ++j) sums.at(0, v, j) += c.dout.at(0, i, j);
  }
  int64_t wrong = 0;
  for (int32_t v = 0; v < d.num_embeddings; ++v) {
    for (int64_t j = 0; j < d.embedding_dim; ++j) {
      const double old = c.has(MP_EMBEDDING_FLAG_ACCUMULATE) ? c.table.at(0, v, j) : 0.0;
      const double value =
          round_to(d.dtype_dtable, written.count(v) != 0 ? sums.at(0, v, j) + old : old);
      wrong += !same_value(got.dtable.at(0, v, j), value);
    }
  }
  CHECK(wrong == 0);
}

void check(const Case &c) {
  CAPTURE(c.desc.num_indices, c.desc.num_embeddings, c.desc.embedding_dim, c.desc.flags, c.offset,
          mp_dtype_name(c.desc.dtype), mp_dtype_name(c.desc.dtype_dtable));
  check_forward(c);
  check_backward(c);
}

}  // namespace

// ---------------------------------------------------------------------------- shapes and types

TEST_CASE("embedding: any options, shapes and layouts are exact", "[layers][embedding][short]") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const int64_t rows = any(random, {1, 2, 63, 64, 65, 90, 127, 128, 129, 200, 640, 1000}),
                  width = any(random, {1, 2, 5, 7, 8, 9, 13, 24, 33, 40, 64, 65, 130, 257, 300});
    const int32_t vocabulary = any(random, {1, 2, 9, 20, 255, 256});
    Case c =
        make_case(any_indices(rows, vocabulary, seed), vocabulary, width, any(random, kDtypes));
    if (one_in(4, random)) c.indices.assign(c.indices.size(), vocabulary - 1);
    c.desc.dtype_dtable = any(random, kDtypes);
    c.desc.dtype_indices = any(random, {MP_INT32, MP_INT64});
    if (one_in(2, random)) c.desc.flags = MP_EMBEDDING_FLAG_ACCUMULATE;
    const int64_t gap = any(random, {0, 1, 8});
    c.desc.ld_table = width + gap;
    c.desc.ld_out = width + 3 * gap;
    c.desc.ld_dtable = width + 2 * gap;
    c.offset = any(random, {0, 1, 4});
    CAPTURE(seed);
    check(c);
  }
}

TEST_CASE("embedding: segments with any start and length", "[layers][embedding][short]") {
  // Segments of these lengths, in shuffled order.
  std::vector<int64_t> indices;
  int32_t word = 0;
  for (const int length : {1, 63, 64, 65, 1, 128, 129, 200, 2, 66, 65, 65, 64, 63, 320, 1})
    indices.insert(indices.end(), static_cast<size_t>(length), word++ * 5 % 16);
  Random random(8);
  for (size_t i = indices.size(); i > 1; --i)
    std::swap(indices[i - 1],
              indices[static_cast<size_t>(random.integer(0, static_cast<int64_t>(i) - 1))]);
  for (const mp_dtype_t dtype : kDtypes)
    for (const int64_t width : {2, 3, 64, 264}) check(make_case(indices, 16, width, dtype));
}

TEST_CASE("embedding: word frequencies of a text", "[layers][embedding]") {
  for (const mp_dtype_t dtype : kDtypes) {
    Case c = make_case(zipf_indices(9000, 3000, 9), 3000, 72, dtype);
    c.desc.dtype_dtable = MP_FP32;
    check(c);
    c.desc.flags = MP_EMBEDDING_FLAG_ACCUMULATE | MP_EMBEDDING_FLAG_PADDING;
    c.desc.padding_index = 7;
    check(c);
  }
}

TEST_CASE("embedding: large vocabularies, and more rows than a tile of the sort",
          "[layers][embedding]") {
  check(make_case(zipf_indices(4000, 70000, 10), 70000, 16));
  Case c = make_case(zipf_indices(30000, 500, 11), 500, 8);
  c.desc.dtype_dtable = MP_FP32;
  check(c);
}

// ---------------------------------------------------------------------------- indices

TEST_CASE("embedding: indices outside the table give NaN rows and no gradient",
          "[layers][embedding][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    std::vector<int64_t> indices = any_indices(70, 6, 12);
    for (const int32_t wrong : {-1, 6, 7, kMin, kMax, 255, 256, 1 << 16, -256})
      indices.insert(indices.begin() + (wrong & 31), wrong);
    Case c = make_case(indices, 6, 12, dtype);
    check(c);
    c.desc.flags = MP_EMBEDDING_FLAG_ACCUMULATE;
    check(c);
  }
  check(make_case(std::vector<int64_t>(80, -1), 4, 9));
}

TEST_CASE("embedding: 64-bit indices do not wrap", "[layers][embedding][short]") {
  constexpr int64_t kWrap = int64_t{1} << 32;
  std::vector<int64_t> indices = any_indices(70, 6, 12);
  for (const int64_t word : {0, 3, 5})
    for (const int64_t wrong : {kWrap + word, -kWrap + word, (kWrap << 31) + word, kMax + word + 1})
      indices.insert(indices.begin() + word * 9, wrong);
  for (const mp_dtype_t dtype : kDtypes) {
    Case c = make_case(indices, 6, 12, dtype);
    c.desc.dtype_indices = MP_INT64;
    check(c);
    c.desc.padding_index = 3;
    c.desc.flags = MP_EMBEDDING_FLAG_ACCUMULATE | MP_EMBEDDING_FLAG_PADDING;
    check(c);
  }
}

TEST_CASE("embedding: the padding row is read and gets no gradient", "[layers][embedding][short]") {
  for (const int32_t padding : {0, 3, 5}) {
    Case c = make_case(any_indices(100, 6, 13), 6, 17);
    c.desc.padding_index = padding;
    check(c);  // an ordinary word without the flag
    c.desc.flags = MP_EMBEDDING_FLAG_PADDING;
    for (int64_t i = 0; i < c.desc.num_indices; ++i)
      if (c.indices[static_cast<size_t>(i)] == padding) c.dout.at(0, i, 4) = kNaN;
    check(c);
    c.desc.flags |= MP_EMBEDDING_FLAG_ACCUMULATE;
    check(c);
  }
}

TEST_CASE("embedding: no rows", "[layers][embedding][short]") {
  Case c = make_case({}, 5, 11);
  c.desc.ld_dtable = 16;
  size_t bytes = 1;
  require_ok(mp_embedding_workspace_size(context(), &c.desc, &bytes));
  CHECK(bytes == 0);
  require_ok(mp_embedding_forward(context(), &c.desc, nullptr, nullptr, nullptr, kStream));
  check_backward(c);
  c.desc.flags = MP_EMBEDDING_FLAG_ACCUMULATE;
  check_backward(c);
}

// ---------------------------------------------------------------------------- order

TEST_CASE("embedding: a sum is taken in the order of the rows", "[layers][embedding][short]") {
  Case c = make_case(any_indices(300, 12, 14), 12, 20, MP_FP32);
  Random random(15);
  c.dout.values = random_reals(MP_FP32, 300 * 20, -1.0, 1.0, random);
  std::vector<float> sums(static_cast<size_t>(12 * 20));
  for (size_t i = 0; i < c.indices.size(); ++i)
    for (size_t j = 0; j < 20; ++j)
      sums[static_cast<size_t>(c.indices[i]) * 20 + j] +=
          static_cast<float>(c.dout.at(0, static_cast<int64_t>(i), static_cast<int64_t>(j)));
  const Gradient got = differentiate(c);
  CHECK(std::memcmp(got.bits.data(), sums.data(), got.bits.size()) == 0);
}

TEST_CASE("embedding: results have the same bits in repeated calls and on any number of SMs",
          "[layers][embedding][short]") {
  Case c = make_case(zipf_indices(700, 40, 16), 40, 300, MP_FP32);
  Random random(17);
  for (double &value : c.dout.values) value = random.real(-1.0, 1.0);
  const Gradient first = differentiate(c);
  CHECK(differentiate(c).bits == first.bits);
  const UniqueContext one_sm = make_context(1);
  CHECK(differentiate(c, one_sm.get()).bits == first.bits);
}

TEST_CASE("embedding: the gradient of a word does not depend on other words",
          "[layers][embedding][short]") {
  // The 200 rows of a word alone, and between rows of the words before and after it.
  Case alone = make_case(std::vector<int64_t>(200, 1), 3, 24, MP_FP32);
  Random random(18);
  for (double &value : alone.dout.values) value = random.real(-1.0, 1.0);
  Case among = make_case(std::vector<int64_t>(331, 1), 3, 24, MP_FP32);
  int64_t taken = 0;
  for (int64_t i = 0; i < 331; ++i) {
    if (taken < 200 && i % 5 < 3 + (i > 100)) {
      for (int64_t j = 0; j < 24; ++j) among.dout.at(0, i, j) = alone.dout.at(0, taken, j);
      ++taken;
    } else {
      among.indices[static_cast<size_t>(i)] = i % 2 == 0 ? 0 : 2;
    }
  }
  REQUIRE(taken == 200);
  const Matrices a = differentiate(alone).dtable, b = differentiate(among).dtable;
  for (int64_t j = 0; j < 24; ++j) CHECK(a.at(0, 1, j) == b.at(0, 1, j));
}

// ---------------------------------------------------------------------------- non-finite values

TEST_CASE("embedding: a non-finite value reaches only its row", "[layers][embedding][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const double bad : {kNaN, kInfinity, -kInfinity}) {
      Case c = make_case(zipf_indices(300, 10, 19), 10, 21, dtype);
      c.dout.at(0, 150, 20) = bad;
      c.table.at(0, 4, 3) = bad;
      check(c);
      c.dout.at(0, 150, 20) = 0.0;
      c.desc.flags = MP_EMBEDDING_FLAG_ACCUMULATE;
      check(c);
    }
  }
}

TEST_CASE("embedding: a sum that overflows FP16 raises found_inf", "[layers][embedding][short]") {
  for (const int64_t rows : {3, 100}) {
    Case c = make_case(std::vector<int64_t>(static_cast<size_t>(rows), 1), 2, 9);
    c.dout.at(0, 0, 5) = c.dout.at(0, 1, 5) = 60000.0;
    check(c);
    CHECK(differentiate(c).dtable.at(0, 1, 5) == kInfinity);
    c.desc.dtype_dtable = MP_FP32;
    check(c);
  }
}

TEST_CASE("embedding: the workspace has the documented size", "[layers][embedding][short]") {
  for (const int64_t rows : {1, 64, 65, 1 << 20, kMax}) {
    for (const int64_t width : {1, 512, 70000}) {
      const mp_embedding_desc_t d = mp_embedding_desc_default(rows, 50000, width, MP_FP16);
      size_t bytes = 0;
      require_ok(mp_embedding_workspace_size(context(), &d, &bytes));
      const double least = static_cast<double>(rows * 17 + rows * width / 8 + 4 * 50000);
      CHECK(static_cast<double>(bytes) >= least);
      CHECK(static_cast<double>(bytes) <= least + 128 * 1024 + 8.0 * static_cast<double>(width));
    }
  }
}
