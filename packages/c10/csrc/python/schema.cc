#include "packages/c10/csrc/python/schema.h"

#include <cstdlib>
#include <cstring>
#include <limits>

namespace argand::py {
namespace {

// Everything a schema points to lives as long as its operator: forever.
const char* keep(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}
template <class T>
T* keep(const std::vector<T>& values) {
  T* copy = static_cast<T*>(std::calloc(values.size() + 1, sizeof(T)));
  if (!copy) throw std::bad_alloc();
  if (!values.empty()) std::memcpy(static_cast<void*>(copy), values.data(), values.size() * sizeof(T));
  return copy;
}

struct TypeName {
  const char* text;
  ArgandArgType single;
  int list;  // ArgandArgType of a list of it, or -1
};
const TypeName kTypes[] = {{"Tensor|Scalar", ARGAND_ARG_OPERAND, -1},
                           {"Tensor", ARGAND_ARG_TENSOR, ARGAND_ARG_TENSOR_LIST},
                           {"Scalar", ARGAND_ARG_SCALAR, -1},
                           {"bool", ARGAND_ARG_BOOL, ARGAND_ARG_BOOL_LIST},
                           {"int", ARGAND_ARG_INT, ARGAND_ARG_INT_LIST},
                           {"float", ARGAND_ARG_FLOAT, ARGAND_ARG_FLOAT_LIST},
                           {"str", ARGAND_ARG_STRING, -1},
                           {"ScalarType", ARGAND_ARG_DTYPE, -1},
                           {"dtype", ARGAND_ARG_DTYPE, -1},
                           {"Device", ARGAND_ARG_DEVICE, -1},
                           {"Generator", ARGAND_ARG_GENERATOR, -1}};

class SchemaParser {
 public:
  explicit SchemaParser(const char* text) : text_(text), p_(text) {}

