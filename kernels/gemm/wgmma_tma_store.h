// Store path for 16-bit D: 16 x 64 subtiles through staging buffers and TMA, with any epilogue.
// Stores are asynchronous.  A subtile waits only for the store before the last, from the buffer
// that it overwrites.  If aux is written, aux and D are stored in turns, aux before the activation:
// TMA reads each of them while the activation of a subtile is computed.
//
// The epilogue source (C, or the aux of an activation) takes the same path.  If the epilogue reads
// it, TMA loads it into the staging buffer from which D is stored later, the first subtiles during
// the main loop.  The bias of a subtile is loaded while the previous subtile is processed.
//
// Elements outside D are loaded as zeros and are not stored.  TMA stores complete units of 16
// bytes, and no box that begins before the tensor.  If a subtile violates this, lanes copy its rows
// from the staging buffer to D.
#pragma once

#include <utility>

#include "kernels/gemm/wgmma_epilogue.h"

namespace mp::MP_TARGET {

/// Bias of the columns that a lane has in a subtile: pairs, eight columns apart.
class SubtileBias {
  static constexpr int kPairs = 8;

 public:
  /// Unconverted elements of the next subtile.
  using Words = uint32_t[2 * kPairs];

  MP_DEVICE SubtileBias(const Epilogue &e, int64_t n, Words &words)
      : dtype_(e.dtype_bias), base_(e.bias), n_(n), words_(words) {}

  MP_DEVICE bool is_present() const { return base_ != nullptr; }

  /// Issues loads without waiting.  `col`: first column of the subtile; elements from n on are 0.
  MP_DEVICE void fetch(int64_t col) {
    if (dtype_ == MP_FP32)
      fetch_as<float>(col);
    else
      fetch_as<half>(col);  // also bf16: only bits are copied
  }

  MP_DEVICE void add(float (&z)[4 * kPairs]) const {
    float bias[2 * kPairs];
    with_type(dtype_, [&]<class T>(std::type_identity<T>) {
      MP_UNROLL
      for (int i = 0; i < 2 * kPairs; i++) {
        const uint32_t bits = words_[i / 2 * 2 + word<T>(i % 2)] >> shift<T>(i % 2);
        bias[i] = to_float(element_from<T>(bits));
      }
    });
    unroll<4 * kPairs>([&](int r) { z[r] += bias[r / 4 * 2 + r % 2]; });
  }

 private:
  template <class T>
  MP_DEVICE void fetch_as(int64_t col) {
    const int64_t own = col + lane_index() % 4 * 2;
    const T *const from = static_cast<const T *>(base_) + own;
    if (col + kPairs * 8 <= n_ && is_aligned<2 * sizeof(T)>(from)) {
      MP_UNROLL
      for (int j = 0; j < kPairs; j++)
        memcpy(words_ + 2 * j, __builtin_assume_aligned(from + 8 * j, 2 * sizeof(T)),
               2 * sizeof(T));
      return;
    }
    MP_UNROLL
    for (int j = 0; j < kPairs; j++) {
      words_[2 * j] = words_[2 * j + 1] = 0;
      MP_UNROLL
      for (int c = 0; c < 2; c++)
        if (own + 8 * j + c < n_)
          words_[2 * j + word<T>(c)] |= element_bits(from[8 * j + c]) << shift<T>(c);
    }
  }

  /// Returns the word of an element of a pair; shift() returns its bit offset in this word.
  template <class T>
  static MP_HD constexpr int word(int c) {
    return c * int{sizeof(T)} / 4;
  }
  template <class T>
  static MP_HD constexpr int shift(int c) {
    return c * int{sizeof(T)} % 4 * 8;
  }

  const mp_dtype_t dtype_;
  const void *const base_;
  const int64_t n_;
  Words &words_;
};

template <class Tile, class Placement>
class WgmmaTmaStore {
  using WarpTile = WgmmaWarpTile<Tile, Placement>;
  using Accumulators = typename WarpTile::Accumulators;
  using Buffers = WgmmaStagingBuffers<Tile>;
  using Fragment = typename Buffers::Fragment;

