#include "packages/autograd/csrc/op_node.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <sstream>
#include <unordered_map>

#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/tensor_ops.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::autograd {

namespace {

constexpr int kMaxViewArgs = 8;

constexpr size_t aligned(size_t n) { return (n + 15) & ~size_t{15}; }

uint64_t masks_for(const uint64_t* per_argument, uint64_t otherwise, uint64_t needed) {
  if (!per_argument) return otherwise;
  uint64_t mask = 0;
  for (; needed; needed &= needed - 1) mask |= per_argument[__builtin_ctzll(needed)];
  return mask;
}

uint32_t tensor_count(const ArgandValue& v) { return v.tag == ARGAND_TAG_TENSOR ? 1 : v.tag == ARGAND_TAG_TENSOR_LIST ? v.len : 0; }
ArgandTensor* tensor_at(const ArgandValue& v, uint32_t i) { return v.tag == ARGAND_TAG_TENSOR ? v.t : v.tensors[i]; }

// Words of eight bytes that a value needs besides its slot.
size_t words_of(const ArgandValue& v, size_t per_dim) {
  switch (v.tag) {
    case ARGAND_TAG_TENSOR:
    case ARGAND_TAG_TENSOR_LIST: {
      size_t n = 0;
      for (uint32_t i = 0; i < tensor_count(v); i++) {
        if (const ArgandTensor* t = tensor_at(v, i)) n += per_dim * static_cast<size_t>(t->ndim);
      }
      return n;
    }
    case ARGAND_TAG_INT_LIST:
    case ARGAND_TAG_FLOAT_LIST:
    case ARGAND_TAG_BOOL_LIST:
      return v.len;
    case ARGAND_TAG_STRING:
      return v.len / 8 + 1;
    default:
      return 0;
  }
}

}  // namespace

// The next free places of the block while it is filled.
struct OpNode::Layout {
  Edge* edges;
  TensorFacts* facts;
  SavedTensor* saved;
  int64_t* words;
  uint32_t n_edges = 0;
};

// The context of one backward call.
class OpBackward final : public BackwardContext {
 public:
  OpBackward(const OpNode& node, Gradients& gradients) : node_(node), g_(gradients) {}

  const ArgandValue& value(int arg) const override { return node_.slots_[arg].value; }
  Tensor tensor(int arg) const override {
    const auto& slot = node_.slots_[arg];
    return slot.saved ? node_.unpack(slot.saved[0]) : Tensor();
  }
  TensorList tensors(int arg) const override {
    const auto& slot = node_.slots_[arg];
    TensorList out(slot.count);
    for (uint32_t i = 0; slot.saved && i < slot.count; i++) out[i] = node_.unpack(slot.saved[i]);
    return out;
  }
  Tensor result(int index) const override {
    return node_.saves_result(static_cast<uint32_t>(index)) ? node_.unpack(node_.saved_results_[node_.result_slot(static_cast<uint32_t>(index))])
                                                            : Tensor();
  }
  Tensor grad(int index) const override { return g_.in[index]; }
  bool needs(int arg) const override {
    const auto& slot = node_.slots_[arg];
    for (uint32_t i = 0; i < slot.count; i++) {
      if (needs(arg, static_cast<int>(i))) return true;
    }
    return false;
  }
  bool needs(int arg, int index) const override {
    const auto& slot = node_.slots_[arg];
    return slot.first_edge >= 0 && g_.wants(node_.edges_, static_cast<uint32_t>(slot.first_edge + index));
  }
  bool is_tensor(int arg) const override { return node_.slots_[arg].value.tag == ARGAND_TAG_TENSOR && node_.slots_[arg].facts->defined(); }
  IntList sizes(int arg) const override { return node_.slots_[arg].facts->size_list(); }
  IntList list_sizes(int arg, int index) const override { return node_.slots_[arg].facts[index].size_list(); }
  IntList strides(int arg) const override {
    const TensorFacts& f = *node_.slots_[arg].facts;
    if (!f.strides && f.ndim)
      fail(ARGAND_INTERNAL_ERROR, "%s: strides of arguments are kept for view operators and records that ask for them", node_.name());
    return {f.strides, f.ndim};
  }
  int64_t offset(int arg) const override { return node_.slots_[arg].facts->offset; }
  int list_len(int arg) const override { return static_cast<int>(node_.slots_[arg].count); }
  int dtype(int arg) const override { return node_.slots_[arg].facts->dtype; }
  ArgandDevice device(int arg) const override { return node_.slots_[arg].facts->device; }
  IntList result_sizes(int index) const override { return node_.inputs_[index].size_list(); }
  int result_dtype(int index) const override { return node_.inputs_[index].dtype; }
  void set(int arg, Tensor grad) override { set(arg, 0, std::move(grad)); }
  void set(int arg, int index, Tensor grad) override {
    if (needs(arg, index)) g_.out[node_.slots_[arg].first_edge + index] = std::move(grad);
  }

