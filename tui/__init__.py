"""The monitor: reads the store's views, writes only the store's commands."""
