// The search for the shortest black list with which mixed precision keeps a model's outputs.
//
// A list is tried by compiling and running: outputs against those in the model's own precision, on
// every set of inputs. First each operator type that mixed precision lowers is lowered alone, all
// others kept, which tells how much error it brings in. Then types go to the black list, the worst
// first, until the outputs are within the limits, and at last every type that is not needed is
// taken off again. So no type of the result can be left out; that there is no shorter list of other
// types is not promised.
#ifndef NPURT_CLI_MIX_LIST_H_
#define NPURT_CLI_MIX_LIST_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/comparison.h"
#include "cli/distance.h"
#include "cli/handles.h"
#include "cli/session.h"

namespace npurt::cli {

// What modify_mixlist changes, by operator type.
struct MixList {
  std::set<std::string> black, white;
  std::string Json() const;  // as the option reads it
};

// What a list led to.
struct MixTrial {
  std::vector<Distance> outputs;  // over all sets of inputs
  double excess = 0;              // the greatest; above 1: beyond the limits
  std::set<std::string> lowered;  // types of which a node is computed in a lower type
  std::set<std::string> types;    // of all nodes
};

class MixSearch {
 public:
  // `flags` choose a mixed precision. `inputs`: sets of inputs, at least one. The model and the
  // inputs must outlive this.
  MixSearch(npurt_model* model, const SessionFlags& flags,
            const std::vector<std::vector<OwnedValue>>& inputs)
      : model_(model), flags_(flags), inputs_(inputs) {}

  // Runs in the model's own precision, and in mixed precision as it is. `limits` null: those of the
  // coarsest type on the way to an output.
  Status Start(const Limits* limits);

  // Finds the list. False in *found: with every type black the outputs are beyond the limits.
  // `tell` gets a line per step.
  Status Find(const std::function<void(const std::string&)>& tell, bool* found);

  // Tries the file at `path`.
  Status TryFile(const std::string& path, MixTrial* out) const;

  // Every value with list() against the model's own precision, on the first set of inputs.
  Status CompareValues(Comparison* out) const;

  const Limits& limits() const { return limits_; }
  const MixTrial& before() const { return before_; }
  const MixTrial& after() const { return after_; }
  const MixList& list() const { return list_; }
  // How much error each type brings in alone, as a part of what is allowed.
  const std::map<std::string, double>& alone() const { return alone_; }

 private:
  using Outputs = std::vector<OwnedValue>;

  // The flags with a file as modify_mixlist.
  SessionFlags WithFile(const std::string& path) const;
  Status Try(const MixList& list, MixTrial* out) const;
  Status TrySession(npurt_session* session, MixTrial* out) const;
  Status RunAll(npurt_session* session, std::vector<Outputs>* out) const;
  Status MeasureAlone(const std::string& type);

  npurt_model* model_;
  SessionFlags flags_, origin_flags_;
  const std::vector<std::vector<OwnedValue>>& inputs_;
  Limits limits_;
  std::vector<Outputs> right_;
  MixTrial before_, after_;
  MixList list_;
  std::map<std::string, double> alone_;
};

}  // namespace npurt::cli

#endif  // NPURT_CLI_MIX_LIST_H_
