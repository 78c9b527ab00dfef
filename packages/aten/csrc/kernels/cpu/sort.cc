// Sorting along a dimension: rows in parallel, stable, NaN last (greatest).
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/dtype_checks.h"
#include "packages/aten/csrc/kernels/cpu/ordered.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

// A key and its place, compared together: equal keys keep their order.
struct Wide {
  uint64_t key;
  int64_t at;
  bool operator<(const Wide& o) const { return key < o.key || (key == o.key && at < o.at); }
};
template <class E, class K>
E entry(K key, int64_t at) {
  if constexpr (std::is_same_v<E, Wide>)
    return {key, at};
  else
    return uint64_t{key} << 32 | static_cast<uint64_t>(at);
}
inline int64_t place(uint64_t e) { return static_cast<int64_t>(e & 0xffffffffu); }
inline int64_t place(const Wide& e) { return e.at; }
inline uint64_t key_of(uint64_t e) { return e >> 32; }
inline uint64_t key_of(const Wide& e) { return e.key; }

// The integer that ordered() made `key` of.
template <class T>
T from_ordered(uint64_t key) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(key ^ uint64_t{1} << (8 * sizeof(ordered(T{})) - 1));
  else
    return static_cast<T>(key);
}

// Least significant byte first; bytes that are the same everywhere are skipped. Entries come in the order of their places.
template <class E>
void radix_sort(E* entries, E* other, int64_t n) {
  constexpr int kBytes = sizeof(E) == 8 ? 4 : 8;
  std::vector<int64_t> counts(kBytes * 256);
  for (int64_t i = 0; i < n; i++)
    for (int b = 0; b < kBytes; b++) counts[static_cast<size_t>(b * 256) + (key_of(entries[i]) >> (8 * b) & 255)]++;
  E *from = entries, *to = other;
  for (int b = 0; b < kBytes; b++) {
    int64_t* count = &counts[static_cast<size_t>(b) * 256];
    if (count[key_of(from[0]) >> (8 * b) & 255] == n) continue;
    int64_t start = 0;
    for (int d = 0; d < 256; d++) start += std::exchange(count[d], start);
    for (int64_t i = 0; i < n; i++) to[count[key_of(from[i]) >> (8 * b) & 255]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::copy_n(from, n, entries);
}

constexpr int64_t kInParts = 1 << 16;  // entries that are sorted by all threads

// The same by digits of 11 bits; parts of the entries are counted, and moved, by themselves, each behind those before it.
template <class E>
void radix_sort_parts(E* entries, E* other, int64_t n) {
  constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits, kKeyBits = sizeof(E) == 8 ? 32 : 64;
  const int64_t parts = std::min<int64_t>(16, n / (kInParts / 2)), part = (n + parts - 1) / parts;
  std::vector<int64_t> counts(static_cast<size_t>(parts * kDigits));
  E *from = entries, *to = other;
  for (int shift = 0; shift < kKeyBits; shift += kDigitBits) {
    // f(count of the entry's digit in its part, entry)
    const auto for_each_entry = [&](auto f) {
      parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; p++) {
          int64_t* const count = counts.data() + p * kDigits;
          for (int64_t i = p * part; i < std::min(n, (p + 1) * part); i++) f(count[key_of(from[i]) >> shift & (kDigits - 1)], from[i]);
        }
      });
    };
    std::fill(counts.begin(), counts.end(), 0);
    for_each_entry([](int64_t& count, const E&) { count++; });
    int64_t start = 0;
    bool same = false;
    for (int64_t d = 0; d < kDigits; d++) {
      const int64_t before = start;
      for (int64_t p = 0; p < parts; p++) start += std::exchange(counts[static_cast<size_t>(p * kDigits + d)], start);
      same = same || start - before == n;
    }
    if (same) continue;
    for_each_entry([to](int64_t& place, const E& e) { to[place++] = e; });
    std::swap(from, to);
  }
  if (from != entries) parallel_for(0, n, kInParts, [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, entries + begin); });
}

// Which of the smallest entries are wanted: all, in a stable order; or the first k, in order or not, equal keys in the order of PyTorch's choice.
struct Wanted {
  int64_t k;
  bool all, in_order;
};
template <class E>
void order_entries(E* entries, E* other, int64_t n, const Wanted& wanted) {
  if (wanted.all)
    return n < 512 ? std::sort(entries, entries + n) : n < kInParts ? radix_sort(entries, other, n) : radix_sort_parts(entries, other, n);
  const auto less = [](const E& a, const E& b) { return key_of(a) < key_of(b); };
  std::nth_element(entries, entries + wanted.k - 1, entries + n, less);
  if (wanted.in_order) std::sort(entries, entries + wanted.k - 1, less);
}

constexpr int64_t kTogether = 32;  // elements that are looked at by one comparison

// Whether none of some neighbours comes before `last`: NaN does, or may.
template <class T>
__attribute__((optimize("O3"))) bool none_before(const T* from, T last, bool descending) {
  uint32_t before = 0;
  if (descending)
    for (int64_t i = 0; i < kTogether; i++) before |= !(from[i] <= last);
  else
    for (int64_t i = 0; i < kTogether; i++) before |= !(from[i] >= last);
  return !before;
}

