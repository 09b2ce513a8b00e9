// AssignStreams: which stream runs each step, and the events between streams.
//
// Each engine has N streams. A step goes where its operand was made last, else to the emptiest
// stream of its engine. An edge between streams gets an event, unless what the waiting stream has already
// waited for implies it.
//
// Thread safety: a pure function of its arguments.
#ifndef NPURT_COMPILE_STREAMS_H_
#define NPURT_COMPILE_STREAMS_H_

#include <utility>
#include <vector>

#include "exec/program.h"

namespace npurt::compile {

// `per_engine` 0: one stream runs everything. `control` are pairs {before, after} of steps.
void AssignStreams(int per_engine, const std::vector<std::pair<int, int>>& control,
                   exec::Program* program);

}  // namespace npurt::compile

#endif  // NPURT_COMPILE_STREAMS_H_
