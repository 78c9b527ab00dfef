// Fused optimizer steps over lists of tensors: one parallel pass over all elements of all tensors.
#include <cmath>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/fused_optim.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/csrc/kernels/sweep.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/joining.h"
#include "packages/aten/generated/ops/reduction.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kChunk = 16384;             // elements of one task
constexpr int64_t kPieceBytes = kChunk * 16;  // that it reads, about

// Pieces of at most kChunk elements of all tensors, so that threads share small and large tensors evenly.
struct Piece {
  size_t tensor;
  int64_t begin, end;
};
std::vector<Piece> cut(const TensorList& tensors) {
  std::vector<Piece> pieces;
  for (size_t t = 0; t < tensors.size(); t++)
    for (int64_t b = 0; b < tensors[t].numel(); b += kChunk) pieces.push_back({t, b, std::min(tensors[t].numel(), b + kChunk)});
  return pieces;
}

void check_lists(const char* op, const TensorList& params, std::initializer_list<const TensorList*> lists) {
  for (const Tensor& p : params) dispatch_floating(op, p.dtype(), [](auto) {});
  for (const TensorList* list : lists) {
    if (list->size() != params.size())
      fail(ARGAND_RUNTIME_ERROR, "%s: got lists of %zu and %zu tensors, expected the same number", op, params.size(), list->size());
    for (size_t i = 0; i < params.size(); i++) {
      const Tensor &p = params[i], &t = (*list)[i];
      if (!t || !(t.sizes() == p.sizes()) || t.dtype() != p.dtype())
        fail(ARGAND_RUNTIME_ERROR, "%s: tensor %zu: got shape %s and dtype %s beside a parameter of shape %s and dtype %s, expected the same", op, i,
             t ? to_string(t.sizes()).c_str() : "None", t ? kDTypeName[t.dtype()] : "None", to_string(p.sizes()).c_str(), kDTypeName[p.dtype()]);
    }
  }
}

// Dense images of tensors; `write_back` takes those that were not dense back to them.
TensorList dense(const TensorList& list) {
  TensorList out;
  for (const Tensor& t : list) out.push_back(contiguous(t));
  return out;
}
void write_back(const TensorList& targets, const TensorList& images) {
  for (size_t i = 0; i < targets.size(); i++)
    if (targets[i].get() != images[i].get()) store_into(targets[i], images[i]);
}

double read_step(const Tensor& t) { return t.dtype() == ARGAND_FLOAT64 ? *t.data<double>() : static_cast<double>(*t.data<float>()); }
void write_step(const Tensor& t, double v) {
  if (t.dtype() == ARGAND_FLOAT64)
    *t.data<double>() = v;
  else
    *t.data<float>() = static_cast<float>(v);
}

double number(const Tensor& t) { return *ops::_to_copy(t, ARGAND_FLOAT64).data<double>(); }

// Whether a gradient scaler lets the step be taken; gradients are then unscaled.
bool unscaled(const TensorList& grads, const Tensor& grad_scale, const Tensor& found_inf) {
  if (found_inf && number(found_inf) != 0) return false;
  if (grad_scale)
    for (const Tensor& g : grads) ops::div_(g, grad_scale);
  return true;
}

template <class T>
void run_adam(const AdamOptions& o, const AdamCorrection& c, const TensorList& p, const TensorList& g, const TensorList& m, const TensorList& v,
              const TensorList& vmax, const Piece& piece) {
  const size_t t = piece.tensor;
  const int64_t b = piece.begin, n = piece.end - piece.begin;
  T* top = o.amsgrad ? vmax[t].data<T>() + b : nullptr;
  if constexpr (std::is_same_v<T, float>) {
    pick_fused_optim().adam_f32(n, p[t].data<T>() + b, g[t].data<T>() + b, m[t].data<T>() + b, v[t].data<T>() + b, top, o, c);
  } else if constexpr (std::is_same_v<T, double>) {
    pick_fused_optim().adam_f64(n, p[t].data<T>() + b, g[t].data<T>() + b, m[t].data<T>() + b, v[t].data<T>() + b, top, o, c);
  } else {  // 16-bit states: computed in float32 through buffers
    float buffer[5][512];
    for (int64_t i = 0; i < n; i += 512) {
      const int64_t k = std::min<int64_t>(512, n - i);
      T* places[5] = {p[t].data<T>() + b + i, g[t].data<T>() + b + i, m[t].data<T>() + b + i, v[t].data<T>() + b + i, top ? top + i : nullptr};
      for (int a = 0; a < 5; a++)
        for (int64_t j = 0; places[a] && j < k; j++) buffer[a][j] = widen(places[a][j]);
      pick_fused_optim().adam_f32(k, buffer[0], buffer[1], buffer[2], buffer[3], top ? buffer[4] : nullptr, o, c);
      for (int a : {0, 2, 3, 4})
        for (int64_t j = 0; places[a] && j < k; j++) places[a][j] = narrow<T>(buffer[a][j]);
    }
  }
}

