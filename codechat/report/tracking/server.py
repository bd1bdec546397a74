"""A team's MLflow server: it knows where files go, and many processes on many machines log to it at once."""

from typing import Literal

from pydantic import field_validator

from codechat.base.config import Config, run_option
from codechat.base.errors import UserError
from codechat.report.tracking import TRACKING, Tracker
from codechat.report.tracking.address import Address, problem_of, without_password
from codechat.report.tracking.mlflow_run import MlflowTracker


class ServerConfig(Config):
    """Options of the `server` tracker."""

    kind: Literal["server"] = run_option("server", "where the cell's metrics are sent")
    uri: str = run_option(..., "address of the MLflow server: http://HOST:PORT, https://… or databricks")
    experiment: str = run_option("codechat", "name of the MLflow experiment", min_length=1, max_length=500)
    live: bool = run_option(True, "show the cell while it runs: a run with its progress, from the first sessions on")

    @field_validator("uri")
    @classmethod
    def _is_a_server(cls, uri: str) -> str:
        problem = problem_of(uri) or ("" if Address.of(uri).is_server else "a file or database is not a server")
        if problem:
            raise UserError(
                f"tracking.uri={without_password(uri)}: {problem}",
                "name the MLflow server: http://HOST:PORT, https://… or databricks; other stores are tracking=mlflow",
            )
        return uri


@TRACKING.register("server", ServerConfig)
def server_tracker(config: ServerConfig) -> Tracker:
    """Log every cell as one run on an MLflow server (tracking.uri)."""
    return MlflowTracker(Address.of(config.uri), config.experiment, config.live)
