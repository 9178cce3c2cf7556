// Attention of several sequences and heads: equal bits in every form, layout and order, isolation
// of sequences, invalid lengths and ends.
#include "tests/attention/oracle_attention.h"

using namespace mptest;

namespace {

const std::vector<int32_t> kQueries = {33, 0, 1, 70, 128}, kKeys = {40, 7, 0, 129, 128};

/// Sequences of unequal lengths, with all options.
AttentionCase ragged_case(mp_dtype_t dtype, uint64_t seed, const KernelScope &kernel) {
  const Shape shape{.batch = 5,
                    .heads = 4,
                    .kv_heads = 2,
                    .q_len = 129,
                    .kv_len = 130,
                    .dim = 24,
                    .dim_v = kernel.is_plain() ? 17 : 40};
  AttentionCase c = random_case(dtype, shape, seed);
  c.q_lengths = kQueries;
  c.kv_lengths = kKeys;
  c.sinks = {0.5f, -1.0f, 2.0f, 0.0f};
  c.desc.flags = MP_ATTENTION_FLAG_WINDOW;
  c.desc.window_left = 60;
  c.desc.window_right = 3;
  c.desc.dropout = 0.25f;
  return c;
}

/// Returns heads [head, head + heads) of rows [row, row + rows) of a sequence.
HeadTensor part_of(const HeadTensor &t, int64_t b, int64_t row, int64_t rows, int64_t head,
                   int64_t heads) {
  HeadTensor part(1, rows, heads, t.dim);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t e = 0; e < t.dim; ++e) part.at(0, i, h, e) = t.at(b, row + i, head + h, e);
  return part;
}

/// Checks that the rows of sequence `bad`, and only they, are NaN.
void check_only_nan(const HeadTensor &t, int64_t bad) {
  for (int64_t b = 0; b < t.batch; ++b) {
    const HeadTensor rows = part_of(t, b, 0, t.rows, 0, t.heads);
    const auto nans = std::ranges::count_if(rows.values, [](double x) { return std::isnan(x); });
    CAPTURE(b);
    CHECK(nans == (b == bad ? std::ssize(rows.values) : 0));
  }
}

void set_row(HeadTensor &t, int64_t b, int64_t i, double value) {
  for (int64_t h = 0; h < t.heads; ++h)
    for (int64_t e = 0; e < t.dim; ++e) t.at(b, i, h, e) = value;
}

}  // namespace

// ---------------------------------------------------------------------------- equal bits

TEST_CASE("attention sequences: each sequence and head has the bits of its own call",
          "[attention][short]") {
  MP_EACH_KERNEL;
  for (const mp_dtype_t dtype : kernel.dtypes()) {
    AttentionCase c = ragged_case(dtype, 20, kernel);
    c.desc.dropout = 0.0f;  // masks depend on the number of the sequence
    const AttentionResult all = run(c);
    for (int64_t b = 0; b < 5; ++b)
      for (int64_t g = 0; g < 2; ++g) {
        const int64_t queries = c.q_length(b), keys = c.kv_length(b);
        AttentionCase one = c;
        one.desc.batch = 1;
        one.desc.heads = 2;
        one.desc.kv_heads = 1;
        one.desc.q_len = queries;
        one.desc.kv_len = keys;
        one.q_lengths = one.kv_lengths = {};
        one.sinks = {c.sinks[static_cast<size_t>(2 * g)], c.sinks[static_cast<size_t>(2 * g + 1)]};
        one.q = part_of(c.q, b, 0, queries, 2 * g, 2);
        one.k = part_of(c.k, b, 0, keys, g, 1);
        one.v = part_of(c.v, b, 0, keys, g, 1);
        one.d_o = part_of(c.d_o, b, 0, queries, 2 * g, 2);
        AttentionResult expected = all;
        expected.o = part_of(all.o, b, 0, queries, 2 * g, 2);
        expected.lse = part_of(all.lse, b, 0, queries, 2 * g, 2);
        expected.dq = part_of(all.dq, b, 0, queries, 2 * g, 2);
        expected.dk = part_of(all.dk, b, 0, keys, g, 1);
        expected.dv = part_of(all.dv, b, 0, keys, g, 1);
        CAPTURE(mp_dtype_name(dtype), b, g);
        check_same(run(one), expected);
      }
  }
}

