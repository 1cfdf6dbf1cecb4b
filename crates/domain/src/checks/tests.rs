mod fixture;
mod sets;
mod verdicts_by_check;
