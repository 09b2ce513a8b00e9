#include "cli/args.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <numeric>

#include "cli/text.h"

namespace npurt::cli {

void Args::Add(const char* name, std::string value, std::string help,
               std::function<std::string(const std::string&)> accept) {
  flags_.push_back({name, std::move(value), std::move(help), std::move(accept)});
}

void Args::Switch(const char* name, bool* target, const char* help) {
  Add(name, "", help, [target](const std::string&) {
    *target = true;
    return std::string();
  });
}

void Args::Text(const char* name, const char* value, std::string* target, const char* help) {
  Add(name, value, help, [target](const std::string& text) {
    *target = text;
    return std::string(text.empty() ? "some text" : "");
  });
}

void Args::Choice(const char* name, const char* choices, std::string* target, const char* help) {
  Add(name, choices, help, [target, choices](const std::string& text) {
    for (const std::string& choice : Split(choices, '|')) {
      if (text != choice) continue;
      *target = text;
      return std::string();
    }
    return std::string("one of ") + choices;
  });
}

void Args::List(const char* name, const char* value, std::vector<std::string>* target,
                const char* help) {
  const bool pair = std::string(value).find('=') != std::string::npos;
  Add(name, value, std::string(help) + " May be repeated.",
      [target, pair, value](const std::string& text) {
        if (pair && text.find('=', 1) == std::string::npos) return std::string(value);
        target->push_back(text);
        return std::string();
      });
}

void Args::Integer(const char* name, std::int64_t min, std::int64_t max, std::int64_t* target,
                   const char* help) {
  Add(name, "N", help, [=](const std::string& text) {
    std::int64_t number = 0;
    if (!ParseInteger(text, &number) || number < min || number > max)
      return "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
    *target = number;
    return std::string();
  });
}

void Args::Real(const char* name, double min, double max, double* target, const char* help) {
  Add(name, "X", help, [=](const std::string& text) {
    double number = 0;
    if (!ParseReal(text, &number) || !(number >= min && number <= max))
      return "a number from " + FormatReal(min) + " to " + FormatReal(max);
    *target = number;
    return std::string();
  });
}

void Args::Positional(const char* name, std::string* target, bool required) {
  positional_name_ = required ? name : std::string("[") + name + "]";
  one_ = target;
  min_positionals_ = required ? 1 : 0;
}

void Args::Positionals(const char* name, std::vector<std::string>* target, std::size_t min) {
  positional_name_ = std::string(name) + "...";
  many_ = target;
  min_positionals_ = min;
}

Status Args::Unknown(const std::string& name) const {
  std::vector<std::string> names = {"--help"};
  for (const Flag& flag : flags_) names.push_back(flag.name);
  const std::string nearest = Nearest(name, names);
  return Usage(
      "unknown flag '" + name + "'" + (nearest.empty() ? "" : "; did you mean " + nearest + "?"),
      "npurt " + verb_ + " --help lists the flags.");
}

Status Args::Assign(const Flag& flag, const std::string& value) const {
  const std::string wanted = flag.accept(value);
  if (wanted.empty()) return Status();
  return Usage(flag.name + ": got '" + value + "', want " + wanted);
}

Status Args::Parse(const std::vector<std::string>& arguments, bool* help) {
  *help = false;
  std::size_t positionals = 0;
  bool flags_end = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!flags_end && argument == "--") {
      flags_end = true;
      continue;
    }
    if (!flags_end && (argument == "--help" || argument == "-h")) {
      *help = true;
      return Status();
    }
    if (flags_end || argument.size() < 2 || argument[0] != '-') {
      if (one_ == nullptr && many_ == nullptr)
        return Usage("unexpected argument '" + argument + "'");
      if (one_ != nullptr && positionals == 1)
        return Usage("unexpected argument '" + argument + "' after '" + *one_ + "'");
      if (one_ != nullptr) *one_ = argument;
      if (many_ != nullptr) many_->push_back(argument);
      ++positionals;
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto flag =
        std::find_if(flags_.begin(), flags_.end(), [&](const Flag& f) { return f.name == name; });
    if (flag == flags_.end()) return Unknown(name);
    if (flag->value.empty()) {
      if (equals != std::string::npos) return Usage(name + " takes no value");
      NPURT_CLI_TRY(Assign(*flag, ""));
    } else if (equals != std::string::npos) {
      NPURT_CLI_TRY(Assign(*flag, argument.substr(equals + 1)));
    } else if (i + 1 < arguments.size()) {
      NPURT_CLI_TRY(Assign(*flag, arguments[++i]));
    } else {
      return Usage(name + " needs a value: " + name + " " + flag->value);
    }
  }
  if (positionals < min_positionals_)
    return Usage(positional_name_ + " is missing", "npurt " + verb_ + " --help shows the usage.");
  return Status();
}

std::string Args::Help() const {
  std::string usage = "usage: npurt " + verb_;
  if (!positional_name_.empty()) usage += " " + positional_name_;
  if (!flags_.empty()) usage += " [FLAG]...";
  std::string text = usage + "\n\n" + Wrap(summary_, 0, kColumns) + "\n";
  constexpr std::size_t kIndent = 6;
  for (const Flag& flag : flags_) {
    text += "\n  " + flag.name + (flag.value.empty() ? "" : " " + flag.value) + "\n";
    text += std::string(kIndent, ' ') + Wrap(flag.help, kIndent, kColumns);
  }
  if (!flags_.empty()) text += "\n";
  for (const std::string& note : notes_) text += "\n" + Wrap(note, 0, kColumns) + "\n";
  return text;
}

std::string Nearest(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    // Levenshtein, one row at a time.
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t change = diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

bool SplitPair(const std::string& text, char separator, bool last, std::string* left,
               std::string* right) {
  const std::size_t at = last ? text.rfind(separator) : text.find(separator);
  if (at == std::string::npos) return false;
  *left = text.substr(0, at);
  *right = text.substr(at + 1);
  return true;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(separator, from)) != std::string::npos; from = at + 1)
    parts.push_back(text.substr(from, at - from));
  parts.push_back(text.substr(from));
  return parts;
}

bool ParseInteger(const std::string& text, std::int64_t* out) {
  if (text.empty() || text[0] == ' ') return false;
  errno = 0;
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || *end != '\0') return false;
  *out = number;
  return true;
}

bool ParseReal(const std::string& text, double* out) {
  if (text.empty() || text[0] == ' ') return false;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (*end != '\0') return false;
  *out = number;
  return true;
}

}  // namespace npurt::cli
