import logging

logger = logging.getLogger("fairlead")
