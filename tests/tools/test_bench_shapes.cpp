// Tests of bench/shapes: DeepBench lines are column-major, LLM lines are row-major, convolution
// lines are layers, and the file of ResNet-50 is that network.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "bench/shapes/batched_shapes.h"
#include "bench/shapes/conv_shapes.h"
#include "bench/shapes/epilogue_shapes.h"
#include "bench/shapes/layer_shapes.h"
#include "bench/shapes/rnn_shapes.h"
#include "bench/shapes/shapes.h"
#include "tests/support/catch.h"
#include "tests/support/testing.h"

namespace {

/// Replaces a field of a line.
std::string with_field(const std::string &line, int field, const std::string &value) {
  size_t begin = 0;
  for (; field > 0; --field) begin = line.find(',', begin) + 1;
  const size_t end = std::min(line.find(',', begin), line.size());
  return line.substr(0, begin) + value + line.substr(end);
}

}  // namespace

// The row-major product C^T = op(B)^T op(A)^T of the same arrays: B is the first operand.
TEST_CASE("bench: a DeepBench line is column-major", "[bench]") {
  for (const auto &[line, name] : {std::pair{"5,3,4,0,0", "NN 3x5x4"},
                                   {"5,3,4,1,0", "NT 3x5x4"},
                                   {"5,3,4,0,1", "TN 3x5x4"},
                                   {"5,3,4,1,1", "TT 3x5x4"}}) {
    const mpbench::Shape shape = mpbench::parse_deepbench(line);
    CHECK(shape.name() == name);
    CHECK(shape.flop() == 2.0 * 5 * 3 * 4);
    const mp_gemm_desc_t desc = mpbench::make_desc(shape, MP_FP16, MP_DTYPE_NONE);
    CHECK((desc.m == 3 && desc.n == 5 && desc.k == 4));
    CHECK(desc.op_a == (name[0] == 'N' ? MP_OP_N : MP_OP_T));
    CHECK(desc.op_b == (name[1] == 'N' ? MP_OP_N : MP_OP_T));
    CHECK(desc.ld_a == (name[0] == 'N' ? 4 : 3));
    CHECK(desc.ld_b == (name[1] == 'N' ? 5 : 4));
    CHECK(desc.ld_d == 5);
    CHECK(desc.beta == 0.0f);
  }
}

TEST_CASE("bench: an LLM line is row-major", "[bench]") {
  const mpbench::Shape shape = mpbench::parse_llm("6,7,8,NT,a comment, with a comma");
  REQUIRE(shape.name() == "NT 6x7x8");
  REQUIRE(shape.comment == "a comment, with a comma");
  const mp_gemm_desc_t desc = mpbench::make_desc(shape, MP_BF16, MP_DTYPE_NONE);
  REQUIRE(desc.m == 6);
  REQUIRE(desc.ld_a == 8);
  REQUIRE(desc.ld_b == 8);
  REQUIRE(desc.dtype_cd == MP_BF16);
}

TEST_CASE("bench: a weight gradient accumulates in fp32 by default", "[bench]") {
  const mpbench::Shape wgrad = mpbench::parse_llm("6,7,8,TN,");
  const mp_gemm_desc_t usual = mpbench::make_desc(wgrad, MP_FP16, MP_DTYPE_NONE);
  REQUIRE(usual.dtype_cd == MP_FP32);
  REQUIRE(usual.beta == 1.0f);
  REQUIRE(usual.ld_a == 6);
  REQUIRE(usual.ld_b == 7);

  const mp_gemm_desc_t told = mpbench::make_desc(wgrad, MP_FP16, MP_FP16);
  REQUIRE(told.dtype_cd == MP_FP16);
  REQUIRE(told.beta == 0.0f);
}

