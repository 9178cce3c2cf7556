// MP_GEMM_TUNING: the table that it names changes the selection.  The variable is read once per
// process, so each case runs in its own process: this program, with a hidden test that queries the
// first kernel.  tests/faults/test_files.cpp has invalid files.
//
// mp_tuning_measure, mp_graph_measure_kernels: measuring calls have the results of ordinary ones,
// and a file with their measurements selects kernels in another process.
#define MP_ENABLE_EXPERIMENTAL
#include <algorithm>
#include <cstdio>
#include <set>
#include <sstream>

#include "gemm_group.h"
#include "tests/conv/conv_run.h"
#include "tests/graph/described.h"
#include "tests/support/kernels.h"
#include "tests/support/named_plan.h"
#include "tests/support/run_again.h"
#include "tests/support/surroundings.h"
#include "tests/support/tally.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

mp_kernel_info_t first_kernel() {
  const mp_gemm_desc_t desc = mp_gemm_desc_default(256, 256, 256, MP_FP16, MP_FP16);
  auto best = initialized<mp_kernel_info_t>();
  require_ok(mp_gemm_kernel_info(context(), &desc, 0, &best));
  return best;
}

/// Returns the output of a hidden test, including the log, in a process with that table.
std::string output_with(const std::string &test, const std::string &table,
                        const std::string &log = "info") {
  const Folder folder;
  return output_of_test(test,
                        "MP_LOG=" + log + " MP_GEMM_TUNING='" + folder.file("table", table) + "'");
}

const std::vector<std::string> kClasses = {"sm_75",  "sm_80",  "sm_89", "sm_90",
                                           "sm_100", "sm_120", "host"};

/// Returns a table in which the smallest simt kernel costs nothing.
std::string strange_table() {
  std::string text;
  for (const std::string &name : kClasses)
    text += name + " dram_us_per_mb=0 l2_us_per_mb=0\n" + name + " simt_64x64x16 0 0\n";
  return text;
}

/// Returns a table in which a small wgmma tile is the cheapest unless the epilogue has operations,
/// of which wgmma kernels have more.
std::string table_of_operations() {
  const mp_gemm_desc_t one_tile = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  std::string text;
  for (const std::string name : {"sm_90", "host"}) {
    for (const char *const kernel : runnable_kernels(one_tile))
      text += name + ' ' + kernel + " 1000 0\n";
    text += name + " launch_us=0 dram_us_per_mb=0 l2_us_per_mb=0 tma_store_us=0 op_us=1000\n" +
            name + " wmma_256x128x32_s3 1 0\n" + name + " wgmma_64x128x64_s8 0.5 0\n";
  }
  return text;
}

mp_status_t multiply(float *amax, int64_t k = 64) {
  const mp_gemm_desc_t desc = mp_gemm_desc_default(64, 64, k, MP_FP16, MP_FP16);
  const DeviceBuffer<uint16_t> a(64 * k, 0, 0), d(64 * 64);
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.stats.amax = amax;
  return mp_gemm(context(), &desc, a.data(), a.data(), nullptr, d.data(), &epilogue, nullptr, 0,
                 kStream);
}

}  // namespace

TEST_CASE("the first kernel", "[.]") {
  std::printf("kernel: %s\n", first_kernel().name);
  std::printf("again: %s\n", first_kernel().name);
  std::printf("estimated: %u\n", first_kernel().is_estimated);
}

TEST_CASE("tuning: MP_GEMM_TUNING names the table of the selection", "[gemm]") {
  const Folder folder;
  const std::string path = folder.file("table", strange_table());
  const std::string output =
      output_of_test("the first kernel", "MP_LOG=info MP_GEMM_TUNING='" + path + "'");
  CAPTURE(output);
  CHECK(times(output, "kernel: simt_64x64x16\n") == 1);
  CHECK(times(output, "again: simt_64x64x16\n") == 1);
  CHECK(times(output, "mp_gemm: using MP_GEMM_TUNING = " + path + "\n") == 1);
}

