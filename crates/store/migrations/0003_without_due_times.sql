-- Deadlines follow from the row and are kept in memory: storing them cost every write an index entry.
drop index hosts_by_due;
alter table hosts drop column due_at;