 private:
  const OpNode& node_;
  Gradients& g_;
};

uint64_t OpNode::saved_arguments(const Derivative* record, const ArgandOperator*, uint64_t needed) {
  return record && record->backward ? masks_for(record->save_args_for, record->save_args, needed) : 0;
}

Ref<OpNode> OpNode::make(const ArgandOperator* op, const Derivative* record, const ArgandValue* args, uint64_t needed, const Tensor& before,
                         const ArgandValue* rets) {
  const bool in_place = rets == nullptr;
  const bool strides = op->flags & ARGAND_OP_VIEW || record->strides;
  const size_t per_dim = strides ? 2 : 1;
  const uint64_t differentiable = record->backward ? record->differentiable_args | (in_place ? 1 : 0) : needed;
  const uint64_t save = saved_arguments(record, op, needed);
  const uint64_t save_results = record->backward ? masks_for(record->save_results_for, record->save_results, needed) : 0;

  uint32_t n_edges = 0, n_facts = 0, n_saved = static_cast<uint32_t>(__builtin_popcountll(save_results)), n_results = 0;
  size_t words = 0;
  for (int i = 0; i < op->n_args; i++) {
    const uint32_t count = tensor_count(args[i]);
    n_facts += count;
    if (differentiable >> i & 1) n_edges += count;
    if (save >> i & 1) n_saved += count;
    words += words_of(args[i], per_dim);
  }
  if (in_place) {
    n_results = 1;
    words += words_of(args[0], 1);
  } else {
    for (int i = 0; i < op->n_rets; i++) {
      n_results += rets[i].tag == ARGAND_TAG_TENSOR_LIST ? rets[i].len : 1;
      words += words_of(rets[i], 1);
    }
  }

  const size_t slots_at = aligned(sizeof(OpNode)), edges_at = aligned(slots_at + op->n_args * sizeof(ArgSlot)),
               facts_at = aligned(edges_at + n_edges * sizeof(Edge)), saved_at = aligned(facts_at + (n_facts + n_results) * sizeof(TensorFacts)),
               words_at = aligned(saved_at + n_saved * sizeof(SavedTensor)), total = words_at + words * sizeof(int64_t);
  auto* block = static_cast<char*>(allocate(total));
  auto node = Ref<OpNode>::steal(::new (block) OpNode);
  node->op_ = op;
  node->record_ = record;
  node->scatters_ = record->scatters;
  node->slots_ = reinterpret_cast<ArgSlot*>(block + slots_at);
  node->edges_ = reinterpret_cast<Edge*>(block + edges_at);
  node->saved_ = reinterpret_cast<SavedTensor*>(block + saved_at);
  for (uint32_t i = 0; i < n_edges; i++) ::new (node->edges_ + i) Edge;
  for (uint32_t i = 0; i < n_saved; i++) ::new (node->saved_ + i) SavedTensor;
  node->n_edges_ = n_edges;
  node->n_saved_ = n_saved;
  node->save_results_ = save_results;

  Layout next{node->edges_, reinterpret_cast<TensorFacts*>(block + facts_at), node->saved_, reinterpret_cast<int64_t*>(block + words_at)};
  for (int i = 0; i < op->n_args; i++) {
    const Tensor* replacement = before && args[i].tag == ARGAND_TAG_TENSOR && args[i].t == args[0].t ? &before : nullptr;
    node->fill_argument(node->slots_[i], args[i], differentiable >> i & 1, needed >> i & 1, save >> i & 1, replacement, next);
  }
  node->saved_results_ = next.saved;
  node->inputs_ = next.facts;
  node->n_inputs_ = n_results;
  if (in_place) {
    ::new (next.facts++) TensorFacts(node->keep_facts(args[0].t, next, false));
  } else {
    for (int i = 0; i < op->n_rets; i++) {
      if (rets[i].tag == ARGAND_TAG_TENSOR_LIST) {
        for (uint32_t k = 0; k < rets[i].len; k++) ::new (next.facts++) TensorFacts(node->keep_facts(rets[i].tensors[k], next, false));
      } else {
        ::new (next.facts++) TensorFacts(node->keep_facts(rets[i].tag == ARGAND_TAG_TENSOR ? rets[i].t : nullptr, next, false));
      }
    }
  }
  return node;
}

