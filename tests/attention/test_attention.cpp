// Attention of one call against fp64: shapes, masks, heads, sinks, dropout; logged plans.
#include <map>

#include "tests/attention/oracle_attention.h"
#include "tests/support/any.h"
#include "tests/support/run_again.h"

using namespace mptest;

namespace {

constexpr uint32_t kCausal = MP_ATTENTION_FLAG_CAUSAL, kWindow = MP_ATTENTION_FLAG_WINDOW;

struct Mask {
  uint32_t flags;
  int32_t left, right;
};
constexpr Mask kMasks[] = {{0, -1, -1},      {kCausal, -1, -1}, {kWindow, 40, 9},
                           {kWindow, 0, -1}, {kWindow, -1, 0},  {kCausal | kWindow, 33, 5}};

void set(AttentionCase &c, const Mask &mask) {
  c.desc.flags = mask.flags;
  c.desc.window_left = mask.left;
  c.desc.window_right = mask.right;
}

/// Returns a random integer with |x| <= range for each element.
void fill_integers(HeadTensor &t, int64_t range, uint64_t seed) {
  Random random(seed);
  for (double &x : t.values) x = static_cast<double>(random.integer(-range, range));
}

bool is_power_of_two(int64_t x) {
  return x > 0 && (x & (x - 1)) == 0;
}

// ---------------------------------------------------------------------------- any options

/// Returns a length of at most `most` rows for each sequence, or none, which means all rows.
std::vector<int32_t> any_lengths(int64_t batch, int64_t most, Random &random) {
  std::vector<int32_t> lengths;
  for (int64_t b = 0; b < batch; ++b)
    lengths.push_back(static_cast<int32_t>(random.integer(0, most)));
  return one_in(2, random) ? lengths : std::vector<int32_t>{};
}

AttentionCase any_case(const KernelScope &kernel, Random &random) {
  // Around the tiles of the kernels: 32 rows and 128 columns; 64 or 128 rows, and 64 or 32 columns.
  const auto length = [&] {
    return any(random, {1, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257});
  };
  const auto dim = [&] {
    if (one_in(4, random))
      return any(random, {64, 128, 136, 200, 256}) - (kernel.is_plain() ? 1 : 0);
    return kernel.unit() * any(random, {1, 2, 3, 5, 7});
  };
  const auto [heads, kv_heads] = any(random, {std::pair{1, 1}, {2, 2}, {2, 1}, {4, 2}});
  const Shape shape{.batch = any(random, {1, 1, 3}),
                    .heads = heads,
                    .kv_heads = kv_heads,
                    .q_len = length(),
                    .kv_len = length(),
                    .dim = dim(),
                    .dim_v = one_in(2, random) ? dim() : 0};
  const auto dtype =
      kernel.dtypes()[static_cast<size_t>(random.integer(0, std::ssize(kernel.dtypes()) - 1))];
  AttentionCase c = random_case(dtype, shape, random.bits());
  set(c, any(random, kMasks));
  if (one_in(4, random)) c.desc.scale = 0.0f;  // 1 / sqrt(head_dim)
  c.q_lengths = any_lengths(shape.batch, shape.q_len, random);
  c.kv_lengths = any_lengths(shape.batch, shape.kv_len, random);
  if (one_in(2, random))
    for (int h = 0; h < heads; ++h)
      c.sinks.push_back(any(random, {-1e30f, -20.0f, 0.0f, 3.0f, 15.0f}));
  if (one_in(2, random)) return c;
  c.desc.dropout = any(random, {0.001f, 0.002f, 0.25f, 0.5f, 0.99f});
  c.desc.dropout_seed = random.bits();
  c.offset = any(random, {uint64_t{0}, uint64_t{1} << 40 | 3});
  return c;
}

/// Returns any form and layout; with q, k and v in one matrix, their lengths become equal.
Placement any_placement(AttentionCase &c, const KernelScope &kernel, Random &random) {
  const int64_t unit = kernel.unit();
  const Placement p{.is_packed = one_in(2, random),
                    .in_one_matrix = c.q.rows == c.k.rows,
                    .padding = any(random, {int64_t{0}, unit, 5 * unit}),
                    .offset = any(random, {int64_t{0}, 3 * unit})};
  if (p.in_one_matrix) c.kv_lengths = c.q_lengths;
  return p;
}

using Features = std::map<std::string, int>;

/// Adds a case to the number of cases of each feature that it has.
void count_features(const AttentionCase &c, const Placement &p, Features &features) {
  const mp_attention_desc_t &d = c.desc;
  for (const Mask &mask : kMasks)
    features["mask " + std::to_string(mask.flags) + ", left " + std::to_string(mask.left)] +=
        d.flags == mask.flags && d.window_left == mask.left;
  const bool is_ragged = d.batch > 1 && !c.q_lengths.empty() && !c.kv_lengths.empty();
  const std::pair<const char *, bool> of_each_form[] = {
      {"unequal lengths", is_ragged}, {"q, k and v in one matrix", p.in_one_matrix && d.q_len > 1},
      {"padding", p.padding > 0},     {"groups", d.heads > d.kv_heads},
      {"sinks", !c.sinks.empty()},    {"dropout", d.dropout > 0.0f}};
  for (const bool is_packed : {false, true})
    for (const auto &[name, has] : of_each_form)
      features[(is_packed ? "packed: " : "padded: ") + std::string(name)] +=
          has && p.is_packed == is_packed;
  features["misaligned"] += p.offset > 0;
  features["dropout offset"] += c.offset > 0;
  features["dropout and a mask"] += d.dropout > 0.0f && d.flags != 0;
  features["dropout and values of another dimension"] += d.dropout > 0.0f && c.v.dim != c.q.dim;
  features["narrower values"] += c.v.dim < c.q.dim;
  features["wider values"] += c.v.dim > c.q.dim;
  features["a large dimension"] += c.q.dim >= 127;
  features["a large dimension of values"] += c.v.dim >= 127;
  features["several tiles"] += d.q_len > 64 && d.kv_len > 128;
}

/// Checks cases against the oracle; another form and layout must give the same bits.  Each feature
/// must occur.
void check_any(const KernelScope &kernel, uint64_t seed, int cases) {
  Random random(seed);
  Features features;
  for (int i = 0; i < cases; ++i) {
    AttentionCase c = any_case(kernel, random);
    const Placement p = any_placement(c, kernel, random);
    CAPTURE(seed, i);
    check_same(run(c, p), check(c));
    count_features(c, p, features);
    for (const mp_dtype_t dtype : kernel.dtypes())
      features[mp_dtype_name(dtype)] += c.desc.dtype == dtype;
  }
  for (const auto &[feature, count] : features) {
    CAPTURE(seed, feature);
    CHECK(count > 0);
  }
}

}  // namespace