TEST_CASE("a product and the same with amax", "[.]") {
  const DeviceBuffer<float> amax(1, 0, 0);
  require_ok(multiply(nullptr));
  std::printf("and amax\n");
  std::fflush(stdout);
  require_ok(multiply(amax.data()));
  require_ok(mp_stream_sync(context(), kStream));
}

TEST_CASE("tuning: calls that differ only in their epilogue have separate plans", "[gemm]") {
  if (!has_wgmma()) return;
  const std::string output = output_with("a product and the same with amax", table_of_operations());
  CAPTURE(output);
  const size_t plain = output.find("mp_gemm: wgmma_64x128x64_s8 for");
  const size_t with_amax = output.find("mp_gemm: wmma_256x128x32_s3 for");
  REQUIRE(plain != std::string::npos);
  REQUIRE(with_amax != std::string::npos);
  CHECK(plain < with_amax);
}

/// Returns a table in which a small WMMA tile is the fastest except for scalar loads.
std::string table_of_copies() {
  const mp_gemm_desc_t one_tile = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  std::string text;
  for (const std::string &name : kClasses) {
    for (const char *const kernel : runnable_kernels(one_tile))
      text += name + ' ' + kernel + " 1e6 0\n";
    text += name + " launch_us=0 dram_us_per_mb=0 l2_us_per_mb=0 partial_us_per_mb=1e6\n" + name +
            " copy_us_per_mb=0 scalar_load_us=1e6\n" + name + " wmma_64x64x32_s4 1 1\n";
  }
  return text;
}

TEST_CASE("products of odd rows by the choice of the library", "[.]") {
  check_library_choice(
      "m=73 n=131 k=301 op=NN|NT|TN|TT multiple=1 batch=2 bias=fp32 dbias=1 found_inf=1");
}

TEST_CASE("tuning: unaligned rows are copied if the table predicts a gain", "[gemm]") {
  const std::string output =
      output_with("products of odd rows by the choice of the library", table_of_copies());
  CAPTURE(output);
  // The first product (NN) copies 2 x 73 rows of 301 elements with a pitch of 304 and 2 x 301 rows
  // of 131 with a pitch of 136.  Each copy is a multiple of 256 bytes: 88832 + 163840.
  CHECK(times(output, "mp_gemm: wmma_64x64x32_s4_copied for") == 1);
  CHECK(times(output, "op = NN, fp16 to fp32, workspace_bytes = 252672") == 1);
  // Copies that cost nothing cause no warning.
  CHECK(times(output, "a slower path") == 0);
}

TEST_CASE("a group without workspace whose second product has odd rows", "[.]") {
  GroupRun run(gemm_case("items=64x64x64,64x20x64 cd=fp16 multiple=1"));
  for (int i = 0; i < 2; ++i) check_launch(run, "", 0);
}

TEST_CASE("tuning: the slow product of a group is logged once", "[gemm]") {
  const std::string output = output_with(
      "a group without workspace whose second product has odd rows", table_of_copies(), "warn");
  CAPTURE(output);
  CHECK(times(output, "a slower path") == 1);
  CHECK(times(output,
              "mp_gemm_grouped: using a slower path: items[1]: ld_b = 20 is not a "
              "multiple of 8 (") == 1);
}

TEST_CASE("small products as a group and a batch and in two contexts", "[.]") {
  GroupRun run(gemm_case("items=64x64x64,8x20x8 cd=fp16 multiple=1"));
  for (int i = 0; i < 2; ++i) check_launch(run, "", Misaligned::kNo);
  check_library_choice("m=64 n=64 k=64 batch=2 pointers=1 kernel=wmma_128x128x32_s3");

  const UniqueContext other = make_context();
  const DeviceArray zeros(MP_FP16, std::vector<double>(64 * 64, 0.0)), d(MP_FP16, 64 * 64);
  mp_gemm_desc_t desc = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  desc.plan = named_plan("simt_128x128x16");
  for (const mp_context_t each : {context(), context(), other.get(), other.get()}) {
    require_ok(mp_gemm(each, &desc, zeros.data(), zeros.data(), nullptr, d.data(), nullptr, nullptr,
                       0, kStream));
    require_ok(mp_stream_sync(each, kStream));
  }
}

