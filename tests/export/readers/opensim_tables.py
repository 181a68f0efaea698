"""Run by a Python with OpenSim: what its adapters read of TRC and MOT files, as JSON."""

import json
import sys

import opensim

opensim.Logger.setLevelString("Error")
read = {}
for path in sys.argv[1:]:
    if path.endswith(".mot"):
        table = opensim.TimeSeriesTable(path)
        rows = [[table.getRowAtIndex(i)[j] for j in range(table.getNumColumns())] for i in range(table.getNumRows())]
    else:
        table = opensim.TimeSeriesTableVec3(path)
        rows = []
        for i in range(table.getNumRows()):
            row = table.getRowAtIndex(i)
            rows.append([[row[j][k] for k in range(3)] for j in range(table.getNumColumns())])
    meta = {key: table.getTableMetaDataAsString(key) for key in ("DataRate", "Units") if table.hasTableMetaDataKey(key)}
    times = list(table.getIndependentColumn())
    rows = json.loads(json.dumps(rows).replace("NaN", "null"))  # a missing marker
    read[path.rsplit(".", 1)[1]] = {"names": list(table.getColumnLabels()), "times": times, "rows": rows, "meta": meta}
print("RESULT" + json.dumps(read))
