// Findings of the doctor as text and as JSON.
#include <algorithm>

#include "doctor.h"
#include "mpcore.h"
#include "report.h"
#include "support/json.h"
#include "support/text.h"

namespace mpinfo {
namespace {

using mptools::Json;
using mptools::text;

const char *word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::note:
      return "note";
    case Verdict::problem:
      return "problem";
  }
  return "";
}

std::string text_of(const Finding &finding) {
  std::string said = finding.what;
  if (!finding.remedy.empty()) said += ". " + finding.remedy;
  return text("%-7s  %-15s  ", word_of(finding.verdict), finding.check.c_str()) +
         mptools::one_line(said) + "\n";
}

std::string counted(ptrdiff_t count, const char *noun) {
  return (count > 0 ? std::to_string(count) : "no") + " " + noun + (count != 1 ? "s" : "");
}

ptrdiff_t count_of(const std::vector<Finding> &findings, Verdict verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [verdict](const Finding &finding) { return finding.verdict == verdict; });
}

Json json_of(const Finding &finding) {
  Json json{
      {"check", finding.check}, {"verdict", word_of(finding.verdict)}, {"what", finding.what}};
  if (!finding.remedy.empty()) json["remedy"] = finding.remedy;
  return json;
}

}  // namespace

std::string as_text(const std::vector<Finding> &findings) {
  std::string result;
  for (const Finding &finding : findings) result += text_of(finding);
  return result + "\n" + counted(count_of(findings, Verdict::problem), "problem") + ", " +
         counted(count_of(findings, Verdict::note), "note") + "\n";
}

std::string as_json(const std::vector<Finding> &findings) {
  Json list = Json::array();
  for (const Finding &finding : findings) list.push_back(json_of(finding));
  return mptools::json_text(Json{{"version", loaded_version()},
                                 {"header_version", header_version()},
                                 {"build", mp_build_info()},
                                 {"problems", count_of(findings, Verdict::problem)},
                                 {"notes", count_of(findings, Verdict::note)},
                                 {"findings", list}});
}

}  // namespace mpinfo