TEST_CASE("bench: malformed lines are rejected", "[bench]") {
  struct Format {
    void (*parse)(const std::string &);
    std::string line;
    int first, last;  ///< fields that are extents
    std::vector<std::string> wrong;
  };
  using namespace mpbench;
  const std::string huge = "1000000000";  // each extent fits, but not their product
  const Format formats[] = {
      {[](auto &line) { parse_deepbench(line); }, "1,2,3,0,0", 0, 2, {"1,2,3,2,0", "1,2,3,0,0,0"}},
      {[](auto &line) { parse_llm(line); }, huge + ",1,1,NT,", 0, 2, {"1,2,3,NX,", "1,2,3,N,"}},
      {[](auto &line) { parse_batched(line); },
       "strided,2,1,2,3,NT,",
       1,
       4,
       {"rugged,3,6,8,10,NT,", "ragged,3,6,8,10,TN,",
        "strided,1000000," + huge + ',' + huge + ",1,NT,"}},
      {[](auto &line) { parse_rnn(line); },
       "32,5,7,gru",
       0,
       2,
       {"32,5,7,rnn", "32,5,7,gru,1", huge + ',' + huge + ',' + huge + ",lstm"}},
      {[](auto &line) { parse_layer("layers", line); },
       "2,6,8,7,3,2,1,maxpool,",
       0,
       5,
       {"2,6,8,7,3,2,-1,maxpool,", "2,6,8,7,9,2,0,maxpool,", "2,6,8,7,1,1,0,norm,",
        "2,6,8,7,3,1,1,batchnorm,", huge + ',' + huge + ',' + huge + ",1,1,1,0,batchnorm,"}},
      {[](auto &line) { parse_conv(line); },
       "8,8,3,4,5,3,3,1,1,1,1",
       0,
       6,
       {"8,8,3,4,5,3,3,1,1,x,1", "8,8,3,4,5,3,3,1,-1,1,1", "8,8,3,4,5,3,3,1,1,1,0",
        "8,8,3,4,5,3,3,1,1,1,1,2", "8,8,3,4,5,9,9,0,0,1,1", "8,8,3,4,5,3,3,1,1,1,1,x,conv1",
        huge + ',' + huge + ',' + huge + ",1,1,1,1,0,0,1,1"}}};
  for (const auto &[parse, line, first, last, wrong] : formats) {
    CHECK_NOTHROW(parse(line));
    std::vector<std::string> lines = wrong;
    lines.insert(lines.end(), {"", line.substr(0, line.rfind(','))});
    // Extents of 0 crashed the programs; 2^62 would overflow the bytes of a matrix.
    for (int field = first; field <= last; ++field)
      for (const char *extent :
           {"", "x", "0", "-1", "1000000001", "4611686018427387904", "99999999999999999999"})
        lines.push_back(with_field(line, field, extent));
    for (const std::string &each : lines) {
      CAPTURE(each);
      CHECK_THROWS_AS(parse(each), std::runtime_error);
    }
  }
}

TEST_CASE("bench: a convolution line has width before height", "[bench]") {
  mpbench::ConvShape shape = mpbench::parse_conv("700,161,1,4,32,20,5,3,2,2,1");
  CHECK(shape.name() == "fprop n4 161x700x1 k32 5x20 s1x2 p2x3");
  shape.op = MP_CONV_WGRAD;
  CHECK(shape.name() == "wgrad n4 161x700x1 k32 5x20 s1x2 p2x3");

  const mp_conv2d_desc_t desc = mpbench::make_desc(shape, MP_FP16, MP_DTYPE_NONE);
  int32_t p = 0, q = 0;
  REQUIRE(mp_conv2d_get_output_size(&desc, &p, &q) == MP_SUCCESS);
  CHECK(p == 161);
  CHECK(q == 344);
  CHECK(shape.flop() == 2.0 * 4 * p * q * 32 * 5 * 20 * 1);
  CHECK(shape.x_elems() == 4.0 * 161 * 700);
  CHECK(shape.y_elems() == 4.0 * p * q * 32);
  CHECK(shape.filter_elems() == 32.0 * 5 * 20);
  CHECK(desc.dtype == MP_FP16);
  CHECK(desc.dtype_out == MP_FP16);
  CHECK(mpbench::make_desc(shape, MP_FP16, MP_FP32).dtype_out == MP_FP32);
}

TEST_CASE("bench: a recurrent layer has DeepBench's GEMMs", "[bench]") {
  const std::string cell = GENERATE("vanilla", "gru", "lstm");
  const int64_t gates = cell == "vanilla" ? 1 : cell == "gru" ? 3 : 4;
  CAPTURE(cell);
  mpbench::RnnShape layer = mpbench::parse_rnn("32,5,7," + cell);
  const double flop = 2.0 * static_cast<double>(gates) * 32 * 32 * 5 * 7;
  const auto gemms = [&](const char *pass, const std::string &name, int64_t calls) {
    layer.pass = pass;
    const mpbench::Shape shape = layer.gemms();
    CHECK(shape.name() == name);
    CHECK(shape.calls == calls);
    CHECK(shape.flop() == flop);
    CHECK(layer.name() == pass + (' ' + cell) + " h32 n5 t7");
    return shape;
  };
  const std::string gates_size = std::to_string(32 * gates);
  CHECK(!gemms("fprop", "NT 5x" + gates_size + "x32", 7).is_wgrad);
  CHECK(!gemms("dgrad", "NN 5x32x" + gates_size, 7).is_wgrad);
  CHECK(gemms("wgrad", "TN " + gates_size + "x32x35", 1).is_wgrad);
}

