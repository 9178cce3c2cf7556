/* Tokenizer of uncased BERT models: splits text into words, and words into pieces of a vocabulary.
 *
 * Accents and case are removed up to U+00FF; other letters are kept as they are.
 * Source: https://github.com/google-research/bert, tokenization.py. */
#ifndef WORDPIECE_H
#define WORDPIECE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WP_MAX_WORD = 100 }; /* characters; longer words are unknown */

typedef struct wp_vocabulary {
  char **words;   /* by token */
  int32_t *slots; /* hash table of tokens, -1 = free */
  uint32_t mask;  /* size of the hash table - 1 */
  int32_t count, cls, sep, unk;
} wp_vocabulary;

/* Returns the slot of a word, or the free slot for it. */
static inline int32_t *wp_slot(const wp_vocabulary *v, const char *word) {
  uint32_t hash = 0x811C9DC5u; /* FNV-1a */
  for (const char *c = word; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x01000193u;
  int32_t *slot = &v->slots[hash & v->mask];
  while (*slot >= 0 && strcmp(v->words[*slot], word)) slot = &v->slots[++hash & v->mask];
  return slot;
}

/* Takes the text of vocab.txt, one word per line, which must exist as long as the vocabulary. */
static inline const char *wp_open(wp_vocabulary *v, char *text) {
  size_t lines = 1, size = 4;
  for (const char *c = text; *c; c++) lines += *c == '\n';
  while (size < 2 * lines) size *= 2;
  v->mask = (uint32_t)size - 1;
  v->count = 0;
  v->words = (char **)malloc(lines * sizeof *v->words);
  v->slots = (int32_t *)malloc(size * sizeof *v->slots);
  if (!v->words || !v->slots) return "out of memory";
  memset(v->slots, -1, size * sizeof *v->slots);
  for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
    v->words[v->count] = line;
    *wp_slot(v, line) = v->count++;
  }
  v->cls = *wp_slot(v, "[CLS]");
  v->sep = *wp_slot(v, "[SEP]");
  v->unk = *wp_slot(v, "[UNK]");
  return v->cls < 0 || v->sep < 0 || v->unk < 0 ? "no [CLS], [SEP] and [UNK]" : NULL;
}

/* A word, and the tokens before it. */
typedef struct wp_state {
  char word[4 * WP_MAX_WORD + 1];
  int bytes, characters;
  int32_t *tokens, count, most;
} wp_state;

static inline void wp_add(wp_state *s, const char *bytes, size_t count) {
  if (++s->characters > WP_MAX_WORD) return;
  memcpy(s->word + s->bytes, bytes, count);
  s->bytes += (int)count;
}

/* Appends the pieces of the word.  Each is the longest in the vocabulary; all but the first begin
 * with ##. */
static inline void wp_end_word(const wp_vocabulary *v, wp_state *s) {
  const int32_t first = s->count;
  char piece[sizeof s->word + 2];
  for (int begin = 0, end; begin < s->bytes; begin = end) {
    int32_t token = -1;
    for (end = s->characters > WP_MAX_WORD ? begin : s->bytes; end > begin && token < 0; end--) {
      sprintf(piece, "%s%.*s", begin > 0 ? "##" : "", end - begin, s->word + begin);
      token = *wp_slot(v, piece);
    }
    end++;
    if (token < 0) s->count = first, token = v->unk, end = s->bytes;
    if (s->count < s->most) s->tokens[s->count++] = token;
  }
  s->bytes = s->characters = 0;
}

/* Returns whether a character is in a list of ranges, which 0 ends. */
static inline int wp_is_in(uint32_t c, const uint16_t *ranges) {
  while (*ranges && (c < ranges[0] || c > ranges[1])) ranges += 2;
  return *ranges != 0;
}

/* Writes the tokens of a text in UTF-8, at most `most` >= 2 with [CLS] and [SEP]; returns their
 * number. */
