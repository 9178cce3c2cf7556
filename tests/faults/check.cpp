#include "check.h"

#include <cstdio>
#include <cstdlib>

#include "progress.h"
#include "run.h"
#include "tests/support/testing.h"

namespace mptest::faults {

namespace {

constexpr int kSeconds = 100;  // time limit of a child
constexpr int kMaxCrashes = 4;
constexpr size_t kMaxText = 2000;  // limit of findings; more would not help

struct Outcome {
  uint64_t results = 0;
  int64_t growth = 0;  ///< leaked blocks
  bool has_struck = false;
};

/// FNV-1a hash.
uint64_t hash_of(const std::vector<uint8_t> &bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

void add_findings(const std::string &what) {
  const Fault &fault = progress().fault;
  const std::string which =
      fault.source == Source::kNone
          ? "without a fault"
          : "request " + std::to_string(fault.at) + (fault.persists ? " and all after it" : "");
  if (!what.empty()) progress().add(which + ":\n" + what);
}

Outcome run_once(const Entry &calls, const Fault &fault, bool has_allocator) {
  Outcome outcome;
  progress().fault = fault;
  const int64_t before = num_live();
  plan(fault);
  {
    std::string findings;
    try {
      Run run(has_allocator, findings);
      calls.run(run);
      run.finish();
      outcome.results = hash_of(run.results());
    } catch (const Stuck &) {
    }
    add_findings(findings);
  }
  outcome.has_struck = has_struck();
  outcome.growth = num_live() - before;
  return outcome;
}

void compare(const Outcome &outcome, uint64_t wanted, bool counts_blocks) {
  if (outcome.results != wanted) add_findings("  other results than without a fault\n");
  if (counts_blocks && outcome.growth != 0)
    add_findings("  " + std::to_string(outcome.growth) + " blocks are left\n");
}

/// Configures a child, before any other call.
void set_up(const Campaign &campaign) {
  setenv("MP_HOST_THREADS", std::to_string(campaign.threads).c_str(), 1);
  const mp_log_callback_t drop = [](mp_log_level_t, const char *, void *) {};
  mp_set_log_callback(drop, nullptr, MP_LOG_DEBUG);
}

void run_warm(const Entry &calls, const Campaign &campaign, int64_t first) {
  const bool has_allocator = campaign.source == Source::kAllocator;
  // The findings of a failure always fit in the buffer.
  set_up(campaign);
  (void)mp_context_create(nullptr, nullptr);
  for (int i = 0; i < 2; ++i) (void)run_once(calls, {}, has_allocator);
  const Outcome wanted = run_once(calls, {}, has_allocator);
  compare(wanted, wanted.results, campaign.threads == 1);
  progress().results = wanted.results;
  progress().is_over = progress().size > 0;
  for (int64_t at = first; !progress().is_over; at = campaign.request_after(at)) {
    const Outcome outcome =
        run_once(calls, {campaign.source, at, campaign.persists}, has_allocator);
    compare(outcome, wanted.results, campaign.threads == 1);
    progress().is_over = !outcome.has_struck || progress().size > kMaxText;
    progress().faults += outcome.has_struck ? 1 : 0;
  }
}

void run_cold(const Entry &calls, const Campaign &campaign, int64_t at, uint64_t wanted) {
  const bool has_allocator = campaign.source == Source::kAllocator;
  const Fault fault = at > 0 ? Fault{campaign.source, at, campaign.persists} : Fault{};
  set_up(campaign);
  const Outcome outcome = run_once(calls, fault, has_allocator);
  progress().is_over = fault.source != Source::kNone && !outcome.has_struck;
  progress().faults += outcome.has_struck ? 1 : 0;
  if (fault.source == Source::kNone)
    progress().results = outcome.results;
  else
    compare(outcome, wanted, false);
  const uint64_t again = run_once(calls, {}, has_allocator).results;
  if (fault.source != Source::kNone && again != wanted)
    add_findings("  other results afterwards\n");
  progress().fault = fault;
}

/// Runs in one child; if it is killed, continues after that fault in another one.
Found run_warm_campaign(const Entry &calls, const Campaign &campaign) {
  Found found;
  progress() = {};
  int64_t first = 1;
  for (int child = 0; child < kMaxCrashes && !progress().is_over; ++child) {
    found.findings += in_child(kSeconds, [&] { run_warm(calls, campaign, first); });
    first = progress().fault.at + 1;
  }
  found.faults = progress().faults;
  return found;
}

Found run_cold_campaign(const Entry &calls, const Campaign &campaign) {
  Found found;
  progress() = {};
  found.findings = in_child(kSeconds, [&] { run_cold(calls, campaign, 0, 0); });
  const uint64_t wanted = progress().results;
  for (int64_t at = 1; !progress().is_over && found.findings.size() < kMaxText;
       at = campaign.request_after(at))
    found.findings += in_child(kSeconds, [&] { run_cold(calls, campaign, at, wanted); });
  found.faults = progress().faults;
  return found;
}

}  // namespace

Found run_campaign(const Entry &calls, const Campaign &campaign) {
  return campaign.is_cold ? run_cold_campaign(calls, campaign) : run_warm_campaign(calls, campaign);
}

void check_all(const Catalog &catalog, const Campaign &campaign) {
  for (const Entry &calls : catalog) {
    const Found found = run_campaign(calls, campaign);
    std::printf("%s: %lld faults\n", calls.name.c_str(), static_cast<long long>(found.faults));
    CHECK(found.faults > 0);
    expect_none(found.findings, calls.name);
  }
}

}  // namespace mptest::faults
