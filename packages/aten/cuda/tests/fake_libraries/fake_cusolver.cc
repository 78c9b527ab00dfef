// A stand-in for cuSOLVER where there is no GPU: textbook algorithms in double precision, on host memory, with what a call says of leading
// dimensions, triangles, transposes and types. A call that the library would refuse is refused with INVALID_VALUE.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalid = 3;
constexpr size_t kWork = 64;  // bytes or elements of every workspace
using C = std::complex<double>;

// A matrix of numbers of any type, read from and written back to where it lies, column by column.
struct Matrix {
  int64_t rows, columns;
  std::vector<C> at;
  Matrix(int64_t m, int64_t n) : rows(m), columns(n), at(static_cast<size_t>(m * n)) {}
  C& operator()(int64_t i, int64_t j) { return at[static_cast<size_t>(j * rows + i)]; }
  C operator()(int64_t i, int64_t j) const { return at[static_cast<size_t>(j * rows + i)]; }
};

enum Type { kR32F = 0, kR64F = 1, kC32F = 4, kC64F = 5 };
Type real_of(int type) { return static_cast<Type>(type % 4); }

C load(const void* data, int64_t i, int type) {
  switch (type) {
    case kR32F:
      return static_cast<const float*>(data)[i];
    case kR64F:
      return static_cast<const double*>(data)[i];
    case kC32F:
      return static_cast<const std::complex<float>*>(data)[i];
    default:
      return static_cast<const C*>(data)[i];
  }
}
void store(void* data, int64_t i, int type, C v) {
  if (type == kR32F) static_cast<float*>(data)[i] = static_cast<float>(v.real());
  if (type == kR64F) static_cast<double*>(data)[i] = v.real();
  if (type == kC32F) static_cast<std::complex<float>*>(data)[i] = std::complex<float>(v);
  if (type == kC64F) static_cast<C*>(data)[i] = v;
}
Matrix read(const void* data, int64_t m, int64_t n, int64_t ld, int type) {
  Matrix a(m, n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < m; i++) a(i, j) = load(data, j * ld + i, type);
  return a;
}
void write(const Matrix& a, void* data, int64_t ld, int type) {
  for (int64_t j = 0; j < a.columns; j++)
    for (int64_t i = 0; i < a.rows; i++) store(data, j * ld + i, type, a(i, j));
}
// Q = H_0 H_1 ... of the reflectors below the diagonal of `v`, whole.
Matrix product_of(const Matrix& v, const std::vector<C>& tau) {
  const int64_t m = v.rows;
  Matrix q(m, m);
  for (int64_t i = 0; i < m; i++) q(i, i) = 1;
  for (int64_t k = static_cast<int64_t>(tau.size()); k-- > 0;)
    for (int64_t j = 0; j < m; j++) {
      C dot = q(k, j);
      for (int64_t i = k + 1; i < m; i++) dot += std::conj(v(i, k)) * q(i, j);
      dot *= tau[static_cast<size_t>(k)];
      q(k, j) -= dot;
      for (int64_t i = k + 1; i < m; i++) q(i, j) -= v(i, k) * dot;
    }
  return q;
}
Matrix multiplied(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (int64_t j = 0; j < b.columns; j++)
    for (int64_t k = 0; k < a.columns; k++)
      for (int64_t i = 0; i < a.rows; i++) c(i, j) += a(i, k) * b(k, j);
  return c;
}
Matrix adjoint(const Matrix& a) {
  Matrix t(a.columns, a.rows);
  for (int64_t j = 0; j < a.columns; j++)
    for (int64_t i = 0; i < a.rows; i++) t(j, i) = std::conj(a(i, j));
  return t;
}
std::vector<C> read_vector(const void* data, int64_t n, int type) {
  std::vector<C> v;
  for (int64_t i = 0; i < n; i++) v.push_back(load(data, i, type));
  return v;
}

// Eigenvalues of a Hermitian matrix, ascending, and vectors, by Jacobi's rotations.
void diagonalize(Matrix a, std::vector<double>& values, Matrix& vectors) {
  const int64_t n = a.rows;
  Matrix v(n, n);
  for (int64_t i = 0; i < n; i++) v(i, i) = 1;
  for (int sweep = 0; sweep < 60; sweep++)
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        const double size = std::abs(a(p, q));
        if (size < 1e-300) continue;
        const C phase = a(p, q) / size;
        const double angle = 0.5 * std::atan2(2 * size, (a(q, q) - a(p, p)).real());
        const double c = std::cos(angle), s = std::sin(angle);
        for (Matrix* x : {&a, &v})
          for (int64_t i = 0; i < n; i++) {
            const C left = (*x)(i, p), right = (*x)(i, q);
            (*x)(i, p) = c * left - s * std::conj(phase) * right;
            (*x)(i, q) = s * phase * left + c * right;
          }
        for (int64_t i = 0; i < n; i++) {
          const C up = a(p, i), down = a(q, i);
          a(p, i) = c * up - s * phase * down;
          a(q, i) = s * std::conj(phase) * up + c * down;
        }
      }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return a(i, i).real() < a(j, j).real(); });
  values.clear();
  for (int64_t k = 0; k < n; k++) {
    values.push_back(a(order[static_cast<size_t>(k)], order[static_cast<size_t>(k)]).real());
    for (int64_t i = 0; i < n; i++) vectors(i, k) = v(i, order[static_cast<size_t>(k)]);
  }
}

