// See conv_run.h.
#define MP_ENABLE_EXPERIMENTAL
#include "conv_run.h"
#include "tests/support/kernels.h"

namespace mptest {

mp_conv2d_desc_t desc_of(const ConvCase &c) {
  mp_conv2d_desc_t d = mp_conv2d_desc_default(c.n, c.h, c.w, c.c, c.k, c.r, c.s, c.ab);
  d.dtype_out = c.cd;
  d.pad_top = c.pad_top;
  d.pad_bottom = c.pad_bottom;
  d.pad_left = c.pad_left;
  d.pad_right = c.pad_right;
  d.stride_h = c.stride_h;
  d.stride_w = c.stride_w;
  d.dilation_h = c.dilation_h;
  d.dilation_w = c.dilation_w;
  d.groups = c.groups;
  d.alpha = c.alpha;
  d.beta = c.beta;
  d.plan = named_plan(c.kernel.empty() ? nullptr : c.kernel.c_str());
  return d;
}

ConvRun::ConvRun(const ConvCase &c) : OutputRun(c, oracle::empty_sums(c, c.op).sum.cols), case_(c) {
  fill_inputs();
  expected_ =
      oracle::apply_epilogue(oracle::convolve(case_, c.op, first_, second_), epilogue_inputs_);
  if (c.special != Special::kNone && c.special_in_second)
    expected_.may_be_nan = oracle::reached_by_zeros(case_, c.op, second_);
  upload_inputs();
}

void ConvRun::fill_inputs() {
  const ConvCase &c = case_;
  const oracle::Sums sums = oracle::empty_sums(case_, c.op);
  const ExactPlan plan = plan_fill(c, sums.terms);
  Random random(static_cast<uint64_t>(c.seed));

  first_.resize(static_cast<size_t>(c.op == MP_CONV_DGRAD ? c.elements_of_y() : c.elements_of_x()));
  second_.resize(
      static_cast<size_t>(c.op == MP_CONV_WGRAD ? c.elements_of_y() : c.elements_of_filter()));
  fill(first_, random, c.fill, plan.range, c.ab);
  fill(second_, random, c.fill, plan.range, c.ab);
  if (c.fill != Fill::kReal) thin_out_second(plan.period);
  if (c.special != Special::kNone) {
    REQUIRE(plan.period == 1);  // put_special() fills the gaps
    put_special();
  }
  fill_epilogue_inputs(epilogue_inputs_, random, sums.sum);
}

/// Keeps one product in `period` for each output (input_values.h): of its sum over r, s, c of a
/// filter, over k, r, s of a filter, or over n, p, q of dy.
void ConvRun::thin_out_second(int64_t period) {
  if (period == 1) return;
  const int64_t c_count = case_.group_c(), taps = int64_t{case_.r} * case_.s;
  for (size_t at = 0; at < second_.size(); ++at) {
    const int64_t index = static_cast<int64_t>(at);
    int64_t term = index % (taps * c_count), output = index / (taps * c_count);
    if (case_.op == MP_CONV_DGRAD) {
      term = index / (taps * c_count) % case_.group_k() * taps + index / c_count % taps;
      output = index % c_count;
    } else if (case_.op == MP_CONV_WGRAD) {
      term = index / case_.k;
      output = index % case_.k;
    }
    if ((term + output) % period != 0) second_[at] = 0.0;
  }
}

/// The other input has no zeros: infinity gives infinities alone, so that the NaN which it makes of
/// the zeros that pad a tile would show in amax.
void ConvRun::put_special() {
  std::vector<double> &values = case_.special_in_second ? second_ : first_;
  std::vector<double> &other = case_.special_in_second ? first_ : second_;
  values.at(static_cast<size_t>(place_in(static_cast<int64_t>(values.size()), case_.place))) =
      value_of(case_.special);
  for (double &value : other) {
    if (value == 0.0) value = 1.0;
  }
}

int64_t ConvRun::offset_of(char operand) const {
  return case_.offset + (case_.stray.find(operand) != std::string::npos ? 1 : 0);
}

void ConvRun::upload_inputs() {
  device_first_.emplace(case_.ab, first_, offset_of('1'));
  device_second_.emplace(case_.ab, second_, offset_of('2'));
  const Matrices &c = epilogue_inputs_.c;
  const Layout d{c.cols, 0}, aux{c.cols + case_.aux_pad, 0};
  const int64_t stray_d = offset_of('d') != case_.offset ? 0 : -1;
  const int64_t stray_aux = offset_of('x') != case_.offset ? 0 : -1;
  place_outputs(epilogue_inputs_, c, d, aux, stray_d, stray_aux);
}

std::vector<uint8_t> ConvRun::input_bits() const {
  std::vector<uint8_t> bits = device_first_->download_bits();
  const std::vector<uint8_t> more = device_second_->download_bits();
  bits.insert(bits.end(), more.begin(), more.end());
  return bits;
}

std::vector<std::string> ConvRun::kernels() const {
  const mp_conv2d_desc_t any = desc_of(case_);
  const std::vector<const char *> names = runnable_kernels(any, case_.op);
  return {names.begin(), names.end()};
}

size_t ConvRun::workspace_bytes(const std::string &kernel) const {
  ConvCase forced = case_;
  forced.kernel = kernel;
  const mp_conv2d_desc_t desc = desc_of(forced);
  size_t bytes = 0;
  const mp_epilogue_t options = epilogue();
  require_ok(mp_conv2d_workspace_size(context(), &desc, case_.op, &options, &bytes));
  return bytes;
}

mp_status_t ConvRun::call(const std::string &kernel, const mp_epilogue_t *epilogue, void *workspace,
                          size_t workspace_bytes) {
  ConvCase forced = case_;
  forced.kernel = kernel;
  const mp_conv2d_desc_t desc = desc_of(forced);
  const auto pass = case_.op == MP_CONV_FPROP   ? mp_conv2d_fprop
                    : case_.op == MP_CONV_DGRAD ? mp_conv2d_dgrad
                                                : mp_conv2d_wgrad;
  return pass(context(), &desc, device_first_->data(), device_second_->data(), d_->item(0),
              epilogue, workspace, workspace_bytes, kStream);
}

std::string ConvRun::repro() const {
  ConvCase launched = case_;
  launched.kernel = launched_kernel_;
  return "MP_REPRO=\"" + to_string(launched) + "\" mptests \"[repro-conv]\"";
}

void check_conv(const ConvCase &c) {
  ConvRun run(c);
  const bool is_misaligned = c.offset != 0 || !c.stray.empty();
  const int checked = check_kernels(run, is_misaligned ? Misaligned::kYes : Misaligned::kNo,
                                    [](const std::string &) { return true; });
  if (c.pixels() > 0) CHECK(checked > 0);

  const size_t wanted = run.workspace_bytes("");
  check_launch(run, "", wanted);
  if (wanted == 0) return;
  check_launch(run, "", wanted / 2);
  check_launch(run, "", 0);
}

void check_conv(const std::string &line) {
  for (const ConvCase &c : conv_cases(line)) check_conv(c);
}

int check_conv_kernels(const std::string &line, bool (*is_wanted)(const std::string &kernel)) {
  int launches = 0;
  for (const ConvCase &c : conv_cases(line)) {
    ConvRun run(c);
    INFO(to_string(c));
    const int count = check_kernels(run, Misaligned::kNo, is_wanted);
    CHECK(count > 0);
    launches += count;
  }
  return launches;
}

void check_rejected(const ConvCase &c, const std::string &kernel) {
  INFO(to_string(c));
  ConvRun run(c);
  expect_status(run.launch(kernel, size_t{1} << 20), MP_ERROR_UNSUPPORTED);
  expect_none(run.verify_untouched(), run.repro());
}

}  // namespace mptest
