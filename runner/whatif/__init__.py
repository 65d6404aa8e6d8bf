"""A recorded run played again under other limits, without a call."""
