# SPDX-License-Identifier: Apache-2.0
"""Results as a data frame of pandas."""
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Union

if TYPE_CHECKING:
    import pandas


def frame(results: Union[Mapping[str, Any], Iterable[Mapping[str, Any]]]) -> "pandas.DataFrame":
    """One row for each result of run and bench, one for each experiment of a suite.

    Columns are the keys, with a dot before those of an inner dict: "results.output_throughput".
    """
    try:
        import pandas
    except ImportError:
        raise ImportError("profllm.frame needs pandas; install it with pip install pandas, or from Debian's "
                          "package python3-pandas") from None
    rows: List[Dict[str, Any]] = []
    for one in [results] if isinstance(results, Mapping) else results:
        rows += one["experiments"] if "experiments" in one and "plan" in one else [dict(one)]
    return pandas.json_normalize(rows)
