// mp_grads_all_reduce between threads: exact sums, both factors, non-finite gradients, and the
// callbacks that are called.
#include <cstring>
#include <deque>

#include "ranks.h"

using namespace mptest;

namespace {

/// Equal tensors on each rank.
struct Ranks {
  std::deque<TensorSet> grads;

  Ranks(int count, const std::vector<TensorSpec> &specs) {
    for (int rank = 0; rank < count; ++rank) grads.emplace_back(specs);
  }
  int count() const { return static_cast<int>(grads.size()); }
  TensorSet &at(int rank) { return grads[static_cast<size_t>(rank)]; }

  void all_reduce(float pre, float post) {
    on_all_ranks(count(), [&](int rank, const mp_comm_t &comm) {
      return mp_grads_all_reduce(at(rank).list(), &comm, pre, post, kStream);
    });
  }
};

TensorValues sum(const TensorValues &x, const TensorValues &y) {
  TensorValues result = x;
  for (size_t t = 0; t < x.size(); ++t) {
    for (size_t i = 0; i < x[t].size(); ++i) result[t][i] += y[t][i];
  }
  return result;
}

/// Returns values * factor, rounded to the types of the tensors.
TensorValues rounded(const std::vector<TensorSpec> &specs, TensorValues values, double factor) {
  for (size_t t = 0; t < values.size(); ++t) {
    for (double &x : values[t]) x = round_to(specs[t].dtype, x * factor);
  }
  return values;
}

void check_sums(int count, const std::vector<TensorSpec> &specs, float pre, float post,
                uint64_t seed) {
  Ranks ranks(count, specs);
  Random random(seed);
  TensorValues wanted = constant_values(specs, 0.0);
  for (int rank = 0; rank < count; ++rank) {
    const TensorValues values = integer_values(specs, random, 30);
    ranks.at(rank).upload(values);
    wanted = sum(wanted, rounded(specs, values, pre));
  }
  ranks.all_reduce(pre, post);
  CAPTURE(count, pre, post);
  for (int rank = 0; rank < count; ++rank) {
    CHECK(ranks.at(rank).download() == rounded(specs, wanted, post));
  }
}

}  // namespace

TEST_CASE("all-reduce: integer sums are exact on every rank", "[comm]") {
  uint64_t seed = 1;
  for (const int count : {1, 2, 3, 4}) check_sums(count, awkward_tensors(), 1.0f, 1.0f, ++seed);
}

TEST_CASE("all-reduce: the factors multiply before and after the sum", "[comm]") {
  uint64_t seed = 10;
  for (const int count : {1, 2, 4}) {
    for (const float pre : {0.25f, 1.0f, 2.0f}) {
      for (const float post : {0.5f, 1.0f, 3.0f}) {
        check_sums(count, small_tensors(), pre, post, ++seed);
      }
    }
  }
}

TEST_CASE("all-reduce: a non-finite gradient of one rank reaches every rank", "[comm]") {
  for (const mp_dtype_t dtype : kDtypes) {
    Ranks ranks(3, {{dtype, 40}});
    for (TensorSet &grads : ranks.grads) grads.fill(1.0);
    ranks.at(1).inject(0, 3, encode(dtype, HUGE_VAL));
    ranks.at(2).inject(0, 7, encode(dtype, std::nan("")));
    ranks.at(0).inject(0, 9, encode(dtype, HUGE_VAL));
    ranks.at(2).inject(0, 9, encode(dtype, -HUGE_VAL));
    ranks.all_reduce(1.0f, 1.0f);
    for (const TensorSet &grads : ranks.grads) {
      const std::vector<double> values = grads.download().front();
      CHECK(values[3] == HUGE_VAL);
      CHECK(std::isnan(values[7]));
      CHECK(std::isnan(values[9]));
      CHECK(std::count(values.begin(), values.end(), 3.0) == 37);
    }
  }
}

TEST_CASE("all-reduce: factors of 1 leave gradients unchanged", "[comm][short]") {
  TensorSet grads({{MP_FP32, 9}});
  grads.fill(1.0);
  grads.inject(0, 4, 0x7f800001);  // a signaling NaN: any product would make it quiet
  const std::vector<uint8_t> bits = grads.bits();
  RecordedComm recorded;
  const mp_comm_t two = recorded.table(), one = mp_comm_default();
  require_ok(mp_grads_all_reduce(grads.list(), &two, 1.0f, 1.0f, kStream));
  require_ok(mp_grads_all_reduce(grads.list(), &one, 1.0f, 1.0f, kStream));
  CHECK(grads.bits() == bits);
}

TEST_CASE("all-reduce: each non-empty tensor takes one in-place call within one group",
          "[comm][short]") {
  TensorSet grads(small_tensors());
  grads.fill(1.0);
  RecordedComm recorded;
  mp_comm_t comm = recorded.table();
  std::vector<std::string> wanted = {"group_begin",
                                     "all_reduce 33 of type 1, sum",
                                     "all_reduce 40 of type 2, sum",
                                     "all_reduce 7 of type 3, sum",
                                     "all_reduce 8 of type 1, sum",
                                     "group_end"};
  require_ok(mp_grads_all_reduce(grads.list(), &comm, 0.5f, 2.0f, kStream));
  CHECK(recorded.calls == wanted);

  recorded.calls.clear();
  comm.group_begin = comm.group_end = nullptr;
  require_ok(mp_grads_all_reduce(grads.list(), &comm, 0.5f, 2.0f, kStream));
  CHECK(recorded.calls == std::vector<std::string>(wanted.begin() + 1, wanted.end() - 1));
}

TEST_CASE("all-reduce: a failing callback ends the call and closes the group", "[comm][short]") {
  struct {
    std::string failing;
    size_t calls;
    std::string sentence;
  } const cases[] = {
      {"group_begin", 1, "mp_grads_all_reduce: comm->group_begin returned 5"},
      {"all_reduce", 3, "mp_grads_all_reduce: comm->all_reduce returned 5"},
      {"all_reduce 7", 5, "mp_grads_all_reduce: comm->all_reduce returned 5"},
      {"group_end", 6, "mp_grads_all_reduce: comm->group_end returned 5"},
  };
  for (const auto &c : cases) {
    TensorSet grads(small_tensors());
    grads.fill(1.0);
    RecordedComm recorded;
    recorded.failing = c.failing;
    recorded.code = 5;
    const mp_comm_t comm = recorded.table();
    const mp_status_t status = mp_grads_all_reduce(grads.list(), &comm, 1.0f, 1.0f, kStream);
    CHECK(mp_last_error() == c.sentence);
    expect_status(status, MP_ERROR_COMM);
    CHECK(recorded.calls.size() == c.calls);
    CHECK((c.failing == "group_begin" || recorded.calls.back() == "group_end"));
  }
}
