// What the library does to the process when it forks.
#include <sys/wait.h>
#include <unistd.h>

#include "c_api_test.h"

namespace npurt_test {
namespace {

TEST(ForkTest, SessionsOfTheParentAreRefusedInTheChildAndNewOnesWork) {
  Session session = Doubler().ToSession();
  RunHandle run = NewRun(session);
  Value x = Floats({1, 3}, {1, 2, 3});
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int bad = 0;
    npurt_run* other = nullptr;
    bad |= npurt_run_execute(run.get(), nullptr, nullptr) != NPURT_FAILED_PRECONDITION;
    bad |= (npurt_run_create(session.get(), 0, &other, nullptr) != NPURT_FAILED_PRECONDITION) << 1;
    Session fresh = Doubler().ToSession();
    RunHandle again = NewRun(fresh);
    bad |= (npurt_run_bind_input(again.get(), 0, x.get(), 0, nullptr) != NPURT_OK) << 2;
    bad |= (npurt_run_execute(again.get(), nullptr, nullptr) != NPURT_OK) << 3;
    bad |= (ReadFloats(OutputOf(again).get()) != std::vector<float>{2, 4, 6}) << 4;
    run.reset();
    session.reset();
    _exit(bad);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
}

}  // namespace
}  // namespace npurt_test
