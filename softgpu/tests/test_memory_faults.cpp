// Invalid accesses and their messages.
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/global_memory.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

constexpr const char *kRegisters = R"(
  .reg .b32 %s; .reg .b64 %b, %d;
  .shared .align 16 .b8 smem[256]; .local .align 8 .b8 stack[16];
  mov.u32 %s, smem;
)";

/// Returns the fault of a statement, with a buffer of 1024 bytes at %p0.
std::string fault_of(const std::string &statements) {
  const Kernel kernel(body_text(1, kRegisters + statements + "\nret;"));
  Buffer<uint32_t> buffer(256);
  const Outcome outcome = kernel({}, buffer);
  REQUIRE(outcome.violations.empty());
  return outcome.fault;
}

/// Checks the message of each statement's fault; "": no fault.
void check_faults(const std::vector<std::pair<std::string, std::string>> &messages) {
  for (const auto &[statement, message] : messages) {
    INFO(statement);
    const std::string fault = fault_of(statement);
    CHECK_CONTAINS(fault, message);
    CHECK(fault.empty() == message.empty());
  }
}

TEST_CASE("an out-of-bounds global access is a fault") {
  check_faults({
      {"ld.global.u32 %x, [%p0+1020];", ""},
      {"st.global.u8 [%p0+1023], %x;", ""},
      {"ld.global.u32 %x, [%p0+1024];", "out of bounds: read of 4 bytes at 0x"},
      {"ld.global.u32 %x, [%p0+1024];", "0 bytes after the end of a test buffer of 1024 bytes"},
      {"ld.global.v4.u32 {%x, %x, %x, %x}, [%p0+1040];", "read of 16 bytes"},
      {"ld.global.v4.u32 {%x, %x, %x, %x}, [%p0+1040];", "16 bytes after the end of"},
      {"st.global.u32 [%p0+-4], %x;", "out of bounds: write of 4 bytes"},
      {"st.global.u32 [%p0+-4], %x;", "4 bytes before a test buffer"},
      {"atom.global.add.u32 %x, [%p0+1024], 1;", "write of 4 bytes"},
      {"red.global.add.u32 [%p0+1024], 1;", "write of 4 bytes"},
      {"mov.b64 %a, 0; ld.global.u32 %x, [%a];", "no allocation nearby"},
  });
}

TEST_CASE("an access across the end of an allocation is a fault") {
  const Kernel kernel(body_text(1, ".reg .b64 %a; ld.global.u64 %a, [%p0+1016]; ret;"));
  Buffer<std::byte> buffer(1020);
  CHECK_CONTAINS(kernel({}, buffer).fault,
                 "across the end of a test buffer of 1020 bytes, at 1016");
}

TEST_CASE("an access to freed memory is a fault") {
  auto buffer = std::make_unique<Buffer<uint32_t>>(64);
  const uint64_t address = buffer->address();
  const Kernel kernel(body_text(1, ".reg .b32 %x; ld.global.u32 %x, [%p0]; ret;"));
  REQUIRE(kernel({}, address).is_clean());
  const Allocation allocation = *remove_allocation(address);
  CHECK_CONTAINS(kernel({}, address).fault, "a test buffer of 256 bytes at this address was freed");
  add_allocation(allocation);
  REQUIRE(kernel({}, address).is_clean());
}

