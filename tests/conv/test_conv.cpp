// mp_conv2d_fprop, _dgrad, _wgrad: every kernel by name on typical, awkward and generated problems.
//
// Integer inputs are compared bit for bit, reals with the bounds of bounds.h.  OutputRun::verify
// also checks guard zones and inputs, and the output is initially NaN if it must not be read.
#include <cstdlib>
#include <iterator>

#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

void check_all(const std::vector<ConvCase> &shapes, const Types &types,
               void (*change)(ConvCase &) = nullptr) {
  for (const ConvCase &shape : shapes) {
    for (const mp_conv_op_t op : kConvOps) {
      ConvCase c = with(shape, op, types);
      if (change != nullptr) change(c);
      check_conv(c);
    }
  }
}

/// Checks each shape with one element of kOneOfEach, cyclically.
void check_all_with_types_in_turn(const std::vector<ConvCase> &shapes) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    check_all({shapes[i]}, kOneOfEach[i % std::size(kOneOfEach)]);
  }
}

}  // namespace

TEST_CASE("conv: the oracle equals results computed by hand", "[conv][short]") {
  // Cross-correlation: with one pixel of padding on the left, the filter's last tap is read first.
  oracle::Convolution line{.n = 1,
                           .h = 1,
                           .w = 3,
                           .c = 1,
                           .k = 1,
                           .r = 1,
                           .s = 2,
                           .pad_top = 0,
                           .pad_bottom = 0,
                           .pad_left = 1,
                           .pad_right = 0,
                           .stride_h = 1,
                           .stride_w = 1,
                           .dilation_h = 1,
                           .dilation_w = 1,
                           .groups = 1};
  const std::vector<double> x = {1, 2, 3}, f = {1, 10}, dy = {100, 200, 300};
  using Values = std::vector<double>;
  CHECK(oracle::convolve(line, MP_CONV_FPROP, x, f).sum.values == Values{10, 21, 32});
  CHECK(oracle::convolve(line, MP_CONV_DGRAD, dy, f).sum.values == Values{1200, 2300, 3000});
  CHECK(oracle::convolve(line, MP_CONV_WGRAD, x, dy).sum.values == Values{800, 1400});

  line.stride_w = 2;
  CHECK(oracle::convolve(line, MP_CONV_FPROP, x, f).sum.values == Values{10, 32});
  line.dilation_w = 3;
  line.pad_right = 1;
  CHECK(oracle::convolve(line, MP_CONV_FPROP, x, f).sum.values == Values{30});

  // Two groups with two input channels and one output: channels 2 and 3 give the second output.
  oracle::Convolution groups = line;
  groups.w = 1, groups.c = 4, groups.k = 2, groups.s = 1, groups.pad_left = groups.pad_right = 0;
  groups.groups = 2;
  CHECK(oracle::convolve(groups, MP_CONV_FPROP, {1, 2, 3, 4}, {1, 10, 100, 1000}).sum.values ==
        Values{21, 4300});

  // Row-major order in image and filter.
  oracle::Convolution square = line;
  square.h = square.w = square.r = square.s = 2, square.dilation_w = square.stride_w = 1;
  square.pad_left = square.pad_right = 0;
  CHECK(oracle::convolve(square, MP_CONV_FPROP, {1, 2, 3, 4}, {1, 10, 100, 1000}).sum.values ==
        Values{4321});
}

TEST_CASE("conv: typical layers are exact in every type", "[conv]") {
  for (const Types &types : kAllTypes) check_all(usual_convs(), types);
}

TEST_CASE("conv: typical layers are exact", "[conv][short]") {
  check_all_with_types_in_turn(usual_convs());
}

TEST_CASE("conv: awkward shapes are exact in every type", "[conv][long]") {
  for (const Types &types : kAllTypes) check_all(awkward_convs(), types);
}

TEST_CASE("conv: awkward shapes are exact with beta = 1", "[conv][short]") {
  check_all(awkward_convs(), {MP_FP16, MP_FP32}, [](ConvCase &c) { c.beta = 1.0f; });
}

TEST_CASE("conv: many tiles are exact", "[conv][long]") {
  check_all_with_types_in_turn(large_convs());
}

TEST_CASE("conv: adjacent depthwise outputs in image rows of any length", "[conv][short]") {
  const auto is_depthwise = [](const std::string &kernel) { return kernel == "conv_depthwise"; };
  for (const int32_t width : {1, 2, 3, 4, 5, 7, 8, 13}) {
    const ConvCase square = grouped(padded(conv_case(3, 3, width, 24, 24, 3, 3), 1), 24);
    const ConvCase line = grouped(padded(conv_case(5, 1, width, 8, 8, 1, 5), 0, 0, 3, 1), 8);
    for (const ConvCase &layer :
         {square, line, strided(square, 1, 2), dilated(padded(square, 2), 1, 2),
          strided(dilated(padded(square, 3), 2, 2), 2, 2), strided(padded(square, 2), 2, 3)}) {
      for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_DGRAD}) {
        for (const Types &types : {Types{MP_FP16, MP_FP32}, {MP_BF16, MP_BF16}}) {
          ConvRun run(with(layer, op, types));
          INFO(to_string(with(layer, op, types)));
          CHECK(check_kernels(run, Misaligned::kNo, is_depthwise) == 1);
        }
      }
    }
  }
}

