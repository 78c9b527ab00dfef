// Optimizer steps, unscaling of gradients and norms over lists of tensors (argand_aten_cuda/kernels/optimizer.py).
#include <cmath>
#include <map>

#include "packages/aten/cuda/csrc/tensor_table.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/joining.h"
#include "packages/aten/generated/ops/reduction.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kPrepareBlock = 128;

void check_lists(const char* op, const TensorList& params, std::initializer_list<const TensorList*> lists, bool same_dtype) {
  for (const TensorList* list : lists) {
    if (list->size() != params.size())
      fail(ARGAND_RUNTIME_ERROR, "%s: got lists of %zu and %zu tensors, expected the same number", op, params.size(), list->size());
    for (size_t i = 0; i < params.size(); i++) {
      const Tensor &p = params[i], &t = (*list)[i];
      if (!t || !(t.sizes() == p.sizes()) || t.device() != p.device() || (same_dtype && t.dtype() != p.dtype()))
        fail(ARGAND_RUNTIME_ERROR,
             "%s: tensor %zu: got shape %s and dtype %s beside a parameter of shape %s and dtype %s, expected the same, on its device", op, i,
             t ? to_string(t.sizes()).c_str() : "None", t ? kDTypeName[t.dtype()] : "None", to_string(p.sizes()).c_str(), kDTypeName[p.dtype()]);
    }
  }
}

// A tensor as kernels walk it, in row-major order; a copy is written back at the end.
class Images {
 public:
  const Tensor& of(const Tensor& t) {
    if (!t || t.is_contiguous()) return t;
    images_.push_back({t, ops::contiguous(t)});
    return images_.back().second;
  }
  void write_back() {
    for (const auto& [target, image] : images_) ops::copy_(target, image);
  }

 private:
  std::vector<std::pair<Tensor, Tensor>> images_;
};

// A 0-d float32 tensor beside the parameters, or none.
Tensor flag(const Tensor& t, ArgandDevice device) { return t ? ops::_to_copy(t, ARGAND_FLOAT32, device) : t; }
Tensor flag_of(const Tensor& t, ArgandDevice device) { return t && (t.dtype() != ARGAND_FLOAT32 || t.device() != device) ? flag(t, device) : t; }

// f(table) for the tensors of each device and group, `index` -> group.
template <class Group, class Add, class F>
void for_each_group(const TensorList& tensors, Group&& group, Add&& add, F&& f) {
  std::map<std::pair<ArgandDevice, int>, TensorTable> tables;
  for (size_t i = 0; i < tensors.size(); i++) add(tables[{tensors[i].device(), group(i)}], i);
  for (auto& [key, table] : tables) {
    const DeviceGuard guard(key.first);
    f(table, key.first, key.second);
  }
}

struct Adam {
  double lr, beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize, decoupled;
};

template <class T>
void launch_adam(const char* op, const Adam& o, TensorTable& table, ArgandDevice device, int dtype, int state_dtype, const Tensor& grad_scale,
                 const Tensor& found_inf) {
  const Tensor scale = flag_of(grad_scale, device), found = flag_of(found_inf, device);
  const TensorTable::Addresses at = table.upload(device);
  const Tensor corrections = empty({2 * table.tensors()}, ARGAND_FLOAT64, device);
  const void* null = nullptr;
  static Slot prepare[2];
  launch(prepare[found.defined()].get("adam_prepare;FOUND=%d;BLOCK=%d", found.defined(), kPrepareBlock),
         grid(op, cdiv(table.tensors(), kPrepareBlock)), at.table, address(corrections), null, address(found), o.lr, std::log(o.beta1),
         std::log(o.beta2), table.tensors());
  static Slot steps[kFloats][kFloats][32];
  const int variant = o.amsgrad | o.maximize << 1 | scale.defined() << 2 | found.defined() << 3 | table.is_aligned() << 4;
  const Kernel* k = steps[float_index(op, dtype)][float_index(op, state_dtype)][variant].get(
      "adam_step;T=%s;S=%s;AMSGRAD=%d;MAXIMIZE=%d;SCALED=%d;FOUND=%d;ALIGNED=%d;CHUNK=%d;BLOCK=%d", kDTypeName[dtype], kDTypeName[state_dtype],
      o.amsgrad, o.maximize, scale.defined(), found.defined(), table.is_aligned(), static_cast<int>(kTableChunk), static_cast<int>(kTableBlock));
  const T shrink = o.decoupled ? static_cast<T>(1 - o.lr * o.weight_decay) : T(1), decay = o.decoupled ? T(0) : static_cast<T>(o.weight_decay);
  launch(k, grid(op, table.chunks()), at.table, at.chunks, address(corrections), null, null, address(scale), address(found), static_cast<T>(o.beta1),
         static_cast<T>(1 - o.beta1), static_cast<T>(o.beta2), static_cast<T>(1 - o.beta2), shrink, decay, static_cast<T>(o.eps));
}