 public:
  /// `bias`: elements that start() loads for store().
  MP_DEVICE WgmmaTmaStore(const WarpTile &tile, Buffers &buffers, SubtileBias::Words &bias)
      : tile_(tile),
        buffers_(buffers),
        out_(tile.args.problem.out),
        source_(tile.args.source),
        bias_(out_.epilogue, tile.n(), bias) {}

  /// Starts loads of the bias and the epilogue source, before the main loop.
  MP_DEVICE void start() {
    if (has_bias()) fetch_bias(0);
    if (!reads_source()) return;
    buffers_.reuse_all();
    if (!is_elected_lane()) return;
    for (int subtile = 0; subtile < min_of(Buffers::kStagingBuffers, kSubtiles); subtile++)
      fetch_source(subtile);
  }

  MP_DEVICE void store(Accumulators &acc, EpilogueWriter &writer) {
    // With an odd number of subtiles, the last of a tile and the first of the next share a buffer.
    if constexpr (kSubtiles % Buffers::kStagingBuffers != 0) buffers_.reuse_all();
    if (is_fast_path()) {
      unroll<kSubtiles>([&](int s) { store_fast(s, &acc[0][0] + s * kRegs); });
      return;
    }
    // The general path is compiled once: iterations copy the next subtile to the first registers.
    float *const z = &acc[0][0];
    MP_NO_UNROLL
    for (int s = 0; s < kSubtiles; s++) {
      store_subtile(s, z, writer);
      copy_subtile(s + 1, z, std::make_integer_sequence<int, kSubtiles>());
    }
    if (writer.measures()) count_largest(writer);
  }

 private:
  static constexpr int kRegs = 32;  // per subtile
  using Subtile = float[kRegs];
  static constexpr int kAcross = Tile::kN / Buffers::kCols;
  static constexpr int kSubtiles = WarpTile::kBlocks * kAcross;
  /// wgrad: alpha and statistics only, because TMA stores no D with C (im2col_store).
  static constexpr bool kIsLinear = Placement::kHasPaddedColumns;

  /// Returns whether the epilogue has only alpha, bias and ReLU, and TMA can store all columns.
  /// The general path has too many branches to finish while the other warpgroup of a ping-pong
  /// kernel multiplies k = 1024.
  MP_DEVICE bool is_fast_path() const {
    const Epilogue &e = out_.epilogue;
    return is_fast_store(has_whole_units(), source_, e.activation,
                         e.amax != nullptr || e.found_inf != nullptr,
                         tile_.args.column_partials.base != nullptr);
  }

  MP_DEVICE void store_fast(int subtile, float *regs) {
    const int buffer = subtile % Buffers::kStagingBuffers;
    Subtile &z = *reinterpret_cast<Subtile *>(regs);
    buffers_.reuse();
    if (has_bias()) add_bias(subtile, z);
    if (!kIsLinear && out_.epilogue.activation == MP_ACT_RELU) {
      MP_UNROLL
      for (float &x : z) x = relu(x);
    }
    store_matrices(buffer, z);
    buffers_.fence_for_tma();
    if (is_elected_lane()) {
      store_box(buffer, subtile, map_d(), d_z());
      tma_store_commit();
    }
  }

  template <int... kSubtile>
  static MP_DEVICE void copy_subtile(int subtile, float *z,
                                     std::integer_sequence<int, kSubtile...>) {
    (..., (kSubtile > 0 && subtile == kSubtile ? copy_to_first<kSubtile>(z) : void()));
  }
  template <int kSubtile>
  static MP_DEVICE void copy_to_first(float *z) {
    unroll<kRegs>([&](int r) { z[r] = wgmma_copy<kSubtile>(z[kSubtile * kRegs + r]); });
  }

