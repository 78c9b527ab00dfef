// The part of cuDNN 9's graph interface that convolutions need, declared from its public documentation
// (docs.nvidia.com/deeplearning/cudnn, "cudnn_graph Library"); the library is opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "packages/aten/cuda/csrc/core/dynamic_library.h"

namespace argand::cuda::dnn {

enum DataType : int32_t { kFloat = 0, kDouble = 1, kHalf = 2, kBFloat16 = 9 };
enum Kind : int32_t {  // of descriptors
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kEngineHeuristic = 4,
  kExecutionPlan = 5,
  kConvolutionForward = 10,
  kConvolutionBackwardFilter = 11,
  kConvolutionBackwardData = 12,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17
};
enum Type : int32_t {  // of attributes
  kTypeHandle = 0,
  kTypeDataType = 1,
  kTypeInt64 = 3,
  kTypeFloat = 4,
  kTypeDouble = 5,
  kTypeVoidPtr = 6,
  kTypeConvolutionMode = 7,
  kTypeHeuristicMode = 8,
  kTypeNumericalNote = 11,
  kTypeDescriptor = 15
};
enum Attribute : int32_t {
  kConvolutionCompType = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionFilterStrides = 103,
  kConvolutionPostPaddings = 104,
  kConvolutionPrePaddings = 105,
  kConvolutionSpatialDims = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kEngineConfigEngine = 300,
  kPlanHandle = 400,
  kPlanEngineConfig = 401,
  kPlanWorkspaceSize = 402,
  kForwardAlpha = 700,  // then beta, convolution, w, x, y
  kDataAlpha = 706,     // then beta, convolution, w, dx, dy
  kFilterAlpha = 712,   // then beta, convolution, dw, x, dy
  kGraphHandle = 800,
  kGraphOps = 801,
  kTensorByteAlignment = 900,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorUniqueId = 906,
  kPackUniqueIds = 1000,
  kPackDataPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNumericalNote = 1303
};
enum : int32_t { kCrossCorrelation = 1, kHeuristicFallback = 2, kHeuristicA = 3 };
enum NumericalNote : int32_t { kNoteTensorCore = 0, kNoteDownConvertInputs = 1, kNoteNondeterministic = 4 };

using Handle = void*;

// All functions but the texts return a status, 0 for success.
struct Library {
  int (*create)(Handle*);
  int (*set_stream)(Handle, void* stream);
  size_t (*version)();
  const char* (*error_string)(int status);
  int (*descriptor_create)(int32_t kind, void** out);
  int (*descriptor_destroy)(void*);
  int (*finalize)(void*);
  int (*set_attribute)(void*, int32_t attribute, int32_t type, int64_t count, const void* values);
  int (*get_attribute)(void*, int32_t attribute, int32_t type, int64_t capacity, int64_t* count, void* values);
  int (*execute)(Handle, void* plan, void* pack);
};

// Opened at the first call; throws where there is none.
const Library& library();

LibrarySearch& search();

// Throws with cuDNN's own text for a status that is not 0.
void check_status(const char* op, const char* what, int status);

// An owned backend descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(const char* op, Kind kind) : op_(op) { check_status(op, "cudnnBackendCreateDescriptor", library().descriptor_create(kind, &p_)); }
  Descriptor(Descriptor&& o) noexcept : op_(o.op_), p_(std::exchange(o.p_, nullptr)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(op_, o.op_);
    std::swap(p_, o.p_);
    return *this;
  }
  ~Descriptor() {
    if (p_) library().descriptor_destroy(p_);
  }

  void* get() const { return p_; }
  Descriptor& set(Attribute attribute, Type type, int64_t count, const void* values) {
    check_status(op_, "cudnnBackendSetAttribute", library().set_attribute(p_, attribute, type, count, values));
    return *this;
  }
  Descriptor& set(Attribute attribute, Type type, int32_t value) { return set(attribute, type, 1, &value); }
  Descriptor& set(Attribute attribute, int64_t value) { return set(attribute, kTypeInt64, 1, &value); }
  Descriptor& set(Attribute attribute, const Descriptor& part) { return set(attribute, kTypeDescriptor, 1, &part.p_); }
  int try_finalize() const { return library().finalize(p_); }
  Descriptor& finalize() {
    check_status(op_, "cudnnBackendFinalize", try_finalize());
    return *this;
  }

 private:
  const char* op_ = "";
  void* p_ = nullptr;
};

}  // namespace argand::cuda::dnn
