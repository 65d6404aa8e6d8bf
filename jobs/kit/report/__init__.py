"""The report of a scoring: one HTML file without a network, and its figures.

Found by entry point (group `siftlog.reports`), so that the runner knows no renderer.
"""

import logging

# about its cache of fonts it would speak to the terminal, from its import on
logging.getLogger("matplotlib").setLevel(logging.ERROR)
