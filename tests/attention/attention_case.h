// A call of both passes of mp_attention, in the padded or packed form and with any layout.
//
// Inputs that a call may not read are NaN, and outputs that it may not write are compared with a
// canary.
#pragma once

#define MP_ENABLE_EXPERIMENTAL
#include <array>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "tests/support/grad_stats.h"
#include "tests/support/testing.h"

namespace mptest {

/// [sequence][row][head][element], with the rows of the longest sequence.
struct HeadTensor {
  int64_t batch = 0, rows = 0, heads = 0, dim = 0;
  std::vector<double> values;

  HeadTensor() = default;
  HeadTensor(int64_t batch, int64_t rows, int64_t heads, int64_t dim, double value = 0.0)
      : batch(batch),
        rows(rows),
        heads(heads),
        dim(dim),
        values(static_cast<size_t>(batch * rows * heads * dim), value) {}

  size_t index(int64_t b, int64_t i, int64_t h, int64_t e) const {
    return static_cast<size_t>(((b * rows + i) * heads + h) * dim + e);
  }
  double &at(int64_t b, int64_t i, int64_t h, int64_t e) { return values[index(b, i, h, e)]; }
  double at(int64_t b, int64_t i, int64_t h, int64_t e) const { return values[index(b, i, h, e)]; }
};

/// Form and layout of the tensors in memory.
struct Placement {
  bool is_packed = false;
  bool in_one_matrix = false;  ///< q, k and v in one matrix, and their gradients in another
  int64_t padding = 0;         ///< gap after each head, row and sequence, in elements
  int64_t offset = 0;          ///< misalignment in elements
  int64_t extra = 3;           ///< packed rows after the last sequence
  std::vector<int32_t> q_ends = {}, kv_ends = {};  ///< empty: those of the lengths
};

struct AttentionCase {
  mp_attention_desc_t desc;  ///< padded form
  HeadTensor q, k, v, d_o;
  std::vector<int32_t> q_lengths, kv_lengths;  ///< empty: all rows
  std::vector<float> sinks;
  uint64_t offset = 0;  ///< 0: pass NULL

  int64_t dim_v() const { return v.dim; }
  int64_t q_length(int64_t b) const {
    return q_lengths.empty() ? desc.q_len : q_lengths[static_cast<size_t>(b)];
  }
  int64_t kv_length(int64_t b) const {
    return kv_lengths.empty() ? desc.kv_len : kv_lengths[static_cast<size_t>(b)];
  }
};

struct AttentionResult {
  HeadTensor o, dq, dk, dv;  ///< packed rows past a length are 0
  HeadTensor lse;            ///< dim 1; packed rows past a length are -infinity
  std::vector<float> dsinks;

  /// The order of tensors in messages.
  std::array<const HeadTensor *, 5> tensors() const { return {&o, &lse, &dq, &dk, &dv}; }
};

struct Shape {
  int32_t batch = 1, heads = 1, kv_heads = 1;
  int64_t q_len = 1, kv_len = 1;
  int32_t dim = 16, dim_v = 0;
};

/// Returns a case with zeros in all tensors.
inline AttentionCase zero_case(mp_dtype_t dtype, const Shape &s) {
  AttentionCase c;
  c.desc = mp_attention_desc_default(s.batch, s.heads, s.q_len, s.kv_len, s.dim, dtype);
  c.desc.kv_heads = s.kv_heads;
  const int32_t dim_v = s.dim_v == 0 ? s.dim : s.dim_v;
  c.desc.head_dim_v = s.dim_v;
  c.q = HeadTensor(s.batch, s.q_len, s.heads, s.dim);
  c.k = HeadTensor(s.batch, s.kv_len, s.kv_heads, s.dim);
  c.v = HeadTensor(s.batch, s.kv_len, s.kv_heads, dim_v);
  c.d_o = HeadTensor(s.batch, s.q_len, s.heads, dim_v);
  return c;
}

inline AttentionCase random_case(mp_dtype_t dtype, const Shape &s, uint64_t seed) {
  AttentionCase c = zero_case(dtype, s);
  Random random(seed);
  for (HeadTensor *const tensor : {&c.q, &c.k, &c.v, &c.d_o})
    for (double &x : tensor->values) x = round_to(dtype, random.real(-1.0, 1.0));
  c.desc.scale = static_cast<float>(3.0 / std::sqrt(static_cast<double>(s.dim)));
  return c;
}

// ---------------------------------------------------------------------------- kernels

/// Kernel of all calls in a scope.  Those that it cannot run use the selected kernel.
class KernelScope {
 public:
  static constexpr std::array kNames = {"attention_plain", "attention_mma"};

