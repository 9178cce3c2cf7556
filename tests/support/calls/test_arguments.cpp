// Wrong pointers in every call of the catalogue: each pointer, argument or in a struct, is NULL
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

#include "tests/support/calls/catalogue.h"
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

class WrongPointers : public Caller {
 public:
  /// @param needed  exceptions that calls have needed
  WrongPointers(Log &log, std::set<std::string> &needed)
      : Caller(mptest::context()), log_(log), needed_(needed) {}

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
    // The functions that prepare the memory of other calls are examined once.
    constexpr std::string_view kOfMemory[] = {"mp_malloc", "mp_memcpy", "mp_memset",
                                              "mp_stream_sync"};
    const bool is_new = called.insert(name).second;
    if (!is_new && std::ranges::find(kOfMemory, std::string_view(name)) != std::end(kOfMemory))
      return;
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
    for (const Writes &row : kWrites)
      for (const Pointer &written : pointers)
        for (const Pointer &other : pointers)
          if (row.function == name) overlap(subject, row, written, other);
  }

  /// Moves `other` into memory that the call writes: to its address, to its last element, and to
  /// where only the last element of `other` is in it.
  void overlap(const Subject &subject, const Writes &writes, const Pointer &written,
               const Pointer &other) {
    const auto is_written = [&](const Pointer &pointer) {
      return has(writes.written, pointer.path) || has(kWrittenByAll, pointer.path);
    };
    const Block *const out = block_of(value_of(written)), *const in = block_of(value_of(other));
    if (!is_written(written) || out == nullptr || in == nullptr || out == in) return;
    if (writes.may_measure_inputs && has(kStatistics, written.path) && !is_written(other)) return;
    for (const Pointer *pointer : {&written, &other})
      if (has_exception(writes.function, pointer->path, &Exceptions::ignored) &&
          status_with(subject, *pointer, value_of(*pointer) + 1) == MP_SUCCESS)
        return;
    auto *const begin = static_cast<char *>(out->data);
    const auto aligned = [&](char *address) {  // rounds down
      return address - reinterpret_cast<uintptr_t>(address) % in->alignment;
    };
    const std::string how = " overlaps " + written.path + ": ";
    if (!has(writes.in_place, written.path + "=" + other.path)) {
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
      needed_.insert(key);
      return;
    }
    const bool is_optional = has_exception(function, pointer.path, &Exceptions::optional);
    if (!is_optional)
      expect_failure(subject, pointer, nullptr, MP_ERROR_INVALID_ARGUMENT, kNull);
    else if (!needed_.contains(key) &&
             status_with(subject, pointer, nullptr) != MP_ERROR_INVALID_ARGUMENT)
      needed_.insert(key);
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
  std::set<std::string> &needed_;
};

/// Returns the exceptions of the table that no call has needed.
std::string unneeded_exceptions(const std::set<std::string> &needed) {
  std::string unneeded;
  for (const Exceptions &row : kExceptions)
    for (const std::string_view column : {row.optional, row.ignored}) {
      std::istringstream paths{std::string(column)};
      for (std::string path; paths >> path;) {
        const std::string key = std::string(row.function) + " " + path;
        const bool is_needed = std::ranges::any_of(needed, [&](const std::string &call) {
          return row.function.empty() ? call.ends_with(key) : call == key;
        });
        if (!is_needed) unneeded += "unneeded exception: " + key + "\n";
      }
    }
  return unneeded;
}

}  // namespace

TEST_CASE("arguments: a NULL, misaligned or overlapping pointer is named and nothing is written",
          "[arguments]") {
  Log log;
  mp_set_log_callback(Log::add, &log, MP_LOG_ERROR);
  std::set<std::string> called, needed;
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
  expect_none(findings + unneeded_exceptions(needed), "");
  CHECK(checks > 5000);
  for (const Function &function : kFunctions) {
    CAPTURE(function.name);
    CHECK(called.contains(function.name) != kNotCalled.contains(function.name));
  }
}

namespace {

/// mp_dropout with an error: accepts y = NULL, writes y, returns another status, names another
/// argument, or accepts half of the alignment of `offset`.
enum class Injected { kAccepts, kWrites, kStatus, kMessage, kAlignment } injected;

mp_status_t drop_out(mp_context_t context, const mp_dropout_desc_t *desc, const uint64_t *offset,
                     const void *x, void *y, const mp_grad_stats_t *stats, mp_stream_t stream) {
  if (injected == Injected::kAccepts && y == nullptr) return MP_SUCCESS;
  constexpr uintptr_t kHalf = sizeof(uint64_t) / 2;
  if (injected == Injected::kAlignment && reinterpret_cast<uintptr_t>(offset) % kHalf == 0)
    offset = nullptr;
  const mp_status_t status = mp_dropout(context, desc, offset, x, y, stats, stream);
  if (status == MP_SUCCESS) return status;
  if (injected == Injected::kWrites && y != nullptr) (void)mp_memset(context, y, 1, 1, stream);
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
                                       "mp_dropout: offset is misaligned: returned MP_SUCCESS"};
  Log log;
  std::set<std::string> needed;
  mp_set_log_callback(Log::add, &log, MP_LOG_ERROR);
  for (const Injected kind : {Injected::kAccepts, Injected::kWrites, Injected::kStatus,
                              Injected::kMessage, Injected::kAlignment}) {
    injected = kind;
    WrongPointers caller(log, needed);
    const mp_dropout_desc_t desc = mp_dropout_desc_default(8, 0.5f, MP_FP16);
    const uint64_t *const offset = caller.dropout_offset();
    const void *const x = caller.input(MP_FP16, 8);
    void *const y = caller.output(MP_FP16, 8);
    caller.call("mp_dropout", drop_out, caller.context(), &desc, offset, x, y, nullptr, nullptr);
    CHECK_THAT(caller.findings,
               Catch::Matchers::ContainsSubstring(kFindings[static_cast<size_t>(kind)]));
  }
  quiet_log();
}
