"""Defects of large data, which is stored beside the record of its job."""

from __future__ import annotations

from tests.model.mutant import Mutant

KIND = "default"

BODIES = [
    Mutant("large data not stored", "  if call.bodies then body_changes.note() end\n", "", KIND),
    Mutant("large data cut off by one byte", "string.sub(body, at)\n", "string.sub(body, at, -2)\n", KIND),
    Mutant("record of large data without its flag", "return record.set_beside(body, 3, true)", "return body", KIND),
    Mutant(
        "flag kept where data became small", "record.set_beside(preamble, 25, false) .. data", "preamble .. data", KIND
    ),
    Mutant(
        "data that became small left beside its record",
        "  body_changes.drop(id)\n  return record.set_beside",
        "  return record.set_beside",
        KIND,
    ),
    Mutant(
        "data of a debounced job left beside its record",
        "  if replaces then body_changes.drop(id) end\n",
        "",
        KIND,
    ),
    Mutant(
        "data given up within a call stored",
        "  if call.bodies then call.bodies[id] = nil end\n",
        "",
        KIND,
    ),
    Mutant(
        "data of a removed job stays", "  W.hdel(K.jobs, id)\n  body_changes.drop(id)\n", "  W.hdel(K.jobs, id)\n", KIND
    ),
    Mutant("data of completed jobs stays", "  body_changes.drop_all(ids)\n", "", KIND),
    Mutant(
        "nobody says that there are large jobs",
        "  call.bodies[id] = data\n  meta.large = true\n",
        "  call.bodies[id] = data\n",
        KIND,
    ),
    Mutant(
        "large data not given to the worker",
        "if rec and (not large or bodies.bring(id, rec, m + 1)) then",
        "if rec then",
        KIND,
    ),
    Mutant(
        "large data of a job behind another not given to the worker",
        "    if large and not bodies.bring(id, rec, m + 1) then break end\n",
        "",
        "rows: default",
    ),
    Mutant(
        "large data missing in an answer that is given again",
        " and recs[i] and bodies.bring(ids[i], recs[i], i) then",
        " and recs[i] then",
        KIND,
    ),
    Mutant("large data not shown", "      bodies.read(job.id, job.rec) or nil,\n", "", KIND),
    Mutant("large data of a removed repeat stays", "  body_changes.drop(bodies.of_repeat(rid))\n", "", KIND),
    Mutant(
        "large data of a repeat not given to its jobs",
        "definition.ttl, body, data)\n  return true",
        "definition.ttl, body)\n  return true",
        KIND,
    ),
]
