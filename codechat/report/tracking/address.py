"""The address of an MLflow store: its tracking URI, checked, and what is derived from it."""

import re
import shlex
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from codechat.base.environment import shell_command

LOCAL_URI = "sqlite:///mlflow/store.db"
UI_SITE = "http://127.0.0.1:5000"  # the default address of `mlflow ui`
SERVERS = ("http", "https", "databricks")
DATABASES = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}  # with their default ports
PASSWORDS = {
    "postgresql": "PGPASSWORD",
    "http": "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
    "https": "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
}
"""The environment variables from which clients of a kind of store read credentials that the URI lacks."""
SECRET_OPTIONS = ("password", "passwd", "pwd", "sslpassword")  # of a database URI, behind its question mark
REMEDY = (
    "choose from: sqlite:///PATH, http://HOST:PORT, https://…, postgresql://…, mysql://…, mssql://…, databricks;\n"
    f"tracking.uri=null means {LOCAL_URI}, tracking=none means no tracking"
)


def problem_of(uri: str) -> str | None:
    """The reason why a text cannot be a tracking URI, or None. MLflow's plug-ins add schemes for other stores."""
    scheme = _scheme(uri)
    if scheme == "sqlite":
        return None if re.match(r"sqlite:///(?!:memory:|$|\?)", uri) else "an SQLite store needs a file: sqlite:///PATH"
    if scheme == "file" or (not scheme and uri not in SERVERS):
        return f"MLflow keeps no runs in plain folders any more: use {LOCAL_URI}, or another path"
    known = {*SERVERS, *DATABASES, *(point.name for point in entry_points(group="mlflow.tracking_store"))}
    if scheme and scheme not in known:
        return f"'{scheme}' is not a kind of MLflow store"
    try:
        parts = urlsplit(uri)
        _ = parts.port  # parsed only when read
    except ValueError as error:
        # Python's message shows the text where a port is expected, which can be a part of a password.
        return "Port could not be read: a '/' in a password is written %2F" if "Port" in str(error) else str(error)
    return "there is no host in it" if scheme in {"http", "https"} and not parts.hostname else None


def without_password(text: str) -> str:
    """The text with the user part and the password options of every URI in it blanked out."""
    of_databases = "|".join(DATABASES)  # SQLAlchemy takes a slash as part of their passwords
    text = re.sub(rf"((?:{of_databases})(?:\+\w+)?://)[^:/\s@]*:[^\s@'\"]*@", r"\1***@", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<=://)[^/\s@]+@", "***@", text)
    return re.sub(rf"([?&](?:{'|'.join(SECRET_OPTIONS)})=)[^&\s'\"]+", r"\1***", text)


@dataclass(frozen=True)
class Address:
    """A store. `client_uri` is the URI for MLflow, `database` the file of a local store."""

    uri: str
    client_uri: str
    database: Path | None

    @classmethod
    def of(cls, uri: str | None) -> "Address":
        """The store of a URI (None: the local default); relative paths start in the working folder."""
        uri = uri or LOCAL_URI
        if _scheme(uri) != "sqlite":
            return cls(uri, uri, None)
        # MLflow keeps one store per URI for the life of the process, so a relative one would outlive a change of folder
        name, mark, options = uri.removeprefix("sqlite:///").partition("?")
        database = Path.cwd() / unquote(name)
        return cls(uri, f"sqlite:///{quote(str(database), safe='/ ')}{mark}{options}", database)

    @property
    def is_server(self) -> bool:
        """Whether the store is behind an MLflow server."""
        return _scheme(self.uri) in {"http", "https"} or self.uri.partition(":")[0].lower() == "databricks"

    @property
    def needs_driver(self) -> bool:
        """Whether the database needs a client library."""
        return _scheme(self.uri) in DATABASES

    def artifacts(self, chosen: str | None, runs_dir: Path) -> str | None:
        """The URI for the files of a new experiment; None if the store decides.

        A folder is absolute, so that files are found from any working folder: the chosen folder, else `artifacts` next
        to a local database, else `mlflow/artifacts` next to `runs_dir`.
        """
        if chosen is not None:
            return chosen if "://" in chosen else Path(chosen).absolute().as_uri()
        if self.database is not None:
            return (self.database.parent / "artifacts").as_uri()
        return (runs_dir.absolute().parent / "mlflow" / "artifacts").as_uri() if self.needs_driver else None

    @property
    def socket(self) -> tuple[str, int] | None:
        """Host and port of a database server."""
        parts = urlsplit(self.uri)
        port = DATABASES.get(_scheme(self.uri))
        return (parts.hostname, parts.port or port) if port and parts.hostname else None

    def open_with(self, experiment_id: str, run_id: str) -> str:
        """The page, or the command, that shows a run."""
        if self._site:
            return f"{self._site}/#/experiments/{experiment_id}/runs/{run_id}"
        return f"{shell_command('mlflow')} ui --backend-store-uri {shlex.quote(self.public_uri)}"

    @property
    def public_uri(self) -> str:
        """The URI without secrets, for commands: a database keeps the user, a server no login."""
        if self.is_server:
            return re.sub(r"(?<=://)[^/@]+@", "", self.uri)
        if not self.needs_driver:
            return self.uri
        place, _, options = re.sub(r"(?<=://)([^:/@]*)(?::[^@]*)?(?=@)", r"\1", self.uri).partition("?")
        kept = [each for each in options.split("&") if each.partition("=")[0].lower() not in SECRET_OPTIONS]
        return place + ("?" + "&".join(kept) if any(kept) else "")

    @property
    def password_variable(self) -> str:
        """The environment variables for a password; empty if there are none."""
        return PASSWORDS.get(_scheme(self.uri), "")

    def charts(self, experiment_id: str) -> str:
        """The page that draws all runs of an experiment together, if MLflow is running."""
        return f"{self._site or UI_SITE}/#/experiments/{experiment_id}/runs?compareRunsMode=CHART"

    @property
    def _site(self) -> str | None:
        return without_password(self.uri).rstrip("/") if _scheme(self.uri) in {"http", "https"} else None


def _scheme(uri: str) -> str:
    """The scheme without the driver: `postgresql` of `postgresql+psycopg://…`."""
    return uri.partition(":")[0].partition("+")[0].lower() if ":" in uri else ""
