"""`python -m fairlead`: the command line of just this interpreter's fairlead."""

import sys

from .cli import main

sys.exit(main())
