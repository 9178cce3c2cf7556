#include "row.h"

namespace mpbench {
namespace {

std::string cell_text(const Field &field) {
  const Json &value = field.value;
  if (value.is_null()) return "-";
  if (value.is_number_float()) return text("%.*f", field.digits, value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

template <typename TextOf>
std::string joined(const Fields &fields, TextOf text_of) {
  std::string line;
  for (const Field &field : fields.list)
    if (field.title != nullptr) line += text("%*s ", field.width, text_of(field).c_str());
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

Json ratio_of(int64_t actual, int64_t least) {
  return least == 0 ? Json() : Json(static_cast<double>(actual) / static_cast<double>(least));
}

}  // namespace

Fields &Fields::operator+=(const Fields &other) {
  list.insert(list.end(), other.list.begin(), other.list.end());
  more += other.more;
  return *this;
}

Fields nested(const std::string &key, Fields fields) {
  const Json members = json_of(fields);
  for (Field &field : fields.list) field.key.clear();
  fields.list.push_back({key, members});
  return fields;
}

std::string heading_of(const Fields &fields) {
  return '\n' + fields.set + (fields.set.empty() ? "" : "\n") +
         joined(fields, [](const Field &field) { return std::string(field.title); }) + '\n';
}

std::string columns_of(const Fields &fields) {
  return joined(fields, cell_text);
}

std::string line_of(const Fields &fields) {
  return columns_of(fields) + '\n' + fields.more;
}

Json json_of(const Fields &fields) {
  Json json = Json::object();
  for (const Field &field : fields.list)
    if (!field.key.empty() && !field.value.is_null()) json[field.key] = field.value;
  return json;
}

PeerResult peer_result(std::string name, const Timing &timing) {
  return {.name = std::move(name),
          .median_us = timing.median_us,
          .q1_us = timing.q1_us,
          .q3_us = timing.q3_us};
}

double ratio_to_peer(const PeerResult &peer, const Timing &own) {
  return peer.median_us / own.median_us;
}

Fields counts_fields(const Counts &c) {
  return {{"", c.launches, "launches", 8},
          {"", c.issue_slots, "issue slots", 12},
          {"", 1e-6 * c.tensor_flop, "tensor MFLOP", 12},
          {"", c.sectors, "sectors", 11},
          {"", ratio_of(c.sectors, c.least_sectors), "x least", 7, 2},
          {"", c.wavefronts, "wavefronts", 12},
          {"", ratio_of(c.wavefronts, c.least_wavefronts), "x least", 7, 2},
          {"", c.barriers, "barriers", 10},
          {"counts", c.kernels}};
}

Fields gpu_load_fields(const std::optional<GpuLoad> &gpu) {
  if (!gpu) return {};
  return {{"gpu_readings", gpu->readings},       {"sm_mhz", gpu->sm_mhz},
          {"least_sm_mhz", gpu->least_sm_mhz},   {"power_w", gpu->power_w},
          {"temperature_c", gpu->temperature_c}, {"power_capped", gpu->power_capped},
          {"heat_capped", gpu->heat_capped}};
}

Fields timing_fields(const Timing &timing, const char *title, int width, int digits) {
  return Fields{{"median_us", timing.median_us, title, width, digits},
                {"", timing.iqr_us(), title != nullptr ? "iqr us" : nullptr, width - 1, digits},
                {"q1_us", timing.q1_us},
                {"q3_us", timing.q3_us},
                {"batches", timing.batches},
                {"calls_per_batch", timing.calls_per_batch},
                {"enqueue_us", timing.enqueue_us}} +
         gpu_load_fields(timing.gpu);
}

Fields times_fields(const std::string &name, const PeerResult &result, const char *title,
                    int width) {
  return {{name + "_median_us", result.median_us, title, width},
          {name + "_q1_us", result.q1_us},
          {name + "_q3_us", result.q3_us}};
}

Fields result_fields(const std::string &name, const std::optional<PeerResult> &result,
                     const Timing &own, const char *ratio_title, const char *title) {
  if (!result) return {{"", {}, title, 9}, {"", {}, ratio_title, 7}};
  Field ratio{"ratio_to_" + name, ratio_to_peer(*result, own), ratio_title, 7, 3};
  if (result->agrees == false) ratio = {"", "differs", ratio_title, 7};
  return times_fields(name, *result, title) +
         Fields{{name + "_agrees", result->agrees ? Json(*result->agrees) : Json()}, ratio};
}

Fields workspace_fields(const std::string &name, const std::optional<PeerWorkspace> &workspace) {
  if (!workspace) return {};
  return {{name + "_workspace_limit_bytes", workspace->limit},
          {name + "_workspace_bytes", workspace->used >= 0 ? Json(workspace->used) : Json()}};
}

Fields peer_fields(const std::optional<PeerResult> &peer, const Timing &own) {
  Fields fields = Fields{{"peer", peer ? Json(peer->name) : Json()}} +
                  result_fields("peer", peer, own, "ratio", "peer us");
  if (peer && peer->deterministic) fields += {{"peer_deterministic", *peer->deterministic}};
  if (peer && peer->workspace_bytes) fields += {{"peer_workspace_bytes", *peer->workspace_bytes}};
  return fields;
}

Fields other_peers_fields(const std::vector<PeerResult> &peers, const Timing &own, int indent) {
  Json others;
  Fields fields{};
  for (size_t i = 1; i < peers.size(); i++) {
    const Fields other = peer_fields(peers[i], own);
    others.push_back(json_of(other));
    fields.more +=
        text("%*s%s  %s\n", indent, "", columns_of(other).c_str(), peers[i].name.c_str());
  }
  return fields += {{"other_peers", others}};
}

Fields memory_fields(const Timing &timing, double bytes, const CopyBeside &copy) {
  const double rate = timing.giga_per_s(bytes), copy_rate = copy.timing.giga_per_s(copy.bytes);
  return timing_fields(timing, "time us") +
         Fields{{"gb_per_s", rate, "GB/s", 7},
                {"copy_bytes", copy.bytes},
                {"copy_median_us", copy.timing.median_us},
                {"copy_gb_per_s", copy_rate, "copy", 7},
                {"percent_of_copy", 100 * rate / copy_rate, "%copy", 6}};
}

}  // namespace mpbench