TEST_CASE("attention sequences: a row of o does not depend on other queries",
          "[attention][short]") {
  MP_EACH_KERNEL;
  for (const uint32_t flags : {0, 1}) {
    AttentionCase c =
        random_case(MP_FP16, {.heads = 2, .kv_heads = 2, .q_len = 150, .kv_len = 150}, 30);
    c.desc.flags = flags;
    const AttentionResult all = run(c);
    for (const int64_t first : {1, 31, 100, 149}) {  // the last queries keep their diagonal
      const int64_t rows = 150 - first;
      AttentionCase some = c;
      some.desc.q_len = rows;
      some.q = part_of(c.q, 0, first, rows, 0, 2);
      some.d_o = part_of(c.d_o, 0, first, rows, 0, 2);
      const AttentionResult got = run(some);
      CAPTURE(flags, first);
      CHECK(count_different(got.o.values, part_of(all.o, 0, first, rows, 0, 2).values) == 0);
      CHECK(count_different(got.lse.values, part_of(all.lse, 0, first, rows, 0, 2).values) == 0);
      CHECK(count_different(got.dq.values, part_of(all.dq, 0, first, rows, 0, 2).values) == 0);
    }
  }
}

TEST_CASE("attention sequences: repeated calls give the same bits", "[attention][short]") {
  MP_EACH_KERNEL;
  const AttentionCase c = ragged_case(MP_BF16, 40, kernel);
  const AttentionResult first = run(c), second = run(c);
  check_same(first, second);
  CHECK(first.dsinks == second.dsinks);
  // Packing and padding change no bit of the sum of each sequence, but its order.
  const AttentionResult packed = run(c, {.is_packed = true});
  const oracle::Attention bound = oracle::attention(c);
  for (size_t h = 0; h < 4; ++h) CHECK(within(bound.dsinks[h], packed.dsinks[h]));
}

// ---------------------------------------------------------------------------- isolation

TEST_CASE("attention sequences: NaN and infinity do not cross sequences", "[attention][short]") {
  MP_EACH_KERNEL;
  for (const mp_dtype_t dtype : kernel.dtypes())
    for (const double bad : {kNaN, kInfinity})
      for (const bool is_packed : {false, true}) {
        AttentionCase c = ragged_case(dtype, 50, kernel);
        c.sinks = {};
        const Placement p{.is_packed = is_packed};
        const AttentionResult clean = run(c, p);
        for (HeadTensor *const t : {&c.k, &c.v}) set_row(*t, 3, 128, bad);
        for (HeadTensor *const t : {&c.q, &c.d_o}) set_row(*t, 3, 69, bad);
        const AttentionResult got = run(c, p);
        int64_t changed = 0;
        for (const int64_t b : {0, 1, 2, 4})
          for (size_t t = 0; t < got.tensors().size(); ++t) {
            const HeadTensor &x = *got.tensors()[t], &y = *clean.tensors()[t];
            changed += count_different(part_of(x, b, 0, x.rows, 0, x.heads).values,
                                       part_of(y, b, 0, y.rows, 0, y.heads).values);
          }
        CAPTURE(mp_dtype_name(dtype), bad, is_packed);
        CHECK(changed == 0);
        CHECK_FALSE(std::isfinite(got.o.at(3, 69, 0, 0)));
        CHECK_FALSE(std::isfinite(got.dk.at(3, 128, 0, 0)));
      }
}

