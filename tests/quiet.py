"""Options of runs that tests make: on the CPU, and without bars and tables on the terminal."""

QUIET = [
    *("--trainer.accelerator", "cpu"),
    *("--trainer.enable_progress_bar", "false"),
    *("--trainer.enable_model_summary", "false"),
]
