#include "packages/aten/csrc/kernels/cpu/lapack.h"

#include <cstring>
#include <string>

#include "packages/aten/csrc/core/builtins.h"

namespace argand::kernels::cpu {
namespace {

template <class E>
Lapack<E> load(const char* op) {
  static const char kLetter = std::is_same_v<E, float> ? 's' : std::is_same_v<E, double> ? 'd' : std::is_same_v<E, std::complex<float>> ? 'c' : 'z';
  Lapack<E> t;
  auto find = [&](auto& f, const char* prefix, const char* real, const char* complex) {
    const std::string name = std::string(prefix) + kLetter + (kIsComplex<E> ? complex : real);
    f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(blas_function(op, name.c_str()));
  };
  auto lapacke = [&](auto& f, const char* real, const char* complex = nullptr) { find(f, "LAPACKE_", real, complex ? complex : real); };
  lapacke(t.potrf, "potrf");
  lapacke(t.getrf, "getrf");
  lapacke(t.getrs, "getrs");
  lapacke(t.getri, "getri");
  lapacke(t.geqrf, "geqrf");
  lapacke(t.orgqr, "orgqr", "ungqr");
  lapacke(t.ormqr, "ormqr", "unmqr");
  lapacke(t.gesdd, "gesdd");
  lapacke(t.syevd, "syevd", "heevd");
  lapacke(t.geev, "geev");
  lapacke(t.gels, "gels");
  lapacke(t.gelsy, "gelsy");
  lapacke(t.gelsd, "gelsd");
  lapacke(t.gelss, "gelss");
  lapacke(t.sytrf, "sytrf");
  lapacke(t.hetrf, "sytrf", "hetrf");
  lapacke(t.sytrs, "sytrs");
  lapacke(t.hetrs, "sytrs", "hetrs");
  find(t.trsm, "cblas_", "trsm", "trsm");
  // NaN is a value like others here, not an argument error.
  reinterpret_cast<void (*)(int)>(blas_function(op, "LAPACKE_set_nancheck"))(0);
  return t;
}

}  // namespace

template <class E>
const Lapack<E>& lapack(const char* op) {
  static const Lapack<E> table = load<E>(op);
  return table;
}
template const Lapack<float>& lapack(const char*);
template const Lapack<double>& lapack(const char*);
template const Lapack<std::complex<float>>& lapack(const char*);
template const Lapack<std::complex<double>>& lapack(const char*);

Dims batch_sizes(const Tensor& t) { return Dims(IntList(t->sizes, t.dim() - 2)); }
Dims with_matrix(const Tensor& t, int64_t rows, int64_t cols) {
  Dims sizes(t.sizes());
  sizes[t.dim() - 2] = rows;
  sizes[t.dim() - 1] = cols;
  return sizes;
}
Dims with_vector(const Tensor& t, int64_t n) {
  Dims sizes(IntList(t->sizes, t.dim() - 1));
  sizes[t.dim() - 2] = n;
  return sizes;
}

Tensor column_major(IntList sizes, int dtype) {
  const builtins::Strided g = builtins::column_major(sizes);
  return empty_strided(g.sizes, g.strides, dtype);
}

Tensor column_major_zeros(IntList sizes, int dtype) {
  const Tensor out = column_major(sizes, dtype);
  if (out.numel()) std::memset(out->data, 0, static_cast<size_t>(out.numel() * out.itemsize()));
  return out;
}

Tensor column_major_copy(const Tensor& t) {
  const Tensor out = column_major(t.sizes(), t.dtype());
  const int64_t m = t.size(-2), n = t.size(-1);
  if (t.is_contiguous() && m > 1 && n > 1 && m * n <= 64) {  // a general copy takes longer for the rows than for their elements
    dispatch_size(t.itemsize(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      parallel_for(0, matrix_count(t), 1024, [&](int64_t begin, int64_t end) {
        const T* from = t.data<T>() + begin * m * n;
        T* to = out.data<T>() + begin * m * n;
        for (int64_t i = begin; i < end; i++, from += m * n, to += m * n)
          for (int64_t c = 0; c < n; c++)
            for (int64_t r = 0; r < m; r++) to[c * m + r] = from[r * n + c];
      });
    });
    return out;
  }
  strided_copy(t.itemsize(), t.dim(), t->sizes, out->data, out->strides, t->data, t->strides);
  return out;
}

Tensor dense_copy(const Tensor& t) {
  const Tensor out = empty(t.sizes(), t.dtype());
  store_into(out, t);
  return out;
}

// LAPACKE's codes -1010 and -1011: it could not allocate work arrays, or a transposed copy.
static constexpr int64_t kWorkMemoryError = -1010;

int32_t info_of(const char* op, int64_t status) {
  if (status <= kWorkMemoryError) fail(ARGAND_OUT_OF_MEMORY_ERROR, "%s: there is no memory for LAPACK's work arrays; free some", op);
  return static_cast<int32_t>(status);
}

void check_info(const char* op, const Tensor& info, const char* what) {
  const int32_t* const found = info.data<int32_t>();
  for (int64_t i = 0; i < info.numel(); i++) {
    if (found[i] == 0) continue;
    std::string message = std::string(op) + ": ";
    if (info.dim()) message += "(Batch element " + std::to_string(i) + "): ";
    char text[256];
    if (found[i] < 0)
      snprintf(text, sizeof text, "the matrix contains values that are not finite (argument %lld of LAPACK)", static_cast<long long>(-found[i]));
    else
      snprintf(text, sizeof text, what, static_cast<long long>(found[i]));
    throw Error{ARGAND_LINALG_ERROR, message + text};
  }
}

}  // namespace argand::kernels::cpu
