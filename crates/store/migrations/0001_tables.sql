-- One text for both databases. `{id}` is a uuid as text in byte order, `{number}` a key that rises, `{clustered}`
-- keeps small rows in their key's tree where the database can. Times are microseconds since 1970, documents JSON.

create table hosts (
    infra_env_id {id} not null,
    host_id {id} not null,
    cluster_id {id},
    revision bigint not null,
    status text not null,
    due_at bigint,
    created_at bigint not null,
    doc text not null,
    primary key (infra_env_id, host_id)
);
create index hosts_by_cluster on hosts (cluster_id, infra_env_id, host_id);
create index hosts_by_status on hosts (infra_env_id, status, host_id);
create index hosts_by_due on hosts (due_at);
create index hosts_by_id on hosts (host_id);

create table host_reports (
    infra_env_id {id} not null,
    host_id {id} not null,
    kind text not null,
    body text not null,
    primary key (infra_env_id, host_id, kind)
);

create table host_checkins (
    infra_env_id {id} not null,
    host_id {id} not null,
    at bigint not null,
    clock bigint not null,
    primary key (infra_env_id, host_id)
) {clustered};

create table tombstones (
    infra_env_id {id} not null,
    host_id {id} not null,
    revision bigint not null,
    deleted_at bigint not null,
    primary key (infra_env_id, host_id)
) {clustered};

create table clusters (
    id {id} not null primary key,
    revision bigint not null,
    status text not null,
    name text not null,
    created_at bigint not null,
    doc text not null
);

create table infra_envs (
    id {id} not null primary key,
    revision bigint not null,
    name text not null,
    cluster_id {id},
    created_at bigint not null,
    doc text not null
);
create index infra_envs_by_cluster on infra_envs (cluster_id);

create table events (
    id {number} not null primary key,
    at bigint not null,
    name text not null,
    severity text not null check (severity in ('info', 'warning', 'error', 'critical')),
    category text not null check (category in ('user', 'metrics')),
    message text not null,
    cluster_id {id},
    host_id {id},
    infra_env_id {id},
    request_id {id},
    props text not null
);
create index events_by_time on events (at, id);
create index events_by_cluster on events (cluster_id, at, id);
create index events_by_host on events (host_id, at, id);
-- Wide on purpose: counting a pool's history reads the index alone.
create index events_by_infra_env on events (infra_env_id, at, id, category, severity);

create table changes (
    seq {number} not null primary key,
    at bigint not null,
    kind text not null check (kind in ('host', 'cluster', 'infra-env')),
    id {id} not null,
    infra_env_id {id},
    cluster_id {id},
    op text not null check (op in ('put', 'delete')),
    revision bigint not null,
    status text not null
);
create index changes_by_time on changes (at);

create table outbox (
    id {number} not null primary key,
    key text not null unique,
    effect text not null,
    due_at bigint not null,
    attempts bigint not null,
    last_error text not null,
    created_at bigint not null
);
create index outbox_by_due on outbox (due_at, id);

-- The last number given out of each sequence. One row, changed inside the writer's transaction: numbers have no gaps
-- and their order is the order of commits.
create table counters (
    id bigint not null primary key,
    change_seq bigint not null,
    event_id bigint not null,
    outbox_id bigint not null
);
insert into counters (id, change_seq, event_id, outbox_id) values (1, 0, 0, 0);
