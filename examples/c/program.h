/* Errors, memory, files and options of the programs encoder and gpt. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"

#define CHECK(call) check("mpcore", (call) == MP_SUCCESS ? NULL : mp_last_error())
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* An option with its default value, which read_options replaces. */
typedef struct program_option {
  const char *name, *value, *help;
} program_option;

static struct program {
  const char *name;
  program_option *options;
  size_t num_options;
} program; /* set by main */
static mp_context_t context;

/* Ends the program if there is an error. */
static inline void check(const char *subject, const char *error) {
  if (error) exit((fprintf(stderr, "%s: %s: %s\n", program.name, subject, error), 1));
}

/* Returns memory that is zero, one byte more than requested. */
static inline void *allocate(size_t bytes) {
  void *memory = calloc(bytes + 1, 1);
  check("memory", memory ? NULL : "exhausted");
  return memory;
}

/* Returns the content of a file with a 0 after it. */
static inline char *read_file(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  check(path, file && !fseek(file, 0, SEEK_END) ? NULL : "cannot read file");
  *bytes = (size_t)ftell(file);
  char *content = allocate(*bytes);
  rewind(file);
  check(path, fread(content, 1, *bytes, file) == *bytes ? NULL : "cannot read file");
  fclose(file);
  return content;
}

/* Returns the address of the value of an option, or NULL. */
static inline const char **find_option(const char *name) {
  for (size_t i = 0; i < program.num_options; i++)
    if (!strcmp(program.options[i].name, name)) return &program.options[i].value;
  return NULL;
}
#define option(name) (*find_option(name))

/* Returns the value of an option. */
static inline int32_t integer(const char *name, int32_t least) {
  char *end, error[64];
  const long long value = strtoll(option(name), &end, 10);
  snprintf(error, sizeof error, "must be an integer >= %d, at most 10^8", (int)least);
  check(name, *option(name) && !*end && value >= least && value <= 100000000 ? NULL : error);
  return (int32_t)value;
}

/* Reads options from argv[first] on; returns the index of the first other argument. */
static inline int read_options(int argc, char **argv, int first, const char *usage) {
  int i = first;
  for (; i < argc && !strncmp(argv[i], "--", 2) && strcmp(argv[i], "--help"); i += 2) {
    const char **value = find_option(argv[i]);
    check(argv[i], value && i + 1 < argc ? NULL : "unknown, or has no value; see --help");
    *value = argv[i + 1];
  }
  if (argc > 1 && (i >= argc || strcmp(argv[i], "--help"))) return i;
  puts(usage);
  for (size_t k = 0; k < program.num_options; k++)
    printf("  %-12s %-18s %s\n", program.options[k].name, program.options[k].value,
           program.options[k].help);
  exit(0);
}

static inline void download(void *to, const void *from, size_t bytes) {
  CHECK(mp_memcpy(context, to, from, bytes, NULL));
  CHECK(mp_stream_sync(context, NULL));
}

/* Returns the address of a tensor on the device. */
static inline void *data_of(mp_graph_t graph, int32_t tensor) {
  mp_graph_tensor_t info;
  MP_INIT_STRUCT(&info);
  CHECK(mp_graph_get_tensor(graph, tensor, &info));
  return info.data;
}

static inline mp_scaler_state_t state_of(mp_scaler_t scaler) {
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  CHECK(mp_scaler_get_state_sync(scaler, &state, NULL));
  return state;
}

#endif