TEST_CASE("attention: any options, form and layout", "[attention]") {
  MP_EACH_KERNEL;
  check_any(kernel, 1, 50);
}

TEST_CASE("attention: a few options, forms and layouts", "[attention][dropout][short]") {
  MP_EACH_KERNEL;
  check_any(kernel, 404, 12);  // a seed of small cases with all features
}

// ---------------------------------------------------------------------------- shapes

TEST_CASE("attention: head dimensions", "[attention][short]") {
  MP_EACH_KERNEL;
  using Dims = std::vector<int32_t>;
  const Dims dims = kernel.is_plain() ? Dims{1, 7, 8, 31, 32, 33, 64, 96, 127, 128, 129, 255, 256}
                                      : Dims{8, 16, 24, 56, 64, 72, 96, 120, 128, 136, 248, 256};
  uint64_t seed = 100;
  for (const mp_dtype_t dtype : kernel.dtypes())
    for (const int32_t dim : dims) {
      const Shape shape{.q_len = 5, .kv_len = 37, .dim = dim};
      AttentionCase c = random_case(dtype, shape, ++seed);
      check(c);
      c.desc.scale = 0.0f;  // 1 / sqrt(head_dim)
      set(c, {kCausal, -1, -1});
      check(c);
    }
}

TEST_CASE("attention: a query without a key has zeros and lse -infinity", "[attention][short]") {
  MP_EACH_KERNEL;
  AttentionCase c = random_case(MP_FP16, {.q_len = 40, .kv_len = 3}, 400);
  set(c, {kCausal, -1, -1});  // query 37 is the first that sees a key
  c.sinks = {1.0f};
  for (double &x : c.v.values) x = kNaN;
  const AttentionResult got = run(c);
  for (int64_t i = 0; i < 37; ++i) {
    CHECK(got.lse.at(0, i, 0, 0) == -kInfinity);
    CHECK(got.o.at(0, i, 0, 5) == 0.0);
    CHECK(got.dq.at(0, i, 0, 5) == 0.0);
  }
  CHECK(std::isnan(got.o.at(0, 37, 0, 5)));
  const AttentionResult none = run(random_case(MP_BF16, {.q_len = 3, .kv_len = 0}, 401));
  CHECK(none.lse.values == std::vector<double>(3, -kInfinity));
  CHECK(none.o.values == std::vector<double>(48, 0.0));
  const AttentionResult unseen = run(random_case(MP_FP32, {.q_len = 0, .kv_len = 40}, 402));
  CHECK(unseen.dk.values == std::vector<double>(640, 0.0));
}

