-- Which kinds of rows there are is said by the list of nouns alone: a new noun must not have to change this table, too.
create table changes_of_any_noun (
    seq {number} not null primary key,
    at bigint not null,
    kind text not null,
    id {id} not null,
    infra_env_id {id},
    cluster_id {id},
    op text not null check (op in ('put', 'delete')),
    revision bigint not null,
    status text not null
);
insert into changes_of_any_noun (seq, at, kind, id, infra_env_id, cluster_id, op, revision, status)
    select seq, at, kind, id, infra_env_id, cluster_id, op, revision, status from changes;
drop table changes;
alter table changes_of_any_noun rename to changes;
create index changes_by_time on changes (at);