double size(C v) { return std::abs(v.real()) + std::abs(v.imag()); }  // as LAPACK compares pivots

int sizes(int64_t m, int64_t lda, size_t* device, size_t* host) {
  if (lda < std::max<int64_t>(m, 1)) return kInvalid;
  *device = kWork, *host = kWork;
  return 0;
}
bool is_work(const void* device, size_t bytes, const void* host, size_t host_bytes) {
  return device && host && bytes == kWork && host_bytes == kWork;
}

int orgqr(int m, int n, int k, void* a, int lda, const void* tau, int elements, int type) {
  if (m < n || n < k || lda < m || elements != static_cast<int>(kWork)) return kInvalid;
  const Matrix q = product_of(read(a, m, k, lda, type), read_vector(tau, k, type));
  Matrix part(m, n);
  std::copy_n(q.at.begin(), part.at.size(), part.at.begin());
  write(part, a, lda, type);
  return 0;
}

int ormqr(int32_t side, int32_t trans, int m, int n, int k, const void* a, int lda, const void* tau, void* c, int ldc, int elements, int type) {
  const int order = side == 0 ? m : n;
  const int32_t usual = type >= kC32F ? 2 : 1;
  if (k > order || lda < order || ldc < m || (trans && trans != usual) || elements != static_cast<int>(kWork)) return kInvalid;
  Matrix q = product_of(read(a, order, k, lda, type), read_vector(tau, k, type));
  if (trans) q = adjoint(q);
  const Matrix x = read(c, m, n, ldc, type);
  write(side == 0 ? multiplied(q, x) : multiplied(x, q), c, ldc, type);
  return 0;
}

// By the eigenvectors of A^H A, or of A A^H where that is smaller; fine for matrices of full rank.
int gesvdj(int32_t vectors, int economic, int m, int n, void* a, int lda, void* s, void* u, int ldu, void* v, int ldv, int elements, int* info,
           int type) {
  if (lda < m || ldu < m || ldv < n || !u || !v || elements != static_cast<int>(kWork)) return kInvalid;
  const Matrix x = read(a, m, n, lda, type);
  const int64_t k = std::min(m, n);
  Matrix left(m, m), right(n, n);
  std::vector<double> of_left, of_right;
  diagonalize(multiplied(x, adjoint(x)), of_left, left);
  diagonalize(multiplied(adjoint(x), x), of_right, right);
  for (Matrix* w : {&left, &right})
    for (int64_t j = 0; j < w->columns / 2; j++)
      for (int64_t i = 0; i < w->rows; i++) std::swap((*w)(i, j), (*w)(i, w->columns - 1 - j));
  const Matrix image = multiplied(x, right);
  for (int64_t j = 0; j < k; j++) {
    double length = 0;
    for (int64_t i = 0; i < m; i++) length += std::norm(image(i, j));
    length = std::sqrt(length);
    store(s, j, real_of(type), length);
    for (int64_t i = 0; i < m; i++) left(i, j) = image(i, j) / length;
  }
  if (vectors) {
    if (economic) left.columns = right.columns = k;
    write(left, u, ldu, type);
    write(right, v, ldv, type);
  }
  *info = 0;
  return 0;
}

}  // namespace

EXPORT int cusolverDnCreate(void** handle) { return *handle = new int(0), 0; }
EXPORT int cusolverDnSetStream(void* handle, void*) { return handle ? 0 : 1; }
EXPORT int cusolverDnCreateParams(void** params) { return *params = new int(0), 0; }
EXPORT int cusolverDnCreateGesvdjInfo(void** params) { return *params = new int(0), 0; }
EXPORT int cusolverGetProperty(int32_t which, int* value) { return *value = which == 0 ? 12 : which, 0; }

