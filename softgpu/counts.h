/* Kernel counters of the software device for a region of a program.
 *
 * The software device's libcudart.so exports this function.  Programs that may also run with the
 * real runtime look it up:
 *
 *     typedef const char *take_t(void);
 *     take_t *take = (take_t *)dlsym(RTLD_DEFAULT, "softgpu_take_counts");
 */
#ifndef SOFTGPU_COUNTS_H_
#define SOFTGPU_COUNTS_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for all work of all devices, and returns the counters of kernels that ran since the last
 * call (at first: since the process began) as JSON.  The text has the format of SOFTGPU_COUNT's
 * file (README.md, Counts) without the lists of lines.  It does not affect the file, which is
 * written when the process ends and covers the complete process.
 *
 * Returns null unless SOFTGPU_COUNT is set (1: no file).  The text is valid until the next call.
 * Not thread-safe; must not be called from a host function in a stream. */
__attribute__((visibility("default"))) const char *softgpu_take_counts(void);

#ifdef __cplusplus
}
#endif

#endif /* SOFTGPU_COUNTS_H_ */
