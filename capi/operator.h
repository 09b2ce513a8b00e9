// Operators of the host, as the reader, the builder and programs see them.
//
// Thread safety: immutable.
#ifndef NPURT_CAPI_OPERATOR_H_
#define NPURT_CAPI_OPERATOR_H_

#include <memory>

#include "handles.h"
#include "ops/host_call.h"

namespace npurt::capi {

// The operators of `host`; null if there are none. Keeps the host.
std::shared_ptr<const ops::HostOperators> HostOperatorsOf(npurt_host* host);

}  // namespace npurt::capi

#endif  // NPURT_CAPI_OPERATOR_H_