  ParsedSchema parse() {
    std::string name = read_name("an operator name");
    expect('(');
    bool keyword_only = false;
    while (!accept(')')) {
      if (accept('*')) {
        keyword_only = true;
      } else {
        read_argument(keyword_only);
      }
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    if (!(accept('-') && accept('>'))) fault("expected '->' and the results");
    read_results();
    if (skip_space(), *p_) fault("expected the end");
    return finish(name);
  }

 private:
  [[noreturn]] void fault(const char* what) {
    fail(ARGAND_VALUE_ERROR, "schema: %s at column %d of \"%s\"", what, static_cast<int>(p_ - text_) + 1, text_);
  }
  void skip_space() {
    while (*p_ == ' ' || *p_ == '\n') p_++;
  }
  bool accept(char c) {
    skip_space();
    if (*p_ != c) return false;
    p_++;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fault((std::string("expected '") + c + "'").c_str());
  }
  bool accept_word(const char* word) {
    skip_space();
    size_t n = std::strlen(word);
    if (std::strncmp(p_, word, n) != 0 || is_name(p_[n])) return false;
    p_ += n;
    return true;
  }
  static bool is_name(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
  std::string read_name(const char* what) {
    skip_space();
    const char* start = p_;
    while (is_name(*p_) || *p_ == '.' || *p_ == ':') p_++;
    if (p_ == start) fault((std::string("expected ") + what).c_str());
    return {start, p_};
  }

  // A type with its alias mark, list and optional signs.
  void read_type(ArgandArgDesc& desc) {
    const TypeName* type = nullptr;
    for (const TypeName& t : kTypes) {
      if (accept_word(t.text)) {
        type = &t;
        break;
      }
    }
    if (!type) fault("expected a type: Tensor, Tensor|Scalar, Scalar, bool, int, float, str, ScalarType, Device or Generator");
    desc.type = type->single;
    bool element_optional = false;
    read_alias();
    if (accept('?')) element_optional = true;
    if (accept('[')) {
      if (type->list < 0) fault("there are no lists of this type");
      desc.type = static_cast<ArgandArgType>(type->list);
      if (element_optional && desc.type == ARGAND_ARG_TENSOR_LIST) desc.type = ARGAND_ARG_OPT_TENSOR_LIST;
      element_optional = false;
      skip_space();
      if (*p_ != ']') desc.list_size = static_cast<int16_t>(std::strtol(p_, const_cast<char**>(&p_), 10));
      expect(']');
      read_alias();
      if (accept('?')) element_optional = true;
    }
    if (element_optional) desc.flags |= ARGAND_ARG_OPTIONAL;
  }
  void read_alias() {  // (a), (a!), (a -> *)
    if (*p_ != '(') return;
    bool written = false;
    while (*p_ && *p_ != ')') written = written || *p_ == '!', p_++;
    expect(')');
    if (in_results_) {
      view_ = view_ || !written;
    } else {
      writes_ = writes_ || written;
    }
  }

  void read_argument(bool keyword_only) {
    ArgandArgDesc desc{};
    read_type(desc);
    if (keyword_only) desc.flags |= ARGAND_ARG_KWONLY;
    desc.name = keep(read_name("an argument name"));
    if (accept('=')) {
      desc.flags |= ARGAND_ARG_HAS_DEFAULT;
      desc.default_value = read_default(desc);
    }
    args_.push_back(desc);
  }

  ArgandValue read_default(const ArgandArgDesc& desc) {
    skip_space();
    if (accept_word("None")) return none();
    if (*p_ == '"' || *p_ == '\'') return read_string();
    if (accept('[')) return read_list_default(desc);
    if (accept_word("True")) return value(true);
    if (accept_word("False")) return value(false);
    if (desc.type == ARGAND_ARG_DTYPE) {
      std::string name = read_name("a dtype");
      for (int i = 0; i < ARGAND_NUM_DTYPES; i++)
        if (name == kDTypeName[i]) return dtype_value(i);
      fault("expected a dtype");
    }
    ArgandValue v = read_number(desc.type == ARGAND_ARG_FLOAT || desc.type == ARGAND_ARG_FLOAT_LIST);
    bool is_list = desc.type == ARGAND_ARG_INT_LIST || desc.type == ARGAND_ARG_FLOAT_LIST;
    return is_list ? list_default(desc, std::vector<ArgandValue>(desc.list_size > 0 ? static_cast<size_t>(desc.list_size) : 1, v)) : v;
  }
  ArgandValue read_string() {
    char quote = *p_++;
    const char* start = p_;
    while (*p_ && *p_ != quote) p_++;
    if (!*p_) fault("expected the end of a string");
    return value(keep(std::string(start, p_++)));
  }
  ArgandValue read_number(bool as_float) {
    skip_space();
    if (accept_word("inf")) return value(std::numeric_limits<double>::infinity());
    if (accept_word("-inf")) return value(-std::numeric_limits<double>::infinity());
    char *int_end, *float_end;
    long long i = std::strtoll(p_, &int_end, 10);
    double d = std::strtod(p_, &float_end);
    if (float_end == p_) fault("expected a default value");
    bool is_int = int_end == float_end;
    p_ = float_end;
    return is_int && !as_float ? value(static_cast<int64_t>(i)) : value(d);
  }
  ArgandValue read_list_default(const ArgandArgDesc& desc) {
    std::vector<ArgandValue> values;
    while (!accept(']')) {
      if (accept_word("True")) {
        values.push_back(value(true));
      } else if (accept_word("False")) {
        values.push_back(value(false));
      } else {
        values.push_back(read_number(desc.type == ARGAND_ARG_FLOAT_LIST));
      }
      if (!accept(',')) {
        expect(']');
        break;
      }
    }
    return list_default(desc, values);
  }
  ArgandValue list_default(const ArgandArgDesc& desc, const std::vector<ArgandValue>& values) {
    std::vector<int64_t> words;
    for (const ArgandValue& v : values) words.push_back(v.i);  // ints, bools and the bits of doubles alike
    ArgandValue list{};
    list.tag = desc.type == ARGAND_ARG_FLOAT_LIST  ? ARGAND_TAG_FLOAT_LIST
               : desc.type == ARGAND_ARG_BOOL_LIST ? ARGAND_TAG_BOOL_LIST
                                                   : ARGAND_TAG_INT_LIST;
    list.len = static_cast<uint32_t>(words.size());
    list.ints = keep(words);
    return list;
  }

  void read_results() {
    in_results_ = true;
    if (!accept('(')) return read_result();
    while (!accept(')')) {
      read_result();
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }
  void read_result() {
    ArgandArgDesc desc{};
    read_type(desc);
    skip_space();
    std::string name = is_name(*p_) ? read_name("a result name") : "";
    named_results_ = named_results_ || !name.empty();
    result_names_.push_back(keep(name));
  }

  ParsedSchema finish(const std::string& name) {
    size_t last = args_.size();
    for (size_t i = 0; i < args_.size(); i++)
      if (!(args_[i].flags & ARGAND_ARG_KWONLY)) last = i;
    // The only positional argument, besides a tensor whose method it is.
    const bool alone = last == 0 || (last == 1 && args_[0].type == ARGAND_ARG_TENSOR);
    if (alone && last < args_.size() && args_[last].type == ARGAND_ARG_INT_LIST && args_[last].list_size == 0)
      args_[last].flags |= ARGAND_ARG_VARARGS;
    ArgandSignature signature{};
    signature.operator_name = keep(name);
    signature.n_args = static_cast<uint16_t>(args_.size());
    signature.n_rets = static_cast<uint16_t>(result_names_.size());
    signature.args = keep(args_);
    signature.ret_names = named_results_ && result_names_.size() > 1 ? keep(result_names_) : nullptr;
    ArgandBinding binding{};
    binding.name = signature.operator_name;
    binding.doc = text_;
    binding.n_signatures = 1;
    binding.signatures = keep(std::vector<ArgandSignature>{signature});
    uint16_t flags = static_cast<uint16_t>((writes_ ? ARGAND_OP_INPLACE : 0) | (view_ && !writes_ ? ARGAND_OP_VIEW : 0));
    return {keep(std::vector<ArgandBinding>{binding}), flags};
  }

  const char* text_;
  const char* p_;
  std::vector<ArgandArgDesc> args_;
  std::vector<const char*> result_names_;
  bool named_results_ = false, in_results_ = false, writes_ = false, view_ = false;
};

}  // namespace

ParsedSchema parse_schema(const char* schema) { return SchemaParser(keep(std::string(schema))).parse(); }

}  // namespace argand::py
