"""`python -m fairlead.server`: the daemon, as `fairlead.client` starts it."""

import logging
import sys

from .daemon import Running, Settings, serve

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
try:
    serve(Settings())
except Running:
    sys.exit(0)  # somebody else won
