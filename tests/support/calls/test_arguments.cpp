// Wrong pointers in every call of the catalog: each pointer, argument or in a struct, is NULL
// once, and each device pointer misaligned once, by half of the required alignment.  Memory that a
// call writes overlaps each other argument in three ways.
//
// Such a call must return the documented status, name the function and the argument, log the
// message once, and write nothing.  Optional pointers must be accepted if NULL, and ignored
// pointers with any value.
#define MP_ENABLE_EXPERIMENTAL
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <set>
#include <sstream>

#include "tests/support/calls/catalog.h"
#include "tests/support/calls/pointer_rules.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

struct Parameter {
  const char *name;
  bool is_pointer;
  size_t written_bytes;  ///< host memory to which it points, if the type is known; otherwise 0
  const char *struct_name;
};
struct Function {
  const char *name;
  std::vector<Parameter> parameters;
};
struct Member {
  const char *name;
  size_t offset;
};
struct Struct {
  const char *name;
  std::vector<Member> pointers;
};
#include "tests/support/calls/parameters.inc"

/// Counts messages of errors.
struct Log {
  int errors = 0;
  std::string last;
  static void add(mp_log_level_t level, const char *message, void *user) {
    auto &log = *static_cast<Log *>(user);
    if (level != MP_LOG_ERROR) return;
    ++log.errors;
    log.last = message;
  }
};

