// What generated <family>.register.cc files consist of: rows of operators and kernels, and the generic kernels that rows point to.
#pragma once

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/kernel_rows.h"
#include "packages/aten/csrc/kernels/cpu/pointwise_driver.h"
#include "packages/aten/csrc/kernels/cpu/reduce_driver.h"
#include "packages/aten/csrc/kernels/cpu/scan_driver.h"

namespace argand::registration {

struct OperatorRow {
  const char* name;
  const char* schema;
  uint64_t schema_hash;
  uint16_t n_args, n_rets, flags;
};

struct Family {
  const OperatorRow* operators;
  size_t n_operators;
  const KernelRow* kernels;
  size_t n_kernels;
};

// How a pointwise operator's values map to its loops; one per operator group, shared by its forms.
struct PointwiseBinding {
  const PointwiseOp* variants;       // one, or one per name in variant_names
  const char* const* variant_names;  // values of the str argument
  int8_t n_variants, variant_arg;    // variant_arg: its position, -1 without
  int8_t n_operands, n_scalars;
  int8_t operand_args[kMaxOperands], scalar_args[kMaxOperands];
  int8_t n_args;                                    // of the functional form; out= forms have `out` behind them
  bool has_alpha = false;                           // the number is `alpha`: see check_alpha
  int8_t scaled = -1;                               // the operand that takes a complex number in as a factor; -1 without
  uint8_t checked_scalars = 0, chosen_scalars = 0;  // bits: see check_scalar
};

// Kernels for pointwise operators; key_data of ARGAND_KEY_CPU is the PointwiseBinding.
int pointwise_functional(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);
int pointwise_inplace(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);
int pointwise_out(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);

// How an out= lies that had another size: as the result, row-major, or as the result only if it had no elements; kUnlessAsMany: one of as many
// elements keeps its shape.
enum class ResizedOut : uint8_t { kAsResult, kRowMajor, kRowMajorIfFilled, kUnlessAsMany };

// Which dtype an out= has: one of the result's category or a wider one (kFloating: of floating-point results no wider one), the result's, or any.
enum class OutDtype : uint8_t { kCast, kWidened, kFloating, kTruth, kExact, kAny };

// How in-place and out= forms are made from the functional one; key_data of ARGAND_KEY_COMPOSITE.
struct CopiedForm {
  const char* functional;
  OutDtype out;
  int8_t dtype;  // position of the dtype that is out's where none is given; -1 without
  ResizedOut resized;
  uint64_t apart;  // bit k: what is written shares no memory with argument k, not even all of it
};
int inplace_by_copy(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);
int out_by_copy(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);

// An error of an operator that is made of others, in the name that the user knows.
[[noreturn]] void raise_renamed(std::string_view name, const Error& error);
template <class Body>
void in_name_of(std::string_view name, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    raise_renamed(name, error);
  }
}

template <class Body>
int guarded_in_name_of(const ArgandOperator* op, Body&& body) {
  return guarded([&] { in_name_of(op->name, body); });
}

// An operator's new results are its own: their versions begin at 0, whatever its body wrote into them, and they are no views of what only it knows.
void own_results(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets);

// For meta kernels: every tensor with dimensions must be on meta too.
void check_one_device(const ArgandOperator* op, const ArgandValue* args);
// For meta kernels that change a tensor: nothing can be written from a meta tensor, which has no data.
void check_target_on_meta(const ArgandOperator* op, const ArgandValue& target);

// The view with the given geometry, which must lie inside self's storage.
Tensor make_view(const ArgandOperator* op, const Tensor& self, const builtins::Strided& geometry);

// Result of a kernel for the meta device.
inline Tensor meta_result(IntList sizes, int dtype) { return empty(sizes, dtype, ARGAND_DEVICE(ARGAND_META, 0)); }
inline Tensor meta_result(const builtins::Strided& g, int dtype) { return empty_strided(g.sizes, g.strides, dtype, ARGAND_DEVICE(ARGAND_META, 0)); }

int register_family(const Family& family);

}  // namespace argand::registration
