// What generated derivative code sees: a record per operator and the context of one backward call.
#pragma once

#include <cstdint>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::autograd {

// One backward call of one operator. Argument numbers are schema positions; result and gradient numbers are result positions.
class BackwardContext {
 public:
  virtual ~BackwardContext() = default;
  virtual const ArgandValue& value(int arg) const = 0;  // a saved non-tensor argument, or operand that was a number
  virtual Tensor tensor(int arg) const = 0;             // a saved tensor argument (its version is checked); undefined if it was None
  virtual TensorList tensors(int arg) const = 0;        // a saved tensor list
  virtual Tensor result(int index) const = 0;           // a saved result
  virtual Tensor grad(int index) const = 0;             // gradient of a result; undefined when nothing flowed into it
  virtual bool needs(int arg) const = 0;                // is a gradient wanted for this argument
  virtual bool needs(int arg, int index) const = 0;     // ... for this entry of a tensor list
  virtual bool is_tensor(int arg) const = 0;            // an operand: was it a tensor
  virtual IntList sizes(int arg) const = 0;             // geometry of a tensor argument, kept without keeping its data
  virtual IntList list_sizes(int arg, int index) const = 0;
  virtual IntList strides(int arg) const = 0;  // kept for view operators and where the record says so, as is offset
  virtual int64_t offset(int arg) const = 0;
  virtual int list_len(int arg) const = 0;
  virtual int dtype(int arg) const = 0;
  virtual ArgandDevice device(int arg) const = 0;
  virtual IntList result_sizes(int index) const = 0;
  virtual int result_dtype(int index) const = 0;          // ARGAND_DTYPE_NONE where no gradient flows in
  virtual void set(int arg, Tensor grad) = 0;             // summed to the argument's sizes and cast to its dtype by the caller
  virtual void set(int arg, int index, Tensor grad) = 0;  // entry of a tensor list
};

using BackwardFn = void (*)(BackwardContext& context);

// Static, generated, lives forever.
struct Derivative {
  const char* op;                // operator name
  BackwardFn backward;           // NULL: results never require grad (comparisons, argmax)
  uint64_t differentiable_args;  // bit per schema argument: those that `backward` can give a gradient for
  uint64_t differentiable_results;
  uint64_t save_args;  // arguments whose data `backward` reads
  uint64_t save_results;
  const uint64_t* save_args_for;  // [n_args]: data read for the gradient of each argument, so that only what is needed is kept
  const uint64_t* save_results_for;
  const char* names = nullptr;  // of the schema's arguments, then of the results, a blank between two; "-": not read
  bool scatters = false;        // of a view: `backward` gives zeros but for the gradient where the view lies in its argument
  uint64_t tied = 0;            // arguments whose gradient, where it is recorded, depends on all arguments with derivatives of zero
  bool strides = false;         // `backward` asks for strides of arguments
};

// Makes each operator of the table differentiable. An in-place operator without a record of its own uses that of its functional form.
void register_derivatives(const Derivative* first, size_t n);

// Generated: registers the tables of all families.
void register_all_derivatives();

}  // namespace argand::autograd
