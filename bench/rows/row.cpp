#include "row.h"

namespace mpbench {
namespace {

bool is_wrong(const PeerResult &peer) {
  return peer.agrees == false;
}

void add_times(Json &json, const std::string &name, const PeerResult &result) {
  json[name + "_median_us"] = result.median_us;
  json[name + "_q1_us"] = result.q1_us;
  json[name + "_q3_us"] = result.q3_us;
}

/// Without a ratio where it has not computed the same.
void add_result(Json &json, const std::string &name, const PeerResult &result, const Timing &own) {
  add_times(json, name, result);
  if (result.agrees) json[name + "_agrees"] = *result.agrees;
  if (!is_wrong(result)) json["ratio_to_" + name] = ratio_to_peer(result, own);
}

void add_baseline(Json &json, const std::string &name, const std::optional<PeerResult> &baseline,
                  const Timing &own) {
  if (!baseline) return;
  json[name] = baseline->name;
  add_times(json, name, *baseline);
  json["speedup_over_" + name] = ratio_to_peer(*baseline, own);
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

void add_timing(Json &json, const Timing &timing) {
  json.update({{"median_us", timing.median_us},
               {"q1_us", timing.q1_us},
               {"q3_us", timing.q3_us},
               {"batches", timing.batches},
               {"calls_per_batch", timing.calls_per_batch},
               {"enqueue_us", timing.enqueue_us}});
  add_gpu_load(json, timing.gpu);
}

void add_gpu_load(Json &json, const std::optional<GpuLoad> &gpu) {
  if (!gpu) return;
  json.update({{"gpu_readings", gpu->readings},
               {"sm_mhz", gpu->sm_mhz},
               {"least_sm_mhz", gpu->least_sm_mhz},
               {"power_w", gpu->power_w},
               {"temperature_c", gpu->temperature_c},
               {"power_capped", gpu->power_capped},
               {"heat_capped", gpu->heat_capped}});
}

void add_peer(Json &json, const std::optional<PeerResult> &peer, const Timing &own) {
  if (!peer) return;
  json["peer"] = peer->name;
  add_result(json, "peer", *peer, own);
}

void add_best(Json &json, const std::optional<BestChoice> &best, const Timing &own) {
  if (!best) return;
  json["peer_best_choice"] = best->choice;
  json["peer_best_of"] = best->of;
  add_result(json, "peer_best", best->result, own);
}

void add_baselines(Json &json, const Baselines &baselines, const Timing &own) {
  add_baseline(json, "fp32", baselines.fp32, own);
  add_baseline(json, "tf32", baselines.tf32, own);
}

void add_rank(Json &json, const std::optional<RankResult> &rank) {
  if (!rank) return;
  json.update({{"rank", rank->position},
               {"rank_of", rank->count},
               {"fastest_kernel", rank->fastest},
               {"chosen_us", rank->chosen_us},
               {"fastest_us", rank->fastest_us}});
}

}  // namespace mpbench
