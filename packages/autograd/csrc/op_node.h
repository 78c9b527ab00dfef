// The node of a registered operator: what its Derivative record asks to keep, in one block of memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packages/autograd/csrc/derivative.h"
#include "packages/autograd/csrc/node.h"
#include "packages/autograd/csrc/saved_tensor.h"

namespace argand::autograd {

class OpNode final : public Node {
 public:
  // `needed`: bit per argument that requires grad. `before`: for in-place operators, a copy of the first argument from before the change
  // (undefined if no data of it is kept). `rets`: the results, or NULL for in-place operators, whose only result looks as the first argument does.
  static Ref<OpNode> make(const ArgandOperator* op, const Derivative* record, const ArgandValue* args, uint64_t needed, const Tensor& before,
                          const ArgandValue* rets);
  ~OpNode() override;

  void apply(Gradients& g) override;
  bool add_into(const Tensor& sum, const Tensor& grad) override;
  const char* name() const override;
  void release_variables() override;
  void set_owner(Node* owner) override { owner_ = owner; }

  bool saves_result(uint32_t i) const { return i < 64 && (save_results_ >> i & 1); }
  void save_result(const Tensor& t, uint32_t i);

  // What the node keeps of its operator's call. Names are those of the operator's derivative: "self", "dim", "result", and "self_sym_sizes" for the
  // sizes of a tensor whose data is not kept.
  struct Kept {
    bool is_list = false;
    std::optional<TensorList> tensors;  // one that no gradient needs is undefined
    ArgandValue value{};                // where there are none: points into this node
  };
  std::vector<std::string> kept_names() const;
  std::optional<Kept> kept(std::string_view name) const;

  // Which data the gradients of the arguments in `needed` read.
  static uint64_t saved_arguments(const Derivative* record, const ArgandOperator* op, uint64_t needed);

 private:
  friend class OpBackward;
  struct ArgSlot {
    ArgandValue value;   // lists and strings point into this node's block; tensors are not held here
    TensorFacts* facts;  // [count]
    SavedTensor* saved;  // [count] or NULL
    int32_t first_edge;  // -1: not differentiable
    uint32_t count;      // tensors: 1, or the length of the list
  };
  struct Layout;

  OpNode() = default;
  void fill_argument(ArgSlot& slot, const ArgandValue& v, bool differentiable, bool needed, bool save, const Tensor* replacement, Layout& next);
  TensorFacts keep_facts(const ArgandTensor* t, Layout& next, bool strides) const;
  Tensor unpack(const SavedTensor& saved) const;
  void tie(Tensor* gradients) const;
  uint32_t result_slot(uint32_t i) const { return static_cast<uint32_t>(__builtin_popcountll(save_results_ & ((uint64_t{1} << i) - 1))); }

  const ArgandOperator* op_ = nullptr;
  const Derivative* record_ = nullptr;
  ArgSlot* slots_ = nullptr;      // [op->n_args]
  SavedTensor* saved_ = nullptr;  // [n_saved_]: of arguments, then of results
  SavedTensor* saved_results_ = nullptr;
  uint64_t save_results_ = 0;
  Node* owner_ = nullptr;  // not owned
  uint32_t n_saved_ = 0;
};

const char* backward_name(const ArgandOperator* op);  // "MulBackward0" for mul and mul_

}  // namespace argand::autograd
