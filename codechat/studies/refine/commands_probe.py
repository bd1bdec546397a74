"""`codechat probe`: recorded code on fresh inputs."""

from codechat.run.extensions import add_prober
from codechat.studies.refine.probe.probing import probe

add_prober("refine", probe)
