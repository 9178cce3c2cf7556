#include "options.h"

#include <optional>

#include "support/command_line.h"

namespace mpinfo {
namespace {

constexpr const char *kDescription =
    "mpinfo reports the version of mpcore, the devices that it can use, and the kernels that it "
    "selects.\n"
    "\n"
    "  mpinfo                       versions, devices, environment variables\n"
    "  mpinfo gemm M N K            kernels for this GEMM, and why others cannot run it\n"
    "  mpinfo conv N H W C K R S    the same for the three passes of a convolution\n"
    "  mpinfo attention B H Q KV D  kernels for attention\n"
    "  mpinfo explain gemm|conv|attention ...\n"
    "                               the plan of the selected kernel, with its cost by part\n"
    "  mpinfo doctor                problems of this installation, with remedies";

constexpr const char *kNotes =
    "Times are predictions of the cost model that selects kernels, not measurements.\n"
    "Exit code: 0 success, 1 failure or a problem found by the doctor, 2 wrong arguments.";

constexpr const char *kDoctorNotes =
    "Prints one line per finding: ok, note or problem, the fact, and a remedy.\n"
    "Exit code: 0 no problems, 1 at least one problem, 2 wrong arguments.";

const mptools::Words<mp_conv_op_t> kPasses = {
    {"fprop", MP_CONV_FPROP}, {"dgrad", MP_CONV_DGRAD}, {"wgrad", MP_CONV_WGRAD}};

/// Problem as specified on the command line.
struct Problem {
  mp_dtype_t dtype = MP_FP16;
  std::optional<mp_dtype_t> out;
  int64_t m = 0, n = 0, k = 0;
  std::optional<int64_t> ld_a, ld_b;
  std::string op = "NN";
  int32_t batch = 1;
  std::optional<mp_conv_op_t> pass;
  int32_t images = 0, h = 0, w = 0, c = 0, filters = 0, r = 0, s = 0;
  int32_t stride = 1, pad = 0, dilation = 1, groups = 1;
  int32_t sequences = 0, heads = 0, head_dim = 0;
  int64_t queries = 0, keys = 0;
  std::optional<int32_t> kv_heads, head_dim_v;
};

mp_gemm_desc_t gemm_of(const Problem &p) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(p.m, p.n, p.k, p.dtype, p.out.value_or(p.dtype));
  desc.op_a = p.op[0] == 'T' ? MP_OP_T : MP_OP_N;
  desc.op_b = p.op[1] == 'T' ? MP_OP_T : MP_OP_N;
  desc.ld_a = p.ld_a.value_or(desc.op_a == MP_OP_T ? p.m : p.k);
  desc.ld_b = p.ld_b.value_or(desc.op_b == MP_OP_T ? p.k : p.n);
  desc.batch_count = p.batch;
  if (p.batch > 1) {
    desc.stride_a = desc.ld_a * (desc.op_a == MP_OP_T ? p.k : p.m);
    desc.stride_b = desc.ld_b * (desc.op_b == MP_OP_T ? p.n : p.k);
    desc.stride_c = desc.stride_d = p.m * p.n;
  }
  return desc;
}

mp_conv2d_desc_t conv_of(const Problem &p) {
  mp_conv2d_desc_t desc =
      mp_conv2d_desc_default(p.images, p.h, p.w, p.c, p.filters, p.r, p.s, p.dtype);
  desc.dtype_out = p.out.value_or(p.dtype);
  desc.stride_h = desc.stride_w = p.stride;
  desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = p.pad;
  desc.dilation_h = desc.dilation_w = p.dilation;
  desc.groups = p.groups;
  return desc;
}

mp_attention_desc_t attention_of(const Problem &p) {
  mp_attention_desc_t desc =
      mp_attention_desc_default(p.sequences, p.heads, p.queries, p.keys, p.head_dim, p.dtype);
  desc.kv_heads = p.kv_heads.value_or(p.heads);
  desc.head_dim_v = p.head_dim_v.value_or(p.head_dim);
  return desc;
}

template <typename Integer>
void add_size(CLI::App &app, const char *name, Integer &size, const char *description) {
  mptools::add_integer(app, name, size, Integer{0}, description)->required()->type_name("");
}

/// Options of mpinfo are also accepted after those of the problem.
CLI::App *add_problem(CLI::App &app, const char *name, const char *description) {
  CLI::App *const problem = app.add_subcommand(name, description);
  problem->fallthrough();
  problem->set_help_flag();
  return problem;
}

void add_gemm(CLI::App &app, Problem &problem, Options &options) {
  CLI::App *const gemm = add_problem(app, "gemm", "D (M x N) = op(A) op(B)");
  add_size(*gemm, "M", problem.m, "rows of op(A) and D");
  add_size(*gemm, "N", problem.n, "columns of op(B) and D");
  add_size(*gemm, "K", problem.k, "columns of op(A), rows of op(B)");
  gemm->add_option("--op", problem.op, "N or T for A, then for B")
      ->check(CLI::IsMember({"NN", "NT", "TN", "TT"}).description(""))
      ->type_name("XY")
      ->default_str("NN");
  const char *const ld = "distance between rows, in elements (default: dense)";
  mptools::add_integer(*gemm, "--lda", problem.ld_a, int64_t{1}, ld);
  mptools::add_integer(*gemm, "--ldb", problem.ld_b, int64_t{1}, ld);
  mptools::add_integer(*gemm, "--batch", problem.batch, 1, "number of GEMMs of this shape")
      ->default_str("1");
  gemm->callback([&] {
    options.problem = Options::Problem::gemm;
    options.gemm = gemm_of(problem);
  });
}

void add_conv(CLI::App &app, Problem &problem, Options &options) {
  CLI::App *const conv = add_problem(app, "conv", "forward and both gradients");
  add_size(*conv, "N", problem.images, "images");
  add_size(*conv, "H", problem.h, "height");
  add_size(*conv, "W", problem.w, "width");
  add_size(*conv, "C", problem.c, "channels");
  add_size(*conv, "K", problem.filters, "filters");
  add_size(*conv, "R", problem.r, "height of a filter");
  add_size(*conv, "S", problem.s, "width of a filter");
  mptools::add_choice(*conv, "--pass", problem.pass, kPasses, "only fprop, dgrad or wgrad")
      ->type_name("PASS");
  const auto add = [&](const char *name, int32_t &number, int32_t least, const char *description) {
    mptools::add_integer(*conv, name, number, least, description)
        ->default_str(std::to_string(number));
  };
  add("--stride", problem.stride, 1, "in both directions");
  add("--pad", problem.pad, 0, "zeros on each side");
  add("--dilation", problem.dilation, 1, "in both directions");
  add("--groups", problem.groups, 1, "groups of channels");
  conv->callback([&] {
    options.problem = Options::Problem::conv;
    options.conv = conv_of(problem);
    if (problem.pass) options.passes = {*problem.pass};
  });
}

void add_attention(CLI::App &app, Problem &problem, Options &options) {
  CLI::App *const attention = add_problem(app, "attention", "forward and backward");
  add_size(*attention, "B", problem.sequences, "sequences");
  add_size(*attention, "H", problem.heads, "query heads");
  add_size(*attention, "Q", problem.queries, "queries of a sequence");
  add_size(*attention, "KV", problem.keys, "keys of a sequence");
  add_size(*attention, "D", problem.head_dim, "elements of a head");
  mptools::add_integer(*attention, "--kv-heads", problem.kv_heads, 1,
                       "heads of k and v (default: H)");
  mptools::add_integer(*attention, "--head-dim-v", problem.head_dim_v, 1,
                       "elements of a head of v and o (default: D)");
  attention->callback([&] {
    options.problem = Options::Problem::attention;
    options.attention = attention_of(problem);
  });
}

/// The doctor checks everything, so options that select something are rejected.
CLI::App *add_doctor(CLI::App &app, bool &json) {
  CLI::App *const doctor =
      add_problem(app, "doctor", "checks library, driver, devices, tuning table and environment");
  doctor->add_flag("--json", json, "print JSON");
  doctor->footer(kDoctorNotes);
  return doctor;
}

void refuse_choices(const CLI::App &app) {
  for (const char *const option : {"--device", "--dtype", "--out", "--all"})
    if (app.count(option) > 0)
      throw mptools::UsageError(std::string("doctor does not accept ") + option +
                                "; it checks all devices and types");
}

}  // namespace

