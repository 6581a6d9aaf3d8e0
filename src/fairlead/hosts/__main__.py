"""`python -m fairlead.hosts`: what launchers of earlier versions start. It is `python -m fairlead.hosts.clis` now."""

from .clis.__main__ import main

if __name__ == "__main__":
    main()
