// The OS threads that run clusters: a pool that lives as long as the library.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace mp::host::engine {

/// Calls run_cluster(i) for every i in [0, count), on up to `max_workers` OS threads of which the
/// caller is one; returns when all have finished.  One job at a time: concurrent callers queue.
/// @return what() of the first exception, after which no further cluster is started; else empty.
std::string run_on_workers(int64_t count, int max_workers,
                           const std::function<void(int64_t)> &run_cluster);

}  // namespace mp::host::engine
