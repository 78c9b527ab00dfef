// Tensors of a safetensors file in an archive.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "packages/c10/csrc/abi/argand.h"
#include "packages/export/csrc/archive.h"

namespace argand::package {

// One reference to a tensor.
class TensorRef {
 public:
  TensorRef() = default;
  TensorRef(const ArgandApi* api, ArgandTensor* t) : api_(api), t_(t) {}
  TensorRef(TensorRef&& other) noexcept : api_(other.api_), t_(std::exchange(other.t_, nullptr)) {}
  TensorRef& operator=(TensorRef&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(t_, other.t_);
    return *this;
  }
  ~TensorRef() {
    if (t_ && __atomic_sub_fetch(&t_->refcount, 1, __ATOMIC_ACQ_REL) == 0) api_->tensor_release(t_);
  }
  ArgandTensor* get() const { return t_; }

 private:
  const ArgandApi* api_ = nullptr;
  ArgandTensor* t_ = nullptr;
};

// All tensors of the file `name`, on the CPU, row by row; its bytes are compared with `digest`.
std::map<std::string, TensorRef> read_tensors(const ArgandApi* api, const Archive& archive, const std::string& name, const std::string& digest);
// The ArgandDType of "float32"; ARGAND_DTYPE_NONE where there is none.
int dtype_of(const std::string& name);
int64_t item_size(int dtype);
// Throws the thread's error of a failed call of the C ABI.
void check_status(const ArgandApi* api, int status);

}  // namespace argand::package
