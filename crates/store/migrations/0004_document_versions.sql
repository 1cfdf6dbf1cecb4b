-- Which version of its kind a document is; see `src/document`. Whoever knew no versions wrote the first. Adding a column
-- with a constant default rewrites no row, on neither database.
alter table hosts add column version bigint not null default 1;
alter table clusters add column version bigint not null default 1;
alter table infra_envs add column version bigint not null default 1;
alter table host_reports add column version bigint not null default 1;
alter table outbox add column version bigint not null default 1;
