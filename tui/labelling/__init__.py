"""Labels items of a run: on the screen and in the browser.

The only part of the monitor that needs a job; it is imported when somebody labels.
"""
