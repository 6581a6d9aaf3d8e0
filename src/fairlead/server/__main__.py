"""`python -m fairlead.server [FOLDERS]` runs the daemon; the clients start it this way."""

import logging
import sys

from ..folders import enter

if len(sys.argv) > 1:
    enter(sys.argv[1])

from .daemon import AlreadyRunning, DaemonSettings, serve

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
try:
    serve(DaemonSettings())
except AlreadyRunning:
    sys.exit(0)  # another daemon got the lock first