TEST_CASE("bench: a recurrent layer matches DeepBench's", "[bench]") {
  const std::string cell = GENERATE("vanilla", "gru", "lstm");
  CAPTURE(cell);
  mpbench::RnnShape layer = mpbench::parse_rnn("32,5,7," + cell);
  const int64_t weights = 32 * 32 * layer.gates(), elems = 7 * 5 * 32, kept = 1000;
  const auto desc = [&](const char *pass, mp_dtype_t out) {
    layer.pass = pass;
    return mpbench::make_desc(layer, MP_FP16, out);
  };
  const mp_rnn_desc_t forward = desc("fprop", MP_FP32);
  CHECK(forward.cell == (cell == "lstm" ? MP_RNN_LSTM : cell == "gru" ? MP_RNN_GRU : MP_RNN_RELU));
  CHECK(forward.flags == MP_RNN_FLAG_SKIP_INPUT);
  CHECK(forward.layers == 1);
  CHECK(forward.input_size == 32);
  CHECK(forward.hidden_size == 32);
  CHECK(forward.batch == 5);
  CHECK(forward.timesteps == 7);
  // Only dW has the output type, like the GEMM.
  CHECK(mpbench::out_dtype(layer, forward) == MP_FP16);
  CHECK(mpbench::min_bytes(layer, forward, kept) == 2 * (weights + 2 * elems) + kept);
  CHECK(mpbench::min_bytes(layer, desc("dgrad", MP_FP32), kept) ==
        2 * (weights + 2 * elems) + kept);
  const mp_rnn_desc_t adds = desc("wgrad", MP_DTYPE_NONE), writes = desc("wgrad", MP_FP16);
  CHECK(mpbench::out_dtype(layer, adds) == MP_FP32);
  CHECK(adds.flags == (MP_RNN_FLAG_SKIP_INPUT | MP_RNN_FLAG_ACCUMULATE));
  CHECK(mpbench::min_bytes(layer, adds, kept) == 2 * 4 * weights + kept);
  CHECK(mpbench::out_dtype(layer, writes) == MP_FP16);
  CHECK(writes.flags == MP_RNN_FLAG_SKIP_INPUT);
  CHECK(mpbench::min_bytes(layer, writes, kept) == 2 * weights + kept);
  // Inference saves no data for gradients.
  layer.set = "deepbench_rnn_infer";
  layer.pass = "fprop";
  CHECK(!layer.is_training());
  CHECK(mpbench::min_bytes(layer, forward, kept) == 2 * (weights + 2 * elems));
}

// He et al. 2016, table 1, count 3.8e9 multiplications per image, with the strides in the 1 x 1
// convolutions.
TEST_CASE("bench: the file of ResNet-50 has its 53 convolutions at two batch sizes", "[bench]") {
  const char *const path = "bench/shapes/resnet50.csv";
  if (!std::ifstream(path)) return mptest::skip("not started in the repository");
  for (const int32_t batch : {32, 256}) {
    int64_t layers = 0;
    double multiplications = 0;
    for (const auto &shape : mpbench::read_shape_lines(path, mpbench::parse_conv)) {
      if (shape.n != batch) continue;
      layers += shape.layers;
      multiplications += static_cast<double>(shape.layers) * shape.flop() / 2 / batch;
    }
    CHECK(layers == 53);
    CHECK(multiplications == 4087136256.0);
  }
}

TEST_CASE("bench: lists of numbers are combined, the last list changing fastest", "[bench]") {
  using Lines = std::vector<std::string>;
  CHECK(mpbench::combinations("1/2,3,4/5") == Lines{"1,3,4", "1,3,5", "2,3,4", "2,3,5"});
  CHECK(mpbench::combinations("1,NT,k/v") == Lines{"1,NT,k/v"});  // text
  CHECK_THROWS_AS(mpbench::parse_llm(mpbench::combinations("/1,2,3,NT,").front()),
                  std::runtime_error);
}

