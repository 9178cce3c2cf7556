#include "figures.h"

#include "counted.h"

namespace mpbench {
namespace {

/// Formats types: "fp16>fp32+" reads fp16, writes fp32 and accumulates into it.
std::string types_text(const Figures &f) {
  return text("%s>%s%s", mp_dtype_name(f.dtype), mp_dtype_name(f.out_dtype),
              f.beta != 0 ? "+" : "");
}

/// Formats column "best".
std::string best_text(const std::optional<BestChoice> &best, const Timing &own) {
  if (!best) return "-";
  return is_wrong(best->result) ? "differs" : text("%.3f", ratio_to_peer(best->result, own));
}

/// Formats columns "x fp32" and "x tf32".
std::string baselines_text(const Baselines &baselines, const Timing &own) {
  const auto speedup = [&](const std::optional<PeerResult> &baseline) {
    return baseline ? text("%.2f", ratio_to_peer(*baseline, own)) : std::string("-");
  };
  return text("%7s %7s", speedup(baselines.fp32).c_str(), speedup(baselines.tf32).c_str());
}

/// Formats column "ws MiB": mpcore's / peer's workspace; the limit is in the JSON.
std::string workspace_text(const Figures &f) {
  const auto mib = [](int64_t bytes) {
    return bytes < 0 ? std::string("?") : text("%.3g", static_cast<double>(bytes) / (1 << 20));
  };
  const std::string peer = f.peer_workspace ? mib(f.peer_workspace->used) : "-";
  return text("%9s", (mib(f.workspace_bytes) + '/' + peer).c_str());
}

std::string rank_text(const std::optional<RankResult> &rank) {
  if (!rank) return {};
  return text("  %2lld of %lld: %s, chosen %.2fx", static_cast<Long>(rank->position),
              static_cast<Long>(rank->count), rank->fastest.c_str(),
              rank->chosen_us / rank->fastest_us);
}

std::string sustained_text(const std::optional<SustainedResult> &sustained) {
  if (!sustained) return {};
  const double own_us = sustained->own.median_us;
  const std::string alone = text("  alone %.1f us", own_us);
  return sustained->peer ? alone + text(", peer %.1f, ratio %.3f", sustained->peer->median_us,
                                        sustained->peer->median_us / own_us)
                         : alone;
}

std::string percent_text(double tflops, const std::optional<Peak> &peak) {
  return peak ? text("%.1f", 100 * tflops / peak->tflops) : std::string("-");
}

void add_best(Json &json, const std::optional<BestChoice> &best, const Timing &own) {
  if (!best) return;
  json["peer_best_choice"] = best->choice;
  json["peer_best_of"] = best->of;
  add_workspace(json, "peer_best", best->workspace);
  add_result(json, "peer_best", best->result, own);
}

void add_baseline(Json &json, const std::string &name, const std::optional<PeerResult> &baseline,
                  const Timing &own) {
  if (!baseline) return;
  json[name] = baseline->name;
  add_times(json, name, *baseline);
  json["speedup_over_" + name] = ratio_to_peer(*baseline, own);
}

void add_rank(Json &json, const std::optional<RankResult> &rank) {
  if (!rank) return;
  json.update({{"rank", rank->position},
               {"rank_of", rank->count},
               {"fastest_kernel", rank->fastest},
               {"chosen_us", rank->chosen_us},
               {"fastest_us", rank->fastest_us}});
}

void add_sustained(Json &json, const std::optional<SustainedResult> &sustained) {
  if (!sustained) return;
  json["sustained"] = Json::object();
  add_timing(json["sustained"], sustained->own);
  if (!sustained->peer) return;
  json["peer_sustained"] = Json::object();
  add_timing(json["peer_sustained"], *sustained->peer);
  json["ratio_to_peer_sustained"] = sustained->peer->median_us / sustained->own.median_us;
}

}  // namespace

std::string figures_heading(const Figures &f) {
  if (f.counts) return text("%-11s %-26s ", "types", "kernel") + counts_heading();
  return text("%-11s %-26s %9s %8s %8s %7s %6s %9s %7s %7s %7s %7s %9s  %s", "types", "kernel",
              "time us", "iqr us", "TFLOP/s", "GB/s", "%peak", "peer us", "ratio", "best", "x fp32",
              "x tf32", "ws MiB", "rank");
}

std::string figures_text(const Figures &f, const std::optional<Peak> &peak) {
  const std::string what = text("%-11s %-26s ", types_text(f).c_str(), f.kernel.c_str());
  if (f.counts) return what + counts_text(*f.counts);
  return what +
         text("%9.1f %8.1f %s %7.1f %6s ", f.timing.median_us, f.timing.iqr_us(),
              teraflops_text(f.teraflops()).c_str(), f.timing.giga_per_s(f.min_bytes),
              percent_text(f.teraflops(), peak).c_str()) +
         peer_text(f.peer, f.timing) + text(" %7s ", best_text(f.peer_best, f.timing).c_str()) +
         baselines_text(f.baselines, f.timing) + ' ' + workspace_text(f) + rank_text(f.rank) +
         sustained_text(f.sustained);
}

void add_figures(Json &json, const Figures &f, const std::optional<Peak> &peak) {
  json.update({{"dtype", mp_dtype_name(f.dtype)},
               {"out_dtype", mp_dtype_name(f.out_dtype)},
               {"beta", f.beta},
               {"flop", f.flop},
               {"min_bytes", f.min_bytes},
               {"kernel", f.kernel},
               {"workspace_bytes", f.workspace_bytes}});
  if (f.counts) return add_counts(json, *f.counts);
  json["sets"] = f.sets;
  if (f.predicted_us > 0) json["predicted_us"] = f.predicted_us;
  add_timing(json, f.timing);
  json["tflops"] = f.teraflops();
  json["gb_per_s"] = f.timing.giga_per_s(f.min_bytes);
  if (peak) json["percent_of_peak"] = 100 * f.teraflops() / peak->tflops;
  add_peer(json, f.peer, f.timing);
  if (f.peer_workspace) add_workspace(json, "peer", *f.peer_workspace);
  add_best(json, f.peer_best, f.timing);
  add_baseline(json, "fp32", f.baselines.fp32, f.timing);
  add_baseline(json, "tf32", f.baselines.tf32, f.timing);
  add_rank(json, f.rank);
  add_sustained(json, f.sustained);
}

}  // namespace mpbench