EXPORT int cusolverDnXgetrf_bufferSize(void*, void*, int64_t m, int64_t, int32_t, const void*, int64_t lda, int32_t, size_t* device, size_t* host) {
  return sizes(m, lda, device, host);
}
EXPORT int cusolverDnXgetrf(void*, void*, int64_t m, int64_t n, int32_t type, void* data, int64_t lda, int64_t* pivots, int32_t compute, void* device,
                            size_t bytes, void* host, size_t host_bytes, int* info) {
  if (compute != type || !is_work(device, bytes, host, host_bytes)) return kInvalid;
  Matrix a = read(data, m, n, lda, type);
  *info = 0;
  for (int64_t k = 0; k < std::min(m, n); k++) {
    int64_t p = k;
    for (int64_t i = k + 1; pivots && i < m; i++)
      if (size(a(i, k)) > size(a(p, k))) p = i;
    if (pivots) pivots[k] = p + 1;
    for (int64_t j = 0; j < n; j++) std::swap(a(k, j), a(p, j));
    if (a(k, k) == 0.0) {
      if (*info == 0) *info = static_cast<int>(k) + 1;
      continue;
    }
    for (int64_t i = k + 1; i < m; i++) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < n; j++) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  write(a, data, lda, type);
  return 0;
}
EXPORT int cusolverDnXgetrs(void*, void*, int32_t trans, int64_t n, int64_t columns, int32_t type, const void* a, int64_t lda, const int64_t* pivots,
                            int32_t b_type, void* b, int64_t ldb, int* info) {
  if (type != b_type || lda < n || ldb < n || trans < 0 || trans > 2) return kInvalid;
  const Matrix f = read(a, n, n, lda, type);
  Matrix x = read(b, n, columns, ldb, type);
  const auto element = [&](int64_t i, int64_t j) { return trans == 0 ? f(i, j) : trans == 1 ? f(j, i) : std::conj(f(j, i)); };
  const auto exchange = [&](int64_t k) {
    for (int64_t j = 0; j < columns; j++) std::swap(x(k, j), x(pivots[k] - 1, j));
  };
  if (!trans)
    for (int64_t k = 0; k < n; k++) exchange(k);
  for (int64_t j = 0; j < columns; j++) {
    for (int64_t i = 0; i < n; i++) {  // the lower triangle, which is U's where it is transposed
      for (int64_t k = 0; k < i; k++) x(i, j) -= element(i, k) * x(k, j);
      if (trans) x(i, j) /= element(i, i);
    }
    for (int64_t i = n; i-- > 0;) {
      for (int64_t k = i + 1; k < n; k++) x(i, j) -= element(i, k) * x(k, j);
      if (!trans) x(i, j) /= element(i, i);
    }
  }
  if (trans)
    for (int64_t k = n; k-- > 0;) exchange(k);
  write(x, b, ldb, type);
  *info = 0;
  return 0;
}
EXPORT int cusolverDnXpotrf_bufferSize(void*, void*, int32_t, int64_t n, int32_t, const void*, int64_t lda, int32_t, size_t* device, size_t* host) {
  return sizes(n, lda, device, host);
}
EXPORT int cusolverDnXpotrf(void*, void*, int32_t fill, int64_t n, int32_t type, void* data, int64_t lda, int32_t compute, void* device, size_t bytes,
                            void* host, size_t host_bytes, int* info) {
  if (compute != type || fill < 0 || fill > 1 || !is_work(device, bytes, host, host_bytes)) return kInvalid;
  const Matrix given = read(data, n, n, lda, type);
  Matrix l = fill ? adjoint(given) : given, out = given;  // the triangle that is not the factor's stays as it was
  *info = 0;
  for (int64_t k = 0; k < n && *info == 0; k++) {
    double d = l(k, k).real();
    for (int64_t j = 0; j < k; j++) d -= std::norm(l(k, j));
    if (!(d > 0)) {
      *info = static_cast<int>(k) + 1;
      break;
    }
    l(k, k) = std::sqrt(d);
    for (int64_t i = k + 1; i < n; i++) {
      for (int64_t j = 0; j < k; j++) l(i, k) -= l(i, j) * std::conj(l(k, j));
      l(i, k) /= l(k, k);
    }
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = j; i < n; i++) (fill ? out(j, i) : out(i, j)) = fill ? std::conj(l(i, j)) : l(i, j);
  write(out, data, lda, type);
  return 0;
}
EXPORT int cusolverDnXgeqrf_bufferSize(void*, void*, int64_t m, int64_t, int32_t, const void*, int64_t lda, int32_t, const void*, int32_t,
                                       size_t* device, size_t* host) {
  return sizes(m, lda, device, host);
}
EXPORT int cusolverDnXgeqrf(void*, void*, int64_t m, int64_t n, int32_t type, void* data, int64_t lda, int32_t tau_type, void* tau, int32_t compute,
                            void* device, size_t bytes, void* host, size_t host_bytes, int* info) {
  if (tau_type != type || compute != type || !is_work(device, bytes, host, host_bytes)) return kInvalid;
  Matrix a = read(data, m, n, lda, type);
  for (int64_t k = 0; k < std::min(m, n); k++) {
    double rest = 0;
    for (int64_t i = k + 1; i < m; i++) rest += std::norm(a(i, k));
    const C alpha = a(k, k);
    C factor = 0;
    if (rest > 0 || alpha.imag() != 0) {  // H^H x = (beta, 0, ...), as LAPACK's larfg
      const double beta = -std::copysign(std::sqrt(std::norm(alpha) + rest), alpha.real());
      factor = (beta - alpha) / beta;
      for (int64_t i = k + 1; i < m; i++) a(i, k) /= alpha - beta;
      a(k, k) = beta;
    }
    store(tau, k, type, factor);
    for (int64_t j = k + 1; j < n; j++) {
      C dot = a(k, j);
      for (int64_t i = k + 1; i < m; i++) dot += std::conj(a(i, k)) * a(i, j);
      dot *= std::conj(factor);
      a(k, j) -= dot;
      for (int64_t i = k + 1; i < m; i++) a(i, j) -= a(i, k) * dot;
    }
  }
  write(a, data, lda, type);
  *info = 0;
  return 0;
}
EXPORT int cusolverDnXsyevd_bufferSize(void*, void*, int32_t, int32_t, int64_t n, int32_t, const void*, int64_t lda, int32_t, const void*, int32_t,
                                       size_t* device, size_t* host) {
  return sizes(n, lda, device, host);
}
EXPORT int cusolverDnXsyevd(void*, void*, int32_t how, int32_t fill, int64_t n, int32_t type, void* data, int64_t lda, int32_t w_type, void* w,
                            int32_t compute, void* device, size_t bytes, void* host, size_t host_bytes, int* info) {
  if (w_type != real_of(type) || compute != type || !is_work(device, bytes, host, host_bytes)) return kInvalid;
  Matrix a = read(data, n, n, lda, type), vectors(n, n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < j; i++) (fill ? a(j, i) : a(i, j)) = std::conj(fill ? a(i, j) : a(j, i));
  for (int64_t i = 0; i < n; i++) a(i, i) = a(i, i).real();
  std::vector<double> values;
  diagonalize(a, values, vectors);
  for (int64_t i = 0; i < n; i++) store(w, i, w_type, values[static_cast<size_t>(i)]);
  if (how) write(vectors, data, lda, type);
  *info = 0;
  return 0;
}