  explicit KernelScope(size_t number) : number_(number) { set(kNames[number]); }
  ~KernelScope() { set(nullptr); }
  KernelScope(const KernelScope &) = delete;
  KernelScope &operator=(const KernelScope &) = delete;

  bool is_plain() const { return number_ == 0; }
  /// Factor of all dimensions and paddings that the kernel can run.
  int32_t unit() const { return is_plain() ? 1 : 8; }
  std::span<const mp_dtype_t> dtypes() const {
    if (is_plain()) return kDtypes;
    return kHalfTypes;
  }

  /// Calls both passes.  The selected kernel replaces one that does not support the types or
  /// dimensions; rows that are not aligned are an error of the test.
  static void call(const mp_attention_desc_t &desc, const mp_attention_tensors_t &t) {
    const char *const kernel = current_;
    if (mp_attention_forward(context(), &desc, &t, kStream) == MP_ERROR_UNSUPPORTED) {
      auto last = initialized<mp_kernel_info_t>();
      require_ok(mp_attention_kernel_info(context(), &desc, kNames.size() - 1, &last));
      REQUIRE(last.reason != nullptr);
      CHECK(std::string(last.reason).find("aligned") == std::string::npos);
      set(nullptr);
      require_ok(mp_attention_forward(context(), &desc, &t, kStream));
    }
    const DeviceWorkspace workspace(mp_attention_backward_workspace_size, context(), &desc);
    require_ok(
        mp_attention_backward(context(), &desc, &t, workspace.data(), workspace.bytes(), kStream));
    CHECK(workspace.guard_damage() == "");
    set(kernel);
  }

 private:
  static void set(const char *name) {
    require_ok(mp_attention_set_kernel(context(), name));
    current_ = name;
  }

  static inline const char *current_ = nullptr;
  const size_t number_;
};

/// Repeats the rest of a test with each kernel.
#define MP_EACH_KERNEL                                                              \
  const KernelScope kernel(GENERATE(range(size_t{0}, KernelScope::kNames.size()))); \
  CAPTURE(kernel.is_plain())

// ---------------------------------------------------------------------------- memory

/// Place of a tensor in memory.
struct Place {
  mp_attention_layout_t layout;
  int64_t start = 0;
  std::vector<int64_t> first_rows;  ///< packed form; else empty

  int64_t index(int64_t b, int64_t i, int64_t h) const {
    const int64_t rows = first_rows.empty() ? b * layout.batch + i * layout.row
                                            : (first_rows[static_cast<size_t>(b)] + i) * layout.row;
    return start + rows + h * layout.head;
  }
};

/// Memory of one or several tensors.  Elements that belong to none have the value `unused`.
class HeadMemory {
 public:
  HeadMemory(mp_dtype_t dtype, int64_t count, int64_t offset, double unused)
      : unused_(unused),
        values_(static_cast<size_t>(count), unused),
        device_(dtype, values_, offset) {}

  void put(const HeadTensor &t, const Place &place, const std::vector<int64_t> &lengths) {
    visit(t, place, lengths, [&](double &x, size_t index) { x = t.values[index]; });
    device_.upload(values_);
  }
  void download() { values_ = device_.download(); }
  /// Moves rows to `t`; their elements become unused.
  void take(HeadTensor &t, const Place &place, const std::vector<int64_t> &lengths) {
    visit(t, place, lengths,
          [&](double &x, size_t index) { t.values[index] = std::exchange(x, unused_); });
  }
  /// Checks that no unused element and no guard zone was written.
  void check_unused() const {
    for (size_t i = 0; i < values_.size(); ++i)
      if (values_[i] != unused_) FAIL("element " << i << " was written");
    CHECK(device_.guard_damage() == "");
  }
  /// Address of an element.
  void *data(const Place &place, mp_dtype_t dtype) const {
    return static_cast<uint8_t *>(device_.data()) +
           static_cast<size_t>(place.start) * mp_dtype_size(dtype);
  }