TensorFacts OpNode::keep_facts(const ArgandTensor* t, Layout& next, bool strides) const {
  TensorFacts facts;
  if (!t) return facts;
  facts.ndim = t->ndim;
  facts.dtype = t->dtype;
  facts.device = t->storage->device;
  facts.offset = t->offset;
  facts.sizes = next.words;
  for (int32_t d = 0; d < t->ndim; d++) *next.words++ = t->sizes[d];
  if (strides) {
    facts.strides = next.words;
    for (int32_t d = 0; d < t->ndim; d++) *next.words++ = t->strides[d];
  }
  return facts;
}

void OpNode::fill_argument(ArgSlot& slot, const ArgandValue& v, bool differentiable, bool needed, bool save, const Tensor* replacement,
                           Layout& next) {
  static TensorFacts no_tensor;
  slot.value = v;
  slot.saved = nullptr;
  slot.count = tensor_count(v);
  slot.facts = slot.count ? next.facts : &no_tensor;
  slot.first_edge = -1;
  switch (v.tag) {
    case ARGAND_TAG_INT_LIST:
    case ARGAND_TAG_FLOAT_LIST:
    case ARGAND_TAG_BOOL_LIST:
      if (v.len) std::memcpy(next.words, v.ints, v.len * sizeof(int64_t));
      slot.value.ints = next.words;
      next.words += v.len;
      return;
    case ARGAND_TAG_STRING:
      if (v.len) std::memcpy(next.words, v.s, v.len);
      reinterpret_cast<char*>(next.words)[v.len] = 0;
      slot.value.s = reinterpret_cast<const char*>(next.words);
      next.words += v.len / 8 + 1;
      return;
    case ARGAND_TAG_TENSOR:
    case ARGAND_TAG_TENSOR_LIST:
      break;
    default:
      return;
  }
  slot.value.p = nullptr;
  if (differentiable) slot.first_edge = static_cast<int32_t>(next.n_edges);
  if (save) slot.saved = next.saved;
  for (uint32_t i = 0; i < slot.count; i++) {
    ArgandTensor* t = tensor_at(v, i);
    ::new (next.facts++) TensorFacts(keep_facts(t, next, op_->flags & ARGAND_OP_VIEW || record_->strides));
    if (differentiable) {
      if (t && needed) *next.edges = gradient_edge(t);
      next.edges++;
      next.n_edges++;
    }
    if (save) {
      next.saved->save_argument(replacement ? *replacement : Tensor::borrow(t));
      next.saved++;
    }
  }
}

OpNode::~OpNode() {
  for (uint32_t i = 0; i < n_saved_; i++) saved_[i].~SavedTensor();
  for (uint32_t i = 0; i < n_edges_; i++) edges_[i].~Edge();
}

