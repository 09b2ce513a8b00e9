#include "cli/isolate.h"

#include <npurt/npurt.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "cli/text.h"

namespace npurt::cli {
namespace {

struct Child {
  std::size_t job = 0;
  pid_t pid = -1;
  int fd = -1;
  std::int64_t deadline_ns = 0;
  bool late = false;
  std::string answer;
};

void WriteAll(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t wrote = write(fd, text.data() + at, text.size() - at);
    if (wrote < 0 && errno != EINTR) return;
    if (wrote > 0) at += static_cast<std::size_t>(wrote);
  }
}

bool Start(std::size_t index, double timeout_seconds,
           const std::function<std::string(std::size_t)>& job, Child* child) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return false;
  }
  if (pid == 0) {
    close(ends[0]);
    WriteAll(ends[1], job(index));
    _exit(0);  // the parent's buffers are not ours to flush
  }
  close(ends[1]);
  *child = {index, pid, ends[0], npurt_now_ns() + static_cast<std::int64_t>(timeout_seconds * 1e9),
            false, ""};
  return true;
}

// Waits for the child, which has closed its pipe or was killed.
IsolatedResult Finish(const Child& child, double timeout_seconds) {
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  close(child.fd);
  IsolatedResult result;
  result.answer = child.answer;
  if (child.late)
    result.problem = "took longer than " + FormatReal(timeout_seconds) + " s";
  else if (WIFSIGNALED(status))
    result.problem = "crashed (signal " + std::to_string(WTERMSIG(status)) + ", " +
                     strsignal(WTERMSIG(status)) + ")";
  else if (WEXITSTATUS(status) != 0)
    result.problem = "ended with exit code " + std::to_string(WEXITSTATUS(status));
  return result;
}

}  // namespace

void RunIsolated(std::size_t count, std::size_t at_a_time, double timeout_seconds,
                 const std::function<std::string(std::size_t)>& job,
                 const std::function<void(std::size_t, const IsolatedResult&)>& done) {
  std::vector<Child> children;
  std::size_t next = 0;
  while (next < count || !children.empty()) {
    while (next < count && children.size() < at_a_time) {
      Child child;
      if (!Start(next, timeout_seconds, job, &child)) {
        if (!children.empty()) break;  // try again when one has ended
        done(next++, {"", std::string("could not be started: ") + std::strerror(errno)});
        continue;
      }
      children.push_back(std::move(child));
      ++next;
    }
    if (children.empty()) continue;
    std::vector<pollfd> polls;
    std::int64_t first = INT64_MAX;
    for (const Child& child : children) {
      polls.push_back({child.fd, POLLIN, 0});
      if (!child.late) first = std::min(first, child.deadline_ns);
    }
    const std::int64_t left_ms = (first - npurt_now_ns()) / 1000000 + 1;
    poll(polls.data(), polls.size(), static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 1000)));
    for (std::size_t i = children.size(); i-- > 0;) {
      Child& child = children[i];
      if (!child.late && npurt_now_ns() > child.deadline_ns) {
        kill(child.pid, SIGKILL);
        child.late = true;
      }
      if (polls[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = read(child.fd, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got > 0) {
        child.answer.append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      done(child.job, Finish(child, timeout_seconds));
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace npurt::cli
