/* Counts of what runs on the software device, by region of a program.
 *
 * libcudart.so of the software device exports this function; a program that may also run on the real one looks it up:
 *
 *     const char *(*take)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "softgpu_take_counts");
 */
#ifndef TOOLS_SOFTGPU_COUNTS_H_
#define TOOLS_SOFTGPU_COUNTS_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for all work of all devices, and returns JSON of what ran since the last call, or since the process began: the
 * text that SOFTGPU_COUNT's file has (README.md, Counts) without its lists of lines.  Kernels that did not run in
 * between are not in it.  The file, which is written when the process ends, has all that ran whoever asked before.
 *
 * Null unless SOFTGPU_COUNT is set (to 1 if there is to be no file).  The text is valid until the next call.  Not to be
 * called by two threads at once, nor by a function that runs in a stream. */
__attribute__((visibility("default"))) const char *softgpu_take_counts(void);

#ifdef __cplusplus
}
#endif

#endif /* TOOLS_SOFTGPU_COUNTS_H_ */