  /// Processes a subtile by the general path.  Each step covers the full subtile, so that its
  /// branches are taken once, not for every few elements: a distant branch costs as much as many.
  MP_DEVICE void store_subtile(int subtile, float *regs, const EpilogueWriter &writer) {
    // D is stored from the buffer of the loaded source; if aux is written, from the other buffer.
    const int aux_buffer = 0;
    const int buffer = writes_aux() ? 1 : subtile % Buffers::kStagingBuffers;
    Subtile &z = *reinterpret_cast<Subtile *>(regs);
    if (reads_source()) buffers_.wait(buffer);
    if (reads_source() && source_ == EpilogueSource::c) {
      Subtile c;
      load_source(buffer, c);
      unroll<kRegs>([&](int r) { z[r] += out_.beta * c[r]; });
    }
    if (has_bias()) add_bias(subtile, z);
    if (writes_aux()) {
      buffers_.reuse();
      store_matrices(aux_buffer, z);
      buffers_.fence_for_tma();
      send(aux_buffer, subtile, map_source(), source_z(), [&] { return in_memory().aux(); });
    }
    if (!kIsLinear) activate(out_.epilogue.activation, z);
    if (reads_source() && source_ == EpilogueSource::aux_read) {
      Subtile aux;
      load_source(buffer, aux);
      multiply_by_derivative(out_.epilogue.activation, aux, z);
    }
    if (writer.measures() && !tile_.is_full()) clear_outside(subtile, z);
    if (!reads_source()) buffers_.reuse();
    store_matrices(buffer, z, [&](const Fragment &fragment) {
      if (writer.measures()) measure(fragment);
    });
    buffers_.fence_for_tma();
    if (!kIsLinear && tile_.args.column_partials.base != nullptr) sum_columns(buffer, subtile);
    send(buffer, subtile, map_d(), d_z(), [&] { return in_memory().d(); });
    if (reads_source() && subtile + Buffers::kStagingBuffers < kSubtiles && is_elected_lane()) {
      tma_store_wait_read<0>();
      fetch_source(subtile + Buffers::kStagingBuffers);
    }
  }

  // ---- coordinates

  MP_DEVICE int row(int subtile) const { return tile_.row0 + subtile / kAcross * 64; }
  MP_DEVICE int col(int subtile) const {
    return tile_.work.n0 + subtile % kAcross * Buffers::kCols;
  }

  MP_DEVICE const TensorMap &map_d() const {
    if constexpr (Placement::kHasStridedRows) return tile_.placement.map_d(tile_.work.batch_item);
    return tile_.work.item != nullptr ? tile_.work.item->d : tile_.args.d;
  }
  MP_DEVICE const TensorMap &map_source() const { return tile_.args.source_map; }
  MP_DEVICE int d_z() const { return tile_.work.item != nullptr ? 0 : tile_.work.batch_item; }
  MP_DEVICE int source_z() const { return tile_.args.source_is_shared ? 0 : tile_.work.batch_item; }

  MP_DEVICE bool has_bias() const { return !kIsLinear && bias_.is_present(); }
  MP_DEVICE bool reads_source() const {
    return !kIsLinear && (source_ == EpilogueSource::c || source_ == EpilogueSource::aux_read);
  }
  /// Strided dgrad with such an aux uses the staged store (im2col_store).
  MP_DEVICE bool writes_aux() const {
    return !kIsLinear && !Placement::kHasStridedRows && source_ == EpilogueSource::aux_written;
  }

  // ---- steps

  MP_DEVICE void fetch_bias(int subtile) {
    bias_.fetch(tile_.placement.segment(col(subtile), tile_.n()).col);
  }
  MP_DEVICE void add_bias(int subtile, Subtile &z) {
    bias_.add(z);
    if (subtile + 1 < kSubtiles) fetch_bias(subtile + 1);
  }

  /// Issues the load of a subtile of the epilogue source, in one lane.
  MP_DEVICE void fetch_source(int subtile) const {
    const int buffer = subtile % Buffers::kStagingBuffers;
    if constexpr (Placement::kHasStridedRows) {
      const Im2colCoord from =
          tile_.placement.subtile(tile_.work.batch_item, row(subtile), col(subtile));
      tma_load_im2col(buffers_.address(buffer), map_source(), buffers_.expect(buffer), from);
    } else {
      const TmaCoord from = tile_.placement.buffer(col(subtile), source_z());
      const int first_row = row(subtile);
      tma_load(buffers_.address(buffer), map_source(), buffers_.expect(buffer), from.x, first_row,
               from.z);
    }
  }

