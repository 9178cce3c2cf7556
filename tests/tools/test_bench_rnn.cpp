// Tests of bench/suites/rnn_data.h and bench/peers/cudnn_rnn.h: recurrent layers compared with a
// stub of cuDNN (tests/stub/cudnn.c), which has another order of weights.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bench/suites/rnn_data.h"
#include "tests/support/testing.h"

using namespace mpbench;
using Catch::Matchers::ContainsSubstring;

namespace {

RnnShape shape_of(const std::string &cell, const std::string &pass,
                  const std::string &sizes = "24,3,7") {
  RnnShape shape = parse_rnn(sizes + ',' + cell);
  shape.set = "deepbench_rnn_train";
  shape.pass = pass;
  return shape;
}

/// Loads the stub, so that the loader finds it by name before a real library.
Cudnn stub_cudnn(const Machine &machine) {
  const auto tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  REQUIRE(dlopen((tests / "stub/libcudnn.so.9").c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
  return Cudnn(machine.context(), machine.stream());
}

int64_t elems_of(const RnnShape &shape) {
  return shape.timesteps * shape.batch * shape.hidden;
}

std::vector<float> values_in(const Machine &machine, const void *data, mp_dtype_t dtype,
                             int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  check(mp_cast(machine.context(), data, dtype, values.data(), MP_FP32, count, machine.stream()));
  machine.synchronize();
  return values;
}

}  // namespace

TEST_CASE("bench: data that calls consume is prepared before each batch", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  int64_t left = 0, batches = 0;
  bool has_run_short = false;
  const Work work([&] { has_run_short |= --left < 0; },
                  [&] {
                    left = 4;
                    ++batches;
                  },
                  4);
  const std::vector<Timing> timings = Stopwatch(machine).time({work}, brief_pace(machine));
  CHECK(!has_run_short);
  CHECK(batches >= timings[0].batches);
  CHECK(timings[0].calls_per_batch <= 3);
}

TEST_CASE("bench: every batch of backward data reads fresh forward results", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const std::string cell = GENERATE("lstm", "gru");
  CAPTURE(cell);
  const RnnShape shape = shape_of(cell, "dgrad");
  RnnData data(machine, shape, make_desc(shape, MP_FP16, MP_DTYPE_NONE));
  const Work work = data.own();
  REQUIRE(data.sets() >= 2);
  CHECK(work.most_calls() == data.sets());
  const auto dx = [&] {
    return values_in(machine, data.all_sets()[0].dx, MP_FP16, elems_of(shape));
  };
  const auto call_all = [&] {
    for (int64_t i = 0; i < data.sets(); ++i) work();
  };
  call_all();
  const std::vector<float> first = dx();
  CHECK(std::count(first.begin(), first.end(), 0.0f) < 20);
  call_all();
  CHECK(dx() != first);  // so prepare() is required
  work.prepare();
  call_all();
  CHECK(dx() == first);
}

TEST_CASE("bench: other passes of a recurrent layer consume no data", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const RnnShape forward = shape_of("gru", "fprop"), weights = shape_of("gru", "wgrad");
  RnnData a(machine, forward, make_desc(forward, MP_FP16, MP_DTYPE_NONE));
  CHECK(a.own().most_calls() > 1000);
  RnnData b(machine, weights, make_desc(weights, MP_FP16, MP_FP16));
  const Work work = b.own();
  CHECK(work.most_calls() > 1000);
  const auto dw = [&] { return values_in(machine, b.all_sets()[0].dw_hh, MP_FP16, 3 * 24 * 24); };
  for (int64_t i = 0; i < b.sets(); ++i) work();
  const std::vector<float> first = dw();
  CHECK(std::count(first.begin(), first.end(), 0.0f) < 20);
  for (int64_t i = 0; i < b.sets(); ++i) work();
  CHECK(dw() == first);
  // Both backward passes in one call consume it.
  CHECK(b.own_backward().most_calls() == std::max<int64_t>(2, b.sets()));
}

TEST_CASE("bench: a layer with input weights has their gradients, as in torch", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const std::string pass = GENERATE("fprop", "dgrad", "wgrad");
  CAPTURE(pass);
  const RnnShape shape = shape_of("lstm", pass);
  mp_rnn_desc_t desc = make_desc(shape, MP_FP16, MP_DTYPE_NONE);
  desc.flags &= ~uint32_t{MP_RNN_FLAG_SKIP_INPUT};
  RnnData data(machine, shape, desc);
  CHECK(data.all_sets()[0].w_ih != nullptr);
  const Work work = pass == "wgrad" ? data.own_backward() : data.own();
  work();
  if (pass != "wgrad") return;
  const std::vector<float> dw_ih =
      values_in(machine, data.all_sets()[0].dw_ih, MP_FP32, 4 * 24 * 24);
  CHECK(std::count(dw_ih.begin(), dw_ih.end(), 0.0f) < 20);
}

TEST_CASE("bench: mpcore and cuDNN compute the same recurrent layer", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const Cudnn library = stub_cudnn(machine);
  const std::string cell = GENERATE("vanilla", "lstm", "gru");
  const std::string pass = GENERATE("fprop", "dgrad", "wgrad");
  const RnnAlgo algo = GENERATE(RnnAlgo::kStandard, RnnAlgo::kPersistDynamic);
  CAPTURE(cell, pass, name_of(algo));
  const RnnShape shape = shape_of(cell, pass);
  RnnData data(machine, shape, make_desc(shape, MP_FP32, MP_DTYPE_NONE));
  CHECK(data.is_comparable() == (cell != "vanilla" || pass == "fprop"));
  const CudnnRnn peer(library, shape, MP_FP32, algo, data.all_sets());
  CHECK(peer.workspace_bytes() >= 512);
  CHECK(peer.reserve_bytes() == data.reserve_bytes() + 16);  // the stub saves two addresses
  CHECK(data.difference_to(peer) == "");
  // Repeatable, and the same when interleaved.
  const Work work = data.peer(peer);
  work.prepare();
  work();
  CHECK(data.difference_to(peer) == "");

  // A difference is found.
  std::vector<RnnTensors> others = data.all_sets();
  for (RnnTensors &set : others) set.h0 = set.x;
  const CudnnRnn wrong(library, shape, MP_FP32, algo, others);
  CHECK(data.difference_to(wrong) != "");
}

TEST_CASE("bench: inference of recurrent layers saves no data for gradients", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const Cudnn library = stub_cudnn(machine);
  RnnShape shape = shape_of("gru", "fprop");
  shape.set = "deepbench_rnn_infer";
  RnnData data(machine, shape, make_desc(shape, MP_FP32, MP_DTYPE_NONE));
  CHECK(data.reserve_bytes() == 0);
  const CudnnRnn peer(library, shape, MP_FP32, RnnAlgo::kStandard, data.all_sets());
  CHECK(peer.reserve_bytes() == 0);
  CHECK(data.difference_to(peer) == "");
}

TEST_CASE("bench: an algorithm that cuDNN rejects is not used", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const Cudnn library = stub_cudnn(machine);
  const RnnShape shape = shape_of("lstm", "fprop");
  RnnData data(machine, shape, make_desc(shape, MP_FP32, MP_DTYPE_NONE));
  CHECK_THROWS_WITH(CudnnRnn(library, shape, MP_FP32, RnnAlgo::kPersistStatic, data.all_sets()),
                    "cudnnSetRNNDescriptor_v8: NOT_SUPPORTED");
}

// Checks the number of roundings in tolerance_of_rnn.
TEST_CASE("bench: layers in 16 bits are within two roundings of FP32", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const std::string cell = GENERATE("lstm", "gru");
  const std::string pass = GENERATE("fprop", "dgrad", "wgrad");
  const mp_dtype_t dtype = GENERATE(from_range(mptest::kHalfTypes));
  CAPTURE(cell, pass, mp_dtype_name(dtype));
  const RnnShape shape = shape_of(cell, pass, "64,8,50");
  const bool is_weights = pass == "wgrad";
  const int64_t weights = shape.gates() * 64 * 64, elems = elems_of(shape);
  const auto result_of = [&](RnnData &data) {
    const RnnTensors &set = data.all_sets()[0];
    const mp_dtype_t out = out_dtype(shape, data.desc());
    if (is_weights)
      check(mp_memset(machine.context(), set.dw_hh, 0,
                      static_cast<size_t>(weights * dtype_bytes(out)), machine.stream()));
    const Work work = data.own();
    work.prepare();
    work();  // on the first set
    return values_in(machine,
                     is_weights        ? set.dw_hh
                     : pass == "fprop" ? set.y
                                       : set.dx,
                     out, is_weights ? weights : elems);
  };
  RnnData rounded(machine, shape, make_desc(shape, dtype, MP_DTYPE_NONE));
  RnnData exact(machine, shape, make_desc(shape, MP_FP32, MP_DTYPE_NONE));
  const RnnTensors &from = rounded.all_sets()[0], &to = exact.all_sets()[0];
  const auto copy = [&](const void *source, mp_dtype_t type, void *target, int64_t count) {
    if (source == nullptr) return;
    const std::vector<float> values = values_in(machine, source, type, count);
    std::copy(values.begin(), values.end(), static_cast<float *>(target));
  };
  copy(from.x, dtype, to.x, elems);
  copy(from.dy, dtype, to.dy, elems);
  copy(from.h0, dtype, to.h0, shape.batch * 64);
  copy(from.w_hh, dtype, to.w_hh, weights);
  copy(from.b_ih, MP_FP32, to.b_ih, shape.gates() * 64);
  copy(from.b_hh, MP_FP32, to.b_hh, shape.gates() * 64);
  const std::vector<float> own = result_of(rounded), expected = result_of(exact);
  double largest = 0, off = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    largest = std::max(largest, std::fabs(double{expected[i]}));
    off = std::max(off, std::fabs(double{own[i]} - double{expected[i]}));
  }
  CHECK(off > 0);
  CHECK(off < 2 * unit_roundoff(dtype) * largest);
  CHECK(off < tolerance_of_rnn(shape, dtype, largest).absolute);
}