void OpNode::save_result(const Tensor& t, uint32_t i) { saved_results_[result_slot(i)].save_result(t, i, record_->differentiable_results >> i & 1); }

Tensor OpNode::unpack(const SavedTensor& saved) const { return saved.unpack(const_cast<OpNode*>(this), owner_); }

namespace {

// The history of a gradient that chooses or averages elements: what it has, and derivatives of zero for the arguments of the operator.
class TiedGradient final : public VectorNode {
 public:
  TiedGradient(std::string name, const Tensor& grad, const Edge* arguments, uint32_t n) : name_(std::move(name)) {
    std::vector<Edge> edges{gradient_edge(grad.get())};
    edges.insert(edges.end(), arguments, arguments + n);
    set_edges(std::move(edges));
    std::vector<OwnedFacts> inputs;
    inputs.emplace_back(grad);
    set_inputs(std::move(inputs));
  }
  const char* name() const override { return name_.c_str(); }
  void apply(Gradients& g) override {
    if (!g.in[0]) return;
    for (uint32_t i = 1; i < n_edges_; i++) {
      if (!g.wants(edges_, i)) continue;
      const TensorFacts& facts = edges_[i].fn->input_facts(edges_[i].input_nr);
      if (facts.defined()) g.out[i] = tensor_ops::zeros(facts.size_list(), facts.dtype, facts.device);
    }
    if (g.wants(edges_, 0)) g.out[0] = std::move(g.in[0]);
  }

 private:
  std::string name_;
};

}  // namespace

void OpNode::tie(Tensor* gradients) const {
  std::string name(backward_name(op_));
  name.replace(name.size() - 1, 1, "Backward0");
  for (uint64_t left = record_->tied; left; left &= left - 1) {
    const ArgSlot& slot = slots_[__builtin_ctzll(left)];
    for (uint32_t i = 0; slot.first_edge >= 0 && i < slot.count; i++) {
      Tensor& grad = gradients[slot.first_edge + static_cast<int32_t>(i)];
      if (!grad) continue;
      const NodeRef node = NodeRef::steal(new TiedGradient(name, grad, edges_, n_edges_));
      grad = detach(grad.get());
      set_history(grad.get(), node, 0);
    }
  }
}

void OpNode::apply(Gradients& g) {
  bool any = false;
  for (uint32_t i = 0; i < n_inputs_; i++) any |= g.in[i].defined();
  if (!any) return;
  if (!record_->backward) {  // an in-place form: the result depends on nothing in steps that could be told
    for (int i = 0; i < op_->n_args; i++) {
      const ArgSlot& slot = slots_[i];
      if (slot.first_edge < 0 || slot.count != 1 || !g.wants(edges_, static_cast<uint32_t>(slot.first_edge))) continue;
      g.out[slot.first_edge] = tensor_ops::zeros(slot.facts->size_list(), slot.facts->dtype, slot.facts->device);
    }
    return;
  }
  OpBackward context(*this, g);
  record_->backward(context);
  if (record_->tied && api->thread_state()->grad_mode) tie(g.out);
}

// The view of a gradient lies in it as the view of the argument did.
bool OpNode::add_into(const Tensor& sum, const Tensor& grad) {
  if (sum.sizes() != slots_[0].facts->size_list()) return false;
  ArgandValue args[kMaxViewArgs], ret{};
  if (op_->n_args > kMaxViewArgs) return false;
  args[0] = argand::value(sum);
  for (int i = 1; i < op_->n_args; i++) args[i] = slots_[i].value;
  check(api->call(op_, args, &ret));
  const Tensor place = take_tensor(ret);
  if (internal_overlap(place.sizes(), place.strides()) != Overlap::no) return false;
  tensor_ops::add_(place, grad);
  return true;
}

void OpNode::release_variables() {
  for (uint32_t i = 0; i < n_saved_; i++) saved_[i].release();
}

