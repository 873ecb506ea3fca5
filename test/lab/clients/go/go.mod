module read

go 1.23