template <class T>
void run_sgd(const SgdOptions& o, const Tensor& param, const Tensor& grad, const Tensor& momentum, const Piece& piece) {
  const int64_t b = piece.begin, n = piece.end - piece.begin;
  T *p = param.data<T>() + b, *m = momentum ? momentum.data<T>() + b : nullptr;
  const T* g = grad.data<T>() + b;
  if constexpr (std::is_same_v<T, float>) {
    pick_fused_optim().sgd_f32(n, p, g, m, o);
  } else if constexpr (std::is_same_v<T, double>) {
    pick_fused_optim().sgd_f64(n, p, g, m, o);
  } else {
    float buffer[3][512];
    for (int64_t i = 0; i < n; i += 512) {
      const int64_t k = std::min<int64_t>(512, n - i);
      for (int64_t j = 0; j < k; j++) {
        buffer[0][j] = widen(p[i + j]);
        buffer[1][j] = widen(g[i + j]);
        if (m) buffer[2][j] = widen(m[i + j]);
      }
      pick_fused_optim().sgd_f32(k, buffer[0], buffer[1], m ? buffer[2] : nullptr, o);
      for (int64_t j = 0; j < k; j++) {
        p[i + j] = narrow<T>(buffer[0][j]);
        if (m) m[i + j] = narrow<T>(buffer[2][j]);
      }
    }
  }
}

void adam(const char* name, const AdamOptions& o, const TensorList& params, const TensorList& grads, const TensorList& exp_avgs,
          const TensorList& exp_avg_sqs, const TensorList& max_exp_avg_sqs, const TensorList& steps, const Tensor& grad_scale,
          const Tensor& found_inf) {
  check_lists(name, params, {&grads, &exp_avgs, &exp_avg_sqs});
  if (o.amsgrad) check_lists(name, params, {&max_exp_avg_sqs});
  if (steps.size() != params.size())
    fail(ARGAND_RUNTIME_ERROR, "%s: got %zu parameters and %zu steps, expected the same number", name, params.size(), steps.size());
  for (const Tensor& s : steps)  // nothing is changed before all is checked
    if (!s || s.numel() != 1 || (s.dtype() != ARGAND_FLOAT32 && s.dtype() != ARGAND_FLOAT64))
      fail(ARGAND_RUNTIME_ERROR, "%s: steps are float32 or float64 tensors of one element", name);
  if (!unscaled(grads, grad_scale, found_inf)) return;
  std::vector<AdamCorrection> corrections;
  for (const Tensor& s : steps) {
    const double step = read_step(s) + 1;
    corrections.push_back({1 - std::pow(o.beta1, step), std::sqrt(1 - std::pow(o.beta2, step))});
    write_step(s, step);
  }
  const TensorList p = dense(params), g = dense(grads), m = dense(exp_avgs), v = dense(exp_avg_sqs),
                   top = o.amsgrad ? dense(max_exp_avg_sqs) : TensorList();
  const std::vector<Piece> pieces = cut(p);
  parallel_sweep(static_cast<int64_t>(pieces.size()), 1, kPieceBytes, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const Piece& piece = pieces[i];
      dispatch_floating(name, p[piece.tensor].dtype(),
                        [&](auto tag) { run_adam<typename decltype(tag)::type>(o, corrections[piece.tensor], p, g, m, v, top, piece); });
    }
  });
  write_back(params, p);
  write_back(exp_avgs, m);
  write_back(exp_avg_sqs, v);
  if (o.amsgrad) write_back(max_exp_avg_sqs, top);
}

}  // namespace

void fused_adamw_(const TensorList& self, const TensorList& grads, const TensorList& exp_avgs, const TensorList& exp_avg_sqs,
                  const TensorList& max_exp_avg_sqs, const TensorList& state_steps, double lr, double beta1, double beta2, double weight_decay,
                  double eps, bool amsgrad, bool maximize, const Tensor& grad_scale, const Tensor& found_inf) {
  adam("fused_adamw_", {lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, true}, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs,
       state_steps, grad_scale, found_inf);
}

