"""The no-evidence gate: features, classifier, calibrator, thresholds, nested folds."""
