/* Reads and writes safetensors files: 8 bytes with the size of a JSON header, the header, and the
 * bytes of the tensors.  Functions return NULL, or the reason for a failure.
 *
 * For little-endian machines.  Names with the escape \u are not supported.
 * Source: https://github.com/huggingface/safetensors, section "Format". */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ST_MAX_RANK 8

typedef struct st_tensor {
  const char *name;
  const char *dtype; /* "F32", "F16", "BF16", "I64", ... */
  int rank;
  int64_t shape[ST_MAX_RANK];
  const void *data; /* on the host, row-major, aligned to its element size */
  size_t bytes;
} st_tensor;

typedef struct st_file {
  st_tensor *tensors;
  int count;
  const char **metadata; /* key, value, key, value, ..., NULL */
  char *header, *data;   /* memory of all strings and tensors */
} st_file;

/* Returns the bytes of an element, or 0 for an unknown type. */
static inline size_t st_dtype_size(const char *dtype) {
  if (!strncmp(dtype, "F8_", 3) || !strcmp(dtype, "BOOL")) return 1;
  const char *digits = dtype + strcspn(dtype, "0123456789");
  const int bits = atoi(digits);
  const int is_known =
      strchr("FIUB", dtype[0]) && (bits == 8 || bits == 16 || bits == 32 || bits == 64);
  return is_known ? (size_t)bits / 8 : 0;
}

/* Skips white space and one character; returns 0 if there is another one. */
static inline int st_accept(char **at, char expected) {
  while (**at && strchr(" \t\r\n", **at)) ++*at;
  if (**at != expected) return 0;
  ++*at;
  return 1;
}

/* Returns a JSON string, decoded in place, or NULL. */
static inline const char *st_string(char **at) {
  static const char escapes[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";
  if (!st_accept(at, '"')) return NULL;
  char *text = *at, *out = text, *in = text;
  while (*in != '"') {
    if ((unsigned char)*in < ' ') return NULL; /* also the end of the header */
    if (*in == '\\') {
      const char *escape = *++in ? strchr(escapes, *in) : NULL;
      if (!escape) return NULL;
      *in = characters[escape - escapes];
    }
    *out++ = *in++;
  }
  *at = in + 1;
  *out = 0;
  return text;
}

/* Reads a list of integers >= 0; returns their number, or -1. */
static inline int st_integers(char **at, int64_t *values, int most) {
  int count = 0;
  if (!st_accept(at, '[')) return -1;
  if (st_accept(at, ']')) return 0;
  do {
    char *end;
    if (count == most) return -1;
    values[count] = strtoll(*at, &end, 10);
    if (end == *at || values[count++] < 0) return -1;
    *at = end;
  } while (st_accept(at, ','));
  return st_accept(at, ']') ? count : -1;
}

/* Reads the properties of a tensor, whose data begins `offset` bytes after `data`. */
static inline const char *st_parse_tensor(char **at, st_tensor *t, char *data, size_t size) {
  int64_t range[2] = {-1, -1};
  t->rank = -1;
  if (!st_accept(at, '{')) return "invalid header";
  do {
    const char *key = st_string(at);
    if (!key || !st_accept(at, ':')) return "invalid header";
    if (!strcmp(key, "dtype"))
      t->dtype = st_string(at);
    else if (!strcmp(key, "shape"))
      t->rank = st_integers(at, t->shape, ST_MAX_RANK);
    else if (strcmp(key, "data_offsets") || st_integers(at, range, 2) != 2)
      return "invalid header";
  } while (st_accept(at, ','));
  const size_t elem = t->dtype ? st_dtype_size(t->dtype) : 0;
  if (!st_accept(at, '}') || t->rank < 0 || range[0] < 0) return "invalid header";
  if (!elem) return "unknown dtype";
  if (range[1] < range[0] || (uint64_t)range[1] > size) return "data_offsets outside the file";
  if ((size_t)range[0] % elem) return "data_offsets not aligned to the element size";
  t->data = data + range[0];
  t->bytes = (size_t)(range[1] - range[0]);
  size_t count = t->bytes / elem; /* divided by all extents, 1 must remain */
  for (int i = 0; i < t->rank; i++) {
    if (t->shape[i] == 0) return t->bytes ? "shape does not match data_offsets" : NULL;
    if (count % (size_t)t->shape[i]) return "shape does not match data_offsets";
    count /= (size_t)t->shape[i];
  }
  return count == 1 && t->bytes % elem == 0 ? NULL : "shape does not match data_offsets";
}

static inline const char *st_parse(st_file *file, size_t size) {
  char *at = file->header;
  int capacity = 1, pairs = 0;
  for (const char *c = at; *c; c++) capacity += *c == ':';
  file->tensors = (st_tensor *)calloc((size_t)capacity, sizeof *file->tensors);
  file->metadata = (const char **)calloc((size_t)capacity * 2 + 1, sizeof *file->metadata);
  if (!file->tensors || !file->metadata) return "out of memory";
  if (!st_accept(&at, '{')) return "invalid header";
  if (st_accept(&at, '}')) return NULL;
  do {
    const char *name = st_string(&at);
    if (!name || !st_accept(&at, ':')) return "invalid header";
    if (!strcmp(name, "__metadata__")) {
      if (!st_accept(&at, '{')) return "invalid header";
      if (st_accept(&at, '}')) continue;
      do {
        const char *key = st_string(&at);
        const char *value = key && st_accept(&at, ':') ? st_string(&at) : NULL;
        if (!value) return "invalid header";
        file->metadata[pairs++] = key;
        file->metadata[pairs++] = value;
      } while (st_accept(&at, ','));
      if (!st_accept(&at, '}')) return "invalid header";
    } else {
      st_tensor *t = &file->tensors[file->count++];
      t->name = name;
      const char *error = st_parse_tensor(&at, t, file->data, size);
      if (error) return error;
    }
  } while (st_accept(&at, ','));
  return st_accept(&at, '}') ? NULL : "invalid header";
}

/* Frees a file that st_read has opened, also one that it could not read. */
static inline void st_close(st_file *file) {
  free(file->tensors), free(file->metadata), free(file->header), free(file->data);
  memset(file, 0, sizeof *file);
}

/* Reads a whole file into memory. */
static inline const char *st_read(const char *path, st_file *file) {
  memset(file, 0, sizeof *file);
  FILE *in = fopen(path, "rb");
  if (!in) return "cannot open file";
  const char *error = NULL;
  uint64_t header = 0;
  fseek(in, 0, SEEK_END);
  const long end = ftell(in);
  rewind(in);
  if (end < 8 || fread(&header, 8, 1, in) != 1 || header > (uint64_t)end - 8) {
    error = "not a safetensors file";
  } else {
    const size_t size = (size_t)end - 8 - (size_t)header;
    file->header = (char *)calloc(1, (size_t)header + 1);
    file->data = (char *)malloc(size + 1);
    if (!file->header || !file->data)
      error = "out of memory";
    else if (fread(file->header, 1, (size_t)header, in) != header ||
             fread(file->data, 1, size, in) != size)
      error = "cannot read file";
    else
      error = st_parse(file, size);
  }
  fclose(in);
  if (error) st_close(file);
  return error;
}

/* Returns NULL if there is no such tensor. */
static inline const st_tensor *st_find(const st_file *file, const char *name) {
  for (int i = 0; i < file->count; i++)
    if (!strcmp(file->tensors[i].name, name)) return &file->tensors[i];
  return NULL;
}

/* Returns whether a tensor has this type and shape. */
static inline int st_has_shape(const st_tensor *t, const char *dtype, int rank,
                               const int64_t *shape) {
  return !strcmp(t->dtype, dtype) && t->rank == rank &&
         !memcmp(t->shape, shape, (size_t)rank * sizeof *shape);
}

/* Returns a value of the metadata, or NULL. */
static inline const char *st_metadata(const st_file *file, const char *key) {
  for (const char **pair = file->metadata; pair && pair[0]; pair += 2)
    if (!strcmp(pair[0], key)) return pair[1];
  return NULL;
}

static inline void st_print_string(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text; text++) {
    if (strchr("\"\\", *text)) fputc('\\', out);
    fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
  }
  fputc('"', out);
}