bool has_word(const std::string &text, const std::string &word) {
  const auto is_part = [&](size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if (!is_part(at - 1) && !is_part(at + word.size())) return true;
  return false;
}

using Call = std::function<mp_status_t()>;

/// Parts of the tables that calls have needed, as FUNCTION PART.
struct Needed {
  std::set<std::string> exceptions;
  std::set<std::string> writes;  ///< arguments and pairs of kWrites
  std::set<std::string> not_compared;
};

class WrongPointers : public Caller {
 public:
  WrongPointers(Log &log, Needed &needed) : Caller(mptest::context()), log_(log), needed_(needed) {}

  std::set<std::string> called;
  std::string findings;
  int checks = 0;

 private:
  /// A call whose pointers are replaced.
  struct Subject {
    const Function &function;
    ArgumentAddresses addresses;
    const Call &body;
    const std::function<void()> &put_back;
  };
  /// One of its pointers.
  struct Pointer {
    void *address;
    std::string path;
    const char *name;
  };

  void examine(const char *name, ArgumentAddresses addresses, const Call &body,
               const std::function<void()> &put_back) override {
    // The functions that prepare the memory of other calls are examined once; tests/capi/overlap.c
    // tests overlaps of mp_memcpy.
    constexpr std::string_view kOfMemory[] = {"mp_malloc", "mp_memcpy", "mp_memset",
                                              "mp_stream_sync"};
    const bool is_new = called.insert(name).second;
    const bool is_of_memory =
        std::ranges::find(kOfMemory, std::string_view(name)) != std::end(kOfMemory);
    if (!is_new && is_of_memory) return;
    const auto *const function = std::ranges::find_if(
        kFunctions, [&](const Function &f) { return std::string_view(f.name) == name; });
    if (function == std::end(kFunctions)) return;  // allocates or reads the data of the test
    const Subject subject = {*function, addresses, body, put_back};
    std::vector<Pointer> pointers;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const Parameter &p = function->parameters.at(i);
      if (!p.is_pointer) continue;
      pointers.push_back({addresses[i], p.name, p.name});
      char *const copy = value_of(pointers.back());
      if (copy == nullptr || block_of(copy) != nullptr) continue;
      const std::string prefix =
          std::string_view(p.name) == "tensors" ? "" : std::string(p.name) + ".";
      for (const Struct &s : kStructs)
        if (std::string_view(s.name) == p.struct_name)
          for (const Member &m : s.pointers)
            pointers.push_back({copy + m.offset, prefix + m.name, m.name});
    }
    for (const Pointer &pointer : pointers) replace(subject, pointer);
    const auto *const row = std::ranges::find(kWrites, name, &Writes::function);
    if (row == std::end(kWrites) && !is_of_memory) require_not_compared(subject, pointers);
    if (row == std::end(kWrites)) return;
    for (const Pointer &written : pointers)
      for (const Pointer &other : pointers) overlap(subject, *row, written, other);
  }

  /// Notes a function with an output that is not in kNotCompared; queries write no outputs.
  void require_not_compared(const Subject &subject, const std::vector<Pointer> &pointers) {
    if (std::string_view(subject.function.name).ends_with("_workspace_size")) return;
    for (const Pointer &pointer : pointers) {
      const Block *const block = block_of(value_of(pointer));
      if (block == nullptr || !block->is_output) continue;
      const char *const name = subject.function.name;
      if (std::ranges::any_of(kNotCompared,
                              [&](const NotCompared &row) { return has(row.functions, name); }))
        needed_.not_compared.insert(name);
      else
        note(subject, pointer, ": ", "is an output; add the function to kWrites or kNotCompared");
    }
  }

  /// Moves `other` into memory that the call writes: to its address, to its last element, and to
  /// where only the last element of `other` is in it.
  void overlap(const Subject &subject, const Writes &writes, const Pointer &written,
               const Pointer &other) {
    const auto is_written = [&](const Pointer &pointer) {
      return has(writes.written, pointer.path) || has(kWrittenByAll, pointer.path);
    };
    const std::string pair = written.path + "=" + other.path;
    if (!writes.compared.empty() && !has(writes.compared, pair)) return;
    const Block *const out = block_of(value_of(written)), *const in = block_of(value_of(other));
    if (!is_written(written) || out == nullptr || in == nullptr || out == in) return;
    for (const Pointer *pointer : {&written, &other})
      if (has_exception(writes.function, pointer->path, &Exceptions::ignored) &&
          status_with(subject, *pointer, value_of(*pointer) + 1) == MP_SUCCESS)
        return;
    auto *const begin = static_cast<char *>(out->data);
    const auto aligned = [&](char *address) {  // rounds down
      return address - reinterpret_cast<uintptr_t>(address) % in->alignment;
    };
    for (const std::string &part : {written.path, pair})
      needed_.writes.insert(subject.function.name + (" " + part));
    const std::string how = " overlaps " + written.path + ": ";
    if (!has(writes.in_place, pair)) {
      if (!expect_failure(subject, other, begin, MP_ERROR_INVALID_ARGUMENT, how)) return;
    } else if (status_with(subject, other, begin) != MP_SUCCESS) {
      note(subject, other, how, std::string("may be the same: ") + mp_last_error());
    }
    for (char *const place :
         {aligned(begin + out->bytes - 1), aligned(begin - in->bytes + in->alignment)})
      if (place != begin) expect_failure(subject, other, place, MP_ERROR_INVALID_ARGUMENT, how);
  }
  static char *value_of(const Pointer &pointer) {
    char *value = nullptr;
    std::memcpy(&value, pointer.address, sizeof value);
    return value;
  }

  /// Makes the call with other values of the pointer.
  void replace(const Subject &subject, const Pointer &pointer) {
    char *const good = value_of(pointer);
    if (good == nullptr) return;
    const std::string_view function = subject.function.name;
    constexpr const char *kNull = " = NULL: ", *kMisaligned = " is misaligned: ";
    const Block *const block = block_of(good);
    const bool has_alignment =
        block != nullptr && block->alignment > 1 && !function.starts_with("mp_mem");
    char *const misaligned = has_alignment ? good + block->alignment / 2 : good;
    const std::string key = subject.function.name + (" " + pointer.path);
    if (has_exception(function, pointer.path, &Exceptions::ignored) &&
        status_with(subject, pointer, nullptr) == MP_SUCCESS) {
      if (status_with(subject, pointer, misaligned) != MP_SUCCESS)
        note(subject, pointer, kMisaligned, std::string("is not ignored: ") + mp_last_error());
      needed_.exceptions.insert(key);
      return;
    }
    const bool is_optional = has_exception(function, pointer.path, &Exceptions::optional);
    if (!is_optional)
      expect_failure(subject, pointer, nullptr, MP_ERROR_INVALID_ARGUMENT, kNull);
    else if (!needed_.exceptions.contains(key) &&
             status_with(subject, pointer, nullptr) != MP_ERROR_INVALID_ARGUMENT)
      needed_.exceptions.insert(key);
    if (has_alignment)
      expect_failure(subject, pointer, misaligned, MP_ERROR_MISALIGNED, kMisaligned);
  }

  /// Makes the call with the pointer `bad`, and then restores the pointer.
  mp_status_t status_with(const Subject &subject, const Pointer &pointer, char *bad) {
    char *const good = value_of(pointer), *handle = nullptr, *before = nullptr;
    const bool creates = std::string_view(subject.function.name).ends_with("_create");
    if (creates) {
      std::memcpy(&handle, subject.addresses[0], sizeof handle);
      std::memcpy(&before, handle, sizeof before);
    }
    std::memcpy(pointer.address, &bad, sizeof bad);
    log_.errors = 0;
    const mp_status_t status = subject.body();
    std::memcpy(pointer.address, &good, sizeof good);
    ++checks;
    if (status != MP_SUCCESS) return status;
    if (creates) {
      destroy_object(subject.function.name, handle);
      std::memcpy(handle, &before, sizeof before);
    }
    subject.put_back();
    return status;
  }
  static void destroy_object(std::string_view function, const void *handle) {
    const auto value = [&]<class Handle>(Handle object) {
      std::memcpy(&object, handle, sizeof object);
      return object;
    };
    if (function == "mp_autocast_create") mp_autocast_destroy(value(mp_autocast_t{}));
    if (function == "mp_context_create") mp_context_destroy(value(mp_context_t{}));
    if (function == "mp_optimizer_create") mp_optimizer_destroy(value(mp_optimizer_t{}));
  }

  /// @param how  the change of the pointer, as in " = NULL: "
  void note(const Subject &subject, const Pointer &pointer, const std::string &how,
            const std::string &why) {
    findings += std::string(subject.function.name) + ": " + pointer.path + how + why + "\n";
  }

  bool expect_failure(const Subject &subject, const Pointer &pointer, char *bad, mp_status_t wanted,
                      const std::string &how) {
    const std::vector<Bytes> before = contents(subject, pointer);
    const mp_status_t got = status_with(subject, pointer, bad);
    const std::string message = got == MP_SUCCESS ? "" : mp_last_error();
    const std::string function = subject.function.name;
    if (got != wanted) {
      note(subject, pointer, how,
           std::string("returned ") + mp_status_string(got) + ": " + message);
      return false;
    }
    if (!message.starts_with(function + ": ") ||
        !has_word(message.substr(function.size()), pointer.name))
      note(subject, pointer, how, "message " + message);
    if (log_.errors != 1 || log_.last != message) note(subject, pointer, how, "is not logged once");
    if (contents(subject, pointer) != before && !kZeroOutputs.contains(function))
      note(subject, pointer, how, "has written an output");
    return true;
  }

  /// Returns the device memory that contains the address, NULL for host memory.
  const Block *block_of(const char *address) const {
    for (const Block &block : blocks()) {
      const auto *const begin = static_cast<const char *>(block.data);
      if (begin <= address && address < begin + block.bytes) return &block;
    }
    return nullptr;
  }

  /// All device memory, and the host memory of the arguments except for a changed struct.
  std::vector<Bytes> contents(const Subject &subject, const Pointer &changed) const {
    std::vector<Bytes> all;
    for (const Block &block : blocks()) {
      all.emplace_back(block.bytes);
      require_ok(mp_memcpy(context(), all.back().data(), block.data, block.bytes, kStream));
    }
    require_ok(mp_stream_sync(context(), kStream));
    for (size_t i = 0; i < subject.addresses.size(); ++i) {
      const size_t bytes = subject.function.parameters.at(i).written_bytes;
      const char *host = nullptr;
      if (bytes > 0) std::memcpy(&host, subject.addresses[i], sizeof host);
      if (host != nullptr && subject.addresses[i] != changed.address && block_of(host) == nullptr)
        all.emplace_back(host, host + bytes);
    }
    return all;
  }

  Log &log_;
  Needed &needed_;
};

