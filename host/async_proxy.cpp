// TMA stores of a thread.
#include "host/async_proxy.h"

#include <algorithm>

namespace mp::host::engine {

namespace {

void perform(const BulkStore &store, const std::byte *from) {
  (store.add ? add_box : store_box)(store.box, from);
}

}  // namespace

void BulkStores::start(const BulkStore &store, source_location where) {
  newest_group_ = group_;
  newest_at_ = where;
  if (defer_copy())
    pending_.push_back({store, group_, false, {}});
  else
    perform(store, store.smem);
}

void BulkStores::read(Pending &pending) {
  if (pending.has_read) return;
  const std::byte *const smem = pending.store.smem;
  pending.bytes.assign(smem, smem + pending.store.box.map.box_bytes());
  pending.has_read = true;
}

void BulkStores::write(const Pending &pending) {
  perform(pending.store, pending.has_read ? pending.bytes.data() : pending.store.smem);
}

void BulkStores::wait_read(int64_t num_pending) {
  groups_read_ = std::max(groups_read_, group_ - num_pending);
  for (Pending &pending : pending_)
    if (pending.group < groups_read_) read(pending);
}

void BulkStores::wait(int64_t num_pending) {
  const int64_t groups_written = group_ - num_pending;
  groups_read_ = std::max(groups_read_, groups_written);
  auto pending = pending_.begin();
  while (pending != pending_.end() && pending->group < groups_written) write(*pending++);
  pending_.erase(pending_.begin(), pending);
}

bool BulkStores::finish() {
  if (newest_group_ >= groups_read_) return false;
  for (const Pending &pending : pending_) write(pending);
  pending_.clear();
  return true;
}

}  // namespace mp::host::engine
