/* Skip-gram and CBOW with negative sampling as the published program of word2vec trains them: one
   token after another, plain SGD, several threads on shared tables without locks. For
   benchmarks/static_vectors.py, which compiles it and calls `train`. */

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  const int32_t *tokens; const int64_t *starts; int64_t sequences;
  const float *kept; const int32_t *table; int64_t table_size;
  float *v, *u; int size, window, negatives, cbow; float rate;
  int64_t epochs; int number, threads; volatile int64_t *done; int64_t total;
} Work;

static inline uint64_t draw(uint64_t *state) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return *state >> 33;
}

static inline float dot(const float *x, const float *y, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += x[i] * y[i];
  return s;
}

static inline void add(float *x, float a, const float *y, int n) {
  for (int i = 0; i < n; i++) x[i] += a * y[i];
}

/* One prediction of `token` from the vector h; adds h's gradient to `change`. */
static void predict(const Work *w, const float *h, float *change, int32_t token, float rate, uint64_t *state) {
  for (int k = 0; k <= w->negatives; k++) {
    int32_t target = k ? w->table[draw(state) % w->table_size] : token;
    if (k && target == token) continue;
    float *u = w->u + (int64_t)target * w->size;
    float g = ((k == 0) - 1 / (1 + expf(-dot(h, u, w->size)))) * rate;
    add(change, g, u, w->size);
    add(u, g, h, w->size);
  }
}

static void *run(void *argument) {
  Work *w = argument;
  uint64_t state = 1 + w->number;
  int32_t sentence[4096];
  float *change = malloc(w->size * sizeof(float)), *mean = malloc(w->size * sizeof(float));
  int64_t first = w->sequences * w->number / w->threads, last = w->sequences * (w->number + 1) / w->threads;
  for (int64_t epoch = 0; epoch < w->epochs; epoch++)
    for (int64_t s = first; s < last; s++) {
      int n = 0;
      for (int64_t i = w->starts[s]; i < w->starts[s + 1]; i++)
        if (draw(&state) / 2147483648.0f < w->kept[w->tokens[i]]) sentence[n++] = w->tokens[i];
      *w->done += w->starts[s + 1] - w->starts[s];  /* a race that only blurs the learning rate */
      float rate = w->rate * (1 - (float)*w->done / (w->total + 1));
      if (rate < w->rate * 1e-4f) rate = w->rate * 1e-4f;
      for (int i = 0; i < n; i++) {
        int reach = 1 + draw(&state) % w->window, count = 0;
        for (int d = 0; d < w->size; d++) change[d] = mean[d] = 0;
        for (int j = i - reach; j <= i + reach; j++) {
          if (j == i || j < 0 || j >= n) continue;
          float *v = w->v + (int64_t)sentence[j] * w->size;
          count++;
          if (w->cbow) { add(mean, 1, v, w->size); continue; }
          for (int d = 0; d < w->size; d++) change[d] = 0;
          predict(w, v, change, sentence[i], rate, &state);
          add(v, 1, change, w->size);
        }
        if (!w->cbow || !count) continue;
        for (int d = 0; d < w->size; d++) mean[d] /= count;
        predict(w, mean, change, sentence[i], rate, &state);
        for (int j = i - reach; j <= i + reach; j++)
          if (j != i && j >= 0 && j < n) add(w->v + (int64_t)sentence[j] * w->size, 1.0f / count, change, w->size);
      }
    }
  free(change);
  free(mean);
  return NULL;
}

void train(const int32_t *tokens, const int64_t *starts, int64_t sequences, const float *kept,
           const int32_t *table, int64_t table_size, float *v, float *u, int size, int window,
           int negatives, int cbow, float rate, int64_t epochs, int threads) {
  volatile int64_t done = 0;
  pthread_t ids[64];
  Work work[64];
  for (int t = 0; t < threads; t++) {
    work[t] = (Work){tokens, starts, sequences, kept, table, table_size, v, u, size, window, negatives,
                     cbow, rate, epochs, t, threads, &done, starts[sequences] * epochs};
    pthread_create(&ids[t], NULL, run, &work[t]);
  }
  for (int t = 0; t < threads; t++) pthread_join(ids[t], NULL);
}
