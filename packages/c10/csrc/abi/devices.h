// How many devices of one type there may be: what each keeps stands in arrays of that many.
#pragma once

namespace argand {

inline constexpr int kMaxDevices = 32;

}  // namespace argand
