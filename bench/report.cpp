#include "report.h"

#include <unistd.h>

#include <cstdio>

namespace mpbench {
namespace {

/// Of results/schema.json; grows when a reader of older files would misread newer ones.
constexpr int kSchema = 1;

using Long = long long;  // what %lld wants

/// Of a GEMM or a convolution.
template <typename Row>
double teraflops(const Row &row) {
  return 1e-3 * row.timing.giga_per_s(row.shape.flop());
}

double step_bytes(const StepRow &row) {
  return static_cast<double>(row.bytes_per_parameter * row.parameters);
}

bool is_wrong(const PeerResult &peer) {
  return peer.agrees == false;
}

/// > 1: mpcore is faster.
double ratio_to_peer(const PeerResult &peer, const Timing &own) {
  return peer.median_us / own.median_us;
}

// ---------------------------------------------------------------------------- table

/// "fp16>fp32+" reads fp16, writes fp32 and adds to what is there.
std::string types_text(mp_dtype_t in, mp_dtype_t out, float beta) {
  return text("%s>%s%s", dtype_name(in), dtype_name(out), beta != 0 ? "+" : "");
}

std::string peer_text(const std::optional<PeerResult> &peer, const Timing &own) {
  if (!peer) return text("%9s %7s", "-", "-");
  if (is_wrong(*peer)) return text("%9.1f %7s", peer->median_us, "differs");
  return text("%9.1f %7.3f", peer->median_us, ratio_to_peer(*peer, own));
}

std::string rank_text(const RankResult &rank) {
  return text("  %2lld of %lld: %s, chosen %.2fx", static_cast<Long>(rank.position),
              static_cast<Long>(rank.count), rank.fastest.c_str(),
              rank.chosen_us / rank.fastest_us);
}

/// Five digits: GPUs reach hundreds, the host target hundredths.
std::string teraflops_text(double tflops) {
  return text(tflops < 1 ? "%8.5f" : "%8.2f", tflops);
}

std::string percent_text(double tflops, const std::optional<Ceiling> &ceiling) {
  return ceiling ? text("%.1f", 100 * tflops / ceiling->tflops) : std::string("-");
}

std::string gemm_heading() {
  return text("\n%-2s %7s %7s %7s  %-11s %-24s %9s %8s %8s %7s %6s %9s %7s  %s\n", "op", "m", "n",
              "k", "types", "kernel", "time us", "iqr us", "TFLOP/s", "GB/s", "%ceil", "peer us",
              "ratio", "rank");
}

std::string gemm_line(const GemmRow &row, const std::optional<Ceiling> &ceiling) {
  const std::string types = types_text(row.desc.dtype_ab, row.desc.dtype_cd, row.desc.beta);
  return text("%-2.2s %7lld %7lld %7lld  %-11s %-24s %9.1f %8.1f %s %7.1f %6s ",
              row.shape.name().c_str(), static_cast<Long>(row.shape.m),
              static_cast<Long>(row.shape.n), static_cast<Long>(row.shape.k), types.c_str(),
              row.kernel.c_str(), row.timing.median_us, row.timing.iqr_us(),
              teraflops_text(teraflops(row)).c_str(), row.timing.giga_per_s(row.min_bytes),
              percent_text(teraflops(row), ceiling).c_str()) +
         peer_text(row.peer, row.timing) + (row.rank ? rank_text(*row.rank) : std::string()) + '\n';
}

std::string conv_heading() {
  return text("\n%-42s  %-11s %-26s %9s %8s %8s %7s %6s %9s %7s %9s %7s  %s\n", "convolution",
              "types", "kernel", "time us", "iqr us", "TFLOP/s", "GB/s", "%ceil", "peer us",
              "ratio", "fp32 us", "speedup", "rank");
}

std::string conv_line(const ConvRow &row, const std::optional<Ceiling> &ceiling) {
  const std::string types = types_text(row.desc.dtype, row.desc.dtype_out, row.desc.beta);
  return text("%-42s  %-11s %-26s %9.1f %8.1f %s %7.1f %6s ", row.shape.name().c_str(),
              types.c_str(), row.kernel.c_str(), row.timing.median_us, row.timing.iqr_us(),
              teraflops_text(teraflops(row)).c_str(), row.timing.giga_per_s(row.min_bytes),
              percent_text(teraflops(row), ceiling).c_str()) +
         peer_text(row.peer, row.timing) + ' ' + peer_text(row.fp32, row.timing) +
         (row.rank ? rank_text(*row.rank) : std::string()) + '\n';
}

std::string step_heading() {
  return text("\n%-18s %-8s %7s %11s %8s %9s %8s %7s %7s %6s %9s %7s\n", "op", "layout", "tensors",
              "parameters", "B/param", "time us", "iqr us", "GB/s", "copy", "%copy", "peer us",
              "ratio");
}

std::string step_line(const StepRow &row) {
  const double rate = row.timing.giga_per_s(step_bytes(row));
  const double copy_rate = row.copy.giga_per_s(row.copy_bytes);
  return text("%-18s %-8s %7lld %11lld %8lld %9.1f %8.1f %7.1f %7.1f %6.1f ", row.op.c_str(),
              row.layout.c_str(), static_cast<Long>(row.tensors), static_cast<Long>(row.parameters),
              static_cast<Long>(row.bytes_per_parameter), row.timing.median_us, row.timing.iqr_us(),
              rate, copy_rate, 100 * rate / copy_rate) +
         peer_text(row.peer, row.timing) + '\n';
}

// ---------------------------------------------------------------------------- JSON

void write_timing(JsonWriter &json, const Timing &timing) {
  json.number("median_us", timing.median_us);
  json.number("q1_us", timing.q1_us);
  json.number("q3_us", timing.q3_us);
  json.number("batches", timing.batches);
  json.number("calls_per_batch", timing.calls_per_batch);
  json.number("enqueue_us", timing.enqueue_us);
}

void write_peer(JsonWriter &json, const std::optional<PeerResult> &peer, const Timing &own) {
  if (!peer) return;
  json.string("peer", peer->name);
  json.number("peer_median_us", peer->median_us);
  json.number("peer_q1_us", peer->q1_us);
  json.number("peer_q3_us", peer->q3_us);
  if (peer->agrees) json.boolean("peer_agrees", *peer->agrees);
  if (!is_wrong(*peer)) json.number("ratio_to_peer", ratio_to_peer(*peer, own));
}

void write_rank(JsonWriter &json, const std::optional<RankResult> &rank) {
  if (!rank) return;
  json.number("rank", rank->position);
  json.number("rank_of", rank->count);
  json.string("fastest_kernel", rank->fastest);
  json.number("chosen_us", rank->chosen_us);
  json.number("fastest_us", rank->fastest_us);
}

/// What a GEMM and a convolution have in common.
template <typename Row>
void write_product(JsonWriter &json, const Row &row, const std::optional<Ceiling> &ceiling) {
  json.number("beta", static_cast<double>(row.desc.beta));
  json.number("flop", row.shape.flop());
  json.number("min_bytes", row.min_bytes);
  json.string("kernel", row.kernel);
  json.number("predicted_us", row.predicted_us);
  json.number("workspace_bytes", row.workspace_bytes);
  json.number("sets", row.sets);
  write_timing(json, row.timing);
  json.number("tflops", teraflops(row));
  json.number("gb_per_s", row.timing.giga_per_s(row.min_bytes));
  if (ceiling) json.number("percent_of_ceiling", 100 * teraflops(row) / ceiling->tflops);
  write_peer(json, row.peer, row.timing);
  write_rank(json, row.rank);
}

void write_row(JsonWriter &json, const GemmRow &row, const std::optional<Ceiling> &ceiling) {
  json.open('{');
  json.string("bench", "gemm");
  json.string("set", row.shape.set);
  json.string("shape", row.shape.name());
  json.string("comment", row.shape.comment);
  json.number("m", row.shape.m);
  json.number("n", row.shape.n);
  json.number("k", row.shape.k);
  json.string("dtype", dtype_name(row.desc.dtype_ab));
  json.string("out_dtype", dtype_name(row.desc.dtype_cd));
  write_product(json, row, ceiling);
  json.close('}');
}

void write_row(JsonWriter &json, const ConvRow &row, const std::optional<Ceiling> &ceiling) {
  const ConvShape &shape = row.shape;
  json.open('{');
  json.string("bench", "conv");
  json.string("set", shape.set);
  json.string("shape", shape.name());
  json.string("comment", shape.comment);
  json.string("pass", shape.pass());
  json.number("n", shape.n);
  json.number("h", shape.h);
  json.number("w", shape.w);
  json.number("c", shape.c);
  json.number("k", shape.k);
  json.number("r", shape.r);
  json.number("s", shape.s);
  json.number("pad_h", shape.pad_h);
  json.number("pad_w", shape.pad_w);
  json.number("stride_h", shape.stride_h);
  json.number("stride_w", shape.stride_w);
  json.number("layers", shape.layers);
  json.string("dtype", dtype_name(row.desc.dtype));
  json.string("out_dtype", dtype_name(row.desc.dtype_out));
  write_product(json, row, ceiling);
  if (row.fp32) {
    json.string("fp32", row.fp32->name);
    json.number("fp32_median_us", row.fp32->median_us);
    json.number("fp32_q1_us", row.fp32->q1_us);
    json.number("fp32_q3_us", row.fp32->q3_us);
    json.number("speedup_over_fp32", ratio_to_peer(*row.fp32, row.timing));
  }
  json.close('}');
}

void write_row(JsonWriter &json, const StepRow &row) {
  const double rate = row.timing.giga_per_s(step_bytes(row));
  const double copy_rate = row.copy.giga_per_s(row.copy_bytes);
  json.open('{');
  json.string("bench", "step");
  json.string("op", row.op);
  json.string("layout", row.layout);
  json.number("tensors", row.tensors);
  json.number("parameters", row.parameters);
  json.number("bytes_per_parameter", row.bytes_per_parameter);
  json.number("sets", row.sets);
  write_timing(json, row.timing);
  json.number("gb_per_s", rate);
  json.number("copy_bytes", row.copy_bytes);
  json.number("copy_median_us", row.copy.median_us);
  json.number("copy_gb_per_s", copy_rate);
  json.number("percent_of_copy", 100 * rate / copy_rate);
  write_peer(json, row.peer, row.timing);
  json.close('}');
}

void write_gpu_state(JsonWriter &json, const GpuState &state) {
  json.open('{');
  json.string("during", state.during);
  json.number("sm_mhz", state.sm_mhz);
  json.number("max_sm_mhz", state.max_sm_mhz);
  json.number("memory_mhz", state.memory_mhz);
  json.number("power_w", state.power_w);
  json.number("power_limit_w", state.power_limit_w);
  json.number("temperature_c", state.temperature_c);
  json.close('}');
}

}  // namespace

Report::Report(const Options &options, const Machine &machine)
    : options_(options), stderr_is_terminal_(isatty(STDERR_FILENO)) {
  json_.open('{');
  write_machine(machine);
  json_.open('[', "rows");
  print(machine.on_host() ? "Target: host.  These are times of the CPU that stands in for a GPU; "
                            "they are not GPU figures\nand say nothing about any GPU.\n"
                          : text("Target: cuda, %s.\n", machine.info().name));
}

void Report::write_machine(const Machine &machine) {
  const mp_device_info_t &info = machine.info();
  json_.number("schema", kSchema);
  if (machine.on_host()) json_.string("sample", "host target: says nothing about a GPU");
  json_.string("device", info.name);
  json_.string("target", machine.on_host() ? "host" : "cuda");
  json_.number("arch", info.arch);
  json_.number("num_sms", info.num_sms);
  json_.number("l2_bytes", info.l2_bytes);
  json_.string("commit", mp_build_info());
  json_.string("command", options_.command);
  json_.string("date", mptools::utc_now());
  if (machine.on_host()) {
    json_.null("driver");
    json_.null("cuda");
    return;
  }
  const auto version = [](int number) { return text("%d.%d", number / 1000, number % 1000 / 10); };
  const std::optional<GpuState> idle = machine.gpu_state("before the first measurement");
  if (idle)
    json_.string("driver", idle->driver);
  else
    json_.null("driver");
  json_.string("driver_cuda", version(machine.cuda()->driver_version()));
  json_.string("cuda", version(machine.cuda()->runtime_version()));
  add(idle);
}

void Report::set_ceiling(const Ceiling &ceiling) {
  ceiling_ = ceiling;
  print("GEMM ceiling:" + teraflops_text(ceiling.tflops) + " TFLOP/s (" + ceiling.from + ").\n");
}

void Report::add(const GemmRow &row) {
  print_heading(gemm_heading());
  print(gemm_line(row, ceiling_));
  write_row(json_, row, ceiling_);
}

void Report::add(const ConvRow &row) {
  print_heading(conv_heading());
  print(conv_line(row, ceiling_));
  write_row(json_, row, ceiling_);
}

void Report::add(const StepRow &row) {
  print_heading(step_heading());
  print(step_line(row));
  write_row(json_, row);
}

void Report::add(const std::optional<GpuState> &state) {
  if (state) gpu_states_.push_back(*state);
}

void Report::add_note(const std::string &sentence) {
  notes_.push_back(sentence);
  print(sentence + '\n');
}

void Report::finish() {
  if (stderr_is_terminal_) std::fputs("\r\033[K", stderr);
  json_.close(']');
  if (ceiling_) {
    json_.number("ceiling_tflops", ceiling_->tflops);
    json_.string("ceiling_from", ceiling_->from);
  }
  json_.open('[', "clocks");
  for (const GpuState &state : gpu_states_) write_gpu_state(json_, state);
  json_.close(']');
  json_.open('[', "notes");
  for (const std::string &note : notes_) json_.string({}, note);
  json_.close(']');
  json_.close('}');

  if (options_.json == "-")
    std::fputs(json_.finish().c_str(), stdout);
  else if (!options_.json.empty())
    write_file(options_.json, json_.finish());
}

void Report::show_progress(const std::string &what) const {
  if (!stderr_is_terminal_) return;
  std::fprintf(stderr, "\r\033[K%s", what.c_str());
  std::fflush(stderr);
}

void Report::print(const std::string &line) const {
  if (stderr_is_terminal_) std::fputs("\r\033[K", stderr);
  std::fputs(line.c_str(), options_.json == "-" ? stderr : stdout);
  std::fflush(stdout);
}

void Report::print_heading(const std::string &heading) {
  if (heading != last_heading_) print(heading);
  last_heading_ = heading;
}

}  // namespace mpbench
