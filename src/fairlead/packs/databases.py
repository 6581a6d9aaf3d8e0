"""Databases: SQL and the commands of other databases that delete data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from ..shell import Command
from ..shell.outputs import input_of
from .files import code_of
from .flows import is_interpreter
from .lines import PackLine, texts_of
from .rules import Objection, Pack

if TYPE_CHECKING:
    from ..lifecycle import BeforeTool

databases = Pack("databases", "Keeps the data of databases from being dropped, emptied or overwritten.")
_SQL = frozenset(
    [
        "psql",
        "mysql",
        "mariadb",
        "sqlite3",
        "sqlite",
        "sqlcmd",
        "sqlplus",
        "duckdb",
        "clickhouse-client",
        "clickhouse",
        "cockroach",
        "usql",
        "pgcli",
        "mycli",
        "litecli",
        "bq",
        "snowsql",
        "turso",
        "vsql",
        "db2",
        "impala-shell",
        "hive",
        "beeline",
        "trino",
        "presto",
        "cqlsh",
        "isql-fb",
        "bcp",
        "mysqlsh",
        "databricks",
        "d1",
        "spark-sql",
        "psql.exe",
        "invoke-sqlcmd",
    ]
)
_STRINGS = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
_DROPS = re.compile(
    r"\b(?:drop\s+(?:table|database|schema|index|view|materialized|user|role|keyspace|tablespace|type|function|owned|column)|alter\s+table\s+\S+\s+drop\b|truncate\s+(?:table\s+)?[\w\"`\[]+)",
    re.I,
)
_DELETES = re.compile(r"\b(?:delete\s+from\s+[\w.\"`\[\]]+|update\s+[\w.\"`\[\]]+\s+set\b)(?P<rest>[^;]*)", re.I | re.S)
_PROGRAM = re.compile(r"\bto\s+program\b", re.I)
_DATABASE = re.compile(r"\bdrop\s+(?:database|schema|keyspace|owned)\b", re.I)


_TAKE_SQL = frozenset(
    {"--command", "--execute", "-execute", "-e", "-c", "-q", "-Q", "--query", "-query", "-s", "--sql", "-sql"}
)
_TAKE_FILES = frozenset({"-f", "--file", "-i", "--init-command", "-inputfile", "--queries-file"})


def sql_of(command: Command, line: PackLine) -> Iterator[str]:
    """The SQL that a client of a database is given on the line, also in a file that the line writes."""
    options = command.options
    yield from (str(text) for name in _TAKE_SQL if (text := options.get(name)))
    for before, word in pairwise(map(str, command.args)):
        if before.lower() in _TAKE_SQL:
            yield word
        elif before.lower() in _TAKE_FILES:
            yield line.text_of(word)
    yield from (line.text_of(one.target) for one in command.redirects if one.operator == "<")
    if text := input_of(command):
        yield text
    if command.program in ("sqlite3", "sqlite", "duckdb", "bq", "usql", "d1", "turso", "clickhouse", "wrangler"):
        yield from (str(word) for word in command.operands[1:])
    for word in command.args:
        if word.startswith(("--command=", "--execute=", "--query=", "-e", "-c", "-Q", "-q")) and len(word) > 6:
            yield str(word)


def dropped_in(text: str) -> str:
    """What an SQL text drops, empties or changes as a whole. Empty: nothing."""
    plain = _STRINGS.sub(" ", text)
    if _PROGRAM.search(plain):
        return "it runs a program of the server"
    if found := _DROPS.search(plain):
        return found[0][:80]
    for found in _DELETES.finditer(plain):
        rest = found["rest"]
        if not re.search(r"\bwhere\b|\blimit\b", rest, re.I) or re.search(
            r"\bwhere\s+(?:true|1\s*=\s*1|1)\s*$", rest.strip(), re.I
        ):
            return found[0].strip()[:80]
    return ""


@databases.rule(
    "drop",
    level="destructive",
    why="This deletes a table, or all rows of one.",
    instead="Look first, and name the rows: `psql -c 'SELECT count(*) FROM t'`",
    incident="2025-07: an agent dropped a production database during a code freeze, and made up data to cover it.",
    stops=[
        "psql -c 'DROP TABLE users'",
        "mysql -e 'truncate table t'",
        "sqlite3 x.db 'delete from t'",
        "psql <<E\nDROP TABLE t;\nE",
        "echo 'drop table t' | psql",
        'mysql -e "update t set a=1"',
        "psql --command='DELETE FROM t;'",
        "psql -c 'delete from t where 1=1'",
        "bq query 'DROP TABLE d.t'",
        "cqlsh -e 'DROP TABLE k.t'",
        "clickhouse-client -q 'DROP TABLE t'",
        "echo 'DROP TABLE t;' > q.sql && psql app < q.sql",
        "cat > q.sql <<E\nTRUNCATE t;\nE\npsql -f q.sql",
        {"tool": "powershell", "args": {"command": "Invoke-Sqlcmd -Query 'DROP TABLE t'"}},
    ],
    passes=[
        "psql -c 'SELECT count(*) FROM t'",
        "psql -c \"SELECT 'drop table'\"",
        "sqlite3 x.db 'delete from t where id=3'",
        "mysql -e 'update t set a=1 where id=2'",
        "sqlite3 :memory: 'create table t(a); drop table t'",
        "grep 'DROP TABLE' schema.sql",
        "echo 'drop table t'",
        "psql -c 'CREATE TABLE t (a int)'",
        "git commit -m 'drop table t'",
    ],
)
def drop(command: Command, line: PackLine) -> Objection:
    if command.program not in _SQL:
        if not is_interpreter(command.program):
            return None
        code = code_of(command, line)
        if not re.search(r"execute|query|raw|psycopg|sqlite|mysql|cursor|prisma|knex", code):
            return None
        return dropped_in(code.replace("'", " ").replace('"', " "))
    if ":memory:" in command.args:
        return None
    return next((found for text in sql_of(command, line) if (found := dropped_in(text))), None)


@databases.rule(
    "drop-database",
    level="disaster",
    programs=[
        "psql",
        "mysql",
        "mariadb",
        "dropdb",
        "mysqladmin",
        "sqlcmd",
        "cockroach",
        "mongosh",
        "mongo",
        "cqlsh",
        "dropuser",
        "influx",
        "clickhouse-client",
        "snowsql",
        "snow",
        "pg_dropcluster",
        "invoke-sqlcmd",
        "mysqlsh",
        "usql",
        "trino",
        "duckdb",
    ],
    why="This deletes a whole database.",
    instead="Make one of your own: `createdb scratch`",
    stops=[
        "dropdb prod",
        "psql -c 'DROP DATABASE prod'",
        "mysqladmin drop x",
        "mysql -e 'drop schema x'",
        "mongosh --eval 'db.dropDatabase()'",
        "mysqladmin -f drop x",
        "cqlsh -e 'DROP KEYSPACE k'",
        "snowsql -q 'drop database x'",
        "influx bucket delete -n metrics",
        "influx -execute 'DROP DATABASE x'",
    ],
    passes=["createdb scratch", "psql -l", "mysqladmin status", "mongosh --eval 'db.stats()'", "dropdb --help"],
)
def drop_database(command: Command, line: PackLine) -> Objection:
    if command.has("--help", "--version"):
        return None
    match command.program:
        case "pg_dropcluster":
            return bool(command.operands) and not command.has("-n")
        case "dropdb" | "dropuser":
            return bool(command.operands)
        case "mysqladmin":
            return "drop" in command.operands
        case "influx" if command.operands[:2] == ["bucket", "delete"]:
            return True
        case "mongosh" | "mongo":
            return any("dropDatabase" in word for word in (*command.args, command.stdin or ""))
    texts = (_STRINGS.sub(" ", text) for text in sql_of(command, line))
    return next((found[0] for text in texts if (found := _DATABASE.search(text))), None)


@databases.rule(
    "empty-store",
    level="destructive",
    programs=[
        "redis-cli",
        "valkey-cli",
        "keydb-cli",
        "mongosh",
        "mongo",
        "etcdctl",
        "memcached",
        "curl",
        "influx",
        "mongorestore",
        "pg_restore",
        "kafka-topics",
        "kafka-topics.sh",
        "rabbitmqctl",
        "nodetool",
        "neo4j-admin",
        "cypher-shell",
        "rabbitmqadmin",
        "kafka-consumer-groups",
        "kafka-consumer-groups.sh",
        "kafka-delete-records",
        "kafka-delete-records.sh",
        "nats",
        "rpk",
    ],
    why="This deletes all that a store holds.",
    instead="Name the key: `redis-cli DEL my-key`",
    stops=[
        "redis-cli FLUSHALL",
        "redis-cli -n 1 flushdb",
        "mongosh --eval 'db.c.deleteMany({})'",
        "mongo x --eval 'db.c.drop()'",
        "etcdctl del --prefix ''",
        "mongorestore --drop dump",
        "pg_restore --clean -d x f",
        "kafka-topics --delete --topic t",
        "rabbitmqctl reset",
        "redis-cli --scan | xargs redis-cli FLUSHALL",
        "redis-cli KEYS '*' | xargs redis-cli DEL",
        "redis-cli CONFIG SET dir /var/spool/cron",
        "influx delete --bucket b --start 1970-01-01T00:00:00Z --stop 2030-01-01T00:00:00Z",
        "kafka-consumer-groups.sh --delete --group g",
        "rabbitmqadmin delete queue name=orders",
        "nats stream purge ORDERS -f",
    ],
    passes=[
        "redis-cli DEL my-key",
        "redis-cli get x",
        "mongosh --eval 'db.c.deleteMany({a: 1})'",
        "etcdctl get x",
        "pg_restore -d x f",
        "rabbitmqctl status",
        "mongosh --eval 'db.c.find()'",
    ],
)
def empty_store(command: Command, line: PackLine) -> Objection:
    program, words = command.program, [str(word) for word in command.operands]
    if command.has("--help"):
        return None
    if program in ("redis-cli", "valkey-cli", "keydb-cli"):
        texts = [*words, *re.split(r"\s+", input_of(command) or "")]
        if words[:1] and words[0].upper() in ("DEL", "UNLINK") and (before := command.reads) is not None:
            listed = before.program == program and (before.has("--scan") or "KEYS" in map(str.upper, before.operands))
            return listed and "all keys that it finds"
        if [word.upper() for word in words[:2]] == ["CONFIG", "SET"] and words[2:3] in (["dir"], ["dbfilename"]):
            return "it says where the data is written"
        if re.search(r"(?i)^eval\b.*\b(?:flushall|flushdb)\b", " ".join(words)):
            return "a script that empties it"
        return next((word for word in texts if word.upper() in ("FLUSHALL", "FLUSHDB", "SHUTDOWN", "DEBUG")), None)
    if program in ("mongosh", "mongo"):
        text = " ".join([*map(str, command.args), input_of(command) or ""])
        found = re.search(
            r"(?:deleteMany|remove)\(\s*(?:\{\s*\})?\s*\)|\.drop\(\)|dropIndexes|dropCollection|dropUser|dropRole", text
        )
        return found and found[0]
    if program == "etcdctl":
        return words[:1] == ["del"] and command.has("--prefix", "--from-key")
    if program in ("mongorestore", "pg_restore"):
        return command.has("--drop", "--clean", "-c")
    if program.startswith("kafka-delete"):
        return True
    if program.startswith("kafka-"):
        return command.has("--delete", "--delete-offsets")
    if program == "nats":
        return len(words) > 1 and words[0] in ("stream", "str", "s", "kv", "object", "consumer") and words[1] in (
            "rm", "del", "delete", "purge",
        )  # fmt: skip
    if program == "rpk":
        return words[:2] == ["topic", "delete"] or words[:2] == ["group", "delete"]
    if program == "influx":
        return words[:1] == ["delete"]
    if program == "rabbitmqadmin":
        return words[:1] in (["delete"], ["purge"])
    if program == "rabbitmqctl":
        return words[:1] and words[0] in (
            "reset",
            "force_reset",
            "delete_vhost",
            "purge_queue",
            "delete_queue",
            "delete_user",
        )
    if program == "nodetool":
        return words[:1] and words[0] in ("decommission", "removenode", "clearsnapshot", "assassinate")
    if program == "cypher-shell":
        return bool(
            re.search(
                r"(?i)match\s*\(\w*\)\s*(detach\s+)?delete", " ".join(map(str, [*command.args, command.stdin or ""]))
            )
        )
    return None


@databases.rule(
    "empty-in-code",
    level="destructive",
    why="This code deletes all that a store or a bucket holds.",
    instead="Look first: `redis-cli dbsize`",
    stops=[
        "python3 -c 'import redis; redis.Redis().flushall()'",
        "python3 -c 'from pymongo import MongoClient; MongoClient().drop_database(\"x\")'",
        "python3 <<E\nimport boto3\nboto3.client('s3').delete_bucket(Bucket='x')\nE",
        "python3 <<E\nimport boto3\nboto3.resource('s3').Bucket('x').objects.all().delete()\nE",
        "node -e 'mongoose.connection.dropDatabase()'",
        "rails runner 'User.delete_all'",
        "php artisan tinker --execute='User::truncate();'",
    ],
    passes=[
        "redis-cli dbsize",
        "python3 -c 'import redis; print(redis.Redis().get(1))'",
        "python3 -c 'import pandas; df.drop(columns=[1])'",
        "rails runner 'puts User.count'",
        "rails runner 'User.where(id: 3).delete_all'",
        "python3 -c 'import boto3; boto3.client(\"s3\").list_buckets()'",
    ],
)
def empty_in_code(command: Command, line: PackLine) -> Objection:
    if command.program == "php" and "tinker" in command.operands[:2]:
        return _found_in(_EMPTIES, " ".join(map(str, command.args)))
    if not is_interpreter(command.program) and command.program != "rails":
        return None
    return _found_in(_EMPTIES, code_of(command, line))


_EMPTIES = re.compile(
    r"\.(?:flushall|flushdb|flushAll|flushDb|drop_database|dropDatabase|drop_collection|dropCollection)\(|"
    r"\.(?:delete_many|deleteMany)\(\s*(?:\{\s*\}\s*)?\)|\.delete_(?:bucket|table|db_instance|db_cluster|stack|cluster|queue)\(|"
    r"\b[A-Z]\w*\.(?:delete_all|destroy_all)\b|->truncate\(\)|\b[A-Z]\w*::truncate\(\)|"
    r"\.terminate_instances\(|\.objects\.all\(\)\.delete\(|\.object_versions\.(?:all\(\)\.)?delete\("
)


def _found_in(pattern: re.Pattern[str], code: str) -> str:
    found = pattern.search(code) if code else None
    return found[0] if found else ""


_RESETS = {
    "rails": ("db:drop", "db:reset", "db:schema:load", "db:migrate:reset", "db:setup"),
    "rake": ("db:drop", "db:reset", "db:schema:load", "db:migrate:reset"),
    "prisma": ("migrate reset", "db push --force-reset", "db push --accept-data-loss"),
    "artisan": ("migrate:fresh", "migrate:reset", "migrate:refresh", "db:wipe"),
    "manage.py": ("flush", "reset_db", "sqlflush", "migrate zero"),
    "django-admin": ("flush", "reset_db"),
    "sequelize": ("db:drop", "db:migrate:undo:all"),
    "knex": ("migrate:rollback --all",),
    "typeorm": ("schema:drop",),
    "alembic": ("downgrade base",),
    "flyway": ("clean",),
    "liquibase": ("drop-all", "dropAll"),
    "supabase": ("db reset",),
    "hasura": ("metadata clear",),
    "ecto": ("drop", "reset"),
    "mix": ("ecto.drop", "ecto.reset"),
    "drizzle-kit": ("drop", "push --force"),
    "doctrine": ("schema:drop",),
    "console": ("doctrine:database:drop", "doctrine:schema:drop"),
    "goose": ("reset", "down-to 0"),
    "flask": ("db downgrade base",),
    "mvn": ("flyway:clean", "liquibase:dropAll"),
    "mvnw": ("flyway:clean", "liquibase:dropAll"),
    "gradle": ("flywayClean",),
    "gradlew": ("flywayClean",),
    "dbmate": ("drop",),
    "diesel": ("database reset",),
    "sqlx": ("database drop", "database reset"),
    "dotnet-ef": ("database drop",),
    "dotnet": ("ef database drop",),
    "sqitch": ("revert",),
    "airflow": ("db reset",),
    "superset": ("db reset",),
}


@databases.rule(
    "framework-reset",
    level="destructive",
    why="This drops the tables of an application and makes them anew, without the data.",
    instead="Add a migration: `rails db:migrate`",
    stops=[
        "rails db:drop",
        "bin/rails db:reset",
        "npx prisma migrate reset --force",
        "php artisan migrate:fresh --seed",
        "python manage.py flush --noinput",
        "bundle exec rake db:drop",
        "alembic downgrade base",
        "flyway clean",
        "npx sequelize-cli db:drop",
        "mix ecto.reset",
        "flask db downgrade base",
        "goose down-to 0",
        "./mvnw flyway:clean",
        "supabase db reset",
    ],
    passes=[
        "rails db:migrate",
        "npx prisma migrate dev",
        "php artisan migrate",
        "python manage.py migrate",
        "alembic upgrade head",
        "flyway info",
        "prisma generate",
        "mvn clean",
        "RAILS_ENV=test bundle exec rails db:schema:load",
    ],
)
def framework_reset(command: Command, line: PackLine) -> Objection:
    found = _reset_by(command)
    if found and {"test"} & {line.variables_of(command).get(name) for name in _ENVIRONMENTS}:
        return None  # a database of tests is made anew for each run
    return found


_ENVIRONMENTS = ("RAILS_ENV", "RACK_ENV", "APP_ENV", "MIX_ENV")


def _reset_by(command: Command) -> str | None:
    """The framework that drops its tables, and how."""
    for at, word in enumerate([command.program, *command.args[:3]]):
        name = str(word).rpartition("/")[2].removesuffix("-cli")
        if name not in _RESETS:
            continue
        rest = " ".join(command.args[at:])
        for reset in _RESETS[name]:
            if reset == "migrate zero" and re.search(r"\bmigrate\s+(?:\S+\s+)?zero\b", rest):
                return f"{name} {reset}"
            first, *options = reset.split(" --")
            if re.search(rf"(?:^|\s){re.escape(first)}(?:\s|$)", rest) and all(
                f"--{option}" in rest for option in options
            ):
                return f"{name} {reset}"
    return None


@databases.tool_rule(
    "drop-by-tool",
    kinds=["mcp", "unknown", "shell"],
    level="destructive",
    why="This deletes a table or a database, or all rows of a table.",
    instead="Look first, and name the rows.",
    incident="2025-07: an agent dropped a production database during a code freeze, and made up data to cover it.",
    stops=[
        {"tool": "mcp__postgres__query", "args": {"sql": "DROP TABLE users"}},
        {"tool": "mcp__db__execute", "args": {"statements": ["select 1", "delete from t"]}},
        {"tool": "run_sql", "args": {"query": "TRUNCATE TABLE t"}},
    ],
    passes=[
        {"tool": "mcp__postgres__query", "args": {"sql": "SELECT 'drop table' FROM t"}},
        {"tool": "mcp__db__execute", "args": {"sql": "delete from t where id = 3"}},
        {"tool": "mcp__mail__send", "args": {"body": "We should drop table t, then tell them."}},
        {"tool": "mcp__github__create_issue", "args": {"body": "DROP TABLE users fails"}},
    ],
)
def drop_by_tool(step: BeforeTool, line: PackLine) -> Objection:
    if step.kind == "shell" and not step.target.server:  # a server may call its tool `execute`
        return None
    for name, text in texts_of(step.args):
        is_sql = _SQL_ARGS.search(name) or _SQL_TOOLS.search(step.tool)
        if is_sql and (found := dropped_in(text) or _found(_DATABASE, text)):
            return found
    return None


_SQL_ARGS = re.compile(r"(?i)sql|^query$|^queries$|statement|^command$")
_SQL_TOOLS = re.compile(
    r"(?i)sql|postgres|mysql|maria|database|(?:^|_)db(?:_|$)|supabase|neon|bigquery|snowflake|mongo|redis"
)


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(_STRINGS.sub(" ", text))
    return found[0] if found else ""
