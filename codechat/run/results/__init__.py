"""From session records to metrics, figures and the tracked run."""