/// Returns the parts of the tables that no call has needed.
std::string unneeded_parts(const Needed &needed) {
  std::string unneeded;
  /// @param function  "": any
  const auto require = [&](const std::set<std::string> &keys, std::string_view function,
                           std::string_view parts) {
    std::istringstream in{std::string(parts)};
    for (std::string part; in >> part;) {
      const std::string key = std::string(function) + " " + part;
      const bool is_needed = std::ranges::any_of(keys, [&](const std::string &found) {
        return function.empty() ? found.ends_with(key) : found == key;
      });
      if (!is_needed) unneeded += "unneeded: " + key + "\n";
    }
  };
  for (const Exceptions &row : kExceptions)
    for (const std::string_view column : {row.optional, row.ignored})
      require(needed.exceptions, row.function, column);
  require(needed.writes, "", kWrittenByAll);
  for (const Writes &row : kWrites) {
    for (const std::string_view column : {row.written, row.in_place, row.compared})
      require(needed.writes, row.function, column);
    const auto next = needed.writes.lower_bound(std::string(row.function) + " ");
    if (next == needed.writes.end() || !next->starts_with(std::string(row.function) + " "))
      unneeded += "unneeded row: " + std::string(row.function) + "\n";
  }
  for (const NotCompared &row : kNotCompared) {
    std::istringstream names{std::string(row.functions)};
    for (std::string name; names >> name;)
      if (!needed.not_compared.contains(name)) unneeded += "unneeded row: " + name + "\n";
  }
  return unneeded;
}

}  // namespace