TEST_CASE("conv: generated problems", "[conv]") {
  Random random(1);
  for (int i = 0; i < 600; ++i) check_conv(random_conv(random, 200000));
}

TEST_CASE("conv: a few generated problems", "[conv][short]") {
  Random random(2);
  for (int i = 0; i < 40; ++i) check_conv(random_conv(random, 20000));
}

TEST_CASE("conv: alpha and beta", "[conv][short]") {
  for (const mp_conv_op_t op : kConvOps) {
    for (const float alpha : {0.0f, 1.0f, -2.0f}) {
      for (const float beta : {0.0f, 1.0f, -3.0f}) {
        ConvCase c = with(padded(conv_case(2, 5, 6, 8, 16, 3, 3), 1), op, {MP_FP16, MP_FP16});
        c.alpha = alpha;
        c.beta = beta;
        check_conv(c);
      }
    }
  }
}

TEST_CASE("conv: integers beyond 16 bits are rounded once, to nearest even", "[conv]") {
  for (const Types &types : kAllTypes) {
    check_all({padded(conv_case(2, 9, 11, 16, 24, 3, 3), 1),
               grouped(padded(conv_case(2, 8, 9, 16, 16, 3, 3), 1), 16),
               conv_case(2, 7, 9, 24, 40, 1, 1)},
              types, [](ConvCase &c) {
                c.fill = Fill::kRounding;
                c.beta = 1.0f;
              });
  }
}

TEST_CASE("conv: reals are within the derived bound", "[conv]") {
  for (const Types &types : kOneOfEach) {
    check_all(usual_convs(), types, [](ConvCase &c) {
      c.fill = Fill::kReal;
      c.alpha = 0.3f;
      c.beta = -1.7f;
    });
  }
}

TEST_CASE("conv: misaligned tensors, together and separately", "[conv]") {
  const std::vector<ConvCase> shapes = {padded(conv_case(2, 6, 7, 16, 24, 3, 3), 1),
                                        conv_case(2, 5, 6, 16, 24, 1, 1),
                                        strided(padded(conv_case(1, 9, 9, 3, 8, 5, 5), 2), 2, 2),
                                        grouped(padded(conv_case(2, 6, 7, 16, 16, 3, 3), 1), 16)};
  for (const Types &types : kAllTypes) {
    check_all(shapes, types, [](ConvCase &c) { c.offset = 1; });
    check_all(shapes, types, [](ConvCase &c) { c.stray = "1"; });
    check_all(shapes, types, [](ConvCase &c) { c.stray = "2"; });
    check_all(shapes, types, [](ConvCase &c) {
      c.stray = "d";
      c.beta = 1.0f;
    });
  }
}

TEST_CASE("conv: tensors misaligned by one element", "[conv][short]") {
  check_all({padded(conv_case(1, 5, 6, 16, 24, 3, 3), 1)}, {MP_FP16, MP_FP16},
            [](ConvCase &c) { c.offset = 1; });
}

TEST_CASE("conv: printing and parsing preserve a case", "[conv][short]") {
  ConvCase c = strided(padded(conv_case(2, 7, 9, 3, 8, 3, 5), 1, 0, 2, 3), 2, 1);
  c = with(dilated(grouped(c, 1), 1, 2), MP_CONV_WGRAD, {MP_BF16, MP_FP32});
  c.special = Special::kNan;
  c.special_in_second = true;
  c.kernel = "abacus";
  const std::string line = to_string(c);
  CHECK(line ==
        "op=wgrad n=2 h=7 w=9 c=3 k=8 r=3 s=5 ab=bf16 cd=fp32 pad_top=1 pad_left=2 pad_right=3 "
        "stride_h=2 dilation_w=2 special=nan special_in_second=1 kernel=abacus");
  CHECK(to_string(parse_conv_case(line)) == line);
  CHECK_THROWS(parse_conv_case("n=1 rows=2"));
}

TEST_CASE("conv: the case in MP_REPRO", "[.repro-conv]") {
  const char *const line = std::getenv("MP_REPRO");
  REQUIRE(line != nullptr);
  const ConvCase c = parse_conv_case(line);
  ConvRun run(c);
  check_launch(run, c.kernel, Misaligned::kNo);
}
