/* Preloaded library: appends a line with the held device memory of the host target to the file
 * MP_TEST_ALLOCATIONS after each change.  Only device memory has an alignment of 256 bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ALIGNMENT = 256, MOST = 1000 };

static struct {
  void *memory;
  size_t bytes;
} blocks[MOST];
static size_t held;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void write_held(void) { /* without a FILE, which calls free() */
  static int file = -1;
  char line[32];
  const int length = snprintf(line, sizeof line, "%zu\n", held);
  if (file < 0) file = open(getenv("MP_TEST_ALLOCATIONS"), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  if (write(file, line, (size_t)length) != length) abort();
}

/* Replaces the block by another one. */
static void exchange(void *memory, void *other, size_t bytes) {
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < MOST; i++) {
    if (blocks[i].memory != memory) continue;
    held += bytes - blocks[i].bytes;
    blocks[i].memory = other;
    blocks[i].bytes = bytes;
    write_held();
    break;
  }
  pthread_mutex_unlock(&mutex);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  void *memory;
  if (posix_memalign(&memory, alignment, bytes) != 0) return NULL;
  if (alignment == ALIGNMENT) exchange(NULL, memory, bytes);
  return memory;
}

void free(void *memory) {
  static void (*next)(void *);
  if (memory != NULL) exchange(memory, NULL, 0);
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "free");
  next(memory);
}