namespace {

// Nodes that are called otherwise than their operators, as PyTorch numbers overloads. Where an argument is named, only calls with that argument,
// which is a tensor if `tensor`; the first row that fits counts.
struct OtherName {
  const char *op, *node;
  int argument = -1;
  bool tensor = false;
};
constexpr OtherName kOtherNames[] = {
    {"_floor_of_quotient", "DivBackward2"},
    {"clamp_between", "ClampBackward0", 1, true},
    {"clamp_between", "ClampBackward1"},
    {"clamp_max", "ClampMaxBackward1", 1, true},
    {"clamp_min", "ClampMinBackward1", 1, true},
    {"copy_", "torch::autograd::CopyBackwards"},
    {"div_trunc", "DivBackward2"},
    {"linear", "AddmmBackward0", 2},
    {"linear", "MmBackward0"},
    {"max", "MaxBackward1"},
    {"mean", "MeanBackward1", 1},
    {"min", "MinBackward1"},
    {"nll_loss_forward", "NllLossBackward0"},
    {"norm2", "LinalgVectorNormBackward0"},
    {"pow", "PowBackward1", 1, true},
    {"prod.dim", "ProdBackward1"},
    {"scatter.value", "ScatterBackward1"},
    {"square", "PowBackward0"},
    {"squeeze.dims", "SqueezeBackward1"},
    {"squeeze.varargs", "SqueezeBackward2"},
    {"sum", "SumBackward1", 1},
};

}  // namespace

const char* OpNode::name() const {
  for (const OtherName& other : kOtherNames) {
    if (std::strcmp(other.op, op_->name) != 0) continue;
    if (other.argument < 0) return other.node;
    if (other.argument >= static_cast<int>(op_->n_args)) break;  // another table's operator of this name
    const ArgSlot& slot = slots_[other.argument];
    if (slot.count != 0 || (!other.tensor && slot.value.tag != ARGAND_TAG_NONE)) return other.node;
  }
  return backward_name(op_);
}

std::vector<std::string> OpNode::kept_names() const {
  std::vector<std::string> names;
  std::istringstream all(record_->names ? record_->names : "");
  std::string name;
  for (int i = 0; all >> name; i++) {
    const int result = i - op_->n_args;
    if (name == "-")
      names.emplace_back();
    else if (result < 0)
      names.push_back(slots_[i].count && !(record_->save_args >> i & 1) ? name + "_sym_sizes" : name);
    else
      names.push_back(record_->save_results >> result & 1 ? name : "");
  }
  return names;
}

std::optional<OpNode::Kept> OpNode::kept(std::string_view name) const {
  const std::vector<std::string> names = kept_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (name.empty() || found == names.end()) return std::nullopt;
  const auto i = static_cast<int>(found - names.begin());
  Gradients none;
  const OpBackward context(*this, none);
  Kept kept;
  if (i >= op_->n_args) {
    kept.tensors = TensorList{context.result(i - op_->n_args)};
  } else if (const ArgSlot& slot = slots_[i]; slot.count == 0) {
    kept.value = slot.value;
  } else if (record_->save_args >> i & 1) {
    kept.is_list = slot.value.tag == ARGAND_TAG_TENSOR_LIST;
    kept.tensors = context.tensors(i);
  } else {
    kept.value = argand::value(slot.facts->size_list());
  }
  return kept;
}

const char* backward_name(const ArgandOperator* op) {
  static std::mutex mutex;
  static auto* names = new std::unordered_map<const ArgandOperator*, std::string>;
  std::lock_guard<std::mutex> lock(mutex);
  auto [it, is_new] = names->try_emplace(op);
  if (is_new) {
    bool upper = true;
    for (const char* c = op->name; *c && *c != '.'; c++) {
      if (*c == '_') {
        upper = true;
      } else {
        it->second += upper && *c >= 'a' && *c <= 'z' ? static_cast<char>(*c - 'a' + 'A') : *c;
        upper = *c >= '0' && *c <= '9';
      }
    }
    it->second += "Backward0";
  }
  return it->second.c_str();
}

}  // namespace argand::autograd
