// Words and flags in any order; the last flag of a kind wins.
#include "options.h"

#include <optional>
#include <string_view>

namespace mpinfo {
namespace {

mp_dtype_t parse_dtype(std::string_view flag, std::string_view value) {
  if (value == "fp16") return MP_FP16;
  if (value == "bf16") return MP_BF16;
  if (value == "fp32") return MP_FP32;
  throw UsageError(std::string(flag) + " is fp16, bf16 or fp32, not \"" + std::string(value) +
                   "\".");
}

mp_conv_op_t parse_pass(std::string_view value) {
  if (value == "fprop") return MP_CONV_FPROP;
  if (value == "dgrad") return MP_CONV_DGRAD;
  if (value == "wgrad") return MP_CONV_WGRAD;
  throw UsageError("--pass is fprop, dgrad or wgrad, not \"" + std::string(value) + "\".");
}

/// What the flags say of the problem, before it is known which one it is.
struct Flags {
  mp_dtype_t dtype = MP_FP16;
  std::optional<mp_dtype_t> out;
  std::optional<int64_t> lda, ldb;
  std::string op = "NN";
  int32_t batch = 1;
  int32_t stride = 1, pad = 0, dilation = 1, groups = 1;
};

mp_gemm_desc_t gemm_of(const std::vector<int64_t> &sizes, const Flags &flags) {
  if (sizes.size() != 3) throw UsageError("gemm needs three numbers: M N K.");
  const int64_t m = sizes[0], n = sizes[1], k = sizes[2];
  mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, flags.dtype, flags.out.value_or(flags.dtype));
  const auto is_op = [](char c) { return c == 'N' || c == 'T'; };
  if (flags.op.size() != 2 || !is_op(flags.op[0]) || !is_op(flags.op[1]))
    throw UsageError("--op is NN, NT, TN or TT, not \"" + flags.op + "\".");
  desc.op_a = flags.op[0] == 'T' ? MP_OP_T : MP_OP_N;
  desc.op_b = flags.op[1] == 'T' ? MP_OP_T : MP_OP_N;
  desc.lda = flags.lda.value_or(desc.op_a == MP_OP_T ? m : k);
  desc.ldb = flags.ldb.value_or(desc.op_b == MP_OP_T ? k : n);
  desc.batch_count = flags.batch;
  if (flags.batch > 1) {
    desc.stride_a = desc.lda * (desc.op_a == MP_OP_T ? k : m);
    desc.stride_b = desc.ldb * (desc.op_b == MP_OP_T ? n : k);
    desc.stride_c = desc.stride_d = m * n;
  }
  return desc;
}

mp_conv2d_desc_t conv_of(const std::vector<int64_t> &sizes, const Flags &flags) {
  if (sizes.size() != 7) throw UsageError("conv needs seven numbers: N H W C K R S.");
  std::vector<int32_t> s;
  for (const int64_t size : sizes) {
    s.push_back(static_cast<int32_t>(size));
    if (s.back() != size) throw UsageError("conv needs numbers below 2^31.");
  }
  mp_conv2d_desc_t desc =
      mp_conv2d_desc_default(s[0], s[1], s[2], s[3], s[4], s[5], s[6], flags.dtype);
  desc.dtype_out = flags.out.value_or(flags.dtype);
  desc.stride_h = desc.stride_w = flags.stride;
  desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = flags.pad;
  desc.dilation_h = desc.dilation_w = flags.dilation;
  desc.groups = flags.groups;
  return desc;
}

/// False where `flag` is none that the problem has.
template <class Value>
bool parse_problem_flag(std::string_view flag, const Value &value, Flags &flags, Options &options) {
  const auto at_least = [&](auto least) { return mptools::parse_integer(flag, value(), least); };
  if (flag == "--dtype")
    flags.dtype = parse_dtype(flag, value());
  else if (flag == "--out")
    flags.out = parse_dtype(flag, value());
  else if (flag == "--op")
    flags.op = value();
  else if (flag == "--lda")
    flags.lda = at_least(int64_t{1});
  else if (flag == "--ldb")
    flags.ldb = at_least(int64_t{1});
  else if (flag == "--batch")
    flags.batch = at_least(int32_t{1});
  else if (flag == "--stride")
    flags.stride = at_least(int32_t{1});
  else if (flag == "--pad")
    flags.pad = at_least(int32_t{0});
  else if (flag == "--dilation")
    flags.dilation = at_least(int32_t{1});
  else if (flag == "--groups")
    flags.groups = at_least(int32_t{1});
  else if (flag == "--pass")
    options.passes = {parse_pass(value())};
  else
    return false;
  return true;
}

}  // namespace

Options parse_options(int argc, const char *const *argv) {
  Options options;
  Flags flags;
  std::vector<int64_t> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 == argc) throw UsageError(std::string(word) + " needs a value.");
      return argv[++i];
    };
    if (word == "--help")
      options.help = true;
    else if (word == "--json")
      options.json = true;
    else if (word == "--all")
      options.all = true;
    else if (word == "--device")
      options.device = mptools::parse_device(value());
    else if (word == "gemm" && options.problem == Options::Problem::none)
      options.problem = Options::Problem::gemm;
    else if (word == "conv" && options.problem == Options::Problem::none)
      options.problem = Options::Problem::conv;
    else if (parse_problem_flag(word, value, flags, options))
      continue;
    else if (options.problem != Options::Problem::none && !word.starts_with("--"))
      sizes.push_back(mptools::parse_integer("a size", word, int64_t{0}));
    else
      throw UsageError("unknown argument \"" + std::string(word) + "\"; mpinfo --help lists them.");
  }
  if (options.problem == Options::Problem::gemm) options.gemm = gemm_of(sizes, flags);
  if (options.problem == Options::Problem::conv) options.conv = conv_of(sizes, flags);
  return options;
}

const char *usage() {
  return "mpinfo says which mpcore this is, what it can run on, and what it would run.\n"
         "\n"
         "  mpinfo                       versions, devices, environment variables\n"
         "  mpinfo gemm M N K            kernels for this product, and why the others cannot\n"
         "  mpinfo conv N H W C K R S    the same for a convolution, its three passes\n"
         "\n"
         "  --device WHERE   auto, host, cuda or cuda:N                          (auto)\n"
         "  --dtype TYPE     of the inputs: fp16, bf16 or fp32                   (fp16)\n"
         "  --out TYPE       of the result                            (that of the inputs)\n"
         "  --all            every kernel, not only the first ten\n"
         "  --json           for programs\n"
         "  --help           this text\n"
         "\n"
         "gemm:\n"
         "  --op XY          X, Y: N or T for A and B                              (NN)\n"
         "  --lda N, --ldb N distance of rows, in elements                       (dense)\n"
         "  --batch N        so many products of this shape                         (1)\n"
         "\n"
         "conv:\n"
         "  --pass PASS      fprop, dgrad or wgrad                         (all of them)\n"
         "  --stride N, --pad N, --dilation N, --groups N                  (1, 0, 1, 1)\n"
         "\n"
         "Times are predictions by which kernels are chosen, not measurements.\n"
         "Exit code: 0 all is said, 1 it cannot be, 2 wrong arguments.\n";
}

}  // namespace mpinfo
