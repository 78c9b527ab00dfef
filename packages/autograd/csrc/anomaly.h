// Anomaly detection: remembers where in the forward a node was made, and raises when its backward makes NaN.
#pragma once

#include "packages/autograd/csrc/node.h"

namespace argand::autograd {

struct AnomalyCallbacks {
  void (*created)(Node* node);  // a result got this node as its history
  void (*failed)(Node* node);   // its backward threw or made NaN
};

bool anomaly_mode();
void set_anomaly_mode(bool on, bool check_nan);
bool anomaly_checks_nan();
void set_anomaly_callbacks(const AnomalyCallbacks& callbacks);
void anomaly_created(Node* node);
void anomaly_failed(Node* node);

// Throws if one of the gradients has a NaN (floating CPU tensors).
void check_for_nan(Node* node, const Tensor* made, uint32_t n);

}  // namespace argand::autograd
