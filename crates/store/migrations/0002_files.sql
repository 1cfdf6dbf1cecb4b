-- Files of clusters. What a path holds is a content, kept in chunks under an id of its own: a file is replaced, renamed
-- or taken away by changing one small row, and an upload is nobody's file until it is complete. `{blob}` is bytes.

create table files (
    cluster_id {id} not null,
    path {id} not null,
    content {id} not null,
    size bigint not null,
    written_at bigint not null,
    primary key (cluster_id, path)
) {clustered};

create table file_chunks (
    content {id} not null,
    number bigint not null,
    body {blob} not null,
    primary key (content, number)
);

-- Contents that are not complete yet, and when they last grew.
create table file_uploads (
    content {id} not null primary key,
    grown_at bigint not null
);
create index file_uploads_by_growth on file_uploads (grown_at);
