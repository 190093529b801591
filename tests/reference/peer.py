"""Grade JSON lines with the published reference implementation, one reply a line.

Run by `run.py` with an interpreter and a folder that holds the package; imports nothing of ours.
"""

import json
import signal
import sys


def _stop(signum, frame):
    raise TimeoutError


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    from modebench.verifier_core import grade_local

    signal.signal(signal.SIGALRM, _stop)
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, request["limit_s"])
        try:
            result = grade_local(request["level"], request["domain"], request["answer"], request["response"])
            reply = [result["status"], result["canonical_key"], result["detail"]]
        except Exception as error:
            reply = ["crash", None, f"{type(error).__name__}: {error}"[:200]]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