  MP_DEVICE EpilogueWriter in_memory() const { return {out_, tile_.target()}; }

  /// Stores a buffer to global memory, in all lanes, after fence_for_tma().  The elected lane
  /// commits one group, which may be empty.
  /// @param rows  () -> EpilogueWriter::Rows, called only if TMA cannot store the subtile
  template <class Rows>
  MP_DEVICE void send(int buffer, int subtile, const TensorMap &map, int z,
                      const Rows &rows) const {
    const bool by_tma = has_whole_units() || col(subtile) + Buffers::kCols <= tile_.n();
    // The shuffle makes the branch warp-uniform for ptxas.  Otherwise it would keep the stage of
    // the main loop, a uniform value, in every lane.
    if (shuffle(int{by_tma}, 0) == 0)
      copy_rows(buffer, subtile, rows());
    else if (is_elected_lane())
      store_box(buffer, subtile, map, z);
    if (is_elected_lane()) tma_store_commit();
  }

  /// Issues the store of a subtile, in one lane.
  MP_DEVICE void store_box(int buffer, int subtile, const TensorMap &map, int z) const {
    if constexpr (Placement::kHasStridedRows) {
      const auto at = tile_.placement.pixel(row(subtile));
      const int channel = col(subtile);
      tma_store_im2col(map, buffers_.address(buffer), channel, at.column, at.row, at.image);
    } else {
      const TmaCoord to = tile_.placement.buffer(col(subtile), z);
      const int first_row = row(subtile);
      tma_store(map, buffers_.address(buffer), to.x, first_row, to.z);
    }
  }

  /// Returns whether the columns of D end at a 16-byte unit of TMA.  Padded columns always do, and
  /// the channels of stride phases, which im2col TMA has loaded.
  MP_DEVICE bool has_whole_units() const {
    return Placement::kHasPaddedColumns || Placement::kHasStridedRows || tile_.n() % kVec == 0;
  }

  /// Copies the rows of a subtile.  Neighboring lanes copy neighboring vectors of eight columns.
  MP_DEVICE void copy_rows(int buffer, int subtile, const EpilogueWriter::Rows &to) const {
    constexpr int kRuns = Buffers::kCols / kVec,
                  kTogether = 32;  // columns that a placement keeps contiguous
    // ptxas does not keep values derived from a shuffle in registers during the main loop.
    const int lane = shuffle(lane_index(), lane_index());
    MP_NO_UNROLL
    for (int i = lane; i < kSubtileRows * kRuns; i += kWarpSize) {
      const int r = i / kRuns, run = i % kRuns, first = run * kVec / kTogether * kTogether;
      const int64_t to_row = tile_.row_in_d(row(subtile) + r);
      const ColumnSegment segment = tile_.placement.segment(col(subtile) + first, tile_.n());
      const int from = run * kVec - first;
      const int valid = static_cast<int>(min_of<int64_t>(segment.count - from, kVec));
      if (to_row < 0 || valid <= 0) continue;
      half *const p = static_cast<half *>(to.base) + to_row * to.ld + segment.col + from;
      const Packed<half> x = buffers_.load_8(buffer, r, run);
      // One store of 16 bytes: four stores of a word would each write a part of every sector.
      using Eight = Pack<half, kVec>;
      static_assert(sizeof(Eight) == sizeof x);  // nvcc 12.4 casts only to a complete type
      if (valid == kVec)
        store_pack(p, __builtin_bit_cast(Eight, x));
      else
        x.store_elements(p, valid);
    }
    warp_sync();  // before the buffer is overwritten
  }

  // ---- elements

  /// Loads a subtile of the epilogue source from a buffer, in the order of accumulators.
  MP_DEVICE void load_source(int buffer, Subtile &source) const {
    MP_UNROLL
    for (int j = 0; j < kRegs / 8; j++) {
      Fragment fragment;
      buffers_.load_matrices(buffer, j, fragment);
      with_half_type(out_.dtype, [&]<class T>(std::type_identity<T>) {
        MP_UNROLL
        for (int r = 0; r < 8; r++)
          source[8 * j + r] = to_float(element_from<T>(fragment[r / 2] >> (r % 2 * 16)));
      });
    }
  }

