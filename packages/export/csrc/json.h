// Reads JSON texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace argand::package {

// A JSON value. Access to what is not there throws Failure of kind ARGAND_PACKAGE_DAMAGED.
class Json {
 public:
  enum class Kind { kNull, kBool, kInteger, kReal, kString, kArray, kObject };

  static Json parse(std::string_view text);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool boolean() const;
  int64_t integer() const;
  double real() const;
  const std::string& text() const;
  const std::vector<Json>& items() const;
  const std::vector<std::pair<std::string, Json>>& members() const;
  const Json& operator[](std::string_view key) const;
  const Json* find(std::string_view key) const;  // nullptr where an object lacks it

 private:
  friend class JsonReader;
  void expect(Kind kind) const;

  Kind kind_ = Kind::kNull;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<Json> items_;
  std::vector<std::pair<std::string, Json>> members_;
};

}  // namespace argand::package
