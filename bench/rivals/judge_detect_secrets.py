"""Looks for secrets in one text per line of JSON, and says whether there is one and how long it took."""

import json
import sys
import tempfile
import time

from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings

with default_settings(), tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
    for line in sys.stdin:
        file.seek(0)
        file.truncate()
        file.write(json.loads(line) + "\n")
        file.flush()
        began = time.perf_counter()
        found = next(iter(scan_file(file.name)), None)
        print(json.dumps(["pass" if found is None else "deny", (time.perf_counter() - began) * 1e6]), flush=True)