TEST_CASE("log: each context logs each kernel once, without a warning", "[gemm][short]") {
  std::istringstream output(
      output_of_test("small products as a group and a batch and in two contexts", "MP_LOG=info"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(output, line);)
    if (line.starts_with("mpcore: ") && line.find(": mp_gemm") != std::string::npos)
      lines.push_back(line);
  CAPTURE(lines);
  const auto count = [&](std::string_view start) {
    return std::ranges::count_if(lines,
                                 [&](const std::string &line) { return line.starts_with(start); });
  };
  const int64_t grouped = count("mpcore: info: mp_gemm_grouped: ");
  CHECK(grouped > 0);
  CHECK(count("mpcore: info: mp_gemm_batched: ") == 1);
  CHECK(count("mpcore: info: mp_gemm: ") == 2);  // one per context
  CHECK(std::ssize(lines) == grouped + 3);
  CHECK(std::set<std::string>(lines.begin(), lines.end()).size() == lines.size() - 1);
}

TEST_CASE("one tile and a long k without and with workspace", "[.]") {
  const mp_gemm_desc_t desc = mp_gemm_desc_default(64, 64, 16384, MP_FP16, MP_FP16);
  const DeviceWorkspace workspace(mp_gemm_workspace_size, context(), &desc, nullptr);
  const DeviceBuffer<uint16_t> a(64 * 16384, 0, 0), d(64 * 64);
  const auto multiply_with = [&](size_t used) {
    require_ok(mp_gemm(context(), &desc, a.data(), a.data(), nullptr, d.data(), nullptr,
                       used > 0 ? workspace.data() : nullptr, used, kStream));
    require_ok(mp_stream_sync(context(), kStream));
  };
  multiply_with(workspace.bytes());
  std::printf("and without\n");
  std::fflush(stdout);
  multiply_with(0);
}

TEST_CASE("gemm: only a workspace that is too small causes a warning", "[gemm]") {
  const std::string output = output_of_test("one tile and a long k without and with workspace",
                                            "MP_LOG=warn MP_HOST_THREADS=4");
  CAPTURE(output);
  const std::string why = "mp_gemm: using a slower path: predicted time is ";
  CHECK(times(output, "a slower path") == 1);
  REQUIRE(times(output, why) == 1);
  CHECK(output.find("and without") < output.find(why));
}

TEST_CASE("tuning: a prediction reports whether its constants were measured", "[gemm]") {
  for (const std::string value : {"0", "1"}) {
    std::string table;
    for (const std::string &name : kClasses) table += name + " estimated=" + value + "\n";
    CHECK(times(output_with("the first kernel", table), "estimated: " + value + "\n") == 1);
  }
}

// ---------------------------------------------------------------------------- measured kernels

namespace {

/// Lets calls with the shared context measure while the object exists.
struct Measuring {
  explicit Measuring(int32_t max_kernels) { require_ok(mp_tuning_measure(context(), max_kernels)); }
  ~Measuring() { mp_tuning_measure(context(), 0); }
};

std::string measured_text() {
  size_t bytes = 0;
  require_ok(mp_tuning_get_text(nullptr, &bytes));
  std::string text(bytes, 'x');
  require_ok(mp_tuning_get_text(text.data(), &bytes));
  REQUIRE(text.back() == '\0');
  text.pop_back();
  return text;
}

size_t num_measured() {
  return times(measured_text(), "fastest ");
}

}  // namespace

TEST_CASE("tuning: a measuring product has the results of an ordinary one", "[gemm]") {
  const Measuring measuring(4);
  // Products with every output of an epilogue, which accumulate in place; rows and tensors without
  // alignment; the last has nothing to measure.
  for (const char *const rows : {"", "multiple=1 k=135", "offset=1", "k=0"}) {
    const std::string line =
        std::string(
            "m=70 n=48 k=136 batch=2 beta=1 in_place=1 activation=relu aux=1 dbias=1 "
            "amax=1 found_inf=1 bias=fp16 ") +
        rows;
    const size_t wanted = num_measured() + (gemm_case(line).k > 0 ? 1 : 0);
    for (int repeat = 0; repeat < 2; ++repeat) {
      check_library_choice(line);
      CHECK(num_measured() == wanted);
    }
  }
}

TEST_CASE("tuning: a measuring convolution has the results of an ordinary one", "[gemm]") {
  const Measuring measuring(3);
  for (const ConvCase &c : conv_cases("layer=2,9,9,16,24,3,3 pad_top=2 pad_left=2 stride=2 beta=1 "
                                      "op=fprop|dgrad|wgrad")) {
    ConvRun run(c);
    const size_t before = num_measured();
    require_ok(run.launch(""));
    CHECK(run.verify() == "");
    CHECK(num_measured() == before + 1);
  }
}

TEST_CASE("tuning: calls with a plan or pointers are not measured", "[gemm]") {
  const Measuring measuring(2);
  const size_t before = num_measured();
  check_library_choice("m=40 n=40 k=24 kernel=simt_64x64x16");
  check_library_choice("m=40 n=40 k=24 pointers=1");
  CHECK(num_measured() == before);
  check_library_choice("m=40 n=40 k=24");
  CHECK(num_measured() == before + 1);
  mp_tuning_measure(context(), 0);
  check_library_choice("m=40 n=40 k=32");
  CHECK(num_measured() == before + 1);
}

TEST_CASE("a measured product and the same again", "[.]") {
  const Measuring measuring(2);
  for (int i = 0; i < 2; ++i) require_ok(multiply(nullptr, 512));
  std::printf("%s", measured_text().c_str());
}

TEST_CASE("tuning: a file with measured kernels selects them", "[gemm]") {
  const auto output_of = [](const std::string &table) {
    return output_with("a measured product and the same again", table);
  };
  const std::string first = output_of("");
  CAPTURE(first);
  REQUIRE(times(first, "fastest ") == 1);
  const std::string start = first.substr(first.find("fastest "), sizeof "fastest 0123456789abcdef");
  // Known calls are not measured again.  A kernel that the call cannot use, here for lack of
  // workspace, or an unknown one is ignored.
  for (const auto &[kernel, is_used] :
       {std::pair{"simt_16x128x16", true}, std::pair{"simt_64x64x16", true},
        std::pair{"simt_64x64x16_k2", false}, std::pair{"unknown", false}}) {
    const std::string output = output_of(start + kernel + " # a comment\n");
    CAPTURE(kernel, output);
    CHECK(times(output, "fastest ") == 0);
    CHECK(times(output, "mp_gemm: " + std::string(kernel) + " for") == (is_used ? 1 : 0));
    CHECK(times(output, " for m = 64") == 1);
  }
}

TEST_CASE("a measured product that lacks workspace", "[.]") {
  const Measuring measuring(2);
  require_ok(multiply(nullptr, 16384));
  std::printf("%s", measured_text().c_str());
}

TEST_CASE("tuning: a measured kernel causes the warnings of a predicted one", "[gemm]") {
  const std::string output =
      output_of_test("a measured product that lacks workspace", "MP_LOG=warn MP_HOST_THREADS=4");
  CAPTURE(output);
  CHECK(times(output, "fastest ") == 1);
  CHECK(times(output, "mp_gemm: using a slower path: predicted time is ") == 1);
}

namespace {

/// Network of a convolution and a linear layer, in mixed precision.
class MeasuredNetwork {
 public:
  static constexpr int64_t kBatch = 12, kEdge = 6, kChannels = 8, kClasses = 16;

  MeasuredNetwork(int64_t width, int32_t max_kernels) {
    Random random(1);
    const int64_t pixels = kEdge * kEdge, taps = 9 * kChannels;
    const int32_t x = g_.input("x", MP_FP32, {kBatch, kEdge, kEdge, kChannels});
    const int32_t filter = g_.parameter("filter", {width, 3, 3, kChannels});
    const int32_t image = g_.node("Conv2D", "conv", {x, filter}, {{"pad", 1}});
    const int32_t flat = g_.node("Reshape", "flat", {image}, {{"extent", {0, -1}}});
    const int32_t w = g_.parameter("w", {pixels * width, kClasses});
    const int32_t labels = g_.input("labels", MP_DTYPE_NONE, {kBatch});
    const int32_t logits = g_.node("Linear", "fc", {flat, w});
    g_.loss(g_.node("SoftmaxXent", "loss", {logits, labels}));
    require_ok(mp_graph_measure_kernels(g_.handle, max_kernels));
    g_.compile(policy_.get());
    g_.write(filter, random_weights(random, width * taps, taps));
    g_.write(w, random_weights(random, pixels * width * kClasses, pixels * width));
    x_ = std::make_unique<DeviceBuffer<float>>(
        random_values(random, kBatch * pixels * kChannels, 1));
    g_.bind(x, x_->data());
    g_.bind(labels, classes_.data());
  }

  /// Returns the gradients of all parameters.
  std::vector<double> step(int64_t batch) {
    require_ok(mp_graph_set_batch(g_.handle, batch));
    g_.step();
    std::vector<double> all;
    for (const int32_t parameter : g_.parameters)
      for (const double value : g_.gradient(parameter)) all.push_back(value);
    return all;
  }

 private:
  const PolicyHandle policy_ = make_policy(MP_FP16);
  Described g_;
  std::unique_ptr<DeviceBuffer<float>> x_;
  const DeviceBuffer<int32_t> classes_{std::vector<int32_t>(kBatch, 3)};
};

}  // namespace

TEST_CASE("tuning: a graph measures each call once per batch, and only its own", "[gemm]") {
  const size_t before = num_measured();
  MeasuredNetwork plain(16, 0), measuring(16, 2);
  plain.step(12);
  CHECK(num_measured() == before);
  constexpr size_t kCalls = 5;  // two of the convolution, three of the linear layer
  for (const size_t batches : {1, 1, 2}) {
    measuring.step(batches == 1 ? 12 : 8);
    CHECK(num_measured() == before + batches * kCalls);
  }
  MeasuredNetwork(24, 0).step(12);
  CHECK(num_measured() == before + 2 * kCalls);
}

TEST_CASE("a network that measures kernels", "[.]") {
  MeasuredNetwork network(16, 3);
  for (const int64_t batch : {12, 12, 7})
    for (const double gradient : network.step(batch)) std::printf("%a\n", gradient);
  std::printf("%s", measured_text().c_str());
}

TEST_CASE("tuning: the same file gives a graph the same bits", "[gemm]") {
  const auto output_of = [](const std::string &table, const std::string &log) {
    return output_with("a network that measures kernels", table, log);
  };
  const std::string first = output_of("", "error");
  const size_t end = first.find("fastest ");
  REQUIRE(end != std::string::npos);
  std::string table, changed;
  std::istringstream lines(first.substr(end));
  for (std::string line; std::getline(lines, line) && line.starts_with("fastest ");) {
    table += line + '\n';
    changed += line.substr(0, sizeof "fastest 0123456789abcdef") + "simt_64x64x16\n";
  }
  const std::string again = output_of(table, "error");
  CHECK(times(again, "fastest ") == 0);
  CHECK(again.substr(0, end) == first.substr(0, end));
  // Every product of all steps is in the file.
  const std::string other = output_of(changed, "info");
  CAPTURE(changed, other);
  CHECK(times(other, "fastest ") == 0);
  CHECK(times(other, "mp_gemm: ") == 2);  // the file is used; one kernel
  CHECK(times(other, "mp_gemm: simt_64x64x16 for") == 1);
}