#define TYPED(LETTER, ORTHOGONAL, TYPE)                                                                                                              \
  EXPORT int cusolverDn##LETTER##ORTHOGONAL##gqr_bufferSize(void*, int, int, int, const void*, int, const void*, int* elements) {                    \
    return *elements = kWork, 0;                                                                                                                     \
  }                                                                                                                                                  \
  EXPORT int cusolverDn##LETTER##ORTHOGONAL##gqr(void*, int m, int n, int k, void* a, int lda, const void* tau, void*, int elements, int* info) {    \
    return *info = 0, orgqr(m, n, k, a, lda, tau, elements, TYPE);                                                                                   \
  }                                                                                                                                                  \
  EXPORT int cusolverDn##LETTER##ORTHOGONAL##mqr_bufferSize(void*, int32_t, int32_t, int, int, int, const void*, int, const void*, const void*, int, \
                                                            int* elements) {                                                                         \
    return *elements = kWork, 0;                                                                                                                     \
  }                                                                                                                                                  \
  EXPORT int cusolverDn##LETTER##ORTHOGONAL##mqr(void*, int32_t side, int32_t trans, int m, int n, int k, const void* a, int lda, const void* tau,   \
                                                 void* c, int ldc, void*, int elements, int* info) {                                                 \
    return *info = 0, ormqr(side, trans, m, n, k, a, lda, tau, c, ldc, elements, TYPE);                                                              \
  }                                                                                                                                                  \
  EXPORT int cusolverDn##LETTER##gesvdj_bufferSize(void*, int32_t, int, int, int, const void*, int, const void*, const void*, int, const void*, int, \
                                                   int* elements, void*) {                                                                           \
    return *elements = kWork, 0;                                                                                                                     \
  }                                                                                                                                                  \
  EXPORT int cusolverDn##LETTER##gesvdj(void*, int32_t vectors, int economic, int m, int n, void* a, int lda, void* s, void* u, int ldu, void* v,    \
                                        int ldv, void*, int elements, int* info, void*) {                                                            \
    return gesvdj(vectors, economic, m, n, a, lda, s, u, ldu, v, ldv, elements, info, TYPE);                                                         \
  }
TYPED(S, or, kR32F)
TYPED(D, or, kR64F)
TYPED(C, un, kC32F)
TYPED(Z, un, kC64F)
