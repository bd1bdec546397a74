"""CodeAssistBench: a maintainer answers the issue of a repository to a simulated user, and a judge reads it."""