 private:
  template <class Visit>
  void visit(const HeadTensor &t, const Place &place, const std::vector<int64_t> &lengths,
             Visit visit) {
    for (int64_t b = 0; b < t.batch; ++b)
      for (int64_t i = 0; i < lengths[static_cast<size_t>(b)]; ++i)
        for (int64_t h = 0; h < t.heads; ++h)
          for (int64_t e = 0; e < t.dim; ++e)
            visit(values_[static_cast<size_t>(place.index(b, i, h) + e)], t.index(b, i, h, e));
  }

  double unused_;
  std::vector<double> values_;
  DeviceArray device_;
};

// ---------------------------------------------------------------------------- a call

constexpr double kCanaryValue = 5.0;

/// Rows of one side of a call.
struct Side {
  std::vector<int64_t> lengths, stored, first_rows;
  std::vector<int32_t> ends;
  int64_t rows = 0;  ///< rows of all sequences

  Side(int64_t batch, int64_t len, const std::vector<int32_t> &given, const Placement &p,
       const std::vector<int32_t> &given_ends) {
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = given.empty() ? len : given[static_cast<size_t>(b)];
      lengths.push_back(std::clamp<int64_t>(length, 0, len));
      stored.push_back(p.is_packed ? length : len);
      if (p.is_packed) first_rows.push_back(rows);
      rows += p.is_packed ? length : len;
      ends.push_back(static_cast<int32_t>(rows));
    }
    if (!given_ends.empty()) ends = given_ends;
  }
};

inline Place place_of(const HeadTensor &t, const Side &side, const Placement &p) {
  const int64_t head = t.dim + p.padding, row = t.heads * head + p.padding;
  return {{t.rows * row + p.padding, row, head}, 0, side.first_rows};
}

