"""`python -m fairlead.cli`."""

import sys

from . import main

sys.exit(main())