void fused_adam_(const TensorList& self, const TensorList& grads, const TensorList& exp_avgs, const TensorList& exp_avg_sqs,
                 const TensorList& max_exp_avg_sqs, const TensorList& state_steps, double lr, double beta1, double beta2, double weight_decay,
                 double eps, bool amsgrad, bool maximize, const Tensor& grad_scale, const Tensor& found_inf) {
  adam("fused_adam_", {lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, false}, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs,
       state_steps, grad_scale, found_inf);
}

void fused_sgd_(const TensorList& self, const TensorList& grads, const TensorList& momentum_buffer_list, double lr, double momentum, double dampening,
                bool nesterov, double weight_decay, bool maximize, bool is_first_step, const Tensor& grad_scale, const Tensor& found_inf) {
  check_lists("fused_sgd_", self, {&grads});
  if (momentum != 0) check_lists("fused_sgd_", self, {&momentum_buffer_list});
  if (!unscaled(grads, grad_scale, found_inf)) return;
  const TensorList p = dense(self), g = dense(grads), buffers = momentum != 0 ? dense(momentum_buffer_list) : TensorList();
  const SgdOptions o{lr, momentum, dampening, weight_decay, nesterov, maximize, is_first_step};
  const std::vector<Piece> pieces = cut(p);
  parallel_sweep(static_cast<int64_t>(pieces.size()), 1, kPieceBytes, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const Piece& piece = pieces[i];
      dispatch_floating("fused_sgd_", p[piece.tensor].dtype(), [&](auto tag) {
        run_sgd<typename decltype(tag)::type>(o, p[piece.tensor], g[piece.tensor], momentum != 0 ? buffers[piece.tensor] : Tensor(), piece);
      });
    }
  });
  write_back(self, p);
  if (momentum != 0) write_back(momentum_buffer_list, buffers);
}

void _amp_foreach_non_finite_check_and_unscale_(const TensorList& self, const Tensor& found_inf, const Tensor& inv_scale) {
  bool finite = true;
  for (const Tensor& t : self) {
    finite = finite && number(ops::all(ops::isfinite(t))) != 0;
    ops::mul_(t, inv_scale);
  }
  if (!finite) ops::fill_(found_inf, 1);
}

static void check_number(const char* name, const Tensor& t, int dtype) {
  if (t.numel() != 1 || t.dtype() != dtype)
    fail(t.numel() != 1 ? ARGAND_SHAPE_ERROR : ARGAND_DTYPE_ERROR, "_amp_update_scale_: got %s of shape %s and dtype %s, expected one %s number",
         name, to_string(t.sizes()).c_str(), kDTypeName[t.dtype()], kDTypeName[dtype]);
}

void _amp_update_scale_(const Tensor& self, const Tensor& growth_tracker, const Tensor& found_inf, double scale_growth_factor,
                        double scale_backoff_factor, int64_t growth_interval) {
  check_number("self", self, ARGAND_FLOAT32);
  check_number("growth_tracker", growth_tracker, ARGAND_INT32);
  check_number("found_inf", found_inf, ARGAND_FLOAT32);
  float& scale = *self.data<float>();
  int32_t& successes = *growth_tracker.data<int32_t>();
  if (*found_inf.data<float>() != 0) {
    scale *= static_cast<float>(scale_backoff_factor);
    successes = 0;
  } else if (++successes >= growth_interval) {
    const float grown = scale * static_cast<float>(scale_growth_factor);
    if (std::isfinite(grown)) scale = grown;  // the largest scale there is stays
    successes = 0;
  }
}

Tensor _foreach_total_norm(const TensorList& self, double ord) {
  if (self.empty()) fail(ARGAND_VALUE_ERROR, "_foreach_total_norm: got no tensors, expected at least one");
  TensorList norms;
  for (const Tensor& t : self) norms.push_back(ops::norm(t, Scalar(ord)));
  return norms.size() == 1 && ord != 0 ? norms[0] : ops::norm(ops::stack(norms), Scalar(ord));
}

void _foreach_mul_(const TensorList& self, const Tensor& other) {
  for (const Tensor& t : self) ops::mul_(t, other.dtype() == t.dtype() ? other : ops::_to_copy(other, t.dtype()));
}

}  // namespace argand::kernels::cpu
