#include "packages/autograd/csrc/view_nodes.h"

#include "packages/autograd/csrc/batching.h"
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/tensor_ops.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::autograd {

namespace {

// Geometry in units of real numbers: a complex tensor has a last dimension of size 2, so that views between dtypes are strided views too.
struct RealGeometry {
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  bool complex = false;
  RealGeometry(const ArgandTensor* t, bool in_reals) {
    sizes.assign(t->sizes, t->sizes + t->ndim);
    strides.assign(t->strides, t->strides + t->ndim);
    offset = t->offset;
    complex = in_reals && is_complex(t->dtype);
    if (!complex) return;
    for (int64_t& s : strides) s *= 2;
    offset *= 2;
    sizes.push_back(2);
    strides.push_back(1);
  }
  Tensor to_reals(const Tensor& t) const { return complex ? tensor_ops::view_as_real(t) : t; }
  Tensor from_reals(const Tensor& t) const { return complex ? tensor_ops::view_as_complex(t) : t; }
};

// Elements from a geometry's first to past its last one; 0 when it is empty.
int64_t span_of(IntList sizes, IntList strides) {
  int64_t last = 0;
  for (int64_t i = 0; i < sizes.n; i++) {
    if (sizes[i] == 0) return 0;
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

// A base and its view, with the same unit for both.
struct ViewGeometry {
  RealGeometry base, view;
  bool simple;  // neither overlaps itself, and the view lies within the base
  ViewGeometry(const ArgandTensor* b, const ArgandTensor* v) : base(b, b->dtype != v->dtype), view(v, b->dtype != v->dtype) {
    const int64_t start = view.offset - base.offset;
    simple = internal_overlap(base.sizes, base.strides) == Overlap::no && internal_overlap(view.sizes, view.strides) == Overlap::no && start >= 0 &&
             start + span_of(view.sizes, view.strides) <= span_of(base.sizes, base.strides);
  }

  // The gradient of the base: zeros with the view's gradient at its place.
  Tensor to_base(const Tensor& grad) const {
    const Tensor reals = view.to_reals(grad);
    if (!simple || api->thread_state()->grad_mode || is_batched(reals.get()))
      return base.from_reals(tensor_ops::as_strided_backward(reals, base.sizes, base.strides, base.offset, view.sizes, view.strides, view.offset));
    const Tensor out = empty_strided(base.sizes, base.strides, reals.dtype(), reals.device());
    tensor_ops::fill_(out, 0);
    tensor_ops::copy_(tensor_ops::as_strided(out, view.sizes, view.strides, view.offset - base.offset), reals);
    return base.from_reals(out);
  }
};

class AsStridedBackward final : public VectorNode {
 public:
  AsStridedBackward(ViewGeometry geometry, OwnedFacts view, Edge base_edge) : geometry_(std::move(geometry)) {
    std::vector<Edge> edges;
    edges.push_back(std::move(base_edge));
    set_edges(std::move(edges));
    std::vector<OwnedFacts> inputs;
    inputs.push_back(std::move(view));
    set_inputs(std::move(inputs));
  }
  const char* name() const override { return "AsStridedBackward0"; }
  void apply(Gradients& g) override {
    if (g.in[0] && g.wants(edges_, 0)) g.out[0] = geometry_.to_base(g.in[0]);
  }

 private:
  ViewGeometry geometry_;
};

class CopySlices final : public VectorNode {
 public:
  CopySlices(ArgandTensor* base, ArgandTensor* t, NodeRef fn, uint32_t output_nr) : geometry_(base, t), fn_(std::move(fn)), output_nr_(output_nr) {
    // Edge 0 is the base's old history. The node's own edges follow, without those to the view's old history (part of the base's).
    std::vector<Edge> edges;
    edges.push_back(gradient_edge(base));
    for (uint32_t i = 1; i < fn_->num_edges(); i++) edges.push_back(fn_->edges()[i]);
    set_edges(std::move(edges));
    std::vector<OwnedFacts> inputs;
    inputs.emplace_back(Tensor::borrow(base));
    set_inputs(std::move(inputs));
    view_.emplace(Tensor::borrow(t));
    fn_->set_owner(this);
  }
  ~CopySlices() override { fn_->set_owner(nullptr); }
  const char* name() const override { return "CopySlices"; }
  Edge owned_result_edge() override {
    return {NodeRef::steal(new AsStridedBackward(geometry_, OwnedFacts(view_->facts()), {NodeRef::borrow(this), 0})), 0};
  }
  void release_variables() override { fn_->release_variables(); }

  void apply(Gradients& g) override {
    if (!g.in[0]) return;
    // The base's gradient without the slice, which is handed to the in-place function.
    const TensorFacts& facts = inputs_[0];
    Tensor rest = copy_like_base(g.in[0], facts);
    Tensor slice = strided_slice(rest);
    std::vector<Tensor> in(fn_->num_inputs()), out(fn_->num_edges());
    in[output_nr_] = tensor_ops::clone(slice);
    std::vector<uint8_t> wanted(fn_->num_edges(), 1);
    for (uint32_t i = 1; i < n_edges_; i++) wanted[i] = g.wants(edges_, i);
    Gradients inner{in.data(), out.data(), wanted.data()};
    fn_->apply(inner);
    for (uint32_t i = 1; i < n_edges_; i++) g.out[i] = std::move(out[i]);
    if (!g.wants(edges_, 0)) return;
    if (out[0]) {
      tensor_ops::copy_(slice, out[0]);
    } else {
      tensor_ops::copy_(slice, tensor_ops::zeros(slice.sizes(), slice.dtype(), slice.device()));
    }
    g.out[0] = geometry_.base.from_reals(rest);
  }

 private:
  // A fresh copy of `grad` with the base's own layout at offset 0 (in reals where base and view differ in dtype).
  Tensor copy_like_base(const Tensor& grad, const TensorFacts& facts) const {
    Tensor reals = geometry_.base.to_reals(grad);
    const IntList sizes = geometry_.base.sizes, strides = geometry_.base.strides;
    Tensor copy =
        is_batched(reals.get()) ? tensor_ops::new_empty_strided(reals, sizes, strides) : empty_strided(sizes, strides, reals.dtype(), facts.device);
    tensor_ops::copy_(copy, reals);
    return copy;
  }
  Tensor strided_slice(const Tensor& rest) const {
    Tensor slice = tensor_ops::as_strided(rest, geometry_.view.sizes, geometry_.view.strides, geometry_.view.offset - geometry_.base.offset);
    return geometry_.view.from_reals(slice);
  }

  ViewGeometry geometry_;
  std::optional<OwnedFacts> view_;
  NodeRef fn_;
  uint32_t output_nr_;
};

}  // namespace

NodeRef make_view_node(ArgandTensor* t, Edge base_edge) {
  return NodeRef::steal(new AsStridedBackward(ViewGeometry(t->base, t), OwnedFacts(Tensor::borrow(t)), std::move(base_edge)));
}

NodeRef make_copy_slices(ArgandTensor* base, ArgandTensor* t, const NodeRef& fn, uint32_t output_nr) {
  return NodeRef::steal(new CopySlices(base, t, fn, output_nr));
}

}  // namespace argand::autograd