void adam(const char* op, const Adam& o, const TensorList& params, const TensorList& grads, const TensorList& means, const TensorList& squares,
          const TensorList& largest, const TensorList& steps, const Tensor& grad_scale, const Tensor& found_inf) {
  check_lists(op, params, {&grads}, true);
  check_lists(op, params, {&means, &squares}, false);
  if (o.amsgrad) check_lists(op, params, {&largest}, false);
  if (steps.size() != params.size())
    fail(ARGAND_RUNTIME_ERROR, "%s: got %zu parameters and %zu steps, expected the same number", op, params.size(), steps.size());
  for (size_t i = 0; i < params.size(); i++) {
    if (!steps[i] || steps[i].numel() != 1 || steps[i].dtype() != ARGAND_FLOAT32 || steps[i].device() != params[i].device())
      fail(ARGAND_RUNTIME_ERROR, "%s: steps are float32 tensors of one element on the parameter's device", op);
    if (means[i].dtype() != squares[i].dtype() || (o.amsgrad && largest[i].dtype() != means[i].dtype()))
      fail(ARGAND_RUNTIME_ERROR, "%s: tensor %zu: got states of dtypes %s and %s, expected one dtype", op, i, kDTypeName[means[i].dtype()],
           kDTypeName[squares[i].dtype()]);
  }
  Images images;
  const Tensor none;
  for_each_group(
      params, [&](size_t i) { return params[i].dtype() << 8 | means[i].dtype(); },
      [&](TensorTable& table, size_t i) {
        const Tensor p = images.of(params[i]), g = images.of(grads[i]), m = images.of(means[i]), v = images.of(squares[i]),
                     top = o.amsgrad ? images.of(largest[i]) : none;
        table.add({&p, &g, &m, &v, &top, &steps[i]}, p.numel());
      },
      [&](TensorTable& table, ArgandDevice device, int group) {
        const int dtype = group >> 8, state = group & 0xff;
        if (dtype == ARGAND_FLOAT64)
          launch_adam<double>(op, o, table, device, dtype, state, grad_scale, found_inf);
        else
          launch_adam<float>(op, o, table, device, dtype, state, grad_scale, found_inf);
      });
  images.write_back();
}

struct Sgd {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first;
};

template <class T>
void launch_sgd(const char* op, const Sgd& o, TensorTable& table, ArgandDevice device, int dtype, const Tensor& grad_scale, const Tensor& found_inf) {
  const Tensor scale = flag_of(grad_scale, device), found = flag_of(found_inf, device);
  const TensorTable::Addresses at = table.upload(device);
  static Slot slots[kFloats][128];
  const bool momentum = o.momentum != 0, first = momentum && o.first, nesterov = momentum && o.nesterov;
  const int variant = momentum | nesterov << 1 | first << 2 | o.maximize << 3 | scale.defined() << 4 | found.defined() << 5 | table.is_aligned() << 6;
  const Kernel* k = slots[float_index(op, dtype)][variant].get(
      "sgd_step;T=%s;MOMENTUM=%d;NESTEROV=%d;FIRST=%d;MAXIMIZE=%d;SCALED=%d;FOUND=%d;ALIGNED=%d;CHUNK=%d;BLOCK=%d", kDTypeName[dtype], momentum,
      nesterov, first, o.maximize, scale.defined(), found.defined(), table.is_aligned(), static_cast<int>(kTableChunk),
      static_cast<int>(kTableBlock));
  const void* null = nullptr;
  launch(k, grid(op, table.chunks()), at.table, at.chunks, null, address(scale), address(found), static_cast<T>(o.lr), static_cast<T>(o.weight_decay),
         static_cast<T>(o.momentum), static_cast<T>(1 - o.dampening));
}

