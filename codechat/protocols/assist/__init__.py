"""CodeAssistBench: the parts of its protocol."""