TEST_CASE("arguments: a NULL, misaligned or overlapping pointer is named and nothing is written",
          "[arguments]") {
  Log log;
  mp_set_log_callback(Log::add, &log, MP_LOG_ERROR);
  std::set<std::string> called;
  Needed needed;
  std::string findings;
  int checks = 0;
  for (const Entry &entry : all_calls()) {
    WrongPointers caller(log, needed);
    entry.run(caller);
    called.merge(caller.called);
    findings += caller.findings;
    checks += caller.checks;
  }
  quiet_log();
  expect_none(findings + unneeded_parts(needed), "");
  CHECK(checks > 5000);
  for (const Function &function : kFunctions) {
    CAPTURE(function.name);
    CHECK(called.contains(function.name) != kNotCalled.contains(function.name));
  }
}

namespace {

/// mp_dropout with an error: accepts y = NULL, writes y, returns another status, names another
/// argument, accepts half of the alignment of `offset`, or accepts x and y that overlap.
enum class Injected { kNull, kOutput, kStatus, kMessage, kAlignment, kOverlap } injected;

constexpr int64_t kCount = 8;
constexpr uintptr_t kBytes = kCount * 2;

mp_status_t drop_out(mp_context_t context, const mp_dropout_desc_t *desc, const uint64_t *offset,
                     const void *x, void *y, const mp_grad_stats_t *stats, mp_stream_t stream) {
  if (injected == Injected::kNull && y == nullptr) return MP_SUCCESS;
  constexpr uintptr_t kHalf = sizeof(uint64_t) / 2;
  if (injected == Injected::kAlignment && reinterpret_cast<uintptr_t>(offset) % kHalf == 0)
    offset = nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(x), end = begin + kBytes;
  const auto first = reinterpret_cast<uintptr_t>(y);
  if (injected == Injected::kOverlap && begin != first && begin < first + kBytes && first < end)
    return MP_SUCCESS;
  const mp_status_t status = mp_dropout(context, desc, offset, x, y, stats, stream);
  if (status == MP_SUCCESS) return status;
  if (injected == Injected::kOutput && y != nullptr) (void)mp_memset(context, y, 1, 1, stream);
  if (injected == Injected::kMessage)
    return mp_dropout(context, nullptr, offset, x, y, stats, stream);
  return injected == Injected::kStatus ? MP_ERROR_UNSUPPORTED : status;
}

}  // namespace

TEST_CASE("arguments: injected errors are found", "[arguments][injected]") {
  constexpr const char *kFindings[] = {"mp_dropout: y = NULL: returned MP_SUCCESS",
                                       "mp_dropout: desc = NULL: has written an output",
                                       "mp_dropout: x = NULL: returned MP_ERROR_UNSUPPORTED",
                                       "mp_dropout: x = NULL: message mp_dropout: desc",
                                       "mp_dropout: offset is misaligned: returned MP_SUCCESS",
                                       "mp_dropout: x overlaps y: returned MP_SUCCESS"};
  Log log;
  Needed needed;
  mp_set_log_callback(Log::add, &log, MP_LOG_ERROR);
  for (const Injected kind : {Injected::kNull, Injected::kOutput, Injected::kStatus,
                              Injected::kMessage, Injected::kAlignment, Injected::kOverlap}) {
    injected = kind;
    WrongPointers caller(log, needed);
    const mp_dropout_desc_t desc = mp_dropout_desc_default(kCount, 0.5f, MP_FP16);
    const uint64_t *const offset = caller.dropout_offset();
    const void *const x = caller.input(MP_FP16, kCount);
    void *const y = caller.output(MP_FP16, kCount);
    caller.call("mp_dropout", drop_out, caller.context(), &desc, offset, x, y, nullptr, nullptr);
    CHECK_THAT(caller.findings,
               Catch::Matchers::ContainsSubstring(kFindings[static_cast<size_t>(kind)]));
  }
  quiet_log();
  const std::string unneeded = unneeded_parts(needed);
  for (const char *part : {"unneeded: mp_rope y\n", "unneeded row: mp_gemm_batched\n",
                           "unneeded row: mp_amax\n", "unneeded: mp_gemm D=C\n"})
    CHECK_THAT(unneeded, Catch::Matchers::ContainsSubstring(part));
  CHECK_THAT(unneeded, !Catch::Matchers::ContainsSubstring("mp_dropout y"));
}