/* Writes a file under a temporary name, then renames it, so that an interrupted program leaves no
 * incomplete file.  Data is written in this order without padding, so the tensors with the largest
 * elements must come first.
 * metadata: key, value, key, value, ..., NULL. */
static inline const char *st_write(const char *path, const st_tensor *tensors, int count,
                                   const char *const *metadata) {
  char part[4096];
  if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part) return "name too long";
  FILE *out = fopen(part, "wb");
  if (!out) return "cannot create file";
  uint64_t header = 0, offset = 0;
  fwrite(&header, 8, 1, out);
  fputs("{\"__metadata__\":{", out);
  for (int i = 0; metadata && metadata[i]; i += 2) {
    if (i > 0) fputc(',', out);
    st_print_string(out, metadata[i]);
    fputc(':', out);
    st_print_string(out, metadata[i + 1]);
  }
  fputc('}', out);
  for (int i = 0; i < count; i++) {
    const st_tensor *t = &tensors[i];
    fputc(',', out);
    st_print_string(out, t->name);
    fprintf(out, ":{\"dtype\":\"%s\",\"shape\":[", t->dtype);
    for (int k = 0; k < t->rank; k++)
      fprintf(out, "%s%lld", k > 0 ? "," : "", (long long)t->shape[k]);
    fprintf(out, "],\"data_offsets\":[%llu,", (unsigned long long)offset);
    offset += t->bytes;
    fprintf(out, "%llu]}", (unsigned long long)offset);
  }
  fputc('}', out);
  while (ftell(out) % 8) fputc(' ', out);
  header = (uint64_t)ftell(out) - 8;
  for (int i = 0; i < count; i++) fwrite(tensors[i].data, 1, tensors[i].bytes, out);
  rewind(out);
  fwrite(&header, 8, 1, out);
  const int failed = ferror(out);
  if (!fclose(out) && !failed && !rename(part, path)) return NULL;
  remove(part);
  return "cannot write file";
}

#endif