TEST_CASE("bench: strided batches, pointer arrays and groups have the listed GEMMs", "[bench]") {
  mpbench::BatchedShape shape = mpbench::parse_batched("strided,3,6,8,10,NT,a comment");
  CHECK(shape.name() == "strided 3 x NT 6x8x10");
  CHECK(shape.flop() == 3 * 2.0 * 6 * 8 * 10);
  const mp_gemm_desc_t strided = mpbench::make_desc(shape, MP_FP16);
  CHECK(strided.batch_count == 3);
  CHECK(strided.stride_a == 60);
  CHECK(strided.stride_b == 80);
  CHECK(strided.stride_d == 48);
  CHECK(mpbench::min_bytes(shape, MP_FP16) == 2 * 3 * (60 + 80 + 48));

  shape.form = mpbench::BatchForm::kPointers;
  const mp_gemm_desc_t pointers = mpbench::make_desc(shape, MP_FP16);
  CHECK(pointers.batch_count == 3);
  CHECK(pointers.stride_a == 0);
  CHECK(pointers.stride_d == 0);

  shape.form = mpbench::BatchForm::kGrouped;
  const std::vector<mpbench::ItemOffsets> at = shape.offsets();
  // m is 3, 6 and 9, on average 6.
  REQUIRE(at.size() == 4);
  CHECK(shape.rows() == 18);
  CHECK(at[2].first == 90);
  CHECK(at[2].second == 160);
  CHECK(at[2].out == 72);
  CHECK(at[3].out == 18 * 8);
  CHECK(shape.flop() == 18 * 2.0 * 8 * 10);

  shape.form = mpbench::BatchForm::kRagged;
  CHECK(shape.rows() == 18);
  const mp_gemm_desc_t ragged = mpbench::make_desc(shape, MP_FP16);
  CHECK(ragged.m == 18);
  CHECK(ragged.batch_count == 3);
  CHECK(ragged.stride_a == 0);
  CHECK(ragged.stride_b == 80);
  CHECK(ragged.stride_d == 0);
}

TEST_CASE("bench: an epilogue reads and writes its own tensors", "[bench]") {
  const mpbench::Shape gemm = mpbench::parse_llm("6,8,10,TN,");
  using mpbench::Epilogue;
  const auto desc = [&](Epilogue epilogue) {
    return mpbench::make_desc(mpbench::EpilogueShape{gemm, epilogue}, MP_FP16);
  };
  // D is in 16 bits unless it is accumulated.
  CHECK(desc(Epilogue::kAmaxFoundInf).dtype_cd == MP_FP16);
  CHECK(desc(Epilogue::kAmaxFoundInf).beta == 0);
  CHECK(desc(Epilogue::kAccumulateFp32).dtype_cd == MP_FP32);
  CHECK(desc(Epilogue::kAccumulateFp32).beta == 1);
  const auto bytes = [&](Epilogue epilogue) {
    return mpbench::min_bytes(mpbench::EpilogueShape{gemm, epilogue}, desc(epilogue));
  };
  const double operands = 2 * (60 + 80);
  CHECK(bytes(Epilogue::kBias) == operands + 2 * 48);
  CHECK(bytes(Epilogue::kBiasGeluAux) == operands + 2 * 2 * 48);
  CHECK(bytes(Epilogue::kDgeluDbias) == operands + 2 * 2 * 48);
  CHECK(bytes(Epilogue::kAccumulateFp32) == operands + 2 * 4 * 48);
}

TEST_CASE("bench: a layer moves each array once per required pass", "[bench]") {
  const auto shape_of = [](const char *line, bool is_forward) {
    mpbench::LayerShape shape = mpbench::parse_layer("layers", line);
    shape.is_forward = is_forward;
    return shape;
  };
  const auto bytes = [&](const char *line, bool is_forward) {
    return shape_of(line, is_forward).min_bytes(MP_FP16);
  };
  const char *const norm = "2,3,5,7,1,1,0,batchnorm,";
  CHECK(bytes(norm, true) == 2 * 3 * 210);
  CHECK(bytes(norm, false) == 2 * 5 * 210);
  const char *const pool = "2,6,8,7,3,2,1,maxpool,a comment";  // 3x4 windows
  CHECK(bytes(pool, true) == 2 * (672 + 168));
  CHECK(bytes(pool, false) == 2 * (672 + 168) + 168);
  CHECK(bytes("2,6,8,7,3,2,1,avgpool,", false) == 2 * (672 + 168));
  const char *const loss = "6,1,1,10,1,1,0,softmax_xent,";
  CHECK(bytes(loss, true) == 2 * 60);
  CHECK(bytes(loss, false) == 2 * 2 * 60);
  // As in the results before the suites were joined.
  CHECK(shape_of(norm, false).name() == "batchnorm backward n2 3x5x7");
  CHECK(shape_of(pool, true).name() == "maxpool forward n2 6x8x7 3x3 s2 p1");
  CHECK(shape_of(loss, true).name() == "softmax_xent 6x10");
  CHECK(shape_of(loss, false).name() == "softmax_xent, gradient 6x10");
}
