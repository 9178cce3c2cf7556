#include "figures.h"

namespace mpbench {
namespace {

/// Formats types: "fp16>fp32+" reads fp16, writes fp32 and accumulates into it.
std::string types_text(const Figures &f) {
  return text("%s>%s%s", mp_dtype_name(f.dtype), mp_dtype_name(f.out_dtype),
              f.beta != 0 ? "+" : "");
}

Fields best_fields(const std::optional<BestChoice> &best, const Timing &own) {
  if (!best) return {{"", {}, "best", 7}};
  return Fields{{"peer_best_choice", best->choice}, {"peer_best_of", best->of}} +
         workspace_fields("peer_best", best->workspace) +
         result_fields("peer_best", best->result, own, "best");
}

Fields baseline_fields(const std::string &name, const char *title,
                       const std::optional<PeerResult> &baseline, const Timing &own) {
  if (!baseline) return {{"", {}, title, 7}};
  return Fields{{name, baseline->name}} + times_fields(name, *baseline) +
         Fields{{"speedup_over_" + name, ratio_to_peer(*baseline, own), title, 7, 2}};
}

/// Formats column "ws MiB": mpcore's / peer's workspace; the limit is in the JSON.
std::string workspace_text(const Figures &f) {
  const auto mib = [](int64_t bytes) {
    return bytes < 0 ? std::string("?") : text("%.3g", static_cast<double>(bytes) / (1 << 20));
  };
  return mib(f.workspace_bytes) + '/' + (f.peer_workspace ? mib(f.peer_workspace->used) : "-");
}

/// Column "rank" also has the sustained times.
Fields rank_fields(const std::optional<RankResult> &rank,
                   const std::optional<SustainedResult> &sustained) {
  std::string column;
  Fields fields{};
  if (rank) {
    column = text("%2lld of %lld: %s, chosen %.2fx", static_cast<Long>(rank->position),
                  static_cast<Long>(rank->count), rank->fastest.c_str(),
                  rank->chosen_us / rank->fastest_us);
    fields += {{"rank", rank->position},
               {"rank_of", rank->count},
               {"fastest_kernel", rank->fastest},
               {"chosen_us", rank->chosen_us},
               {"fastest_us", rank->fastest_us}};
  }
  if (sustained) {
    const double own_us = sustained->own.median_us;
    column += (rank ? "  " : "") + text("alone %.1f us", own_us);
    fields += nested("sustained", timing_fields(sustained->own));
    if (sustained->peer) {
      const double peer_us = sustained->peer->median_us;
      column += text(", peer %.1f, ratio %.3f", peer_us, peer_us / own_us);
      fields += nested("peer_sustained", timing_fields(*sustained->peer));
      fields += {{"ratio_to_peer_sustained", peer_us / own_us}};
    }
  }
  return Fields{gap(), {"", column, "rank"}} + fields;
}

}  // namespace

Fields figures_fields(const Figures &f, const std::optional<Peak> &peak) {
  Fields fields{{"", types_text(f), "types", -11},
                {"dtype", mp_dtype_name(f.dtype)},
                {"out_dtype", mp_dtype_name(f.out_dtype)},
                {"beta", f.beta},
                {"flop", f.flop > 0 ? Json(f.flop) : Json()},
                {"min_bytes", f.min_bytes},
                {"kernel", f.kernel, "kernel", -26},
                {"workspace_bytes", f.workspace_bytes}};
  if (f.counts) return fields + counts_fields(*f.counts);
  const double tflops = f.teraflops();
  return fields +
         Fields{{"sets", f.sets},
                {"predicted_us", f.predicted_us > 0 ? Json(f.predicted_us) : Json()}} +
         timing_fields(f.timing, "time us") +
         Fields{{"tflops", f.flop > 0 ? Json(tflops) : Json(), "TFLOP/s", 8, rate_digits(tflops)},
                {"gb_per_s", f.timing.giga_per_s(f.min_bytes), "GB/s", 7},
                {"percent_of_peak", peak && f.flop > 0 ? Json(100 * tflops / peak->tflops) : Json(),
                 "%peak", 6}} +
         peer_fields(f.peer, f.timing) + workspace_fields("peer", f.peer_workspace) +
         best_fields(f.peer_best, f.timing) +
         baseline_fields("fp32", "x fp32", f.baselines.fp32, f.timing) +
         baseline_fields("tf32", "x tf32", f.baselines.tf32, f.timing) +
         Fields{{"", workspace_text(f), "ws MiB", 9}} + rank_fields(f.rank, f.sustained);
}

}  // namespace mpbench
