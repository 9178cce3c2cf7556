#include "row.h"

namespace mpbench {
namespace {

bool is_wrong(const PeerResult &peer) {
  return peer.agrees == false;
}

void write_baseline(JsonWriter &json, const std::string &name,
                    const std::optional<PeerResult> &baseline, const Timing &own) {
  if (!baseline) return;
  json.string(name, baseline->name);
  json.number(name + "_median_us", baseline->median_us);
  json.number(name + "_q1_us", baseline->q1_us);
  json.number(name + "_q3_us", baseline->q3_us);
  json.number("speedup_over_" + name, ratio_to_peer(*baseline, own));
}

}  // namespace

PeerResult peer_result(std::string name, const Timing &timing) {
  return {.name = std::move(name),
          .median_us = timing.median_us,
          .q1_us = timing.q1_us,
          .q3_us = timing.q3_us,
          .agrees = {}};
}

double ratio_to_peer(const PeerResult &peer, const Timing &own) {
  return peer.median_us / own.median_us;
}

std::string types_text(mp_dtype_t in, mp_dtype_t out, float beta) {
  return text("%s>%s%s", dtype_name(in), dtype_name(out), beta != 0 ? "+" : "");
}

std::string peer_text(const std::optional<PeerResult> &peer, const Timing &own) {
  if (!peer) return text("%9s %7s", "-", "-");
  if (is_wrong(*peer)) return text("%9.1f %7s", peer->median_us, "differs");
  return text("%9.1f %7.3f", peer->median_us, ratio_to_peer(*peer, own));
}

std::string best_text(const std::optional<BestChoice> &best, const Timing &own) {
  if (!best) return "-";
  return is_wrong(best->result) ? "differs" : text("%.3f", ratio_to_peer(best->result, own));
}

std::string baselines_text(const Baselines &baselines, const Timing &own) {
  const auto speedup = [&](const std::optional<PeerResult> &baseline) {
    return baseline ? text("%.2f", ratio_to_peer(*baseline, own)) : std::string("-");
  };
  return text("%7s %7s", speedup(baselines.fp32).c_str(), speedup(baselines.tf32).c_str());
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

std::string percent_text(double tflops, const std::optional<Peak> &peak) {
  return peak ? text("%.1f", 100 * tflops / peak->tflops) : std::string("-");
}

void write_timing(JsonWriter &json, const Timing &timing) {
  json.number("median_us", timing.median_us);
  json.number("q1_us", timing.q1_us);
  json.number("q3_us", timing.q3_us);
  json.number("batches", timing.batches);
  json.number("calls_per_batch", timing.calls_per_batch);
  json.number("enqueue_us", timing.enqueue_us);
  write_gpu_load(json, timing.gpu);
}

void write_gpu_load(JsonWriter &json, const std::optional<GpuLoad> &gpu) {
  if (!gpu) return;
  json.number("gpu_readings", gpu->readings);
  json.number("sm_mhz", gpu->sm_mhz);
  json.number("least_sm_mhz", gpu->least_sm_mhz);
  json.number("power_w", gpu->power_w);
  json.number("temperature_c", gpu->temperature_c);
  json.number("power_capped", gpu->power_capped);
  json.number("heat_capped", gpu->heat_capped);
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

void write_best(JsonWriter &json, const std::optional<BestChoice> &best, const Timing &own) {
  if (!best) return;
  const PeerResult &result = best->result;
  json.number("peer_best_choice", best->choice);
  json.number("peer_best_of", best->of);
  json.number("peer_best_median_us", result.median_us);
  json.number("peer_best_q1_us", result.q1_us);
  json.number("peer_best_q3_us", result.q3_us);
  if (result.agrees) json.boolean("peer_best_agrees", *result.agrees);
  if (!is_wrong(result)) json.number("ratio_to_peer_best", ratio_to_peer(result, own));
}

void write_baselines(JsonWriter &json, const Baselines &baselines, const Timing &own) {
  write_baseline(json, "fp32", baselines.fp32, own);
  write_baseline(json, "tf32", baselines.tf32, own);
}

void write_rank(JsonWriter &json, const std::optional<RankResult> &rank) {
  if (!rank) return;
  json.number("rank", rank->position);
  json.number("rank_of", rank->count);
  json.string("fastest_kernel", rank->fastest);
  json.number("chosen_us", rank->chosen_us);
  json.number("fastest_us", rank->fastest_us);
}

}  // namespace mpbench