  /// Rounds a subtile and stores it to a buffer; calls rounded(fragment) for the rounded elements.
  template <class Rounded>
  MP_DEVICE void store_matrices(int buffer, const Subtile &z, const Rounded &rounded) const {
    with_half_type(out_.dtype, [&]<class T>(std::type_identity<T>) {
      MP_UNROLL
      for (int j = 0; j < kRegs / 8; j++) {
        Fragment fragment;
        unroll<4>(
            [&](int p) { fragment[p] = pack_pair<T>(z[8 * j + 2 * p], z[8 * j + 2 * p + 1]); });
        rounded(fragment);
        buffers_.store_matrices(buffer, j, fragment);
      }
    });
  }
  MP_DEVICE void store_matrices(int buffer, const Subtile &z) const {
    store_matrices(buffer, z, [](const Fragment &) {});
  }

  // ---- statistics

  /// Writes the partial column sums for dbias (DbiasPlan): a lane sums two columns of the rounded
  /// D.
  MP_DEVICE void sum_columns(int buffer, int subtile) const {
    const ColumnPartials &sums = tile_.args.column_partials;
    const int64_t left = tile_.m() - row(subtile), column = col(subtile) + 2 * lane_index();
    Pack<float, 2> sum{};
    with_half_type(out_.dtype, [&]<class T>(std::type_identity<T>) {
      const auto add = [&](int r) {
        const uint32_t pair = buffers_.pair(buffer, r);
        sum.x[0] += to_float(element_from<T>(pair & 0xffffu));
        sum.x[1] += to_float(element_from<T>(pair >> 16));
      };
      if (left < kSubtileRows) {
        MP_NO_UNROLL
        for (int r = 0; r < left; r++) add(r);
        return;
      }
      unroll<kSubtileRows>([&](int r) { add(r); });
    });
    if (left > 0 && column < tile_.n()) {
      const int64_t at = tile_.work.batch_item * sums.rows_per_item + row(subtile) / kSubtileRows;
      *reinterpret_cast<Pack<float, 2> *>(sums.base + at * sums.ld + column) = sum;
    }
    warp_sync();  // before the buffer is overwritten
  }

  /// Clears elements outside D, which must not affect amax and found_inf.
  MP_DEVICE void clear_outside(int subtile, Subtile &z) const {
    const int64_t first_row = row(subtile) + lane_index() / 4;
    const bool row_inside[2] = {tile_.row_in_d(first_row) >= 0, tile_.row_in_d(first_row + 8) >= 0};
    const int64_t first_col = col(subtile) + lane_index() % 4 * 2;
    MP_UNROLL
    for (int r = 0; r < kRegs; r++) {
      const bool inside = row_inside[r / 2 % 2] && first_col + r / 4 * 8 + r % 2 < tile_.n();
      z[r] = inside ? z[r] : 0.0f;
    }
  }

  /// Updates the largest magnitudes.  Magnitudes of both types are ordered like integers, with
  /// infinity and NaN last.
  MP_DEVICE void measure(const Fragment &fragment) {
    MP_UNROLL
    for (const uint32_t pair : fragment) largest_ = max_of_pairs(largest_, pair & 0x7fff7fffu);
  }
  MP_DEVICE void count_largest(EpilogueWriter &writer) const {
    with_half_type(out_.dtype, [&]<class T>(std::type_identity<T>) {
      writer.count(bits_of(to_float(element_from<T>(largest_ & 0xffffu))));
      writer.count(bits_of(to_float(element_from<T>(largest_ >> 16))));
    });
  }

  const WarpTile &tile_;
  Buffers &buffers_;
  const Output &out_;
  const EpilogueSource source_;
  SubtileBias bias_;
  uint32_t largest_ = 0;  ///< largest magnitudes, one per half of a pair
};

}  // namespace mp::MP_TARGET
