// The library's function table has the version that the header declares.
#include <cstdio>

#include "packages/c10/csrc/abi/argand.h"

int main() {
  const ArgandApi* api = argand_api();
  if (api->abi_version != ARGAND_ABI_VERSION) {
    std::fprintf(stderr, "abi: got %d, expected %d\n", static_cast<int>(api->abi_version), ARGAND_ABI_VERSION);
    return 1;
  }
  return 0;
}
