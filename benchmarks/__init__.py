"""Ratios against the strongest peers that a user could pick, measured in one run.

A script is a module here or in a folder below that offers `rows()`, and ends with

    if __name__ == "__main__":
        main(rows)  # of benchmarks.row

`python -m benchmarks` runs all of them, each in a process of its own; `python -m benchmarks
delivery hessian` runs two. Both print one table and write docs/benchmarks.md, from what the last
two days left in docs/benchmarks.json. `python -m benchmarks.data.delivery` runs one script by
itself and writes nothing.

All sides of a comparison have the same cores and threads: a script starts with one thread and with
idle threads asleep. One that wants more threads gives them to every side (`torch.set_num_threads`).
Rounds of all sides alternate and the fastest of each counts (`benchmarks.measure.alternate`).
"""
