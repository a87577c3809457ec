"""The ends of what failed tests printed, from a JUnit file of ctest: a log is often kept by its last lines only.

    failed_tests.py FILE
"""

import sys
import xml.etree.ElementTree as ElementTree

LINES = 25  # of each test
TESTS = 10


def main():
    failed = [case for case in ElementTree.parse(sys.argv[1]).iter("testcase") if case.get("status") == "fail"]
    for case in failed[:TESTS]:
        reason = next((failure.get("message") or "" for failure in case.iter("failure")), "")
        print(f"\n--- {case.get('name')}: {reason}")
        print("\n".join((case.findtext("system-out") or "").strip().splitlines()[-LINES:]))
    if len(failed) > TESTS:
        print(f"\n({len(failed) - TESTS} more)")


if __name__ == "__main__":
    main()
