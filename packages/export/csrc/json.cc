#include "packages/export/csrc/json.h"

#include <charconv>
#include <cstring>

#include "packages/export/csrc/failure.h"

namespace argand::package {
namespace {

constexpr int kDepth = 200;
const char* const kKinds[] = {"null", "a boolean", "an integer", "a number", "a string", "an array", "an object"};

}  // namespace

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : at_(text.data()), begin_(text.data()), end_(text.data() + text.size()) {}

  Json document() {
    Json found = value(0);
    skip();
    if (at_ != end_) bad("the end");
    return found;
  }

 private:
  [[noreturn]] void bad(const char* expected) { fail(ARGAND_PACKAGE_DAMAGED, "JSON: expected %s at byte %td", expected, at_ - begin_); }

  void skip() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) at_++;
  }
  bool take(char c) {
    skip();
    if (at_ == end_ || *at_ != c) return false;
    at_++;
    return true;
  }
  bool word(const char* text) {
    const size_t n = strlen(text);
    if (static_cast<size_t>(end_ - at_) < n || memcmp(at_, text, n) != 0) return false;
    at_ += n;
    return true;
  }

  Json value(int depth) {
    if (depth > kDepth) bad("fewer levels");
    Json made;
    skip();
    if (at_ == end_) bad("a value");
    if (take('{')) {
      made.kind_ = Json::Kind::kObject;
      if (take('}')) return made;
      do {
        skip();
        std::string key = string();
        if (!take(':')) bad("':'");
        made.members_.emplace_back(std::move(key), value(depth + 1));
      } while (take(','));
      if (!take('}')) bad("'}'");
    } else if (take('[')) {
      made.kind_ = Json::Kind::kArray;
      if (take(']')) return made;
      do made.items_.push_back(value(depth + 1));
      while (take(','));
      if (!take(']')) bad("']'");
    } else if (*at_ == '"') {
      made.kind_ = Json::Kind::kString;
      made.text_ = string();
    } else if (word("true") || word("false")) {
      made.kind_ = Json::Kind::kBool;
      made.integer_ = at_[-2] == 'u';
    } else if (!word("null")) {
      number(made);
    }
    return made;
  }

  void number(Json& made) {
    const auto whole = std::from_chars(at_, end_, made.integer_);
    const bool fraction = whole.ptr != end_ && (*whole.ptr == '.' || *whole.ptr == 'e' || *whole.ptr == 'E');
    made.kind_ = Json::Kind::kInteger;
    if (whole.ec == std::errc{} && !fraction) {
      at_ = whole.ptr;
      return;
    }
    made.kind_ = Json::Kind::kReal;
    const auto all = std::from_chars(at_, end_, made.real_);
    if (all.ec != std::errc{}) bad("a value");
    at_ = all.ptr;
  }

  unsigned hex4() {
    unsigned code = 0;
    if (end_ - at_ < 4) bad("four hexadecimal digits");
    const auto read = std::from_chars(at_, at_ + 4, code, 16);
    if (read.ptr != at_ + 4) bad("four hexadecimal digits");
    at_ += 4;
    return code;
  }

  void escape(std::string& out) {
    static const char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
    const char c = *at_++;
    if (c != 'u') {
      const char* found = c ? strchr(kFrom, c) : nullptr;
      if (!found) bad("an escape");
      out += kTo[found - kFrom];
      return;
    }
    uint32_t code = hex4();
    if (code >= 0xd800 && code < 0xdc00 && word("\\u")) code = 0x10000 + ((code - 0xd800) << 10) + ((hex4() - 0xdc00) & 0x3ff);
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    } else if (code < 0x10000) {
      out += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
    } else {
      out += {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)), static_cast<char>(0x80 | (code >> 6 & 63)),
              static_cast<char>(0x80 | (code & 63))};
    }
  }

  std::string string() {
    if (at_ == end_ || *at_ != '"') bad("a string");
    at_++;
    std::string out;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ != '\\') {
        out += *at_++;
      } else if (++at_ != end_) {
        escape(out);
      }
    }
    if (at_ == end_) bad("'\"'");
    at_++;
    return out;
  }

  const char *at_, *begin_, *end_;
};

Json Json::parse(std::string_view text) { return JsonReader(text).document(); }

void Json::expect(Kind kind) const {
  if (kind_ != kind) fail(ARGAND_PACKAGE_DAMAGED, "JSON: got %s, expected %s", kKinds[static_cast<int>(kind_)], kKinds[static_cast<int>(kind)]);
}

bool Json::boolean() const { return expect(Kind::kBool), integer_ != 0; }
int64_t Json::integer() const { return expect(Kind::kInteger), integer_; }
double Json::real() const { return expect(Kind::kReal), real_; }
const std::string& Json::text() const { return expect(Kind::kString), text_; }
const std::vector<Json>& Json::items() const { return expect(Kind::kArray), items_; }
const std::vector<std::pair<std::string, Json>>& Json::members() const { return expect(Kind::kObject), members_; }

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members())
    if (name == key) return &value;
  return nullptr;
}

const Json& Json::operator[](std::string_view key) const {
  const Json* found = find(key);
  if (!found) fail(ARGAND_PACKAGE_DAMAGED, "JSON: got an object without '%.*s'", static_cast<int>(key.size()), key.data());
  return *found;
}

}  // namespace argand::package