inline AttentionResult run(const AttentionCase &c, const Placement &p = {}) {
  mp_attention_desc_t desc = c.desc;
  const mp_dtype_t dtype = desc.dtype;
  const Side queries(desc.batch, desc.q_len, c.q_lengths, p, p.q_ends);
  const Side keys(desc.batch, desc.kv_len, c.kv_lengths, p, p.kv_ends);
  Place q = place_of(c.q, queries, p), k = place_of(c.k, keys, p), v = place_of(c.v, keys, p);
  const Place o = place_of(c.d_o, queries, p);
  if (p.in_one_matrix) {
    REQUIRE(c.q.rows == c.k.rows);
    k.start = c.q.heads * q.layout.head;
    v.start = k.start + c.k.heads * k.layout.head;
    const int64_t row = v.start + c.v.heads * v.layout.head + p.padding;
    for (Place *const place : {&q, &k, &v}) {
      place->layout.row = row;
      place->layout.batch = c.q.rows * row;
    }
  }
  const int64_t extra = p.is_packed ? p.extra : 0;
  if (p.is_packed) {
    desc.q_rows = queries.rows + extra;
    desc.kv_rows = keys.rows + extra;
  }
  if (p.padding != 0 || p.in_one_matrix) {
    desc.q = q.layout, desc.k = k.layout, desc.v = v.layout, desc.o = o.layout;
  }
  const auto extent = [&](const Place &place, const Side &side) {
    return p.is_packed ? (side.rows + extra) * place.layout.row : desc.batch * place.layout.batch;
  };
  const auto memory = [&](const Place &place, const Side &side, double unused) {
    return HeadMemory(dtype, extent(place, side), p.offset, unused);
  };
  // Arrays of k and v are unused with one matrix.
  HeadMemory in_q = memory(q, queries, kNaN), in_k = memory(k, keys, kNaN),
             in_v = memory(v, keys, kNaN), in_d_o = memory(o, queries, kNaN),
             out_o = memory(o, queries, kCanaryValue), out_q = memory(q, queries, kCanaryValue),
             out_k = memory(k, keys, kCanaryValue), out_v = memory(v, keys, kCanaryValue);
  const bool one = p.in_one_matrix;
  HeadMemory &input_k = one ? in_q : in_k, &input_v = one ? in_q : in_v;
  HeadMemory &output_k = one ? out_q : out_k, &output_v = one ? out_q : out_v;
  in_q.put(c.q, q, queries.lengths);
  input_k.put(c.k, k, keys.lengths);
  input_v.put(c.v, v, keys.lengths);
  in_d_o.put(c.d_o, o, queries.lengths);

  const int64_t lse_rows = p.is_packed ? queries.rows + extra : desc.batch * desc.q_len;
  const DeviceBuffer<float> lse(desc.heads * lse_rows), sinks(c.sinks), dsinks(desc.heads);
  const DeviceBuffer<int32_t> q_ends(queries.ends), kv_ends(keys.ends), q_lengths(c.q_lengths),
      kv_lengths(c.kv_lengths);
  const DeviceValue<uint64_t> offset(c.offset);
  const GradStats stats;
  auto t = initialized<mp_attention_tensors_t>();
  if (p.is_packed)
    t.q_ends = q_ends.data(), t.kv_ends = kv_ends.data();
  else if (!c.q_lengths.empty())
    t.q_lengths = q_lengths.data();
  if (!p.is_packed && !c.kv_lengths.empty()) t.kv_lengths = kv_lengths.data();
  if (c.offset != 0) t.dropout_offset = offset.data();
  if (!c.sinks.empty()) t.sinks = sinks.data(), t.dsinks = dsinks.data();
  t.q = in_q.data(q, dtype), t.k = input_k.data(k, dtype), t.v = input_v.data(v, dtype);
  t.d_o = in_d_o.data(o, dtype), t.o = out_o.data(o, dtype), t.lse = lse.data();
  t.dq = out_q.data(q, dtype), t.dk = output_k.data(k, dtype), t.dv = output_v.data(v, dtype);
  t.stats = stats.pointers();
  KernelScope::call(desc, t);

  AttentionResult got;
  got.lse = HeadTensor(desc.batch, c.q.rows, desc.heads, 1, -kInfinity);
  for (HeadMemory *const output : {&out_o, &out_q, &out_k, &out_v}) output->download();
  const auto take = [&](HeadTensor &to, const HeadTensor &like, HeadMemory &from,
                        const Place &place, const Side &side) {
    to = HeadTensor(like.batch, like.rows, like.heads, like.dim);
    from.take(to, place, side.stored);
    if (extra == 0) return;
    HeadTensor rest(1, extra, like.heads, like.dim);  // belongs to no sequence
    from.take(rest, {place.layout, place.start, {side.rows}}, {extra});
    CHECK(std::ranges::count(rest.values, 0.0) == std::ssize(rest.values));
  };
  take(got.o, c.d_o, out_o, o, queries);
  take(got.dq, c.q, out_q, q, queries);
  take(got.dk, c.k, output_k, k, keys);
  take(got.dv, c.v, output_v, v, keys);
  for (const HeadMemory *const output : {&out_o, &out_q, &out_k, &out_v}) output->check_unused();
  CHECK(lse.guard_damage() == "");
  CHECK(dsinks.guard_damage() == "");
  const std::vector<float> all_lse = lse.download();
  for (int64_t b = 0; b < desc.batch; ++b)
    for (int64_t h = 0; h < desc.heads; ++h)
      for (int64_t i = 0; i < queries.stored[static_cast<size_t>(b)]; ++i)
        got.lse.at(b, i, h, 0) = all_lse[static_cast<size_t>(
            p.is_packed ? h * lse_rows + queries.first_rows[static_cast<size_t>(b)] + i
                        : (b * desc.heads + h) * desc.q_len + i)];
  for (int64_t h = 0; h < desc.heads; ++h)
    for (int64_t i = queries.rows; i < queries.rows + extra; ++i)
      CHECK(all_lse[static_cast<size_t>(h * lse_rows + i)] == -kInfinity);
  if (!c.sinks.empty()) got.dsinks = dsinks.download();
  std::vector<double> gradients;
  for (const HeadTensor *const tensor : {&got.dq, &got.dk, &got.dv})
    gradients.insert(gradients.end(), tensor->values.begin(), tensor->values.end());
  stats.check(gradients);
  return got;
}

/// Returns the number of elements whose bits differ.
inline int64_t count_different(const std::vector<double> &a, const std::vector<double> &b) {
  if (a.size() != b.size()) return -1;
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i)
    count +=
        !same_value(a[i], b[i]) || (!std::isnan(a[i]) && std::signbit(a[i]) != std::signbit(b[i]));
  return count;
}

inline void check_same(const AttentionResult &a, const AttentionResult &b) {
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    CAPTURE(i);
    CHECK(count_different(a.tensors()[i]->values, b.tensors()[i]->values) == 0);
  }
}

}  // namespace mptest
