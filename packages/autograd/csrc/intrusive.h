// An owning pointer to an object with retain() and release().
#pragma once

#include <utility>

namespace argand::autograd {

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) p_->retain();
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
  Ref(Ref<U>&& o) noexcept : p_(o.take()) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_) p_->release();
  }
  static Ref steal(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  static Ref borrow(T* p) {
    if (p) p->retain();
    return steal(p);
  }
  T* get() const { return p_; }
  T* take() { return std::exchange(p_, nullptr); }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  T* p_ = nullptr;
};

}  // namespace argand::autograd
