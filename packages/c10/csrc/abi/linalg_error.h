/* An error kind besides those of ArgandErrorKind: LinAlgError in Python, a RuntimeError: a factorization does not exist or did not converge. */
#pragma once

#include "packages/c10/csrc/abi/argand.h"

enum { ARGAND_LINALG_ERROR = ARGAND_PYTHON_ERROR + 1 };
