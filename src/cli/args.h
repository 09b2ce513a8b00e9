// Args: the arguments of one verb, declared once; parsing and --help both read the declaration.
//
// A flag is bound to the variable that receives it; the variable's value at declaration is the
// default. Accepted forms: `--name value`, `--name=value`, `--switch`, `--` before names that
// start with a dash. Not thread-safe.
#ifndef NPURT_CLI_ARGS_H_
#define NPURT_CLI_ARGS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/status.h"

namespace npurt::cli {

class Args {
 public:
  // `verb` and `summary` (a paragraph) head the help text.
  Args(std::string verb, std::string summary)
      : verb_(std::move(verb)), summary_(std::move(summary)) {}

  void Switch(const char* name, bool* target, const char* help);
  void Text(const char* name, const char* value, std::string* target, const char* help);
  void Choice(const char* name, const char* choices, std::string* target, const char* help);
  void List(const char* name, const char* value, std::vector<std::string>* target,
            const char* help);
  void Integer(const char* name, std::int64_t min, std::int64_t max, std::int64_t* target,
               const char* help);
  void Real(const char* name, double min, double max, double* target, const char* help);

  // What stands without a flag. One, or (for `many`) any number and at least `min`.
  void Positional(const char* name, std::string* target, bool required);
  void Positionals(const char* name, std::vector<std::string>* target, std::size_t min);

  // Paragraphs after the flags.
  void Note(std::string paragraph) { notes_.push_back(std::move(paragraph)); }

  // True in *help: the caller prints Help() and is done.
  Status Parse(const std::vector<std::string>& arguments, bool* help);

  // At most 80 columns wide.
  std::string Help() const;

 private:
  struct Flag {
    std::string name;
    std::string value;  // what the help calls it; "" for a switch
    std::string help;
    std::function<std::string(const std::string&)> accept;  // what was wanted; "" if it was fine
  };

  void Add(const char* name, std::string value, std::string help,
           std::function<std::string(const std::string&)> accept);
  Status Unknown(const std::string& name) const;
  Status Assign(const Flag& flag, const std::string& value) const;

  std::string verb_, summary_;
  std::vector<Flag> flags_;
  std::string positional_name_;
  std::string* one_ = nullptr;
  std::vector<std::string>* many_ = nullptr;
  std::size_t min_positionals_ = 0;
  std::vector<std::string> notes_;
};

// The candidate with the smallest edit distance to `name`, or "" if none is near.
std::string Nearest(const std::string& name, const std::vector<std::string>& candidates);

// Splits at the first (`last` false) or last `separator`; false if there is none.
bool SplitPair(const std::string& text, char separator, bool last, std::string* left,
               std::string* right);

std::vector<std::string> Split(const std::string& text, char separator);

// The whole text as a number; false if it is none or does not fit.
bool ParseInteger(const std::string& text, std::int64_t* out);
bool ParseReal(const std::string& text, double* out);

}  // namespace npurt::cli

#endif  // NPURT_CLI_ARGS_H_