// Multiplies all tensors by `factor` (of one element); with `found`, notes there whether an element was infinite or NaN.
void scale_all(const char* op, const TensorList& tensors, const Tensor& factor, const Tensor& found) {
  Images images;
  for_each_group(
      tensors, [&](size_t i) { return tensors[i].dtype(); },
      [&](TensorTable& table, size_t i) {
        const Tensor t = images.of(tensors[i]);
        table.add({&t}, t.numel());
      },
      [&](TensorTable& table, ArgandDevice device, int dtype) {
        const TensorTable::Addresses at = table.upload(device);
        static Slot slots[kFloats][kFloats][2][2];
        const Kernel* k = slots[float_index(op, dtype)][float_index(op, factor.dtype())][found.defined()][table.is_aligned()].get(
            "scale_all;T=%s;F=%s;MARK=%d;ALIGNED=%d;CHUNK=%d;BLOCK=%d", kDTypeName[dtype], kDTypeName[factor.dtype()], found.defined(),
            table.is_aligned(), static_cast<int>(kTableChunk), static_cast<int>(kTableBlock));
        const void* null = nullptr;
        launch(k, grid(op, table.chunks()), at.table, at.chunks, null, address(factor), address(found));
      });
  images.write_back();
}

void check_number(const char* op, const char* name, const Tensor& t, ArgandDevice device) {
  if (t.numel() != 1 || !is_floating(t.dtype()) || t.device() != device)
    fail(ARGAND_RUNTIME_ERROR, "%s: got %s of shape %s and dtype %s, expected one floating-point element on the device of the tensors", op, name,
         to_string(t.sizes()).c_str(), kDTypeName[t.dtype()]);
}

Tensor norm_of_norms(const TensorList& tensors, double ord) {
  TensorList norms;
  for (const Tensor& t : tensors) norms.push_back(ops::norm(t, Scalar(ord)));
  return norms.size() == 1 && ord != 0 ? norms[0] : ops::norm(ops::stack(norms), Scalar(ord));
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
  check_lists("fused_sgd_", self, {&grads}, true);
  if (momentum != 0) check_lists("fused_sgd_", self, {&momentum_buffer_list}, true);
  const Sgd o{lr, momentum, dampening, weight_decay, nesterov, maximize, is_first_step};
  Images images;
  const Tensor none;
  for_each_group(
      self, [&](size_t i) { return self[i].dtype(); },
      [&](TensorTable& table, size_t i) {
        const Tensor p = images.of(self[i]), g = images.of(grads[i]), buffer = momentum != 0 ? images.of(momentum_buffer_list[i]) : none;
        table.add({&p, &g, &buffer}, p.numel());
      },
      [&](TensorTable& table, ArgandDevice device, int dtype) {
        if (dtype == ARGAND_FLOAT64)
          launch_sgd<double>("fused_sgd_", o, table, device, dtype, grad_scale, found_inf);
        else
          launch_sgd<float>("fused_sgd_", o, table, device, dtype, grad_scale, found_inf);
      });
  images.write_back();
}

