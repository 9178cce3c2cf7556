// Allocation table, as seen by several host threads.
#include <future>
#include <map>
#include <random>
#include <thread>

#include "softgpu/machine/global_memory.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

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