TEST_CASE("attention sequences: scores of -infinity alone give NaN", "[attention][short]") {
  MP_EACH_KERNEL;
  for (const bool has_sink : {false, true}) {
    const int32_t dim = kernel.unit();
    AttentionCase c = zero_case(kernel.dtypes().back(), {.q_len = 2, .kv_len = 130, .dim = dim});
    for (int64_t e = 0; e < dim; ++e) {
      c.q.at(0, 0, 0, e) = kInfinity;
      c.q.at(0, 1, 0, e) = 1.0;
    }
    for (double &x : c.k.values) x = -1.0;
    for (double &x : c.v.values) x = 3.0;
    if (has_sink) c.sinks = {0.0f};
    const AttentionResult got = run(c);
    CHECK(std::isnan(got.o.at(0, 0, 0, 0)));
    CHECK(std::isnan(got.lse.at(0, 0, 0, 0)));
    CHECK(std::isfinite(got.o.at(0, 1, 0, 0)));
  }
}

// ---------------------------------------------------------------------------- invalid device data

TEST_CASE("attention sequences: a length out of range makes its sequence NaN",
          "[attention][short]") {
  MP_EACH_KERNEL;
  const int32_t most = std::numeric_limits<int32_t>::max();
  for (const mp_dtype_t dtype : kernel.dtypes())
    for (const auto &[queries, keys] : {std::pair{-1, 20},
                                        {41, 20},
                                        {20, -5},
                                        {20, 36},
                                        {most, 20},
                                        {std::numeric_limits<int32_t>::min(), most}}) {
      AttentionCase c = random_case(dtype, {.batch = 3, .q_len = 40, .kv_len = 35}, 60);
      c.q_lengths = {40, queries, 3};
      c.kv_lengths = {35, keys, 4};
      const AttentionResult got = run(c);
      CAPTURE(mp_dtype_name(dtype), queries, keys);
      for (const HeadTensor *const t : got.tensors()) check_only_nan(*t, 1);
      // The other sequences have the bits of a call with valid lengths.
      c.q_lengths[1] = c.kv_lengths[1] = 1;
      const AttentionResult valid = run(c);
      for (const int64_t b : {0, 2})
        CHECK(count_different(part_of(got.o, b, 0, 40, 0, 1).values,
                              part_of(valid.o, b, 0, 40, 0, 1).values) == 0);
    }
}

TEST_CASE("attention sequences: ends out of range count as the nearest valid ones",
          "[attention][short]") {
  MP_EACH_KERNEL;
  const int32_t most = std::numeric_limits<int32_t>::max();
  const Shape shape{.batch = 3, .q_len = 60, .kv_len = 50, .dim = kernel.unit()};
  AttentionCase c = random_case(kernel.dtypes().back(), shape, 70);
  const auto check_ends = [&](std::vector<int32_t> q_lengths, std::vector<int32_t> kv_lengths,
                              std::vector<int32_t> q_ends, std::vector<int32_t> kv_ends) {
    c.q_lengths = std::move(q_lengths);
    c.kv_lengths = std::move(kv_lengths);
    const AttentionResult wanted = run(c, {.is_packed = true, .extra = 0});
    check_same(run(c, {.is_packed = true, .extra = 0, .q_ends = q_ends, .kv_ends = kv_ends}),
               wanted);
  };
  check_ends({20, 0, 40}, {0, 30, 20}, {20, 10, 70}, {-7, 30, most});
  check_ends({20, 0, 40}, {30, 0, 20}, {20, 10, 70}, {30, -7, 50});
  check_ends({0, 60, 0}, {50, 0, 0}, {-most, most, 3}, {most, most, 0});
}

TEST_CASE("attention sequences: a packed sequence that is too long is NaN", "[attention][short]") {
  MP_EACH_KERNEL;
  const Shape shape{.batch = 3, .q_len = 40, .kv_len = 50, .dim = kernel.unit()};
  AttentionCase c = random_case(kernel.dtypes().back(), shape, 71);
  c.q_lengths = {10, 40, 10};
  c.kv_lengths = {10, 30, 10};
  c.desc.q_len = 39;
  const AttentionResult got = run(c, {.is_packed = true});
  for (const HeadTensor *const t : got.tensors())
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t i = 0; i < (t->rows == 40 ? c.q_lengths : c.kv_lengths)[static_cast<size_t>(b)];
           ++i)
        CHECK(std::isnan(t->at(b, i, 0, 0)) == (b == 1));
}