TEST_CASE("attention: grouped query heads", "[attention][short]") {
  MP_EACH_KERNEL;
  uint64_t seed = 500;
  for (const mp_dtype_t dtype : kernel.dtypes())
    for (const auto &[heads, kv_heads] : {std::pair{3, 3}, {4, 2}, {6, 1}}) {
      AttentionCase c = random_case(
          dtype, {.batch = 2, .heads = heads, .kv_heads = kv_heads, .q_len = 35, .kv_len = 34},
          ++seed);
      c.sinks = std::vector<float>(static_cast<size_t>(heads), 0.5f);
      c.sinks[0] = -2.0f;
      set(c, {kCausal, -1, -1});
      check(c);
    }
}

// ---------------------------------------------------------------------------- exact results

TEST_CASE("attention: equal scores average integers exactly", "[attention][short]") {
  MP_EACH_KERNEL;
  for (const mp_dtype_t dtype : kernel.dtypes())
    for (const auto &[q_len, kv_len] : {std::pair{33, 128}, {128, 128}, {129, 256}, {40, 64}}) {
      AttentionCase c = zero_case(dtype, {.q_len = q_len, .kv_len = kv_len, .dim = 40});
      fill_integers(c.q, 8, 700);  // k = 0
      fill_integers(c.v, 1, 701);
      for (double &x : c.v.values) x *= 256.0;  // sums / 2^n have few digits
      for (const Mask &mask : {Mask{0, -1, -1}, Mask{kCausal, -1, -1}}) {
        set(c, mask);
        const AttentionResult got = run(c);
        int64_t rows = 0, wrong = 0;
        for (int64_t i = 0; i < q_len; ++i) {
          const int64_t keys = mask.flags == 0 ? kv_len : i + 1 + kv_len - q_len;
          if (!is_power_of_two(keys)) continue;
          ++rows;
          for (int64_t e = 0; e < 40; ++e) {
            double sum = 0.0;
            for (int64_t j = 0; j < keys; ++j) sum += c.v.at(0, j, 0, e);
            wrong += got.o.at(0, i, 0, e) != round_to(dtype, sum / static_cast<double>(keys));
          }
        }
        CAPTURE(mp_dtype_name(dtype), q_len, kv_len, mask.flags);
        CHECK(rows > 0);
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("attention: a large score selects its value exactly", "[attention][short]") {
  MP_EACH_KERNEL;
  size_t number = 0;
  for (const int64_t target : {0, 31, 32, 63, 64, 127, 128, 255, 256, 299}) {
    const int32_t wide = kernel.is_plain() ? 130 : 136;
    const int32_t dim = 3 * kernel.unit(), dim_v = number % 2 == 0 ? dim : wide;
    const mp_dtype_t dtype = kernel.dtypes()[number++ % kernel.dtypes().size()];
    AttentionCase c = zero_case(dtype, {.q_len = 34, .kv_len = 300, .dim = dim, .dim_v = dim_v});
    // The score of the target is 0, the others are at most -12288.
    for (double &x : c.q.values) x = 64.0;
    for (double &x : c.k.values) x = -64.0;
    for (int64_t e = 0; e < dim; ++e) c.k.at(0, target, 0, e) = 0.0;
    fill_integers(c.v, 100, 800);
    fill_integers(c.d_o, 4, 801);
    c.desc.scale = 1.0f;
    const AttentionResult got = run(c);
    CAPTURE(mp_dtype_name(dtype), target);
    int64_t wrong = 0;
    for (int64_t i = 0; i < 34; ++i)
      for (int64_t e = 0; e < dim_v; ++e) wrong += got.o.at(0, i, 0, e) != c.v.at(0, target, 0, e);
    // p is 1 for the target and 0 elsewhere; ds is 0.
    for (int64_t e = 0; e < dim_v; ++e) {
      double sum = 0.0;
      for (int64_t i = 0; i < 34; ++i) sum += c.d_o.at(0, i, 0, e);
      for (int64_t j = 0; j < 300; ++j) wrong += got.dv.at(0, j, 0, e) != (j == target ? sum : 0.0);
    }
    CHECK(wrong == 0);
    CHECK(std::ranges::count(got.dq.values, 0.0) == std::ssize(got.dq.values));
  }
}

TEST_CASE("attention: gradients of two equal scores are exact", "[attention][short]") {
  // p = 1/2 and ds = +-(dp[0] - dp[1]) / 4 in 16 bits; fp32 keeps the error of lse.
  MP_EACH_KERNEL;
  const int32_t dim = kernel.is_plain() ? 9 : 40, dim_v = 4 * kernel.unit();
  for (const mp_dtype_t dtype : kHalfTypes)
    for (const int64_t q_len : {1, 32, 33, 65, 129}) {
      AttentionCase c = zero_case(dtype, {.q_len = q_len, .kv_len = 2, .dim = dim, .dim_v = dim_v});
      fill_integers(c.k, 2, 900);
      for (double &x : c.k.values) x *= 64.0;  // amax is an element of dq
      for (int64_t e = 0; e < dim; ++e) c.k.at(0, 1, 0, e) = -c.k.at(0, 0, 0, e);  // q = 0
      for (double &x : c.v.values) x = 4.0;
      for (int64_t e = 0; e < dim_v; ++e) c.v.at(0, 1, 0, e) = 0.0;
      fill_integers(c.d_o, 1, 901);
      c.desc.scale = 0.5f;
      const AttentionResult got = run(c);
      int64_t wrong = 0;
      std::vector<double> dv(static_cast<size_t>(dim_v));
      for (int64_t i = 0; i < q_len; ++i) {
        double dp = 0.0;
        for (int64_t e = 0; e < dim_v; ++e) {
          dp += 4.0 * c.d_o.at(0, i, 0, e);
          dv[static_cast<size_t>(e)] += 0.5 * c.d_o.at(0, i, 0, e);
        }
        for (int64_t e = 0; e < dim; ++e) {
          const double dq = 0.5 * (0.25 * dp * c.k.at(0, 0, 0, e) - 0.25 * dp * c.k.at(0, 1, 0, e));
          wrong += got.dq.at(0, i, 0, e) != dq;
        }
      }
      for (int64_t e = 0; e < dim_v; ++e)
        wrong += got.dv.at(0, 0, 0, e) != round_to(dtype, dv[static_cast<size_t>(e)]);
      CAPTURE(mp_dtype_name(dtype), q_len);
      CHECK(wrong == 0);
    }
}

// ---------------------------------------------------------------------------- dropout

TEST_CASE("attention: each mask of dropout is the documented one", "[attention][dropout][short]") {
  // Equal scores; v and d_o select one key and one query, so o and dv are 0 if a score is dropped.
  MP_EACH_KERNEL;
  constexpr int64_t kLen = 136;
  AttentionCase c = zero_case(
      MP_FP16, {.heads = 2, .kv_heads = 2, .q_len = kLen, .kv_len = kLen, .dim = 8, .dim_v = kLen});
  for (int64_t i = 0; i < kLen; ++i)
    for (int64_t h = 0; h < 2; ++h) c.v.at(0, i, h, i) = c.d_o.at(0, i, h, i) = 1.0;
  c.desc.dropout = 0.5f;
  c.offset = 9;
  const AttentionResult got = run(c);
  int64_t wrong = 0;
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < kLen; ++i)
      for (int64_t j = 0; j < kLen; ++j) {
        const bool is_dropped = oracle::is_dropped(c, 0, h, i, j);
        wrong += (got.o.at(0, i, h, j) == 0.0) != is_dropped;
        wrong += (got.dv.at(0, j, h, i) == 0.0) != is_dropped;
      }
  CHECK(wrong == 0);
}

// ---------------------------------------------------------------------------- plans

TEST_CASE("an aligned and an unaligned attention", "[.]") {
  for (const int32_t dim : {8, 12, 8})
    run(random_case(MP_FP16, {.q_len = 5, .kv_len = 7, .dim = dim}, 1));
}

TEST_CASE("attention: MP_LOG_PLANS logs both passes, and why a kernel is the plain one",
          "[attention][short]") {
  const std::string text =
      output_of_test("an aligned and an unaligned attention", "MP_LOG=error MP_LOG_PLANS=1");
  CAPTURE(text);
  CHECK(times(text, "info: plan: attention_") == 4);
  const std::string unaligned = "head_dim = 12 / 12, flags = 0, fp16, launches = ";
  const std::string reason =
      ": attention_mma requires head_dim and head_dim_v that are multiples of 8\n";
  CHECK(times(text, unaligned + "1, smem_bytes = 40064, workspace_bytes = 0" + reason) == 1);
  CHECK(times(text, unaligned + "2, smem_bytes = 40064, workspace_bytes = 20" + reason) == 1);
  const mp_attention_desc_t desc = mp_attention_desc_default(1, 1, 5, 7, 8, MP_FP16);
  auto best = initialized<mp_kernel_info_t>();
  require_ok(mp_attention_kernel_info(context(), &desc, 0, &best));
  const bool is_plain = std::string(best.name) == "attention_plain";
  CHECK(times(text, "plan: attention_mma for attention forward, ") == (is_plain ? 0 : 1));
  CHECK(times(text, ": attention_mma is slower\n") == (is_plain ? 2 : 0));
}
