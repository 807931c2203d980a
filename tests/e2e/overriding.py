# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a client has seen before the daemon was killed, and whether the next daemon agrees with it.

    overriding.py write SOCKET STATE   set and unset overrides until the connection breaks, and keep in
                                       STATE what was acknowledged and what was under way
    overriding.py check SOCKET STATE   print what is wrong: overrides must be what was acknowledged, or
                                       what was under way, and what the audit says, without a gap
    overriding.py hit SOCKET TENANT    hit until the connection breaks; print how many were admitted

write and hit print "begun" when they are connected.
"""
import json
import os
import random
import sys

sys.dont_write_bytecode = True
import resp  # noqa: E402

TENANTS = [f"tenant-{number}" for number in range(8)]
PIPELINED = 100
BROKEN = (EOFError, ConnectionError, TimeoutError)


def load(path):
    if not os.path.exists(path):
        return {"rates": {}, "changes": 0, "under_way": None, "next": 1}
    with open(path, encoding="ascii") as file:
        return json.load(file)


def save(path, state):
    with open(path, "w", encoding="ascii") as file:
        json.dump(state, file)


def connect(place):
    client = resp.Client(place)
    print("begun", flush=True)
    return client


def change(client, state):
    """One change, which is under way until it is acknowledged."""
    tenant = random.choice(TENANTS)
    rate = state["next"]
    if tenant in state["rates"] and random.random() < 0.3:
        rate = None
    state["next"] += 1
    state["under_way"] = [tenant, rate]
    if rate is None:
        client.ask("OVERRIDE.DEL", tenant)
        del state["rates"][tenant]
    else:
        client.ask("OVERRIDE.SET", tenant, json.dumps({"rate": rate, "burst": 5}))
        state["rates"][tenant] = rate
    state["under_way"] = None
    state["changes"] += 1


def write(place, path):
    state = load(path)
    client = connect(place)
    try:
        while True:
            change(client, state)
    except BROKEN:
        save(path, state)


def read_audit(client):
    """Newest first."""
    records, before = [], []
    while True:
        page = json.loads(client.ask("AUDIT.LIST", "LIMIT", 1000, *before))["audit"]
        records += page
        if len(page) < 1000:
            return records
        before = ["BEFORE", page[-1]["id"]]


def check(place, path):
    state = load(path)
    client = resp.Client(place)
    records = read_audit(client)
    count, wrong = state["changes"], []
    if [record["id"] for record in records] != list(range(len(records), 0, -1)):
        wrong.append("the audit has a gap")
    allowed = (count, count + 1) if state["under_way"] else (count,)
    if len(records) not in allowed:
        wrong.append(f"{len(records)} audit records of {count} changes")
    rates = {}
    for tenant in TENANTS:
        known = state["rates"].get(tenant)
        under_way = state["under_way"] if len(records) > count else None
        audited = next((record["after"] for record in records if record["tenant"] == tenant), None)
        effective = json.loads(client.ask("TENANT.EFFECTIVE", tenant))
        override = effective["rate"] if effective["source"] == "override" else None
        expected = under_way[1] if under_way and under_way[0] == tenant else known
        if override != expected or override != (audited and audited["rate"]):
            wrong.append(f"{tenant}: acknowledged {known}, under way {state['under_way']}, "
                         f"audited {audited}, in force {override}")
        if override is not None:
            rates[tenant] = override
    save(path, {**state, "rates": rates, "changes": len(records), "under_way": None})
    print("\n".join(wrong), end="")


def hit(place, tenant):
    client = connect(place)
    batch = resp.encode("TENANT.HIT", tenant) * PIPELINED
    admitted = 0
    try:
        while True:
            client.socket.sendall(batch)
            for _ in range(PIPELINED):
                admitted += client.read()[0]
    except BROKEN:
        print(admitted)


{"write": write, "check": check, "hit": hit}[sys.argv[1]](*sys.argv[2:])
