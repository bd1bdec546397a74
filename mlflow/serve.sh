#!/bin/sh
# Starts a team's MLflow server, and migrates a fresh database: serve.sh STORE ARTIFACTS [further options of `mlflow server`]
#   STORE      postgresql://USER@HOST/DATABASE (the password: PGPASSWORD), or sqlite:////PATH for a few users
#   ARTIFACTS  a folder or s3://BUCKET/PATH; the server hands the files on, so that clients need no access to it
# It listens on 127.0.0.1:5000 unless --host and --port say otherwise; `mlflow server --help` lists all options.
set -eu
if [ $# -lt 2 ]; then
  sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
store=$1 artifacts=$2
shift 2
export MLFLOW_DISABLE_TELEMETRY="${MLFLOW_DISABLE_TELEMETRY:-true}"
# The runners of MLflow's own jobs are nine processes, each with connections of its own; codechat uses none of them.
export MLFLOW_SERVER_ENABLE_JOB_EXECUTION="${MLFLOW_SERVER_ENABLE_JOB_EXECUTION:-false}"
# By a variable: the arguments of a process can be read by everybody on the machine.
export MLFLOW_BACKEND_STORE_URI="$store"
exec mlflow server --host 127.0.0.1 --artifacts-destination "$artifacts" "$@"