void _amp_foreach_non_finite_check_and_unscale_(const TensorList& self, const Tensor& found_inf, const Tensor& inv_scale) {
  const char* const op = "_amp_foreach_non_finite_check_and_unscale_";
  check_number(op, "found_inf", found_inf, found_inf.device());
  check_number(op, "inv_scale", inv_scale, found_inf.device());
  if (found_inf.dtype() != ARGAND_FLOAT32)
    fail(ARGAND_DTYPE_ERROR, "%s: got found_inf of dtype %s, expected float32", op, kDTypeName[found_inf.dtype()]);
  for (const Tensor& t : self)
    if (t.device() != found_inf.device()) fail(ARGAND_DEVICE_ERROR, "%s: expected all tensors on the device of found_inf", op);
  scale_all(op, self, inv_scale, found_inf);
}

void _amp_update_scale_(const Tensor& self, const Tensor& growth_tracker, const Tensor& found_inf, double scale_growth_factor,
                        double scale_backoff_factor, int64_t growth_interval) {
  const char* const op = "_amp_update_scale_";
  if (self.dtype() != ARGAND_FLOAT32 || growth_tracker.dtype() != ARGAND_INT32 || found_inf.dtype() != ARGAND_FLOAT32 ||
      growth_tracker.device() != self.device() || found_inf.device() != self.device())
    fail(ARGAND_DTYPE_ERROR, "%s: got %s, %s and %s, expected float32, int32 and float32 on one device", op, kDTypeName[self.dtype()],
         kDTypeName[growth_tracker.dtype()], kDTypeName[found_inf.dtype()]);
  const DeviceGuard guard(self);
  static Slot slot;
  launch(slot.get("scale_update"), Grid{}, address(self), address(growth_tracker), address(found_inf), static_cast<float>(scale_growth_factor),
         static_cast<float>(scale_backoff_factor), size32(op, growth_interval));
}

Tensor _foreach_total_norm(const TensorList& self, double ord) {
  const char* const op = "_foreach_total_norm";
  if (self.empty()) fail(ARGAND_VALUE_ERROR, "%s: got no tensors, expected at least one", op);
  const int kind = ord == 2 ? 2 : ord == 1 ? 1 : std::isinf(ord) && ord > 0 ? 0 : -1;
  const int dtype = self[0].dtype();
  const ArgandDevice device = self[0].device();
  bool alike = true;
  for (const Tensor& t : self) alike = alike && t.dtype() == dtype && t.device() == device;
  if (kind < 0 || !alike) return norm_of_norms(self, ord);
  const DeviceGuard guard(device);
  Images images;
  TensorTable table;
  for (const Tensor& t : self) {
    const Tensor image = images.of(t);
    table.add({&image}, image.numel());
  }
  if (table.chunks() == 0) return ops::zeros({}, dtype, device);
  static Slot chunk_slots[kFloats][3][2], total_slots[kFloats][3];
  const int sums = sum_dtype(dtype), index = float_index(op, dtype);
  const Tensor partial = empty({table.chunks()}, sums, device), result = empty({}, dtype, device);
  const TensorTable::Addresses at = table.upload(device);
  const Kernel* k = chunk_slots[index][kind][table.is_aligned()].get("norm_chunks;T=%s;A=%s;KIND=%d;ALIGNED=%d;CHUNK=%d;BLOCK=%d", kDTypeName[dtype],
                                                                     kDTypeName[sums], kind, table.is_aligned(), static_cast<int>(kTableChunk),
                                                                     static_cast<int>(kTableBlock));
  const void* null = nullptr;
  launch(k, grid(op, table.chunks()), at.table, at.chunks, null, address(partial));
  const Kernel* total = total_slots[index][kind].get("norm_total;T=%s;A=%s;KIND=%d;BLOCK=1024", kDTypeName[dtype], kDTypeName[sums], kind);
  launch(total, Grid{}, address(partial), address(result), size32(op, table.chunks()));
  return result;
}

void _foreach_mul_(const TensorList& self, const Tensor& other) {
  for (const Tensor& t : self) check_number("_foreach_mul_", "other", other, t.device());
  scale_all("_foreach_mul_", self, other, Tensor());
}

}  // namespace argand::kernels::cuda
