#include "counts.h"

namespace mpbench {
namespace {

using mptools::Json;

/// Sum over all paths to a memory.
int64_t sum(const Json &paths, const char *field) {
  int64_t all = 0;
  for (const Json &path : paths) all += path.at(field).get<int64_t>();
  return all;
}

/// Removes classes without instructions, file names and mangled names, which readers of results do
/// not need.
Json brief(const Json &kernel) {
  Json classes = Json::object();
  for (const auto &[name, count] : kernel.at("classes").items())
    if (count != 0) classes[name] = count;
  Json json{{"name", kernel.at("pretty_name")}};
  for (const char *field :
       {"launches", "blocks", "issue_slots", "classes", "tensor", "global", "shared", "waits"})
    json[field] = kernel.at(field);
  json["classes"] = classes;
  return json;
}

}  // namespace

Counts read_counts(const std::string &taken) {
  const Json all = Json::parse(taken);
  const Json &total = all.at("total");
  Counts counts{.launches = total.at("launches"),
                .issue_slots = total.at("issue_slots"),
                .barriers = total.at("waits").at("barriers"),
                .tensor_flop = total.at("tensor").at("flops"),
                .sectors = sum(total.at("global"), "sectors"),
                .least_sectors = sum(total.at("global"), "least_sectors"),
                .wavefronts = sum(total.at("shared"), "wavefronts"),
                .least_wavefronts = sum(total.at("shared"), "least_wavefronts"),
                .kernels = Json::array()};
  for (const Json &kernel : all.at("kernels")) counts.kernels.push_back(brief(kernel));
  return counts;
}

Counts count_call(const Machine &machine, const Work &work) {
  work();
  machine.synchronize();
  machine.cuda()->take_counts();
  work();
  return read_counts(machine.cuda()->take_counts());
}

}  // namespace mpbench
