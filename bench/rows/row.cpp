#include "row.h"

namespace mpbench {

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

std::string peer_text(const std::optional<PeerResult> &peer, const Timing &own) {
  if (!peer) return text("%9s %7s", "-", "-");
  if (is_wrong(*peer)) return text("%9.1f %7s", peer->median_us, "differs");
  return text("%9.1f %7.3f", peer->median_us, ratio_to_peer(*peer, own));
}

std::string memory_text(const Timing &timing, double bytes, const CopyBeside &copy) {
  const double rate = timing.giga_per_s(bytes), copy_rate = copy.timing.giga_per_s(copy.bytes);
  return text("%9.1f %8.1f %7.1f %7.1f %6.1f ", timing.median_us, timing.iqr_us(), rate, copy_rate,
              100 * rate / copy_rate);
}

void add_memory(Json &json, const Timing &timing, double bytes, const CopyBeside &copy) {
  const double rate = timing.giga_per_s(bytes), copy_rate = copy.timing.giga_per_s(copy.bytes);
  add_timing(json, timing);
  json.update({{"gb_per_s", rate},
               {"copy_bytes", copy.bytes},
               {"copy_median_us", copy.timing.median_us},
               {"copy_gb_per_s", copy_rate},
               {"percent_of_copy", 100 * rate / copy_rate}});
}

/// Formats a rate with five digits: GPUs reach hundreds, the host target hundredths.
std::string teraflops_text(double tflops) {
  return text(tflops < 1 ? "%8.5f" : "%8.2f", tflops);
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

void add_times(Json &json, const std::string &name, const PeerResult &result) {
  json[name + "_median_us"] = result.median_us;
  json[name + "_q1_us"] = result.q1_us;
  json[name + "_q3_us"] = result.q3_us;
}

void add_result(Json &json, const std::string &name, const PeerResult &result, const Timing &own) {
  add_times(json, name, result);
  if (result.agrees) json[name + "_agrees"] = *result.agrees;
  if (!is_wrong(result)) json["ratio_to_" + name] = ratio_to_peer(result, own);
}

void add_workspace(Json &json, const std::string &name, const PeerWorkspace &workspace) {
  json[name + "_workspace_limit_bytes"] = workspace.limit;
  if (workspace.used >= 0) json[name + "_workspace_bytes"] = workspace.used;
}

void add_peer(Json &json, const std::optional<PeerResult> &peer, const Timing &own) {
  if (!peer) return;
  json["peer"] = peer->name;
  add_result(json, "peer", *peer, own);
}

}  // namespace mpbench