TEST_CASE("an out-of-bounds lane is a fault if others are in bounds") {
  const Kernel kernel(body_text(1, R"(
    shl.b64 %a, %T, 2; add.s64 %a, %p0, %a; ld.global.u32 %x, [%a]; ret;)"));
  Buffer<uint32_t> enough(64), short_by_one(63), whole(32);
  REQUIRE(kernel({.threads = {64, 1, 1}}, enough).is_clean());
  const std::string fault = kernel({.threads = {64, 1, 1}}, short_by_one).fault;
  CHECK_CONTAINS(fault, "kernel test, block 0, thread 63, test.ptx:");
  CHECK_CONTAINS(fault, "ld.global.u32 %x, [%a]");
  // Inactive lanes may have any address.
  REQUIRE(kernel({.threads = {20, 1, 1}}, short_by_one).is_clean());
  REQUIRE(kernel({.blocks = {3, 1, 1}}, whole).is_clean());
}

TEST_CASE("messages name the block") {
  const Kernel kernel(body_text(1, R"(
    mov.u32 %y, %ctaid.y; setp.ne.u32 %g, %y, 1; @%g ret;
    mov.u32 %y, %ctaid.x; setp.ne.u32 %g, %y, 2; @%g ret;
    ld.global.u32 %x, [%p0+1000]; ret;)"));
  Buffer<uint32_t> buffer(64);
  CHECK_CONTAINS(kernel({.blocks = {3, 2, 1}}, buffer).fault, "block (2, 1, 0), thread 0");
}

TEST_CASE("a misaligned access is a fault") {
  check_faults({
      {"ld.global.u32 %x, [%p0+2];", "misaligned address 0x"},
      {"ld.global.u32 %x, [%p0+2];", "for 4 bytes"},
      {"ld.global.v2.u32 {%x, %x}, [%p0+4];", "for 8 bytes"},
      {"st.global.v4.u32 [%p0+8], {%x, %x, %x, %x};", "for 16 bytes"},
      {"st.shared.u64 [%s+4], %a;", "misaligned address"},
      {"atom.global.add.u64 %a, [%p0+4], 1;", "misaligned address"},
      {"cp.async.ca.shared.global [%s], [%p0+4], 8;", "misaligned"},
      {"cp.async.ca.shared.global [%s+4], [%p0], 8;", "misaligned"},
      {"ld.global.v2.u16 {%x, %x}, [%p0+4];", ""},
  });
}

TEST_CASE("an out-of-bounds shared access is a fault") {
  check_faults({
      {"ld.shared.u32 %x, [%s+252];", ""},
      {"st.shared.u32 [%s], %x;", ""},
      {"ld.shared.u32 %x, [%s+256];", "out of bounds of shared memory: 4 bytes at 256 of 256"},
      {"st.shared.u32 [%s+-4], %x;", "out of bounds of shared memory: 4 bytes at -4 of 256"},
      {"mov.u32 %s, 0x2000400; ld.shared.u32 %x, [%s];", "not in its own block"},
      {"mov.u32 %s, 0x2000400; ld.shared::cluster.u32 %x, [%s];", "in no block of the cluster"},
      {"atom.shared.add.u32 %x, [%s+256], 1;", "out of bounds of shared"},
      {"cp.async.ca.shared.global [%s+256], [%p0], 4;", "out of bounds of shared"},
  });
}

TEST_CASE("ld.global of a generic shared or local address is a fault") {
  check_faults({
      {"cvta.shared.u64 %a, smem; ld.global.u32 %x, [%a];", "generic address of shared memory"},
      {"cvta.local.u64 %a, stack; st.global.u32 [%a], %x;", "generic address of local memory"},
      {"cvta.shared.u64 %a, smem; ld.u32 %x, [%a];", ""},
      {"cvta.shared.u64 %a, smem; ld.u32 %x, [%a+256];", "out of bounds of shared"},
  });
}

TEST_CASE("out-of-bounds local and parameter accesses are faults") {
  check_faults({
      {"mov.u64 %a, stack; ld.local.u32 %x, [%a+12];", ""},
      {"mov.u64 %a, stack; ld.local.u32 %x, [%a+16];",
       "out of bounds of local memory: 4 bytes at 16 of 16"},
      {"cvta.local.u64 %a, stack; st.u32 [%a+16], %x;", "out of bounds of local memory"},
      {"ld.param.u32 %x, [p0+8];", "outside of the parameters"},
      {"mov.u64 %a, p0; st.u32 [%a], %x;", "writes a parameter"},
  });
}

TEST_CASE("cp.async reads only src-size bytes") {
  const std::string copy = "cp.async.cg.shared.global [%s], [%p0+1024], ";
  check_faults({
      {copy + "16, 0;", ""},
      {copy + "16, 4;", "out of bounds: read of 4 bytes"},
      {"cp.async.cg.shared.global [%s], [%p0], 16, 17;", "cp.async of 17 of 16 bytes"},
      {"setp.eq.u32 %g, 0, 0; " + copy + "16, %g;", ""},
      {"setp.ne.u32 %g, 0, 0; " + copy + "16, %g;", "out of bounds"},
  });
}

/// Captures stderr during its lifetime.
class Stderr {
 public:
  Stderr() : before_(dup(2)) {
    fflush(stderr);
    dup2(fileno(file_), 2);
  }
  ~Stderr() {
    dup2(before_, 2);
    close(before_);
    fclose(file_);
  }
  int count(const std::string &text) {
    rewind(file_);
    std::string all(10000, '\0');
    all.resize(fread(all.data(), 1, all.size(), file_));
    int n = 0;
    for (size_t at = 0; (at = all.find(text, at)) != std::string::npos; at++) n++;
    return n;
  }

 private:
  FILE *file_ = tmpfile();
  int before_;
};

TEST_CASE("all violations are counted, the first per location are printed") {
  const uint64_t before = num_violations();
  REQUIRE_FALSE(fault_of("ld.global.u32 %x, [%p0+1024];").empty());
  REQUIRE(num_violations() == before + 1);

  Stderr printed;
  for (int i = 0; i < 5; i++) violation("said by a test");
  violation("said by another");
  REQUIRE(num_violations() == before + 7);
  REQUIRE(printed.count("softgpu: VIOLATION: said by a test\n") == 2);
  REQUIRE(printed.count("said by another") == 1);
}

TEST_CASE("the host may allocate while a kernel runs") {
  const Kernel kernel(body_text(1, R"(
    mov.u32 %i, 0;
  LOOP:
    and.b32 %x, %i, 63; mul.wide.u32 %a, %x, 8; add.s64 %a, %p0, %a;
    ld.global.u64 %a, [%a]; ld.global.u32 %x, [%a]; add.u32 %x, %x, 1; st.global.u32 [%a], %x;
    add.u32 %i, %i, 1; setp.lt.u32 %g, %i, 20000; @%g bra LOOP;
    ret;)"));
  std::vector<std::unique_ptr<Buffer<uint32_t>>> buffers;
  Buffer<uint64_t> addresses(64);
  for (uint64_t &a : addresses.values()) {
    buffers.push_back(std::make_unique<Buffer<uint32_t>>(1));
    a = buffers.back()->address();
  }
  Outcome outcome;
  std::atomic<bool> is_running = true;
  std::thread device([&] {
    outcome = kernel({.threads = {1, 1, 1}}, addresses);
    is_running = false;
  });
  while (is_running) Buffer<uint32_t> temporary(1000);
  device.join();
  REQUIRE(outcome.is_clean());
  for (size_t i = 0; i < 64; i++) REQUIRE((*buffers[i])[0] == (20000 - i + 63) / 64);
}

// ---- allocation table

constexpr uint64_t kFirst = uint64_t{1} << 40, kStep = 4096, kPlaces = 500;

/// Reference model: allocations by slot, with a comparison of all slots.
class Model {
 public:
  ~Model() {
    for (const auto &[place, size] : sizes_) remove_allocation(kFirst + place * kStep);
  }

  /// Adds an allocation in a slot, or removes the existing one.
  void change(uint64_t place, uint64_t size) {
    const uint64_t begin = kFirst + place * kStep;
    if (sizes_.erase(place) != 0) {
      REQUIRE(remove_allocation(begin).has_value());
    } else {
      add_allocation({begin, size, MemoryKind::kMappedHost, 0, "a test"});
      sizes_[place] = size;
    }
  }

  /// Returns the number of slots with a different allocation.
  int count_mistakes() const {
    int num_mistakes = 0;
    for (uint64_t place = 0; place < kPlaces; place++) {
      const uint64_t begin = kFirst + place * kStep;
      const auto size = sizes_.find(place);
      for (const uint64_t offset : {uint64_t{0}, kStep / 2, kStep - 1}) {
        const auto found = find_allocation(begin + offset);
        const bool is_present = size != sizes_.end() && offset < size->second;
        num_mistakes += found.has_value() != is_present || (is_present && found->begin != begin);
      }
    }
    return num_mistakes;
  }

 private:
  std::map<uint64_t, uint64_t> sizes_;
};

TEST_CASE("allocations: a thread sees additions and removals by other threads", "[allocations]") {
  Model model;
  std::mt19937 random(1);
  const auto change = [&](int num_changes) {
    for (int i = 0; i < num_changes; i++) model.change(random() % kPlaces, 1 + random() % kStep);
  };
  std::promise<void> changed_few, changed_many;
  std::promise<int> first, second, third;
  std::thread other([&] {
    first.set_value(model.count_mistakes());
    changed_few.get_future().wait();
    second.set_value(model.count_mistakes());
    changed_many.get_future().wait();
    third.set_value(model.count_mistakes());
  });
  CHECK(first.get_future().get() == 0);
  for (int i = 0; i < 20; i++) {
    change(10);
    CHECK(model.count_mistakes() == 0);
  }
  changed_few.set_value();
  CHECK(second.get_future().get() == 0);
  change(3000);  // more changes than the table keeps
  changed_many.set_value();
  CHECK(third.get_future().get() == 0);
  CHECK(model.count_mistakes() == 0);
  other.join();
}

TEST_CASE("allocations: the address of a removed allocation is reusable", "[allocations]") {
  Model model;
  model.change(3, 100);
  CHECK(model.count_mistakes() == 0);
  model.change(3, 0);
  model.change(3, 3000);
  CHECK(model.count_mistakes() == 0);
}

}  // namespace
}  // namespace softgpu::test
