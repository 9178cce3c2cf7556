// Measures the barrier that a persistent recurrent kernel would need in each time step.
//
// The blocks of a group share a counter and two buffers of the size of h.  In a step, a block waits
// for all blocks of its group, reads one buffer, writes its part of the other, and arrives at the
// counter.  The program checks every word that is read, and prints JSON:
//
//     {"steps": 1000, "groups": [{"blocks": 132, "us": 1.53}, ...]}
//
//     grid_barrier [BLOCKS [STEPS]]    default: a block per multiprocessor, 1000 steps
#include <cstdio>
#include <cstdlib>
#include <cuda/atomic>

namespace {

constexpr int kThreads = 256, kWords = 28 * 1024 / 4;  // 16 sequences of 896 units, 16 bits each
constexpr int kLine = 32;                              // words per counter

struct Args {
  unsigned *counters;  // per group
  unsigned *buffers;   // [group][2][kWords]
  unsigned *wrong;     // number of wrong words
  int group, steps;
};

__global__ void __launch_bounds__(kThreads) run_steps(Args args) {
  const int group = static_cast<int>(blockIdx.x) / args.group;
  const int rank = static_cast<int>(blockIdx.x) % args.group;
  unsigned *const buffers = args.buffers + group * 2 * kWords;
  const cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(args.counters[group * kLine]);
  unsigned wrong = 0;
  for (int step = 0; step < args.steps; step++) {
    if (threadIdx.x == 0)
      while (arrived.load(cuda::memory_order_acquire) < static_cast<unsigned>(step * args.group)) {
      }
    __syncthreads();
    const uint4 *const read = reinterpret_cast<const uint4 *>(buffers + step % 2 * kWords);
    for (int i = static_cast<int>(threadIdx.x); i < kWords / 4; i += kThreads) {
      const uint4 words = __ldcg(read + i);
      const unsigned wanted = static_cast<unsigned>(step);
      wrong += words.x != wanted || words.y != wanted || words.z != wanted || words.w != wanted;
    }
    unsigned *const write = buffers + (step + 1) % 2 * kWords;
    const int end = kWords * (rank + 1) / args.group;
    for (int i = kWords * rank / args.group + static_cast<int>(threadIdx.x); i < end; i += kThreads)
      write[i] = static_cast<unsigned>(step + 1);
    __syncthreads();
    if (threadIdx.x == 0) arrived.fetch_add(1, cuda::memory_order_release);
  }
  if (wrong != 0) atomicAdd(args.wrong, wrong);
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "grid_barrier: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

int attribute(cudaDeviceAttr name) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, name, 0));
  return value;
}

/// Launches all blocks at once; a cooperative launch fails if they do not fit.
void launch(const Args &args, int blocks) {
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.attrs = &cooperative;
  config.numAttrs = attribute(cudaDevAttrCooperativeLaunch) != 0 ? 1 : 0;
  check(cudaLaunchKernelEx(&config, run_steps, args));
}

/// Returns the shortest time of a step of three runs, in microseconds.
double step_us(Args args, int groups) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  float best_ms = 0.0f;
  for (int run = 0; run < 3; run++) {
    check(cudaMemset(args.counters, 0, groups * kLine * sizeof(unsigned)));
    check(cudaMemset(args.buffers, 0, groups * 2 * kWords * sizeof(unsigned)));
    check(cudaEventRecord(begin, nullptr));
    launch(args, groups * args.group);
    check(cudaEventRecord(end, nullptr));
    check(cudaEventSynchronize(end));
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, begin, end));
    if (run == 0 || ms < best_ms) best_ms = ms;
  }
  check(cudaEventDestroy(begin));
  check(cudaEventDestroy(end));
  return 1e3 * static_cast<double>(best_ms) / args.steps;
}

}  // namespace

int main(int count, char **arguments) {
  const int sms = attribute(cudaDevAttrMultiProcessorCount);
  const int blocks = count > 1 ? std::atoi(arguments[1]) : sms;
  const int steps = count > 2 ? std::atoi(arguments[2]) : 1000;
  if (blocks < 1 || blocks > sms || steps < 1) {
    std::fprintf(stderr, "grid_barrier: %d blocks of %d, %d steps\n", blocks, sms, steps);
    return 2;
  }
  Args args{};
  args.steps = steps;
  check(cudaMalloc(&args.counters, blocks * kLine * sizeof(unsigned)));
  check(cudaMalloc(&args.buffers, blocks * 2 * kWords * sizeof(unsigned)));
  check(cudaMalloc(&args.wrong, sizeof(unsigned)));
  check(cudaMemset(args.wrong, 0, sizeof(unsigned)));
  std::printf("{\"steps\": %d, \"groups\": [", steps);
  const char *separator = "";
  for (const int parts : {1, 2, 4, 8}) {
    args.group = blocks / parts;
    if (args.group == 0) break;
    std::printf("%s{\"blocks\": %d, \"us\": %.3g}", separator, args.group, step_us(args, parts));
    separator = ", ";
  }
  std::printf("]}\n");
  unsigned wrong = 0;
  check(cudaMemcpy(&wrong, args.wrong, sizeof wrong, cudaMemcpyDeviceToHost));
  if (wrong != 0) std::fprintf(stderr, "grid_barrier: %u wrong words\n", wrong);
  return wrong != 0 ? 1 : 0;
}
