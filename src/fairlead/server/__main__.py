"""`python -m fairlead.server [FOLDERS]`: the daemon, as `fairlead.client` and the launcher's client start it."""

import logging
import sys

from ..folders import enter

if len(sys.argv) > 1:
    enter(sys.argv[1])

from .daemon import Running, Settings, serve

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
try:
    serve(Settings())
except Running:
    sys.exit(0)  # somebody else won
