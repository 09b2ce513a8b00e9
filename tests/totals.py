"""Adds up test logs: names what failed and what was skipped; the last line is the total.

Usage: totals.py [--passed=N] [--broken=STAGE]... BUILD...
Each BUILD is a Meson build folder whose tests have run. GoogleTest programs count case by case.
--broken adds a failure that has no log (a stage that did not build), --passed adds successes.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree


def cases_of(junit):
    """Yields (test, case, state, why) of GoogleTest programs and plain scripts alike."""
    if not junit.exists():
        return
    for suite in xml.etree.ElementTree.parse(junit).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            skip = case.find("skipped")
            state = ("failed" if case.find("failure") is not None or case.find("error") is not None
                     else "skipped" if skip is not None or case.get("status") == "notrun"
                     else "passed")
            why = " ".join((skip.text or "").split()) if skip is not None else ""
            gtest = case.get("status") is not None
            name = f"{case.get('classname')}.{case.get('name')}" if gtest else case.get("name")
            yield suite.get("name") if gtest else case.get("name"), name, state, why


def main(arguments):
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for argument in arguments:
        if argument.startswith("--passed="):
            count["passed"] += int(argument.split("=")[1])
            continue
        if argument.startswith("--broken="):
            count["failed"] += 1
            print(f"FAILED {argument.split('=', 1)[1]}")
            continue
        logs, stage = pathlib.Path(argument) / "meson-logs", pathlib.Path(argument).name
        failed_programs = set()
        for program, name, state, why in cases_of(logs / "testlog.junit.xml"):
            count[state] += 1
            if state == "failed":
                failed_programs.add(program)
            if state != "passed":
                print(f"{state.upper()} {stage}: {name}{': ' + why if why else ''}")
        # A program whose cases all passed and that then crashed, leaked or timed out.
        log = logs / "testlog.json"
        for line in log.read_text().splitlines() if log.exists() else []:
            test = json.loads(line)
            bad = test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")
            if bad and not any(test["name"] in program for program in failed_programs):
                count["failed"] += 1
                print(f"FAILED {stage}: {test['name']}: {test['result']} after its last case")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**count))
    return count["failed"] > 0 or count["passed"] == 0


sys.exit(main(sys.argv[1:]))