Options parse_options(int argc, const char *const *argv) {
  Options options;
  Problem problem;
  mptools::CommandLine line("mpinfo", kDescription, kNotes);
  line.require_subcommand(0, 1);
  mptools::add_device(line, options.device);
  mptools::add_choice(line, "--dtype", problem.dtype, mptools::kDtypes,
                      "type of the inputs: " MP_FLOAT_TYPE_NAMES)
      ->type_name("TYPE")
      ->default_str("fp16");
  mptools::add_choice(line, "--out", problem.out, mptools::kDtypes,
                      "type of the result (default: that of the inputs)")
      ->type_name("TYPE");
  line.add_flag("--all", options.all, "list all kernels, not only the first ten");
  line.add_flag("--json", options.json, "print JSON");
  const auto add_problems = [&](CLI::App &app) {
    add_gemm(app, problem, options);
    add_conv(app, problem, options);
    add_attention(app, problem, options);
  };
  add_problems(line);
  CLI::App *const explain =
      add_problem(line, "explain", "the plan of a problem: kernel, workspace, cost by part");
  explain->require_subcommand(1);
  add_problems(*explain);
  const CLI::App *const doctor = add_doctor(line, options.json);
  line.parse(argc, argv);
  options.explains = explain->parsed();
  options.doctor = doctor->parsed();
  if (options.doctor) refuse_choices(line);
  return options;
}

}  // namespace mpinfo
