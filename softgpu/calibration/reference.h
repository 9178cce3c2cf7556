// Reference results from plain loops.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "report.h"

namespace calibration {

struct GemmSize {
  int m, n, k;
};

/// Element (i, j) of a matrix is at i * row + j * column.
struct Strides {
  size_t row, column;
};

inline Strides row_major(int columns) {
  return {size_t(columns), 1};
}
inline Strides column_major(int rows) {
  return {1, size_t(rows)};
}

/// Returns A B in row-major order.
template <class T>
std::vector<float> product(GemmSize size, const T *a, Strides a_strides, const T *b,
                           Strides b_strides) {
  std::vector<float> d(size_t(size.m) * size.n);
  std::vector<float> column(size.k);
  for (int j = 0; j < size.n; j++) {
    for (int k = 0; k < size.k; k++) column[k] = float(b[k * b_strides.row + j * b_strides.column]);
    for (int i = 0; i < size.m; i++) {
      float sum = 0;
      for (int k = 0; k < size.k; k++)
        sum += float(a[i * a_strides.row + k * a_strides.column]) * column[k];
      d[size_t(i) * size.n + j] = sum;
    }
  }
  return d;
}

/// A convolution of images [n][depth][height][width][c] with filters [k][...][c].  Lists have three
/// dimensions in that order, with leading ones for fewer dimensions.
struct ConvProblem {
  int n, image[3], c, k, filter[3], pad_low[3], pad_high[3], stride[3], dilation[3];

  int output(int axis) const {
    const int covered = (filter[axis] - 1) * dilation[axis] + 1;
    return (image[axis] + pad_low[axis] + pad_high[axis] - covered) / stride[axis] + 1;
  }
  size_t x_size() const { return size_t(n) * image[0] * image[1] * image[2] * c; }
  size_t w_size() const { return size_t(k) * filter[0] * filter[1] * filter[2] * c; }
  size_t y_size() const { return size_t(n) * output(0) * output(1) * output(2) * k; }
};

inline std::string to_string(const ConvProblem &p) {
  const auto triple = [](const int(&v)[3]) {
    return std::to_string(v[0]) + "x" + std::to_string(v[1]) + "x" + std::to_string(v[2]);
  };
  return "n " + std::to_string(p.n) + ", " + triple(p.image) + ", c " + std::to_string(p.c) +
         ", k " + std::to_string(p.k) + ", filter " + triple(p.filter) + ", pad " +
         triple(p.pad_low) + " and " + triple(p.pad_high) + ", stride " + triple(p.stride) +
         ", dilation " + triple(p.dilation);
}

enum class ConvPass { kForward, kDataGradient, kFilterGradient };

struct ConvTensors {
  std::vector<float> x, w, y;

  std::vector<float> &result(ConvPass pass) {
    return pass == ConvPass::kForward ? y : pass == ConvPass::kDataGradient ? x : w;
  }
  const std::vector<float> &result(ConvPass pass) const {
    return const_cast<ConvTensors *>(this)->result(pass);
  }
};

/// Adds the contribution of one filter tap at one output position.
inline void add_tap(ConvPass pass, const ConvProblem &p, float *x, float *w, size_t w_stride,
                    float *y) {
  for (int k = 0; k < p.k; k++, w += w_stride)
    for (int c = 0; c < p.c; c++) {
      if (pass == ConvPass::kForward) y[k] += x[c] * w[c];
      if (pass == ConvPass::kDataGradient) x[c] += y[k] * w[c];
      if (pass == ConvPass::kFilterGradient) w[c] += y[k] * x[c];
    }
}

/// Calls `visit(index, {i0, i1, i2, i3})` for all i below the limits; index counts the calls.
template <class Visit>
void for_each_index(const int (&limits)[4], Visit visit) {
  size_t index = 0;
  int i[4];
  for (i[0] = 0; i[0] < limits[0]; i[0]++)
    for (i[1] = 0; i[1] < limits[1]; i[1]++)
      for (i[2] = 0; i[2] < limits[2]; i[2]++)
        for (i[3] = 0; i[3] < limits[3]; i[3]++) visit(index++, i);
}

/// Returns two tensors of small integers, and the third computed from them.
inline ConvTensors convolved(ConvPass pass, const ConvProblem &p) {
  ConvTensors t = {small_integers<float>(p.x_size(), 1), small_integers<float>(p.w_size(), 2),
                   small_integers<float>(p.y_size(), 3)};
  std::fill(t.result(pass).begin(), t.result(pass).end(), 0.0f);
  const size_t w_stride = p.w_size() / p.k;
  for_each_index({p.n, p.output(0), p.output(1), p.output(2)}, [&](size_t pixel, const int *q) {
    for_each_index({1, p.filter[0], p.filter[1], p.filter[2]}, [&](size_t tap, const int *f) {
      size_t at = q[0];
      for (int axis = 0; axis < 3; axis++) {
        const int i =
            q[axis + 1] * p.stride[axis] - p.pad_low[axis] + f[axis + 1] * p.dilation[axis];
        if (i < 0 || i >= p.image[axis]) return;
        at = at * p.image[axis] + i;
      }
      add_tap(pass, p, &t.x[at * p.c], &t.w[tap * p.c], w_stride, &t.y[pixel * p.k]);
    });
  });
  return t;
}

}  // namespace calibration
