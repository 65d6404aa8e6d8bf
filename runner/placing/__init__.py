"""Places the shards of a run: who starts them, notices their deaths, starts anew."""
