"""What a job's runs reached, one after the other: `siftlog history`."""
