// Inner loops of reductions: a row to one accumulator, columns to an accumulator each. Included by sources that are compiled once
// a tier; the driver is reduce_driver.h. Sums are pairwise over blocks, so that their error grows with the logarithm of the length.
#pragma once

#include "packages/aten/csrc/kernels/cpu/pointwise.h"

namespace argand::simd {
inline namespace ARGAND_TIER {

// Values no element is below or above: initial accumulators of maxima and minima.
#define ARGAND_ENDS(V, low, high)                 \
  ARGAND_FN V lowest(V x) { return lit(x, low); } \
  ARGAND_FN V highest(V x) { return lit(x, high); }
ARGAND_ENDS(vf32, -__builtin_inf(), __builtin_inf())
ARGAND_ENDS(vf64, -__builtin_inf(), __builtin_inf())
ARGAND_ENDS(vi8, -128, 127)
ARGAND_ENDS(vi16, -32768, 32767)
ARGAND_ENDS(vi32, -0x7fffffff - 1, 0x7fffffff)
ARGAND_ENDS(vi64, -0x7fffffffffffffffL - 1, 0x7fffffffffffffffL)
ARGAND_ENDS(vu8, 0, 255)
ARGAND_ENDS(vu64, 0, -1L)  // the last of 64 bits
ARGAND_ENDS(vbool, 0, 1)
#undef ARGAND_ENDS

inline constexpr signed char kLaneNumbers[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
                                                 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
template <int W>
ARGAND_FN auto lane_numbers() {
  return __builtin_convertvector(load_raw<signed char, W>((const char*)kLaneNumbers), typename MaskOf<W>::type);
}

// The Map of elements that are taken as they are.
struct Unchanged {
  [[gnu::always_inline]] constexpr auto operator()(auto x) const { return x; }
};

// In, Acc: storage types. Init(like), Map(x), Combine(a, b): captureless functors on compute values. For Acc bool
// they see masks after Map; otherwise elements are converted to Acc before Map.
template <class Acc, class In, class Init, class Map, class Combine>
struct Reduction {
  static constexpr bool kComplex = kIsComplex<Acc> || kIsComplex<In>;
  static constexpr int W = lanes_of<Acc, In>();
  static constexpr long kBytes = ARGAND_VECTOR_BYTES * (kComplex ? 2 : 1);  // of W elements
  static constexpr bool kLogical = is_same<In, bool> && is_same<Acc, bool>;
  static constexpr long kBlock = 128;   // vectors summed straight, in four strands
  static constexpr bool kCounts = [] {  // a sum of truth values
    if constexpr (is_same<In, bool> && is_same<Acc, long> && is_same<Map, Unchanged>)
      return Combine{}(2L, 3L) == 5;
    else
      return false;
  }();

  ARGAND_FN auto element(const char* p) {  // a mapped element, or vector
    const auto x = load<In, W, kLogical>(p);
    if constexpr (is_same<Acc, bool> || kComplex)
      return Map{}(x);
    else if constexpr (is_same<In, bool>)
      return Map{}(from_mask<Acc>(x));
    else if constexpr (sizeof(x) == sizeof(typename VectorOf<typename ComputeOf<Acc>::type>::type) &&
                       is_same<typename ComputeOf<In>::type, typename ComputeOf<Acc>::type>)
      return Map{}(x);
    else
      return Map{}(bits_as<typename VectorOf<typename ComputeOf<Acc>::type>::type>(simd::cast<Acc>(x)));
  }
  using Value = decltype(element(nullptr));
  static constexpr bool kBools = is_same<Value, vbool>, kComplexValue = kIsComplex<Value>;

  ARGAND_FN Value initial() {
    if constexpr (is_same<Acc, bool> && !kBools)
      return Init{}(vbool{}).v[0] ? ~Value{} : Value{};
    else
      return Init{}(Value{});
  }
  ARGAND_FN Value load_acc(const char* p) { return bits_as<Value>(load<Acc, W, kBools>(p)); }
  ARGAND_FN void store_acc(char* p, Value v) { store<Acc, W>(p, v); }

  ARGAND_FN Value block(const char* p, long vectors) {
    constexpr long step = sizeof(In) * W;
    Value a = initial(), b = a, c = a, d = a;
    for (; vectors >= 4; vectors -= 4, p += 4 * step) {
      a = Combine{}(a, element(p));
      b = Combine{}(b, element(p + step));
      c = Combine{}(c, element(p + 2 * step));
      d = Combine{}(d, element(p + 3 * step));
    }
    for (; vectors > 0; vectors--, p += step) a = Combine{}(a, element(p));
    return Combine{}(Combine{}(a, b), Combine{}(c, d));
  }

  ARGAND_FN long count(const char* p, long n) {  // how many of n bytes are not 0
    long total = 0;
    while (n >= ARGAND_VECTOR_BYTES) {
      vu8 lanes = {};  // each counts to 255
      const long vectors = n / ARGAND_VECTOR_BYTES < 255 ? n / ARGAND_VECTOR_BYTES : 255;
      n -= vectors * ARGAND_VECTOR_BYTES;
      for (long v = 0; v < vectors; v++, p += ARGAND_VECTOR_BYTES) lanes -= (vu8)(load_raw<unsigned char, ARGAND_VECTOR_BYTES>(p) != 0);
      for (int i = 0; i < ARGAND_VECTOR_BYTES; i++) total += lanes[i];
    }
    for (; n > 0; n--) total += *p++ != 0;
    return total;
  }

  ARGAND_FN Value keep_lanes(Value v, long n) {  // initial values beyond n
    using Mask = typename MaskOf<W>::type;
    const Mask mask = lane_numbers<W>() < lit(Mask{}, n);
    if constexpr (kBools || kComplexValue)
      return where(mask, v, initial());
    else
      return mask ? v : initial();
  }

  ARGAND_FN Value fold(Value v) {  // all lanes into the first
    using Mask = typename MaskOf<W>::type;
    if constexpr (!kComplexValue && sizeof(Value) == ARGAND_VECTOR_BYTES && sizeof(Value) <= 2 * W) {  // small lanes have no permutation of their own
      constexpr int kWords = ARGAND_VECTOR_BYTES / 8;
      for (int half = kWords / 2; half; half /= 2) {
        const vi64 from = (bits_as<vi64>(lane_numbers<kWords>()) + half) & (kWords - 1);
        v = Combine{}(v, bits_as<Value>(__builtin_shuffle(bits_as<vi64>(v), from)));
      }
      for (int bits = 32; bits >= (int)sizeof(Value) / W * 8; bits /= 2) v = Combine{}(v, bits_as<Value>(bits_as<vu64>(v) >> bits));
      return v;
    }
#pragma GCC unroll 1
    for (int half = W / 2; half; half /= 2) {
      const Mask from = (lane_numbers<W>() + lit(Mask{}, half)) & lit(Mask{}, W - 1);
      if constexpr (kBools)
        v = Combine{}(v, vbool{__builtin_shuffle(v.v, (vu8)from)});
      else if constexpr (kComplexValue)
        v = Combine{}(v, Value{__builtin_shuffle(v.re, from), __builtin_shuffle(v.im, from)});
      else
        v = Combine{}(v, __builtin_shuffle(v, from));
    }
    return v;
  }

  static void rows(long rows, long row_stride, long n, const char* in, long stride, char* acc) {
    if constexpr (kCounts)
      if (stride == 1) {
        long total = 0;
        for (long r = 0; r < rows; r++) total += count(in + r * row_stride, n);
        __builtin_memcpy(acc, &total, sizeof total);
        return;
      }
    alignas(64) char buffer[kBlock * kBytes], tail[kBytes];
    Value levels[48], total = initial();
    unsigned long count = 0;
    const auto add = [&](Value v) __attribute__((always_inline)) {
      int level = 0;  // a binary counter of blocks: partners are of equal weight
      for (unsigned long c = count++; c & 1; c >>= 1) v = Combine{}(levels[level++], v);
      levels[level] = v;
    };
    for (long r = 0; r < rows; r++, in += row_stride) {
      long done = 0;
      while (done < n) {
        const long m = n - done < kBlock * W ? n - done : kBlock * W;
        const char* p = in + done * stride;
        if (stride != (long)sizeof(In)) {
          gather_elements(buffer, p, stride, m, sizeof(In));
          p = buffer;
        }
        Value v = block(p, m / W);
        if (const long rest = m % W) {
          load_rest(tail, p + (m - rest) * (long)sizeof(In), rest * (long)sizeof(In), kPadding<In>, kIsComplex<In>);
          v = Combine{}(v, keep_lanes(element(tail), rest));
        }
        done += m;
        add(v);
      }
    }
    for (int level = 0; count >> level; level++)
      if (count >> level & 1) total = Combine{}(levels[level], total);
    alignas(64) char out[kBytes];
    store_acc(out, fold(total));
    __builtin_memcpy(acc, out, sizeof(Acc));
  }

  static void columns(long rows, long columns, const char* in, long row_stride, char* acc) {
    const long whole = columns / W;
    for (long r = 0; r < rows;) {
      const char* p = in + r * row_stride;
      char* to = acc;
      if (rows - r >= 4) {
        for (long v = whole; v > 0; v--, p += sizeof(In) * W, to += sizeof(Acc) * W) {
          const Value x = Combine{}(element(p), element(p + row_stride)), y = Combine{}(element(p + 2 * row_stride), element(p + 3 * row_stride));
          store_acc(to, Combine{}(load_acc(to), Combine{}(x, y)));
        }
        r += 4;
      } else {
        for (long v = whole; v > 0; v--, p += sizeof(In) * W, to += sizeof(Acc) * W) store_acc(to, Combine{}(load_acc(to), element(p)));
        r += 1;
      }
    }
    if (const long rest = columns % W) tail_columns(rows, rest, in + whole * W * (long)sizeof(In), row_stride, acc + whole * W * (long)sizeof(Acc));
  }
  static void tail_columns(long rows, long columns, const char* in, long row_stride, char* acc) {  // in the order of whole vectors
    alignas(64) char buffer[kBytes];
    const auto row = [&](long r) {
      load_rest(buffer, in + r * row_stride, columns * (long)sizeof(In), kPadding<In>, kIsComplex<In>);
      return element(buffer);
    };
    load_rest(buffer, acc, columns * (long)sizeof(Acc), kPadding<Acc>, kIsComplex<Acc>);
    Value total = load_acc(buffer);
    long r = 0;
    for (; rows - r >= 4; r += 4) total = Combine{}(total, Combine{}(Combine{}(row(r), row(r + 1)), Combine{}(row(r + 2), row(r + 3))));
    for (; r < rows; r++) total = Combine{}(total, row(r));
    store_acc(buffer, total);
    store_rest(acc, buffer, columns * (long)sizeof(Acc), kIsComplex<Acc>);
  }

  static void init(char* acc) {
    alignas(64) char out[kBytes];
    store_acc(out, initial());
    __builtin_memcpy(acc, out, sizeof(Acc));
  }
};

// What does not depend on the elements' type lies outside of Reduction, so that the dtypes that share an accumulator share it.
template <class Acc, class Combine>
void combine_accumulators(long n, char* acc, const char* other) {
  char* const ptrs[] = {acc, acc, (char*)other};
  const long strides[] = {sizeof(Acc), sizeof(Acc), sizeof(Acc)};
  map<Acc, Acc, Acc>(n, ptrs, strides, [](auto a, auto b) { return Combine{}(a, b); });
}
template <class Acc, class Out, class Final>
void finish_accumulators(long n, char* out, long out_stride, const char* acc, long count) {
  char* const ptrs[] = {out, (char*)acc};
  const long strides[] = {out_stride, sizeof(Acc)};
  const auto final = [=](auto a) { return Final{}(a, lit(a, (double)count)); };
  if constexpr (is_same<Acc, bool> && is_same<Out, unsigned char>)  // truth as a byte
    map<bool, Acc>(n, ptrs, strides, final);
  else
    map<Out, Acc>(n, ptrs, strides, final);
}

template <class Acc, class In, class Out, class Init, class Map, class Combine, class Final>
constexpr ReduceKernel reduce_kernel(int in_dtype, int acc_dtype, int out_dtype, Init, Map, Combine, Final) {
  using R = Reduction<Acc, In, Init, Map, Combine>;
  return {(signed char)in_dtype,
          (signed char)acc_dtype,
          (signed char)out_dtype,
          R::init,
          R::rows,
          R::columns,
          combine_accumulators<Acc, Combine>,
          finish_accumulators<Acc, Out, Final>};
}

}  // namespace ARGAND_TIER
}  // namespace argand::simd
