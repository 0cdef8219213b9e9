"""`groupmq job`: commands about single jobs and selections of jobs."""