static inline int32_t wp_tokenize(const wp_vocabulary *v, const char *text, int32_t *tokens,
                                  int32_t most) {
  static const uint16_t spaces[] = {9,      10,     13,     13,     ' ',    ' ',    0xA0,
                                    0xA0,   0x1680, 0x1680, 0x2000, 0x200A, 0x202F, 0x202F,
                                    0x205F, 0x205F, 0x3000, 0x3000, 0};
  static const uint16_t dropped[] = {1,      31,     0x7F,   0x9F,   0xAD,   0xAD,   0x300,
                                     0x36F,  0x200B, 0x200F, 0x202A, 0x202E, 0x2060, 0x2064,
                                     0xFEFF, 0xFEFF, 0xFFFD, 0xFFFD, 0};
  /* Punctuation and Chinese characters: words on their own. */
  static const uint16_t words[] = {'!',    '/',    ':',    '@',    '[',    '`',    '{',    '~',
                                   0xA1,   0xA1,   0xA7,   0xA7,   0xAB,   0xAB,   0xB6,   0xB7,
                                   0xBB,   0xBB,   0xBF,   0xBF,   0x2010, 0x2027, 0x2030, 0x2043,
                                   0x2045, 0x2051, 0x2053, 0x205E, 0x3001, 0x3003, 0x3008, 0x3011,
                                   0x3400, 0x4DBF, 0x4E00, 0x9FFF, 0xF900, 0xFAFF, 0};
  /* U+00C0 to U+00FF without accents; a space if there are none. */
  static const char base[] = "aaaaaa ceeeeiiii nooooo  uuuuy  aaaaaa ceeeeiiii nooooo  uuuuy y";
  wp_state s = {.tokens = tokens, .most = most - 1};
  s.tokens[s.count++] = v->cls;
  for (const char *next; *text; text = next) {
    uint32_t c = (unsigned char)*text;
    int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
    if (more > 0) c &= 0x3Fu >> more;
    for (next = text + 1; more > 0 && (*next & 0xC0) == 0x80; more--)
      c = c << 6 | (uint32_t)(*next++ & 0x3F);
    const int is_word = wp_is_in(c, words) || c >= 0x20000;
    char lower[2] = {(char)(c + 32), 0};
    if (is_word || wp_is_in(c, spaces)) wp_end_word(v, &s);
    if (c >= 'A' && c <= 'Z') {
      wp_add(&s, lower, 1);
    } else if (c >= 0xC0 && c <= 0xFF && base[c - 0xC0] != ' ') {
      wp_add(&s, &base[c - 0xC0], 1);
    } else if (c >= 0xC0 && c < 0xDF && c != 0xD7) { /* without an accent, such as O with stroke */
      lower[0] = text[0], lower[1] = (char)(text[1] + 32);
      wp_add(&s, lower, 2);
    } else if (!wp_is_in(c, spaces) && !wp_is_in(c, dropped)) {
      wp_add(&s, text, (size_t)(next - text));
    }
    if (is_word) wp_end_word(v, &s);
  }
  wp_end_word(v, &s);
  s.tokens[s.count++] = v->sep;
  return s.count;
}

/* Tokens of texts, in rows of equal size. */
typedef struct wp_rows {
  int32_t *tokens, *lengths; /* count x most, filled up with 0; number of tokens per text */
  int32_t count, most, longest;
} wp_rows;

/* Takes the text of vocab.txt, which it changes.  Returns NULL, or the reason for a failure. */
static inline const char *wp_tokenize_all(char *vocabulary, char **texts, int32_t count,
                                          int32_t most, wp_rows *rows) {
  wp_vocabulary v = {0};
  const char *error = wp_open(&v, vocabulary);
  *rows = (wp_rows){(int32_t *)calloc((size_t)count * (size_t)most + 1, sizeof(int32_t)),
                    (int32_t *)calloc((size_t)count + 1, sizeof(int32_t)), count, most, 0};
  if (!error && (!rows->tokens || !rows->lengths)) error = "out of memory";
  for (int32_t i = 0; i < count && !error; i++) {
    rows->lengths[i] = wp_tokenize(&v, texts[i], rows->tokens + (int64_t)i * most, most);
    if (rows->lengths[i] > rows->longest) rows->longest = rows->lengths[i];
  }
  free(v.words), free(v.slots);
  return error;
}

#endif