// What std::partial_sort makes of all n entries, without holding more than the k + 1 that it compares. none_at(j, last): no entry of kTogether from j
// on is less than that of place `last`.
template <class E, class F, class N>
void order_first(E* entries, int64_t n, int64_t k, F&& entry_at, N&& none_at) {
  const auto less = [](const E& a, const E& b) { return key_of(a) < key_of(b); };
  for (int64_t j = 0; j < k; j++) entries[j] = entry_at(j);
  std::make_heap(entries, entries + k, less);
  for (int64_t j = k; j < n;) {
    const int64_t stop = std::min(n, j + kTogether);
    if (stop - j == kTogether && none_at(j, place(entries[0]))) j = stop;
    for (; j < stop; j++) {
      const E next = entry_at(j);
      if (!less(next, entries[0])) continue;
      entries[k] = next;
      std::pop_heap(entries, entries + k + 1, less);
    }
  }
  std::sort_heap(entries, entries + k, less);
}

// The lowest of keys whose differences take 32 bits.
template <class T>
std::optional<uint64_t> narrow_base(const Tensor& input) {
  const auto [low, high] = std::minmax_element(input.data<T>(), input.data<T>() + input.numel());
  return ordered(*high) - ordered(*low) <= 0xffffffff ? std::optional<uint64_t>(ordered(*low)) : std::nullopt;
}

// `base` is taken from 64-bit keys whose entries hold 32 bits.
template <class T, class E>
void order_rows(const Tensor& input, const DimSplit& s, const Wanted& wanted, bool descending, const Tensor& values, const Tensor& indices,
                uint64_t base = 0) {
  using Key = std::conditional_t<std::is_same_v<E, Wide>, uint64_t, uint32_t>;
  const int64_t k = wanted.k;
  const T* in = input.data<T>();
  T* out = values.data<T>();
  int64_t* at = indices.data<int64_t>();
  argand::parallel_for(0, s.outer * s.inner, row_grain(s.n * 8), [&](int64_t begin, int64_t end) {
    const bool first = !wanted.all && k * 64 <= s.n;
    Scratch<E> row(first ? k + 1 : s.n), other(wanted.all && s.n >= 512 ? s.n : 0);
    for (int64_t r = begin; r < end; r++) {
      const int64_t o = r / s.inner, i = r % s.inner;
      const T* from = in + o * s.n * s.inner + i;
      const auto entry_at = [&](int64_t j) {
        const auto key = static_cast<Key>(ordered(from[j * s.inner]) - base);
        return entry<E>(static_cast<Key>(descending ? ~key : key), j);
      };
      if (first) {
        order_first<E>(row, s.n, k, entry_at, [&](int64_t j, int64_t last) {
          if constexpr (std::is_arithmetic_v<T>)
            return s.inner == 1 && none_before(from + j, from[last], descending);
          else
            return false;
        });
      } else {
        parallel_for(0, s.n, kInParts, [&](int64_t a, int64_t b) {
          for (int64_t j = a; j < b; j++) row[j] = entry_at(j);
        });
        order_entries<E>(row, other, s.n, wanted);
      }
      parallel_for(0, k, kInParts, [&](int64_t a, int64_t b) {
        for (int64_t j = a; j < b; j++) {
          const int64_t found = place(row[j]), to = (o * k + j) * s.inner + i;
          if constexpr (std::is_integral_v<T>)  // read from its key: entries lie in order, elements do not
            out[to] = from_ordered<T>(static_cast<Key>(descending ? ~key_of(row[j]) : key_of(row[j])) + base);
          else
            out[to] = from[found * s.inner];
          at[to] = found;
        }
      });
    }
  });
}

void order_dim(const char* name, const Tensor& input, const DimSplit& s, const Wanted& wanted, bool descending, const Tensor& values,
               const Tensor& indices) {
  if (values.numel() == 0) return;
  dispatch_ordered(name, input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(ordered(T{})) == 4) {
      if (s.n <= int64_t{0xffffffff}) return order_rows<T, uint64_t>(input, s, wanted, descending, values, indices);
    }
    if constexpr (sizeof(T) == 8 && std::is_integral_v<T>) {
      if (const auto base = narrow_base<T>(input); base && s.n <= int64_t{0xffffffff})
        return order_rows<T, uint64_t>(input, s, wanted, descending, values, indices, *base);
    }
    order_rows<T, Wide>(input, s, wanted, descending, values, indices);
  });
}

}  // namespace

// The results lie in memory as a clone of `self` would.
std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending, std::optional<bool>) {
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  const Tensor input = is_non_overlapping_and_dense(self.sizes(), self.strides()) ? self : clone(self, std::nullopt);
  const Tensor values = argand::empty_strided(input.sizes(), input.strides(), self.dtype());
  const Tensor indices = argand::empty_strided(input.sizes(), input.strides(), ARGAND_INT64);
  DimSplit s(input, d);
  if (values.numel()) {
    s.inner = s.n == 1 ? 1 : input.stride(d);
    s.outer = values.numel() / (s.n * s.inner);
  }
  order_dim("sort", input, s, {s.n, true, true}, descending, values, indices);
  return {values, indices};
}

std::tuple<Tensor, Tensor> topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  check_not_bool("topk", self.dtype());
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  const int64_t n = self.dim() ? self.size(d) : 1;
  if (k < 0 || k > n)
    builtins::raise(ARGAND_RUNTIME_ERROR, builtins::text("selected index k out of range: got k=", k, " for a dimension of size ", n));
  builtins::Ints sizes = self.sizes().vec();
  if (!sizes.empty())
    sizes[d] = k;
  else
    k = 1;  // a number is its own selection, of none, too
  const Tensor input = contiguous(self), values = argand::empty(sizes, self.dtype()), indices = argand::empty(sizes, ARGAND_INT64);
  order_dim("topk", input, DimSplit(input, d), {k, false, sorted}, largest, values, indices);
  return {values, indices};
}

}  // namespace argand::kernels::cpu
